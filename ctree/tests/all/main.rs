//! Tests of the public interface, under an allocator that counts.

/// Implements the other traits of an order by that of `Ord::cmp`.
macro_rules! ordered_by_cmp {
    ($name:ident) => {
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &$name) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                self.cmp(other) == Ordering::Equal
            }
        }

        impl Eq for $name {}
    };
}

mod dynamic;
mod edges;
mod frozen_heads;
mod frozen_narrow;
mod frozen_panics;
mod frozen_program;
#[cfg(feature = "mmap")]
mod mapped;
mod memory;
#[cfg(feature = "rayon")]
mod parallel;
#[cfg(feature = "serde")]
mod serialization;

/// `count`, or a part of it under Miri, or where `QUICKCHECK_TESTS` asks for few cases.
fn times(count: usize) -> usize {
    const USUAL_CASES: usize = 100;
    let cases = std::env::var("QUICKCHECK_TESTS")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(USUAL_CASES);
    if cfg!(miri) {
        count.div_ceil(100)
    } else {
        (count * cases.min(USUAL_CASES)).div_ceil(USUAL_CASES)
    }
}
