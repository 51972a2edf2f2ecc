//! `ccmorph` of a structure of boxes, once it is built: the type of the nodes gets the derive, and
//! the function that owns the root a call behind the statements that build.
//!
//! Nodes move, so that a package with `unsafe` code, or with a raw pointer to the type, is left
//! alone: nothing else could follow a pointer that dangles.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{Block, Expr, Item, Local, Pat, Stmt, Visibility};

use super::manifest::Dependency;
use super::types::{Declared, Function, Shape, Types};
use super::uses::{Access, Calls, bound, recursions, shape_by_use};
use super::{Edit, Replacement, Source, has_word, keys, last_word, separator};

/// The edits for each type of nodes of which a structure is built.
pub(super) fn edits(sources: &[Source], types: &Types<'_>) -> Vec<(String, Vec<Edit>)> {
    if sources.iter().any(Source::is_unsafe) {
        return Vec::new();
    }
    let nodes = types.names().filter_map(|name| Node::new(types, name));
    let all = nodes.filter_map(|node| {
        let mut sites: Vec<Site> = Vec::new();
        for source in sources {
            sites.extend(of_file(source, types, &node));
        }
        let built: BTreeSet<String> = sites
            .iter()
            .filter_map(|it| it.returned_by.clone())
            .collect();
        // What a function has laid out need not be laid out by its caller.
        sites.retain(|it| it.made_by.as_ref().is_none_or(|name| !built.contains(name)));
        if sites.is_empty() {
            return None;
        }
        let keys = keys(sites.iter().map(|it| &*it.key));
        let calls = sites.iter().zip(keys).map(|(site, key)| Edit {
            names: vec![node.name.clone()],
            path: site.path.clone(),
            replacements: site.replacements.clone(),
            probes: Vec::new(),
            needs: None,
            site: Some(key),
        });
        Some((
            node.name.clone(),
            [node.derived()].into_iter().chain(calls).collect(),
        ))
    });
    all.collect()
}

/// A type of nodes that own others of the type.
struct Node<'t, 's> {
    name: String,
    declared: &'t Declared<'s>,
    types: &'t Types<'s>,
    /// Whether some lie in the buffers of vectors.
    in_buffers: bool,
}

impl<'t, 's> Node<'t, 's> {
    fn new(types: &'t Types<'s>, name: &str) -> Option<Node<'t, 's>> {
        let links = types.links_to_itself(name);
        if links.is_empty() || types.is_pointed_to(name) {
            return None;
        }
        let declared = types.declared(name)?;
        let attributes = match declared.item {
            Item::Struct(it) => &it.attrs,
            Item::Enum(it) => &it.attrs,
            _ => return None,
        };
        let is_done = |it: &syn::Attribute| match &it.meta {
            syn::Meta::List(list) => has_word(list.tokens.clone(), "TreeNode"),
            _ => false,
        };
        (!attributes.iter().any(is_done)).then(|| Node {
            name: name.to_owned(),
            declared,
            types,
            in_buffers: links.iter().any(|(_, link)| link.in_buffer),
        })
    }

    /// The derive, and its marks on the links.
    fn derived(&self) -> Edit {
        let source = self.declared.source;
        let mut replacements = Vec::new();
        let mut insert = |part: &dyn Fn() -> usize, text: &str| {
            let at = part();
            let (range, text) = (at..at, format!("{text}{}", separator(source, at)));
            replacements.push(Replacement { range, text });
        };
        let start = |vis: &Visibility, next: usize| match vis {
            Visibility::Inherited => next,
            vis => source.range(vis).start,
        };
        insert(
            &|| match self.declared.item {
                Item::Struct(it) => start(&it.vis, source.range(&it.struct_token).start),
                Item::Enum(it) => start(&it.vis, source.range(&it.enum_token).start),
                other => source.range(other).start,
            },
            "#[derive(ccmorph::TreeNode)]",
        );
        for (field, _) in self.types.links_to_itself(&self.name) {
            let field = field.syntax;
            let next = match &field.ident {
                Some(ident) => source.range(ident).start,
                None => source.range(&field.ty).start,
            };
            insert(&|| start(&field.vis, next), "#[child]");
        }
        Edit {
            names: vec![self.name.clone()],
            path: source.path.clone(),
            replacements,
            probes: Vec::new(),
            needs: Some(Dependency::of_ours("ccmorph", "ccmorph", &[])),
            site: None,
        }
    }

