//! The fields of a struct in another order, which `#[repr(C)]` keeps.
//!
//! Left alone is what has a representation already, and what derives something in which the order
//! of fields is seen, as a comparison or a serialisation. Fields are dropped in their order: what
//! borrows from another field by `unsafe` code would dangle, so that a package with such code is
//! left alone, too.

use syn::{Attribute, Item, ItemStruct, Meta, Visibility};

use super::types::Types;
use super::{Edit, Fields, Replacement, Source, separator};

/// Attributes that say nothing of fields.
const HARMLESS: [&str; 7] = [
    "allow",
    "cfg",
    "deprecated",
    "doc",
    "expect",
    "must_use",
    "non_exhaustive",
];
/// Derives for which any order of fields will do; of `Debug` the text differs.
const DERIVES: [&str; 7] = [
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Eq",
    "PartialEq",
    "TreeNode",
];

/// The edit that gives a struct of the package this order.
pub(super) fn edit(sources: &[Source], types: &Types<'_>, order: &Fields) -> Option<Edit> {
    if sources.iter().any(Source::is_unsafe) {
        return None;
    }
    let declared = types.declared(&order.of)?;
    let (source, Item::Struct(item)) = (declared.source, declared.item) else {
        return None;
    };
    let is_fit = item.attrs.iter().all(is_harmless);
    let body = is_fit.then(|| body(source, item, order))??;
    let start = start(source, item);
    let text = format!("#[repr(C)]{}", separator(source, start));
    let range = start..start;
    Some(Edit {
        names: vec![order.of.clone()],
        path: source.path.clone(),
        replacements: vec![Replacement { range, text }, body],
        probes: Vec::new(),
        needs: None,
        site: None,
    })
}

/// Where a struct begins behind its attributes.
pub(super) fn start(source: &Source, item: &ItemStruct) -> usize {
    match &item.vis {
        Visibility::Inherited => source.range(&item.struct_token).start,
        vis => source.range(vis).start,
    }
}

/// Whether an attribute does not depend on what the fields are.
pub(super) fn is_harmless(attribute: &Attribute) -> bool {
    let path = attribute.path();
    if path.is_ident("derive")
        && let Meta::List(list) = &attribute.meta
    {
        let words = list.tokens.to_string();
        let names = words
            .split(',')
            .map(|it| it.rsplit("::").next().unwrap_or(it));
        let mut names = names.map(str::trim).filter(|name| !name.is_empty());
        return names.all(|name| DERIVES.contains(&name));
    }
    HARMLESS.iter().any(|name| path.is_ident(name))
}

/// What stands between the braces, each field with its comments; `None` if its fields are others,
/// or in this order.
fn body(source: &Source, item: &ItemStruct, order: &Fields) -> Option<Replacement> {
    let syn::Fields::Named(fields) = &item.fields else {
        return None;
    };
    let start = source.bytes(fields.brace_token.span.open()).end;
    let (mut at, mut parts) = (start, Vec::new());
    for pair in fields.named.pairs() {
        let (field, comma) = (pair.value(), pair.punct());
        let name = field.ident.as_ref()?.to_string();
        let end = source.range(*field).end;
        let next = comma.map_or(end, |comma| source.range(comma).end);
        let line = source.text[next..].split('\n').next().unwrap_or_default();
        let is_comment = line.trim_start().starts_with("//");
        let whole = next + if is_comment { line.trim_end().len() } else { 0 };
        parts.push((name, at..end, next..whole));
        at = whole;
    }
    let is_ended = fields.named.trailing_punct();
    let old = parts.iter().map(|(name, _, _)| name);
    if parts.len() != order.fields.len() || old.eq(&order.fields) {
        return None;
    }
    let mut text = String::new();
    for (number, name) in (1..).zip(&order.fields) {
        let (_, field, comment) = parts.iter().find(|(it, _, _)| it == name)?;
        text.push_str(&source.text[field.clone()]);
        if is_ended || number < parts.len() {
            text.push(',');
        }
        text.push_str(&source.text[comment.clone()]);
    }
    let range = start..at;
    Some(Replacement { range, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, fields: &str) -> Option<String> {
        let sources = [Source::parse("src/a.rs".into(), text.to_owned()).unwrap()];
        let order = Fields {
            of: "Node".to_owned(),
            fields: fields.split(' ').map(str::to_owned).collect(),
        };
        Some(edit(&sources, &Types::of(&sources), &order)?.apply(text))
    }

    #[test]
    fn fields_move_with_their_comments() {
        let text = "mod a {
    /// Of a tree.
    #[derive(Clone, Debug)]
    pub(super) struct Node<T> {
        /// As text.
        name: [u8; 24], // cold
        // What a search reads.
        pub key: T,

        next: Option<Box<Node<T>>>,
    }
}
";
        let expected = "mod a {
    /// Of a tree.
    #[derive(Clone, Debug)]
    #[repr(C)]
    pub(super) struct Node<T> {
        // What a search reads.
        pub key: T,

        next: Option<Box<Node<T>>>,
        /// As text.
        name: [u8; 24], // cold
    }
}
";
        assert_eq!(edited(text, "key next name").as_deref(), Some(expected));
        let expected = "#[repr(C)]\nstruct Node { b: u8, a: u8 }";
        let text = "struct Node { a: u8, b: u8 }";
        assert_eq!(edited(text, "b a").as_deref(), Some(expected));
    }

    #[test]
    fn other_structs_stay() {
        for text in [
            "#[repr(C)] struct Node { a: u8, b: u8 }",
            "#[derive(PartialEq, PartialOrd)] struct Node { a: u8, b: u8 }",
            "#[derive(serde::Serialize)] struct Node { a: u8, b: u8 }",
            "#[ccmorph::field_order(size = 2)] struct Node { a: u8, b: u8 }",
            "struct Node { b: u8, a: u8 }",
            "struct Node { a: u8, c: u8 }",
            "struct Node { a: u8, b: u8, c: u8 }",
            "struct Node(u8, u8);",
            "struct Other { a: u8, b: u8 }",
            "struct Node { a: u8, b: u8 }\nfn f() { unsafe {} }",
        ] {
            assert_eq!(edited(text, "b a"), None, "{text}");
        }
    }
}
