//! A small seeded generator for shapes and layouts that must come out the same on every machine.

/// The splitmix64 generator of G. Steele, D. Lea and C. Flood, *Fast splittable pseudorandom number
/// generators* (OOPSLA 2014). Equal seeds give equal sequences on every platform.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { state: seed }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`, or 0 when `bound` is 0. The bias is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        // The product is below `bound * 2^64`, so its upper half is below `bound`.
        u32::try_from(wide >> 64).unwrap_or(0)
    }

    /// Every order of `items` with (all but) equal probability; O(n).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u32::try_from(last + 1).unwrap_or(u32::MAX);
            items.swap(last, self.below(bound) as usize);
        }
    }
}

/// The numbers `0..nodes` in a seeded random order.
pub(crate) fn permutation(nodes: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..nodes).collect();
    SplitMix64::new(seed).shuffle(&mut order);
    order
}
