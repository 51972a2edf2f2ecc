//! Sites of a tree, and the edges between them.
//!
//! An edge is a record of its own, as L. Guibas and J. Stolfi describe it (*Primitives for the
//! manipulation of general subdivisions and the computation of Voronoi diagrams*, ACM Transactions
//! on Graphics 4(2), 1985). It stands for four directed edges, and knows for each the next one
//! counter-clockwise around the place where that begins:
//!
//! ```text
//! quarter 0   from its origin to its destination          begins at a site
//! quarter 1   from the face on its right to that on its left          begins at a face
//! quarter 2   quarter 0 backwards                          begins at a site
//! quarter 3   quarter 1 backwards                          begins at a face
//! ```
//!
//! A reference to a directed edge is the address of the record, with the number of the quarter in
//! the two lowest bits. Records are boxes, made and freed all the time, and refer to each other in
//! rings, so following a reference is unsafe. What makes it sound:
//!
//! - *References are of live records of the same diagram.* Over all quarters of a diagram's
//!   records, "next" is a permutation: a new record's quarters refer to each other, and
//!   [`Edge::splice`] exchanges two references. [`Edge::delete`] frees a record only when its
//!   quarters refer to itself alone, and then, as each quarter is referred to once, no other does.
//! - *An [`Edge`] is of a live record.* Its lifetime is that of one call of [`Diagram::enter`], in
//!   which the diagram is borrowed, and belongs to this diagram alone (the closure has to take any
//!   lifetime, and edges are invariant in it). That nobody goes on with an edge that was deleted is
//!   the contract of `delete`, the one unsafe function.
//! - *Sites stay where they are* while there are edges: they can be moved only by
//!   [`Diagram::morph`], which frees all edges before. A diagram that moves as a value leaves them
//!   alone, as the boxes of the first ones lie in a box of their own.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::marker::PhantomData;
use std::ptr;

use ccmorph::{Morph, MorphError, TreeNode};

use super::predicates::Point;
use crate::olden::placement::Placement;

/// A point of the input, in a tree: smaller ones to the left, larger ones to the right.
#[derive(Debug, TreeNode)]
pub(super) struct Node {
    at: Point,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 32);

/// An edge's record.
///
/// Invariant: `next` are references to quarters of live records of the same diagram, and no two
/// quarters of a diagram have the same; `ends` are the addresses of nodes of the diagram's tree, or
/// of its last node, from shared borrows, since which none of these was borrowed exclusively.
#[derive(Debug)]
pub(super) struct Record {
    /// Of each quarter, the next around its origin.
    next: [Cell<Reference>; 4],
    /// The origins of quarters 0 and 2.
    ends: [*const Node; 2],
    /// Whether [`Edge::mark`] was here.
    marked: Cell<bool>,
}

const _: () = assert!(size_of::<Record>() == 56);

/// A record and one of its quarters.
///
/// Invariant: all but the two lowest bits are the address of a record, with the provenance of its
/// box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference(*const Record);

const QUARTERS: usize = 4;

const _: () = assert!(align_of::<Record>() >= QUARTERS);

impl Reference {
    fn new(record: *const Record, quarter: usize) -> Reference {
        Reference(record.map_addr(|address| address | (quarter & (QUARTERS - 1))))
    }

    #[inline]
    fn quarter(self) -> usize {
        self.0.addr() & (QUARTERS - 1)
    }

    #[inline]
    fn record(self) -> *const Record {
        self.0.map_addr(|address| address & !(QUARTERS - 1))
    }

    /// The quarter that is `quarters` further, of the same record.
    #[inline]
    fn turned(self, quarters: usize) -> Reference {
        Reference::new(self.record(), self.quarter() + quarters)
    }
}

/// How many of the sites below a root lie to its left.
fn left_share(sites: usize) -> usize {
    sites.div_ceil(2)
}

