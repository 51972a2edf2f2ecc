//! Changes of source that a machine can make.
//!
//! An edit replaces ranges of files, so that comments and formatting stay. Each kind is one file:
//! a function from what the package has to edits. Whether an edit compiles, the compiler decides;
//! whether it pays off, the clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, ExprPath, Macro};

pub(crate) use maps::Library;
use types::Types;

mod allocator;
mod capacity;
mod fields;
pub(crate) mod manifest;
mod maps;
mod morph;
mod near;
mod reuse;
mod split;
mod types;
mod uses;

/// Names an edit, also of sources that have been changed otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Allocator,
    /// All maps and sets of the package: they are given from file to file.
    Maps(Library),
    /// Room for all that a loop will push.
    Capacity,
    /// One buffer for all turns of a loop.
    Reuse,
    /// The fields of this struct in a better order.
    Fields(String),
    /// The cold fields of this struct behind a link.
    Split(String),
    /// The nodes of this type are laid out once they are built.
    Morph(String),
    /// New nodes beside those that lead to them.
    Near,
}

/// A struct and fields of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) of: String,
    pub(crate) fields: Vec<String>,
}

/// What a profile asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// All fields of structs, in better orders.
    pub(crate) orders: Vec<Fields>,
    /// Fields that are hardly used.
    pub(crate) cold: Vec<Fields>,
}

/// All edits that can be made in the package of these sources, whose program has the crate root
/// `root`, by kind, each in one file; that of the allocator first.
pub(crate) fn all(root: &Path, sources: &[Source], asked: &Asked) -> Vec<(Kind, Vec<Edit>)> {
    let root = sources.iter().find(|source| source.path == root);
    let allocator = root.map(|root| (Kind::Allocator, vec![allocator::edit(root, sources)]));
    let types = Types::of(sources);
    let of_files = |edits: &dyn Fn(&Source) -> Vec<Edit>| sources.iter().flat_map(edits).collect();
    let maps = Library::ALL.map(|library| {
        let edits = of_files(&|source| maps::edit(source, library).into_iter().collect());
        (Kind::Maps(library), edits)
    });
    let splits = asked.cold.iter().map(|cold| {
        let edits = split::edits(sources, &types, cold);
        (Kind::Split(cold.of.clone()), edits)
    });
    let fields = asked.orders.iter().map(|order| {
        let edits = fields::edit(sources, &types, order).into_iter().collect();
        (Kind::Fields(order.of.clone()), edits)
    });
    let morphs = morph::edits(sources, &types).into_iter();
    let others = maps
        .into_iter()
        .chain([
            (Kind::Capacity, of_files(&capacity::edits)),
            (Kind::Reuse, of_files(&reuse::edits)),
        ])
        .chain(splits)
        .chain(fields)
        .chain(morphs.map(|(name, edits)| (Kind::Morph(name), edits)))
        // Hints do not hide from other kinds what is built.
        .chain([(Kind::Near, of_files(&|source| near::edits(source, &types)))])
        .filter(|(_, edits)| !edits.is_empty());
    allocator.into_iter().chain(others).collect()
}

/// What edits of one kind do, in one line.
pub(crate) fn describe(kind: &Kind, edits: &[Edit]) -> String {
    let names: BTreeSet<&str> = edits
        .iter()
        .flat_map(|it| &it.names)
        .map(|it| &**it)
        .collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let names = names.join(" and ");
    let paths: BTreeSet<&Path> = edits.iter().map(|it| &*it.path).collect();
    let place = match paths.first() {
        Some(one) if paths.len() == 1 => one.display().to_string(),
        _ => format!("{} files", paths.len()),
    };
    let sites = edits.iter().filter(|it| it.site.is_some()).count();
    let times = |one: &str, several: &str| match sites {
        1 => one.to_owned(),
        count => format!("{count} {several}"),
    };
    match kind {
        Kind::Allocator => names,
        Kind::Maps(Library::CTree) => {
            format!("{} for {names} in {place}", names.replace("BTree", "CTree"))
        }
        Kind::Maps(Library::Hashbrown) => {
            format!("hashbrown's {names} in {place}: a faster hash, not for keys of strangers")
        }
        Kind::Capacity => format!("with_capacity for {names} in {place}: a loop says how much"),
        Kind::Reuse => format!("{names} in {place}: one buffer for all turns of a loop"),
        Kind::Split(_) => format!("#[ccmorph::split] of {names} in {place}: cold fields apart"),
        Kind::Fields(_) => format!("the fields of {names} in {place} by use, with #[repr(C)]"),
        Kind::Morph(node) => {
            let places = times("once it is built", "places where it is built");
            format!("ccmorph of {node} in {place}: its nodes in the order of use, {places}")
        }
        Kind::Near => {
            let of = if names.is_empty() { "boxes" } else { &names };
            let places = times("at one place", "places");
            format!(
                "ccmalloc::near for {of} in {place}: nodes near those that lead there, {places}"
            )
        }
    }
}

