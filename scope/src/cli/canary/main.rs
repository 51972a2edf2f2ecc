//! The canary: a program that is compiled with the flags of instrumentation and counted.

mod sort;

use sort::{Array, LEN, fill, sort};

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

fn main() {
    // Zeroed by the allocator, without a store of this program.
    let mut array = Volatile(vec![0; LEN]);
    fill(&mut array);
    sort(&mut array, 0, LEN - 1);
    // Alive at the end, so that the capture has it as a chunk of its own.
    array.0.leak();
}