/// A tree of sites, and edges between them.
///
/// Invariants: as in the module's docs; all live records can be reached from `first` over `next`
/// and turns, when `first` was set after the last change, and else are leaked.
#[derive(Debug)]
pub(super) struct Diagram {
    /// The root of the tree, and the largest site, which stands beside it.
    ///
    /// Boxed, so that the addresses of these two stay good when this is moved: a box that moves
    /// takes the right to its contents from all other pointers to them.
    ///
    /// Invariant: exclusively borrowed only while there are no edges.
    sites: Box<[Option<Box<Node>>; 2]>,
    /// An edge, when there are any.
    first: Cell<Option<Reference>>,
    edges: Cell<usize>,
    /// For walks over all edges; kept, so that they allocate once.
    pending: RefCell<Vec<Reference>>,
}

impl Diagram {
    /// A diagram of `sites`, which ascend, without edges. Of each subtree, the root is allocated
    /// before those below it, near the one above it.
    pub(super) fn build<P: Placement>(sites: &[Point], placement: P) -> Diagram {
        let (last, others) = match sites.split_last() {
            Some((&last, others)) => (Some(last), others),
            None => (None, sites),
        };
        let root = build(others, ptr::null(), placement);
        let near = root.as_deref().map_or(ptr::null(), ptr::from_ref);
        let last = last.map(|at| placement.new_near(Node::leaf(at), near));
        Diagram {
            sites: Box::new([root, last]),
            first: Cell::new(None),
            edges: Cell::new(0),
            pending: RefCell::default(),
        }
    }

    /// Number of edges.
    pub(super) fn edges(&self) -> usize {
        self.edges.get()
    }

    /// Lays the tree out. Frees all edges: they would refer to where sites were.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    pub(super) fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        self.clear();
        let [root, _] = &mut *self.sites;
        morph.run(root, Node::children).map(drop)
    }

    /// Frees all edges.
    pub(super) fn clear(&mut self) {
        let mut records = HashSet::new();
        let mut pending: Vec<Reference> = self.first.take().into_iter().collect();
        while let Some(reference) = pending.pop() {
            if records.insert(reference.record()) {
                // SAFETY: references of live records, of which `first` is one, are of live records;
                // nothing is freed before all are found.
                let record = unsafe { &*reference.record() };
                pending.extend(record.next.iter().map(Cell::get));
            }
        }
        for record in records {
            // SAFETY: a live record, which `Entered::edge` made of a box and which is in the set
            // once. Nobody has an edge, as the diagram is borrowed exclusively, and with all
            // records found from `first`, no reference is left but those in records that are freed
            // as well.
            drop(unsafe { Box::from_raw(record.cast_mut()) });
        }
        self.edges.set(0);
    }

    /// Hands the tree's root and the last site to `visit`.
    pub(super) fn enter<R>(&self, visit: impl for<'d> FnOnce(Entered<'d>) -> R) -> R {
        visit(Entered {
            diagram: self,
            invariant: PhantomData,
        })
    }
}

impl Drop for Diagram {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Node {
    fn leaf(at: Point) -> Node {
        Node {
            at,
            left: None,
            right: None,
        }
    }
}

fn build<P: Placement>(sites: &[Point], above: *const Node, placement: P) -> Option<Box<Node>> {
    let below = sites.len().checked_sub(1)?;
    let (left, rest) = sites.split_at(left_share(below));
    let (&at, right) = rest.split_first()?;
    let mut node = placement.new_near(Node::leaf(at), above);
    let here = ptr::from_ref(&*node);
    node.left = build(left, here, placement);
    node.right = build(right, here, placement);
    Some(node)
}

/// Keeps `'d` from being shortened to that of another diagram.
type Invariant<'d> = PhantomData<fn(&'d ()) -> &'d ()>;

/// A diagram that is borrowed for `'d`, which is the lifetime of no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered<'d> {
    diagram: &'d Diagram,
    invariant: Invariant<'d>,
}

