//! One buffer for all turns of a loop: `let mut v = Vec::new();` in its body becomes `v.clear();`,
//! and the vector is declared before the loop. So is what a loop collects.
//!
//! The elements then live until the next turn clears them, which nobody sees of those that are
//! `Copy`; the compiler is asked for that by a line that the patch does not have. Nor is it asked
//! of code under a condition (`#[cfg]`), which stays.

use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{
    Attribute, Block, Expr, GenericArgument, ImplItemFn, ItemFn, ItemImpl, ItemMod, Local, Pat,
    PatIdent, PathArguments, Stmt, Type,
};

use super::{Edit, Mentions, Replacement, Source, has_word, keys, last_word, separator};

/// Collections that keep their memory when they are cleared.
const KEEPING: [&str; 6] = [
    "BinaryHeap",
    "HashMap",
    "HashSet",
    "String",
    "Vec",
    "VecDeque",
];

/// What shows how much memory a buffer has: less at first, and then more, if it is kept.
const OF_MEMORY: [&str; 2] = ["capacity", "spare_capacity_mut"];

/// The edits of a file, one for each buffer.
pub(super) fn edits(source: &Source) -> Vec<Edit> {
    let mut found = Found {
        source,
        sites: Vec::new(),
    };
    if !is_conditional(&source.syntax.attrs) {
        found.visit_file(&source.syntax);
    }
    let keys = keys(found.sites.iter().map(|site| &*site.name));
    let sites = found.sites.iter().zip(keys);
    sites
        .map(|(site, key)| Edit {
            names: vec![site.name.clone()],
            path: source.path.clone(),
            replacements: site.replacements.to_vec(),
            probes: site.probe.iter().cloned().collect(),
            needs: None,
            site: Some(key),
        })
        .collect()
}

struct Site {
    name: String,
    replacements: [Replacement; 2],
    probe: Option<Replacement>,
}

struct Found<'s> {
    source: &'s Source,
    sites: Vec<Site>,
}

/// A buffer that each turn of a loop makes.
struct Buffer {
    name: String,
    /// The collection, without its parameters.
    of: String,
    /// Its declaration before the loop.
    declared: String,
    /// What stands in the place of the old one.
    filled: String,
}