/// A range of a file, and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// What a change does in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The types that it is about, or all that it does.
    pub(crate) names: Vec<String>,
    /// The file, relative to the copied folder.
    pub(crate) path: PathBuf,
    pub(crate) replacements: Vec<Replacement>,
    /// Insertions with which it must compile, too.
    pub(crate) probes: Vec<Replacement>,
    /// What the package then depends on.
    pub(crate) needs: Option<manifest::Dependency>,
    /// Names it among those of its kind in its file, if the others can do without it.
    pub(crate) site: Option<String>,
}

impl Edit {
    /// The text of its file with what it makes of it.
    pub(crate) fn apply(&self, text: &str) -> String {
        let mut all: Vec<&Replacement> = self.replacements.iter().collect();
        all.sort_by_key(|it| it.range.start);
        let (mut out, mut at) = (String::new(), 0);
        for it in all {
            out.push_str(text.get(at..it.range.start).unwrap_or_default());
            out.push_str(&it.text);
            at = it.range.end;
        }
        out + text.get(at..).unwrap_or_default()
    }

    /// With its probes.
    pub(crate) fn probing(&self) -> Edit {
        let mut edit = self.clone();
        edit.replacements.append(&mut edit.probes);
        edit
    }

    /// The lines, from 1, that a part of it has become in the text of its file with all of it.
    pub(crate) fn lines_of(&self, part: &Edit, text: &str) -> Range<usize> {
        let lines = |text: &str| text.matches('\n').count();
        let mut all: Vec<&Replacement> = self.replacements.iter().collect();
        all.sort_by_key(|it| it.range.start);
        let (mut line, mut at) = (1, 0);
        let mut found: Option<Range<usize>> = None;
        for it in all {
            line += lines(text.get(at..it.range.start).unwrap_or_default());
            let end = line + lines(&it.text);
            if part.replacements.contains(it) {
                let start = found.map_or(line, |found| found.start);
                found = Some(start..end + 1);
            }
            (line, at) = (end, it.range.end);
        }
        found.unwrap_or(0..0)
    }
}

/// Edits of one kind, those of each file as one.
pub(crate) fn merged(edits: &[Edit]) -> Vec<Edit> {
    let mut all: BTreeMap<&Path, Edit> = BTreeMap::new();
    for edit in edits {
        match all.get_mut(&*edit.path) {
            Some(first) => {
                first.replacements.extend(edit.replacements.iter().cloned());
                first.probes.extend(edit.probes.iter().cloned());
            }
            None => drop(all.insert(&edit.path, edit.clone())),
        }
    }
    all.into_values().collect()
}

/// A source file of the package.
pub(crate) struct Source {
    /// Relative to the copied folder.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
    pub(crate) syntax: syn::File,
}

impl Source {
    /// `None` of what is no Rust: the compiler will say so, if it is asked.
    pub(crate) fn parse(path: PathBuf, text: String) -> Option<Source> {
        let syntax = syn::parse_file(&text).ok()?;
        Some(Source { path, text, syntax })
    }

    /// Whether it has `unsafe` code, which may rely on what an edit changes.
    fn is_unsafe(&self) -> bool {
        let tokens: Result<TokenStream, _> = self.parsed().parse();
        tokens.map_or(true, |tokens| has_word(tokens, "unsafe"))
    }

    /// The bytes of a part of it.
    fn range(&self, part: &impl Spanned) -> Range<usize> {
        self.bytes(part.span())
    }

    fn bytes(&self, span: Span) -> Range<usize> {
        let range = span.byte_range();
        // The parser leaves a byte order mark and a first line `#!` out.
        let skipped = self.text.len() - self.parsed().len();
        range.start + skipped..range.end + skipped
    }

