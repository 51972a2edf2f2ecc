//! Nodes of several types that own each other: statements and expressions, leaves and inner nodes,
//! trait objects, vectors.
//!
//! Where all nodes are of one type, the type says what a link is and how its node is visited and
//! moved. Here each node brings that along: its size and alignment, and a [`Kind`], two functions
//! that know its type. The collector keeps both for each node; all else of a morph goes by them.
//!
//! # Why this is as safe
//!
//! The argument is that of the module `links`, with [`AnyLinks::show_any`] as the traversal: it
//! borrows the node for `'a`, which is any lifetime, and so is each link that it shows. So links
//! are disjoint, stay where they are, and nobody else uses them until the morph ends. A node's kind
//! is that of the type of the very link that was shown.
//!
//! The nodes are boxes of any type, sized or not, and the buffers of vectors: safe code that has
//! `&mut Box<T>` or `&mut Vec<T>` may move what these own to another place, so this may.

use crate::collect::{Collector, ErasedLink, Shown};
use crate::link::Global;
use crate::plan::node_extent;
use crate::{Back, Link, Links, Place, Pointers, Visitor};
use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::marker::PhantomData;

/// How nodes of one type are visited, and the links to them written, in a structure of several
/// types.
#[derive(Clone, Copy)]
#[expect(
    unreachable_pub,
    reason = "part of `Visitor`, whose fields are private"
)]
pub struct Kind<'a> {
    pub(crate) link: ErasedLink,
    /// Shows what the node owns.
    ///
    /// # Safety
    ///
    /// The link was made from a `&'a mut` to a link of this kind, its node is the one that it
    /// holds, and neither has been used since, but for what a collector keeps of them. It is called
    /// once.
    pub(crate) visit: unsafe fn(Shown, &mut AnyVisitor<'_, 'a>),
}

impl fmt::Debug for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").finish_non_exhaustive()
    }
}

/// What a node of a structure of several types is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Each<'a> {
    pub(crate) size: NodeSize,
    /// `None` for a node of the type that the traversal is for.
    pub(crate) kind: Option<&'a Kind<'a>>,
}

impl Each<'_> {
    /// A node of the type that the traversal is for. Its size is filled in at the end.
    pub(crate) const OF_ONE_TYPE: Self = Each {
        size: NodeSize::STAYS,
        kind: None,
    };
}

/// The layout of a node that can be placed, which is not empty, or that it cannot.
// Invariant: `bytes` is 0, or this is the size and the alignment of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeSize {
    bytes: u32,
    align: u32,
}

impl NodeSize {
    /// Of a node that stays where it is.
    pub(crate) const STAYS: NodeSize = NodeSize { bytes: 0, align: 1 };

    pub(crate) fn of(layout: Layout) -> NodeSize {
        match (u32::try_from(layout.size()), u32::try_from(layout.align())) {
            (Ok(bytes), Ok(align)) if matches!(node_extent(layout), Ok(Some(_))) => {
                NodeSize { bytes, align }
            }
            _ => NodeSize::STAYS,
        }
    }

    /// `None` for a node that stays.
    #[inline]
    pub(crate) fn layout(self) -> Option<Layout> {
        let layout = Layout::from_size_align(self.bytes as usize, self.align as usize);
        layout.ok().filter(|layout| layout.size() > 0)
    }
}

