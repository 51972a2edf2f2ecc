//! `#[derive(TreeNode)]`. What it generates for a struct:
//!
//! ```text
//! impl TreeNode for Node {
//!     type Link = Box<Node>;
//!     fn children<'n>(&'n mut self, visit: &mut Visit<'_, 'n, Self::Link>) {
//!         match self {
//!             Self { left: field_0, up: field_1, .. } => {
//!                 visit(child(field_0).links());
//!                 visit(child(field_1).pointers());
//!             }
//!         }
//!     }
//! }
//! ```
//!
//! and an `impl AnyLinks` with `child(field_0).show(visitor)` and `visitor.pointers(field_1)`.
//!
//! A macro does not know the field's type: `links` is the inherent method of `Child`, which returns
//! the field, where the field implements `Links` for links of the type `Self::Link`; else that of a
//! trait, which returns `any(field)`. `show` distinguishes `AnyLinks` from `Links` in the same way.
//! Where a field names the type with an allocator, as in `Box<Node, &Heap>`, `Link` is `<Field as
//! Links>::Link`, and there is no `AnyLinks`, which is for plain boxes.
//!
//! All names begin with `__ccmorph_`, as hygiene does not separate them from lifetimes, constants
//! and statics. Tokens for a field have the span of its type, so that errors point there.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Lifetime, Meta, Result, Type, parse_quote};

use crate::own_name;

pub(crate) fn tree_node(input: &DeriveInput) -> Result<TokenStream> {
    let mut found = Found {
        owner: input.ident.to_string(),
        ..Found::default()
    };
    found.forbid_marks(&input.attrs, "a type");
    match &input.data {
        Data::Struct(data) => found.arm(quote!(Self), &data.fields),
        Data::Enum(data) => {
            for variant in &data.variants {
                found.forbid_marks(&variant.attrs, "a variant");
                let name = &variant.ident;
                found.arm(quote!(Self::#name), &variant.fields);
            }
        }
        Data::Union(data) => {
            let message = "`TreeNode` cannot be derived for a union: it is not known which field \
                           holds links";
            return Err(Error::new(data.union_token.span, message));
        }
    }
    if !found.has_children {
        found.push(Error::new(
            input.ident.span(),
            "no field is marked `#[child]`: mark those that own child nodes, such as \
             `Option<Box<Self>>`; for a node without children `impl ccmorph::AnyLinks for` it",
        ));
    }
    let Found {
        links,
        visits,
        shows,
        error,
        ..
    } = found;
    error.map_or(Ok(()), Err)?;

    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let lifetime = Lifetime::new("'__ccmorph_node", Span::mixed_site());
    let visit = own_name("visit", Span::mixed_site());
    let (link, show) = if let Some(links) = links {
        let at_type = Span::mixed_site().located_at(links.span());
        (
            quote_spanned!(at_type=> <#links as ::ccmorph::Links>::Link),
            None,
        )
    } else {
        let visitor = own_name("visitor", Span::mixed_site());
        // The trait requires it; whether it holds depends on the parameters.
        let mut generics = input.generics.clone();
        if generics.type_params().next().is_some() {
            let unpin = parse_quote!(Self: ::core::marker::Unpin);
            generics.make_where_clause().predicates.push(unpin);
        }
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        let show = quote! {
            #[automatically_derived]
            impl #impl_generics ::ccmorph::AnyLinks for #name #type_generics #where_clause {
                #[allow(unused_imports)]
                fn show_any<#lifetime>(
                    &#lifetime mut self,
                    #visitor: &mut ::ccmorph::AnyVisitor<'_, #lifetime>,
                ) {
                    use ::ccmorph::__derive::OrLinks as _;
                    match self {
                        #shows
                    }
                }
            }
        };
        (quote!(::ccmorph::__derive::Box<Self>), Some(show))
    };
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics ::ccmorph::TreeNode for #name #type_generics #where_clause {
            type Link = #link;

            #[allow(unused_imports)]
            fn children<#lifetime>(
                &#lifetime mut self,
                // Not `Self::Link`, which may be a variant.
                #visit: &mut ::ccmorph::Visit<'_, #lifetime, <Self as ::ccmorph::TreeNode>::Link>,
            ) {
                use ::ccmorph::__derive::OrAny as _;
                match self {
                    #visits
                }
            }
        }

        #show
    })
}

/// The mark of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// `#[child]`: links.
    Child,
    /// `#[child(each)]`: something that iterates over links.
    EachChild,
    /// `#[parent]` or `#[pointer]`: pointers that own nothing.
    Pointer,
}

/// What the fields are so far.
#[derive(Default)]
struct Found {
    /// The name of the type.
    owner: String,
    has_children: bool,
    /// The type of the first field with links that names the owner with an allocator.
    links: Option<Type>,
    /// Arms that show the marked fields to `Visit` and to `AnyVisitor`.
    visits: TokenStream,
    shows: TokenStream,
    /// All errors; they are reported at once.
    error: Option<Error>,
}

