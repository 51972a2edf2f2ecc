//! Phase 1: walk the structure and write down where each link is.
//!
//! The walk is breadth-first over arrays: node `v` is visited when the walk reaches index `v`, and
//! the links that it shows are appended. So a parent has a smaller number than its children, as
//! [`Shape`](ccmodel::Shape) wants it, there is no recursion, and the nodes that come next are
//! known, which lets their cache misses overlap.
//!
//! This is the only phase that runs code of the user's, and it changes nothing: when that code
//! panics, the lists are dropped and the structure is what it was.

mod addresses;
pub(crate) mod lists;

use crate::any::{AnyLinks, AnyVisitor, Each, Kind, NodeSize, Unshown, point_vec_to};
use crate::link::{Global, Home};
use crate::{Link, Links, MorphError, Place, Pointers, Visit, prefetch};
pub(crate) use addresses::Addresses;
use ccmodel::{NO_NODE, NodeExtent};
use lists::{Lists, try_reserve_one};
use std::alloc::Layout;
use std::marker::PhantomData;

/// A structure's nodes, the link that owns each, and the pointers between them, all mutably
/// borrowed for `'a`.
///
/// Invariants, for each `v` below `len()`:
/// - `shown[v].link` is the erased place of a link of the type `link(v)`. It may be read and
///   written for `'a`, nothing has used it since it was shown, and the places are pairwise
///   disjoint, also from those of `pointers`;
/// - `shown[v].node` is the pointer that this link holds: an allocation of `home` for its layout,
///   initialised as far as its type says, and no reference to it is in use. It may be read, moved
///   out of, and freed;
/// - `each` is empty, or has an entry for each node, and `outside` stands for all links then;
/// - unless `outside` names v or stands for all links, the link [lies in](lies_in) the node that
///   showed it;
/// - the places of `pointers` and `pointers_inside` hold thin raw pointers, and may be overwritten
///   by others for `'a`; their targets are node numbers;
/// - those of `pointers_inside` [lie each in](lies_in) the node that showed it, and come in the
///   order of these nodes' numbers.
#[derive(Debug)]
pub(crate) struct Nodes<'a, H> {
    pub(crate) home: H,
    layout: Layout,
    link: ErasedLink,
    /// What the nodes are, where they are not all of one type: that of `layout` and `link`.
    each: Vec<Each<'a>>,
    shown: Vec<Shown>,
    outside: Outside,
    pointers: Vec<Pointer>,
    pointers_inside: Vec<Pointer>,
    borrow: PhantomData<&'a mut ()>,
}

/// The links that do not lie in the node that showed them.
#[derive(Debug)]
pub(crate) enum Outside {
    /// Those of the nodes with these numbers. All nodes are in level order: numbered as they were
    /// visited, that is, roots first, and then the children of each in turn.
    Numbers(Vec<u32>),
    /// Any link may be one; nodes may be in any order in which parents come before their children.
    All,
}

/// A link, erased, and the pointer that it holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    pub(crate) link: *mut (),
    pub(crate) node: *mut u8,
}

