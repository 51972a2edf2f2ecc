//! Links, the traversal that shows them, and what is written down meanwhile.
//!
//! # Why showing a link proves that the node may move
//!
//! A traversal has the type
//!
//! ```text
//! for<'a> FnMut(&'a mut T, &mut dyn FnMut(&'a mut dyn Links<Link = Box<T>>))
//! ```
//!
//! and the lifetime `'a` of the node's borrow is also that of each link shown. Three things follow,
//! for all safe code:
//!
//! 1. *A link that was shown is out of reach.* It stays mutably borrowed for `'a`, which outlives
//!    the call. So the traversal cannot drop, replace or read it afterwards, nor show it again.
//! 2. *A link that is shown stays where it is.* It is borrowed for `'a`, so it is part of the node
//!    or of memory that outlives the call. A local variable does not.
//! 3. *No borrow is kept.* The caller may choose any `'a`, so nothing that the traversal captured
//!    can hold a reference of that lifetime.
//!
//! With one `'a` for all nodes, all collected links and their nodes are valid and disjoint at once.
//! Safe code could then replace the boxes one by one: `*link = Box::new(*replace(link, ..))`. What
//! the three points exclude does not compile:
//!
//! ```compile_fail,E0499
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Showing a link twice.
//! let _ = ccmorph::ccmorph(&mut root, |node, visit| {
//!     visit(&mut node.left);
//!     visit(&mut node.left);
//! });
//! ```
//!
//! ```compile_fail,E0506
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Replacing a link after showing it.
//! let _ = ccmorph::ccmorph(&mut root, |node, visit| {
//!     visit(&mut node.left);
//!     node.left = None;
//! });
//! ```
//!
//! ```compile_fail,E0597
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Showing a link of a local variable.
//! let _ = ccmorph::ccmorph(&mut root, |node, visit| {
//!     let mut local = node.left.take();
//!     visit(&mut local);
//! });
//! ```
//!
//! ```compile_fail,E0521
//! # struct Node { left: Option<Box<Node>> }
//! # let mut root = Some(Box::new(Node { left: None }));
//! // Keeping a link for later.
//! let mut kept: Option<&mut Option<Box<Node>>> = None;
//! let _ = ccmorph::ccmorph(&mut root, |node, _visit| {
//!     kept = Some(&mut node.left);
//! });
//! # drop(kept);
//! ```

mod addresses;
mod lists;

use crate::error::MorphError;
use crate::link::{Global, Home, Link};
use crate::pointers::{Place, Pointers};
use crate::size::placeable;
pub(crate) use addresses::{Addresses, Seen};
use ccmodel::NO_NODE;
pub(crate) use lists::Lists;
use lists::try_reserve_one;
use std::alloc::Layout;

/// One or more places that own nodes, or point back to some: a box, an optional one, or a
/// collection of them.
///
/// Implement it for a type that holds links, such as a hash table's bucket: `show` each field that
/// holds links, and pass pointers to [`Visitor::pointers`]. No implementation can be unsound.
#[diagnostic::on_unimplemented(
    message = "`{Self}` holds no links to nodes of one type",
    label = "holds no boxes of the nodes that are morphed",
    note = "for nodes of several types, vectors of nodes and trait objects: derive \
            `ccmorph::TreeNode` for each type, and call `Morph::run_any(&mut root)`, or show them \
            by `visit(ccmorph::any(&mut field))`",
    note = "for pointers that own nothing: `visit(ccmorph::back(&mut field))`",
    note = "`Rc` and `Arc` do not move: own each node by a `Box`, or use `Morph::run_slice`"
)]
pub trait Links {
    /// The kind of link.
    type Link: Link;

    /// Tells `visitor` of each link that owns a node, in the order in which the nodes count as
    /// siblings, and of pointers back.
    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Self::Link>);
}

/// What a traversal calls for each field of a node that holds [`Links`]. Each link must share the
/// lifetime `'a` of the node's borrow.
pub type Visit<'v, 'a, L> = dyn FnMut(&'a mut (dyn Links<Link = L> + 'a)) + 'v;