impl Found<'_> {
    fn text(&self, part: &impl Spanned) -> &str {
        &self.source.text[self.source.range(part)]
    }

    fn site(&self, buffer: Buffer, start: usize, local: &Local) -> Site {
        let Buffer { name, of, .. } = &buffer;
        let range = self.source.range(local);
        let probe = match &**of {
            "String" => None,
            "HashMap" => Some(format!(
                " let _ = {name}.iter().map(|(key, value)| (*key, *value));"
            )),
            _ => Some(format!(" let _ = {name}.iter().copied();")),
        };
        let declared = format!("{}{}", buffer.declared, separator(self.source, start));
        let at = |place: usize, text: String| Replacement {
            range: place..place,
            text,
        };
        Site {
            name: buffer.name,
            probe: probe.map(|text| at(range.end, text)),
            replacements: [
                at(start, declared),
                Replacement {
                    range,
                    text: buffer.filled,
                },
            ],
        }
    }

    fn buffer(&self, local: &Local) -> Option<Buffer> {
        let (pat, asked) = match &local.pat {
            Pat::Type(it) => (&*it.pat, Some(&*it.ty)),
            pat => (pat, None),
        };
        let Pat::Ident(pat) = pat else { return None };
        let init = local.init.as_ref().filter(|it| it.diverge.is_none())?;
        let is_plain = local.attrs.is_empty() && pat.by_ref.is_none() && pat.subpat.is_none();
        let name = pat.ident.to_string();
        let of_type = asked.map(|ty| format!(": {}", self.text(ty)));
        let of_type = of_type.unwrap_or_default();
        let make = |of: String, of_type: String, new: String, fill: String| Buffer {
            declared: format!("let mut {name}{of_type} = {new};"),
            filled: format!("{name}.clear();{fill}"),
            name: name.clone(),
            of,
        };
        let keeps = |of: &String| KEEPING.contains(&&**of);
        let found = match &*init.expr {
            Expr::Macro(it) if it.mac.path.is_ident("vec") && it.mac.tokens.is_empty() => make(
                "Vec".to_owned(),
                of_type,
                "Vec::new()".to_owned(),
                String::new(),
            ),
            Expr::Call(call) => {
                let Expr::Path(function) = &*call.func else {
                    return None;
                };
                let words = last_word(&function.path, 2);
                let [of, new] = &words[..] else { return None };
                // `unsafe` code may rely on the room, and the number have a side effect.
                let fill = match (&**new, call.args.first()) {
                    ("new", None) => String::new(),
                    ("with_capacity", Some(room)) => {
                        format!(" {name}.reserve({});", self.text(room))
                    }
                    _ => return None,
                };
                let text = self.text(&*call.func).strip_suffix(&**new)?;
                let of = Some(of.clone()).filter(keeps)?;
                make(of, of_type, format!("{text}new()"), fill)
            }
            Expr::MethodCall(call) if call.method == "collect" && call.args.is_empty() => {
                let given = call
                    .turbofish
                    .as_ref()
                    .and_then(|it| match it.args.first() {
                        Some(GenericArgument::Type(ty)) => Some(ty),
                        _ => None,
                    });
                let ty = asked.or(given)?;
                let of = collection(ty).filter(keeps)?;
                let fill = format!(" {name}.extend({});", self.text(&*call.receiver));
                let of_type = format!(": {}", self.text(ty));
                make(of.clone(), of_type, format!("{of}::new()"), fill)
            }
            Expr::MethodCall(call) if call.method == "to_vec" && call.args.is_empty() => {
                let from = self.text(&*call.receiver);
                let fill = format!(" {name}.extend_from_slice(&{from});");
                make("Vec".to_owned(), of_type, "Vec::new()".to_owned(), fill)
            }
            _ => return None,
        };
        is_plain.then_some(found)
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_conditional(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_conditional(&item.attrs) {
            syn::visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_conditional(&item.attrs) {
            syn::visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_conditional(&item.attrs) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        syn::visit::visit_block(self, block);
        for (at, statement) in block.stmts.iter().enumerate() {
            let Some(Loop {
                binding,
                head,
                body,
            }) = loop_of(statement)
            else {
                continue;
            };
            let shows_memory = OF_MEMORY.iter().any(|word| {
                let tokens = self.text(body).parse();
                tokens.map_or(true, |tokens| has_word(tokens, word))
            });
            if shows_memory {
                continue;
            }
            let start = self.source.range(statement).start;
            for (number, inner) in body.stmts.iter().enumerate() {
                let Stmt::Local(local) = inner else { continue };
                let Some(buffer) = self.buffer(local) else {
                    continue;
                };
                // Neither of these may mean another variable of this name.
                let mut others = Mentions {
                    name: &buffer.name,
                    is_in: false,
                };
                head.into_iter().for_each(|head| others.visit_expr(head));
                let init = local.init.iter().map(|it| &*it.expr);
                init.for_each(|init| others.visit_expr(init));
                let around = body.stmts[..number].iter().chain(&block.stmts[at + 1..]);
                around.for_each(|it| others.visit_stmt(it));
                let mut bound = Binds {
                    name: &buffer.name,
                    is_in: false,
                };
                binding.into_iter().for_each(|it| bound.visit_pat(it));
                head.into_iter().for_each(|it| bound.visit_expr(it));
                for inner in &body.stmts[..number] {
                    if let Stmt::Local(local) = inner {
                        bound.visit_pat(&local.pat);
                    }
                }
                if !others.is_in && !bound.is_in {
                    let site = self.site(buffer, start, local);
                    self.sites.push(site);
                }
            }
        }
    }
}

struct Loop<'s> {
    /// What each turn binds.
    binding: Option<&'s Pat>,
    /// What is evaluated before the loop, or before each turn.
    head: Option<&'s Expr>,
    body: &'s Block,
}

fn loop_of(statement: &Stmt) -> Option<Loop<'_>> {
    let Stmt::Expr(expr, _) = statement else {
        return None;
    };
    let (attributes, binding, head, body) = match expr {
        Expr::ForLoop(it) => (&it.attrs, Some(&*it.pat), Some(&*it.expr), &it.body),
        Expr::While(it) => (&it.attrs, None, Some(&*it.cond), &it.body),
        Expr::Loop(it) => (&it.attrs, None, None, &it.body),
        _ => return None,
    };
    attributes.is_empty().then_some(Loop {
        binding,
        head,
        body,
    })
}

/// Looks for patterns that bind a name.
struct Binds<'n> {
    name: &'n str,
    is_in: bool,
}

impl<'ast> Visit<'ast> for Binds<'_> {
    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.is_in |= pat.ident == self.name;
        syn::visit::visit_pat_ident(self, pat);
    }
}

fn is_conditional(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| it.path().is_ident("cfg"))
}

