//! What code does with variables and functions, by their names.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{
    Expr, ExprAssign, ExprCall, ExprClosure, ExprForLoop, ExprLoop, ExprMethodCall, ExprPath,
    ExprReference, ExprWhile, Item, Local, Macro, Pat, PatIdent, Stmt, UnOp,
};

use super::types::{Function, Shape, Types};
use super::{has_word, last_word, mentions};

/// Methods of the standard library by which links change.
const CHANGING: [&str; 21] = [
    "append",
    "as_deref_mut",
    "as_mut",
    "clear",
    "drain",
    "entry",
    "extend",
    "get_mut",
    "get_or_insert",
    "get_or_insert_with",
    "insert",
    "iter_mut",
    "last_mut",
    "pop",
    "push",
    "push_back",
    "push_front",
    "remove",
    "replace",
    "swap",
    "take",
];

/// How often a function calls itself at most, where arms exclude each other; in a loop twice.
pub(super) fn recursions<'a>(name: &str, statements: impl Iterator<Item = &'a Stmt>) -> usize {
    let mut counted = Recursions { name, count: 0 };
    for statement in statements {
        counted.visit_stmt(statement);
    }
    counted.count
}

struct Recursions<'n> {
    name: &'n str,
    count: usize,
}

impl Recursions<'_> {
    fn of(&self, visit: impl FnOnce(&mut Self)) -> usize {
        let mut inner = Recursions {
            name: self.name,
            count: 0,
        };
        visit(&mut inner);
        inner.count
    }
}

impl<'ast> Visit<'ast> for Recursions<'_> {
    fn visit_item(&mut self, _: &'ast Item) {}

    fn visit_expr_call(&mut self, it: &'ast ExprCall) {
        syn::visit::visit_expr_call(self, it);
        if let Expr::Path(path) = &*it.func {
            self.count += usize::from(last_word(&path.path, 1) == [self.name]);
        }
    }

    fn visit_expr_method_call(&mut self, it: &'ast ExprMethodCall) {
        syn::visit::visit_expr_method_call(self, it);
        self.count += usize::from(it.method == self.name);
        // `node.kids.iter().map(total)`, and with a closure.
        let is_iterated = || {
            let mut calls = Calls::default();
            calls.visit_expr(&it.receiver);
            ["iter", "iter_mut", "into_iter", "values"]
                .iter()
                .any(|it| calls.names.contains(*it))
        };
        for argument in &it.args {
            let inner = match argument {
                Expr::Path(path) => usize::from(last_word(&path.path, 1) == [self.name]),
                Expr::Closure(closure) => self.of(|it| it.visit_expr(&closure.body)),
                _ => 0,
            };
            if inner > 0 && is_iterated() {
                self.count += 2;
            }
        }
    }

    fn visit_expr_for_loop(&mut self, it: &'ast ExprForLoop) {
        self.count += 2 * self.of(|inner| syn::visit::visit_expr_for_loop(inner, it));
    }

    fn visit_expr_if(&mut self, it: &'ast syn::ExprIf) {
        self.visit_expr(&it.cond);
        let then = self.of(|inner| inner.visit_block(&it.then_branch));
        let other = it.else_branch.as_ref();
        let other = other.map_or(0, |(_, other)| self.of(|inner| inner.visit_expr(other)));
        self.count += then.max(other);
    }

    fn visit_expr_match(&mut self, it: &'ast syn::ExprMatch) {
        self.visit_expr(&it.expr);
        let arms = it
            .arms
            .iter()
            .map(|arm| self.of(|inner| inner.visit_expr(&arm.body)));
        self.count += arms.max().unwrap_or(0);
    }
}

/// The names of all that is called.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) names: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Calls {
    fn visit_expr_path(&mut self, it: &'ast ExprPath) {
        self.names.extend(last_word(&it.path, 1));
    }

    fn visit_expr_method_call(&mut self, it: &'ast ExprMethodCall) {
        self.names.insert(it.method.to_string());
        syn::visit::visit_expr_method_call(self, it);
    }

    fn visit_macro(&mut self, it: &'ast Macro) {
        self.words(it.tokens.clone());
    }
}

impl Calls {
    fn words(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.words(group.stream()),
                TokenTree::Ident(ident) => drop(self.names.insert(ident.to_string())),
                _ => {}
            }
        }
    }
}

/// What a statement does with a variable.
pub(super) struct Access<'a> {
    name: &'a str,
    types: &'a Types<'a>,
    /// Loops and closures around.
    depth: usize,
    pub(super) reads: bool,
    pub(super) changes: bool,
}

impl<'a> Access<'a> {
    pub(super) fn of(name: &'a str, types: &'a Types<'a>, statement: &Stmt) -> Access<'a> {
        let mut access = Access {
            name,
            types,
            depth: 0,
            reads: false,
            changes: false,
        };
        access.visit_stmt(statement);
        access
    }

    fn is_it(&self, place: &Expr) -> bool {
        root(place).is_some_and(|root| root.path.is_ident(self.name))
    }

    fn inner(&mut self, visit: impl FnOnce(&mut Self)) {
        self.depth += 1;
        visit(self);
        self.depth -= 1;
    }

    fn is_changing(&self, method: &str) -> bool {
        match self.types.called(method) {
            [] => CHANGING.contains(&method),
            all => all.iter().any(Function::changes_receiver),
        }
    }
}

impl<'ast> Visit<'ast> for Access<'_> {
    fn visit_expr_path(&mut self, it: &'ast ExprPath) {
        // Elsewhere it is moved.
        self.reads |= self.depth > 0 && it.path.is_ident(self.name);
    }

