//! Applications of other people's crates: as they are, against the same with our few lines.
//!
//! Each application runs in processes of its own: as published under every allocator, ours without
//! hints among them, and changed under ours, in turns. What is compared is the changed one with the
//! best of the rivals on the unchanged one, so that what `ccmalloc` gains or loses by itself
//! counts, and what hints or a morph add can be told by the row `.._vs_unchanged`. All runs of an
//! application must give one checksum.

use super::best_first;
use crate::apps::{completions, diagrams, phrases, rays};
use crate::programs::{Program, Scale};
use crate::rivals::{ALLOCATORS, ours};
use crate::worker::{Taken, measure_variants};
use crate::workload::{Comparison, Effort, Failure, Workload};

/// Phrase search by lists of postings, with hints.
pub const APP_1: Workload = Workload {
    suite: "apps",
    name: "app_1",
    also: &[],
    run: |effort| compare(&APP_1, [&phrases::PLAIN, &phrases::HINTED], effort),
};

/// Light through a landscape by a bounding volume hierarchy, morphed.
pub const APP_2: Workload = Workload {
    suite: "apps",
    name: "app_2",
    also: &[],
    run: |effort| compare(&APP_2, [&rays::PLAIN, &rays::MORPHED], effort),
};

/// Test vectors for a multiplier, by a decision diagram, morphed.
pub const APP_3: Workload = Workload {
    suite: "apps",
    name: "app_3",
    also: &[],
    run: |effort| compare(&APP_3, [&diagrams::PLAIN, &diagrams::MORPHED], effort),
};

/// Completions of words by a red-black tree, morphed.
pub const APP_4: Workload = Workload {
    suite: "apps",
    name: "app_4",
    also: &[],
    run: |effort| compare(&APP_4, [&completions::PLAIN, &completions::MORPHED], effort),
};

/// Time and peak memory of `changed` under ours, against `plain` under each rival, and under ours.
fn compare(
    workload: &Workload,
    [plain, changed]: [&'static Program; 2],
    effort: &Effort,
) -> Result<Vec<Comparison>, Failure> {
    let own = ours::METHODS.name;
    let mut variants = vec![(changed, own), (plain, own)];
    variants.extend(ALLOCATORS.iter().map(|rival| (plain, rival.methods.name)));
    // A quick run reads its input and builds all of its structure as well, which leaves time for
    // one round.
    let rounds = match effort.scale {
        Scale::Quick => 1,
        Scale::Full => effort.process_rounds,
    };
    let taken = measure_variants(&variants, effort.scale, rounds)?;
    let milliseconds = |taken: &Taken| taken.time.as_secs_f64() * 1e3;
    let mebibytes = |taken: &Taken| taken.peak_bytes / f64::from(1 << 20);
    let rows = |name: &str, unit, figure: fn(&Taken) -> f64| {
        let row = |slug: &str, rival: &str, theirs: &[Taken]| {
            Comparison::new(
                workload.suite,
                format!("{name}_vs_{slug}"),
                rival,
                unit,
                &Taken::rounds(&taken[0], figure),
                &Taken::rounds(theirs, figure),
            )
        };
        let rivals = ALLOCATORS.iter().zip(&taken[2..]);
        let rivals = rivals
            .map(|(rival, theirs)| row(rival.methods.name, rival.name, theirs))
            .collect();
        let mut rows = best_first(name, rivals);
        rows.push(row("unchanged", "ccmalloc, unchanged", &taken[1]));
        rows
    };
    let mut all = rows(workload.name, "ms", milliseconds);
    all.extend(rows(&format!("{}_memory", workload.name), "MiB", mebibytes));
    Ok(all)
}