/// A type of links.
///
/// Invariant: a link has `bytes` bytes, no stricter alignment than a pointer, and `point_to` is as
/// [`OwningPointer::point_to`](crate::link::OwningPointer::point_to); `None` where that writes the
/// pointer with which the link begins and nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErasedLink {
    pub(crate) bytes: usize,
    point_to: Option<unsafe fn(*mut (), *mut u8)>,
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

    /// A box of a node of any type, which begins with its pointer: [`AnyLinks`] looks whether it
    /// does.
    pub(crate) const fn box_of<T: ?Sized>() -> ErasedLink {
        const { assert!(align_of::<Box<T>>() == align_of::<*mut u8>()) };
        ErasedLink {
            bytes: size_of::<Box<T>>(),
            point_to: None,
        }
    }

    /// A vector.
    pub(crate) const fn buffer_of<T>() -> ErasedLink {
        const { assert!(align_of::<Vec<T>>() == align_of::<*mut u8>()) };
        ErasedLink {
            bytes: size_of::<Vec<T>>(),
            point_to: Some(point_vec_to::<T>),
        }
    }

    /// A raw pointer.
    pub(crate) const fn raw() -> ErasedLink {
        ErasedLink {
            bytes: size_of::<*mut u8>(),
            point_to: None,
        }
    }

    /// Makes a link own another node.
    ///
    /// # Safety
    ///
    /// - `link` is a link of this type, erased: valid for reads and writes, and nothing else refers
    ///   to it.
    /// - `node` is an allocation of the link's home for a node, which is owned by nobody else, and
    ///   is initialised when the link is used next.
    #[inline]
    pub(crate) unsafe fn point_to(self, link: *mut (), node: *mut u8) {
        match self.point_to {
            // SAFETY: a pointer in memory (invariant), valid for writes (the caller's promise).
            None => unsafe { link.cast::<*mut u8>().write(node) },
            // SAFETY: the caller's promise.
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

impl<'a, H: Home> Nodes<'a, H> {
    /// The nodes that were collected by other means.
    ///
    /// # Safety
    ///
    /// The arguments keep the type's invariants for `'a`, the pointers inside of nodes coming
    /// behind the others; `link` is the links' type, and `home` their home.
    pub(crate) unsafe fn from_parts(
        home: H,
        layout: Layout,
        link: ErasedLink,
        (shown, outside): (Vec<Shown>, Outside),
        (pointers, pointers_inside): (Vec<Pointer>, Vec<Pointer>),
    ) -> Nodes<'a, H> {
        Nodes {
            home,
            layout,
            link,
            each: Vec::new(),
            shown,
            outside,
            pointers,
            pointers_inside,
            borrow: PhantomData,
        }
    }

    /// These nodes, which are of several types, or of one where `each` is empty.
    ///
    /// `each` keeps the type's invariants.
    fn of_kinds(self, each: Vec<Each<'a>>) -> Nodes<'a, H> {
        Nodes { each, ..self }
    }

    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    /// The size and alignment of nodes of the one type.
    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the nodes are of several types.
    pub(crate) fn are_of_kinds(&self) -> bool {
        !self.each.is_empty()
    }

    /// How many nodes cannot be placed, and stay.
    pub(crate) fn staying(&self) -> usize {
        let stays = |each: &&Each<'_>| each.size == NodeSize::STAYS;
        self.each.iter().filter(stays).count()
    }

    /// The size of a node, which is `mean` where they are of several types.
    pub(crate) fn node_bytes(&self, mean: NodeExtent) -> usize {
        if self.are_of_kinds() {
            mean.bytes as usize
        } else {
            self.layout.size()
        }
    }

    /// By node number: the size of the node; empty where all nodes are of one type.
    pub(crate) fn sizes(&self) -> Vec<NodeSize> {
        self.each.iter().map(|each| each.size).collect()
    }

    /// By node number: the link, and the pointer that it holds.
    pub(crate) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    /// The type of the links to nodes of the one type.
    pub(crate) fn link(&self) -> ErasedLink {
        self.link
    }

    /// The type of the link to a node.
    #[inline]
    pub(crate) fn link_of(&self, v: usize) -> ErasedLink {
        (self.each.get(v).and_then(|each| each.kind)).map_or(self.link, |kind| kind.link)
    }

    /// The links that do not lie in the node that showed them.
    pub(crate) fn outside(&self) -> &Outside {
        &self.outside
    }

    /// Places that point to nodes without owning them, wherever they lie.
    pub(crate) fn pointers(&self) -> &[Pointer] {
        &self.pointers
    }

    /// More of these: inside of nodes, in the order of the nodes.
    pub(crate) fn pointers_inside(&self) -> &[Pointer] {
        &self.pointers_inside
    }

    /// The address of a node.
    pub(crate) fn address(&self, v: usize) -> u64 {
        self.shown[v].node.addr() as u64
    }

    /// By node number: the address of the node.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        (self.shown.iter())
            .map(|shown| shown.node.addr() as u64)
            .collect()
    }

    /// What the entries of the lists take, in bytes.
    pub(crate) fn list_bytes(&self) -> u64 {
        let pointers = self.pointers.len() + self.pointers_inside.len();
        let outside = match &self.outside {
            Outside::Numbers(numbers) => numbers.len(),
            Outside::All => 0,
        };
        (self.shown.len() * size_of::<Shown>()
            + self.each.len() * size_of::<Each<'_>>()
            + outside * size_of::<u32>()
            + pointers * size_of::<Pointer>()) as u64
    }
}

/// Tells the weight of a node.
pub(crate) type Weigh<'w, T> = &'w mut dyn FnMut(&T) -> f64;

/// Nodes, how they hang together, and the weights that the user gave them, if any.
#[derive(Debug)]
pub(crate) struct Collected<'a, H> {
    pub(crate) nodes: Nodes<'a, H>,
    /// By node number: the node whose visit showed the link, a smaller number, or [`NO_NODE`] for
    /// links of the root.
    pub(crate) parents: Vec<u32>,
    /// By node number, or empty.
    pub(crate) weights: Vec<f64>,
}

