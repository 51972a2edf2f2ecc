//! The places that an allocator with hints chooses when each node asks for one near its parent.
//!
//! The rules are those of T. Chilimbi, *Cache-Conscious Data Structures* (1999), section 4.2.1, on
//! pages of 64 blocks of 64 B, as `ccmalloc` keeps them; a test of the workspace compares the two.
//! Nodes are allocated in a random [order](super::allocated), and nothing is freed. Each node lies
//!
//! 1. in its parent's block, if that has room;
//! 2. else on the parent's page, where the [policy](HintPolicy) chooses;
//! 3. else, as roots do, on the last page if that has an empty block: in its first empty block, or,
//!    by the policies that pack, in its first room;
//! 4. else at the start of a fresh page.

use super::{NodeExtent, Placement, allocated};
use crate::{NO_NODE, Shape};

/// The unit in which room is counted, in bytes.
const GRANULE_BYTES: u64 = 8;
const BLOCK_GRANULES: usize = 8;
const BLOCK_BYTES: u32 = 64;
/// Larger nodes, and nodes aligned to more than a block, are placed without a hint.
const HINTED_BYTES_MAX: u32 = 512;

/// Where an allocator puts an object when the block of its hint is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum HintPolicy {
    /// The nearest room of the page, which may be at the border of two blocks.
    Closest,
    /// The first block of the page that has room.
    FirstFit,
    /// An empty block of the page, so that what follows finds room beside it: within the same 256 B
    /// if there is one.
    #[default]
    NewBlock,
}

/// Where each node of `shape` lies when it was allocated near its parent. O(n log n), most of it
/// for the order of allocation.
pub(super) fn place(shape: &Shape, node: NodeExtent, policy: HintPolicy, seed: u64) -> Placement {
    let order = allocated::birth_order(shape, seed);
    if node.bytes > HINTED_BYTES_MAX || node.align > BLOCK_BYTES {
        return Placement::in_order(&order, node);
    }
    let mut heap = Heap::new(node, policy);
    let mut places = vec![0; shape.len()];
    for &v in &order {
        let parent = shape.parent(v);
        let hint = (parent != NO_NODE).then(|| places[parent as usize]);
        places[v as usize] = heap.allocate(hint);
    }
    let offsets = places.into_iter().map(|place| place as u64 * GRANULE_BYTES);
    Placement::from_offsets(offsets.collect())
}

/// A page's free granules as bits. No object crosses a word unless it takes whole blocks.
type Page = [u64; PAGE_WORDS];
const PAGE_WORDS: usize = 8;
const WORD_GRANULES: usize = 64;
const PAGE_GRANULES: usize = PAGE_WORDS * WORD_GRANULES;

/// The pages of a heap that serves objects of one size.
struct Heap {
    pages: Vec<Page>,
    policy: HintPolicy,
    /// Granules of an object.
    granules: usize,
    /// The granules of a word that are aligned for an object.
    aligned: u64,
    /// Those of them at which an object stays within a block; none for objects larger than one.
    within_block: u64,
}

impl Heap {
    fn new(node: NodeExtent, policy: HintPolicy) -> Heap {
        let granules = node.bytes.div_ceil(8).max(1) as usize;
        let align_granules = node.align.div_ceil(8).max(1) as usize;
        let aligned = (0..WORD_GRANULES).step_by(align_granules);
        let aligned = aligned.fold(0, |bits, granule| bits | 1 << granule);
        let within_block = match granules {
            ..=BLOCK_GRANULES => u64::from_ne_bytes([u8::MAX >> (granules - 1); 8]),
            _ => 0,
        };
        Heap {
            pages: Vec::new(),
            policy,
            granules,
            aligned,
            within_block: within_block & aligned,
        }
    }