/// The name of a collection whose parameters are given.
fn collection(ty: &Type) -> Option<String> {
    let Type::Path(it) = ty else { return None };
    let last = it.path.segments.last()?;
    let is_given = matches!(last.arguments, PathArguments::AngleBracketed(_));
    (is_given || last.ident == "String").then(|| last.ident.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> String {
        let source = Source::parse("src/a.rs".into(), text.to_owned()).unwrap();
        let all = super::super::merged(&edits(&source));
        all.first().map_or(text.to_owned(), |it| it.apply(text))
    }

    #[test]
    fn buffers_are_declared_before_the_loop() {
        for (old, declared, filled) in [
            (
                "let mut v = Vec::new();",
                "let mut v = Vec::new();",
                "v.clear();",
            ),
            (
                "let mut v: Vec<u8> = vec![];",
                "let mut v: Vec<u8> = Vec::new();",
                "v.clear();",
            ),
            (
                "let mut v = std::collections::VecDeque::<u8>::with_capacity(n);",
                "let mut v = std::collections::VecDeque::<u8>::new();",
                "v.clear(); v.reserve(n);",
            ),
            (
                "let mut v = String::new();",
                "let mut v = String::new();",
                "v.clear();",
            ),
            (
                "let v: Vec<_> = i.iter().map(|x| x + 1).collect();",
                "let mut v: Vec<_> = Vec::new();",
                "v.clear(); v.extend(i.iter().map(|x| x + 1));",
            ),
            (
                "let v = i.chars().collect::<String>();",
                "let mut v: String = String::new();",
                "v.clear(); v.extend(i.chars());",
            ),
            (
                "let mut v = all[i].to_vec();",
                "let mut v = Vec::new();",
                "v.clear(); v.extend_from_slice(&all[i]);",
            ),
        ] {
            let old =
                format!("fn f() {{\n    g();\n    'a: for i in 0..n {{ {old} h(&v); }}\n}}\n");
            let new = format!(
                "fn f() {{\n    g();\n    {declared}\n    'a: for i in 0..n {{ {filled} h(&v); }}\n\
                 }}\n"
            );
            assert_eq!(edited(&old), new);
        }
        let two = "fn f() { loop { let mut a = Vec::new(); let mut b = String::new(); g(a, b) } }";
        let new = "fn f() { let mut a = Vec::new(); let mut b = String::new(); \
                   loop { a.clear(); b.clear(); g(a, b) } }";
        assert_eq!(edited(two), new);
    }

    #[test]
    fn other_variables_stay() {
        for body in [
            "for i in v { let mut v = Vec::new(); g(&v); }",
            "while v.is_empty() { let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { g(&v); let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { let v = 3; let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { let v: Vec<u8> = v.iter().copied().collect(); g(&v); }",
            "for i in 0..n { let mut v = Vec::new(); g(&v); } println!(\"{v:?}\");",
            "for i in 0..n { let mut v = BTreeMap::new(); g(&v); }",
            "for i in 0..n { let v = i.iter().collect(); g(&v); }",
            "for i in 0..n { let v = i.collect::<Result<Vec<_>, _>>(); g(&v); }",
            "for i in 0..n { if i > 3 { let mut v = Vec::new(); g(&v); } }",
            "#[a] for i in 0..n { let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { #[a] let mut v = Vec::new(); g(&v); }",
            "for v in n { let mut v = Vec::new(); g(&v); }",
            "while let Some(mut v) = n.pop() { let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { let (a, mut v) = b; let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { let Some(v) = b else { break }; let mut v = Vec::new(); g(&v); }",
            "for i in 0..n { let mut v = Vec::new(); while v.len() < v.capacity() { g(&v); } }",
            "let mut v = Vec::new(); g(&v);",
        ] {
            let text = format!("fn f() {{ {body} }}");
            assert_eq!(edited(&text), text);
        }
    }

    #[test]
    fn what_the_compiler_may_not_see_stays() {
        let body = "{ loop { let mut v = Vec::new(); g(&v); } }";
        for text in [
            format!("#![cfg(x)]\nfn f() {body}"),
            format!("#[cfg(x)]\nfn f() {body}"),
            format!("#[cfg(test)]\nmod tests {{ fn f() {body} }}"),
            format!("#[cfg(x)]\nimpl A {{ fn f() {body} }}"),
            format!("impl A {{ #[cfg(x)]\nfn f() {body} }}"),
        ] {
            assert_eq!(edited(&text), text);
        }
    }

    #[test]
    fn elements_are_asked_to_be_copy() {
        let probes = |body: &str| {
            let text = format!("fn f() {{ loop {{ {body} }} }}");
            let source = Source::parse("src/a.rs".into(), text.clone()).unwrap();
            edits(&source)[0].probing().apply(&text)
        };
        let text = probes("let mut v = Vec::new(); g(&v);");
        assert!(
            text.contains("v.clear(); let _ = v.iter().copied(); g(&v);"),
            "{text}"
        );
        let text = probes("let mut v = HashMap::new(); g(&v);");
        assert!(text.contains("|(key, value)| (*key, *value)"), "{text}");
        let text = probes("let mut v = String::new(); g(&v);");
        assert!(text.contains("v.clear(); g(&v);"), "{text}");
    }
}
