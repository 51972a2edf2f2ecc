//! A sort whose loads and stores are known: part of the canary, and of the test that counts them.

/// Length of the array.
pub(super) const LEN: usize = 20_000;

pub(super) trait Array {
    fn load(&mut self, at: usize) -> u32;
    fn store(&mut self, at: usize, value: u32);
}

/// Fills the array: a store for each element.
pub(super) fn fill(array: &mut impl Array) {
    let mut state = 1_u64;
    for at in 0..LEN {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        array.store(at, (state >> 33) as u32);
    }
}

/// Hoare's quicksort of the elements from `low` to `high`.
pub(super) fn sort(array: &mut impl Array, low: usize, high: usize) {
    let pivot = array.load(low.midpoint(high));
    let (mut i, mut j) = (low, high);
    loop {
        let mut left = array.load(i);
        while left < pivot {
            i += 1;
            left = array.load(i);
        }
        let mut right = array.load(j);
        while right > pivot {
            j -= 1;
            right = array.load(j);
        }
        if i >= j {
            break;
        }
        array.store(i, right);
        array.store(j, left);
        i += 1;
        j -= 1;
    }
    // All up to `j` are at most the pivot, all behind are at least that.
    if low < j {
        sort(array, low, j);
    }
    if j + 1 < high {
        sort(array, j + 1, high);
    }
}
