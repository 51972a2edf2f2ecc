//! Collections of a library in the place of those of the standard library.
//!
//! A file's imports change, so that its code stays as it is: `use ctree::CTreeMap as BTreeMap;`.
//! Paths that are written out, as `std::collections::BTreeMap::new()`, change where they stand.

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Ident, ItemUse, Macro, UseTree};

use super::manifest::Dependency;
use super::{Edit, Replacement, Source};

/// A library of collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Library {
    CTree,
    /// Its default hash is faster than the standard library's, which withstands keys that are
    /// chosen to collide.
    Hashbrown,
}

impl Library {
    pub(super) const ALL: [Library; 2] = [Library::CTree, Library::Hashbrown];

    /// Each name of `std::collections`, and what takes its place.
    fn names(self) -> [(&'static str, &'static str); 4] {
        match self {
            Library::CTree => [
                ("BTreeMap", "ctree::CTreeMap"),
                ("BTreeSet", "ctree::CTreeSet"),
                ("btree_map", "ctree::map"),
                ("btree_set", "ctree::set"),
            ],
            Library::Hashbrown => [
                ("HashMap", "hashbrown::HashMap"),
                ("HashSet", "hashbrown::HashSet"),
                ("hash_map", "hashbrown::hash_map"),
                ("hash_set", "hashbrown::hash_set"),
            ],
        }
    }

    fn new_name(self, old: &str) -> Option<&'static str> {
        let names = self.names();
        let found = names.iter().find(|(name, _)| *name == old);
        found.map(|(_, new)| *new)
    }

    fn dependency(self) -> Dependency {
        match self {
            Library::CTree => Dependency::of_ours("ctree", "cctree", &["serde", "rayon"]),
            Library::Hashbrown => Dependency::of_registry("hashbrown", "0.17", &["serde", "rayon"]),
        }
    }
}

/// The edit of a file that has such collections.
pub(super) fn edit(source: &Source, library: Library) -> Option<Edit> {
    let mut found = Found {
        source,
        library,
        replacements: Vec::new(),
        names: Vec::new(),
    };
    found.visit_file(&source.syntax);
    // Of types alone; their modules go with them.
    found
        .names
        .retain(|name| name.starts_with(char::is_uppercase));
    found.names.sort_unstable();
    found.names.dedup();
    (!found.names.is_empty()).then(|| Edit {
        names: found.names,
        path: source.path.clone(),
        replacements: found.replacements,
        probes: Vec::new(),
        needs: Some(library.dependency()),
        site: None,
    })
}

struct Found<'s> {
    source: &'s Source,
    library: Library,
    replacements: Vec<Replacement>,
    names: Vec<String>,
}

impl Found<'_> {
    fn text(&self, part: &impl Spanned) -> String {
        self.source.text[self.source.range(part)].to_owned()
    }

    /// What takes the place of a name below a path.
    fn takes(&self, path: &[String], name: &Ident) -> Option<&'static str> {
        let new = self.library.new_name(&name.to_string());
        new.filter(|_| is_collections(path))
    }

    /// The import without the names that are replaced, whose new imports go to `lines`; `None` if
    /// nothing is left.
    fn without(
        &mut self,
        tree: &UseTree,
        path: &[String],
        lines: &mut Vec<String>,
    ) -> Option<String> {
        let (name, renamed) = match tree {
            UseTree::Path(it) if self.takes(path, &it.ident).is_some() => {
                let new = self.takes(path, &it.ident)?;
                lines.push(format!("use {new}::{};", self.text(&it.tree)));
                return None;
            }
            UseTree::Path(it) => {
                let path = [path, &[it.ident.to_string()]].concat();
                let rest = self.without(&it.tree, &path, lines)?;
                return Some(format!("{}::{rest}", it.ident));
            }
            UseTree::Group(group) => {
                let before = lines.len();
                let kept = { group.items.iter() }.filter_map(|it| self.without(it, path, lines));
                let kept: Vec<String> = kept.collect();
                return match &*kept {
                    _ if lines.len() == before => Some(self.text(group)),
                    [] => None,
                    [one] if one != "self" => Some(one.clone()),
                    _ => Some(format!("{{{}}}", kept.join(", "))),
                };
            }
            UseTree::Name(it) => (&it.ident, &it.ident),
            UseTree::Rename(it) => (&it.ident, &it.rename),
            UseTree::Glob(_) => return Some("*".to_owned()),
        };
        let Some(new) = self.takes(path, name) else {
            return Some(self.text(tree));
        };
        self.names.push(name.to_string());
        lines.push(match new.ends_with(&format!("::{renamed}")) {
            true => format!("use {new};"),
            false => format!("use {new} as {renamed};"),
        });
        None
    }
}

