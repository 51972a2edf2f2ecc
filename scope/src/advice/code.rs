//! Code as it is printed: in the language of the program, for the kind of pointer that leads to an
//! object. `docs/use/advised.md` has all of it, and is compiled.

use ccmodel::Layout;

use Language::{C, Cxx, Rust};

use super::{Context, is_foreign, site_type};
use crate::profile::{Field, Profile};

/// The longer pieces, below headings. Words like `$NODE` are replaced.
const TEXTS: &str = include_str!("code.txt");
/// What owns a value alone, or with others, or holds it.
const WRAPPERS: [&str; 8] = [
    "Arc",
    "Box",
    "Cell",
    "Mutex",
    "Rc",
    "RefCell",
    "RwLock",
    "UnsafeCell",
];

/// The language of a line that allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    C,
    Cxx,
}

impl Language {
    /// That of the lines that allocate at `sites`; if they have none, that of the compiler.
    pub(crate) fn of(profile: &Profile, sites: &[u32]) -> Language {
        let of_file = |file: &str| match file.rsplit_once('.')?.1 {
            "rs" => Some(Rust),
            "c" => Some(C),
            "cc" | "cpp" | "cxx" | "hpp" | "hh" | "C" => Some(Cxx),
            _ => None,
        };
        let of_site = |site: &u32| {
            let place = profile.sites.get(*site as usize)?.place?;
            of_file(&profile.frames.get(place as usize)?.file)
        };
        let is_cxx = || { profile.frames.iter() }.any(|it| of_file(&it.file) == Some(Cxx));
        let of_compiler = || match profile.run.compiler.starts_with("rustc") {
            true => Rust,
            false if is_cxx() => Cxx,
            false => C,
        };
        sites.iter().find_map(of_site).unwrap_or_else(of_compiler)
    }
}

/// The lines of `code.txt` below a heading, with words for those in `$CAPITALS`.
pub(super) fn text(heading: &str, words: &[(&str, &str)]) -> String {
    let (_, rest) = TEXTS
        .split_once(&format!("== {heading}\n"))
        .unwrap_or_default();
    let text = rest
        .split_inclusive('\n')
        .take_while(|line| !line.starts_with("== "));
    let fill = |text: String, (name, word): &(&str, &str)| text.replace(&format!("${name}"), word);
    words.iter().fold(text.collect(), fill)
}

/// What takes the place of the system's allocator.
pub(super) fn allocator(language: Language) -> String {
    let heading = if language == Rust {
        "ccmalloc"
    } else {
        "preload"
    };
    text(heading, &[])
}

/// An object of some sites, as code writes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'n> {
    pub(super) language: Language,
    /// As the profile calls it: `Rc<RefCell<Node>>`.
    whole: &'n str,
}

/// A field that leads from node to node.
pub(super) struct Link<'n> {
    /// With its index, in an array.
    pub(super) name: String,
    pub(super) type_name: &'n str,
}

