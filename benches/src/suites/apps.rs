//! Applications of published crates: as they are, against the same with a few lines changed.
//!
//! Each runs in processes of its own: as published under every allocator, and changed under ours,
//! in turns. A row compares the changed one with the best rival on the unchanged one; the row
//! `.._vs_unchanged` says what hints or a morph add to `ccmalloc` alone.

use crate::programs::Scale;
use crate::rivals::{ALLOCATORS, ours};
use crate::rounds::Rounds;
use crate::worker::{Taken, measure};
use crate::workload::{Comparison, Effort, Rows, Workload, against_each, best_first, wrong_answer};

/// Phrase search by lists of postings, with hints.
pub(super) fn phrases(workload: &Workload, effort: &Effort) -> Rows {
    compare(workload, "app_phrases", "app_phrases_hinted", effort)
}

/// Light through a landscape by a bounding volume hierarchy, morphed.
pub(super) fn rays(workload: &Workload, effort: &Effort) -> Rows {
    compare(workload, "app_rays", "app_rays_morphed", effort)
}

/// Test vectors for a multiplier, by a decision diagram, morphed.
pub(super) fn diagrams(workload: &Workload, effort: &Effort) -> Rows {
    compare(workload, "app_diagrams", "app_diagrams_morphed", effort)
}

/// Completions of words by a red-black tree, morphed.
pub(super) fn completions(workload: &Workload, effort: &Effort) -> Rows {
    let [plain, changed] = ["app_completions", "app_completions_morphed"];
    compare(workload, plain, changed, effort)
}

/// Time and peak memory of `changed` under ours, against `plain` under each rival, and under ours.
fn compare(workload: &Workload, plain: &str, changed: &str, effort: &Effort) -> Rows {
    let own = ours::METHODS.name;
    let mut variants = vec![(changed, own), (plain, own)];
    variants.extend(ALLOCATORS.iter().map(|rival| (plain, rival.methods.name)));
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
        let rivals = rivals.map(|(rival, taken)| (rival.methods.name, rival.name, figure(taken)));
        let unchanged = ("unchanged", "ccmalloc, unchanged", figure(&taken[1]));
        let against =
            |rivals: Vec<_>| against_each(workload.suite, name, unit, figure(&taken[0]), rivals);
        let mut rows = best_first(name, against(rivals.collect()));
        rows.extend(against(vec![unchanged]));
        rows
    };
    let mut all = rows(workload.name, "ms", |taken| &taken.ms);
    let memory = format!("{}_memory", workload.name);
    all.extend(rows(&memory, "MiB", |taken| &taken.peak_mib));
    Ok(all)
}
