//! The derive macro of `ccmorph`; use it from there.
//!
//! What it generates for a struct:
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
//!
//! Where a field names the type with an allocator, as in `Box<Node, &Heap>`, `Link` is `<Field as
//! Links>::Link`, and there is no `AnyLinks`, which is for plain boxes.
//!
//! All of these names begin with `__ccmorph_`, as hygiene does not separate them from lifetimes,
//! constants and statics. The tokens generated for a field have the span of its type, so that the
//! compiler's error about a field without links points there.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{IdentFragment, ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Attribute, Data, DeriveInput, Error, Fields, Ident, Lifetime, Meta, Result, Type,
    parse_macro_input, parse_quote,
};

/// Implements `ccmorph::TreeNode` from the fields marked `#[child]`, `#[parent]` and `#[pointer]`;
/// documented at its re-export `ccmorph::TreeNode`.
#[proc_macro_derive(TreeNode, attributes(child, parent, pointer))]
pub fn derive_tree_node(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tree_node(&input)
        .unwrap_or_else(Error::into_compile_error)
        .into()
}

fn tree_node(input: &DeriveInput) -> Result<TokenStream> {
    let mut errors = Errors::default();
    errors.forbid_marks(&input.attrs, "a type");
    let mut children = Children {
        owner: input.ident.to_string(),
        count: 0,
        links: None,
    };
    let mut arm = |path, fields| arm(path, fields, &mut children, &mut errors);
    let arms: Vec<Arm> = match &input.data {
        Data::Struct(data) => vec![arm(quote!(Self), &data.fields)],
        Data::Enum(data) => (data.variants.iter())
            .map(|variant| {
                let name = &variant.ident;
                arm(quote!(Self::#name), &variant.fields)
            })
            .collect(),
        Data::Union(data) => {
            let message = "`TreeNode` cannot be derived for a union: it is not known which field \
                           holds links";
            return Err(Error::new(data.union_token.span, message));
        }
    };
    if let Data::Enum(data) = &input.data {
        for variant in &data.variants {
            errors.forbid_marks(&variant.attrs, "a variant");
        }
    }
    if children.count == 0 {
        errors.push(Error::new(
            input.ident.span(),
            "no field is marked `#[child]`: mark those that own child nodes, such as \
             `Option<Box<Self>>`; for a node without children `impl ccmorph::AnyLinks for` it",
        ));
    }
    errors.finish()?;

    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let lifetime = Lifetime::new("'__ccmorph_node", Span::mixed_site());
    let visit = own_name("visit", Span::mixed_site());
    let (link, show) = match children.links {
        Some(links) => {
            let at_type = Span::mixed_site().located_at(links.span());
            let link = quote_spanned!(at_type=> <#links as ::ccmorph::Links>::Link);
            (link, None)
        }
        None => {
            let visitor = own_name("visitor", Span::mixed_site());
            // The trait requires it; whether it holds depends on the parameters.
            let mut generics = input.generics.clone();
            if generics.type_params().next().is_some() {
                let unpin = parse_quote!(Self: ::core::marker::Unpin);
                generics.make_where_clause().predicates.push(unpin);
            }
            let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
            let arms = arms.iter().map(|arm| arm.to_tokens(&arm.shows));
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
                            #(#arms)*
                        }
                    }
                }
            };
            (quote!(::std::boxed::Box<Self>), Some(show))
        }
    };
    let arms = arms.iter().map(|arm| arm.to_tokens(&arm.visits));
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
                    #(#arms)*
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

/// The fields with links so far.
struct Children {
    /// The name of the type that they belong to.
    owner: String,
    count: usize,
    /// The type of the first that names the owner with an allocator.
    links: Option<Type>,
}

/// A struct or a variant: its path, a pattern for each marked field, and what shows them to `Visit`
/// and to `AnyVisitor`.
struct Arm {
    path: TokenStream,
    patterns: Vec<TokenStream>,
    visits: Vec<TokenStream>,
    shows: Vec<TokenStream>,
}

impl Arm {
    fn to_tokens(&self, body: &[TokenStream]) -> TokenStream {
        let Arm { path, patterns, .. } = self;
        quote!(#path { #(#patterns)* .. } => { #(#body)* })
    }
}

/// The arm of a struct or a variant.
fn arm(path: TokenStream, fields: &Fields, children: &mut Children, errors: &mut Errors) -> Arm {
    let (mut patterns, mut visits, mut shows) = (Vec::new(), Vec::new(), Vec::new());
    for (member, field) in fields.members().zip(fields) {
        let Some(mark) = errors.mark(&field.attrs) else {
            continue;
        };
        // `member` may be a position, which works as a name in braces. Errors point at the field's
        // type, but names are resolved as the macro's own.
        let at_type = Span::mixed_site().located_at(field.ty.span());
        let binding = own_name(format!("field_{}", visits.len()), at_type);
        let (visit, visitor) = (own_name("visit", at_type), own_name("visitor", at_type));
        patterns.push(quote!(#member: #binding,));
        let link = own_name("link", at_type);
        let child = quote_spanned!(at_type=> ::ccmorph::__derive::child);
        let (visited, shown) = match mark {
            Mark::Child | Mark::EachChild => {
                let what = if mark == Mark::Child { &binding } else { &link };
                (
                    quote_spanned!(at_type=>
                        #visit(#child::<_, <Self as ::ccmorph::TreeNode>::Link>(#what).links());),
                    quote_spanned!(at_type=> #child::<_, ()>(#what).show(#visitor);),
                )
            }
            Mark::Pointer => (
                quote_spanned!(at_type=>
                    #visit(#child::<_, <Self as ::ccmorph::TreeNode>::Link>(#binding).pointers());),
                quote_spanned!(at_type=> #visitor.pointers(#binding);),
            ),
        };
        let each = |body| match mark {
            Mark::EachChild => quote_spanned!(at_type=> for #link in #binding.iter_mut() { #body }),
            _ => body,
        };
        visits.push(each(visited));
        shows.push(each(shown));
        if mark != Mark::Pointer {
            children.count += 1;
            if children.links.is_none()
                && names_allocator(field.ty.to_token_stream(), &children.owner)
            {
                children.links = Some(field.ty.clone());
            }
        }
    }
    Arm {
        path,
        patterns,
        visits,
        shows,
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

/// A name that no item of the user has.
fn own_name(name: impl IdentFragment, span: Span) -> Ident {
    format_ident!("__ccmorph_{}", name, span = span)
}

/// The errors so far; all are reported at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
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
                    let message = match is_child {
                        true => "`#[child]` takes no argument but `each`, for collections",
                        false => "`#[parent]` and `#[pointer]` take no arguments",
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

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

fn is_mark(attribute: &Attribute) -> bool {
    ["child", "parent", "pointer"]
        .iter()
        .any(|name| attribute.path().is_ident(name))
}