/// What a node owns: places that own nodes of any types. A field marked `#[child]` may be of any
/// such type.
///
/// [`#[derive(TreeNode)]`](macro@crate::TreeNode) implements it for a node: as a part of another
/// one, in a vector or behind a box, it shows its own children. By hand, show the fields; there is
/// nothing to get wrong, see [the traversal's contract](crate#why-this-is-safe).
///
/// | type | what moves |
/// |---|---|
/// | `Box<T>` | the node; `T` may be a slice, or a trait object with the supertrait `AnyLinks` |
/// | `Vec<T>` | the buffer with its elements, as one |
/// | options, arrays, tuples of up to four, `VecDeque`, values of maps | what the elements own |
///
/// # Examples
///
/// Statements own expressions, which own statements:
///
/// ```
/// # #[global_allocator]
/// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
/// use ccmorph::{Morph, TreeNode, ccmorph};
///
/// #[derive(TreeNode)]
/// enum Statement {
///     Evaluate(#[child] Expression),
///     While { #[child] condition: Expression, #[child] body: Vec<Statement> },
/// }
///
/// #[derive(TreeNode)]
/// enum Expression {
///     Number(f64),
///     Sum(#[child] Box<Expression>, #[child] Box<Expression>),
///     Block(#[child] Vec<Statement>),
/// }
///
/// use Expression::{Block, Number, Sum};
/// let sum = Sum(Box::new(Number(1.0)), Box::new(Block(vec![Statement::Evaluate(Number(2.0))])));
/// let mut program = vec![Statement::While { condition: sum, body: Vec::new() }];
///
/// // Two vectors' buffers and two boxes.
/// assert_eq!(Morph::new().run_any(&mut program)?.nodes, 4);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
///
/// Trait objects. The supertrait is all that it takes:
///
/// ```
/// # #[global_allocator]
/// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
/// use ccmorph::{AnyLinks, Morph, TreeNode};
///
/// trait Shape: AnyLinks {
///     fn area(&self) -> f64;
/// }
///
/// struct Square(f64);
/// impl AnyLinks for Square {} // owns no nodes
/// impl Shape for Square {
///     fn area(&self) -> f64 { self.0 * self.0 }
/// }
///
/// #[derive(TreeNode)]
/// struct Group(#[child] Vec<Box<dyn Shape>>);
/// impl Shape for Group {
///     fn area(&self) -> f64 { self.0.iter().map(|shape| shape.area()).sum() }
/// }
///
/// let mut all: Box<dyn Shape> = Box::new(Group(vec![Box::new(Square(1.0)),
/// Box::new(Square(2.0))])); assert_eq!(Morph::new().run_any(&mut all)?.nodes, 4);
/// assert_eq!(all.area(), 5.0);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
///
/// What it is not for does not compile, and the message says what to do instead:
///
/// ```compile_fail,E0277
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     #[child]
///     children: Vec<std::rc::Rc<Node>>,
/// }
/// ```
///
/// ```compile_fail,E0277
/// #[derive(ccmorph::TreeNode)]
/// struct Node {
///     #[child]
///     child: Option<Box<dyn std::fmt::Debug>>,
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` owns no nodes that a morph can move",
    label = "holds no boxes or vectors of nodes",
    note = "for a struct or enum: `#[derive(ccmorph::TreeNode)]`, with `#[child]` on the fields \
            that own nodes; for a node without children: an empty `impl ccmorph::AnyLinks`",
    note = "for `Box<dyn Trait>`: make `ccmorph::AnyLinks` a supertrait of the trait",
    note = "for `Rc` and `Arc`, which do not move: own each node by a `Box` and mark the other \
            references, as raw pointers, `#[pointer]`; or keep the nodes in a `Vec` and use \
            `ccmorph::IndexMorph`",
    note = "for a collection of another crate: `#[child(each)]`, which calls its `iter_mut`",
    note = "for a box with an allocator: write it out in the field's type, as in \
            `Option<Box<Node, &Heap>>`; the derive does not see through a type alias, and all \
            nodes are then of one type"
)]
pub trait AnyLinks: Unpin {
    /// Shows `visitor` what owns nodes, in the order in which the nodes count as siblings, and
    /// pointers back.
    ///
    /// By default there is nothing to show: the node has no children.
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        let _ = visitor;
    }
}

/// What [`AnyLinks::show_any`] tells of: links to nodes of any types, and pointers back.
///
/// `'a` is the lifetime of the borrow that they share.
#[derive(Debug)]
pub struct AnyVisitor<'v, 'a> {
    collector: &'v mut Collector<'a, Global>,
}

impl<'v, 'a> AnyVisitor<'v, 'a> {
    pub(crate) fn of(collector: &'v mut Collector<'a, Global>) -> AnyVisitor<'v, 'a> {
        AnyVisitor { collector }
    }

    /// Shows a field of the node, or another place that lives as long.
    #[inline]
    pub fn show<A: AnyLinks + ?Sized>(&mut self, links: &'a mut A) {
        links.show_any(self);
    }