impl Found {
    /// Adds the arm of a struct or a variant.
    fn arm(&mut self, path: TokenStream, fields: &Fields) {
        let (mut patterns, mut visits, mut shows) = (Vec::new(), Vec::new(), Vec::new());
        for (member, field) in fields.members().zip(fields) {
            let Some(mark) = self.mark(&field.attrs) else {
                continue;
            };
            // `member` may be a position, which works as a name in braces. Errors point at the
            // field's type, but names are resolved as the macro's own.
            let at_type = Span::mixed_site().located_at(field.ty.span());
            let binding = own_name(format!("field_{}", visits.len()), at_type);
            let (visit, visitor) = (own_name("visit", at_type), own_name("visitor", at_type));
            patterns.push(quote!(#member: #binding,));
            let link = own_name("link", at_type);
            let what = if mark == Mark::EachChild {
                &link
            } else {
                &binding
            };
            let child = quote_spanned!(at_type=> ::ccmorph::__derive::child);
            let visited = quote_spanned!(at_type=>
                #child::<_, <Self as ::ccmorph::TreeNode>::Link>(#what));
            let (visited, shown) = match mark {
                Mark::Child | Mark::EachChild => (
                    quote_spanned!(at_type=> #visit(#visited.links());),
                    quote_spanned!(at_type=> #child::<_, ()>(#what).show(#visitor);),
                ),
                Mark::Pointer => (
                    quote_spanned!(at_type=> #visit(#visited.pointers());),
                    quote_spanned!(at_type=> #visitor.pointers(#what);),
                ),
            };
            let each = |body| match mark {
                Mark::EachChild => {
                    quote_spanned!(at_type=> for #link in #binding.iter_mut() { #body })
                }
                _ => body,
            };
            visits.push(each(visited));
            shows.push(each(shown));
            if mark != Mark::Pointer {
                self.has_children = true;
                let type_tokens = field.ty.to_token_stream();
                if self.links.is_none() && names_allocator(type_tokens, &self.owner) {
                    self.links = Some(field.ty.clone());
                }
            }
        }
        (self.visits).extend(quote!(#path { #(#patterns)* .. } => { #(#visits)* }));
        (self.shows).extend(quote!(#path { #(#patterns)* .. } => { #(#shows)* }));
    }

    fn push(&mut self, error: Error) {
        match &mut self.error {
            Some(all) => all.combine(error),
            None => self.error = Some(error),
        }
    }

    /// The mark of a field. It is an error to mark it twice or with other arguments.
    fn mark(&mut self, attributes: &[Attribute]) -> Option<Mark> {
        let mut found = None;
        for attribute in attributes.iter().filter(|attribute| is_mark(attribute)) {
            let is_child = attribute.path().is_ident("child");
            let mark = match &attribute.meta {
                Meta::Path(_) if is_child => Mark::Child,
                Meta::Path(_) => Mark::Pointer,
                Meta::List(list) if is_child && list.tokens.to_string() == "each" => {
                    Mark::EachChild
                }
                other => {
                    let message = if is_child {
                        "`#[child]` takes no argument but `each`, for collections"
                    } else {
                        "`#[parent]` and `#[pointer]` take no arguments"
                    };
                    self.push(Error::new_spanned(other, message));
                    Mark::Pointer
                }
            };
            if found.replace(mark).is_some() {
                self.push(Error::new_spanned(
                    attribute,
                    "the field is marked already: a pointer owns a child or points back, not both",
                ));
            }
        }
        found
    }

    fn forbid_marks(&mut self, attributes: &[Attribute], place: &str) {
        for attribute in attributes.iter().filter(|attribute| is_mark(attribute)) {
            self.push(Error::new_spanned(
                attribute,
                format!("`#[child]`, `#[parent]` and `#[pointer]` mark fields, not {place}"),
            ));
        }
    }
}

/// Whether a type has the owner's name, or `Self`, for its first argument of several, as in
/// `Box<Node<'h>, &'h Heap>`.
fn names_allocator(ty: TokenStream, owner: &str) -> bool {
    let mut depth = None;
    for token in ty {
        match token {
            TokenTree::Group(group) if names_allocator(group.stream(), owner) => return true,
            TokenTree::Ident(name) if name == owner || name == "Self" => depth = Some(0),
            TokenTree::Punct(mark) => match (mark.as_char(), depth) {
                ('<', Some(open)) => depth = Some(open + 1),
                ('>', Some(open)) => depth = (open > 0).then(|| open - 1),
                (',', Some(0)) => return true,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

fn is_mark(attribute: &Attribute) -> bool {
    ["child", "parent", "pointer"]
        .iter()
        .any(|name| attribute.path().is_ident(name))
}
