//! The cold fields of a struct behind a link, by `#[ccmorph::split]`.
//!
//! `Node { key, name }` becomes `Node::from(NodeFields { key, name })`, and `node.name` becomes
//! `node.cold.name`, which is a place as it was: it is read, written and borrowed alike. Fields of
//! other structs may have the name; the compiler refuses these, unless such a struct has a field
//! `cold`, too, or derefs to something: then the struct stays whole. So it does where a pattern
//! names a cold field, which does not compile.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{Expr, ExprStruct, Item, ItemImpl, ItemStruct, Macro, Meta, Path, Token, Type, UseTree};

use super::fields::{is_harmless, start};
use super::manifest::Dependency;
use super::types::Types;
use super::{Edit, Fields, Replacement, Source, has_word, separator};

/// The edits that move fields of a struct apart: what must be done in each file, and the places
/// where such a field is named.
pub(super) fn edits(sources: &[Source], types: &Types<'_>, cold: &Fields) -> Vec<Edit> {
    let whole = || {
        let declared = types.declared(&cold.of)?;
        let Item::Struct(item) = declared.item else {
            return None;
        };
        let is_fit = item.attrs.iter().all(is_harmless)
            && !sources.iter().any(Source::is_unsafe)
            && !Others::of(sources, cold).have_another_meaning();
        is_fit.then_some((declared.source, item))
    };
    let Some((home, item)) = whole() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for source in sources {
        let mut made = Made {
            source,
            of: &cold.of,
            imported: imported(source, &cold.of),
            is_own: false,
            replacements: Vec::new(),
            has_rest: false,
        };
        made.visit_file(&source.syntax);
        if made.has_rest {
            return Vec::new();
        }
        let mut replacements = made.replacements;
        let is_home = source.path == home.path;
        if is_home {
            let at = item
                .attrs
                .first()
                .map_or(start(source, item), |first| source.range(first).start);
            let text = format!("#[ccmorph::split(cold({}))]", cold.fields.join(", "));
            replacements.push(insertion(at, text + &separator(source, at)));
        }
        let edit = |replacements: Vec<Replacement>, site: Option<String>| Edit {
            names: vec![cold.of.clone()],
            path: source.path.clone(),
            replacements,
            probes: Vec::new(),
            needs: is_home.then(|| Dependency::of_ours("ccmorph", "ccmorph", &[])),
            site,
        };
        if !replacements.is_empty() {
            all.push(edit(replacements, None));
        }
        let tokens: Option<TokenStream> = source.parsed().parse().ok();
        let mut uses = Vec::new();
        named(source, tokens.unwrap_or_default(), &cold.fields, &mut uses);
        // By numbers: other edits move what is behind them.
        all.extend((1..).zip(uses).map(|(number, at): (usize, usize)| {
            let behind = insertion(at, "cold.".to_owned());
            edit(vec![behind], Some(number.to_string()))
        }));
    }
    all
}

fn insertion(at: usize, text: String) -> Replacement {
    let range = at..at;
    Replacement { range, text }
}

/// Where one of these fields is named behind a dot, also in the words of a macro.
fn named(source: &Source, tokens: TokenStream, fields: &[String], found: &mut Vec<usize>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_dot = |at: Option<usize>| {
        let token = at.and_then(|at| tokens.get(at));
        matches!(token, Some(TokenTree::Punct(it)) if it.as_char() == '.')
    };
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => named(source, group.stream(), fields, found),
            TokenTree::Ident(name) => {
                let is_field = is_dot(at.checked_sub(1)) && !is_dot(at.checked_sub(2));
                let is_call = match tokens.get(at + 1) {
                    Some(TokenTree::Group(it)) => it.delimiter() == Delimiter::Parenthesis,
                    Some(TokenTree::Punct(it)) => it.as_char() == ':',
                    _ => false,
                };
                if is_field && !is_call && fields.iter().any(|field| name == field) {
                    found.push(source.bytes(name.span()).start);
                }
            }
            _ => {}
        }
    }
}

/// The path by which a file imports a type, without its name.
fn imported(source: &Source, name: &str) -> Option<String> {
    fn find(tree: &UseTree, before: &str, name: &str) -> Option<String> {
        match tree {
            UseTree::Path(it) => find(&it.tree, &format!("{before}{}::", it.ident), name),
            UseTree::Group(it) => it.items.iter().find_map(|it| find(it, before, name)),
            UseTree::Name(it) => (it.ident == name).then(|| before.to_owned()),
            UseTree::Rename(_) | UseTree::Glob(_) => None,
        }
    }
    let uses = source.syntax.items.iter().filter_map(|item| match item {
        Item::Use(it) => Some(&it.tree),
        _ => None,
    });
    uses.into_iter().find_map(|tree| find(tree, "", name))
}