impl<'d> Entered<'d> {
    /// The root of the tree.
    pub(super) fn root(self) -> Option<Site<'d>> {
        let [root, _] = &*self.diagram.sites;
        root.as_deref().map(Site::new)
    }

    /// The largest site, which is not in the tree.
    pub(super) fn last(self) -> Option<Site<'d>> {
        let [_, last] = &*self.diagram.sites;
        last.as_deref().map(Site::new)
    }

    /// An edge from `origin` to `destination` that is connected to no other one.
    pub(super) fn edge(self, origin: Site<'d>, destination: Site<'d>) -> Edge<'d> {
        let record = Record {
            next: [const { Cell::new(Reference(ptr::null())) }; QUARTERS],
            ends: [ptr::from_ref(origin.node), ptr::from_ref(destination.node)],
            marked: Cell::new(false),
        };
        let record = Box::into_raw(Box::new(record));
        let first = Reference::new(record, 0);
        // SAFETY: a live record, and nobody else knows it.
        let next = unsafe { &(*record).next };
        // Around a site there is nothing but the edge itself; around the one face, both of its
        // sides.
        for (quarter, follows) in [0, 3, 2, 1].into_iter().enumerate() {
            next[quarter].set(first.turned(follows));
        }
        self.diagram.edges.set(self.diagram.edges.get() + 1);
        Edge {
            reference: first,
            invariant: PhantomData,
        }
    }

    /// Notes an edge from which all others can be reached.
    pub(super) fn set_first(self, edge: Edge<'d>) {
        self.diagram.first.set(Some(edge.reference));
    }

    /// Calls `visit` for each edge that can be reached from the first one over sites, once in one
    /// of its directions, neighbours soon after each other.
    pub(super) fn each_edge<P: Placement>(self, placement: P, mut visit: impl FnMut(Edge<'d>)) {
        let Some(first) = self.diagram.first.get() else {
            return;
        };
        let edge = |reference| Edge {
            reference,
            invariant: PhantomData,
        };
        let mark = !edge(first).record().marked.get();
        let mut pending = self.diagram.pending.take();
        pending.clear();
        pending.push(first);
        while let Some(reference) = pending.pop() {
            let edge = edge(reference);
            if edge.record().marked.replace(mark) == mark {
                continue;
            }
            visit(edge);
            for neighbour in [edge.sym().onext(), edge.onext()] {
                placement.prefetch(neighbour.address());
                pending.push(neighbour.reference);
            }
        }
        self.diagram.pending.replace(pending);
    }
}

/// A site of a diagram that is borrowed for `'d`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site<'d> {
    node: &'d Node,
    invariant: Invariant<'d>,
}

impl PartialEq for Site<'_> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.node, other.node)
    }
}

impl<'d> Site<'d> {
    fn new(node: &'d Node) -> Site<'d> {
        Site {
            node,
            invariant: PhantomData,
        }
    }

    /// Where it lies in the plane.
    #[inline]
    pub(super) fn at(self) -> Point {
        self.node.at
    }

    /// The root of the smaller ones below it.
    pub(super) fn left(self) -> Option<Site<'d>> {
        self.node.left.as_deref().map(Site::new)
    }

    /// The root of the larger ones below it.
    pub(super) fn right(self) -> Option<Site<'d>> {
        self.node.right.as_deref().map(Site::new)
    }

    /// Where it lies in memory.
    pub(super) fn address(self) -> *const Node {
        self.node
    }
}

/// A directed edge of a diagram that is borrowed for `'d`, from a site to a site or from a face to
/// a face.
///
/// Invariant: its record is live and of that diagram, unless it was [deleted](Edge::delete), after
/// which it is not used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge<'d> {
    reference: Reference,
    invariant: Invariant<'d>,
}

impl PartialEq for Edge<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.reference == other.reference
    }
}