    /// The first granule of a new object near the object at granule `hint`.
    fn allocate(&mut self, hint: Option<usize>) -> usize {
        let near = hint.and_then(|hint| {
            let (page, granule) = (hint / PAGE_GRANULES, hint % PAGE_GRANULES);
            let word = granule / WORD_GRANULES;
            let block = granule % WORD_GRANULES / BLOCK_GRANULES;
            let in_block = self.rooms_within_blocks(page, word) & 0xff << (block * BLOCK_GRANULES);
            let in_block = lowest(in_block).map(|bit| word * WORD_GRANULES + bit);
            Some((page, in_block.or_else(|| self.find(page, granule))?))
        });
        let open = || {
            let last = self.pages.len().checked_sub(1)?;
            (empty_blocks(&self.pages[last]) != 0).then_some(())?;
            Some((last, self.find(last, 0)?))
        };
        let (page, granule) = near.or_else(open).unwrap_or_else(|| {
            self.pages.push([u64::MAX; PAGE_WORDS]);
            (self.pages.len() - 1, 0)
        });
        for taken in granule..granule + self.granules {
            self.pages[page][taken / WORD_GRANULES] &= !(1 << (taken % WORD_GRANULES));
        }
        page * PAGE_GRANULES + granule
    }

    /// Where an object can start in this word without leaving a block.
    fn rooms_within_blocks(&self, page: usize, word: usize) -> u64 {
        runs(self.pages[page][word], self.granules) & self.within_block
    }

    /// A granule of the page by the policy, for an object whose parent is at granule `near`.
    fn find(&self, page: usize, near: usize) -> Option<usize> {
        // Objects larger than a block take whole blocks, and so touch as few as they can.
        let empty = || runs(empty_blocks(&self.pages[page]), self.granules.div_ceil(8));
        let block = match self.policy {
            HintPolicy::Closest => return self.nearest_room(page, near),
            HintPolicy::FirstFit if self.granules <= BLOCK_GRANULES => {
                return (0..PAGE_WORDS).find_map(|word| {
                    let bit = lowest(self.rooms_within_blocks(page, word))?;
                    Some(word * WORD_GRANULES + bit)
                });
            }
            HintPolicy::FirstFit => lowest(empty()),
            HintPolicy::NewBlock => next_in_group(empty(), near / BLOCK_GRANULES),
        };
        Some(block? * BLOCK_GRANULES)
    }

    /// The room nearest to granule `near`, across blocks: in the same word, else in the next word
    /// upwards or downwards that has any.
    fn nearest_room(&self, page: usize, near: usize) -> Option<usize> {
        let rooms = |word: usize| runs(self.pages[page][word], self.granules) & self.aligned;
        let home = near / WORD_GRANULES;
        if let Some(bit) = nearest(rooms(home), near % WORD_GRANULES) {
            return Some(home * WORD_GRANULES + bit);
        }
        (1..PAGE_WORDS).find_map(|step| {
            let up = Some(home + step).filter(|&word| word < PAGE_WORDS);
            let up = up.and_then(|word| Some(word * WORD_GRANULES + lowest(rooms(word))?));
            up.or_else(|| {
                let word = home.checked_sub(step)?;
                Some(word * WORD_GRANULES + highest(rooms(word))?)
            })
        })
    }
}

/// A bit for each block of a page that holds nothing.
fn empty_blocks(page: &Page) -> u64 {
    let bytes = page.iter().flat_map(|word| word.to_le_bytes());
    (0..64).zip(bytes).fold(0, |bits, (block, free)| {
        bits | u64::from(free == u8::MAX) << block
    })
}

/// The bits of `set` that begin `length` set bits in a row.
fn runs(set: u64, length: usize) -> u64 {
    (1..length).fold(set, |runs, distance| runs & set >> distance)
}

fn lowest(set: u64) -> Option<usize> {
    (set != 0).then(|| set.trailing_zeros() as usize)
}

fn highest(set: u64) -> Option<usize> {
    set.checked_ilog2().map(|bit| bit as usize)
}

/// The set bit nearest to `bit`, the higher of two at equal distance.
fn nearest(set: u64, bit: usize) -> Option<usize> {
    let up = lowest(set >> bit).map(|distance| bit + distance);
    let down = highest(set & ((1 << bit) - 1));
    match (up, down) {
        (Some(up), Some(down)) if bit - down < up - bit => Some(down),
        _ => up.or(down),
    }
}

/// A set bit in the aligned four that hold `bit`, else the next one upwards, else the lowest.
fn next_in_group(set: u64, bit: usize) -> Option<usize> {
    let group = set & 0xf << (bit & !3);
    let above = set & u64::MAX << bit;
    [group, above, set].into_iter().find_map(lowest)
}

