//! The places that an allocator with hints chooses when each node asks for one near its parent.
//!
//! The rules are those of T. Chilimbi, *Cache-Conscious Data Structures* (1999), section 4.2.1, on
//! co-location pages of 64 blocks of 64 B, as `ccmalloc` keeps them; a test of the workspace
//! compares the two. Nodes are allocated in a random [order](super::allocated), and each lies
//!
//! 1. in its parent's block, if that has room;
//! 2. else on the parent's page, where the [policy](HintPolicy) chooses;
//! 3. else on the *open page*, where also roots begin: in its first empty block, or, by the
//!    policies that pack, in its first room; and when it has none left, on a fresh page.
//!
//! `Closest` is the thesis's, except that its nodes may lie across the border of two blocks.
//!
//! ```text
//! page   | a c d | b e . | f . . | . . . |   of 64 blocks
//! ```
//!
//! ```text
//! c, d have the hint a, e the hint b, f a hint whose page is full
//! ```
//!
//! Nothing is freed here, so pages fill up once. Nodes too large for hints lie one behind the
//! other.

use super::{NodeExtent, Placement, allocated, packed_offset};
use crate::{NO_NODE, Shape};

/// The unit in which room is counted, in bytes.
const GRANULE_BYTES: u64 = 8;
const BLOCK_BYTES: u64 = 64;
const BLOCK_GRANULES: u32 = 8;
const PAGE_BYTES: u64 = 4096;
const PAGE_BLOCKS: u32 = 64;
/// Nodes larger than this, or aligned to more than a block, are placed without a hint.
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
/// for the order of birth.
pub(super) fn place(shape: &Shape, node: NodeExtent, policy: HintPolicy, seed: u64) -> Placement {
    let order = allocated::birth_order(shape, seed);
    let mut offsets = vec![0u64; shape.len()];
    if node.bytes > HINTED_BYTES_MAX || u64::from(node.align) > BLOCK_BYTES {
        for (place, &v) in (0..).zip(&order) {
            offsets[v as usize] = packed_offset(place, node);
        }
        return Placement::from_offsets(offsets);
    }
    let mut pages = Pages::new(node, policy);
    for &v in &order {
        let hint = match shape.parent(v) {
            NO_NODE => None,
            parent => Some(offsets[parent as usize]),
        };
        offsets[v as usize] = pages.allocate(hint);
    }
    Placement::from_offsets(offsets)
}

/// Blocks whose granules make a word of the allocator's map, which no object crosses that is placed
/// by its granules.
const WORD_BLOCKS: u32 = 8;

/// Free room of one page.
///
/// Invariants: bit b of `empty` is set when block b has no object, of `with_room` when another
/// object fits into it.
struct Page {
    empty: u64,
    with_room: u64,
    /// By block: a bit for each free granule.
    free: [u8; PAGE_BLOCKS as usize],
}

/// The pages of a heap that serves objects of one size.
struct Pages {
    pages: Vec<Page>,
    policy: HintPolicy,
    /// Size of an object in granules, and in blocks, rounded up.
    granules: u32,
    blocks: u32,
    /// Granules of a block at which an object may start.
    starts: u8,
}

impl Pages {
    fn new(node: NodeExtent, policy: HintPolicy) -> Pages {
        let granules = node.bytes.div_ceil(8).max(1);
        // At most 8, by the check of the caller.
        let align_granules = node.align.div_ceil(8).clamp(1, BLOCK_GRANULES);
        let starts = (0..BLOCK_GRANULES).step_by(align_granules as usize);
        Pages {
            pages: Vec::new(),
            policy,
            granules,
            blocks: granules.div_ceil(BLOCK_GRANULES),
            starts: starts.fold(0, |bits, granule| bits | 1 << granule),
        }
    }

    /// The address of a new object near the one at `hint`.
    fn allocate(&mut self, hint: Option<u64>) -> u64 {
        let near = hint.and_then(|hint| {
            let page = usize::try_from(hint / PAGE_BYTES).ok()?;
            let granule = u32::try_from(hint % PAGE_BYTES / GRANULE_BYTES).ok()?;
            Some((page, self.near(page, granule)?))
        });
        if let Some((page, granule)) = near {
            return self.take(page, granule);
        }
        // The open page is the last one.
        if let Some(last) = self.pages.len().checked_sub(1)
            && self.pages[last].empty != 0
            && let Some(granule) = self.find(last, 0)
        {
            return self.take(last, granule);
        }
        self.pages.push(Page {
            empty: u64::MAX,
            with_room: u64::MAX,
            free: [u8::MAX; PAGE_BLOCKS as usize],
        });
        self.take(self.pages.len() - 1, 0)
    }

    /// Where on the page an object begins whose hint is at `granule`.
    fn near(&self, page: usize, granule: u32) -> Option<u32> {
        let block = granule / BLOCK_GRANULES;
        if self.blocks == 1 && self.pages[page].with_room >> block & 1 == 1 {
            return Some(self.room_in(page, block));
        }
        self.find(page, granule)
    }