    /// Where nodes hang below a variable of this type: it, or fields of it. Whether it is an owner
    /// of boxes, and not a node itself.
    fn roots(&self, shape: &Shape, source: &Source) -> Vec<(String, bool)> {
        if shape.name == self.name {
            return vec![(String::new(), false)];
        }
        if let Some(link) = self.types.link(shape) {
            return match link.to == self.name {
                true => vec![(String::new(), !link.in_buffer)],
                false => Vec::new(),
            };
        }
        let Some(owner) = self.types.declared(&shape.name) else {
            return Vec::new();
        };
        let is_seen = |vis: &Visibility| {
            std::ptr::eq(owner.source, source) || !matches!(vis, Visibility::Inherited)
        };
        let fields = owner.fields.iter().filter(|it| is_seen(&it.syntax.vis));
        let fields = fields.filter_map(|it| {
            let link = self
                .types
                .link(&it.shape)
                .filter(|link| link.to == self.name)?;
            Some((format!(".{}", it.syntax.ident.as_ref()?), !link.in_buffer))
        });
        let is_struct = matches!(owner.item, Item::Struct(_));
        fields.filter(|_| is_struct).collect()
    }

    /// The call that lays out what hangs below `root`.
    fn call(&self, root: &str, is_owner: bool, is_walked: bool) -> String {
        let how = match is_walked {
            true => ".operation(ccmorph::Operation::Walk)",
            false => "",
        };
        match (is_owner && !self.in_buffers, is_walked) {
            (true, false) => {
                format!("ccmorph::ccmorph(&mut {root}, ccmorph::TreeNode::children).ok();")
            }
            (true, true) => format!(
                "ccmorph::Morph::new(){how}.run(&mut {root}, ccmorph::TreeNode::children).ok();"
            ),
            (false, _) => format!("ccmorph::Morph::new(){how}.run_any(&mut {root}).ok();"),
        }
    }
}

/// A call of a morph.
struct Site {
    path: std::path::PathBuf,
    replacements: Vec<Replacement>,
    /// The function and the variable.
    key: String,
    /// The function that the variable's value comes from, and the one that returns it.
    made_by: Option<String>,
    returned_by: Option<String>,
}

fn of_file(source: &Source, types: &Types<'_>, node: &Node<'_, '_>) -> Vec<Site> {
    let mut sites = Vec::new();
    for function in types.functions() {
        let is_own = std::ptr::eq(function.source, source);
        let name = function.syntax.ident.to_string();
        let mut calls = Calls::default();
        calls.visit_block(function.body);
        // One that calls itself would lay each part out, many times.
        if !is_own || calls.names.contains(&name) {
            continue;
        }
        let names = function.syntax.inputs.iter().filter_map(|it| match it {
            syn::FnArg::Typed(it) => Some(bound(&it.pat).map(|(name, _)| name.to_string())),
            syn::FnArg::Receiver(_) => None,
        });
        let known = names.zip(&function.takes);
        let known = known.filter_map(|(name, shape)| Some((name?, shape.clone())));
        let mut builders = Builders {
            source,
            node,
            function,
            known: known.collect(),
            sites: Vec::new(),
        };
        builders.visit_block(function.body);
        sites.extend(builders.sites);
    }
    sites
}

/// Looks for variables below which a structure is built.
struct Builders<'a> {
    source: &'a Source,
    node: &'a Node<'a, 'a>,
    function: &'a Function<'a>,
    /// The types of variables.
    known: BTreeMap<String, Shape>,
    sites: Vec<Site>,
}

impl Visit<'_> for Builders<'_> {
    fn visit_item(&mut self, _: &Item) {}

    fn visit_block(&mut self, block: &Block) {
        let outer = self.known.clone();
        for (at, statement) in block.stmts.iter().enumerate() {
            self.visit_stmt(statement);
            if let Stmt::Local(local) = statement {
                self.declared(local, statement, &block.stmts[at + 1..], block);
            }
        }
        self.known = outer;
    }
}

