//! What the sources of a package say of its types: by names alone, as far as no name has two
//! meanings. Whether a conclusion holds, the compiler decides.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;
use syn::{
    Expr, Fields, FnArg, GenericArgument, ImplItemFn, Item, ItemEnum, ItemFn, ItemImpl, ItemStruct,
    ItemType, Lit, PathArguments, ReceiverKind, ReturnType, Signature, Type,
};

use super::Source;

/// A type by the last words of its paths, without lifetimes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// `&`, `&mut`, `*`, `[]` and `()` of what has no name.
    pub(super) name: String,
    pub(super) of: Vec<Shape>,
}

impl Shape {
    pub(super) fn new(name: &str, of: Vec<Shape>) -> Shape {
        let name = name.to_owned();
        Shape { name, of }
    }

    pub(super) fn parse(ty: &Type, own: Option<&str>) -> Shape {
        let one = |name: &str, ty: &Type| Shape::new(name, vec![Shape::parse(ty, own)]);
        match ty {
            Type::Path(it) => {
                let Some(last) = it.path.segments.last() else {
                    return Shape::new("", Vec::new());
                };
                let of = match &last.arguments {
                    PathArguments::AngleBracketed(list) => { list.args.iter() }
                        .filter_map(|it| match it {
                            GenericArgument::Type(ty) => Some(Shape::parse(ty, own)),
                            _ => None,
                        })
                        .collect(),
                    _ => Vec::new(),
                };
                let name = last.ident.to_string();
                match own {
                    Some(own) if name == "Self" => Shape::new(own, of),
                    _ => Shape { name, of },
                }
            }
            Type::Reference(it) if it.mutability.is_some() => one("&mut", &it.elem),
            Type::Reference(it) => one("&", &it.elem),
            Type::Ptr(it) => one("*", &it.elem),
            Type::Array(it) => one("[]", &it.elem),
            Type::Slice(it) => one("[]", &it.elem),
            Type::Paren(it) => Shape::parse(&it.elem, own),
            Type::Group(it) => Shape::parse(&it.elem, own),
            Type::Tuple(it) => {
                let of = it.elems.iter().map(|ty| Shape::parse(ty, own));
                Shape::new("()", of.collect())
            }
            _ => Shape::new("", Vec::new()),
        }
    }

    /// Without references around it.
    pub(super) fn behind(&self) -> &Shape {
        match (&*self.name, &*self.of) {
            ("&" | "&mut", [inner]) => inner.behind(),
            _ => self,
        }
    }

    /// What a collection or an option has.
    fn item(&self) -> Option<&Shape> {
        let is_one = ["Option", "Result", "Vec", "VecDeque", "[]"].contains(&&*self.name);
        self.of.first().filter(|_| is_one)
    }
}

/// A field of a struct or of a variant.
pub(super) struct Field<'s> {
    pub(super) syntax: &'s syn::Field,
    pub(super) shape: Shape,
}

/// A struct or an enum.
pub(super) struct Declared<'s> {
    pub(super) source: &'s Source,
    pub(super) item: &'s Item,
    pub(super) fields: Vec<Field<'s>>,
}

/// What a function takes and returns.
pub(super) struct Function<'s> {
    pub(super) source: &'s Source,
    /// The type that it is of.
    pub(super) own: Option<String>,
    pub(super) syntax: &'s Signature,
    pub(super) body: &'s syn::Block,
    /// Without the receiver.
    pub(super) takes: Vec<Shape>,
    pub(super) returns: Option<Shape>,
}

impl Function<'_> {
    pub(super) fn changes_receiver(&self) -> bool {
        let receiver = self.syntax.receiver();
        receiver.is_some_and(|it| matches!(it.kind, ReceiverKind::Reference(_, _, Some(_))))
    }
}

/// How a field leads to nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The type of the node.
    pub(super) to: String,
    /// Whether nodes lie in the buffer of a vector.
    pub(super) in_buffer: bool,
}

/// The types and functions of a package.
#[derive(Default)]
pub(super) struct Types<'s> {
    declared: BTreeMap<String, Vec<Declared<'s>>>,
    aliases: BTreeMap<String, Vec<Shape>>,
    functions: BTreeMap<String, Vec<Function<'s>>>,
    /// Types that a raw pointer may lead to.
    pointed_to: BTreeSet<String>,
}

impl<'s> Types<'s> {
    pub(super) fn of(sources: &'s [Source]) -> Types<'s> {
        let mut types = Types::default();
        for source in sources {
            let mut reader = Reader {
                types: &mut types,
                source,
                own: None,
            };
            reader.visit_file(&source.syntax);
        }
        types
    }

    /// A type of this name, if the package has one.
    pub(super) fn declared(&self, name: &str) -> Option<&Declared<'s>> {
        match &**self.declared.get(name)? {
            [one] => Some(one),
            _ => None,
        }
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(|name| &**name)
    }

