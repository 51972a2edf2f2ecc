//! Which frame of physical memory lies behind a page.
//!
//! Caches behind the first level choose sets by bits of the address above the page, and what these
//! are is up to the system, which hands out frames in no order that a program could know. So two
//! neighbouring pages may compete for the same sets. A random map shows that, and it needs no
//! memory: page numbers go through a bijection of all numbers of their length, drawn by the seed,
//! in three rounds of the kind that ends most hash functions. Each round adds a constant,
//! multiplies by an odd one and folds the upper half of the bits onto the lower, and each of these
//! steps can be undone: so no two pages share a frame.

use crate::PageSize;
use crate::shape::random::SplitMix64;

/// How addresses of a program become addresses of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Frames {
    /// They are the same, as in an operating system that never pages, or inside of one huge page.
    #[default]
    Identity,
    /// Each page lies in a random frame of its own.
    Random {
        /// The size of pages and frames.
        pages: PageSize,
        /// Chooses the frames.
        seed: u64,
    },
}

const ROUNDS: usize = 3;

/// The map of [`Frames`], ready to be asked.
#[derive(Clone, Debug)]
pub(super) enum FrameMap {
    Identity,
    Random(RandomFrames),
}

impl FrameMap {
    pub(super) fn new(frames: Frames) -> FrameMap {
        match frames {
            Frames::Identity => FrameMap::Identity,
            Frames::Random { pages, seed } => FrameMap::Random(RandomFrames::new(pages, seed)),
        }
    }

    /// Where an address of the program lies in memory. O(1).
    #[inline]
    pub(super) fn physical(&mut self, address: u64) -> u64 {
        match self {
            FrameMap::Identity => address,
            FrameMap::Random(frames) => frames.physical(address),
        }
    }
}

/// A random bijection between page numbers and frame numbers.
#[derive(Clone, Debug)]
pub(super) struct RandomFrames {
    page_shift: u32,
    /// The keys of each round: what is added, and an odd factor.
    keys: [(u64, u64); ROUNDS],
    /// The page of the last address, and how far its frame is from it.
    last: (u64, u64),
}

impl RandomFrames {
    fn new(pages: PageSize, seed: u64) -> RandomFrames {
        let mut random = SplitMix64::new(seed);
        let keys = [(); ROUNDS].map(|()| (random.next_u64(), random.next_u64() | 1));
        let mut frames = RandomFrames {
            page_shift: pages.bytes().trailing_zeros(),
            keys,
            last: (0, 0),
        };
        frames.last.1 = frames.frame(0) << frames.page_shift;
        frames
    }

    #[inline]
    fn physical(&mut self, address: u64) -> u64 {
        let page = address >> self.page_shift;
        if page != self.last.0 {
            let distance = self.frame(page).wrapping_sub(page) << self.page_shift;
            self.last = (page, distance);
        }
        address.wrapping_add(self.last.1)
    }

    /// The frame of a page. Both have as many bits as are left of an address above the page.
    #[inline]
    fn frame(&self, page: u64) -> u64 {
        let bits = u64::BITS - self.page_shift;
        let mask = u64::MAX >> self.page_shift;
        let mut number = page;
        for (add, odd) in self.keys {
            number = number.wrapping_add(add).wrapping_mul(odd) & mask;
            number ^= number >> (bits / 2);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use quickcheck::quickcheck;

    use super::*;

    fn random(pages: PageSize, seed: u64) -> RandomFrames {
        RandomFrames::new(pages, seed)
    }

    #[test]
    fn offsets_within_pages_stay() {
        for pages in [PageSize::Small4K, PageSize::Huge2M] {
            let mut frames = random(pages, 9);
            for page in [0, 1, 2, 0, 77, u64::MAX >> pages.bytes().trailing_zeros()] {
                let start = page * pages.bytes();
                let frame = frames.physical(start);
                assert_eq!(frame % pages.bytes(), 0);
                for offset in [1, 64, pages.bytes() - 1] {
                    assert_eq!(frames.physical(start + offset), frame + offset);
                }
            }
        }
        assert_eq!(FrameMap::new(Frames::Identity).physical(12_345), 12_345);
    }

    #[test]
    fn neighbouring_pages_have_frames_of_their_own() {
        for seed in 0..4 {
            let frames = random(PageSize::Small4K, seed);
            let distinct: HashSet<u64> = (0..200_000).map(|page| frames.frame(page)).collect();
            assert_eq!(distinct.len(), 200_000);
        }
    }

    /// A round is undone from its end to its start, which proves that no two pages share a frame.
    fn undone(frames: &RandomFrames, frame: u64) -> u64 {
        let bits = u64::BITS - frames.page_shift;
        let mask = u64::MAX >> frames.page_shift;
        let mut number = frame;
        for (add, odd) in frames.keys.into_iter().rev() {
            // The upper half was left as it is; of an odd number of bits, the lowest needs it
            // twice.
            number ^= (number >> (bits / 2)) ^ (number >> (bits / 2 * 2));
            // Newton's iteration: an odd number is its own inverse to 3 bits, and each step doubles
            // them.
            let mut inverse = odd;
            for _ in 0..5 {
                inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
            }
            number = number.wrapping_mul(inverse).wrapping_sub(add) & mask;
        }
        number
    }

    quickcheck! {
        fn every_frame_leads_back_to_its_page(page: u64, seed: u64, huge: bool) -> bool {
            let pages = if huge { PageSize::Huge2M } else { PageSize::Small4K };
            let frames = random(pages, seed);
            let page = page & (u64::MAX >> frames.page_shift);
            undone(&frames, frames.frame(page)) == page
        }
    }

    /// The index bits of neighbouring pages' frames are as good as drawn: counts in 64 colours
    /// against chi squared with 63 degrees of freedom, whose mean is 63 and which exceeds 120 once
    /// in 50000 times.
    #[test]
    fn colours_of_neighbouring_pages_are_random() {
        for stride in [1, 2, 64, 512, 4096] {
            for seed in 0..8 {
                let frames = random(PageSize::Small4K, seed);
                let mut counts = [0u32; 64];
                let pages = 64 * 64;
                for page in 0..pages {
                    counts[usize::try_from(frames.frame(page * stride) % 64).unwrap()] += 1;
                }
                let squares: f64 = counts.iter().map(|&n| (f64::from(n) - 64.0).powi(2)).sum();
                let chi_squared = squares / 64.0;
                assert!(
                    (20.0..120.0).contains(&chi_squared),
                    "stride {stride}, seed {seed}: {chi_squared}"
                );
            }
        }
    }
}