impl Builders<'_> {
    fn declared(&mut self, local: &Local, statement: &Stmt, rest: &[Stmt], block: &Block) {
        let Some((ident, is_mutable)) = bound(&local.pat) else {
            return;
        };
        let name = ident.to_string();
        let types = self.node.types;
        let init = local.init.as_ref().map(|it| &*it.expr);
        let own = self.function.own.as_deref();
        let told = match &local.pat {
            Pat::Type(it) => Some(Shape::parse(&it.ty, own)),
            _ => init.and_then(|it| types.shape(it, &self.known)),
        };
        let is_body = std::ptr::eq(block, self.function.body);
        let is_returned = is_body && is_tail(rest, &name);
        let returns = self.function.returns.as_ref().filter(|_| is_returned);
        let shape = told
            .or_else(|| returns.cloned())
            .or_else(|| shape_by_use(&name, types, &self.known, rest));
        let Some(shape) = shape else {
            self.known.remove(&name);
            return;
        };
        self.known.insert(name.clone(), shape.clone());
        let is_ref = ["&", "&mut"].contains(&&*shape.name);
        let roots = self.node.roots(&shape, self.source);
        if is_ref || roots.is_empty() {
            return;
        }
        let Some((last, is_walked)) = self.built(&name, init, statement, rest, is_returned) else {
            return;
        };
        let end = self.source.range(last).end;
        let indent = separator(self.source, self.source.range(statement).start);
        for (below, is_owner) in roots {
            let call = self
                .node
                .call(&format!("{name}{below}"), is_owner, is_walked);
            let mut replacements = vec![Replacement {
                range: end..end,
                text: format!("{indent}{call}"),
            }];
            if !is_mutable {
                let at = self.source.range(ident).start;
                let text = "mut ".to_owned();
                replacements.push(Replacement {
                    range: at..at,
                    text,
                });
            }
            let function = self.function.syntax.ident.to_string();
            self.sites.push(Site {
                path: self.source.path.clone(),
                replacements,
                key: format!("{function} {name}{below}"),
                made_by: init.and_then(called),
                returned_by: is_returned.then_some(function),
            });
        }
    }

    /// The last statement that builds before the first that reads, and whether that walks through
    /// all nodes.
    fn built<'b>(
        &self,
        name: &str,
        init: Option<&Expr>,
        statement: &'b Stmt,
        rest: &'b [Stmt],
        is_returned: bool,
    ) -> Option<(&'b Stmt, bool)> {
        let is_empty = init.is_none_or(is_empty);
        let mut last = (!is_empty).then_some(statement);
        for next in rest {
            if let Stmt::Local(local) = next
                && bound(&local.pat).is_some_and(|(ident, _)| ident == name)
            {
                return None;
            }
            let types = self.node.types;
            let access = Access::of(name, types, next);
            match last {
                _ if access.changes => last = Some(next),
                Some(last) if access.reads => return Some((last, self.is_walked(next))),
                _ => {}
            }
        }
        last.filter(|_| is_returned).map(|last| (last, false))
    }

    /// Whether a statement calls a function that follows all links.
    fn is_walked(&self, statement: &Stmt) -> bool {
        let mut calls = Calls::default();
        calls.visit_stmt(statement);
        let mut called = calls
            .names
            .iter()
            .flat_map(|name| self.node.types.called(name));
        called.any(|function| {
            let name = function.syntax.ident.to_string();
            recursions(&name, function.body.stmts.iter()) >= 2
        })
    }
}

/// Whether an expression makes a structure without nodes, or with one.
fn is_empty(init: &Expr) -> bool {
    match init {
        Expr::Path(_) | Expr::Struct(_) | Expr::Macro(_) | Expr::Repeat(_) => true,
        Expr::Call(it) => {
            let Expr::Path(path) = &*it.func else {
                return false;
            };
            let name = last_word(&path.path, 1).concat();
            let is_around = name.starts_with(char::is_uppercase);
            ["new", "default", "with_capacity"].contains(&&*name)
                || is_around && it.args.iter().all(is_empty)
        }
        _ => false,
    }
}

/// The last statement is this variable.
fn is_tail(rest: &[Stmt], name: &str) -> bool {
    match rest.last() {
        Some(Stmt::Expr(it, None)) => is_returned(it, name),
        Some(Stmt::Expr(Expr::Return(it), _)) => {
            it.expr.as_ref().is_some_and(|it| is_returned(it, name))
        }
        _ => false,
    }
}

fn is_returned(expr: &Expr, name: &str) -> bool {
    matches!(expr, Expr::Path(it) if it.path.is_ident(name))
}