    /// Shows places of a type that implements [`Links`] alone.
    pub fn links<L: Links<Link = Box<T>> + ?Sized, T: AnyLinks + 'a>(&mut self, links: &'a mut L) {
        self.collector.push_kinds(links, Boxed::<T>::KIND);
    }

    /// Shows pointers that own nothing, which will follow the nodes that they point to, whatever
    /// their type.
    pub fn pointers<T: 'a, P: Pointers<T> + ?Sized>(&mut self, pointers: &'a mut P) {
        let collector = &mut *self.collector;
        pointers.show(&mut |place: Place<'a, T>| {
            collector.push_pointer::<Box<Unshown>>(place.as_ptr().cast());
        });
    }
}

/// The kind of what a `Box<T>` owns.
struct Boxed<'a, T: ?Sized>(PhantomData<&'a mut T>);

impl<'a, T: AnyLinks + ?Sized + 'a> Boxed<'a, T> {
    const KIND: &'a Kind<'a> = &Kind {
        link: ErasedLink::box_of::<T>(),
        visit: visit_boxed::<T>,
    };
}

/// # Safety
///
/// As for [`Kind::visit`]; links are `Box<T>`.
unsafe fn visit_boxed<'a, T: AnyLinks + ?Sized + 'a>(
    shown: Shown,
    visitor: &mut AnyVisitor<'_, 'a>,
) {
    // SAFETY: the place of a box that is borrowed for 'a (the caller's promise). Only its pointer
    // is read, by which nothing is accessed yet.
    let held: *mut T = unsafe { &raw mut **shown.link.cast::<Box<T>>() };
    let node = with_address(held, shown.node);
    // SAFETY: the pointer that the box holds, to an initialised node, with what the box knows of
    // its size. The box is borrowed for 'a, and this is the one reference to its node, as each link
    // is visited once (the caller's promise).
    unsafe { &mut *node }.show_any(visitor);
}

/// A pointer to what begins at `address`, of the size or type that `pointer` knows.
///
/// # Panics
///
/// When the address is another one than that of `pointer`: only the right to access the node may
/// differ.
fn with_address<T: ?Sized>(mut pointer: *mut T, address: *mut u8) -> *mut T {
    assert!(
        pointer.addr() == address.addr(),
        "a pointer to another node"
    );
    let word: *mut *mut u8 = (&raw mut pointer).cast();
    // SAFETY: a pointer is as large and as aligned as one to a sized type at least. It begins with
    // its address, as the box did whose node this is: that is all of it where the type is sized,
    // and for others `AnyLinks::show_any` of boxes has looked.
    unsafe { word.write(address) };
    pointer
}

impl<T: AnyLinks + ?Sized> AnyLinks for Box<T> {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        let layout = Layout::for_value(&**self);
        let link: *mut Box<T> = self;
        // SAFETY: a reference for 'a just now. Only the pointer in the box is read.
        let node: *mut T = unsafe { &raw mut **link };
        // SAFETY: as above; a box is a pointer, and so at least as large and as aligned as this.
        let first_word = unsafe { link.cast::<*mut u8>().read() };
        if first_word.addr() == node.addr() {
            let (link, node) = (link.cast(), node.cast());
            visitor
                .collector
                .push_kind(Shown { link, node }, layout, Boxed::<T>::KIND);
        } else {
            // Pointers to slices and trait objects are their address and what goes with it, in this
            // order, in all versions of Rust so far, without a promise. In another order, the node
            // stays.
            debug_assert!(
                layout.size() == 0,
                "a pointer that does not begin with its address"
            );
        }
    }
}

/// The kind of what a `Vec<T>` owns: its buffer.
struct Buffer<'a, T>(PhantomData<&'a mut T>);

impl<'a, T: AnyLinks + 'a> Buffer<'a, T> {
    const KIND: &'a Kind<'a> = &Kind {
        link: ErasedLink::buffer_of::<T>(),
        visit: visit_buffer::<T>,
    };
}

/// # Safety
///
/// As for [`Kind::visit`]; links are `Vec<T>`.
unsafe fn visit_buffer<'a, T: AnyLinks + 'a>(shown: Shown, visitor: &mut AnyVisitor<'_, 'a>) {
    // SAFETY: the place of a vector that is borrowed for 'a (the caller's promise). It says how
    // long it is.
    let len = unsafe { (*shown.link.cast::<Vec<T>>()).len() };
    // SAFETY: the vector's buffer, with so many initialised elements. The vector is borrowed for
    // 'a, and this is the one reference to its elements, as each link is visited once (the caller's
    // promise).
    let elements: &'a mut [T] = unsafe { std::slice::from_raw_parts_mut(shown.node.cast(), len) };
    elements.show_any(visitor);
}