/// A type that owns nodes of any types, such as the type of a field marked `#[child]`.
///
/// [`#[derive(TreeNode)]`](macro@crate::TreeNode) implements it. By hand, show the fields; no
/// implementation can be unsound.
///
/// | type | what moves |
/// |---|---|
/// | `Box<T>` | the node; `T` may be a slice, or a trait object with the supertrait `AnyLinks` |
/// | `Vec<T>` | the buffer with its elements, as one |
/// | options, arrays, tuples of up to four, `VecDeque`, values of maps | what the elements own |
///
/// `Rc` and other trait objects do not compile, and the message says what to do instead:
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
            `ccmorph::Morph::run_slice`",
    note = "for a collection of another crate: `#[child(each)]`, which calls its `iter_mut`",
    note = "for a box with an allocator: write it out in the field's type, as in \
            `Option<Box<Node, &Heap>>`; the derive does not see through a type alias, and all \
            nodes are then of one type"
)]
pub trait AnyLinks: Unpin {
    /// Shows `visitor` what owns nodes, in the order in which the nodes count as siblings, and
    /// pointers back. Shows nothing by default: the node has no children.
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        let _ = visitor;
    }
}

/// How to visit nodes of one type, and write links to them, in a structure of several types.
#[derive(Clone, Copy, Debug)]
#[expect(
    unreachable_pub,
    reason = "part of `Visitor`, whose fields are private"
)]
pub struct Kind<'a> {
    pub(crate) link: ErasedLink,
    /// Shows what the node owns.
    ///
    /// # Safety
    /// The link was made from a `&'a mut` to a link of this kind, its node is the one that it
    /// holds, and only the collector has kept them. It is called once.
    pub(crate) visit: unsafe fn(Shown, &mut AnyVisitor<'_, 'a>),
}

/// What a node of a structure of several types is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Each<'a> {
    /// The node's layout, which is not empty, or `None` if the node stays.
    pub(crate) layout: Option<Layout>,
    /// `None` for a node of the type that the traversal is for, whose layout follows at the end.
    pub(crate) kind: Option<&'a Kind<'a>>,
}

impl Each<'_> {
    const OF_ONE_TYPE: Self = Each {
        layout: None,
        kind: None,
    };
}

/// A link, erased, and the pointer that it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) link: *mut (),
    pub(crate) node: *mut u8,
}

/// A type of links.
///
/// Invariant: a link has `bytes` bytes, at most a pointer's alignment, and `point_to` is as
/// [`OwningPointer::point_to`](crate::link::OwningPointer::point_to); `None` where that writes the
/// pointer with which the link begins and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErasedLink {
    pub(crate) bytes: usize,
    pub(crate) point_to: Option<unsafe fn(*mut (), *mut u8)>,
}

impl ErasedLink {
    /// A box of some kind.
    pub(crate) const fn of<L: Link>() -> ErasedLink {
        const { assert!(align_of::<L>() <= align_of::<*mut u8>()) };
        ErasedLink {
            bytes: size_of::<L>(),
            point_to: if L::IS_POINTER {
                None
            } else {
                Some(L::point_to)
            },
        }
    }

    /// A box of a node of any type. It must begin with its pointer, which [`AnyLinks`] checks.
    pub(crate) const fn box_of<T: ?Sized>() -> ErasedLink {
        const { assert!(align_of::<Box<T>>() == align_of::<*mut u8>()) };
        ErasedLink {
            bytes: size_of::<Box<T>>(),
            point_to: None,
        }
    }

    /// A raw pointer.
    pub(crate) const RAW: ErasedLink = ErasedLink {
        bytes: size_of::<*mut u8>(),
        point_to: None,
    };

    /// Makes a link own another node.
    ///
    /// # Safety
    /// - `link` is a link of this type, erased: valid for reads and writes, and nothing else refers
    ///   to it.
    /// - `node` is an allocation of the link's home for a node, owned by nothing else, and
    ///   initialised when the link is used next.
    #[inline]
    pub(crate) unsafe fn point_to(self, link: *mut (), node: *mut u8) {
        match self.point_to {
            // SAFETY: a pointer in memory (invariant), valid for writes (the caller's promise).
            None => unsafe { link.cast::<*mut u8>().write(node) },
            // SAFETY: the caller promises a link of this type, and an allocation of its home.
            Some(point_to) => unsafe { point_to(link, node) },
        }
    }
}

/// A place that points to a node without owning it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer {
    pub(crate) place: *mut *mut u8,
    /// The number of the node.
    pub(crate) target: u32,
}

/// Whether all bytes of a place lie in a node, so that it is aligned wherever the node lies.
#[inline]
pub(crate) fn lies_in(place: usize, place_bytes: usize, node: *const u8, layout: Layout) -> bool {
    place.wrapping_sub(node.addr()) < inner_offsets(place_bytes, layout)
}