    pub(super) fn functions(&self) -> impl Iterator<Item = &Function<'s>> {
        self.functions.values().flatten()
    }

    pub(super) fn called(&self, name: &str) -> &[Function<'s>] {
        self.functions.get(name).map_or(&[], |all| all)
    }

    pub(super) fn is_pointed_to(&self, name: &str) -> bool {
        self.pointed_to.contains(name)
    }

    /// What an alias of the package stands for.
    fn resolved<'t>(&'t self, shape: &'t Shape) -> &'t Shape {
        match self.aliases.get(&shape.name).map(|all| &**all) {
            Some([one]) if one.name != shape.name => self.resolved(one),
            _ => shape,
        }
    }

    /// The nodes that something of this shape owns, if they are of one type of the package.
    pub(super) fn link(&self, shape: &Shape) -> Option<Link> {
        let shape = self.resolved(shape);
        let inner = self.resolved(shape.of.last()?);
        let to = |in_buffer| {
            let to = inner.name.clone();
            let is_node = self.declared(&to).is_some();
            is_node.then_some(Link { to, in_buffer })
        };
        match &*shape.name {
            "Box" => to(false).or_else(|| (inner.name == "[]").then(|| self.link(inner))?),
            "Vec" => to(true).or_else(|| self.link(inner)),
            "[]" if shape.of.len() == 1 => self.link(inner),
            "Option" | "VecDeque" | "HashMap" | "BTreeMap" => self.link(inner),
            _ => None,
        }
    }

    /// The fields of a type that own nodes of the same type.
    pub(super) fn links_to_itself(&self, name: &str) -> Vec<(&Field<'s>, Link)> {
        let fields = self.declared(name).into_iter().flat_map(|it| &it.fields);
        let own = |field: &'_ Field<'s>| self.link(&field.shape).filter(|link| link.to == name);
        fields.filter_map(|it| Some((it, own(it)?))).collect()
    }

    /// Whether a value of this type can own another of it, over others, too.
    pub(super) fn is_recursive(&self, name: &str) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![name]);
        while let Some(at) = open.pop() {
            let fields = self.declared(at).into_iter().flat_map(|it| &it.fields);
            let mut shapes: Vec<&Shape> = fields.map(|field| &field.shape).collect();
            while let Some(shape) = shapes.pop() {
                let shape = self.resolved(shape);
                if shape.name == name {
                    return true;
                }
                if ["*", "&", "&mut"].contains(&&*shape.name) {
                    continue;
                }
                if seen.insert(&*shape.name) {
                    open.push(&shape.name);
                }
                shapes.extend(&shape.of);
            }
        }
        false
    }

    /// The type of an expression, where `known` has those of variables.
    pub(super) fn shape(&self, expr: &Expr, known: &BTreeMap<String, Shape>) -> Option<Shape> {
        let of = |expr| self.shape(expr, known);
        match expr {
            Expr::Path(it) => known.get(&it.path.get_ident()?.to_string()).cloned(),
            Expr::Paren(it) => of(&it.expr),
            Expr::Struct(it) => {
                let name = it.path.segments.last()?.ident.to_string();
                let is_variant = self.declared(&name).is_none() && it.path.segments.len() > 1;
                let enum_name = || it.path.segments.iter().rev().nth(1).map(|it| &it.ident);
                let name = if is_variant {
                    enum_name()?.to_string()
                } else {
                    name
                };
                self.declared(&name)?;
                Some(Shape::new(&name, Vec::new()))
            }
            Expr::Reference(it) => Some(Shape::new("&", vec![of(&it.expr)?])),
            Expr::Index(it) => {
                let shape = of(&it.expr)?;
                self.resolved(shape.behind()).item().cloned()
            }
            Expr::Field(it) => {
                let shape = of(&it.base)?;
                let inner = match self.resolved(shape.behind()) {
                    boxed if boxed.name == "Box" => boxed.of.first()?,
                    other => other,
                };
                let member = &it.member;
                let mut fields = self.declared(&inner.name)?.fields.iter();
                let found = fields.find(|field| match (member, &field.syntax.ident) {
                    (syn::Member::Named(name), Some(ident)) => name == ident,
                    _ => false,
                })?;
                Some(found.shape.clone())
            }
            Expr::Call(it) => {
                let Expr::Path(path) = &*it.func else {
                    return None;
                };
                let words: Vec<String> = { path.path.segments.iter() }
                    .map(|it| it.ident.to_string())
                    .collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                match (&words[..], it.args.first()) {
                    (["Some"], Some(inner)) => Some(Shape::new("Option", vec![of(inner)?])),
                    ([.., "Box", "new"], Some(inner)) => Some(Shape::new("Box", vec![of(inner)?])),
                    ([.., own, name], _) => self.returned(name, Some(own)),
                    ([name], _) => self.returned(name, None),
                    _ => None,
                }
            }
            Expr::MethodCall(it) => {
                let shape = of(&it.receiver)?;
                let shape = self.resolved(shape.behind());
                let item = || shape.item().cloned();
                let has_number = matches!(
                    it.args.first(),
                    Some(Expr::Lit(lit)) if matches!(lit.lit, Lit::Int(_))
                );
                match &*it.method.to_string() {
                    "take" => Some(shape.clone()),
                    "unwrap" | "expect" | "unwrap_or_default" => item(),
                    "swap_remove" => item(),
                    "remove" if has_number && shape.name == "Vec" => item(),
                    "pop" | "pop_front" | "pop_back" => Some(Shape::new("Option", vec![item()?])),
                    name => self.returned(name, Some(&shape.name)),
                }
            }
            _ => None,
        }
    }

    /// What a function of this name returns, if all of a type, or all that are of none, agree.
    fn returned(&self, name: &str, own: Option<&str>) -> Option<Shape> {
        let mut all = self.called(name).iter();
        let first = all.find(|it| it.own.as_deref() == own || own.is_some() && it.own.is_none())?;
        let is_other = all.any(|it| it.own == first.own && it.returns != first.returns);
        first.returns.clone().filter(|_| !is_other)
    }
}

