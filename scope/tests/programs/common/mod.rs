//! What the programs share. They print the chunks that a test compares, and keep them to the end.
#![allow(dead_code, reason = "no program uses all of it")]

/// The same numbers in each run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        Random(1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

pub(crate) fn print_chunk<T>(start: *const T, len: usize) {
    println!("chunk {} {}", start.addr(), len * size_of::<T>());
}

/// Prints where the program's own instructions lie.
pub(crate) fn end() {
    unsafe extern "C" {
        static __executable_start: u8;
        static etext: u8;
    }
    println!(
        "text {} {}",
        (&raw const __executable_start).addr(),
        (&raw const etext).addr()
    );
}