impl Visit<'_> for Found<'_> {
    fn visit_item_use(&mut self, item: &ItemUse) {
        let mut lines = Vec::new();
        let kept = self.without(&item.tree, &[], &mut lines);
        if lines.is_empty() {
            return;
        }
        let whole = self.source.range(item);
        let before = &self.source.text[..whole.start];
        let indent = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
        let visibility = match &*self.text(&item.vis) {
            "" => String::new(),
            word => format!("{word} "),
        };
        // Each new import has the attributes of the old one.
        let attributes: String = { item.attrs.iter() }
            .map(|it| format!("{}\n{indent}", self.text(it)))
            .collect();
        let lines = lines.iter().map(|line| format!("{visibility}{line}"));
        let text = lines
            .collect::<Vec<_>>()
            .join(&format!("\n{indent}{attributes}"));
        let visible = self.source.range(&item.vis);
        let start = match visible.is_empty() {
            true => self.source.range(&item.use_token).start,
            false => visible.start,
        };
        let (range, text) = match kept {
            None => (start..whole.end, text),
            Some(kept) => {
                self.replacements.push(Replacement {
                    range: self.source.range(&item.tree),
                    text: kept,
                });
                (
                    whole.end..whole.end,
                    format!("\n{indent}{attributes}{text}"),
                )
            }
        };
        self.replacements.push(Replacement { range, text });
    }

    fn visit_macro(&mut self, macro_: &Macro) {
        syn::visit::visit_macro(self, macro_);
        self.tokens(macro_.tokens.clone());
    }

    fn visit_path(&mut self, path: &syn::Path) {
        syn::visit::visit_path(self, path);
        let words: Vec<String> = path
            .segments
            .iter()
            .map(|it| it.ident.to_string())
            .collect();
        let Some(name) = words.get(2).filter(|_| is_collections(&words[..2])) else {
            return;
        };
        if let Some(new) = self.library.new_name(name) {
            let start = match &path.leading_colon {
                Some(colon) => self.source.range(colon).start,
                None => self.source.range(&path.segments[0].ident).start,
            };
            self.replacements.push(Replacement {
                range: start..self.source.range(&path.segments[2].ident).end,
                text: new.to_owned(),
            });
            self.names.push(name.clone());
        }
    }
}

impl Found<'_> {
    /// Paths that are written out in the words of a macro, which are no syntax yet.
    fn tokens(&mut self, tokens: TokenStream) {
        let all: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in all.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.tokens(group.stream());
            }
            // `std::collections::NAME`, in which each colon is a token.
            let Some([TokenTree::Ident(first), .., TokenTree::Ident(name)]) = all.get(at..at + 7)
            else {
                continue;
            };
            // As in `other::std::collections`.
            let before = at.checked_sub(3).map(|start| &all[start..at]);
            let is_inner = before.is_some_and(|before| {
                let is_colon = |it: &TokenTree| it.to_string() == ":";
                matches!(before[0], TokenTree::Ident(_)) && before[1..].iter().all(is_colon)
            });
            let path: String = all[at..at + 7].iter().map(ToString::to_string).collect();
            let Some(new) = self.library.new_name(&name.to_string()) else {
                continue;
            };
            if !is_inner
                && ["std", "alloc"]
                    .iter()
                    .any(|it| path == format!("{it}::collections::{name}"))
            {
                let start = self.source.bytes(first.span()).start;
                // `::std` is a path from the root, as `ctree` is.
                let is_rooted = self.source.text[..start].ends_with("::");
                self.replacements.push(Replacement {
                    range: start - 2 * usize::from(is_rooted)..self.source.bytes(name.span()).end,
                    text: new.to_owned(),
                });
                self.names.push(name.to_string());
            }
        }
    }
}

