//! Which frame of physical memory lies behind a page.
//!
//! Caches behind the first level choose sets by bits of the address above the page, which the
//! system chooses, so neighbouring pages may compete for the same sets. [`Frames::Random`] models
//! that without memory: page numbers go through a random bijection of all numbers of their length.
//! Each of its three rounds adds a constant, multiplies by an odd one and folds the upper half of
//! the bits onto the lower. Each of these steps can be undone, so no two pages share a frame.

use crate::PageSize;
use crate::shape::random::SplitMix64;

/// How addresses of a program become addresses of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Frames {
    /// They are the same, as without paging or inside of one huge page.
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

/// The map of [`Frames`]. Without rounds it is the identity.
#[derive(Clone, Debug)]
pub(super) struct FrameMap {
    page_shift: u32,
    /// What each round adds, and its odd factor.
    rounds: Vec<(u64, u64)>,
    /// The page of the last address, and how far its frame is from it.
    last: (u64, u64),
}

impl FrameMap {
    pub(super) fn new(frames: Frames) -> FrameMap {
        let (pages, rounds) = match frames {
            Frames::Identity => (PageSize::Small4K, Vec::new()),
            Frames::Random { pages, seed } => {
                let mut random = SplitMix64::new(seed);
                let rounds = [(); 3].map(|()| (random.next_u64(), random.next_u64() | 1));
                (pages, rounds.to_vec())
            }
        };
        let mut map = FrameMap {
            page_shift: pages.bytes().trailing_zeros(),
            rounds,
            last: (0, 0),
        };
        map.last.1 = map.frame(0) << map.page_shift;
        map
    }

    /// Where an address of the program lies in memory.
    #[inline]
    pub(super) fn physical(&mut self, address: u64) -> u64 {
        let page = address >> self.page_shift;
        if page != self.last.0 {
            let distance = self.frame(page).wrapping_sub(page) << self.page_shift;
            self.last = (page, distance);
        }
        address.wrapping_add(self.last.1)
    }

    /// The frame of a page. Both have the bits of an address above the page offset.
    #[inline]
    fn frame(&self, page: u64) -> u64 {
        let bits = u64::BITS - self.page_shift;
        let mask = u64::MAX >> self.page_shift;
        let mut number = page;
        for &(add, odd) in &self.rounds {
            number = number.wrapping_add(add).wrapping_mul(odd) & mask;
            number ^= number >> (bits / 2);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use quickcheck::quickcheck;

    use super::*;

    /// Undoes the rounds from the last to the first, which proves that no two pages share a frame.
    fn undone(frames: &FrameMap, frame: u64) -> u64 {
        let bits = u64::BITS - frames.page_shift;
        let mask = u64::MAX >> frames.page_shift;
        let mut number = frame;
        for &(add, odd) in frames.rounds.iter().rev() {
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
        fn every_address_leads_back_to_its_page(address: u64, seed: u64, huge: bool) -> bool {
            let pages = if huge { PageSize::Huge2M } else { PageSize::Small4K };
            let mut frames = FrameMap::new(Frames::Random { pages, seed });
            let physical = frames.physical(address);
            undone(&frames, physical / pages.bytes()) == address / pages.bytes()
                && physical % pages.bytes() == address % pages.bytes()
                && FrameMap::new(Frames::Identity).physical(address) == address
        }
    }

    /// The index bits of neighbouring pages' frames are as good as drawn: counts in 64 colours
    /// against chi squared with 63 degrees of freedom, whose mean is 63 and which exceeds 120 once
    /// in 50000 times.
    #[test]
    fn colours_of_neighbouring_pages_are_random() {
        for (i, stride) in (0..40).zip([1, 2, 64, 512, 4096].into_iter().cycle()) {
            let pages = PageSize::Small4K;
            let frames = FrameMap::new(Frames::Random { pages, seed: i / 5 });
            let mut counts = [0u32; 64];
            for page in 0..64 * 64 {
                counts[usize::try_from(frames.frame(page * stride) % 64).unwrap()] += 1;
            }
            let squares: f64 = counts.iter().map(|&n| (f64::from(n) - 64.0).powi(2)).sum();
            let chi_squared = squares / 64.0;
            assert!(
                (20.0..120.0).contains(&chi_squared),
                "{stride}, {i}: {chi_squared}"
            );
        }
    }
}
