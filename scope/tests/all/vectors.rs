//! Vectors as wide as this processor has them.

use super::programs::cargo_run_with;

#[test]
fn no_byte_of_a_wide_vector_is_lost() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        eprintln!("skipped: this processor has no AVX2");
        return;
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
