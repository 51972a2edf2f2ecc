//! Applications of published crates: as they are, against the same with a few lines changed.
//!
//! Each runs in processes of its own: as published under every allocator, and changed under ours,
//! in turns. A row compares the changed one with the best rival on the unchanged one; the row
//! `.._vs_unchanged` says what hints or a morph add to `ccmalloc` alone.

use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, OURS};
use crate::rounds::Rounds;
use crate::worker::{Taken, measure};
use crate::workload::{Comparison, Effort, Rows, Workload, against_each, best_first, wrong_answer};

/// Time and peak memory of the changed program under ours, against the unchanged one under each
/// rival, and under ours.
pub(super) fn compare(workload: &Workload, effort: &Effort) -> Rows {
    let [plain, changed] = match workload.name {
        // Phrase search by lists of postings.
        "app_1" => ["app_phrases", "app_phrases_hinted"],
        // Light through a landscape by a bounding volume hierarchy.
        "app_2" => ["app_rays", "app_rays_morphed"],
        // Test vectors for a multiplier, by a decision diagram.
        "app_3" => ["app_diagrams", "app_diagrams_morphed"],
        // Completions of words by a red-black tree.
        _ => ["app_completions", "app_completions_morphed"],
    };
    let own = OURS.process;
    let mut variants = vec![(changed, own), (plain, own)];
    variants.extend(ALLOCATORS.iter().map(|rival| (plain, rival.process)));
    // A quick run reads its input and builds all of its structure as well, which leaves time for
    // one round.
    let rounds = match effort.scale {
        Scale::Quick => 1,
        Scale::Full => effort.process_rounds,
    };
    let taken = measure(&variants, effort.scale, rounds)?;
    if taken[0].checksum != taken[1].checksum {
        return Err(wrong_answer(workload.name, changed));
    }
    let rows = |name: &str, unit, figure: fn(&Taken) -> &Rounds| -> Vec<Comparison> {
        let rivals = ALLOCATORS.iter().zip(&taken[2..]);
        let rivals = rivals.map(|(rival, taken)| (rival.process, rival.name, figure(taken)));
        let unchanged = ("unchanged", "ccmalloc, unchanged", figure(&taken[1]));
        let against = |rivals: Vec<_>| against_each(name, unit, figure(&taken[0]), rivals);
        let mut rows = best_first(name, against(rivals.collect()));
        rows.extend(against(vec![unchanged]));
        rows
    };
    let mut all = rows(workload.name, "ms", |taken| &taken.ms);
    let memory = format!("{}_memory", workload.name);
    all.extend(rows(&memory, "MiB", |taken| &taken.peak_mib));
    Ok(all)
}
