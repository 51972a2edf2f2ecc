//! `--full` keeps every chunk, also those that are freed while the program runs.

use tempfile::TempDir;

use super::programs::{Run, compile};

#[test]
fn every_chunk_is_kept() {
    let folder = TempDir::new().unwrap();
    let program = compile(folder.path(), &["cc"], "churn.c", &["-O1", "-fno-builtin"]);
    let program = program.to_str().unwrap();
    let sums = Run::of(&[program]).profile();
    let full = Run::of(&["--full", program]).profile();
    assert_eq!(full.run.caveats, Vec::<String>::new());
    let count = |size: u64, is_freed: bool| {
        let chunks = full.chunks.iter();
        chunks
            .filter(|chunk| chunk.size == size && (chunk.freed > 0) == is_freed)
            .count()
    };
    assert_eq!((count(24, true), count(32, false)), (1_000_000, 100));
    assert!(sums.chunks.len() < 200, "{}", sums.chunks.len());
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
