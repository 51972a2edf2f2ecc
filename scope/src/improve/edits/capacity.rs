//! Room for all that a loop pushes: `Vec::with_capacity(n)` in the place of `Vec::new()`, where the
//! next loop of the block pushes once each time, and says how often it runs.

use std::collections::BTreeSet;

use syn::visit::Visit;
use syn::{
    Block, Expr, ExprBreak, ExprClosure, ExprContinue, ExprForLoop, ExprLoop, ExprReturn, ExprTry,
    ExprWhile, FnArg, ImplItemFn, ItemConst, ItemFn, Local, Pat, RangeLimits, Stmt, Type,
};

use super::{Edit, Replacement, Source, keys, last_word, mentions};

/// Collections, and the methods that add one element.
const ADDING: [(&str, &[&str]); 6] = [
    ("BinaryHeap", &["push"]),
    ("HashMap", &["insert"]),
    ("HashSet", &["insert"]),
    ("String", &["push"]),
    ("Vec", &["push"]),
    ("VecDeque", &["push_back", "push_front"]),
];
/// Methods of iterators that yield as many elements.
const AS_MANY: [&str; 8] = [
    "cloned",
    "copied",
    "drain",
    "enumerate",
    "into_iter",
    "iter",
    "iter_mut",
    "rev",
];

/// The edits of a file, one for each collection.
pub(super) fn edits(source: &Source) -> Vec<Edit> {
    let mut found = Found {
        source,
        numbers: BTreeSet::new(),
        sites: Vec::new(),
    };
    found.visit_file(&source.syntax);
    let keys = keys(found.sites.iter().map(|(name, _)| &**name));
    let sites = found.sites.iter().zip(keys);
    sites
        .map(|((name, replacement), site)| Edit {
            names: vec![name.clone()],
            path: source.path.clone(),
            replacements: vec![replacement.clone()],
            probes: Vec::new(),
            needs: None,
            site: Some(site),
        })
        .collect()
}

struct Found<'s> {
    source: &'s Source,
    /// Names of the file that have the type `usize`.
    numbers: BTreeSet<String>,
    sites: Vec<(String, Replacement)>,
}

/// An empty collection in a variable.
struct Empty<'a> {
    name: String,
    init: &'a Expr,
    adding: &'static [&'static str],
}

