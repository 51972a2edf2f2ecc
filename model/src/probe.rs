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

use std::hint::black_box;
use std::io::ErrorKind;
use std::time::Instant;

use crate::{
    Error, NO_NODE, NodeExtent, Overlap, PageSize, PagedMemory, Placement, SearchStyle, Shape,
};

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
    /// When the shape is no binary tree, a node is smaller than 24 bytes, a position is no multiple
    /// of 8, two nodes overlap, or the system has not enough memory.
    ///
    /// # Panics
    /// When the placement has fewer nodes than the shape.
    pub fn new(
        shape: &Shape,
        placement: &Placement,
        node: NodeExtent,
        pages: PageSize,
    ) -> Result<TreeProbe, Error> {
        let bytes = u64::from(node.bytes);
        if bytes < 8 * NODE_WORDS as u64 {
            let what = format!("a node of {bytes} bytes has no room for a key and two links");
            return Err(Error::new(what));
        }
        let not_binary = || Error::new("the shape is not one binary tree");
        let mut roots = shape.roots();
        let (Some(root), None) = (roots.next(), roots.next()) else {
            return Err(not_binary());
        };
        let mut offsets = placement.offsets().to_vec();
        offsets.sort_unstable();
        // In nodes that overlap, a link could be a key as well, and a search might never end.
        if let Some(pair) = offsets.windows(2).find(|pair| pair[1] - pair[0] < bytes) {
            let (a, b) = (pair[0], pair[1]);
            return Err(Error::new(format!(
                "the nodes at offsets {a} and {b} overlap"
            )));
        }
        let (lowest, highest) = (offsets[0] / 8 * 8, offsets[offsets.len() - 1]);
        let no_memory = |error| Error::new(format!("no memory for the tree: {error}"));
        let index =
            |word| usize::try_from(word).map_err(|_| no_memory(ErrorKind::OutOfMemory.into()));
        let word_of = |v: u32| match placement.offset(v) - lowest {
            offset if offset.is_multiple_of(8) => index(offset / 8),
            offset => {
                let what = format!("a node at offset {offset} is not at a multiple of 8");
                Err(Error::new(what))
            }
        };
        let len = index((highest - lowest) / 8 + NODE_WORDS as u64)?;
        let mut memory = PagedMemory::new(len, pages).map_err(no_memory)?;
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
            let left_nodes = subtree.get(left as usize).copied().unwrap_or(0);
            let rank = below + u64::from(left_nodes);
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
    pub fn random_search_ns(&mut self, style: SearchStyle, searches: u32) -> f64 {
        match style {
            SearchStyle::Branches => self.timed(Overlap::Dependent, searches, search::<true>),
            SearchStyle::BranchFree => self.timed(Overlap::Dependent, searches, search::<false>),
        }
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
            SearchStyle::Branches => self.timed(overlap, descents, descend::<true>),
            SearchStyle::BranchFree => self.timed(overlap, descents, descend::<false>),
        }
    }

    #[inline(always)]
    fn timed(
        &mut self,
        overlap: Overlap,
        searches: u32,
        find: impl Fn(&[u64], usize, u64) -> usize,
    ) -> f64 {
        let (nodes, root) = (self.nodes, self.root);
        let words = self.memory.as_slice();
        let mut both = (self.state, 0u64);
        let ns = ns_each(&mut both, searches, |(state, sum)| {
            *state = next_state(*state);
            let found = find(words, root, scale(*state, nodes));
            assert!(found != NONE, "a key of the probed tree is missing");
            let found = found as u64;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    #[test]
    fn every_key_is_found_at_a_node_of_its_own() {
        let node = NodeExtent::new(24, 8).unwrap();
        let shape = Shape::random_binary(1000, 5);
        let layouts = [
            Layout::DepthFirst,
            Layout::VanEmdeBoas,
            Layout::Random { seed: 3 },
        ];
        for placement in layouts.map(|layout| layout.place(&shape, node)) {
            let mut tree = TreeProbe::new(&shape, &placement, node, PageSize::Small4K).unwrap();
            let (words, root) = (tree.memory.as_slice(), tree.root);
            let mut offsets = Vec::new();
            for key in 0..1000 {
                let found = search::<true>(words, root, key);
                assert_eq!(search::<false>(words, root, key), found);
                assert_eq!(descend::<true>(words, root, key), found);
                assert_eq!(descend::<false>(words, root, key), found);
                offsets.push(8 * found as u64);
            }
            let mut expected = placement.into_offsets();
            offsets.sort_unstable();
            expected.sort_unstable();
            assert_eq!(offsets, expected);
            assert_eq!(search::<false>(words, root, 1000), NONE);
            // The clock is not judged, only that the searches end and find their keys.
            for style in [SearchStyle::Branches, SearchStyle::BranchFree] {
                assert!(tree.random_search_ns(style, 100) >= 0.0);
                for overlap in [Overlap::Dependent, Overlap::Independent] {
                    assert!(tree.random_descent_ns(style, overlap, 100) >= 0.0);
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_probed_is_refused() {
        const TWO: &[u32] = &[NO_NODE, 0];
        let cases: [(&[u32], u32, &[u64], &str); 9] = [
            (&[NO_NODE, 0, 0, 0], 24, &[0, 24, 48, 72], "binary tree"),
            (&[NO_NODE, NO_NODE], 24, &[0, 24], "binary tree"),
            (TWO, 16, &[0, 16], "16 bytes"),
            (TWO, 24, &[0, 25], "offset 25"),
            (TWO, 24, &[0, 8], "overlap"),
            (TWO, 24, &[16, 0], "overlap"),
            (TWO, 24, &[7, 7], "overlap"),
            (TWO, 24, &[u64::MAX, u64::MAX - 23], "overlap"),
            (TWO, 24, &[0, 1 << 46], "no memory"),
        ];
        for (parents, bytes, offsets, expected) in cases {
            let shape = Shape::from_parents(parents).unwrap();
            let node = NodeExtent::new(bytes, 8).unwrap();
            let placement = Placement::from_offsets(offsets.to_vec());
            let refusal = TreeProbe::new(&shape, &placement, node, PageSize::Small4K);
            let message = refusal.unwrap_err().to_string();
            assert!(message.contains(expected), "{expected}: {message}");
        }
    }
}