    /// What the parser has seen.
    fn parsed(&self) -> &str {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        match &self.syntax.shebang {
            Some(line) => text.strip_prefix(&**line).unwrap_or(text),
            None => text,
        }
    }
}

/// What stands between an attribute and what it is about: a new line where that begins one.
fn separator(source: &Source, at: usize) -> String {
    let line = &source.text[..at];
    let indent = &line[line.rfind('\n').map_or(0, |at| at + 1)..];
    match indent.trim().is_empty() {
        true => format!("\n{indent}"),
        false => " ".to_owned(),
    }
}

/// Whether a path has these words.
fn is_path(path: &syn::Path, words: &[&str]) -> bool {
    let names = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string());
    names.eq(words.iter().map(|word| (*word).to_owned()))
}

/// The last words of a path.
fn last_word(path: &syn::Path, count: usize) -> Vec<String> {
    let words = path
        .segments
        .iter()
        .map(|segment| segment.ident.to_string());
    let words: Vec<String> = words.collect();
    words[words.len().saturating_sub(count)..].to_vec()
}

/// A name for each text: itself, and its number among equal ones.
fn keys<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut key = |text: &'t str| {
        let count = counts.entry(text).or_default();
        *count += 1;
        format!("{count} {text}")
    };
    texts.map(&mut key).collect()
}

/// Whether an expression, also one in the words of a macro, has a variable of this name.
fn mentions(expr: &Expr, name: &str) -> bool {
    let mut found = Mentions { name, is_in: false };
    found.visit_expr(expr);
    found.is_in
}

struct Mentions<'n> {
    name: &'n str,
    is_in: bool,
}

impl<'ast> Visit<'ast> for Mentions<'_> {
    fn visit_expr_path(&mut self, path: &'ast ExprPath) {
        self.is_in |= path.path.is_ident(self.name);
    }

    fn visit_macro(&mut self, macro_: &'ast Macro) {
        self.is_in |= has_word(macro_.tokens.clone(), self.name);
    }
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => has_word(group.stream(), word),
        TokenTree::Ident(ident) => ident == word,
        // `println!("{name}")`
        TokenTree::Literal(text) => text.to_string().contains(&format!("{{{word}")),
        TokenTree::Punct(_) => false,
    })
}

/// Whether an expression only names and combines values: it allocates nothing, and evaluating it
/// twice, or within a closure, is the same.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Array(it) => it.elems.iter().all(is_plain),
        Expr::Binary(it) => is_plain(&it.left) && is_plain(&it.right),
        Expr::Cast(it) => is_plain(&it.expr),
        Expr::Field(it) => is_plain(&it.base),
        Expr::Paren(it) => is_plain(&it.expr),
        Expr::Reference(it) => it.mutability.is_none() && is_plain(&it.expr),
        Expr::Repeat(it) => is_plain(&it.expr),
        Expr::Struct(it) => it.rest.is_none() && it.fields.iter().all(|it| is_plain(&it.expr)),
        Expr::Tuple(it) => it.elems.iter().all(is_plain),
        Expr::Unary(it) => is_plain(&it.expr),
        Expr::Call(it) => match &*it.func {
            // `Vec::new()`
            Expr::Path(path) => it.args.is_empty() && last_word(&path.path, 1) == ["new"],
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_lines() {
        let text = "a\nb\nc\nd\n";
        let part = |range: Range<usize>, text: &str| Edit {
            names: Vec::new(),
            path: "a".into(),
            replacements: vec![Replacement {
                range,
                text: text.to_owned(),
            }],
            probes: Vec::new(),
            needs: None,
            site: None,
        };
        let parts = [part(4..5, "x\ny"), part(0..3, "z"), part(6..7, "w")];
        let whole = &merged(&parts)[0];
        assert_eq!(whole.apply(text), "z\nx\ny\nw\n");
        let lines = parts.each_ref().map(|part| whole.lines_of(part, text));
        assert_eq!(lines, [2..4, 1..2, 4..5]);
    }

    #[test]
    fn ranges_are_of_the_whole_file() {
        for head in ["", "\u{feff}", "#!/usr/bin/env run\n", "\u{feff}#!/x\n"] {
            let text = format!("{head}// ä\nfn main() {{}}\n");
            let source = Source::parse("a".into(), text.clone()).unwrap();
            let range = source.range(&source.syntax.items[0]);
            assert_eq!(&text[range], "fn main() {}", "{head:?}");
        }
    }
}