/// Makes a vector own another buffer of the same capacity and, once it is written, with the same
/// elements.
///
/// # Safety
///
/// As for [`OwningPointer::point_to`](crate::link::OwningPointer::point_to), of a `Vec<T>` and a
/// buffer.
pub(crate) unsafe fn point_vec_to<T>(link: *mut (), buffer: *mut u8) {
    let link = link.cast::<Vec<T>>();
    // SAFETY: a link of this type, which nothing else refers to (the caller's promise). Neither
    // looks into the buffer.
    let (len, capacity) = unsafe { ((*link).len(), (*link).capacity()) };
    // SAFETY: allocated by the global allocator for as many elements, the layout of the old buffer,
    // and owned by nobody else; the elements are initialised when the vector is used next (the
    // caller's promise). Until then it is three numbers.
    let vec: Vec<T> = unsafe { Vec::from_raw_parts(buffer.cast(), len, capacity) };
    // SAFETY: valid for writes (the caller's promise). Overwriting runs no destructor.
    unsafe { link.write(vec) };
}

impl<T: AnyLinks> AnyLinks for Vec<T> {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        // An error is a buffer that there is not; one of no size, such as before the first element,
        // is skipped.
        if let Ok(layout) = Layout::array::<T>(self.capacity()) {
            let shown = Shown {
                node: self.as_mut_ptr().cast(),
                link: std::ptr::from_mut(self).cast(),
            };
            visitor
                .collector
                .push_kind(shown, layout, Buffer::<T>::KIND);
        }
    }
}

/// Implements [`AnyLinks`] for collections: each element shows what it owns.
macro_rules! collections {
    ($([$($generics:tt)*] $collection:ty: $elements:ident;)*) => {$(
        impl<$($generics)*> AnyLinks for $collection {
            #[inline]
            fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
                for element in self.$elements() {
                    element.show_any(visitor);
                }
            }
        }
    )*};
}

collections! {
    [T: AnyLinks] Option<T>: iter_mut;
    [T: AnyLinks] [T]: iter_mut;
    [T: AnyLinks, const N: usize] [T; N]: iter_mut;
    [T: AnyLinks] VecDeque<T>: iter_mut;
    [K: Unpin, T: AnyLinks] BTreeMap<K, T>: values_mut;
    [K: Unpin, T: AnyLinks, S: Unpin] HashMap<K, T, S>: values_mut;
}

macro_rules! tuples {
    ($(($($element:ident)*))*) => {$(
        impl<$($element: AnyLinks),*> AnyLinks for ($($element,)*) {
            #[inline]
            #[expect(non_snake_case, reason = "the names of the types")]
            fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
                let ($($element,)*) = self;
                $($element.show_any(visitor);)*
            }
        }
    )*};
}

tuples! {
    (A)
    (A B)
    (A B C)
    (A B C D)
}

/// [`AnyLinks`] in the place of [`Links`], so that a traversal of one type can show links to
/// others; made by [`any`].
#[derive(Debug)]
#[repr(transparent)]
pub struct Any<A: ?Sized, L> {
    link: PhantomData<fn() -> L>,
    links: A,
}

/// Shows links to nodes of other types, which show their own children by [`AnyLinks`]:
/// `visit(any(&mut node.condition))`.
///
/// The traversal is called for the nodes that it is for, and that it shows without `any`. Fields of
/// other types that are marked `#[child]` are shown so by
/// [`#[derive(TreeNode)]`](macro@crate::TreeNode).
///
/// # Examples
///
/// ```
/// # #[global_allocator]
/// # static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();
/// use ccmorph::{AnyLinks, any, ccmorph};
///
/// struct Leaf([u64; 4]);
/// impl AnyLinks for Leaf {}
/// struct Inner { next: Option<Box<Inner>>, leaves: [Option<Box<Leaf>>; 2] }
///
/// let leaf = || Some(Box::new(Leaf([7; 4])));
/// let mut root = Box::new(Inner { next: None, leaves: [leaf(), leaf()] });
/// let report = ccmorph(&mut root, |node, visit| {
///     visit(&mut node.next);
///     visit(any(&mut node.leaves));
/// })?;
/// assert_eq!(report.nodes, 3);
/// # assert_eq!(root.leaves.each_ref().map(|leaf| leaf.as_ref().unwrap().0), [[7; 4]; 2]);
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
#[inline]
pub fn any<A: ?Sized, L>(links: &mut A) -> &mut Any<A, L> {
    let any = std::ptr::from_mut(links) as *mut Any<A, L>;
    // SAFETY: `Any` is `repr(transparent)` over `A`, its other field being of size 0 and alignment
    // 1. So the pointer is aligned and valid for as long as the reference that it was made from,
    // which is borrowed meanwhile.
    unsafe { &mut *any }
}

