//! `ccmalloc::near` around the boxes of nodes that are stored in a place known before:
//! `*place = Some(Box::new(node))` becomes
//! `*place = Some(ccmalloc::near(&*place, || Box::new(node)))`.
//!
//! A node gets neighbours only where the one that leads to it was placed by a hint, too: all places
//! are one change, without those that the compiler refuses. What is boxed is made before, so that
//! it may change the place, and so that what it allocates itself takes no room beside nodes.

use std::collections::BTreeMap;

use syn::visit::Visit;
use syn::{
    Expr, ExprAssign, ExprMethodCall, ExprUnsafe, FnArg, ImplItemFn, ItemFn, Pat, Safety,
    Signature, Type, UnOp,
};

use super::manifest::Dependency;
use super::types::{Link, Types};
use super::{Edit, Replacement, Source, is_plain, keys, last_word, mentions};

/// Methods of options, vectors and maps that store their last argument.
const OF_OPTIONS: [&str; 3] = ["insert", "get_or_insert", "replace"];
const OF_LISTS: [&str; 3] = ["push", "push_back", "push_front"];

/// The edits of a file, one for each place.
pub(super) fn edits(source: &Source, types: &Types<'_>) -> Vec<Edit> {
    let mut found = Found {
        source,
        types,
        references: Vec::new(),
        sites: Vec::new(),
    };
    found.visit_file(&source.syntax);
    let texts = found
        .sites
        .iter()
        .map(|(_, it)| &source.text[it.range.clone()]);
    let keys = keys(texts);
    let sites = found.sites.into_iter().zip(keys);
    sites
        .map(|((name, replacement), site)| Edit {
            names: vec![name],
            path: source.path.clone(),
            replacements: vec![replacement],
            probes: Vec::new(),
            needs: Some(Dependency::of_ours("ccmalloc", "ccmalloc", &[])),
            site: Some(site),
        })
        .collect()
}

struct Found<'s, 't> {
    source: &'s Source,
    types: &'t Types<'t>,
    /// Parameters that are references, of the functions around.
    references: Vec<String>,
    /// With the type of the node, as far as it is told.
    sites: Vec<(String, Replacement)>,
}

impl Found<'_, '_> {
    fn text(&self, expr: &Expr) -> &str {
        &self.source.text[self.source.range(expr)]
    }

    /// Whether it is a variable, or an element of one, and no reference: no part of a node.
    fn is_variable(&self, place: &Expr) -> bool {
        match place {
            Expr::Path(_) => !self.references.iter().any(|name| mentions(place, name)),
            Expr::Index(it) => self.is_variable(&it.expr),
            Expr::Paren(it) => self.is_variable(&it.expr),
            _ => false,
        }
    }

    /// Something is stored below `hint`.
    fn stored(&mut self, value: &Expr, hint: &Expr) {
        let Some(hint) = place(hint) else { return };
        let boxed = peeled(value);
        let Expr::Call(call) = boxed else { return };
        let (Expr::Path(function), Some(name)) = (&*call.func, self.node(boxed)) else {
            return;
        };
        let root = root(hint).unwrap_or_default();
        let (hint, text) = (self.text(hint), self.text(boxed));
        let is_box = last_word(&function.path, 2) == ["Box", "new"];
        let are_plain = call
            .args
            .iter()
            .all(|it| is_plain(it) && !mentions(it, &root));
        let near = format!("ccmalloc::near(&{hint}, || ");
        let text = match call.args.first() {
            _ if are_plain => format!("{near}{text})"),
            Some(value) if is_box => {
                let name = if root == "value" { "new" } else { "value" };
                let (value, function) = (self.text(value), self.text(&call.func));
                format!("{{ let {name} = {value}; {near}{function}({name})) }}")
            }
            _ => return,
        };
        let range = self.source.range(boxed);
        self.sites.push((name, Replacement { range, text }));
    }

