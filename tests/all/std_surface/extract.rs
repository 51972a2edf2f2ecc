//! The list, from the standard library's source.
//!
//! What is left out: whatever is marked unstable, or belongs to a type that is; private items;
//! `Drop`, whose contract with the borrow checker (`may_dangle`) no bound can ask for (`ctree`'s
//! tests do); and the parts of the language that are no method of anybody's, the auto traits
//! (`ctree`'s tests compare them).

use std::collections::HashMap;
use std::path::Path;

use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{Attribute, ImplItem, Item as Syntax, ItemImpl, Meta, Type, Visibility};

use super::item::Item;

/// The files with the public types, and the module of each.
const FILES: [(&str, &str); 4] = [
    ("map.rs", "map"),
    ("map/entry.rs", "map"),
    ("set.rs", "set"),
    ("set/entry.rs", "set"),
];

/// All items, in the order of the source.
pub(super) fn items(source: &Path) -> Vec<Item> {
    let files = FILES.map(|(name, module)| {
        let path = source.join(name);
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let file = syn::parse_file(&text).expect("the standard library's source");
        (module, text, file)
    });
    let mut stable = HashMap::new();
    for (module, _, file) in &files {
        for syntax in &file.items {
            if let Some((name, since)) = stable_type(syntax) {
                stable.insert((*module, name), since);
            }
        }
    }
    let mut items = Vec::new();
    for (module, text, file) in &files {
        for syntax in &file.items {
            match syntax {
                Syntax::Impl(block) => {
                    let owner = owner(&block.self_ty);
                    if let Some(since) = stable.get(&(*module, owner.clone()))
                        && !is_unstable(&block.attrs)
                    {
                        add_impl(&mut items, module, text, block, &owner, since);
                    }
                }
                Syntax::Struct(block) if stable_type(syntax).is_some() => {
                    add_derived(&mut items, module, block);
                }
                _ => {}
            }
        }
    }
    items
}

/// Name and version of a type that is public and stable.
fn stable_type(syntax: &Syntax) -> Option<(String, String)> {
    let (attributes, visibility, name) = match syntax {
        Syntax::Struct(item) => (&item.attrs, &item.vis, &item.ident),
        Syntax::Enum(item) => (&item.attrs, &item.vis, &item.ident),
        _ => return None,
    };
    let public = matches!(visibility, Visibility::Public(_));
    let since = since(attributes, "stable")?;
    public.then(|| (name.to_string(), since))
}

/// The value of `since` in the attribute of this name.
fn since(attributes: &[Attribute], name: &str) -> Option<String> {
    let attribute = attributes
        .iter()
        .find(|attribute| attribute.path().is_ident(name))?;
    let Meta::List(list) = &attribute.meta else {
        return None;
    };
    let tokens = list.tokens.to_string();
    let value = tokens.split_once("since = \"")?.1;
    value.split_once('"').map(|(since, _)| since.to_owned())
}

fn is_unstable(attributes: &[Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.path().is_ident("unstable"))
}

/// The name of the type that an `impl` is for, through references.
fn owner(ty: &Type) -> String {
    match ty {
        Type::Reference(reference) => owner(&reference.elem),
        Type::Path(path) => path
            .path
            .segments
            .last()
            .map_or_else(String::new, |segment| segment.ident.to_string()),
        _ => String::new(),
    }
}

/// A piece of the source on one line.
fn collapse(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    // What was broken over lines: no blanks inside parentheses and angles, no comma before their
    // end.
    words
        .join(" ")
        .replace("( ", "(")
        .replace(", )", ")")
        .replace("< ", "<")
        .replace(", >", ">")
}

fn add_impl(
    items: &mut Vec<Item>,
    module: &str,
    text: &str,
    block: &ItemImpl,
    owner: &str,
    owner_since: &str,
) {
    let start = block.impl_token.span.byte_range().start;
    let end = block.brace_token.span.open().byte_range().start;
    let header = collapse(&text[start..end]).trim_end_matches(',').to_owned();
    let item = |since: String, body: String| Item {
        module: module.to_owned(),
        owner: owner.to_owned(),
        since,
        header: header.clone(),
        body,
    };
    if let Some((path, _)) = &block.trait_ {
        if path.is_ident("Drop") {
            return;
        }
        let types = block.items.iter().filter_map(|syntax| match syntax {
            ImplItem::Type(associated) => {
                let ty = &text[associated.ty.span().byte_range()];
                Some(format!("{} = {}", associated.ident, collapse(ty)))
            }
            _ => None,
        });
        let body = types.collect::<Vec<_>>().join(", ");
        let since = since(&block.attrs, "stable").unwrap_or_else(|| owner_since.to_owned());
        items.push(item(since, body));
        return;
    }
    for syntax in &block.items {
        let ImplItem::Fn(method) = syntax else {
            continue;
        };
        let Some(since_version) = since(&method.attrs, "stable") else {
            continue;
        };
        if !matches!(method.vis, Visibility::Public(_)) {
            continue;
        }
        let start = method.sig.fn_token.span.byte_range().start;
        let end = method.block.brace_token.span.open().byte_range().start;
        // Which arguments are mutable is a matter of the body.
        let signature = collapse(&text[start..end])
            .replace("(mut ", "(")
            .replace(", mut ", ", ");
        let constant = since(&method.attrs, "rustc_const_stable").is_some();
        items.push(item(
            since_version,
            format!(
                "{}{}",
                if constant { "const " } else { "" },
                signature.trim_end_matches(',')
            ),
        ));
    }
}

/// The traits that a type derives, written out as the compiler does.
fn add_derived(items: &mut Vec<Item>, module: &str, block: &syn::ItemStruct) {
    let derives = block
        .attrs
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"));
    for derive in derives {
        let Meta::List(list) = &derive.meta else {
            continue;
        };
        for name in list.tokens.to_string().split(',') {
            let name = name.trim();
            let mut generics = block.generics.clone();
            let mut arguments = Vec::new();
            for parameter in &mut generics.params {
                match parameter {
                    syn::GenericParam::Lifetime(lifetime) => {
                        arguments.push(lifetime.lifetime.to_token_stream().to_string());
                    }
                    syn::GenericParam::Type(parameter) => {
                        parameter.attrs.clear();
                        parameter.default = None;
                        parameter
                            .bounds
                            .push(syn::parse_str(name).expect("a trait's name"));
                        arguments.push(parameter.ident.to_string());
                    }
                    syn::GenericParam::Const(parameter) => {
                        arguments.push(parameter.ident.to_string());
                    }
                }
            }
            let parameters = super::item::tidy(&generics.params.to_token_stream());
            items.push(Item {
                module: module.to_owned(),
                owner: block.ident.to_string(),
                since: since(&block.attrs, "stable").unwrap_or_default(),
                header: format!(
                    "impl<{parameters}> {name} for {}<{}>",
                    block.ident,
                    arguments.join(", ")
                ),
                body: String::new(),
            });
        }
    }
}