/// Visits all that can be reached from `root` through the links shown, each node with `weigh`
/// first. `None` when no link owns a node.
///
/// O(n) for nodes and links. Pointers to the parent are known at once; if there are others, all
/// nodes are put into a hash table, and each of these pointers is looked up in it: expected O(1)
/// each.
///
/// # Errors
///
/// [`MorphError::TooManyNodes`], [`MorphError::TwoHeaps`], [`MorphError::OutOfMemory`].
pub(crate) fn collect<'a, L, R, F>(
    root: &'a mut R,
    traverse: &mut F,
    mut weigh: Option<Weigh<'_, L::Node>>,
) -> Result<Option<Collected<'a, L::Home>>, MorphError>
where
    L: Link + 'a,
    R: Links<Link = L> + ?Sized,
    F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
{
    let mut all: Collector<'a, L::Home> = Collector::new();
    root.show(&mut Visitor::of(&mut all));
    let mut weights = Vec::new();
    let mut number = 0;
    while let Some(&shown) = all.lists.shown().get(number as usize) {
        if let Some(later) = all.lists.shown().get(number as usize + prefetch::AHEAD) {
            prefetch::object(later.node, size_of::<L::Node>());
        }
        all.visited = number;
        if let Some(&Each {
            kind: Some(kind), ..
        }) = all.each.get(number as usize)
        {
            if weigh.is_some() {
                let owner = all.lists.parents()[number as usize];
                weights.push(weights.get(owner as usize).copied().unwrap_or(0.0));
            }
            // There is one, as there are kinds (invariant).
            let Some(collector) = L::Home::global(&mut all) else {
                return Err(MorphError::TwoHeaps);
            };
            // SAFETY: the link was shown as one of this kind, and is borrowed for 'a. Each node is
            // visited once, as below.
            unsafe { (kind.visit)(shown, &mut AnyVisitor::of(collector)) };
        } else {
            // SAFETY: the pointer is that of a link which is borrowed for 'a (invariant), so it is
            // aligned and points to an initialised node, of this type as the link is of no other
            // kind. The reference is unique: links are disjoint, hence so are the boxes' contents;
            // each index is visited once; and neither this module nor, as the link's borrow lasts,
            // safe code anywhere else makes another reference to it during 'a.
            let node: &'a mut L::Node = unsafe { &mut *shown.node.cast() };
            if let Some(weigh) = &mut weigh {
                weights.push(weigh(node));
            }
            all.visited_node = std::ptr::from_mut(node).cast();
            let collector = &mut all;
            traverse(node, &mut |links: &'a mut (dyn Links<Link = L> + 'a)| {
                links.show(&mut Visitor::of(collector));
            });
        }
        if let Some(error) = all.error {
            return Err(error);
        }
        number += 1;
    }
    all.finish::<L>(weights)
}

/// Whether the place of a pointer, or of some of them, lies in a node, all of its `place_bytes`,
/// and so that it is aligned in any place for a node.
#[inline]
pub(crate) fn lies_in(place: usize, place_bytes: usize, node: *const u8, layout: Layout) -> bool {
    place.wrapping_sub(node.addr()) < inner_offsets(place_bytes, layout)
}

/// From this offset on in a node, no place of so many bytes [lies in](lies_in) it.
#[inline]
pub(crate) fn inner_offsets(place_bytes: usize, layout: Layout) -> usize {
    if layout.align() < align_of::<*mut u8>() {
        return 0;
    }
    (layout.size() + 1).saturating_sub(place_bytes)
}

/// Adds an entry, unless there is no memory, which becomes the error that is told.
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
/// Invariants: those of [`Nodes`], but that the last nodes may lack an entry of `each`; these, and
/// those whose entry has no kind, are of the type that the traversal is for. Only where `H` is
/// [`Global`] are there kinds.
/// `parents[v]` as in [`Collected`].
#[derive(Debug)]
#[expect(
    unnameable_types,
    reason = "`Home` is public in the language's sense only"
)]
pub struct Collector<'a, H> {
    home: Option<H>,
    error: Option<MorphError>,
    /// The node whose visit it is, [`NO_NODE`] for the root's.
    visited: u32,
    /// Where the last visited node of the type that the traversal is for lies; for comparisons.
    visited_node: *const u8,
    lists: Lists,
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

