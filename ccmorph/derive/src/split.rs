//! `#[split(cold(name))] struct Node<K> { key: K, name: String }` becomes
//!
//! ```text
//! struct Node<K> { key: K, cold: Box<NodeCold> }
//! struct NodeCold { name: String }
//! struct NodeFields<K> { key: K, name: String }
//! impl<K> From<NodeFields<K>> for Node<K> { .. }
//! impl<K> Node<K> {
//!     fn name(&self) -> &String { .. }
//!     fn name_mut(&mut self) -> &mut String { .. }
//! }
//! const _: () = assert!(size_of::<NodeCold>() > size_of::<Box<NodeCold>>()); // without parameters
//! ```
//!
//! With `cold = "table"` the link is a `ColdIndex`, `NodeFields::split_into` takes the place of
//! `From`, and accessors take the table. Conditions (`#[cfg]`) go wherever their field goes.

use std::collections::HashSet;

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, DeriveInput, Error, Field, Fields, GenericParam, Generics, LitStr, Meta, Path,
    Result, Token, Visibility, parenthesized, parse_quote,
};

use crate::{fields_of, own_name};

/// Derives that mean the hot struct alone: its fields are the links of the tree.
const HOT_DERIVES: [&str; 1] = ["TreeNode"];
/// Derives that would take a number in a table for the value behind it.
const VALUE_DERIVES: [&str; 8] = [
    "Clone",
    "Copy",
    "Default",
    "Eq",
    "Hash",
    "Ord",
    "PartialEq",
    "PartialOrd",
];
/// Attributes of the hot struct that the cold one does not repeat.
const HOT_ATTRIBUTES: [&str; 6] = ["deprecated", "derive", "doc", "expect", "must_use", "repr"];

/// What stands in the parentheses of `#[split(..)]`.
pub(crate) struct Arguments {
    cold: Vec<Ident>,
    is_table: bool,
    has_accessors: bool,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Arguments> {
        let mut arguments = Arguments {
            cold: Vec::new(),
            is_table: false,
            has_accessors: true,
        };
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name == "cold" && input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                let kind: LitStr = input.parse()?;
                arguments.is_table = match &*kind.value() {
                    "box" => false,
                    "table" => true,
                    _ => {
                        return Err(Error::new(
                            kind.span(),
                            "a link is a \"box\" or a \"table\"",
                        ));
                    }
                };
            } else if name == "cold" {
                let names;
                parenthesized!(names in input);
                let names = Punctuated::<Ident, Token![,]>::parse_terminated_with(
                    &names,
                    syn::ext::IdentExt::parse_any,
                )?;
                arguments.cold.extend(names);
            } else if name == "no_accessors" {
                arguments.has_accessors = false;
            } else {
                let message = "write `cold(FIELD, ..)`, `cold = \"table\"` or `no_accessors`";
                return Err(Error::new(name.span(), message));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if arguments.cold.is_empty() {
            let message = "name the fields that are rarely used: `#[split(cold(FIELD, ..))]`";
            return Err(Error::new(Span::call_site(), message));
        }
        Ok(arguments)
    }
}

impl Arguments {
    fn is_cold(&self, field: &Field) -> bool {
        let name = field.ident.as_ref();
        name.is_some_and(|name| self.cold.contains(name))
    }
}

