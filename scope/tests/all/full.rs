//! A sample of the chunks that are freed while the program runs is kept; with `--full`, all.

use tempfile::TempDir;

use super::programs::{Run, compile};

#[test]
fn every_chunk_is_kept() {
    let folder = TempDir::new().unwrap();
    let program = compile(
        folder.path(),
        &["cc"],
        "churn.c",
        &["-g", "-O1", "-fno-builtin"],
    );
    let program = program.to_str().unwrap();
    let sums = Run::of(&[program]).profile();
    let full = Run::of(&["--full", program]);
    let file = full.folder.path().join("main.ccscope");
    // Compressed: in memory, a chunk takes 80 bytes.
    assert!(file.metadata().unwrap().len() < 24 * 1_000_000);
    let full = full.profile();
    assert_eq!(full.run.caveats, Vec::<String>::new());
    let count = |profile: &ccscope::Profile, size: u64, is_freed: bool| {
        let chunks = profile.chunks.iter();
        chunks
            .filter(|chunk| chunk.size == size && (chunk.freed > 0) == is_freed)
            .count()
    };
    assert_eq!(count(&full, 24, true), 1_000_000);
    // 31 of the first 31; of those up to 2^19, 16 for each of 14 doublings; then each 2^15th.
    assert_eq!(
        count(&sums, 24, true),
        31 + 14 * 16 + (1_000_000 - (1 << 19)) / (1 << 15) + 1
    );
    assert_eq!(
        (count(&full, 32, false), count(&sums, 32, false)),
        (100, 100)
    );
    // In the order of their deaths, one event after another.
    let mut dead = full.chunks.iter().filter(|chunk| chunk.size == 24);
    assert!(dead.all(|chunk| chunk.freed == chunk.allocated + 1));
    let of_size = |profile: &ccscope::Profile| {
        let mut sites = profile.sites.iter().filter(|site| site.largest == 24);
        sites
            .next()
            .map(|site| (site.allocations, site.frees, site.lifetime))
    };
    assert_eq!(of_size(&full), Some((1_000_000, 1_000_000, 1_000_000)));
    assert_eq!(of_size(&full), of_size(&sums));
}
