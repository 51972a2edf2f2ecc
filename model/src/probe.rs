//! A real search tree, laid out as a [`Placement`] says, and the time that its searches take.
//!
//! Predictions are worth what a clock says of them. A probe takes the same shape and placement as a
//! prediction, writes a binary search tree into memory of the chosen page size, node for node at
//! the offsets of the placement, and measures dependent searches: the key of each search follows
//! from the address at which the one before ended, so that no two of them overlap. For comparison,
//! it measures descents that do not wait for each other.
//!
//! ```text
//! node at its offset:   | key | left child | right child | rest of the node, never touched |
//! ```
//!
//! Children are word indices into the probe's memory, and keys are ranks, so that everything here
//! is safe code; the processor sees one load for the key and one for the child, as with pointers.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::time::Instant;

use crate::{NO_NODE, NodeExtent, Overlap, PageSize, PagedMemory, Placement, SearchStyle, Shape};

/// Words of a node that a search reads.
const NODE_WORDS: usize = 3;
/// Child index of a missing child, and result of a search that finds nothing.
const NONE: usize = usize::MAX;

/// A binary search tree in memory, ready to be searched against the clock.
#[derive(Debug)]
pub struct TreeProbe {
    memory: PagedMemory,
    root: usize,
    nodes: u64,
    /// State of the key generator; carries the dependence from one search to the next.
    state: u64,
}

impl TreeProbe {
    /// Builds the tree of a shape with one root and at most two children a node. A lone child goes
    /// to the left of a node of even number, to the right of an odd one.
    ///
    /// O(n log n) time and as much memory as the placement spans.
    ///
    /// # Errors
    /// [`ProbeError`] when the shape is no binary tree, a node is smaller than 24 bytes, a position
    /// is no multiple of 8, two nodes overlap, or the system has not enough memory.
    ///
    /// # Panics
    /// When the placement has fewer nodes than the shape.
    pub fn new(
        shape: &Shape,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
    ) -> Result<TreeProbe, ProbeError> {
        if (node.bytes as usize) < NODE_WORDS * size_of::<u64>() {
            return Err(ProbeError::NodeTooSmall { bytes: node.bytes });
        }
        let mut roots = shape.roots();
        let (Some(root), None) = (roots.next(), roots.next()) else {
            return Err(ProbeError::NotBinary);
        };
        check_apart(placement, node)?;
        let lowest = placement.offsets().iter().copied().min().unwrap_or(0) / 8 * 8;
        let word_of = |v: u32| -> Result<usize, ProbeError> {
            let offset = placement.offset(v) - lowest;
            if !offset.is_multiple_of(8) {
                return Err(ProbeError::Misaligned { offset });
            }
            usize::try_from(offset / 8)
                .map_err(|_| ProbeError::Memory(io::ErrorKind::OutOfMemory.into()))
        };
        let highest = placement.offsets().iter().copied().max().unwrap_or(0) - lowest;
        let len = usize::try_from(highest / 8 + NODE_WORDS as u64)
            .map_err(|_| ProbeError::Memory(io::ErrorKind::OutOfMemory.into()))?;
        let mut memory = PagedMemory::new(len, pages).map_err(ProbeError::Memory)?;
        let words = memory.as_mut_slice();
        let subtree = shape.subtree_nodes();
        // Keys below the subtree of each node; parents come first.
        let mut smaller = vec![0u64; shape.len()];
        for v in 0..u32::try_from(shape.len()).map_err(|_| ProbeError::NotBinary)? {
            let (left, right) = match *shape.children(v) {
                [] => (NO_NODE, NO_NODE),
                [only] if v % 2 == 0 => (only, NO_NODE),
                [only] => (NO_NODE, only),
                [left, right] => (left, right),
                _ => return Err(ProbeError::NotBinary),
            };
            let below = smaller[v as usize];
            let rank = below
                + if left == NO_NODE {
                    0
                } else {
                    u64::from(subtree[left as usize])
                };
            let mut links = [NONE as u64; 2];
            for (link, child, child_smaller) in [(0, left, below), (1, right, rank + 1)] {
                if child != NO_NODE {
                    smaller[child as usize] = child_smaller;
                    links[link] = word_of(child)? as u64;
                }
            }
            let at = word_of(v)?;
            words[at..at + NODE_WORDS].copy_from_slice(&[rank, links[0], links[1]]);
        }
        Ok(TreeProbe {
            root: word_of(root)?,
            memory,
            nodes: shape.len() as u64,
            state: 0x9E37_79B9_7F4A_7C15,
        })
    }