impl Found<'_> {
    fn text(&self, expr: &Expr) -> &str {
        &self.source.text[self.source.range(expr)]
    }

    fn with_room(&self, empty: &Empty<'_>, room: &str) -> Replacement {
        let range = self.source.range(empty.init);
        let (range, text) = match empty.init {
            Expr::Call(call) => {
                let function = self.source.range(&*call.func);
                let start = function.end - "new".len();
                (start..range.end, format!("with_capacity({room})"))
            }
            _ => (range, format!("Vec::with_capacity({room})")),
        };
        Replacement { range, text }
    }

    /// How many elements a loop over this has.
    fn count(&self, over: &Expr) -> Option<String> {
        match over {
            Expr::Paren(it) => self.count(&it.expr),
            Expr::Range(range) => {
                let (start, end) = (range.start.as_deref()?, range.end.as_deref()?);
                if !is_count(start) || !is_count(end) {
                    return None;
                }
                let is_open = matches!(range.limits, RangeLimits::HalfOpen(_));
                let is_usize = self.is_usize(start) || self.is_usize(end);
                Some(match self.text(start) {
                    "0" if is_open && is_usize => self.text(end).to_owned(),
                    _ if is_open && is_usize => format!("({}).len()", self.text(over)),
                    _ => format!("({}).size_hint().0", self.text(over)),
                })
            }
            Expr::MethodCall(it) if AS_MANY.contains(&&*it.method.to_string()) => {
                self.count(&it.receiver)
            }
            Expr::Reference(it) => self.count(&it.expr),
            _ => is_place(over).then(|| format!("{}.len()", self.text(over))),
        }
    }

    fn is_usize(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Lit(it) => match &it.lit {
                // Without a type it takes that of the other end.
                syn::Lit::Int(it) => it.suffix() == "usize",
                _ => false,
            },
            Expr::Path(it) => {
                { it.path.get_ident() }.is_some_and(|name| self.numbers.contains(&name.to_string()))
            }
            Expr::Paren(it) => self.is_usize(&it.expr),
            Expr::Cast(it) => is_usize(&it.ty),
            Expr::Binary(it) => self.is_usize(&it.left) || self.is_usize(&it.right),
            Expr::MethodCall(it) => it.method == "len",
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_fn_arg(&mut self, arg: &'ast FnArg) {
        if let FnArg::Typed(it) = arg
            && let (Pat::Ident(name), true) = (&*it.pat, is_usize(&it.ty))
        {
            self.numbers.insert(name.ident.to_string());
        }
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        if is_usize(&item.ty) {
            self.numbers.insert(item.ident.to_string());
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        let before = self.numbers.clone();
        syn::visit::visit_item_fn(self, item);
        self.numbers = before;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        let before = self.numbers.clone();
        syn::visit::visit_impl_item_fn(self, item);
        self.numbers = before;
    }

    fn visit_local(&mut self, local: &'ast Local) {
        syn::visit::visit_local(self, local);
        let init = local.init.as_ref().map(|it| &*it.expr);
        let (pat, is_number) = match &local.pat {
            Pat::Type(it) => (&*it.pat, is_usize(&it.ty)),
            pat => (pat, init.is_some_and(|it| self.is_usize(it))),
        };
        if let (Pat::Ident(name), true) = (pat, is_number) {
            self.numbers.insert(name.ident.to_string());
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        for (at, statement) in block.stmts.iter().enumerate() {
            self.visit_stmt(statement);
            let Some(empty) = empty(statement) else {
                continue;
            };
            let rest = &block.stmts[at + 1..];
            let between = rest
                .iter()
                .take_while(|it| matches!(it, Stmt::Local(_)))
                .count();
            let Some(Stmt::Expr(Expr::ForLoop(next), _)) = rest.get(between) else {
                continue;
            };
            let locals = rest[..between].iter().filter_map(|it| match it {
                Stmt::Local(it) => Some(it),
                _ => None,
            });
            let is_free = |it: &Local| {
                let init = it.init.as_ref();
                let is_used = init.is_some_and(|it| mentions(&it.expr, &empty.name));
                let name = bound(&it.pat);
                // What the loop runs over is there before, or that cannot be told.
                !is_used && name.is_some_and(|name| !mentions(&next.expr, &name))
            };
            let is_fit = locals.clone().all(is_free)
                && !mentions(&next.expr, &empty.name)
                && adds_one(next, &empty);
            if let Some(room) = self.count(&next.expr).filter(|_| is_fit) {
                self.sites
                    .push((empty.name.clone(), self.with_room(&empty, &room)));
            }
        }
    }
}

/// `let mut name = Vec::new()` and its like.
fn empty(statement: &Stmt) -> Option<Empty<'_>> {
    let Stmt::Local(local) = statement else {
        return None;
    };
    let (name, init) = (bound(&local.pat)?, &*local.init.as_ref()?.expr);
    let of = match init {
        Expr::Call(call) if call.args.is_empty() => match &*call.func {
            Expr::Path(it) => match &last_word(&it.path, 2)[..] {
                [of, new] if new == "new" => of.clone(),
                _ => return None,
            },
            _ => return None,
        },
        Expr::Macro(it) if it.mac.path.is_ident("vec") && it.mac.tokens.is_empty() => {
            "Vec".to_owned()
        }
        _ => return None,
    };
    let (_, adding) = ADDING.iter().find(|(name, _)| *name == of)?;
    Some(Empty { name, init, adding })
}

fn bound(pat: &Pat) -> Option<String> {
    match pat {
        Pat::Ident(it) => Some(it.ident.to_string()),
        Pat::Type(it) => bound(&it.pat),
        _ => None,
    }
}

/// Whether each turn of the loop adds one element, and none ends the loop.
fn adds_one(it: &ExprForLoop, empty: &Empty<'_>) -> bool {
    let is_adding = |statement: &&Stmt| match statement {
        Stmt::Expr(Expr::MethodCall(call), _) => {
            let is_own = |it: &Expr| matches!(it, Expr::Path(it) if it.path.is_ident(&empty.name));
            is_own(&call.receiver) && empty.adding.contains(&&*call.method.to_string())
        }
        _ => false,
    };
    let mut ends = Ends {
        depth: 0,
        is_one: false,
    };
    ends.visit_block(&it.body);
    !ends.is_one && it.body.stmts.iter().filter(is_adding).count() == 1
}

/// Looks for what ends a turn of a loop early.
struct Ends {
    /// Loops around that are inner ones.
    depth: usize,
    is_one: bool,
}

impl Ends {
    fn inner(&mut self, visit: impl FnOnce(&mut Self)) {
        self.depth += 1;
        visit(self);
        self.depth -= 1;
    }
}

impl<'ast> Visit<'ast> for Ends {
    fn visit_expr_break(&mut self, it: &'ast ExprBreak) {
        self.is_one |= self.depth == 0 || it.label.is_some();
    }

    fn visit_expr_continue(&mut self, it: &'ast ExprContinue) {
        self.is_one |= self.depth == 0 || it.label.is_some();
    }

    fn visit_expr_return(&mut self, _: &'ast ExprReturn) {
        self.is_one = true;
    }

    fn visit_expr_try(&mut self, _: &'ast ExprTry) {
        self.is_one = true;
    }

    fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}

    fn visit_expr_for_loop(&mut self, it: &'ast ExprForLoop) {
        self.inner(|ends| syn::visit::visit_expr_for_loop(ends, it));
    }

    fn visit_expr_loop(&mut self, it: &'ast ExprLoop) {
        self.inner(|ends| syn::visit::visit_expr_loop(ends, it));
    }

    fn visit_expr_while(&mut self, it: &'ast ExprWhile) {
        self.inner(|ends| syn::visit::visit_expr_while(ends, it));
    }
}