    /// The type of the node, if a new box has one or may have one; empty if it is not told.
    fn node(&self, boxed: &Expr) -> Option<String> {
        let known = BTreeMap::new();
        let is_node = |name: &str| self.types.is_recursive(name);
        let shape = self.types.shape(boxed, &known);
        if let Some(Link { to, .. }) = shape.as_ref().and_then(|it| self.types.link(it)) {
            return is_node(&to).then_some(to);
        }
        let Expr::Call(call) = boxed else { return None };
        let Expr::Path(function) = &*call.func else {
            return None;
        };
        if last_word(&function.path, 2) != ["Box", "new"] {
            return None;
        }
        // `Node::new(..)` and variants: a type's name is among the words.
        let path = match call.args.first()? {
            Expr::Call(inner) => match &*inner.func {
                Expr::Path(it) => Some(&it.path),
                _ => None,
            },
            Expr::Struct(it) => Some(&it.path),
            _ => None,
        };
        let words = path.into_iter().flat_map(|it| &it.segments);
        let mut words = words.map(|it| it.ident.to_string());
        match words.find(|word| self.types.declared(word).is_some()) {
            Some(name) => is_node(&name).then_some(name),
            None => self.types.names().any(is_node).then(String::new),
        }
    }

    fn within(&mut self, signature: &Signature, visit: impl FnOnce(&mut Self)) {
        if matches!(signature.safety, Safety::Unsafe(_)) {
            return;
        }
        let before = self.references.len();
        let names = signature.inputs.iter().filter_map(|it| match it {
            FnArg::Typed(it) => match (&*it.pat, &*it.ty) {
                (Pat::Ident(name), Type::Reference(_)) => Some(name.ident.to_string()),
                _ => None,
            },
            FnArg::Receiver(_) => None,
        });
        self.references.extend(names);
        visit(self);
        self.references.truncate(before);
    }
}