    /// Runs dependent searches for uniformly random keys, all of them present; returns nanoseconds
    /// for one search.
    ///
    /// Each search ends at a node, since all nodes are there and none overlaps another.
    pub fn random_search_ns(&mut self, style: SearchStyle, searches: u32) -> f64 {
        match style {
            SearchStyle::Branches => self.timed_random(searches, search::<true>),
            SearchStyle::BranchFree => self.timed_random(searches, search::<false>),
        }
    }

    #[inline(always)]
    fn timed_random(&mut self, searches: u32, search: impl Fn(&[u64], usize, u64) -> usize) -> f64 {
        let (nodes, root) = (self.nodes, self.root);
        let mut state = self.state;
        let words = self.memory.as_slice();
        let start = Instant::now();
        for _ in 0..searches {
            state = next_state(state);
            let found = search(words, root, scale(state, nodes));
            assert!(found != NONE, "a key of the probed tree is missing");
            state = state.wrapping_add(found as u64);
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(searches.max(1));
        self.state = black_box(state);
        ns
    }

    /// Runs descents for uniformly random keys, from the root to where a missing child ends them,
    /// whether or not the key was found on the way; returns nanoseconds for one descent.
    ///
    /// In a tree whose leaves are all as deep the processor knows where a descent ends, other than
    /// where a search does that stops at its key, and can begin an independent one before: its key
    /// is known before that.
    pub fn random_descent_ns(
        &mut self,
        style: SearchStyle,
        overlap: Overlap,
        descents: u32,
    ) -> f64 {
        match style {
            SearchStyle::Branches => self.timed_descents(overlap, descents, descend::<true>),
            SearchStyle::BranchFree => self.timed_descents(overlap, descents, descend::<false>),
        }
    }

    #[inline(always)]
    fn timed_descents(
        &mut self,
        overlap: Overlap,
        descents: u32,
        descend: impl Fn(&[u64], usize, u64) -> usize,
    ) -> f64 {
        let (nodes, root) = (self.nodes, self.root);
        let (mut state, mut sum) = (self.state, 0u64);
        let words = self.memory.as_slice();
        let start = Instant::now();
        for _ in 0..descents {
            state = next_state(state);
            let found = descend(words, root, scale(state, nodes)) as u64;
            sum = sum.wrapping_add(found);
            if overlap == Overlap::Dependent {
                state = state.wrapping_add(found);
            }
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(descents.max(1));
        self.state = black_box(state).wrapping_add(black_box(sum));
        ns
    }

    /// Runs dependent searches for the same few keys over and over, so that every branch is
    /// predicted; returns nanoseconds for one search.
    pub(crate) fn predictable_search_ns(&mut self, keys: [u64; 2], searches: u32) -> f64 {
        let root = self.root;
        let words = self.memory.as_slice();
        let mut low_bits = 0;
        let start = Instant::now();
        for i in 0..searches {
            // Word indices are below 2^61, so the shifted index is 0: a dependence, not a change of
            // the key.
            let key = keys[i as usize % 2].wrapping_add(low_bits >> 62);
            low_bits = search::<true>(words, root, key) as u64;
        }
        let ns = start.elapsed().as_nanos() as f64 / f64::from(searches.max(1));
        black_box(low_bits);
        ns
    }

    /// Where the memory of the tree begins.
    pub fn address(&self) -> usize {
        self.memory.as_slice().as_ptr().addr()
    }

    /// The state of the random numbers: equal after equal searches that ended at equal addresses.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// Nodes that a search for this rank visits.
    pub(crate) fn depth(&self, key: u64) -> u32 {
        let words = self.memory.as_slice();
        let mut at = self.root;
        let mut visited = 0;
        while let Some(&[node_key, left, right]) = node_at(words, at) {
            visited += 1;
            if node_key == key {
                break;
            }
            at = link(if key < node_key { left } else { right });
        }
        visited
    }
}

/// Refuses placements in which nodes overlap: a link could then be a key as well, and lead a search
/// round in circles.
fn check_apart(placement: &Placement, node: NodeExtent) -> Result<(), ProbeError> {
    let mut offsets = placement.offsets().to_vec();
    offsets.sort_unstable();
    match offsets
        .windows(2)
        .find(|pair| pair[1] - pair[0] < u64::from(node.bytes))
    {
        Some(pair) => Err(ProbeError::Overlap {
            offset: pair[0],
            other: pair[1],
        }),
        None => Ok(()),
    }
}

/// Next state of a linear congruential generator (Knuth's MMIX constants); only the high bits are
/// used.
#[inline]
pub(crate) fn next_state(state: u64) -> u64 {
    state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407)
}

/// Maps a state to `0..count`.
#[inline]
pub(crate) fn scale(state: u64, count: u64) -> u64 {
    ((u128::from(state) * u128::from(count)) >> 64) as u64
}

#[inline]
fn node_at(words: &[u64], at: usize) -> Option<&[u64; NODE_WORDS]> {
    words.get(at..)?.first_chunk()
}

/// A stored child index.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "stored indices were made from usize values"
)]
fn link(stored: u64) -> usize {
    stored as usize
}