pub(crate) fn split(arguments: &Arguments, item: &DeriveInput) -> Result<TokenStream> {
    let split = Split::new(arguments, item)?;
    let structs = split.structs()?;
    let construction = split.construction();
    let accessors = arguments.has_accessors.then(|| split.accessors());
    let check = split.check();
    Ok(quote!(#structs #construction #accessors #check))
}

/// A struct that is to be split.
struct Split<'a> {
    arguments: &'a Arguments,
    item: &'a DeriveInput,
    all_fields: Vec<&'a Field>,
    cold_fields: Vec<&'a Field>,
    hot_fields: Vec<&'a Field>,
    /// The names of the structs.
    hot: &'a Ident,
    cold: Ident,
    whole: Ident,
    cold_generics: Generics,
}

impl<'a> Split<'a> {
    fn new(arguments: &'a Arguments, item: &'a DeriveInput) -> Result<Split<'a>> {
        let hot = &item.ident;
        let Fields::Named(fields) = fields_of(item)? else {
            let message = "only a struct with named fields can be split";
            return Err(Error::new(hot.span(), message));
        };
        let all_fields: Vec<&Field> = fields.named.iter().collect();
        let name = |field: &&Field| field.ident.clone();
        for (i, cold) in arguments.cold.iter().enumerate() {
            if arguments.cold[..i].contains(cold) {
                return Err(Error::new(cold.span(), "named twice"));
            }
            if !all_fields.iter().filter_map(name).any(|name| name == *cold) {
                let message = format!("`{hot}` has no field of this name");
                return Err(Error::new(cold.span(), message));
            }
        }
        let is_cold = |field: &&Field| arguments.is_cold(field);
        let (cold_fields, hot_fields): (Vec<&Field>, Vec<&Field>) =
            all_fields.iter().copied().partition(is_cold);
        if hot_fields.is_empty() {
            let message = "all fields are cold: none is left that leads to them";
            return Err(Error::new(hot.span(), message));
        }
        if let Some(taken) = hot_fields
            .iter()
            .filter_map(name)
            .find(|name| name == "cold")
        {
            let message = "the link to the cold fields has this name: rename the field";
            return Err(Error::new(taken.span(), message));
        }
        for attribute in cold_fields.iter().flat_map(|field| &field.attrs) {
            if is_one_of(attribute.path(), &["child", "parent", "pointer"]) {
                let message = "a link of the tree cannot be cold: each walk reads it";
                return Err(Error::new_spanned(attribute, message));
            }
        }
        Ok(Split {
            arguments,
            item,
            cold_generics: generics_of(&item.generics, &cold_fields),
            all_fields,
            cold_fields,
            hot_fields,
            hot,
            cold: format_ident!("{hot}Cold"),
            whole: format_ident!("{hot}Fields"),
        })
    }

    fn cold_type(&self) -> TokenStream {
        let cold = &self.cold;
        let (_, generics, _) = self.cold_generics.split_for_impl();
        quote!(#cold #generics)
    }

    fn link(&self) -> TokenStream {
        let cold = self.cold_type();
        if self.arguments.is_table {
            quote!(::ccmorph::ColdIndex<#cold>)
        } else {
            quote!(::std::boxed::Box<#cold>)
        }
    }

    fn structs(&self) -> Result<TokenStream> {
        let Attributes {
            hot: on_hot,
            cold: on_cold,
        } = self.attributes()?;
        let Split {
            hot_fields,
            cold_fields,
            hot,
            cold,
            whole,
            ..
        } = self;
        let (vis, generics, where_clause) = (
            &self.item.vis,
            &self.item.generics,
            &self.item.generics.where_clause,
        );
        let (cold_generics, cold_where) = (&self.cold_generics, &self.cold_generics.where_clause);
        let link = self.link();
        // One who may use some cold fields only may not exchange all of them.
        let mut visibilities = cold_fields.iter().map(|field| &field.vis);
        let first = visibilities.next();
        let text = |vis: &Visibility| vis.to_token_stream().to_string();
        let link_vis = first.filter(|first| visibilities.all(|other| text(other) == text(first)));
        let all_fields = self.all_fields.iter().map(|field| {
            let (attributes, Field { vis, ident, ty, .. }) = (carried(field), field);
            quote!(#(#attributes)* #vis #ident: #ty)
        });
        let link_doc = match self.arguments.is_table {
            true => format!("The number of the [cold fields]({cold}) in their table."),
            false => format!("The [cold fields]({cold})."),
        };
        let cold_doc = format!("The fields of [`{hot}`] that are rarely used.");
        let whole_doc = format!("All fields of [`{hot}`], to make one.");
        Ok(quote! {
            #(#on_hot)*
            #vis struct #hot #generics #where_clause {
                #(#hot_fields,)*
                #[doc = #link_doc]
                #link_vis cold: #link,
            }

            #[doc = #cold_doc]
            #(#on_cold)*
            #vis struct #cold #cold_generics #cold_where {
                #(#cold_fields,)*
            }

            #[doc = #whole_doc]
            #[allow(dead_code)]
            #vis struct #whole #generics #where_clause {
                #(#all_fields,)*
            }
        })
    }

    /// What makes a hot struct and a cold one of all fields.
    fn construction(&self) -> TokenStream {
        let Split {
            hot, cold, whole, ..
        } = self;
        let (impl_generics, generics, where_clause) = self.item.generics.split_for_impl();
        let fields = own_name("fields", Span::mixed_site());
        let moved = |field: &&Field| {
            let (conditions, name) = (conditions(field), &field.ident);
            quote!(#(#conditions)* #name: #fields.#name)
        };
        let hot_moved = self.hot_fields.iter().map(moved);
        let cold_moved = self.cold_fields.iter().map(moved);
        let cold_value = quote!(#cold { #(#cold_moved,)* });
        if self.arguments.is_table {
            let (vis, cold_type) = (&self.item.vis, self.cold_type());
            let table = own_name("table", Span::mixed_site());
            return quote! {
                #[allow(dead_code)]
                impl #impl_generics #whole #generics #where_clause {
                    /// Puts the cold fields into the table.
                    ///
                    /// # Panics
                    /// If the table has 2³² entries.
                    #vis fn split_into(
                        self,
                        #table: &mut ::ccmorph::ColdTable<#cold_type>,
                    ) -> #hot #generics {
                        let #fields = self;
                        #hot {
                            cold: #table.insert(#cold_value),
                            #(#hot_moved,)*
                        }
                    }
                }
            };
        }
        quote! {
            #[automatically_derived]
            impl #impl_generics ::core::convert::From<#whole #generics> for #hot #generics
            #where_clause
            {
                fn from(#fields: #whole #generics) -> Self {
                    #hot {
                        cold: ::ccmorph::__derive::far_box(#cold_value),
                        #(#hot_moved,)*
                    }
                }
            }
        }
    }

    /// The methods that lend a cold field.
    fn accessors(&self) -> TokenStream {
        let hot = self.hot;
        let (impl_generics, generics, where_clause) = self.item.generics.split_for_impl();
        let accessors = self.cold_fields.iter().map(|field| self.accessor(field));
        quote! {
            #[allow(dead_code)]
            impl #impl_generics #hot #generics #where_clause {
                #(#accessors)*
            }
        }
    }

    fn accessor(&self, field: &Field) -> TokenStream {
        let Field { vis, ident, ty, .. } = field;
        let name = ident.as_ref().expect("only named fields are split");
        let at_name = Span::mixed_site().located_at(name.span());
        let name_mut = format_ident!("{name}_mut", span = name.span());
        let docs: Vec<&Attribute> = carried(field)
            .filter(|it| it.path().is_ident("doc"))
            .collect();
        let own_doc = format!("The cold field `{name}`.");
        let doc = docs.is_empty().then(|| quote!(#[doc = #own_doc]));
        let conditions: Vec<&Attribute> = conditions(field).collect();
        let (cold, table) = (self.cold_type(), own_name("table", at_name));
        let (read, write) = if self.arguments.is_table {
            (
                quote_spanned! {at_name=>
                    fn #name<'__ccmorph_table>(
                        &self,
                        #table: &'__ccmorph_table ::ccmorph::ColdTable<#cold>,
                    ) -> &'__ccmorph_table #ty {
                        &#table[&self.cold].#name
                    }
                },
                quote_spanned! {at_name=>
                    fn #name_mut<'__ccmorph_table>(
                        &self,
                        #table: &'__ccmorph_table mut ::ccmorph::ColdTable<#cold>,
                    ) -> &'__ccmorph_table mut #ty {
                        &mut #table[&self.cold].#name
                    }
                },
            )
        } else {
            (
                quote_spanned!(at_name=> fn #name(&self) -> &#ty { &self.cold.#name }),
                quote_spanned! {at_name=>
                    fn #name_mut(&mut self) -> &mut #ty { &mut self.cold.#name }
                },
            )
        };
        quote! {
            #(#docs)* #doc #(#conditions)* #[inline] #vis #read
            #(#docs)* #doc #(#conditions)* #[inline] #vis #write
        }
    }

    /// A link that is as large as what it leads to saves nothing. Sizes of structs with parameters
    /// are not known here.
    fn check(&self) -> Option<TokenStream> {
        let (cold, link) = (&self.cold, self.link());
        let message = "the cold fields are no larger than the link to them";
        self.item.generics.params.is_empty().then(|| {
            quote! {
                const _: () = ::core::assert!(
                    ::core::mem::size_of::<#cold>() > ::core::mem::size_of::<#link>(),
                    #message,
                );
            }
        })
    }

    fn attributes(&self) -> Result<Attributes> {
        let mut found = Attributes {
            hot: self.item.attrs.clone(),
            cold: Vec::new(),
        };
        for attribute in &self.item.attrs {
            if attribute.path().is_ident("derive") {
                found.cold.push(self.derive(attribute)?);
            } else if attribute.path().is_ident("repr") {
                found.cold.extend(repr(attribute)?);
            } else if !is_one_of(attribute.path(), &HOT_ATTRIBUTES) {
                found.cold.push(attribute.clone());
            }
        }
        Ok(found)
    }

    /// The derives of the cold struct.
    fn derive(&self, attribute: &Attribute) -> Result<Attribute> {
        let derives = attribute.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)?;
        for path in &derives {
            let message = if is_one_of(path, &["Copy"]) {
                "a struct that owns its cold fields cannot be copied"
            } else if self.arguments.is_table && is_one_of(path, &VALUE_DERIVES) {
                "this would be of the number in the table, not of the fields: implement it by hand"
            } else if is_one_of(path, &["Ord", "PartialOrd"]) && self.order_changes() {
                "a cold field stands before hot ones, and behind the link it would be compared \
                 last: declare it last, or implement the order by hand"
            } else {
                continue;
            };
            return Err(Error::new_spanned(path, message));
        }
        let cold = derives.iter().filter(|path| !is_one_of(path, &HOT_DERIVES));
        Ok(parse_quote!(#[derive(#(#cold),*)]))
    }

    fn order_changes(&self) -> bool {
        let is_cold = self
            .all_fields
            .iter()
            .map(|field| self.arguments.is_cold(field));
        !is_cold.is_sorted()
    }
}