    /// The first granule of the page that an object can begin at in `block`, which has room.
    fn room_in(&self, page: usize, block: u32) -> u32 {
        let fits = fits(
            self.pages[page].free[block as usize],
            self.granules,
            self.starts,
        );
        block * BLOCK_GRANULES + fits.trailing_zeros()
    }

    /// A granule of the page by the policy; the block of `near` itself is no better than others.
    fn find(&self, page: usize, near: u32) -> Option<u32> {
        if self.policy == HintPolicy::Closest {
            return self.nearest_room(page, near);
        }
        if self.blocks > 1 {
            // Whole blocks: such an object touches as few as it can.
            let candidates = runs(self.pages[page].empty, self.blocks);
            return self
                .choose(candidates, near / BLOCK_GRANULES)
                .map(|block| block * BLOCK_GRANULES);
        }
        let page_blocks = &self.pages[page];
        let candidates = match self.policy {
            HintPolicy::NewBlock => page_blocks.empty,
            _ => page_blocks.with_room,
        };
        let block = self.choose(candidates, near / BLOCK_GRANULES)?;
        Some(self.room_in(page, block))
    }

    /// One of the blocks in `candidates`.
    fn choose(&self, candidates: u64, near: u32) -> Option<u32> {
        match self.policy {
            HintPolicy::NewBlock => next_in_group(candidates, near),
            HintPolicy::FirstFit | HintPolicy::Closest => lowest(candidates),
        }
    }

    /// The room nearest to granule `near`, across blocks: in the word of the allocator's map that
    /// has the granule, else in the next word upwards or downwards that has any.
    fn nearest_room(&self, page: usize, near: u32) -> Option<u32> {
        const WORDS: u32 = PAGE_BLOCKS / WORD_BLOCKS;
        const WORD_GRANULES: u32 = WORD_BLOCKS * BLOCK_GRANULES;
        let free = &self.pages[page].free;
        let starts = |word: u32| {
            let first = (word * WORD_BLOCKS) as usize;
            let bytes = free[first..first + WORD_BLOCKS as usize].iter().rev();
            let map = bytes.fold(0, |map, &byte| map << 8 | u64::from(byte));
            runs(map, self.granules) & u64::from_ne_bytes([self.starts; 8])
        };
        let home = near / WORD_GRANULES;
        if let Some(bit) = nearest(starts(home), near % WORD_GRANULES) {
            return Some(home * WORD_GRANULES + bit);
        }
        (1..WORDS).find_map(|step| {
            let in_word = |word, bit: Option<u32>| Some(word * WORD_GRANULES + bit?);
            let up =
                (home + step < WORDS).then(|| in_word(home + step, lowest(starts(home + step))));
            up.flatten().or_else(|| {
                let word = home.checked_sub(step)?;
                in_word(word, starts(word).checked_ilog2())
            })
        })
    }

    /// Puts an object at `granule` of a page.
    fn take(&mut self, page: usize, granule: u32) -> u64 {
        let target = &mut self.pages[page];
        let end = granule + self.granules;
        for block in granule / BLOCK_GRANULES..end.div_ceil(BLOCK_GRANULES) {
            let first = (block * BLOCK_GRANULES).max(granule);
            let last = ((block + 1) * BLOCK_GRANULES).min(end);
            let free = &mut target.free[block as usize];
            *free &= !(object_bits(last - first) << (first % BLOCK_GRANULES));
            target.empty &= !(1 << block);
            if self.blocks > 1 || fits(*free, self.granules, self.starts) == 0 {
                target.with_room &= !(1 << block);
            }
        }
        page as u64 * PAGE_BYTES + u64::from(granule) * GRANULE_BYTES
    }
}

/// The lowest bits, one for each granule of an object of up to a block.
fn object_bits(granules: u32) -> u8 {
    u8::MAX >> (BLOCK_GRANULES - granules)
}

/// The granules of a block at which an object can start.
fn fits(free: u8, granules: u32, starts: u8) -> u8 {
    let object = object_bits(granules);
    (0..=BLOCK_GRANULES - granules)
        .filter(|&start| starts >> start & 1 == 1 && free >> start & object == object)
        .fold(0, |bits, start| bits | 1 << start)
}

/// The bits of `set` that begin `length` set bits in a row.
fn runs(set: u64, length: u32) -> u64 {
    (1..length).fold(set, |runs, distance| runs & set >> distance)
}

fn lowest(set: u64) -> Option<u32> {
    (set != 0).then(|| set.trailing_zeros())
}

/// The set bit nearest to `bit`, the higher of two at equal distance.
fn nearest(set: u64, bit: u32) -> Option<u32> {
    let up = lowest(set >> bit).map(|distance| bit + distance);
    let below = set & ((1 << bit) - 1);
    let down = (below != 0).then(|| 63 - below.leading_zeros());
    match (up, down) {
        (Some(up), Some(down)) if bit - down < up - bit => Some(down),
        (Some(up), _) => Some(up),
        (None, down) => down,
    }
}