/// The first offset in a node at which no place of `place_bytes` [lies in](lies_in) it.
#[inline]
pub(crate) fn inner_offsets(place_bytes: usize, layout: Layout) -> usize {
    if layout.align() < align_of::<*mut u8>() {
        return 0;
    }
    (layout.size() + 1).saturating_sub(place_bytes)
}

/// Adds an entry. If there is no memory, sets the error.
#[inline]
fn push<T>(list: &mut Vec<T>, entry: T, error: &mut Option<MorphError>) {
    match try_reserve_one(list) {
        Ok(()) => list.push(entry),
        Err(_) => {
            let bytes = ((list.len() + 1) * size_of::<T>()) as u64;
            error.get_or_insert(MorphError::OutOfMemory { bytes });
        }
    }
}

/// What a traversal has shown so far.
///
/// Invariants: those of [`Nodes`](crate::collect::Nodes), except that the last nodes may lack an
/// entry of `each`. Nodes without a kind are of the type of the traversal.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    error: Option<MorphError>,
    /// The node being visited and where it lies; [`NO_NODE`] and null for the root's visit.
    visited: u32,
    visited_node: *const u8,
    pub(crate) lists: Lists,
    each: Vec<Each<'a>>,
    /// Numbers of links that do not lie in the node that showed them.
    outside: Vec<u32>,
    /// Pointers to the parent of the node that showed them, and that they lie in.
    inside: Vec<Pointer>,
    /// The same, but anywhere.
    known: Vec<Pointer>,
    /// Places with what they hold, which is not null.
    others: Vec<(*mut *mut u8, *mut u8)>,
}

/// All that was shown, less the pointers that point to no node.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) shown: Vec<Shown>,
    pub(crate) parents: Vec<u32>,
    pub(crate) each: Vec<Each<'a>>,
    pub(crate) outside: Vec<u32>,
    pub(crate) pointers: Vec<Pointer>,
    /// More of these, inside of the nodes that showed them.
    pub(crate) pointers_inside: Vec<Pointer>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new() -> Collector<'a> {
        Collector {
            error: None,
            visited: NO_NODE,
            visited_node: std::ptr::null(),
            lists: Lists::default(),
            each: Vec::new(),
            outside: Vec::new(),
            inside: Vec::new(),
            known: Vec::new(),
            others: Vec::new(),
        }
    }

    /// What the node with this number is, if its type is not that of the traversal.
    #[inline]
    pub(crate) fn kind(&self, number: u32) -> Option<&'a Kind<'a>> {
        self.each.get(number as usize).and_then(|each| each.kind)
    }

    /// Begins the visit of a node, or of the root by [`NO_NODE`] and null.
    #[inline]
    pub(crate) fn visit(&mut self, number: u32, node: *const u8) {
        (self.visited, self.visited_node) = (number, node);
    }

    /// Records a link that lies `inside` of the node being visited, or not.
    pub(crate) fn push_shown(&mut self, shown: Shown, inside: bool) {
        // A node that cannot be numbered is an error of `Lists::push`.
        if !inside && let Ok(number) = u32::try_from(self.lists.len()) {
            push(&mut self.outside, number, &mut self.error);
        }
        if let Err(error) = self.lists.push(shown, self.visited) {
            self.fail(error);
        }
    }

    /// Records a node of this layout and kind; one of no size is skipped.
    pub(crate) fn push_kind(&mut self, shown: Shown, layout: Layout, kind: &'a Kind<'a>) {
        if layout.size() == 0 {
            return;
        }
        let (number, out_of_memory) = (self.lists.len(), self.each_out_of_memory());
        // Those before without an entry are of the one type.
        let more = number + 1 - self.each.len();
        if self.each.try_reserve(more).is_err() {
            return self.fail(out_of_memory);
        }
        if let Err(error) = self.lists.push(shown, self.visited) {
            return self.fail(error);
        }
        self.each.resize(number, Each::OF_ONE_TYPE);
        self.each.push(Each {
            layout: placeable(layout),
            kind: Some(kind),
        });
    }

    fn each_out_of_memory(&self) -> MorphError {
        let bytes = ((self.lists.len() + 1) * size_of::<Each<'_>>()) as u64;
        MorphError::OutOfMemory { bytes }
    }

    /// Whether a place that holds a `P` lies in the node that is being visited, of this layout.
    #[inline]
    pub(crate) fn lies_in_visited<P>(&self, place: usize, layout: Layout) -> bool {
        lies_in(place, size_of::<P>(), self.visited_node, layout)
    }

    /// Sets the error, unless there is one.
    #[cold]
    #[inline(never)]
    pub(crate) fn fail(&mut self, error: MorphError) {
        self.error.get_or_insert(error);
    }

    /// Records a place that holds `held`. The node being visited is of this layout; where its type
    /// is unknown, of one in which no pointer [lies](lies_in).
    pub(crate) fn push_pointer(&mut self, place: *mut *mut u8, held: *mut u8, layout: Layout) {
        if held.is_null() {
            return;
        }
        // Nearly all pointers back are to the parent; in a list that is the predecessor.
        if let Some(&target) = self.lists.parents().get(self.visited as usize)
            && (self.lists.shown().get(target as usize))
                .is_some_and(|shown| shown.node.addr() == held.addr())
        {
            let is_inside = self.lies_in_visited::<*mut u8>(place.addr(), layout);
            let list = if is_inside {
                &mut self.inside
            } else {
                &mut self.known
            };
            push(list, Pointer { place, target }, &mut self.error);
        } else {
            push(&mut self.others, (place, held), &mut self.error);
        }
    }

    #[inline]
    pub(crate) fn check(&self) -> Result<(), MorphError> {
        self.error.map_or(Ok(()), Err)
    }

    /// What was shown, for nodes of this layout where they are of the one type. `addresses` are
    /// those of all nodes, if they are known already.
    pub(crate) fn finish(
        mut self,
        layout: Layout,
        addresses: Option<Addresses>,
    ) -> Result<Found<'a>, MorphError> {
        self.check()?;
        let (is_one_type, out_of_memory) = (self.each.is_empty(), self.each_out_of_memory());
        if !self.others.is_empty() {
            let out_of_memory = MorphError::OutOfMemory {
                bytes: (self.lists.len() * Addresses::ENTRY_BYTES) as u64,
            };
            let addresses = addresses.or_else(|| Addresses::of(self.lists.shown()));
            let pointers = addresses.and_then(|all| all.add_targets(self.others, self.known));
            self.known = pointers.ok_or(out_of_memory)?;
        }
        if !is_one_type {
            // All links and pointers are written before a node moves, so it does not matter which
            // lie in which node.
            let more = self.lists.len() - self.each.len();
            let entries = self.each.try_reserve(more);
            (entries.and(self.known.try_reserve(self.inside.len()))).map_err(|_| out_of_memory)?;
            self.each.resize(self.lists.len(), Each::OF_ONE_TYPE);
            for each in self.each.iter_mut().filter(|each| each.kind.is_none()) {
                each.layout = placeable(layout);
            }
            self.known.append(&mut self.inside);
        }
        let (shown, parents) = self.lists.into_parts();
        Ok(Found {
            shown,
            parents,
            each: self.each,
            outside: self.outside,
            pointers: self.known,
            pointers_inside: self.inside,
        })
    }
}