/// Looks for structs of which `it.name` and `it.cold.name` may both compile.
struct Others<'c> {
    names: &'c [String],
    have_name: BTreeSet<String>,
    deref: BTreeSet<String>,
    have_cold: bool,
}

impl<'c> Others<'c> {
    fn of(sources: &[Source], cold: &'c Fields) -> Others<'c> {
        let mut others = Others {
            names: &cold.fields,
            have_name: BTreeSet::new(),
            deref: BTreeSet::new(),
            have_cold: false,
        };
        sources
            .iter()
            .for_each(|source| others.visit_file(&source.syntax));
        others
    }

    fn have_another_meaning(&self) -> bool {
        self.have_cold || !self.have_name.is_disjoint(&self.deref)
    }
}

impl<'ast> Visit<'ast> for Others<'_> {
    fn visit_item_struct(&mut self, item: &'ast ItemStruct) {
        for field in item.fields.iter().filter_map(|it| it.ident.as_ref()) {
            self.have_cold |= field == "cold";
            if self.names.iter().any(|name| field == name) {
                self.have_name.insert(item.ident.to_string());
            }
        }
        let is_deref = |meta: &Meta| match meta {
            Meta::List(list) => has_word(list.tokens.clone(), "Deref"),
            _ => false,
        };
        if item.attrs.iter().any(|it| is_deref(&it.meta)) {
            self.deref.insert(item.ident.to_string());
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let trait_ = item.trait_.as_ref().and_then(|it| it.0.segments.last());
        if let (Some(trait_), Some(of)) = (trait_, of_impl(item))
            && trait_.ident == "Deref"
        {
            self.deref.insert(of);
        }
        syn::visit::visit_item_impl(self, item);
    }
}

/// The last word of the type that an `impl` is of.
fn of_impl(item: &ItemImpl) -> Option<String> {
    let Type::Path(it) = &*item.self_ty else {
        return None;
    };
    Some(it.path.segments.last()?.ident.to_string())
}

/// Looks for values of the struct that are made.
struct Made<'s> {
    source: &'s Source,
    of: &'s str,
    imported: Option<String>,
    /// Whether `Self` is the struct.
    is_own: bool,
    replacements: Vec<Replacement>,
    /// Whether one takes the rest of another.
    has_rest: bool,
}

impl Made<'_> {
    /// The path of the struct with all fields, where this is the struct's.
    fn whole(&self, path: &Path) -> Option<String> {
        let last = path.segments.last()?;
        let text = &self.source.text[self.source.range(path)];
        if path.is_ident("Self") {
            return self.is_own.then(|| format!("{}Fields", self.of));
        }
        if last.ident != self.of {
            return None;
        }
        let at = self.source.bytes(last.ident.span()).end - self.source.range(path).start;
        let before = match &self.imported {
            Some(before) if path.segments.len() == 1 => before,
            _ => "",
        };
        Some(format!("{before}{}Fields{}", &text[..at], &text[at..]))
    }
}