/// A set bit in the aligned four that hold `bit`, else the next one upwards, else the lowest.
fn next_in_group(set: u64, bit: u32) -> Option<u32> {
    let group = set & 0xf << (bit & !3);
    let above = set & u64::MAX << bit;
    [group, above, set].into_iter().find_map(lowest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    const POLICIES: [HintPolicy; 3] = [
        HintPolicy::Closest,
        HintPolicy::FirstFit,
        HintPolicy::NewBlock,
    ];

    fn offsets(parents: &[u32], bytes: u32, policy: HintPolicy) -> Vec<u64> {
        let shape = Shape::from_parents(parents).unwrap();
        let node = NodeExtent::new(bytes, 8).unwrap();
        place(&shape, node, policy, 0).into_offsets()
    }

    #[test]
    fn a_child_joins_its_parent_while_there_is_room() {
        // A list of nodes of 24 B: two to a block, or one behind the other.
        let list = [NO_NODE, 0, 1, 2, 3];
        for policy in [HintPolicy::FirstFit, HintPolicy::NewBlock] {
            assert_eq!(offsets(&list, 24, policy), [0, 24, 64, 88, 128]);
        }
        assert_eq!(offsets(&list, 24, HintPolicy::Closest), [0, 24, 48, 72, 96]);
        let aligned = NodeExtent::new(48, 16).unwrap();
        let list = Shape::from_parents(&list).unwrap();
        let closest = place(&list, aligned, HintPolicy::Closest, 0).into_offsets();
        assert_eq!(closest, [0, 48, 96, 144, 192]);
        // A root of its own begins in an empty block, or, packed, where there is room.
        let two = [NO_NODE, NO_NODE];
        assert_eq!(offsets(&two, 32, HintPolicy::NewBlock), [0, 64]);
        let mut packed = offsets(&two, 32, HintPolicy::FirstFit);
        packed.sort_unstable();
        assert_eq!(packed, [0, 32]);
    }

    #[test]
    fn policies_differ_once_the_block_is_full() {
        let pages = |policy| Pages::new(NodeExtent::new(32, 8).unwrap(), policy);
        // Blocks 0 to 6 hold one node each, block 7 two.
        let taken = |policy| {
            let mut pages = pages(policy);
            let root = pages.allocate(None);
            assert_eq!(root, 0);
            for block in 1..8 {
                pages.take(0, block * 8);
            }
            pages.take(0, 7 * 8 + 4);
            pages.allocate(Some(7 * 64))
        };
        assert_eq!(taken(HintPolicy::Closest), 6 * 64 + 32);
        assert_eq!(taken(HintPolicy::FirstFit), 32);
        assert_eq!(taken(HintPolicy::NewBlock), 8 * 64);
    }

    #[test]
    fn a_full_page_sends_what_follows_to_the_open_page() {
        // A root with 200 children of a block each: 63 beside it, the rest on pages of their own.
        let parents: Vec<u32> = (0..200u32)
            .map(|v| if v == 0 { NO_NODE } else { 0 })
            .collect();
        for policy in POLICIES {
            let mut offsets = offsets(&parents, 64, policy);
            offsets.sort_unstable();
            let expected: Vec<u64> = (0..200).map(|i| i * 64).collect();
            assert_eq!(offsets, expected, "{policy:?}");
        }
    }

    #[test]
    fn large_nodes_take_whole_blocks_or_no_hint() {
        // Three to 21 blocks of a page, one block left over.
        let parents: Vec<u32> = (0..22u32)
            .map(|v| v.checked_sub(1).unwrap_or(NO_NODE))
            .collect();
        for policy in [HintPolicy::FirstFit, HintPolicy::NewBlock] {
            let offsets = offsets(&parents, 192, policy);
            assert_eq!(offsets.iter().max(), Some(&4096), "{policy:?}");
            assert!(offsets.iter().all(|offset| offset % 64 == 0));
        }
        // Two in each 512 B, a ninth word begins the next page.
        let closest = offsets(&parents, 192, HintPolicy::Closest);
        let expected: Vec<u64> = (0..22).map(|i| i / 2 * 512 + i % 2 * 192).collect();
        assert_eq!(closest, expected);
        assert_eq!(offsets(&[NO_NODE, 0], 520, HintPolicy::Closest), [0, 520]);
    }

    quickcheck! {
        fn bit_searches_do_what_a_loop_does(set: u64, bit: u8, length: u8) -> bool {
            let (bit, length) = (u32::from(bit) % 64, u32::from(length) % 8 + 1);
            let is_set = |b: u32| b < 64 && set >> b & 1 == 1;
            let near = (0..64).filter(|&b| is_set(b)).min_by_key(|&b| (b.abs_diff(bit), b < bit));
            let is_far = |b: u32| b / 4 != bit / 4;
            let in_group = { 0..64 }
                .filter(|&b| is_set(b))
                .min_by_key(|&b| (is_far(b), b < bit && is_far(b), b));
            let starts = (0..64).filter(|&b| (b..b + length).all(is_set));
            let all_runs = starts.fold(0u64, |bits, b| bits | 1 << b);
            nearest(set, bit) == near
                && next_in_group(set, bit) == in_group
                && runs(set, length) == all_runs
        }
    }
}