/// The textbook search with its early exit; returns the index of the node.
///
/// With `BRANCHES` each step ends in a conditional jump; without, the compiler selects one of the
/// two loaded links.
#[inline(never)]
fn search<const BRANCHES: bool>(words: &[u64], root: usize, key: u64) -> usize {
    let mut at = root;
    while let Some(&[node_key, left, right]) = node_at(words, at) {
        if key == node_key {
            return at;
        }
        if key < node_key {
            at = link(left);
            if BRANCHES {
                // Opaque to the compiler, so the two arms cannot become one selection.
                black_box(());
            }
        } else {
            at = link(right);
        }
    }
    NONE
}

/// The way from the root to a missing child; returns the index of the last node whose key is not
/// above the wanted one.
#[inline(never)]
fn descend<const BRANCHES: bool>(words: &[u64], root: usize, key: u64) -> usize {
    let (mut at, mut found) = (root, NONE);
    while let Some(&[node_key, left, right]) = node_at(words, at) {
        if key < node_key {
            at = link(left);
            if BRANCHES {
                // Opaque to the compiler, so the two arms cannot become one selection.
                black_box(());
            }
        } else {
            found = at;
            at = link(right);
        }
    }
    found
}

/// Why a tree cannot be probed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProbeError {
    /// Not exactly one root, or a node with more than two children.
    NotBinary,
    /// A node has no room for a key and two links.
    NodeTooSmall {
        /// Its size.
        bytes: u32,
    },
    /// A node would lie across words.
    Misaligned {
        /// Its distance from the first node in bytes.
        offset: u64,
    },
    /// Two nodes share bytes.
    Overlap {
        /// Where the lower one begins.
        offset: u64,
        /// Where the higher one begins.
        other: u64,
    },
    /// The system gave no memory.
    Memory(io::Error),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::NotBinary => f.write_str("the shape is not one binary tree"),
            ProbeError::NodeTooSmall { bytes } => write!(
                f,
                "a node of {bytes} bytes has no room for a key and two links"
            ),
            ProbeError::Misaligned { offset } => {
                write!(f, "a node at offset {offset} is not at a multiple of 8")
            }
            ProbeError::Overlap { offset, other } => {
                write!(f, "the nodes at offsets {offset} and {other} overlap")
            }
            ProbeError::Memory(error) => write!(f, "no memory for the tree: {error}"),
        }
    }
}