impl<'ast> Visit<'ast> for Made<'_> {
    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let is_own = of_impl(item).as_deref() == Some(self.of);
        let before = std::mem::replace(&mut self.is_own, is_own);
        syn::visit::visit_item_impl(self, item);
        self.is_own = before;
    }

    fn visit_expr_struct(&mut self, made: &'ast ExprStruct) {
        if let Some(whole) = self.whole(&made.path) {
            let end = self.source.range(&made.path).end;
            self.has_rest |= made.rest.is_some();
            self.replacements
                .push(insertion(end, format!("::from({whole}")));
            let end = self.source.range(made).end;
            self.replacements.push(insertion(end, ")".to_owned()));
        }
        syn::visit::visit_expr_struct(self, made);
    }

    fn visit_macro(&mut self, macro_: &'ast Macro) {
        // `vec![Node { .. }; 5]` has a semicolon.
        let parse = macro_.parse_body_with(|input: syn::parse::ParseStream<'_>| {
            let mut all: Vec<Expr> = Vec::new();
            while !input.is_empty() {
                all.push(input.parse()?);
                let _ = input.parse::<Option<Token![;]>>()?;
                let _ = input.parse::<Option<Token![,]>>()?;
            }
            Ok(all)
        });
        // The syntax lives as long as this call.
        for expr in parse.into_iter().flatten() {
            let mut inner = Made {
                imported: self.imported.clone(),
                replacements: Vec::new(),
                ..*self
            };
            inner.visit_expr(&expr);
            self.has_rest |= inner.has_rest;
            self.replacements.append(&mut inner.replacements);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> Option<String> {
        let sources = [Source::parse("src/a.rs".into(), text.to_owned()).unwrap()];
        let cold = Fields {
            of: "Node".to_owned(),
            fields: vec!["name".to_owned(), "notes".to_owned()],
        };
        let edits = edits(&sources, &Types::of(&sources), &cold);
        let all = super::super::merged(&edits);
        all.first().map(|it| it.apply(text))
    }

    #[test]
    fn fields_move_behind_a_link() {
        let text = "
/// Of a tree.
#[derive(Clone)]
pub struct Node<T> {
    key: T,
    name: String,
    notes: Vec<u8>,
}
impl<T> Node<T> {
    fn new(key: T, name: String) -> Self {
        Self { key, name, notes: vec![0; 3] }
    }
    fn text(&mut self) -> &str {
        self.notes.push(1);
        self.name.truncate(5);
        println!(\"{} {}\", self.name, self.key);
        &self.name
    }
}
fn main() {
    let all = vec![
        Node { key: 1, name: f(), notes: Vec::new() },
        g(m::Node::<u8> { key: 2, ..x() }),
    ];
}
";
        assert_eq!(edited(text), None);
        let text = text.replace(", ..x()", ", name: f(), notes: a..notes");
        let expected = text
            .replace("/// Of", "#[ccmorph::split(cold(name, notes))]\n/// Of")
            .replace(
                "Self { key, name, notes: vec![0; 3] }",
                "Self::from(NodeFields { key, name, notes: vec![0; 3] })",
            )
            .replace("self.name", "self.cold.name")
            .replace("self.notes", "self.cold.notes")
            .replace(
                "Node { key: 1, name: f(), notes: Vec::new() }",
                "Node::from(NodeFields { key: 1, name: f(), notes: Vec::new() })",
            )
            .replace(
                "m::Node::<u8> { key: 2, name: f(), notes: a..notes }",
                "m::Node::<u8>::from(m::NodeFields::<u8> { key: 2, name: f(), notes: a..notes })",
            );
        assert_eq!(edited(&text).unwrap(), expected);
    }

    #[test]
    fn other_edits_rename_no_site() {
        let sites = |before: &str| -> Vec<String> {
            let text = format!(
                "struct Node {{ name: u8, key: u8 }}\n\
                 fn f(it: &Node) {{ {before} g(it.name, it.key, &it.name); }}"
            );
            let sources = [Source::parse("src/a.rs".into(), text).unwrap()];
            let cold = Fields {
                of: "Node".to_owned(),
                fields: vec!["name".to_owned()],
            };
            let edits = edits(&sources, &Types::of(&sources), &cold);
            edits.into_iter().filter_map(|it| it.site).collect()
        };
        assert_eq!(sites("").len(), 2);
        assert_eq!(sites(""), sites("let mut v = Vec::new();"));
    }

    #[test]
    fn imports_say_where_the_struct_is() {
        let text = "use crate::tree::{Kind, Node};\nfn f() -> Node { Node { name, notes } }";
        let source = Source::parse("src/b.rs".into(), text.to_owned()).unwrap();
        assert_eq!(imported(&source, "Node").as_deref(), Some("crate::tree::"));
        let home = "pub struct Node { name: String, notes: u8, key: u8 }".to_owned();
        let sources = [source, Source::parse("src/tree.rs".into(), home).unwrap()];
        let cold = Fields {
            of: "Node".to_owned(),
            fields: vec!["name".to_owned()],
        };
        let edits = edits(&sources, &Types::of(&sources), &cold);
        let of_first = edits.iter().find(|it| it.path == sources[0].path).unwrap();
        let made = "Node::from(crate::tree::NodeFields { name, notes })";
        assert!(
            of_first.apply(text).contains(made),
            "{}",
            of_first.apply(text)
        );
    }

    #[test]
    fn other_structs_stay() {
        for text in [
            "#[repr(C)] struct Node { name: u8, notes: u8 }",
            "#[derive(serde::Serialize)] struct Node { name: u8, notes: u8 }",
            "struct Other { name: u8, notes: u8 }",
            "struct Node { name: u8, notes: u8 }\nfn f() { unsafe {} }",
            // `it.cold.name` is another field of these.
            "struct Node { name: u8, notes: u8 }\nstruct Other { name: u8, cold: Cold }",
            "struct Node { name: u8, notes: u8 }\nstruct Entry { name: u8, node: Box<Node> }\n\
             impl std::ops::Deref for Entry { type Target = Node; }",
            "struct Node { name: u8, notes: u8 }\n#[derive(Deref)]\n\
             struct Entry { name: u8, #[deref] node: Box<Node> }",
        ] {
            assert_eq!(edited(text), None, "{text}");
        }
    }
}