fn is_collections(path: &[String]) -> bool {
    let words: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(words[..], ["std" | "alloc", "collections"])
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, describe};
    use super::*;

    /// The text and what it says that it does.
    fn edited_by(library: Library, text: &str) -> Option<(String, String)> {
        let source = Source::parse("src/a.rs".into(), text.to_owned()).unwrap();
        let edit = edit(&source, library)?;
        let what = describe(&Kind::Maps(library), std::slice::from_ref(&edit));
        Some((edit.apply(text), what))
    }

    fn edited(text: &str) -> Option<(String, String)> {
        edited_by(Library::CTree, text)
    }

    #[test]
    fn imports_give_the_old_name_to_the_new_type() {
        for (before, after) in [
            (
                "use std::collections::BTreeMap;\n",
                "use ctree::CTreeMap as BTreeMap;\n",
            ),
            (
                "use std::collections::BTreeSet as Set; // sorted\n",
                "use ctree::CTreeSet as Set; // sorted\n",
            ),
            (
                "use std::collections::{BTreeMap, HashMap, BTreeSet};\n",
                "use std::collections::HashMap;\nuse ctree::CTreeMap as BTreeMap;\n\
                 use ctree::CTreeSet as BTreeSet;\n",
            ),
            (
                "mod a {\n    pub(crate) use std::collections::{self, BTreeMap, HashMap};\n}\n",
                "mod a {\n    pub(crate) use std::collections::{self, HashMap};\n    \
                 pub(crate) use ctree::CTreeMap as BTreeMap;\n}\n",
            ),
            (
                "#[cfg(x)]\nuse std::{collections::{BTreeMap, BTreeSet}, fmt::{self, Write}};\n",
                "#[cfg(x)]\nuse std::fmt::{self, Write};\n#[cfg(x)]\n\
                 use ctree::CTreeMap as BTreeMap;\n#[cfg(x)]\nuse ctree::CTreeSet as BTreeSet;\n",
            ),
            (
                "#[allow(unused)]\nuse std::collections::BTreeMap;\n",
                "#[allow(unused)]\nuse ctree::CTreeMap as BTreeMap;\n",
            ),
            (
                "use alloc::collections::{BTreeMap};\n",
                "use ctree::CTreeMap as BTreeMap;\n",
            ),
            (
                "static M: ::std::collections::BTreeMap<u8, std::collections::BTreeSet<u8>> = \
                 std::collections::BTreeMap::new();\n",
                "static M: ctree::CTreeMap<u8, ctree::CTreeSet<u8>> = ctree::CTreeMap::new();\n",
            ),
        ] {
            let (text, _) = edited(before).unwrap();
            assert_eq!(text, after);
        }
        let (_, what) = edited("use std::collections::{BTreeMap, BTreeSet};\n").unwrap();
        assert_eq!(
            what,
            "CTreeMap and CTreeSet for BTreeMap and BTreeSet in src/a.rs"
        );
    }

    #[test]
    fn paths_in_macros_are_found() {
        let text = "macro_rules! set { ($($v:expr),*) => {{ let mut s = \
                    ::std::collections::BTreeSet::new(); $(s.insert($v);)* s }}; }\n\
                    fn f() { assert!(g(std::collections::BTreeMap::<u8, u8>::new())); }\n\
                    x! { let mut a: std::collections::BTreeMap = b::std::collections::BTreeMap; }\n\
                    fn h() { vec![std::collections::HashMap::<u8, u8>::new()]; }\n";
        let (after, _) = edited(text).unwrap();
        let expected = text.replace("::std::collections::BTreeSet", "ctree::CTreeSet");
        let expected = expected.replace("std::collections::BTreeMap", "ctree::CTreeMap");
        let expected = expected.replace("b::ctree::CTreeMap", "b::std::collections::BTreeMap");
        assert_eq!(after, expected);
    }

    #[test]
    fn modules_go_with_their_types() {
        let imports =
            "use std::collections::hash_map::{Entry, self};\nuse std::collections::HashMap;\n";
        let text = "type A = std::collections::hash_map::Iter<'static, u8, u8>;\n";
        let text = format!("{imports}{text}");
        let (text, what) = edited_by(Library::Hashbrown, &text).unwrap();
        assert_eq!(
            text,
            "use hashbrown::hash_map::{Entry, self};\nuse hashbrown::HashMap;\n\
             type A = hashbrown::hash_map::Iter<'static, u8, u8>;\n"
        );
        let expected = "hashbrown's HashMap in src/a.rs: a faster hash, not for keys of strangers";
        assert_eq!(what, expected);
        let text = "use std::collections::{BTreeMap, btree_map};\n";
        let expected = "use ctree::CTreeMap as BTreeMap;\nuse ctree::map as btree_map;\n";
        assert_eq!(edited(text).unwrap().0, expected);
    }

    #[test]
    fn other_names_stay() {
        for text in [
            "use std::collections::{HashMap, btree_map::Entry};\n",
            "use std::collections::*;\n",
            "use other::BTreeMap;\n",
            "fn f(m: collections::BTreeMap<u8, u8>) {}\n",
            "// std::collections::BTreeMap\n",
        ] {
            assert_eq!(edited(text), None, "{text}");
        }
    }
}