/// A collector of links to nodes of one type, and their common home, once it is known.
#[derive(Debug)]
pub(crate) struct OfOneType<'a, H> {
    pub(crate) home: Option<H>,
    pub(crate) collector: Collector<'a>,
}

impl<'a, H: Home> OfOneType<'a, H> {
    /// Records a link to a node of the type that the traversal is for, or else of this kind.
    #[inline]
    fn push<L: Link<Home = H>>(&mut self, link: &'a mut L, kind: Option<&'a Kind<'a>>) {
        let home = link.home();
        let place: *mut L = link;
        // SAFETY: it was a reference that lives for 'a just now.
        let node = unsafe { &mut *place }.node();
        let shown = Shown {
            link: place.cast(),
            node: node.cast(),
        };
        let (all, layout) = (&mut self.collector, Layout::new::<L::Node>());
        let inside = all.lies_in_visited::<L>(place.addr(), layout);
        // The uncommon cases are in another function, so that this one needs no stack.
        let is_known = inside && self.home.is_some_and(|known| known.is(home));
        if !is_known || !all.lists.push_within(shown, all.visited) {
            self.push_slow::<L>(shown, home, kind);
        }
    }

    /// [`push`](OfOneType::push) in all other cases.
    #[inline(never)]
    fn push_slow<L: Link>(&mut self, shown: Shown, home: H, kind: Option<&'a Kind<'a>>) {
        let (all, layout) = (&mut self.collector, Layout::new::<L::Node>());
        if let Some(kind) = kind {
            all.push_kind(shown, layout, kind);
        } else if self.home.get_or_insert(home).is(home) {
            all.push_shown(shown, all.lies_in_visited::<L>(shown.link.addr(), layout));
        } else {
            all.fail(MorphError::TwoHeaps);
        }
    }
}