impl<'n> Object<'n> {
    pub(super) fn new(context: &'n Context<'_>, sites: &[u32]) -> Object<'n> {
        let name = { sites.iter() }.find_map(|&site| site_type(context.profile, site));
        Object {
            language: Language::of(context.profile, sites),
            whole: name.unwrap_or("bytes"),
        }
    }

    pub(super) fn in_rust(whole: &'n str) -> Object<'n> {
        let language = Rust;
        Object { language, whole }
    }

    /// Without pointers and cells.
    pub(super) fn name(&self) -> &'n str {
        let mut name = self.whole;
        while let Some((head, rest)) = name.split_once('<')
            && self.language == Rust
            && (WRAPPERS.contains(&head) || head == "Vec")
        {
            name = rest.strip_suffix('>').unwrap_or(rest);
        }
        name
    }

    /// Whether a morph cannot move it, since others may point to it.
    pub(super) fn is_shared(&self) -> bool {
        let is_of = |it: &&str| self.whole.starts_with(*it);
        self.language == Rust && ["Rc<", "Arc<"].iter().any(is_of)
    }

    /// A node of a container of C++'s standard library.
    fn is_of_container(&self) -> bool {
        self.language == Cxx && is_foreign(Cxx, self.whole)
    }

    /// What lines of [`Object::near`] need.
    pub(super) fn preamble(&self) -> String {
        match self.language {
            Rust => text("ccmalloc", &[]),
            _ if self.is_of_container() => text("header", &[("HEADER", "hpp")]),
            _ => text("header", &[("HEADER", "h")]),
        }
    }

    /// A line that allocates `value` near `hint`, or so that there is room beside it.
    pub(super) fn near(&self, value: &str, hint: Option<&str>, is_raw: bool) -> String {
        let (language, name) = (self.language, self.name());
        let none = if language == Rust { "()" } else { "&root" };
        let hint = hint.unwrap_or(none);
        match (language, name) {
            (Rust, "bytes") => format!("ccmalloc::cc_alloc(layout, Some({hint}))"),
            (Rust, _) => match new(self.whole, value) {
                new if is_raw => format!("ccmalloc::near(&{hint}, || Box::into_raw({new}))"),
                new if new == value => format!("ccmalloc::near(&{hint}, || Box::new({new}))"),
                new => format!("ccmalloc::near(&{hint}, || {new})"),
            },
            _ if self.is_of_container() => {
                let of = name.split_once('<').map_or(name, |it| it.1);
                let of = of.trim_end_matches([' ', '>']);
                format!("using Near = cc::hint_allocator<{of}>; // the container's allocator")
            }
            (_, "bytes") => format!("void *{value} = ccmalloc(size, {hint});"),
            (C, _) => format!("{name} *{value} = ccmalloc(sizeof *{value}, {hint});"),
            _ => format!("{name} *{value} = new (ccmalloc(sizeof({name}), {hint})) {name}();"),
        }
    }

    /// A heap for the objects alone.
    pub(super) fn heap(&self) -> Option<String> {
        let is_boxed = self.language == Rust && self.whole.starts_with("Box<");
        is_boxed.then(|| text("heap", &[]))
    }

    /// A morph of what hangs below `root`; `None` where nodes cannot move.
    pub(super) fn morph(
        &self,
        layout: Layout,
        links: &[Link<'_>],
        buffers: bool,
    ) -> Option<String> {
        if self.is_of_container() || self.is_shared() {
            return None;
        }
        let node = ("NODE", self.name());
        let mut lines = String::new();
        for (number, Link { name, .. }) in (1..).zip(links) {
            lines += &match self.language {
                Rust => format!("        visit.link((&raw mut (*node).{name}).cast());\n"),
                _ => format!("    case {number}: return at->{name};\n"),
            };
        }
        if self.language != Rust {
            let count = links.len().to_string();
            let words = [node, ("LINKS", &lines), ("COUNT", &count)];
            return Some(self.preamble() + &text("morph in C", &words));
        }
        let how = match layout {
            Layout::Preorder => ".operation(ccmorph::Operation::Walk)",
            Layout::DepthFirst => ".layout(ccmorph::Layout::DepthFirst)",
            Layout::ClusterVanEmdeBoas { .. } => {
                ".layout(ccmorph::Layout::ClusterVanEmdeBoas { block_bytes: 64 })"
            }
            _ => "",
        };
        // Without generic arguments.
        let path = node.1.split('<').next().unwrap_or_default();
        let call = match (how, buffers) {
            ("", false) => format!("ccmorph::ccmorph(&mut root, {path}::children)?;"),
            (_, false) => format!("ccmorph::Morph::new(){how}.run(&mut root, {path}::children)?;"),
            (_, true) => format!("ccmorph::Morph::new(){how}.run_any(&mut root)?;"),
        };
        let code = match is_raw(links) {
            true => text(
                "morph of raw pointers",
                &[node, ("HOW", how), ("LINKS", &lines)],
            ),
            false => text("morph", &[("NODE", path), ("CALL", &call)]),
        };
        Some(text("ccmorph", &[]) + &self.preamble() + &code)
    }
}

/// Whether nodes are held by raw pointers.
pub(super) fn is_raw(links: &[Link<'_>]) -> bool {
    let is_raw = |it: &Link<'_>| it.type_name.starts_with('*') || it.type_name.contains("NonNull<");
    !links.is_empty() && links.iter().all(is_raw)
}

/// The fields of a struct, in this order and at these offsets.
pub(super) fn field_order(
    language: Language,
    [name, declared]: [&str; 2],
    size: u64,
    fields: &[(&Field, u64)],
) -> String {
    let line =
        |(field, offset): &(&Field, u64)| format!("    {} // {offset}\n", member(language, field));
    let (fields, size): (String, _) = (fields.iter().map(line).collect(), size.to_string());
    if language != Rust {
        let words = [("NODE", tag(name)), ("SIZE", &size), ("FIELDS", &fields)];
        return text("order in C", &words);
    }
    // The size of a generic struct is that of what is used here.
    let size = match name == declared {
        true => size,
        false => format!("{size}, of = {name}"),
    };
    let words = [("NODE", declared), ("SIZE", &size), ("FIELDS", &fields)];
    text("ccmorph", &[]) + &text("order", &words)
}

/// The struct and the fields that the code of an order in Rust names.
#[cfg(any(feature = "cli", test))]
pub(super) fn named_order(code: &str) -> Option<(String, Vec<String>)> {
    let (_, lines) = code.split_once("\nstruct ")?;
    let (name, fields) = lines.split_once(" {\n")?;
    let (fields, _) = fields.split_once('}')?;
    let fields = fields.lines().filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, _)| name.trim().to_owned()).collect();
    let name = name.split('<').next().unwrap_or(name);
    Some((name.to_owned(), fields))
}