impl<'a> Collector<'a, Global> {
    /// Notes the links that `links` shows, which lead to nodes of this kind.
    pub(crate) fn push_kinds<L>(&mut self, links: &'a mut L, kind: &'a Kind<'a>)
    where
        L: Links<Link: Link<Home = Global>> + ?Sized,
    {
        // None is noted as one to a node of the one type, as `push` does only where it knows the
        // home, which `Visitor::any` leaves unknown here.
        let home = self.home.take();
        let kind = Some(kind);
        links.show(&mut Visitor {
            collector: self,
            kind,
            link: PhantomData,
        });
        self.home = home;
    }
}

impl<'a, H: Home> Collector<'a, H> {
    fn new() -> Collector<'a, H> {
        Collector {
            home: None,
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

    /// Notes a link to a node of the type that the traversal is for, or else of this kind.
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
        // All that is out of the ordinary is in another function, so that this one calls none and
        // needs no stack.
        if self.home == Some(home)
            && self.lies_in_visited::<L, L>(place.addr())
            && self.lists.has_room()
        {
            // SAFETY: there is room.
            unsafe { self.lists.push_within(shown, self.visited) };
        } else {
            self.push_slow::<L>(shown, home, kind);
        }
    }

    /// As [`push`](Collector::push), for the first link, for those that do not lie in the node that
    /// showed them, for nodes of other kinds, for lists that are full, and for errors.
    #[inline(never)]
    fn push_slow<L: Link>(&mut self, shown: Shown, home: H, kind: Option<&'a Kind<'a>>) {
        if let Some(kind) = kind {
            return self.push_kind(shown, Layout::new::<L::Node>(), kind);
        }
        if *self.home.get_or_insert(home) != home {
            return self.fail(MorphError::TwoHeaps);
        }
        // What cannot be numbered is not going to be a link.
        if !self.lies_in_visited::<L, L>(shown.link.addr())
            && let Ok(number) = u32::try_from(self.lists.len())
        {
            push(&mut self.outside, number, &mut self.error);
        }
        if let Err(error) = self.lists.push(shown, self.visited) {
            self.fail(error);
        }
    }

