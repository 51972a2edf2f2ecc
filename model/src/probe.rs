//! A real search tree at the offsets of a [`Placement`], and the time that its searches take.
//!
//! Searches are dependent: the key of each follows from the address at which the one before ended.
//! For comparison, a probe also times descents that do not wait for each other.
//!
//! ```text
//! node at its offset:   | key | left child | right child | rest of the node, never touched |
//! ```
//!
//! Children are word indices into the probe's memory, so that everything here is safe code. The
//! processor sees one load for the key and one for the child, as with pointers.

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
            let bytes = node.bytes;
            let what = format!("a node of {bytes} bytes has no room for a key and two links");
            return Err(ProbeError::Tree(what));
        }
        let not_binary = || ProbeError::Tree("the shape is not one binary tree".to_owned());
        let mut roots = shape.roots();
        let (Some(root), None) = (roots.next(), roots.next()) else {
            return Err(not_binary());
        };
        check_apart(placement, node)?;
        let lowest = placement.offsets().iter().copied().min().unwrap_or(0) / 8 * 8;
        let index = |word: u64| {
            usize::try_from(word).map_err(|_| ProbeError::Memory(io::ErrorKind::OutOfMemory.into()))
        };
        let word_of = |v: u32| -> Result<usize, ProbeError> {
            let offset = placement.offset(v) - lowest;
            if !offset.is_multiple_of(8) {
                let what = format!("a node at offset {offset} is not at a multiple of 8");
                return Err(ProbeError::Tree(what));
            }
            index(offset / 8)
        };
        let highest = placement.offsets().iter().copied().max().unwrap_or(0) - lowest;
        let len = index(highest / 8 + NODE_WORDS as u64)?;
        let mut memory = PagedMemory::new(len, pages).map_err(ProbeError::Memory)?;
        let words = memory.as_mut_slice();
        let subtree = shape.subtree_nodes();
        // Keys below the subtree of each node; parents come first.
        let mut smaller = vec![0u64; shape.len()];
        for v in 0..shape.nodes() {
            let (left, right) = match *shape.children(v) {
                [] => (NO_NODE, NO_NODE),
                [only] if v % 2 == 0 => (only, NO_NODE),
                [only] => (NO_NODE, only),
                [left, right] => (left, right),
                _ => return Err(not_binary()),
            };
            let below = smaller[v as usize];
            let rank = below
                + subtree
                    .get(left as usize)
                    .map_or(0, |&nodes| u64::from(nodes));
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
        let words = self.memory.as_slice();
        ns_each(&mut self.state, searches, |state| {
            *state = next_state(*state);
            let found = search(words, root, scale(*state, nodes));
            assert!(found != NONE, "a key of the probed tree is missing");
            *state = state.wrapping_add(found as u64);
        })
    }

    /// Runs descents for uniformly random keys, from the root to where a missing child ends them,
    /// whether or not the key was found on the way; returns nanoseconds for one descent.
    ///
    /// In a tree whose leaves are all equally deep the processor can predict where a descent ends,
    /// and so begin an independent one before that. It cannot where searches stop at their keys.
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
        let words = self.memory.as_slice();
        let mut both = (self.state, 0u64);
        let ns = ns_each(&mut both, descents, |(state, sum)| {
            *state = next_state(*state);
            let found = descend(words, root, scale(*state, nodes)) as u64;
            *sum = sum.wrapping_add(found);
            if overlap == Overlap::Dependent {
                *state = state.wrapping_add(found);
            }
        });
        self.state = both.0.wrapping_add(both.1);
        ns
    }

    /// Runs dependent searches for the same few keys over and over, so that every branch is
    /// predicted; returns nanoseconds for one search.
    pub(crate) fn predictable_search_ns(&mut self, keys: [u64; 2], searches: u32) -> f64 {
        let root = self.root;
        let words = self.memory.as_slice();
        ns_each(&mut (0usize, 0), searches, |(i, found)| {
            // Word indices are below 2^61, so the shifted index is 0: a dependence, not a change of
            // the key.
            let key = keys[*i % 2].wrapping_add(*found >> 62);
            *found = search::<true>(words, root, key) as u64;
            *i += 1;
        })
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

/// Refuses placements in which nodes overlap: a link could then be a key as well, and a search
/// might never end.
fn check_apart(placement: &Placement, node: NodeExtent) -> Result<(), ProbeError> {
    let mut offsets = placement.offsets().to_vec();
    offsets.sort_unstable();
    let mut pairs = offsets.windows(2);
    match pairs.find(|pair| pair[1] - pair[0] < u64::from(node.bytes)) {
        Some(pair) => {
            let what = format!("the nodes at offsets {} and {} overlap", pair[0], pair[1]);
            Err(ProbeError::Tree(what))
        }
        None => Ok(()),
    }
}

/// Runs `steps` steps, each on the state that the one before left; nanoseconds a step.
#[inline(always)]
pub(crate) fn ns_each<S: Copy>(state: &mut S, steps: u32, mut step: impl FnMut(&mut S)) -> f64 {
    // A local copy, which can live in registers.
    let mut now = *state;
    let start = Instant::now();
    for _ in 0..steps {
        step(&mut now);
    }
    let ns = start.elapsed().as_nanos() as f64 / f64::from(steps.max(1));
    *state = black_box(now);
    ns
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

/// Goes from the root to a missing child; returns the index of the last node whose key is not above
/// the wanted one.
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
    /// The shape or the placement is not that of a binary tree; the message says why.
    Tree(String),
    /// The system gave no memory.
    Memory(io::Error),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Tree(what) => f.write_str(what),
            ProbeError::Memory(error) => write!(f, "no memory for the tree: {error}"),
        }
    }
}

impl core::error::Error for ProbeError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            ProbeError::Memory(error) => Some(error),
            ProbeError::Tree(_) => None,
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
        let refusal = |parents: &[u32], bytes, offsets: Vec<u64>| {
            let shape = Shape::from_parents(parents).unwrap();
            let node = NodeExtent::new(bytes, 8).unwrap();
            let placement = Placement::from_offsets(offsets);
            TreeProbe::new(&shape, &placement, node, PageSize::Small4K).unwrap_err()
        };
        let tree =
            |parents: &[u32], bytes, offsets: Vec<u64>| match refusal(parents, bytes, offsets) {
                ProbeError::Tree(what) => what,
                ProbeError::Memory(error) => panic!("{error}"),
            };
        for parents in [&[NO_NODE, 0, 0, 0][..], &[NO_NODE, NO_NODE]] {
            let offsets = (0..parents.len() as u64).map(|v| v * 24).collect();
            assert!(tree(parents, 24, offsets).contains("binary tree"));
        }
        let two = |bytes, offsets: [u64; 2]| tree(&[NO_NODE, 0], bytes, offsets.to_vec());
        assert!(two(16, [0, 16]).contains("16 bytes"));
        assert!(two(24, [0, 25]).contains("offset 25"));
        for offsets in [[0, 8], [16, 0], [7, 7], [u64::MAX, u64::MAX - 23]] {
            assert!(two(24, offsets).contains("overlap"));
        }
        let sparse = refusal(&[NO_NODE, 0], 24, vec![0, 1 << 46]);
        assert!(matches!(sparse, ProbeError::Memory(_)));
    }
}