/// The struct and its cold fields that the code of a split in Rust names.
#[cfg(any(feature = "cli", test))]
pub(super) fn named_cold(code: &str) -> Option<(String, Vec<String>)> {
    let (_, rest) = code.split_once("#[ccmorph::split(cold(")?;
    let (fields, rest) = rest.split_once(')')?;
    let (_, rest) = rest.split_once("on `")?;
    let (name, _) = rest.split_once('`')?;
    let fields = fields.split(", ").map(str::to_owned).collect();
    Some((name.to_owned(), fields))
}

/// A struct without its cold fields, which a table has.
pub(super) fn split(language: Language, name: &str, fields: &[Field], cold: &[usize]) -> String {
    let (mut names, mut lines) = ([Vec::new(), Vec::new()], [String::new(), String::new()]);
    for (at, field) in fields.iter().enumerate() {
        let part = usize::from(cold.contains(&at));
        names[part].push(&*field.name);
        lines[part] += &format!("    {}\n", member(language, field));
    }
    if language != Rust {
        let parts = [("HOT", &*lines[0]), ("COLD", &lines[1])];
        return text("split in C", &[("NODE", tag(name)), parts[0], parts[1]]);
    }
    let path = name.split('<').next().unwrap_or_default();
    let first = names[1].first().copied().unwrap_or_default();
    let [all, names] = [names.concat(), names[1].clone()].map(|it| it.join(", "));
    let words = [
        ("NODE", path),
        ("COLD", &names),
        ("ALL", &all),
        ("FIRST", first),
    ];
    text("ccmorph", &[]) + &text("split", &words)
}

/// A pointer, and copies of fields of what it leads to.
pub(super) fn beside(pointer: &str, fields: &[&Field]) -> String {
    let line = |field: &&Field| format!("    {}\n", member(Rust, field));
    let fields: String = fields.iter().map(line).collect();
    text("beside", &[("FIELDS", &fields), ("POINTER", pointer)])
}

/// The name of a struct of C without its keyword.
fn tag(name: &str) -> &str {
    name.strip_prefix("struct ").unwrap_or(name)
}

/// A field as a struct declares it. Arrays of C are written `[char; 56]` in profiles.
fn member(language: Language, field: &Field) -> String {
    if language == Rust {
        return format!("{}: {},", field.name, field.type_name);
    }
    let (mut of, mut name) = (&*field.type_name, field.name.clone());
    while let Some((inner, len)) = of.strip_prefix('[').and_then(|it| it.rsplit_once("; ")) {
        name.push_str(&format!("[{len}"));
        of = inner;
    }
    let space = if of.ends_with('*') { "" } else { " " };
    format!("{of}{space}{name};")
}

