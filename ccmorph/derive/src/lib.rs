//! The derive macro of `ccmorph`; use it from there.
//!
//! What it makes of a struct:
//!
//! ```text
//! impl TreeNode for Node {
//!     fn children<'n>(&'n mut self, visit: &mut Visit<'_, 'n, Self>) {
//!         match self {
//!             Self { left: link_0, right: link_1, .. } => { visit(link_0); visit(link_1); }
//!         }
//!     }
//! }
//! ```
//!
//! An enum has one such arm for each variant. Everything that is generated for a field carries the span of its type,
//! so that the compiler's complaint about a field without links points there.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, Ident, Lifetime, Meta, Result, parse_macro_input,
};

/// Implements `ccmorph::TreeNode` from the fields marked `#[child]`; documented at its re-export `ccmorph::TreeNode`.
#[proc_macro_derive(TreeNode, attributes(child))]
pub fn derive_tree_node(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tree_node(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn tree_node(input: &DeriveInput) -> Result<TokenStream> {
    let mut errors = Errors::default();
    errors.forbid_child(&input.attrs, "a type");
    let mut children = 0;
    let arms: Vec<TokenStream> = match &input.data {
        Data::Struct(data) => vec![arm(&quote!(Self), &data.fields, &mut children, &mut errors)],
        Data::Enum(data) => data
            .variants
            .iter()
            .map(|variant| {
                errors.forbid_child(&variant.attrs, "a variant");
                let name = &variant.ident;
                arm(
                    &quote!(Self::#name),
                    &variant.fields,
                    &mut children,
                    &mut errors,
                )
            })
            .collect(),
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "`TreeNode` cannot be derived for a union: which of its fields holds links is not known",
            ));
        }
    };
    if children == 0 {
        errors.push(Error::new(
            input.ident.span(),
            "no field is marked `#[child]`: mark those that own child nodes, such as `Option<Box<Self>>`",
        ));
    }
    errors.finish()?;

    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let lifetime = Lifetime::new("'__node", Span::mixed_site());
    let visit = Ident::new("visit", Span::mixed_site());
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ccmorph::TreeNode for #name #type_generics #where_clause {
            fn children<#lifetime>(
                &#lifetime mut self,
                #visit: &mut ::ccmorph::Visit<'_, #lifetime, Self>,
            ) {
                match self {
                    #(#arms)*
                }
            }
        }
    })
}

/// The arm of a struct or a variant: binds the marked fields, and shows them.
fn arm(
    path: &TokenStream,
    fields: &Fields,
    children: &mut usize,
    errors: &mut Errors,
) -> TokenStream {
    let (mut patterns, mut visits) = (Vec::new(), Vec::new());
    for (member, field) in fields.members().zip(fields) {
        if !errors.is_child(&field.attrs) {
            continue;
        }
        // `member` may be a position: these work as names in braces, so tuples need no case of their own.
        // Complaints point at the field's type, but names are resolved as the macro's own.
        let at_type = Span::mixed_site().located_at(field.ty.span());
        let link = format_ident!("link_{}", visits.len(), span = at_type);
        patterns.push(quote!(#member: #link,));
        visits.push(quote_spanned!(at_type=> visit(#link);));
        *children += 1;
    }
    quote!(#path { #(#patterns)* .. } => { #(#visits)* })
}

/// Complaints so far; all are reported at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Whether `#[child]` is among a field's attributes; complains where it is there twice or has arguments.
    fn is_child(&mut self, attributes: &[Attribute]) -> bool {
        let mut found = false;
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("child"))
        {
            if !matches!(attribute.meta, Meta::Path(_)) {
                self.push(Error::new_spanned(
                    &attribute.meta,
                    "`#[child]` takes no arguments",
                ));
            } else if found {
                self.push(Error::new_spanned(
                    attribute,
                    "the field is marked `#[child]` already",
                ));
            }
            found = true;
        }
        found
    }

    fn forbid_child(&mut self, attributes: &[Attribute], place: &str) {
        for attribute in attributes
            .iter()
            .filter(|attribute| attribute.path().is_ident("child"))
        {
            self.push(Error::new_spanned(
                attribute,
                format!("`#[child]` marks a field, not {place}"),
            ));
        }
    }

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
