//! The Rust file that compiles only where everything in the list is there.
//!
//! A method becomes one of a trait, since a trait's methods elide lifetimes as inherent ones do; it
//! passes its arguments on to ours of the same name, with the type parameters named, so that their
//! number and order count, too. Its own name differs from ours: were ours missing, the call would
//! find the trait's.
//!
//! An implemented trait becomes a function with the bounds of the standard library's `impl`, which
//! calls another that has our implementation as a bound.

use std::fmt::Write;

use quote::ToTokens;
use syn::visit_mut::{self, VisitMut};
use syn::{
    FnArg, GenericParam, Generics, ItemImpl, Lifetime, LifetimeParam, PathArguments, Receiver,
    ReceiverKind, TraitItemFn, Type, TypeReference, WherePredicate,
};

use super::item::{Item, tidy};

/// The file for a list.
pub(super) fn file(items: &[Item]) -> String {
    let mut text = String::new();
    for module in ["map", "set"] {
        let of_module: Vec<&Item> = items.iter().filter(|item| item.module == module).collect();
        let collection = if module == "map" { "Map" } else { "Set" };
        write!(
            text,
            "\nmod {module} {{
    use std::borrow::Borrow;
    use std::fmt::{{self, Debug}};
    use std::hash::Hash;
    use std::iter::FusedIterator;
    use std::marker::PhantomData;
    use std::ops::{{BitAnd, BitOr, BitXor, Index, RangeBounds, Sub}};

    use allocator_api2::alloc::Allocator;
    use ctree::{module}::{{{}}};
    use ctree::CTree{collection} as BTree{collection};
",
            iterators(&of_module).join(", ")
        )
        .expect("writing to a string");
        let mut number = 0;
        let mut rest = of_module.as_slice();
        while let [first, ..] = rest {
            number += 1;
            // The methods of one `impl` block stand together.
            let same = |item: &&&Item| item.is_method() && item.header == first.header;
            let methods = rest.iter().take_while(same).count();
            if methods == 0 {
                text += &implemented(first, number);
                rest = &rest[1..];
            } else {
                text += &inherent(&rest[..methods], number);
                rest = &rest[methods..];
            }
        }
        text += "}\n";
    }
    text
}

/// The types of a module beside the map or set itself.
fn iterators(items: &[&Item]) -> Vec<String> {
    let mut names: Vec<String> = items
        .iter()
        .map(|item| item.owner.clone())
        .filter(|name| !name.starts_with("BTree"))
        .collect();
    names.sort();
    names.dedup();
    names
}

fn header_of(item: &Item) -> ItemImpl {
    syn::parse_str(&format!("{} {{}}", item.header))
        .unwrap_or_else(|error| panic!("{}: {error}", item.header))
}

/// The parameters of an `impl` or a method, without their brackets, and its `where` clause.
fn parts(generics: &Generics) -> (String, String) {
    let clause = generics
        .where_clause
        .as_ref()
        .map_or_else(String::new, |clause| {
            format!(" {}", tidy(&clause.to_token_stream()))
        });
    (tidy(&generics.params.to_token_stream()), clause)
}

/// The names of the type and constant parameters, as a turbofish; empty when there are none.
fn turbofish(generics: &Generics) -> String {
    let names: Vec<String> = generics
        .params
        .iter()
        .filter_map(|parameter| match parameter {
            GenericParam::Lifetime(_) => None,
            GenericParam::Type(parameter) => Some(parameter.ident.to_string()),
            GenericParam::Const(parameter) => Some(parameter.ident.to_string()),
        })
        .collect();
    if names.is_empty() {
        String::new()
    } else {
        format!("::<{}>", names.join(", "))
    }
}