/// The attributes of the two structs.
struct Attributes {
    hot: Vec<Attribute>,
    cold: Vec<Attribute>,
}

/// What of it holds for the cold struct, too: C's order. Alignment is the hot one's.
fn repr(attribute: &Attribute) -> Result<Option<Attribute>> {
    let list = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    let other = list
        .iter()
        .find(|repr| !is_one_of(repr.path(), &["C", "align"]));
    if let Some(other) = other {
        let message = "a link needs its alignment: only `repr(C)` and `repr(align(..))` are kept";
        return Err(Error::new_spanned(other, message));
    }
    let is_c = list.iter().any(|repr| repr.path().is_ident("C"));
    Ok(is_c.then(|| parse_quote!(#[repr(C)])))
}

/// Whether it ends with one of the names.
fn is_one_of(path: &Path, names: &[&str]) -> bool {
    let last = path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// The parameters that the fields name, with the bounds that name no others.
fn generics_of(generics: &Generics, fields: &[&Field]) -> Generics {
    let mut used = HashSet::new();
    for field in fields {
        names(field.ty.to_token_stream(), &mut used);
    }
    let of = |param: &GenericParam| match param {
        GenericParam::Type(it) => it.ident.clone(),
        GenericParam::Const(it) => it.ident.clone(),
        GenericParam::Lifetime(it) => it.lifetime.ident.clone(),
    };
    let unused: HashSet<Ident> = generics
        .params
        .iter()
        .map(of)
        .filter(|name| !used.contains(name))
        .collect();
    let is_known = |tokens: TokenStream| {
        let mut named = HashSet::new();
        names(tokens, &mut named);
        named.is_disjoint(&unused)
    };
    let mut kept = generics.clone();
    let params = kept
        .params
        .into_iter()
        .filter(|param| !unused.contains(&of(param)));
    kept.params = params
        .map(|mut param| {
            match &mut param {
                GenericParam::Type(it) => {
                    let bounds = std::mem::take(&mut it.bounds).into_iter();
                    it.bounds = bounds.filter(|it| is_known(it.to_token_stream())).collect();
                    it.default = it
                        .default
                        .take()
                        .filter(|(_, of)| is_known(of.to_token_stream()));
                }
                GenericParam::Lifetime(it) => {
                    let bounds = std::mem::take(&mut it.bounds).into_iter();
                    it.bounds = bounds.filter(|it| is_known(it.to_token_stream())).collect();
                }
                GenericParam::Const(_) => {}
            }
            param
        })
        .collect();
    if let Some(clause) = &mut kept.where_clause {
        let predicates = std::mem::take(&mut clause.predicates).into_iter();
        clause.predicates = predicates
            .filter(|it| is_known(it.to_token_stream()))
            .collect();
    }
    kept
}

/// All names in the tokens; lifetimes without their apostrophe.
fn names(tokens: TokenStream, found: &mut HashSet<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => names(group.stream(), found),
            TokenTree::Ident(name) => {
                found.insert(name);
            }
            _ => {}
        }
    }
}

/// The attributes of a field that hold wherever it stands.
fn carried(field: &Field) -> impl Iterator<Item = &Attribute> {
    let names = ["cfg", "doc"];
    let attributes = field.attrs.iter();
    attributes.filter(move |it| names.iter().any(|name| it.path().is_ident(name)))
}

fn conditions(field: &Field) -> impl Iterator<Item = &Attribute> {
    carried(field).filter(|it| it.path().is_ident("cfg"))
}
