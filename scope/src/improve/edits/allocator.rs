//! `CcMalloc` as the global allocator.

use syn::Item;

use super::manifest::Dependency;
use super::{Edit, Replacement, Source, is_path};

const TYPE: &str = "ccmalloc::CcMalloc";
const VALUE: &str = "ccmalloc::CcMalloc::new()";

/// The edit that makes it the allocator of the program whose crate root is `root`, in the place of
/// the one that any of `sources` declares.
pub(super) fn edit(root: &Source, sources: &[Source]) -> Edit {
    let declared = sources
        .iter()
        .find_map(|source| Some((source, declared(source)?)));
    let (what, path, replacements) = match declared {
        Some((source, replacements)) => (
            "CcMalloc in the place of the global allocator",
            &source.path,
            replacements,
        ),
        None => (
            "CcMalloc as the global allocator",
            &root.path,
            vec![added(root)],
        ),
    };
    Edit {
        names: vec![what.to_owned()],
        path: path.clone(),
        replacements,
        probes: Vec::new(),
        needs: Some(Dependency::of_ours("ccmalloc", "ccmalloc", &[])),
        site: None,
    }
}

/// Type and value of a global allocator that stands by itself at the top of the file.
fn declared(source: &Source) -> Option<Vec<Replacement>> {
    let mut items = source.syntax.items.iter();
    items.find_map(|item| {
        let Item::Static(item) = item else {
            return None;
        };
        let is_it = |attribute: &syn::Attribute| is_path(attribute.path(), &["global_allocator"]);
        item.attrs.iter().any(is_it).then(|| {
            let of = |range, text: &str| Replacement {
                range,
                text: text.to_owned(),
            };
            vec![
                of(source.range(&*item.ty), TYPE),
                of(source.range(&*item.expr), VALUE),
            ]
        })
    })
}

/// The lines before the first item that is neither an import nor a module of another file.
fn added(root: &Source) -> Replacement {
    let is_head = |item: &&Item| match item {
        Item::Use(_) | Item::ExternCrate(_) => true,
        Item::Mod(module) => module.content.is_none(),
        _ => false,
    };
    let head = root.syntax.items.iter().take_while(is_head).last();
    let attributes = root.syntax.attrs.last().map(|it| root.range(it).end);
    let lines = format!("#[global_allocator]\nstatic GLOBAL: {TYPE} = {VALUE};\n");
    let end_of_line = |at: usize| {
        let rest = root.text[at..].find('\n');
        rest.map_or(root.text.len(), |len| at + len + 1)
    };
    let (at, text) = match (head.map(|item| root.range(item).end), attributes) {
        (Some(end), _) | (None, Some(end)) => (end_of_line(end), format!("\n{lines}")),
        (None, None) => {
            let first = root.syntax.items.first().map(|item| root.range(item).start);
            (first.unwrap_or(root.text.len()), format!("{lines}\n"))
        }
    };
    Replacement {
        range: at..at,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str =
        "#[global_allocator]\nstatic GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();\n";

    fn edited(text: &str) -> String {
        let root = Source::parse("src/main.rs".into(), text.to_owned()).unwrap();
        let sources = [Source::parse("src/main.rs".into(), text.to_owned()).unwrap()];
        let edit = edit(&root, &sources);
        edit.apply(text)
    }

    #[test]
    fn the_allocator_stands_behind_the_imports() {
        for (before, after) in [
            ("", "fn main() {}\n"),
            (
                "//! Docs.\n#![allow(dead_code)] // why\n",
                "\nfn main() {}\n",
            ),
            (
                "use std::fmt; // formats\nmod a;\n",
                "\nfn main() {}\nmod b { }\n",
            ),
            ("#![allow(x)]\nuse a::b;\n", "struct S;\n"),
        ] {
            let text = edited(&format!("{before}{after}"));
            let blank = if before.is_empty() { "" } else { "\n" };
            let expected = match before.is_empty() {
                true => format!("{LINES}\n{after}"),
                false => format!("{before}{blank}{LINES}{after}"),
            };
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn it_takes_the_place_of_another() {
        let text =
            "use mi::MiMalloc;\n#[global_allocator]\nstatic A: MiMalloc = MiMalloc; // fast\n";
        assert_eq!(
            edited(text),
            "use mi::MiMalloc;\n#[global_allocator]\n\
             static A: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new(); // fast\n"
        );
    }
}