    fn visit_expr_reference(&mut self, it: &'ast ExprReference) {
        if self.is_it(&it.expr) {
            match it.mutability {
                Some(_) => self.changes = true,
                None => self.reads = true,
            }
        }
        syn::visit::visit_expr_reference(self, it);
    }

    fn visit_expr_method_call(&mut self, it: &'ast ExprMethodCall) {
        if self.is_it(&it.receiver) {
            match self.is_changing(&it.method.to_string()) {
                true => self.changes = true,
                false => self.reads = true,
            }
        }
        syn::visit::visit_expr_method_call(self, it);
    }

    fn visit_expr_assign(&mut self, it: &'ast ExprAssign) {
        self.changes |= self.is_it(&it.left);
        syn::visit::visit_expr_assign(self, it);
    }

    fn visit_pat_ident(&mut self, it: &'ast PatIdent) {
        self.changes |= it.by_ref.is_some() && it.mutability.is_some() && self.reads;
    }

    fn visit_macro(&mut self, it: &'ast Macro) {
        if has_word(it.tokens.clone(), self.name) {
            let text = it.tokens.to_string().replace(' ', "");
            self.changes |= text.contains(&format!("&mut{}", self.name));
            self.reads = true;
        }
    }

    fn visit_expr_for_loop(&mut self, it: &'ast ExprForLoop) {
        self.visit_expr(&it.expr);
        self.inner(|inner| inner.visit_block(&it.body));
    }

    fn visit_expr_while(&mut self, it: &'ast ExprWhile) {
        self.inner(|inner| syn::visit::visit_expr_while(inner, it));
    }

    fn visit_expr_loop(&mut self, it: &'ast ExprLoop) {
        self.inner(|inner| syn::visit::visit_expr_loop(inner, it));
    }

    fn visit_expr_closure(&mut self, it: &'ast ExprClosure) {
        self.inner(|inner| syn::visit::visit_expr_closure(inner, it));
    }
}

/// The type of a variable by what statements do with it.
pub(super) fn shape_by_use(
    name: &str,
    types: &Types<'_>,
    known: &BTreeMap<String, Shape>,
    statements: &[Stmt],
) -> Option<Shape> {
    let mut uses = Uses {
        name,
        types,
        known,
        references: Vec::new(),
        shape: None,
    };
    for statement in statements {
        uses.visit_stmt(statement);
    }
    uses.shape
}

/// Finds a variable's type by what is done with it.
struct Uses<'a> {
    name: &'a str,
    types: &'a Types<'a>,
    known: &'a BTreeMap<String, Shape>,
    /// Variables that refer to it.
    references: Vec<String>,
    shape: Option<Shape>,
}

impl Uses<'_> {
    fn is_it(&self, expr: &Expr) -> bool {
        matches!(expr, Expr::Path(it) if it.path.is_ident(self.name))
    }

    fn found(&mut self, shape: Option<Shape>) {
        self.shape = self.shape.take().or(shape);
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_local(&mut self, it: &'ast Local) {
        if let (Some((name, _)), Some(init)) = (bound(&it.pat), &it.init)
            && let Expr::Reference(to) = &*init.expr
            && self.is_it(&to.expr)
        {
            self.references.push(name.to_string());
        }
        syn::visit::visit_local(self, it);
    }

    fn visit_expr_assign(&mut self, it: &'ast ExprAssign) {
        let is_it = match &*it.left {
            Expr::Unary(left) if matches!(left.op, UnOp::Deref(_)) => self
                .references
                .iter()
                .any(|name| mentions(&left.expr, name)),
            left => self.is_it(left),
        };
        if is_it {
            self.found(self.types.shape(&it.right, self.known));
        }
        syn::visit::visit_expr_assign(self, it);
    }

    fn visit_expr_call(&mut self, it: &'ast ExprCall) {
        let at = it.args.iter().position(|argument| match argument {
            Expr::Reference(to) => to.mutability.is_some() && self.is_it(&to.expr),
            _ => false,
        });
        if let (Some(at), Expr::Path(path)) = (at, &*it.func)
            && let [name] = &last_word(&path.path, 1)[..]
            && let [function] = self.types.called(name)
            && function.syntax.receiver().is_none()
        {
            self.found(function.takes.get(at).map(|shape| shape.behind().clone()));
        }
        syn::visit::visit_expr_call(self, it);
    }
}

/// The variable that a place is a part of.
fn root(place: &Expr) -> Option<&ExprPath> {
    match place {
        Expr::Path(it) => Some(it),
        Expr::Field(it) => root(&it.base),
        Expr::Index(it) => root(&it.expr),
        Expr::Paren(it) => root(&it.expr),
        Expr::Unary(it) if matches!(it.op, UnOp::Deref(_)) => root(&it.expr),
        _ => None,
    }
}

/// The name that a pattern binds, and whether it is `mut`.
pub(super) fn bound(pat: &Pat) -> Option<(&syn::Ident, bool)> {
    match pat {
        Pat::Ident(it) if it.by_ref.is_none() => Some((&it.ident, it.mutability.is_some())),
        Pat::Type(it) => bound(&it.pat),
        _ => None,
    }
}
