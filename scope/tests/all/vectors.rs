//! Accesses of more than a register: vectors as wide as this processor has them, copies; and atomic
//! ones.

use super::programs::{cargo_run, cargo_run_with};
use crate::skipped::skipped;

#[test]
fn no_byte_of_a_wide_vector_is_lost() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return skipped("no AVX2");
    }
    let program = cargo_run_with("vectors", |command| {
        command.env("RUSTFLAGS", "-Ctarget-cpu=native");
    });
    let sites = program.profile.sites.iter();
    let numbers: Vec<_> = sites.filter(|site| site.largest == 896).collect();
    let [numbers] = numbers[..] else {
        panic!("{numbers:?}")
    };
    let bytes = numbers.histogram.as_ref().unwrap();
    assert_eq!(
        (&bytes.reads, &bytes.writes),
        (&vec![100; 896], &vec![101; 896])
    );
    // More than 16 bytes at a time.
    assert!(numbers.reads < 100 * 896 / 16, "{}", numbers.reads);
}

#[test]
fn block_operations_and_atomics_are_counted() {
    let profile = cargo_run("blocks").profile;
    let accesses = |size: u64| {
        let mut sites = profile.sites.iter().filter(|site| site.largest == size);
        let site = sites.next().unwrap();
        (site.reads, site.writes, site.touched_bytes)
    };
    // `memcpy` and `memmove` read and write, `memset` writes.
    assert_eq!(accesses(301), (200, 100, 264));
    assert_eq!(accesses(302), (0, 200, 256));
    // Loads; stores, and what loads and stores at once, which is a store.
    assert_eq!(accesses(400), (1000, 3000, 8));
    // The kernel.
    assert_eq!(accesses(303), (1, 0, 303));
    let total = &profile.total;
    assert_eq!(total.block_bytes - total.foreign_bytes, 100 * 5 * 256);
    assert!(total.foreign_bytes >= 303);
}