/// An expression for a new value of a type, whose innermost part is `value`.
fn new(whole: &str, value: &str) -> String {
    let (head, inner) = whole.split_once('<').unwrap_or((whole, ""));
    let inner = inner.strip_suffix('>').unwrap_or(inner);
    match head {
        "Vec" => "Vec::with_capacity(len)".to_owned(),
        _ if !WRAPPERS.contains(&head) => value.to_owned(),
        _ if inner.starts_with('[') || inner == "str" => format!("{head}::from({value})"),
        _ => format!("{head}::new({})", new(inner, value)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Its blocks of Rust are doctests of the package `tests`.
    const PAGE: &str = include_str!("../../../docs/use/advised.md");

    fn block(language: Language) -> &'static str {
        let fence = match language {
            Rust => "\n```rust,no_run\n",
            C => "\n```c\n",
            Cxx => "\n```c++\n",
        };
        let (_, rest) = PAGE.split_once(fence).expect("a block of this language");
        rest.split_once("\n```").expect("an end").0
    }

    /// Asserts that the page has each line of `code`.
    pub(in crate::advice) fn assert_compiled(language: Language, code: &str) {
        for line in code.lines().map(str::trim) {
            let mut lines = block(language).lines();
            assert!(lines.any(|it| it.trim() == line), "not compiled: {line}");
        }
    }

    fn structs(language: Language, [ordered, split_up]: [&str; 2], types: [&str; 3]) {
        let field = |(name, type_name): (&str, &str)| Field {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            offset: 0,
            size: 8,
        };
        let fields = ["key", "notes", "next"].into_iter().zip(types).map(field);
        let fields: Vec<Field> = fields.collect();
        let order: Vec<(&Field, u64)> = fields.iter().zip([0, 8, 64]).collect();
        let code = field_order(language, [ordered; 2], 72, &order);
        assert_compiled(language, &code);
        let names = ["key", "notes", "next"].map(str::to_owned).to_vec();
        let named = (language == Rust).then(|| (ordered.to_owned(), names));
        assert_eq!(named_order(&code), named);
        assert_compiled(language, &split(language, split_up, &fields, &[1]));
    }

    #[test]
    fn all_code_is_on_the_page() {
        let [search, walk, deep] = [Layout::Hierarchical, Layout::Preorder, Layout::DepthFirst];
        let layouts = [
            search,
            walk,
            deep,
            Layout::ClusterVanEmdeBoas { block_bytes: 64 },
        ];
        for (language, whole, link, layouts) in [
            (Rust, "Box<Node>", "Box<Node>", &layouts[..]),
            (Rust, "Box<Raw>", "*mut Raw", &layouts[..1]),
            (Rust, "Rc<RefCell<Node>>", "Rc<Node>", &[]),
            (Rust, "Arc<Mutex<Node>>", "Arc<Node>", &[]),
            (Rust, "Node", "Node", &[]),
            (Rust, "bytes", "Node", &[]),
            (C, "struct node", "struct node *", &layouts[..1]),
            (Cxx, "Node", "Node *", &layouts[..1]),
            (Cxx, "_Rb_tree_node<long>", "Node *", &[]),
        ] {
            let it = Object { language, whole };
            let links = ["left", "right"].map(|name| Link {
                name: name.to_owned(),
                type_name: link,
            });
            let near = it.near("node", Some("parent"), is_raw(&links));
            assert_compiled(language, &(it.preamble() + &near));
            for (&layout, buffers) in layouts.iter().flat_map(|it| [(it, false), (it, true)]) {
                let code = it.morph(layout, &links, buffers);
                assert_compiled(language, &code.expect("nodes move"));
            }
            let moves = !["Rc", "Ar", "_R"].contains(&&whole[..2]);
            assert_eq!(it.morph(search, &links, false).is_some(), moves, "{whole}");
        }
        for (language, whole) in [(Rust, "Vec<Box<Node>>"), (C, "struct node"), (Cxx, "Node")] {
            let owner = Object { language, whole };
            assert_compiled(language, &owner.near("owner", None, false));
        }
        assert_compiled(Rust, &Object::in_rust("Box<Node>").heap().expect("a heap"));
        let types = ["uint64_t", "[char; 56]", "struct record *"];
        structs(Rust, ["Record", "Quote"], ["u64", "[u8; 56]", "u64"]);
        structs(C, ["struct record", "struct row"], types);
        structs(Cxx, ["Record", "Row"], types);
    }

    #[test]
    fn the_page_is_compiled() {
        let headers = concat!(
            "-I",
            env!("CARGO_MANIFEST_DIR"),
            "/../ccmalloc/capi/include"
        );
        for (language, compiler, input) in [(C, "cc", "c"), (Cxx, "c++", "c++")] {
            let mut command = Command::new(compiler);
            command.args([
                headers,
                "-fsyntax-only",
                "-Wall",
                "-Werror",
                "-x",
                input,
                "-",
            ]);
            let mut child = command.stdin(Stdio::piped()).spawn().expect("a compiler");
            let mut stdin = child.stdin.take().expect("piped");
            std::io::Write::write_all(&mut stdin, block(language).as_bytes()).expect("it reads");
            drop(stdin);
            assert!(child.wait().expect("it ends").success(), "{language:?}");
        }
    }

    #[test]
    fn names_are_without_pointers() {
        assert_eq!(
            Object::in_rust("Rc<RefCell<Tree<u64>>>").name(),
            "Tree<u64>"
        );
        assert_eq!(new("Rc<str>", "text"), "Rc::from(text)");
        assert!(is_foreign(Rust, "alloc::string::String") && !is_foreign(Rust, "StringNode"));
        assert!(!is_foreign(Cxx, "String") && is_foreign(Cxx, "std::_List_node<int>"));
    }
}