impl<'ast> Visit<'ast> for Found<'_, '_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.within(&item.sig, |it| syn::visit::visit_item_fn(it, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.within(&item.sig, |it| syn::visit::visit_impl_item_fn(it, item));
    }

    /// A hint there would be a reference to what a raw pointer leads to.
    fn visit_expr_unsafe(&mut self, _: &'ast ExprUnsafe) {}

    fn visit_expr_assign(&mut self, assign: &'ast ExprAssign) {
        syn::visit::visit_expr_assign(self, assign);
        if !self.is_variable(&assign.left) {
            self.stored(&assign.right, &assign.left);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        syn::visit::visit_expr_method_call(self, call);
        let (name, receiver) = (call.method.to_string(), &*call.receiver);
        let is_stored = match call.args.len() {
            1 if OF_OPTIONS.contains(&&*name) => true,
            1 => OF_LISTS.contains(&&*name) && !self.is_variable(receiver),
            2 => name == "insert" && !self.is_variable(receiver),
            _ => false,
        };
        if let Some(value) = call.args.last().filter(|_| is_stored) {
            self.stored(value, receiver);
        }
    }
}

/// The part of a place that can be named again: what methods start from.
fn place(expr: &Expr) -> Option<&Expr> {
    if is_named(expr) {
        return Some(expr);
    }
    match expr {
        Expr::Field(it) => place(&it.base),
        Expr::Index(it) => place(&it.expr),
        Expr::MethodCall(it) => place(&it.receiver),
        Expr::Paren(it) => place(&it.expr),
        Expr::Unary(it) => place(&it.expr),
        _ => None,
    }
}

fn is_named(expr: &Expr) -> bool {
    match expr {
        Expr::Path(it) => it.path.get_ident().is_some(),
        Expr::Field(it) => is_named(&it.base),
        Expr::Index(it) => is_named(&it.expr) && is_plain(&it.index),
        Expr::Paren(it) => is_named(&it.expr),
        Expr::Unary(it) => matches!(it.op, UnOp::Deref(_)) && is_named(&it.expr),
        _ => false,
    }
}

/// The variable of a place.
fn root(place: &Expr) -> Option<String> {
    match place {
        Expr::Path(it) => Some(it.path.get_ident()?.to_string()),
        Expr::Field(it) => root(&it.base),
        Expr::Index(it) => root(&it.expr),
        Expr::Unary(it) => root(&it.expr),
        Expr::Paren(it) => root(&it.expr),
        _ => None,
    }
}

/// A new box without what is around it, as `Some` and variants.
fn peeled(expr: &Expr) -> &Expr {
    let Expr::Call(call) = expr else { return expr };
    let is_around = match &*call.func {
        Expr::Path(it) => last_word(&it.path, 1)
            .concat()
            .starts_with(char::is_uppercase),
        _ => false,
    };
    match call.args.first() {
        Some(inner) if is_around && call.args.len() == 1 => peeled(inner),
        _ => expr,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "struct Node { kids: [Option<Box<Node>>; 2], all: Vec<Box<Node>> }\n\
                        struct Leaf { value: Option<Box<u8>> }\n\
                        impl Node { fn boxed(key: u8) -> Box<Node> { f() } }\n";

    fn edited(text: &str) -> String {
        let text = format!("{NODE}{text}");
        let sources = [Source::parse("src/a.rs".into(), text.clone()).unwrap()];
        let edits = edits(&sources[0], &Types::of(&sources));
        let all = super::super::merged(&edits);
        let text = all.first().map_or(text.clone(), |it| it.apply(&text));
        text[NODE.len()..].to_owned()
    }

    #[test]
    fn boxes_go_near_the_place_that_leads_to_them() {
        for (before, after) in [
            (
                "fn f(at: P) { *at = Some(Box::new(Node { kids: [None, None], all: a })); }",
                "fn f(at: P) { *at = Some(ccmalloc::near(&*at, || Box::new(Node { kids: \
                 [None, None], all: a }))); }",
            ),
            (
                "fn f() { node.kids[i + 1] = Some(Box::new(Node::new(k.clone()))); }",
                "fn f() { node.kids[i + 1] = Some({ let value = Node::new(k.clone()); \
                 ccmalloc::near(&node.kids[i + 1], || Box::new(value)) }); }",
            ),
            (
                "fn f() { *value = Some(Box::new(Node { next: value.take() })); }",
                "fn f() { *value = Some({ let new = Node { next: value.take() }; \
                 ccmalloc::near(&*value, || Box::new(new)) }); }",
            ),
            (
                "fn f(all: &mut Vec<N>) { all.push(Box::new(node)); self.a.b.push(Box::new(c)); }",
                "fn f(all: &mut Vec<N>) { all.push(ccmalloc::near(&all, || Box::new(node))); \
                 self.a.b.push(ccmalloc::near(&self.a.b, || Box::new(c))); }",
            ),
            (
                "fn f() { n[i].as_mut().unwrap().all.push(Node::boxed(3)); a.insert(Box::new(x)) }",
                "fn f() { n[i].as_mut().unwrap().all.push(ccmalloc::near(&n[i], || \
                 Node::boxed(3))); a.insert(ccmalloc::near(&a, || Box::new(x))) }",
            ),
        ] {
            assert_eq!(edited(before), after);
        }
    }

    #[test]
    fn other_boxes_stay() {
        for text in [
            "fn f() { root = Some(Box::new(node)); let a = Box::new(node); }",
            "fn f() { pool.push(Box::new(node)); nodes[i] = Some(Box::new(node)); }",
            "fn f() { self.leaf = Some(Box::new(Leaf { value: None })); }",
            "fn f() { unsafe { (*at).next = Some(Box::new(node)); } }",
            "unsafe fn f() { *at = Some(Box::new(node)); }",
            "fn f() { *at = Some(Box::new(Node)), make().left = Some(other(1)); }",
        ] {
            let text = text.replace("*at = Some(Box::new(Node)), ", "");
            assert_eq!(edited(&text), text);
        }
    }
}