/// The function that a value comes from.
fn called(init: &Expr) -> Option<String> {
    let Expr::Call(it) = init else { return None };
    let Expr::Path(path) = &*it.func else {
        return None;
    };
    last_word(&path.path, 1).pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "/// Of a tree.
#[derive(Debug)]
pub struct Node {
    key: u64,
    pub left: Option<Box<Node>>,
    right: Option<Box<Self>>,
}
";
    const DERIVED: &str = "/// Of a tree.
#[derive(Debug)]
#[derive(ccmorph::TreeNode)]
pub struct Node {
    key: u64,
    #[child]
    pub left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Self>>,
}
";
    const CALL: &str = "ccmorph::ccmorph(&mut root, ccmorph::TreeNode::children).ok();";

    fn edited(text: &str) -> Option<String> {
        let sources = [Source::parse("src/a.rs".into(), text.to_owned()).unwrap()];
        let (_, edits) = edits(&sources, &Types::of(&sources)).pop()?;
        Some(super::super::merged(&edits)[0].apply(text))
    }

    /// The text of functions after the edit; the same if there is none.
    fn with_node(functions: &str) -> String {
        let text = format!("{NODE}{functions}");
        match edited(&text) {
            Some(after) => after.strip_prefix(DERIVED).unwrap().to_owned(),
            None => functions.to_owned(),
        }
    }

    /// A line more behind each that ends so.
    fn followed(text: &str, end: &str, line: &str) -> String {
        text.replace(end, &format!("{end}\n    {line}"))
    }

    #[test]
    fn a_call_follows_the_statements_that_build() {
        // By the parameter's type; what reads ends the search.
        let by_parameter = "fn insert(to: &mut Option<Box<Node>>, key: u64) {}
fn main() {
    let mut root = None;
    for key in 0..9 { insert(&mut root, key); }
    for key in 0..9 { find(&root, key); }
    insert(&mut root, 1);
}
";
        let by_value = "fn main() {
    let mut root = None;
    for key in 0..9 {
        let mut at = &mut root;
        while let Some(node) = at { at = &mut node.left; }
        *at = Some(Box::new(Node { key }));
    }
    println!(\"{}\", total(&root));
}
";
        // The caller need not do it, too.
        let by_result = "fn build() -> Option<Box<Node>> {
    let mut root = None;
    while f() { g(&mut root); }
    root
}
fn main() {
    let root = build();
    for key in 0..9 { find(&root, key); }
}
";
        for (before, last) in [
            (by_parameter, "insert(&mut root, key); }"),
            (by_value, "Node { key }));\n    }"),
            (by_result, "g(&mut root); }"),
        ] {
            assert_eq!(with_node(before), followed(before, last, CALL));
        }
    }

    #[test]
    fn a_value_from_elsewhere_is_laid_out_at_once() {
        let text = "fn main() {
    let mut nodes: Vec<Option<Box<Node>>> = f();
    link(&mut nodes);
    let root = nodes[0].take().unwrap();
    drop(nodes);
    for _ in 0..35 { sum += total(std::hint::black_box(&root)); }
}
fn total(node: &Node) -> u64 { node.key + total(&node.left) + total(&node.right) }
";
        let call = "ccmorph::Morph::new().operation(ccmorph::Operation::Walk)\
                    .run(&mut root, ccmorph::TreeNode::children).ok();";
        let expected = text.replace("let root", "let mut root");
        assert_eq!(with_node(text), followed(&expected, "unwrap();", call));
    }

    #[test]
    fn owners_and_other_shapes_are_found() {
        let text = "type Link<T> = Option<Box<Entry<T>>>;
pub enum Entry<T> { End, Of(u8, Link<T>) }
struct List { len: u8, first: Link<u8> }
impl List { fn add(&mut self) {} fn sum(&self) -> u8 { 3 } }
fn main() {
    let mut list = List { len: 0, first: None };
    list.add();
    println!(\"{}\", list.sum());
}
";
        let expected = text.replace("pub enum", "#[derive(ccmorph::TreeNode)]\npub enum");
        let expected = expected.replace("u8, Link<T>", "u8, #[child] Link<T>");
        let call = "ccmorph::ccmorph(&mut list.first, ccmorph::TreeNode::children).ok();";
        assert_eq!(edited(text), Some(followed(&expected, "list.add();", call)));

        let text = "struct Dir { dirs: Vec<Dir> }
fn main() {
    let dir: Dir = read();
    for _ in 0..9 { visit(&dir); }
}
";
        let expected = text.replace("struct Dir", "#[derive(ccmorph::TreeNode)]\nstruct Dir");
        let expected = expected.replace("dirs:", "#[child] dirs:");
        let expected = expected.replace("let dir", "let mut dir");
        let call = "ccmorph::Morph::new().run_any(&mut dir).ok();";
        assert_eq!(edited(text), Some(followed(&expected, "read();", call)));
    }

    #[test]
    fn other_structures_stay() {
        let main = "fn main() { let mut root: Option<Box<Node>> = None; f(&mut root); g(&root); }";
        assert_ne!(with_node(main), main);
        for other in [
            "fn h() { unsafe {} }\n",
            "struct Cursor { at: *const Node }\n",
            "impl Node { fn at(&self) -> NonNull<Self> { f() } }\n",
        ] {
            let text = format!("{main}{other}");
            assert_eq!(with_node(&text), text);
        }
        for text in [
            "fn main() { let mut root: Option<Box<Node>> = None; f(root); }\n",
            "fn main() { let mut root: Option<Box<Node>> = None; f(&root); }\n",
            "fn main() { let mut root: Option<Rc<Node>> = None; f(&mut root); g(&root); }\n",
            "fn f() -> Box<Node> { let root: Box<Node> = f(); root }\n",
            "fn main() { let mut root: &mut Box<Node> = f(); g(root); h(&root); }\n",
        ] {
            assert_eq!(with_node(text), text);
        }
        let is_done = NODE.replace("Debug", "ccmorph::TreeNode") + main;
        assert_eq!(edited(&is_done), None);
    }
}
