//! Where the nodes of a structure lie, as numbers and as a picture.
//!
//! [`map`] makes a map of boxes, [`Morph::map_slice`](crate::Morph::map_slice) of nodes in a slice,
//! and [`Map::new`] of anything else that has addresses, under any allocator.

mod svg;

pub use svg::MapStyle;

use crate::collect::collect;
use crate::error::MorphError;
use crate::link::Link;
use crate::size::extent_of_all;
use crate::visit::{Links, Visit};
use ccmodel::{BlockProbabilities, NO_NODE, Placement, Shape, ShapeError, Visits};
use std::fmt;

/// Says where the nodes below `root` lie that `traverse` shows. Moves nothing.
///
/// The traversal is the one of [`ccmorph`](crate::ccmorph()), which takes nodes as `&mut`; hence
/// the mutable root. O(n log n); the map has 28 bytes a node.
///
/// # Examples
/// ```
/// use ccmorph::map;
///
/// struct Node { next: Option<Box<Node>> }
///
/// // Under any global allocator.
/// let mut list = None;
/// for _ in 0..100 {
///     list = Some(Box::new(Node { next: list }));
/// }
/// let map = map(&mut list, |node, visit| visit(&mut node.next))?;
/// assert_eq!((map.len(), map.edges(), map.levels()), (100, 99, 100));
/// println!("{map}");
/// # Ok::<(), ccmorph::MorphError>(())
/// ```
pub fn map<L, R, F>(root: &mut R, mut traverse: F) -> Result<Map, MorphError>
where
    L: Link,
    R: Links<Link = L> + ?Sized,
    F: for<'n, 'v, 'w> FnMut(&'n mut L::Node, &'w mut Visit<'v, 'n, L>),
{
    let node_bytes = size_of::<L::Node>();
    let map = match collect(root, &mut traverse, None)? {
        Some(nodes) => {
            let mean = extent_of_all(nodes.layouts(), false);
            let node_bytes = mean.map_or(node_bytes, |mean| mean.bytes as usize);
            Map::new(&nodes.found().parents, nodes.addresses(), node_bytes)
        }
        None => Map::new(&[], Vec::new(), node_bytes),
    };
    map.map_err(|_| MorphError::TooManyNodes)
}

/// Where the nodes of a structure lay when the map was made.
///
/// Nodes have numbers from 0 on, parents before their children. A *piece* is an aligned range of
/// memory whose size is a power of two, such as a block of 64 bytes or a page. A node counts for
/// the piece in which it begins. Methods that take the size of a piece panic for any other number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    // Invariant: `addresses`, `depths` and `by_address` are as long as the shape; `by_address` has
    // each number once.
    shape: Shape,
    addresses: Vec<u64>,
    depths: Vec<u32>,
    /// Numbers by ascending address.
    by_address: Vec<u32>,
    node_bytes: usize,
}

impl Map {
    /// A map of nodes at `addresses`, which may be any numbers, each below `parents[v]`, or a root
    /// where that is [`NO_NODE`]. O(n log n). Panics unless there are as many addresses as parents.
    ///
    /// # Errors
    /// [`ShapeError`] when a parent's number is not below its child's, or there are too many nodes.
    pub fn new(parents: &[u32], addresses: Vec<u64>, node_bytes: usize) -> Result<Map, ShapeError> {
        assert_eq!(parents.len(), addresses.len(), "an address for each node");
        let shape = Shape::from_parents(parents)?;
        let mut by_address: Vec<u32> = (0..NO_NODE).take(shape.len()).collect();
        by_address.sort_unstable_by_key(|&v| (addresses[v as usize], v));
        Ok(Map {
            depths: shape.depths(),
            shape,
            addresses,
            by_address,
            node_bytes,
        })
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// The size of a node, in bytes.
    pub fn node_bytes(&self) -> usize {
        self.node_bytes
    }

    /// Number of levels: 1 for a root alone. O(n).
    pub fn levels(&self) -> u32 {
        self.depths.iter().max().map_or(0, |depth| depth + 1)
    }

    /// The node of this number. Panics when there is none.
    pub fn node(&self, number: u32) -> MappedNode {
        let parent = self.shape.parent(number);
        MappedNode {
            number,
            address: self.addresses[number as usize],
            depth: self.depths[number as usize],
            parent: (parent != NO_NODE).then_some(parent),
        }
    }

    /// All nodes by their numbers.
    pub fn nodes(&self) -> impl Iterator<Item = MappedNode> {
        (0..NO_NODE)
            .take(self.len())
            .map(|number| self.node(number))
    }

    /// The path to a node: its root, and so on down to the node itself. O(depth). Panics when there
    /// is no such node.
    pub fn path_to(&self, number: u32) -> Vec<MappedNode> {
        let up = |node: &MappedNode| node.parent.map(|parent| self.node(parent));
        let mut path: Vec<_> = std::iter::successors(Some(self.node(number)), up).collect();
        path.reverse();
        path
    }

    /// The pieces of `bytes` in which any node begins, by ascending address. O(n) for all.
    pub fn pieces(&self, bytes: u64) -> impl Iterator<Item = Piece<'_>> {
        check_piece(bytes);
        let same = move |&a: &u32, &b: &u32| {
            self.addresses[a as usize] / bytes == self.addresses[b as usize] / bytes
        };
        self.by_address.chunk_by(same).map(move |numbers| Piece {
            map: self,
            bytes,
            numbers,
        })
    }