impl<'d> Edge<'d> {
    #[inline]
    fn record(self) -> &'d Record {
        // SAFETY: the invariant: live. Records change in cells only, and are freed by `delete`,
        // after which no edge of this record is used, or once the borrow `'d` has ended.
        unsafe { &*self.reference.record() }
    }

    #[inline]
    fn of(reference: Reference) -> Edge<'d> {
        Edge {
            reference,
            invariant: PhantomData,
        }
    }

    /// Where the record lies in memory.
    #[inline]
    pub(super) fn address(self) -> *const Record {
        self.reference.record()
    }

    /// Whether it is the same edge in some direction, along or across.
    #[inline]
    pub(super) fn is_same_record(self, other: Edge<'d>) -> bool {
        ptr::eq(self.address(), other.address())
    }

    /// The same edge backwards.
    #[inline]
    pub(super) fn sym(self) -> Edge<'d> {
        Edge::of(self.reference.turned(2))
    }

    /// The edge that crosses it from right to left.
    #[inline]
    fn rot(self) -> Edge<'d> {
        Edge::of(self.reference.turned(1))
    }

    /// The edge that crosses it from left to right.
    #[inline]
    fn inverse_rot(self) -> Edge<'d> {
        Edge::of(self.reference.turned(3))
    }

    /// The next one counter-clockwise around its origin.
    #[inline]
    pub(super) fn onext(self) -> Edge<'d> {
        // A reference in a live record, so to a live one of the same diagram.
        Edge::of(self.record().next[self.reference.quarter()].get())
    }

    /// The next one clockwise around its origin.
    #[inline]
    pub(super) fn oprev(self) -> Edge<'d> {
        self.rot().onext().rot()
    }

    /// The next one counter-clockwise around the face on its left.
    #[inline]
    pub(super) fn lnext(self) -> Edge<'d> {
        self.inverse_rot().onext().rot()
    }

    /// The next one clockwise around the face on its right, seen from there; that is the one before
    /// it, backwards.
    #[inline]
    pub(super) fn rprev(self) -> Edge<'d> {
        self.sym().onext()
    }

    /// The site where it begins, of an edge between sites.
    #[inline]
    pub(super) fn origin(self) -> Site<'d> {
        let end = self.record().ends[self.reference.quarter() >> 1];
        // SAFETY: the address of a node of the diagram, whose nodes are borrowed for `'d`, and
        // neither moved nor freed while there are edges.
        Site::new(unsafe { &*end })
    }

    /// The site where it ends, of an edge between sites.
    #[inline]
    pub(super) fn destination(self) -> Site<'d> {
        self.sym().origin()
    }

    /// Joins the rings of two edges, or separates them if they are one: both around the origins and
    /// around the faces on their left.
    #[inline]
    pub(super) fn splice(self, other: Edge<'d>) {
        let (one_dual, other_dual) = (self.onext().rot(), other.onext().rot());
        self.exchange(other);
        one_dual.exchange(other_dual);
    }

    /// Exchanges what follows two edges, which keeps "next" a permutation.
    #[inline]
    fn exchange(self, other: Edge<'d>) {
        let next = &self.record().next[self.reference.quarter()];
        next.swap(&other.record().next[other.reference.quarter()]);
    }

    /// Takes the edge out of the diagram and frees it.
    ///
    /// # Panics
    /// When edges around it were deleted by other means; never.
    ///
    /// # Safety
    /// - Neither this edge nor another one of the same record (backwards, across) is used
    ///   afterwards, and it is not, nor becomes, the diagram's first one.
    pub(super) unsafe fn delete(self, from: Entered<'d>) {
        self.splice(self.oprev());
        self.sym().splice(self.sym().oprev());
        let record = self.reference.record();
        let mut next = self.record().next.iter();
        assert!(
            next.all(|next| next.get().record() == record),
            "an edge that was spliced out is alone"
        );
        from.diagram.edges.set(from.diagram.edges.get() - 1);
        // SAFETY: a live record, made of a box. Its four quarters are followed by themselves;
        // "next" being a permutation, no other record refers to it. No edge does, by the caller's
        // promise, nor `first`.
        drop(unsafe { Box::from_raw(record.cast_mut()) });
    }
}
