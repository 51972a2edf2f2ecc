// The canary: a sort whose loads and stores are known. It is compiled by itself with the flags of
// instrumentation, and as a module of the tests that count them.

/// Length of the array, and what the sort does with it: one load or one store at a time.
pub const LEN: usize = 20_000;

pub trait Array {
    fn load(&mut self, at: usize) -> u32;
    fn store(&mut self, at: usize, value: u32);
}

/// Fills the array: a store for each element.
pub fn fill(array: &mut impl Array) {
    let mut state = 1_u64;
    for at in 0..LEN {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        array.store(at, (state >> 33) as u32);
    }
}

/// Hoare's quicksort of the elements from `low` to `high`.
pub fn sort(array: &mut impl Array, low: usize, high: usize) {
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

/// Memory in which each load and store is really made.
struct Volatile(Vec<u32>);

impl Array for Volatile {
    fn load(&mut self, at: usize) -> u32 {
        // SAFETY: a reference is to readable memory.
        unsafe { (&raw const self.0[at]).read_volatile() }
    }

    fn store(&mut self, at: usize, value: u32) {
        // SAFETY: a reference is to writable memory.
        unsafe { (&raw mut self.0[at]).write_volatile(value) }
    }
}

pub fn main() {
    // Zeroed by the allocator, without a store of this program.
    let mut array = Volatile(vec![0; LEN]);
    fill(&mut array);
    sort(&mut array, 0, LEN - 1);
    // Alive at the end, so that the profile has it as a block of its own.
    std::mem::forget(array);
}