struct Reader<'t, 's> {
    types: &'t mut Types<'s>,
    source: &'s Source,
    /// The type that is being declared, or that functions are of.
    own: Option<String>,
}

impl<'s> Reader<'_, 's> {
    fn declare(
        &mut self,
        name: &syn::Ident,
        item: &'s Item,
        fields: impl Iterator<Item = &'s Fields>,
    ) {
        let name = name.to_string();
        let fields = fields.flatten().map(|syntax| Field {
            syntax,
            shape: Shape::parse(&syntax.ty, Some(&name)),
        });
        let declared = Declared {
            source: self.source,
            item,
            fields: fields.collect(),
        };
        self.types.declared.entry(name).or_default().push(declared);
    }

    fn function(&mut self, syntax: &'s Signature, body: &'s syn::Block) {
        let own = self.own.clone();
        let shape = |ty: &Type| Shape::parse(ty, own.as_deref());
        let takes = syntax.inputs.iter().filter_map(|it| match it {
            FnArg::Typed(it) => Some(shape(&it.ty)),
            FnArg::Receiver(_) => None,
        });
        let returns = match &syntax.output {
            ReturnType::Type(_, ty) => Some(shape(ty)),
            ReturnType::Default => None,
        };
        let function = Function {
            source: self.source,
            takes: takes.collect(),
            returns,
            syntax,
            body,
            own: own.clone(),
        };
        let name = syntax.ident.to_string();
        let all = self.types.functions.entry(name).or_default();
        all.push(function);
    }

    /// `name` may be one of any type where no name is told.
    fn pointed_to(&mut self, shape: &Shape) {
        let own = self.own.clone();
        let name = match &*shape.name {
            "Self" => own.unwrap_or_default(),
            name => name.to_owned(),
        };
        self.types.pointed_to.insert(name);
        for inner in &shape.of {
            self.pointed_to(inner);
        }
    }
}

impl<'s> Visit<'s> for Reader<'_, 's> {
    fn visit_item(&mut self, item: &'s Item) {
        let outer = self.own.take();
        match item {
            Item::Struct(ItemStruct { ident, fields, .. }) => {
                self.own = Some(ident.to_string());
                self.declare(ident, item, [fields].into_iter());
            }
            Item::Enum(ItemEnum {
                ident, variants, ..
            }) => {
                self.own = Some(ident.to_string());
                self.declare(ident, item, variants.iter().map(|it| &it.fields));
            }
            Item::Type(ItemType { ident, ty, .. }) => {
                let shape = Shape::parse(ty, None);
                let all = self.types.aliases.entry(ident.to_string()).or_default();
                all.push(shape);
            }
            Item::Impl(ItemImpl { self_ty, .. }) => {
                self.own = Some(Shape::parse(self_ty, None).name);
            }
            _ => {}
        }
        syn::visit::visit_item(self, item);
        self.own = outer;
    }

    fn visit_item_fn(&mut self, item: &'s ItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'s ImplItemFn) {
        self.function(&item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_type(&mut self, ty: &'s Type) {
        let shape = Shape::parse(ty, self.own.as_deref());
        if ["*", "NonNull"].contains(&&*shape.name) {
            self.pointed_to(&shape);
        }
        syn::visit::visit_type(self, ty);
    }
}