fn inherent(methods: &[&Item], number: usize) -> String {
    let block = header_of(methods[0]);
    let (parameters, clause) = parts(&block.generics);
    let names: Vec<String> = block
        .generics
        .params
        .iter()
        .map(|parameter| match parameter {
            GenericParam::Lifetime(parameter) => parameter.lifetime.to_string(),
            GenericParam::Type(parameter) => parameter.ident.to_string(),
            GenericParam::Const(parameter) => parameter.ident.to_string(),
        })
        .collect();
    let subject = tidy(&block.self_ty.to_token_stream());
    let (mut declared, mut defined, mut constants) = (String::new(), String::new(), String::new());
    for item in methods {
        let method: TraitItemFn = syn::parse_str(&format!("{};", item.body))
            .unwrap_or_else(|error| panic!("{}: {error}", item.body));
        let signature = &method.sig;
        let mut typed = Vec::new();
        let mut passed = Vec::new();
        for (index, input) in signature.inputs.iter().enumerate() {
            match input {
                FnArg::Receiver(receiver) => {
                    typed.push(plain_receiver(receiver));
                    passed.push("self".to_owned());
                }
                FnArg::Typed(input) => {
                    typed.push(format!(
                        "argument{index}: {}",
                        tidy(&input.ty.to_token_stream())
                    ));
                    passed.push(format!("argument{index}"));
                }
            }
        }
        let (own, own_clause) = parts(&signature.generics);
        let own = if own.is_empty() {
            own
        } else {
            format!("<{own}>")
        };
        let output = tidy(&signature.output.to_token_stream());
        let output = if output.is_empty() {
            output
        } else {
            format!(" {output}")
        };
        let name = &signature.ident;
        let head = format!("{name}{own}({}){output}{own_clause}", typed.join(", "));
        let call = format!(
            "<{subject}>::{name}{}({})",
            turbofish(&signature.generics),
            passed.join(", ")
        );
        declared += &format!("        fn std_{head};\n");
        defined += &format!("        fn std_{head} {{ {call} }}\n");
        if signature.constness.is_some() {
            // Traits have no constant methods; those of the standard library that are so have no
            // receiver.
            constants += &format!(
                "    const fn const{number}_{name}<{parameters}>(){output} {{ {call} }}\n"
            );
        }
    }
    format!(
        "
    trait Methods{number}<{parameters}>: Sized{clause} {{
{declared}    }}
    impl<{parameters}> Methods{number}<{}> for {subject}{clause} {{
{defined}    }}
{constants}",
        names.join(", ")
    )
}

/// A receiver as a trait may declare it: `mut self` is a matter of the body.
fn plain_receiver(receiver: &Receiver) -> String {
    let mut receiver = receiver.clone();
    if matches!(receiver.kind, ReceiverKind::Value) {
        receiver.mutability = None;
    }
    tidy(&receiver.to_token_stream())
}

/// Names the lifetimes that an `impl` header leaves out, as a function's bounds cannot.
#[derive(Default)]
struct NameLifetimes(Vec<Lifetime>);

impl NameLifetimes {
    fn fresh(&mut self) -> Lifetime {
        let name = format!("'e{}", self.0.len());
        let lifetime: Lifetime = syn::parse_str(&name).expect("a lifetime");
        self.0.push(lifetime.clone());
        lifetime
    }
}

impl VisitMut for NameLifetimes {
    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        if lifetime.ident == "_" {
            *lifetime = self.fresh();
        }
    }

    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        if reference.lifetime.is_none() {
            reference.lifetime = Some(self.fresh());
        }
        visit_mut::visit_type_reference_mut(self, reference);
    }
}

fn implemented(item: &Item, number: usize) -> String {
    let mut block = header_of(item);
    let (mut path, _) = block
        .trait_
        .take()
        .expect("an item without a method implements a trait");
    let mut subject: Type = (*block.self_ty).clone();
    let mut names = NameLifetimes::default();
    names.visit_type_mut(&mut subject);
    names.visit_path_mut(&mut path);
    let mut generics = block.generics;
    for lifetime in names.0.into_iter().rev() {
        let parameter = GenericParam::Lifetime(LifetimeParam::new(lifetime));
        generics.params.insert(0, parameter);
    }
    let mut needed = tidy(&path.to_token_stream());
    // As parameters of a function, type and trait arguments are known to be well-formed: lifetimes
    // outlived where they must be.
    let mut subjects = vec![tidy(&subject.to_token_stream())];
    if let Some(PathArguments::AngleBracketed(arguments)) =
        path.segments.last().map(|segment| &segment.arguments)
    {
        subjects.extend(
            arguments
                .args
                .iter()
                .map(|argument| tidy(&argument.to_token_stream())),
        );
    }
    let subjects = format!("PhantomData<({},)>", subjects.join(", "));
    if !item.body.is_empty() {
        // The associated types go where the trait's parameters are.
        needed = match needed.strip_suffix('>') {
            Some(open) => format!("{open}, {}>", item.body),
            None => format!("{needed}<{}>", item.body),
        };
    }
    let (parameters, clause) = parts(&generics);
    let subject = tidy(&subject.to_token_stream());
    let mut stricter = generics.clone();
    let predicate: WherePredicate = syn::parse_str(&format!("{subject}: {needed}"))
        .unwrap_or_else(|error| panic!("{subject}: {needed}: {error}"));
    stricter.make_where_clause().predicates.push(predicate);
    let (_, strict_clause) = parts(&stricter);
    format!(
        "
    fn needs{number}<{parameters}>(_: {subjects}){strict_clause} {{}}
    fn has{number}<{parameters}>(subject: {subjects}){clause} {{
        needs{number}{}(subject);
    }}
",
        turbofish(&generics)
    )
}