    /// Notes a node of this layout and kind; one of no size is skipped.
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
            size: NodeSize::of(layout),
            kind: Some(kind),
        });
    }

    fn each_out_of_memory(&self) -> MorphError {
        let bytes = (self.lists.len() + 1) * size_of::<Each<'_>>();
        MorphError::OutOfMemory {
            bytes: bytes as u64,
        }
    }

    /// Whether a place that holds a `P` lies in the node that is being visited, which a link of
    /// type `L` leads to.
    #[inline]
    fn lies_in_visited<L: Link, P>(&self, place: usize) -> bool {
        let layout = Layout::new::<L::Node>();
        lies_in(place, size_of::<P>(), self.visited_node, layout)
    }

    /// What is shown from here on need not be kept. The first error is the one that is told.
    #[cold]
    #[inline(never)]
    fn fail(&mut self, error: MorphError) {
        self.error.get_or_insert(error);
    }

    /// Notes a pointer of the root, or of the node that is being visited, which a link of type `L`
    /// leads to, or of any type where `L` is `Box<Unshown>`.
    pub(crate) fn push_pointer<L: Link>(&mut self, place: *mut *mut u8) {
        // SAFETY: the place is borrowed for 'a, and holds a raw pointer (invariant of `Place`).
        let held = unsafe { place.read() };
        if held.is_null() {
            return;
        }
        // Nearly all pointers back are to the parent, or to the predecessor, which in a list is the
        // parent.
        if let Some(&parent) = self.lists.parents().get(self.visited as usize)
            && (self.lists.shown().get(parent as usize))
                .is_some_and(|shown| shown.node.addr() == held.addr())
        {
            let target = parent;
            let pointer = Pointer { place, target };
            if self.lies_in_visited::<L, *mut u8>(place.addr()) {
                push(&mut self.inside, pointer, &mut self.error);
            } else {
                push(&mut self.known, pointer, &mut self.error);
            }
        } else {
            push(&mut self.others, (place, held), &mut self.error);
        }
    }

    fn check(&self) -> Result<(), MorphError> {
        self.error.map_or(Ok(()), Err)
    }

    /// What was shown, less the pointers that point to no node. `None` when no link was.
    fn finish<L: Link<Home = H>>(
        mut self,
        weights: Vec<f64>,
    ) -> Result<Option<Collected<'a, H>>, MorphError> {
        self.check()?;
        let Some(home) = self.home else {
            return Ok(None);
        };
        let (is_one_type, out_of_memory) = (self.each.is_empty(), self.each_out_of_memory());
        if !self.others.is_empty() {
            let out_of_memory = MorphError::OutOfMemory {
                bytes: (self.lists.len() * Addresses::ENTRY_BYTES) as u64,
            };
            let addresses = Addresses::of(self.lists.shown()).ok_or(out_of_memory)?;
            self.known = (addresses.add_targets(self.others, self.known)).ok_or(out_of_memory)?;
        }
        let layout = Layout::new::<L::Node>();
        if !is_one_type {
            let more = self.lists.len() - self.each.len();
            (self
                .each
                .try_reserve(more)
                .and(self.known.try_reserve(self.inside.len())))
            .map_err(|_| out_of_memory)?;
            self.each.resize(self.lists.len(), Each::OF_ONE_TYPE);
            for each in self.each.iter_mut().filter(|each| each.kind.is_none()) {
                each.size = NodeSize::of(layout);
            }
            // Which lie in which node makes no difference where all links and pointers are written
            // before a node moves.
            self.known.append(&mut self.inside);
        }
        let (shown, parents) = self.lists.into_parts();
        let outside = if is_one_type {
            Outside::Numbers(self.outside)
        } else {
            Outside::All
        };
        let (links, pointers) = ((shown, outside), (self.known, self.inside));
        // SAFETY: the invariants are the same; each link was made from a `&'a mut L`, or is of its
        // entry's kind. Nodes show their pointers in the order of their numbers.
        let nodes =
            unsafe { Nodes::from_parts(home, layout, ErasedLink::of::<L>(), links, pointers) };
        Ok(Some(Collected {
            nodes: nodes.of_kinds(self.each),
            parents,
            weights,
        }))
    }
}

/// What [`Links::show`] tells of: the links, and the pointers back.
///
/// `'a` is the lifetime of the borrow that they share.
// Invariant: `kind` is that of `L`, or `None` where `L` leads to the nodes that the traversal is
// for.
#[derive(Debug)]
pub struct Visitor<'v, 'a, L: Link> {
    collector: &'v mut Collector<'a, L::Home>,
    kind: Option<&'a Kind<'a>>,
    link: PhantomData<fn(L)>,
}

impl<'v, 'a, L: Link + 'a> Visitor<'v, 'a, L> {
    /// What notes links to nodes of the type that the traversal is for.
    #[inline]
    fn of(collector: &'v mut Collector<'a, L::Home>) -> Visitor<'v, 'a, L> {
        Visitor {
            collector,
            kind: None,
            link: PhantomData,
        }
    }

    /// Shows a link, whose node will move.
    #[inline]
    pub fn link(&mut self, link: &'a mut L) {
        self.collector.push(link, self.kind);
    }

    /// Shows pointers that own nothing, which will follow the nodes that they point to.
    #[inline]
    pub fn pointers<P: Pointers<L::Node> + ?Sized>(&mut self, pointers: &'a mut P) {
        let (collector, kind) = (&mut *self.collector, self.kind);
        pointers.show(&mut |place: Place<'a, L::Node>| {
            let place = place.as_ptr().cast();
            match kind {
                None => collector.push_pointer::<L>(place),
                // The node that is being visited is not one that `L` leads to.
                Some(_) => collector.push_pointer::<Box<Unshown>>(place),
            }
        });
    }
}

impl<'a, L: Link<Home = Global> + 'a> Visitor<'_, 'a, L> {
    /// Shows links to nodes of any types.
    pub(crate) fn any<A: AnyLinks + ?Sized>(&mut self, links: &'a mut A) {
        let collector = &mut *self.collector;
        if self.kind.is_none() {
            collector.home = Some(Global);
        }
        links.show_any(&mut AnyVisitor::of(collector));
    }
}

#[cfg(test)]
mod tests;