    /// How many nodes have a parent. O(n).
    pub fn edges(&self) -> usize {
        self.len() - self.shape.roots().count()
    }

    /// How many nodes begin in the same piece of `bytes` as their parent. O(n).
    pub fn edges_within(&self, bytes: u64) -> usize {
        check_piece(bytes);
        self.nodes()
            .filter(|node| self.is_with_parent(node, bytes))
            .count()
    }

    /// How many different pieces of `bytes` a search touches on its path from a root to a node,
    /// each node being the goal equally often. All bytes of a node count. O(n log n).
    pub fn touched_by_search(&self, bytes: u64) -> f64 {
        self.probabilities(bytes).footprint().touches()
    }

    /// How many different pieces of `bytes` hold the nodes on the path to this one. O(depth log
    /// depth). Panics when there is no such node.
    pub fn touched_on_path(&self, number: u32, bytes: u64) -> u64 {
        check_piece(bytes);
        // The first piece of each node and the one behind its last, in their order.
        let range = |node: MappedNode| {
            let last = node.address.saturating_add(self.last_byte());
            (node.address / bytes, (last / bytes).saturating_add(1))
        };
        let mut ranges: Vec<_> = self.path_to(number).into_iter().map(range).collect();
        ranges.sort_unstable();
        let (mut touched, mut counted_to) = (0, 0);
        for (first, end) in ranges {
            touched += end.saturating_sub(first.max(counted_to));
            counted_to = counted_to.max(end);
        }
        touched
    }

    /// The probability that a search touches each piece.
    fn probabilities(&self, bytes: u64) -> BlockProbabilities {
        let placement = Placement::from_offsets(self.addresses.clone());
        let touched_bytes = u32::try_from(self.last_byte() + 1).unwrap_or(u32::MAX);
        let visits = Visits::uniform(&self.shape);
        BlockProbabilities::new(&visits, &placement, touched_bytes, bytes)
    }

    /// The distance from a node's first byte to its last.
    fn last_byte(&self) -> u64 {
        (self.node_bytes as u64).saturating_sub(1)
    }

    fn is_with_parent(&self, node: &MappedNode, bytes: u64) -> bool {
        node.parent
            .is_some_and(|up| self.addresses[up as usize] / bytes == node.address / bytes)
    }

    fn share_within(&self, bytes: u64) -> f64 {
        match self.edges() {
            0 => 0.0,
            edges => 100.0 * self.edges_within(bytes) as f64 / edges as f64,
        }
    }
}

fn check_piece(bytes: u64) {
    assert!(
        bytes.is_power_of_two(),
        "the size of a piece must be a power of two, not {bytes}"
    );
}

/// The counts, in three lines.
impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [within_64, within_256, within_page] = [64, 256, 4096].map(|n| self.share_within(n));
        let [blocks, pages] = [64, 4096].map(|bytes| self.pieces(bytes).count());
        let [touched, touched_pages] = [64, 4096].map(|bytes| self.touched_by_search(bytes));
        write!(
            f,
            "{} nodes of {} B on {} levels, in {blocks} blocks of 64 B and {pages} pages\n\
             parent and child in the same 64 B: {within_64:.1}%; 256 B: {within_256:.1}%; \
             4 KiB: {within_page:.1}%\n\
             the path to a node touches {touched:.1} blocks of 64 B in {touched_pages:.1} pages",
            self.len(),
            self.node_bytes,
            self.levels()
        )
    }
}

/// A node of a [`Map`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedNode {
    /// Its number in the map.
    pub number: u32,
    /// Where it lay.
    pub address: u64,
    /// How many nodes are above it.
    pub depth: u32,
    /// The number of the node above; `None` for a root.
    pub parent: Option<u32>,
}

/// An aligned range of memory in which nodes of a [`Map`] begin: a block or a page, for instance.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'m> {
    map: &'m Map,
    bytes: u64,
    /// Numbers of the nodes of one piece, of which there is one at least.
    numbers: &'m [u32],
}

impl<'m> Piece<'m> {
    /// Where the piece begins: a multiple of its size.
    pub fn address(&self) -> u64 {
        let first = self.map.addresses[self.numbers[0] as usize];
        first / self.bytes * self.bytes
    }

    /// The nodes that begin in it, by ascending address.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = MappedNode> + use<'m> {
        let map = self.map;
        self.numbers.iter().map(|&number| map.node(number))
    }

    /// How many edges of the structure begin and end in the piece. O(nodes in it).
    pub fn edges_within(&self) -> usize {
        self.nodes()
            .filter(|node| self.map.is_with_parent(node, self.bytes))
            .count()
    }

    /// How many edges lead into the piece or out of it. O(nodes in it).
    pub fn edges_leaving(&self) -> usize {
        let children = |number| self.map.shape.children(number).len();
        let ends: usize = (self.nodes())
            .map(|node| children(node.number) + usize::from(node.parent.is_some()))
            .sum();
        // An edge within has both of its ends here.
        ends - 2 * self.edges_within()
    }
}