#[cfg(test)]
mod tests {
    use super::HintPolicy::{Closest, FirstFit, NewBlock};
    use super::*;
    use quickcheck::quickcheck;

    fn offsets(parents: &[u32], (bytes, align): (u32, u32), policy: HintPolicy) -> Vec<u64> {
        let shape = Shape::from_parents(parents).unwrap();
        let node = NodeExtent::new(bytes, align).unwrap();
        place(&shape, node, policy, 0).into_offsets()
    }

    #[test]
    fn lists_and_roots_lie_where_the_policy_says() {
        let list: Vec<u32> = (0..22u32).map(|v| v.wrapping_sub(1)).collect();
        let (five, roots) = (&list[..5], &[NO_NODE, NO_NODE][..]);
        let by = |offset: fn(u64) -> u64| (0..22).map(offset).collect::<Vec<u64>>();
        for (parents, extent, policy, expected) in [
            // Two nodes of 24 B share a block, or three lie across two.
            (five, (24, 8), FirstFit, vec![0, 24, 64, 88, 128]),
            (five, (24, 8), NewBlock, vec![0, 24, 64, 88, 128]),
            (five, (24, 8), Closest, vec![0, 24, 48, 72, 96]),
            (five, (48, 16), Closest, vec![0, 48, 96, 144, 192]),
            (roots, (32, 8), NewBlock, vec![0, 64]),
            (five, (520, 8), Closest, vec![0, 520, 1040, 1560, 2080]),
            // Nodes of three blocks: 21 to a page, or two in each 512 B.
            (
                &list,
                (192, 8),
                FirstFit,
                by(|i| i / 21 * 4096 + i % 21 * 192),
            ),
            (
                &list,
                (192, 8),
                NewBlock,
                by(|i| i / 21 * 4096 + i % 21 * 192),
            ),
            (&list, (192, 8), Closest, by(|i| i / 2 * 512 + i % 2 * 192)),
        ] {
            let offsets = offsets(parents, extent, policy);
            assert_eq!(offsets, expected, "{extent:?} {policy:?}");
        }
    }

    #[test]
    fn policies_differ_once_the_block_is_full() {
        for (policy, expected) in [(Closest, 6 * 8 + 4), (FirstFit, 4), (NewBlock, 8 * 8)] {
            let mut heap = Heap::new(NodeExtent::new(32, 8).unwrap(), policy);
            // Blocks 0 to 6 hold one node each, block 7 two.
            let mut page = [u64::MAX; PAGE_WORDS];
            page[0] = 0x00f0_f0f0_f0f0_f0f0;
            heap.pages.push(page);
            assert_eq!(heap.allocate(Some(7 * 8)), expected, "{policy:?}");
        }
    }

    #[test]
    fn a_full_page_sends_what_follows_to_the_last_page() {
        // A root with 200 children of a block each.
        let mut parents = vec![0; 200];
        parents[0] = NO_NODE;
        for policy in [Closest, FirstFit, NewBlock] {
            let mut offsets = offsets(&parents, (64, 8), policy);
            offsets.sort_unstable();
            let expected: Vec<u64> = (0..200).map(|i| i * 64).collect();
            assert_eq!(offsets, expected, "{policy:?}");
        }
    }

    quickcheck! {
        fn bit_searches_do_what_a_loop_does(set: u64, bit: usize, length: usize) -> bool {
            let (bit, length) = (bit % 64, length % 8 + 1);
            let is_set = |b: usize| b < 64 && set >> b & 1 == 1;
            let near = (0..64).filter(|&b| is_set(b)).min_by_key(|&b| (b.abs_diff(bit), b < bit));
            let is_far = |b: usize| b / 4 != bit / 4;
            let in_group = { 0..64 }
                .filter(|&b| is_set(b))
                .min_by_key(|&b| (is_far(b), b < bit && is_far(b), b));
            let starts = (0..64).filter(|&b| (b..b + length).all(is_set));
            nearest(set, bit) == near
                && next_in_group(set, bit) == in_group
                && runs(set, length) == starts.fold(0u64, |bits, b| bits | 1 << b)
        }
    }
}
