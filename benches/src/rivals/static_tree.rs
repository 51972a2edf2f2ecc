//! A static search tree for batches of queries, rebuilt from the description of R. Groot Koerkamp,
//! "Static search trees: 40x faster than binary search" (2024).
//!
//! All keys lie in the last layer, 16 in a node of one cache line. A node above has 16 children and
//! the largest key of each but the last. The layers lie one after the other in huge pages, the
//! root's first. A batch goes down together, layer by layer, and prefetches each next node.

use std::arch::x86_64::{
    _MM_HINT_T0, _mm_prefetch, _mm256_cmpgt_epi32, _mm256_load_si256, _mm256_movemask_epi8,
    _mm256_packs_epi32, _mm256_set1_epi32,
};

use ccmalloc::advise_huge_pages;

const WIDTH: usize = 16;
/// Queries that go down together.
const BATCH: usize = 128;

/// Keys in order, less 2^31, since AVX2 compares signed numbers. `i32::MAX` stands for no key: no
/// query is greater.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Node([i32; WIDTH]);

/// Invariant: the layers begin at `layers` in `nodes`, the last one ends with them, and the first
/// is one node. Node `n` of a layer has the children from `16 * n` on, of the next layer, and fewer
/// keys less than `i32::MAX` than children.
#[derive(Debug)]
pub struct StaticTree {
    nodes: Vec<Node>,
    layers: Vec<usize>,
}

#[inline]
fn biased(key: u32) -> i32 {
    (key ^ (1 << 31)).cast_signed()
}

impl StaticTree {
    /// A tree of keys in order; `None` where the processor lacks AVX2.
    pub fn new(keys: &[u32]) -> Option<Self> {
        if !is_x86_feature_detected!("avx2") || !is_x86_feature_detected!("popcnt") {
            return None;
        }
        let mut lens = vec![keys.len().div_ceil(WIDTH).max(1)];
        while let Some(&len) = lens.last().filter(|len| **len > 1) {
            lens.push(len.div_ceil(WIDTH));
        }
        let mut nodes: Vec<Node> = Vec::with_capacity(lens.iter().sum());
        advise_huge_pages(nodes.as_ptr().cast(), nodes.capacity() * size_of::<Node>());
        let mut layers = Vec::new();
        for height in (0..lens.len()).rev() {
            layers.push(nodes.len());
            let span = WIDTH.pow(u32::try_from(height).ok()?);
            nodes.extend((0..lens[height]).map(|node| {
                let mut lanes = [i32::MAX; WIDTH];
                for (lane, child) in lanes.iter_mut().zip(node * WIDTH..) {
                    *lane = match height {
                        0 => keys.get(child).map_or(i32::MAX, |&key| biased(key)),
                        // The last child has no key here.
                        _ if child % WIDTH == WIDTH - 1 || child + 1 >= lens[height - 1] => break,
                        _ => biased(keys[(child + 1) * span - 1]),
                    };
                }
                Node(lanes)
            }));
        }
        Some(StaticTree { nodes, layers })
    }

    /// `ranks[i]` becomes the number of keys less than `queries[i]`.
    pub fn rank_many(&self, queries: &[u32], ranks: &mut [usize]) {
        for (queries, ranks) in queries.chunks(BATCH).zip(ranks.chunks_mut(BATCH)) {
            // SAFETY: `new` gives no tree where the processor lacks AVX2 or POPCNT.
            unsafe { self.rank_batch(queries, ranks) }
        }
    }

    /// `ranks` holds the node that each query has reached in its layer.
    ///
    /// # Safety
    /// The processor must have AVX2 and POPCNT.
    #[target_feature(enable = "avx2,popcnt")]
    fn rank_batch(&self, queries: &[u32], ranks: &mut [usize]) {
        ranks.fill(0);
        for (layer, &begin) in self.layers.iter().enumerate() {
            let nodes = self.nodes.as_ptr().wrapping_add(begin);
            let next = self.layers.get(layer + 1);
            let next = next.map(|&begin| self.nodes.as_ptr().wrapping_add(begin));
            for (node, &query) in ranks.iter_mut().zip(queries) {
                // SAFETY: `node` is 0, the root, or what the loop over the layer above left: by the
                // invariant `smaller` gives less than the number of children, so the child exists.
                // The processor has what this function needs, too.
                let smaller = unsafe { smaller(nodes.add(*node), query) };
                *node = *node * WIDTH + smaller;
                if let Some(next) = next {
                    _mm_prefetch::<_MM_HINT_T0>(next.wrapping_add(*node).cast());
                }
            }
        }
    }
}

/// How many keys of a node are less than `query`.
///
/// # Safety
/// - `node` must point to a node.
/// - The processor must have AVX2 and POPCNT.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn smaller(node: *const Node, query: u32) -> usize {
    let query = _mm256_set1_epi32(biased(query));
    // SAFETY: the caller promises a node; it has 64 bytes and begins at a multiple of 64.
    let halves = unsafe {
        [
            _mm256_load_si256(node.cast()),
            _mm256_load_si256(node.cast::<i32>().add(8).cast()),
        ]
    };
    let [low, high] = halves.map(|half| _mm256_cmpgt_epi32(query, half));
    // Two bytes for each key.
    let mask = _mm256_movemask_epi8(_mm256_packs_epi32(low, high));
    (mask.count_ones() / 2) as usize
}
