//! The public face of `ctree`, from outside, under an allocator that counts.

mod doubles;
mod dynamic;
mod edges;
mod frozen_heads;
mod frozen_narrow;
mod frozen_sets;
#[cfg(feature = "mmap")]
mod mapped;
mod memory;
mod model;
#[cfg(feature = "rayon")]
mod parallel;
#[allow(
    dead_code,
    unused_imports,
    unused_qualifications,
    clippy::all,
    reason = "only the type checker reads it, and the signatures are the standard library's"
)]
#[rustfmt::skip]
mod std_signatures;

/// `count`, or a small part of it under Miri, which takes a thousand times as long, or when
/// `QUICKCHECK_TESTS` asks for few cases, as it does under the sanitizers.
fn times(count: usize) -> usize {
    // The number of cases that quickcheck takes by default.
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
