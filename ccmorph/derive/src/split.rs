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
//! impl<'a, K> Unpin for Node<K> where Whole<'a, NodeFields<K>>: Unpin {}
//! const _: () = assert!(size_of::<NodeCold>() > size_of::<Box<NodeCold>>()); // without parameters
//! ```
//!
//! The link stands where the first cold field stood. So fields are dropped and compared in the
//! order of the source where the cold ones stand together. A box has all auto traits of what is in
//! it, except that it is always `Unpin`; the last `impl` takes that back.
//!
//! With `cold = "table"` the link is a `ColdIndex`, `NodeFields::split_into` takes the place of
//! `From`, and accessors take the table. Conditions (`#[cfg]`) go wherever their field goes.

use std::collections::HashSet;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, DeriveInput, Error, Field, Fields, GenericParam, Generics, LitStr, Meta, MetaList,
    Path, Result, Token, Type, Visibility, parenthesized, parse_quote,
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
    let unpin = split.unpin();
    let checks = [split.check_size(), split.check_drops()];
    Ok(quote!(#structs #construction #accessors #unpin #(#checks)*))
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
    /// What stands in place of `Self` outside the hot struct.
    self_type: TokenStream,
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
        let (_, own_generics, _) = item.generics.split_for_impl();
        let self_type = quote!(#hot #own_generics);
        let cold_types: Vec<TokenStream> = cold_fields
            .iter()
            .map(|field| without_self(field.ty.to_token_stream(), &self_type))
            .collect();
        Ok(Split {
            arguments,
            item,
            cold_generics: generics_of(&item.generics, cold_types),
            self_type,
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
            quote!(::ccmorph::__derive::Box<#cold>)
        }
    }

    /// How many hot fields stand before the link: those before the first cold one.
    fn link_place(&self) -> usize {
        let fields = self.all_fields.iter();
        fields
            .take_while(|field| !self.arguments.is_cold(field))
            .count()
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
        let elsewhere = |field: &Field, attributes: Vec<&Attribute>| {
            let Field { vis, ident, ty, .. } = field;
            let ty = without_self(ty.to_token_stream(), &self.self_type);
            quote!(#(#attributes)* #vis #ident: #ty)
        };
        let all_fields = self.all_fields.iter();
        let all_fields = all_fields.map(|field| elsewhere(field, carried(field).collect()));
        let cold_fields = cold_fields
            .iter()
            .map(|field| elsewhere(field, field.attrs.iter().collect()));
        let elsewhere_where = without_self(where_clause.to_token_stream(), &self.self_type);
        let cold_where = without_self(cold_where.to_token_stream(), &self.self_type);
        let (before, after) = hot_fields.split_at(self.link_place());
        let link_doc = match self.arguments.is_table {
            true => format!("The number of the [cold fields]({cold}) in their table."),
            false => format!("The [cold fields]({cold})."),
        };
        let cold_doc = format!("The fields of [`{hot}`] that are rarely used.");
        let whole_doc = format!("All fields of [`{hot}`], to make one.");
        Ok(quote! {
            #(#on_hot)*
            #vis struct #hot #generics #where_clause {
                #(#before,)*
                #[doc = #link_doc]
                #link_vis cold: #link,
                #(#after,)*
            }

            #[doc = #cold_doc]
            #(#on_cold)*
            #vis struct #cold #cold_generics #cold_where {
                #(#cold_fields,)*
            }

            #[doc = #whole_doc]
            #[allow(dead_code)]
            #vis struct #whole #generics #elsewhere_where {
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
    fn check_size(&self) -> Option<TokenStream> {
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

    /// `Unpin` as without the split. An entry of a table is known to its index's type instead.
    fn unpin(&self) -> Option<TokenStream> {
        let Split { hot, whole, .. } = self;
        let (_, generics, where_clause) = self.item.generics.split_for_impl();
        let mut of_impl = self.item.generics.clone();
        // With a parameter in it, a condition may be false where the struct has none.
        of_impl.params.insert(0, parse_quote!('__ccmorph_whole));
        let (impl_generics, ..) = of_impl.split_for_impl();
        let conditions = where_clause.map(|it| it.predicates.iter()).into_iter();
        let conditions = conditions.flatten();
        (!self.arguments.is_table).then(|| {
            quote! {
                #[automatically_derived]
                impl #impl_generics ::core::marker::Unpin for #hot #generics
                where
                    #(#conditions,)*
                    ::ccmorph::__derive::Whole<'__ccmorph_whole, #whole #generics>:
                        ::core::marker::Unpin,
                {}
            }
        })
    }

    /// The link is dropped where the first cold field was. A later cold field may not have waited
    /// for a hot one: the destructor of one may use what the other holds.
    fn check_drops(&self) -> Option<TokenStream> {
        let hot = own_name("hot", Span::mixed_site());
        let message = "a hot field that is dropped stands between cold ones, which are dropped \
            together: declare the cold fields one after the other";
        let steps = self.all_fields[self.link_place()..].iter().map(|field| {
            let (conditions, needs_drop) = (conditions(field), self.needs_drop(field));
            let step = match self.arguments.is_cold(field) {
                true => quote!(::core::assert!(!(#hot && #needs_drop), #message)),
                false => quote!(#hot = #hot || #needs_drop),
            };
            quote!(#(#conditions)* { #step; })
        });
        // A table is dropped apart from the nodes.
        (self.is_scattered() && !self.arguments.is_table).then(|| {
            quote! {
                #[allow(unused, clippy::all)]
                const _: () = {
                    let mut #hot = false;
                    #(#steps)*
                };
            }
        })
    }

    /// An expression of the field's type: whether values have anything to drop. Of one that names
    /// parameters it is not known.
    fn needs_drop(&self, field: &Field) -> TokenStream {
        if is_plain(&field.ty) {
            return quote!(false);
        }
        let params = &self.item.generics.params;
        let lifetimes = params.iter().filter_map(|param| match param {
            GenericParam::Lifetime(it) => Some(it.lifetime.ident.clone()),
            _ => None,
        });
        let lifetimes: HashSet<Ident> = lifetimes.collect();
        let mut named = HashSet::new();
        names(field.ty.to_token_stream(), &mut named);
        let mut others = params.iter().map(name_of);
        if others.any(|name| !lifetimes.contains(&name) && named.contains(&name)) {
            return quote!(true);
        }
        let ty = without_self(field.ty.to_token_stream(), &self.self_type);
        let mut named = HashSet::new();
        names(ty.clone(), &mut named);
        let mut params = params.iter().map(name_of);
        if params.any(|name| !lifetimes.contains(&name) && named.contains(&name)) {
            return quote!(true);
        }
        let long = Ident::new("static", Span::mixed_site());
        let ty = replaced(ty, &|name| {
            lifetimes.contains(name).then(|| long.to_token_stream())
        });
        quote!(::core::mem::needs_drop::<#ty>())
    }

    fn attributes(&self) -> Result<Attributes> {
        let mut found = Attributes {
            hot: self.item.attrs.clone(),
            cold: Vec::new(),
        };
        for attribute in &self.item.attrs {
            if let Some(meta) = self.on_cold(&attribute.meta)? {
                found.cold.push(parse_quote!(#[#meta]));
            }
        }
        Ok(found)
    }

    /// What of an attribute of the struct holds for the cold one.
    fn on_cold(&self, meta: &Meta) -> Result<Option<TokenStream>> {
        if meta.path().is_ident("cfg_attr") {
            let list = Punctuated::<Meta, Token![,]>::parse_terminated;
            let mut list = meta.require_list()?.parse_args_with(list)?.into_iter();
            let condition = list.next();
            let mut kept = Vec::new();
            for meta in list {
                kept.extend(self.on_cold(&meta)?);
            }
            return Ok((!kept.is_empty()).then(|| quote!(cfg_attr(#condition, #(#kept),*))));
        }
        Ok(if meta.path().is_ident("derive") {
            Some(self.derive(meta.require_list()?)?)
        } else if meta.path().is_ident("repr") {
            repr(meta.require_list()?)?
        } else {
            let is_kept = !is_one_of(meta.path(), &HOT_ATTRIBUTES);
            is_kept.then(|| meta.to_token_stream())
        })
    }

    /// The derives of the cold struct.
    fn derive(&self, list: &MetaList) -> Result<TokenStream> {
        let derives = list.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated)?;
        for path in &derives {
            let message = if is_one_of(path, &["Copy"]) {
                "a struct that owns its cold fields cannot be copied"
            } else if self.arguments.is_table && is_one_of(path, &VALUE_DERIVES) {
                "this would be of the number in the table, not of the fields: implement it by hand"
            } else if is_one_of(path, &["Ord", "PartialOrd"]) && self.is_scattered() {
                "a hot field stands between cold ones, which are compared together: declare the \
                 cold fields one after the other, or implement the order by hand"
            } else {
                continue;
            };
            return Err(Error::new_spanned(path, message));
        }
        let cold = derives.iter().filter(|path| !is_one_of(path, &HOT_DERIVES));
        Ok(quote!(derive(#(#cold),*)))
    }

    /// Whether a hot field stands between cold ones.
    fn is_scattered(&self) -> bool {
        let behind = &self.all_fields[self.link_place()..];
        let mut behind = behind.iter().map(|field| self.arguments.is_cold(field));
        behind.by_ref().any(|is_cold| !is_cold) && behind.any(|is_cold| is_cold)
    }
}

/// The attributes of the two structs.
struct Attributes {
    hot: Vec<Attribute>,
    cold: Vec<Attribute>,
}

/// What of it holds for the cold struct, too: C's order. Alignment is the hot one's.
fn repr(list: &MetaList) -> Result<Option<TokenStream>> {
    let list = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
    let other = list
        .iter()
        .find(|repr| !is_one_of(repr.path(), &["C", "align"]));
    if let Some(other) = other {
        let message = "a link needs its alignment: only `repr(C)` and `repr(align(..))` are kept";
        return Err(Error::new_spanned(other, message));
    }
    let is_c = list.iter().any(|repr| repr.path().is_ident("C"));
    Ok(is_c.then(|| quote!(repr(C))))
}

/// Whether it ends with one of the names.
fn is_one_of(path: &Path, names: &[&str]) -> bool {
    let last = path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}

/// The parameters that the fields name, with the bounds that name no others.
fn generics_of(generics: &Generics, fields: Vec<TokenStream>) -> Generics {
    let mut used = HashSet::new();
    for field in fields {
        names(field, &mut used);
    }
    let unused: HashSet<Ident> = generics
        .params
        .iter()
        .map(name_of)
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
        .filter(|param| !unused.contains(&name_of(param)));
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

fn name_of(param: &GenericParam) -> Ident {
    match param {
        GenericParam::Type(it) => it.ident.clone(),
        GenericParam::Const(it) => it.ident.clone(),
        GenericParam::Lifetime(it) => it.lifetime.ident.clone(),
    }
}

/// Whether it is seen from the type that there is nothing to drop.
fn is_plain(ty: &Type) -> bool {
    matches!(ty, Type::Reference(_) | Type::Ptr(_) | Type::FnPtr(_))
        || matches!(ty, Type::Path(it) if is_one_of(&it.path, &["PhantomData", "PhantomPinned"]))
}

fn without_self(tokens: TokenStream, self_type: &TokenStream) -> TokenStream {
    replaced(tokens, &|name| (name == "Self").then(|| self_type.clone()))
}

/// The tokens with other names.
fn replaced(tokens: TokenStream, new: &dyn Fn(&Ident) -> Option<TokenStream>) -> TokenStream {
    let tokens = tokens.into_iter().map(|token| match token {
        TokenTree::Group(group) => {
            let mut made = Group::new(group.delimiter(), replaced(group.stream(), new));
            made.set_span(group.span());
            TokenTree::Group(made).into()
        }
        TokenTree::Ident(name) => new(&name).unwrap_or_else(|| name.into_token_stream()),
        token => token.into(),
    });
    tokens.collect()
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
