//! The macros of `ccmorph`; use them from there, where they are documented.

mod field_order;
mod split;
mod tree_node;

use proc_macro::TokenStream;
use proc_macro2::{Ident, Span};
use quote::{IdentFragment, format_ident};
use syn::parse::Parse;
use syn::{Data, DeriveInput, Error, Fields, Result, parse_macro_input};

/// Implements `ccmorph::TreeNode` from the fields marked `#[child]`, `#[parent]` and `#[pointer]`;
/// documented at its re-export `ccmorph::TreeNode`.
#[proc_macro_derive(TreeNode, attributes(child, parent, pointer))]
pub fn derive_tree_node(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tree_node::tree_node(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// Moves the cold fields of a struct behind a link; documented at its re-export `ccmorph::split`.
#[proc_macro_attribute]
pub fn split(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments, item, split::split)
}

/// Pins the order of a struct's fields; documented at its re-export `ccmorph::field_order`.
#[proc_macro_attribute]
pub fn field_order(arguments: TokenStream, item: TokenStream) -> TokenStream {
    attribute(arguments, item, field_order::field_order)
}

/// What an attribute makes of its arguments and of what it stands on.
fn attribute<A: Parse>(
    arguments: TokenStream,
    item: TokenStream,
    expand: fn(&A, &DeriveInput) -> Result<proc_macro2::TokenStream>,
) -> TokenStream {
    let arguments = parse_macro_input!(arguments as A);
    let item = parse_macro_input!(item as DeriveInput);
    expand(&arguments, &item)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

/// A name that no item of the user has.
fn own_name(name: impl IdentFragment, span: Span) -> Ident {
    format_ident!("__ccmorph_{}", name, span = span)
}

fn fields_of(item: &DeriveInput) -> Result<&Fields> {
    match &item.data {
        Data::Struct(data) => Ok(&data.fields),
        _ => Err(Error::new(item.ident.span(), "this is for structs")),
    }
}

#[cfg(test)]
mod tests;