fn is_usize(ty: &Type) -> bool {
    matches!(ty, Type::Path(it) if it.path.is_ident("usize"))
}

/// Whether it is a variable or a part of one.
fn is_place(expr: &Expr) -> bool {
    match expr {
        Expr::Path(it) => it.path.get_ident().is_some(),
        Expr::Field(it) => is_place(&it.base),
        Expr::Unary(it) => matches!(it.op, syn::UnOp::Deref(_)) && is_place(&it.expr),
        Expr::Paren(it) => is_place(&it.expr),
        _ => false,
    }
}

/// Whether a number can be evaluated twice.
fn is_count(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(_) | Expr::Path(_) => true,
        Expr::Binary(it) => is_count(&it.left) && is_count(&it.right),
        Expr::Cast(it) => is_count(&it.expr),
        Expr::Field(it) => is_place(&it.base),
        Expr::Paren(it) => is_count(&it.expr),
        Expr::Unary(it) => is_count(&it.expr),
        Expr::MethodCall(it) => it.method == "len" && is_place(&it.receiver),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str) -> String {
        let source = Source::parse("src/a.rs".into(), text.to_owned()).unwrap();
        let edits = edits(&source);
        let all = super::super::merged(&edits);
        all.first().map_or(text.to_owned(), |it| it.apply(text))
    }

    #[test]
    fn loops_say_how_much_room_is_needed() {
        let push = "{ f(i); v.push(i); }";
        for (new, over, room) in [
            ("Vec::new()", "0..n", "n"),
            ("Vec::<u8>::new()", "0..2 * n", "2 * n"),
            ("Vec::new()", "0..m", "(0..m).size_hint().0"),
            ("vec![]", "1..n", "(1..n).len()"),
            ("String::new()", "1..=n", "(1..=n).size_hint().0"),
            ("Vec::new()", "0..a.b.len()", "a.b.len()"),
            (
                "BinaryHeap::new()",
                "(0..1000).rev()",
                "(0..1000).size_hint().0",
            ),
            ("Vec::new()", "&all", "all.len()"),
            (
                "Vec::new()",
                "self.all.iter().enumerate()",
                "self.all.len()",
            ),
            ("std::vec::Vec::new()", "all", "all.len()"),
        ] {
            let text = |new: &str| {
                let body = format!("let mut v = {new}; let x = 1; for i in {over} {push}");
                format!("fn f(n: usize, m: u64) {{ {body} }}")
            };
            let expected = match new {
                "vec![]" => format!("Vec::with_capacity({room})"),
                _ => new.replace("new()", &format!("with_capacity({room})")),
            };
            assert_eq!(edited(&text(new)), text(&expected));
        }
        let text = "fn f() { let n = a.len(); let mut v = VecDeque::new(); for i in 0..n { \
                    for j in 0..i { if j > 3 { break; } } v.push_front(i) } }";
        assert_eq!(edited(text), text.replace("new()", "with_capacity(n)"));
    }

    #[test]
    fn loops_that_do_not_say_it_stay() {
        for body in [
            "let mut v = Vec::new(); for i in 0..n { if i > 3 { v.push(i); } }",
            "let mut v = Vec::new(); for i in 0..n { if i > 3 { continue; } v.push(i); }",
            "let mut v = Vec::new(); for i in 0..n { v.push(i); v.push(i); }",
            "let mut v = Vec::new(); let n = 5; for i in 0..n { v.push(i); }",
            "let mut v = Vec::new(); let (n, m) = f(); for i in 0..n { v.push(i); }",
            "let mut v = Vec::new(); g(); for i in 0..n { v.push(i); }",
            "let mut v = Vec::new(); for i in 0..f() { v.push(i); }",
            "let mut v = Vec::new(); for i in text.lines() { v.push(i); }",
            "let mut v = Vec::new(); for i in 0..v.len() { v.push(i); }",
            "let mut v = Vec::new(); for i in 0..n { if f() { return; } v.push(g(i)?); }",
            "let mut v = Vec::new(); for i in 0..n { v.push(g(i)?); }",
            "let mut v = Other::new(); for i in 0..n { v.push(i); }",
            "let mut v = Vec::new(); for i in 0..n { w.push(i); }",
        ] {
            let text = format!("fn f(n: usize) {{ {body} }}");
            assert_eq!(edited(&text), text);
        }
    }
}
