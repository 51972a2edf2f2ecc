//! `#[field_order]`: C's order of fields, and assertions that size and offsets stay as they are.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{DeriveInput, Error, LitInt, Member, Meta, Result, Token, Type, parenthesized};

use crate::fields_of;

/// What stands in the parentheses of `#[field_order(..)]`.
#[derive(Default)]
pub(crate) struct Arguments {
    size: Option<LitInt>,
    offsets: Vec<Offset>,
    /// The type that is measured, for a generic struct.
    of: Option<Type>,
}

struct Offset {
    field: Member,
    bytes: LitInt,
}

impl Parse for Offset {
    fn parse(input: ParseStream<'_>) -> Result<Offset> {
        let field = input.parse()?;
        input.parse::<Token![=]>()?;
        let bytes = input.parse()?;
        Ok(Offset { field, bytes })
    }
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if name == "size" {
                input.parse::<Token![=]>()?;
                arguments.size = Some(input.parse()?);
            } else if name == "of" {
                input.parse::<Token![=]>()?;
                arguments.of = Some(input.parse()?);
            } else if name == "offsets" {
                let offsets;
                parenthesized!(offsets in input);
                let offsets = Punctuated::<Offset, Token![,]>::parse_terminated(&offsets)?;
                arguments.offsets.extend(offsets);
            } else {
                let message = "write `size = BYTES`, `offsets(FIELD = BYTES, ..)` or `of = TYPE`";
                return Err(Error::new(name.span(), message));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        if arguments.size.is_none() && arguments.offsets.is_empty() {
            let message = "say what stays: `#[field_order(size = 24, offsets(key = 0))]`";
            return Err(Error::new(Span::call_site(), message));
        }
        Ok(arguments)
    }
}

pub(crate) fn field_order(arguments: &Arguments, item: &DeriveInput) -> Result<TokenStream> {
    let fields = fields_of(item)?;
    for Offset { field, .. } in &arguments.offsets {
        if !fields.members().any(|member| member == *field) {
            let message = format!("`{}` has no field of this name", item.ident);
            return Err(Error::new_spanned(field, message));
        }
    }
    let mut has_repr = false;
    for attribute in item.attrs.iter().filter(|it| it.path().is_ident("repr")) {
        let list = attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?;
        has_repr |= list.iter().any(|it| it.path().is_ident("C"));
    }
    let repr = (!has_repr).then(|| quote!(#[repr(C)]));

    let has_parameters = !item.generics.params.is_empty();
    let measured = match &arguments.of {
        Some(of) => of.to_token_stream(),
        None if has_parameters => {
            let message = "say which type is measured: `of = Node<'static, u64>`";
            return Err(Error::new(item.ident.span(), message));
        }
        None => item.ident.to_token_stream(),
    };
    let size = arguments.size.iter().map(|size| {
        let message = format!("`{}` no longer has the size that is asked for", item.ident);
        quote_spanned! {size.span()=>
            ::core::assert!(::core::mem::size_of::<#measured>() == #size, #message);
        }
    });
    let offsets = arguments.offsets.iter().map(|Offset { field, bytes }| {
        let message = format!(
            "`{}` is not at the offset that is asked for",
            field.to_token_stream()
        );
        quote_spanned! {bytes.span()=>
            ::core::assert!(::core::mem::offset_of!(#measured, #field) == #bytes, #message);
        }
    });
    Ok(quote! {
        #repr
        #item

        const _: () = {
            #(#size)*
            #(#offsets)*
        };
    })
}