/// Takes the links, and the pointers back, that [`Links::show`] shows. They share the borrow `'a`.
// Invariant: `kind` is that of `L`, or `None` where `L` leads to the nodes that the traversal is
// for.
#[derive(Debug)]
pub struct Visitor<'v, 'a, L: Link> {
    all: &'v mut OfOneType<'a, L::Home>,
    kind: Option<&'a Kind<'a>>,
}

impl<'v, 'a, L: Link + 'a> Visitor<'v, 'a, L> {
    #[inline]
    pub(crate) fn of(all: &'v mut OfOneType<'a, L::Home>) -> Visitor<'v, 'a, L> {
        Visitor { all, kind: None }
    }

    /// Shows a link, whose node will move.
    #[inline]
    pub fn link(&mut self, link: &'a mut L) {
        self.all.push(link, self.kind);
    }

    /// Shows pointers that own nothing, which will follow the nodes that they point to.
    #[inline]
    pub fn pointers<P: Pointers<L::Node> + ?Sized>(&mut self, pointers: &'a mut P) {
        // A node of another kind than the traversal's is not an `L::Node`.
        let layout = match self.kind {
            None => Layout::new::<L::Node>(),
            Some(_) => UNKNOWN,
        };
        show_pointers(&mut self.all.collector, pointers, layout);
    }
}

impl<'a, L: Link<Home = Global> + 'a> Visitor<'_, 'a, L> {
    /// Shows links to nodes of any types.
    pub(crate) fn any<A: AnyLinks + ?Sized>(&mut self, links: &'a mut A) {
        if self.kind.is_none() {
            self.all.home = Some(Global);
        }
        links.show_any(&mut AnyVisitor::of(&mut self.all.collector));
    }
}

/// A layout in which no pointer [lies](lies_in).
const UNKNOWN: Layout = Layout::new::<u8>();

#[inline]
fn show_pointers<'a, T: 'a, P: Pointers<T> + ?Sized>(
    collector: &mut Collector<'a>,
    pointers: &'a mut P,
    layout: Layout,
) {
    pointers.show(&mut |place: Place<'a, T>| {
        let place = place.as_ptr().cast::<*mut u8>();
        // SAFETY: borrowed for 'a, and holds a raw pointer (invariant of `Place`).
        let held = unsafe { place.read() };
        collector.push_pointer(place, held, layout);
    });
}

/// Takes the links to nodes of any types, and the pointers back, that [`AnyLinks::show_any`] shows.
/// They share the borrow `'a`.
#[derive(Debug)]
pub struct AnyVisitor<'v, 'a> {
    pub(crate) collector: &'v mut Collector<'a>,
}

/// A collector that goes back to its owner when this is dropped, also when a node's `show` panics.
struct Lent<'v, 'a> {
    all: OfOneType<'a, Global>,
    owner: &'v mut Collector<'a>,
}

impl Drop for Lent<'_, '_> {
    fn drop(&mut self) {
        std::mem::swap(self.owner, &mut self.all.collector);
    }
}

impl<'v, 'a> AnyVisitor<'v, 'a> {
    pub(crate) fn of(collector: &'v mut Collector<'a>) -> AnyVisitor<'v, 'a> {
        AnyVisitor { collector }
    }

    /// Shows a field of the node, or another place that lives as long.
    #[inline]
    pub fn show<A: AnyLinks + ?Sized>(&mut self, links: &'a mut A) {
        links.show_any(self);
    }

    /// Shows links that `links` shows, which lead to nodes of this kind.
    pub(crate) fn show_kind<L>(&mut self, links: &'a mut L, kind: &'a Kind<'a>)
    where
        L: Links<Link: Link<Home = Global>> + ?Sized,
    {
        let collector = std::mem::replace(self.collector, Collector::new());
        let mut lent = Lent {
            // `push` takes a link for one to the one type only if the home is known.
            all: OfOneType {
                home: None,
                collector,
            },
            owner: self.collector,
        };
        links.show(&mut Visitor {
            all: &mut lent.all,
            kind: Some(kind),
        });
    }

    /// Shows pointers that own nothing, which will follow the nodes that they point to, whatever
    /// their type.
    pub fn pointers<T: 'a, P: Pointers<T> + ?Sized>(&mut self, pointers: &'a mut P) {
        show_pointers(self.collector, pointers, UNKNOWN);
    }
}