impl core::error::Error for ProbeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            ProbeError::Memory(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Visits};

    fn probe(shape: &Shape, layout: Layout) -> Result<TreeProbe, ProbeError> {
        let node = NodeExtent::new(24, 8).unwrap();
        TreeProbe::new(shape, &layout.place(shape, node), node, PageSize::Small4K)
    }

    #[test]
    fn every_key_is_found_at_its_depth() {
        for layout in [
            Layout::DepthFirst,
            Layout::VanEmdeBoas,
            Layout::Random { seed: 3 },
        ] {
            let shape = Shape::random_binary(1000, 5);
            let mut tree = probe(&shape, layout).unwrap();
            let visited: u32 = (0..1000).map(|key| tree.depth(key)).sum();
            let expected = Visits::uniform(&shape).nodes_per_operation() * 1000.0;
            assert!((f64::from(visited) - expected).abs() < 1e-6);
            assert!(
                (0..1000).all(|key| search::<true>(tree.memory.as_slice(), tree.root, key) != NONE)
            );
            assert_eq!(
                search::<false>(tree.memory.as_slice(), tree.root, 1000),
                NONE
            );
            // The clock is not judged, only that the searches end and find their keys.
            assert!(tree.random_search_ns(SearchStyle::Branches, 100) >= 0.0);
            assert!(tree.random_search_ns(SearchStyle::BranchFree, 100) >= 0.0);
            for overlap in [Overlap::Dependent, Overlap::Independent] {
                assert!(tree.random_descent_ns(SearchStyle::Branches, overlap, 100) >= 0.0);
                assert!(tree.random_descent_ns(SearchStyle::BranchFree, overlap, 100) >= 0.0);
            }
            assert!((0..1000).all(|key| {
                let words = tree.memory.as_slice();
                let found = descend::<false>(words, tree.root, key);
                found == search::<true>(words, tree.root, key)
                    && found == descend::<true>(words, tree.root, key)
            }));
        }
    }

    #[test]
    fn what_cannot_be_probed_is_refused() {
        let three = Shape::from_parents(&[NO_NODE, 0, 0, 0]).unwrap();
        assert!(matches!(
            probe(&three, Layout::DepthFirst),
            Err(ProbeError::NotBinary)
        ));
        let forest = Shape::from_parents(&[NO_NODE, NO_NODE]).unwrap();
        assert!(matches!(
            probe(&forest, Layout::DepthFirst),
            Err(ProbeError::NotBinary)
        ));
        let two = Shape::complete_binary(2);
        let small = NodeExtent::new(16, 8).unwrap();
        let placed = Placement::from_offsets(vec![0, 16]);
        assert!(matches!(
            TreeProbe::new(&two, &placed, small, PageSize::Small4K),
            Err(ProbeError::NodeTooSmall { bytes: 16 })
        ));
        let node = NodeExtent::new(24, 8).unwrap();
        let odd = Placement::from_offsets(vec![0, 25]);
        assert!(matches!(
            TreeProbe::new(&two, &odd, node, PageSize::Small4K),
            Err(ProbeError::Misaligned { offset: 25 })
        ));
        for offsets in [[0, 8], [16, 0], [7, 7], [u64::MAX, u64::MAX - 23]] {
            let overlapping = Placement::from_offsets(offsets.to_vec());
            assert!(matches!(
                TreeProbe::new(&two, &overlapping, node, PageSize::Small4K),
                Err(ProbeError::Overlap { .. })
            ));
        }
        let sparse = Placement::from_offsets(vec![0, 1 << 46]);
        assert!(matches!(
            TreeProbe::new(&two, &sparse, node, PageSize::Small4K),
            Err(ProbeError::Memory(_))
        ));
    }
}