impl<A: AnyLinks + ?Sized, L: Link<Home = Global>> Links for Any<A, L> {
    type Link = L;

    #[inline]
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, L>) {
        visitor.any(&mut self.links);
    }
}

impl<L: Link, P: Pointers<L::Node> + Unpin + ?Sized> AnyLinks for Back<P, L> {
    #[inline]
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        visitor.pointers::<L::Node, P>(self.pointers_mut());
    }
}

/// The node of a structure none of whose links is shown without [`any`].
///
/// Of an alignment with which no pointer [lies in](crate::collect::lies_in) it.
pub(crate) struct Unshown(#[expect(dead_code, reason = "so that it has a size")] u8);

/// What the code of `#[derive(TreeNode)]` uses.
#[doc(hidden)]
pub mod derive {
    use super::{Any, AnyLinks, AnyVisitor, any};
    use crate::{Back, Link, Links, Pointers, back};
    use std::marker::PhantomData;

    /// A field, to be shown by the first of the methods that is there for its type: that of the
    /// type itself, or that of the trait.
    #[derive(Debug)]
    pub struct Child<'a, F: ?Sized, L>(&'a mut F, PhantomData<fn() -> L>);

    pub fn child<F: ?Sized, L>(field: &mut F) -> Child<'_, F, L> {
        Child(field, PhantomData)
    }

    impl<'a, F: Links<Link = L> + ?Sized, L> Child<'a, F, L> {
        pub fn links(self) -> &'a mut F {
            self.0
        }
    }

    impl<'a, F: Pointers<L::Node> + ?Sized, L: Link> Child<'a, F, L> {
        pub fn pointers(self) -> &'a mut Back<F, L> {
            back(self.0)
        }
    }

    /// Where links or pointers lead to nodes of other types.
    pub trait OrAny<'a> {
        type Field: ?Sized;
        type Link;

        fn pointers<T>(self) -> &'a mut Any<Back<Self::Field, Box<T>>, Self::Link>
        where
            Self::Field: Pointers<T> + Unpin;

        fn links(self) -> &'a mut Any<Self::Field, Self::Link>
        where
            Self::Field: AnyLinks;
    }

    impl<'a, F: ?Sized, L> OrAny<'a> for Child<'a, F, L> {
        type Field = F;
        type Link = L;

        fn pointers<T>(self) -> &'a mut Any<Back<F, Box<T>>, L>
        where
            F: Pointers<T> + Unpin,
        {
            any(back(self.0))
        }

        fn links(self) -> &'a mut Any<F, L>
        where
            F: AnyLinks,
        {
            any(self.0)
        }
    }

    impl<'a, F: AnyLinks + ?Sized> Child<'a, F, ()> {
        pub fn show(self, visitor: &mut AnyVisitor<'_, 'a>) {
            visitor.show(self.0);
        }
    }

    /// What implements [`Links`] alone.
    pub trait OrLinks<'a> {
        type Field: ?Sized;

        fn show<T: AnyLinks + 'a>(self, visitor: &mut AnyVisitor<'_, 'a>)
        where
            Self::Field: Links<Link = Box<T>>;
    }

    impl<'a, F: ?Sized> OrLinks<'a> for Child<'a, F, ()> {
        type Field = F;

        fn show<T: AnyLinks + 'a>(self, visitor: &mut AnyVisitor<'_, 'a>)
        where
            F: Links<Link = Box<T>>,
        {
            visitor.links(self.0);
        }
    }
}
