//! Applications of published crates: as they are, against the same with a few lines changed.
//!
//! Each runs in processes of its own, in turns. A row compares the changed program under ours with
//! the best rival on the published one; the row
//! `.._vs_unchanged` says what hints or a morph add to `ccmalloc` alone.

use super::against_processes;
use crate::rivals::{ALLOCATORS, OURS};
use crate::rounds::Rounds;
use crate::worker::{Taken, measure};
use crate::workload::{Comparison, Effort, Rows, Workload, agree, best_first};

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
    let mut variants = vec![(changed, OURS.process)];
    variants.extend(ALLOCATORS.iter().map(|rival| (plain, rival.process)));
    variants.push((plain, OURS.process));
    // A quick run has to read its input and build its structure as well.
    let rounds = effort.scale.pick(1, effort.process_rounds);
    let taken = measure(&variants, effort.scale, rounds)?;
    let (unchanged, taken) = taken.split_last().expect("one for each variant");
    let mut sum = Some(unchanged.checksum());
    agree(&mut sum, taken[0].checksum(), workload.name, changed)?;
    let rows = |name: &str, unit, figure: fn(&Taken) -> Rounds| {
        let figures: Vec<Rounds> = taken.iter().map(figure).collect();
        let mut rows = best_first(name, against_processes(name, unit, &figures));
        let (name, rival) = (format!("{name}_vs_unchanged"), "ccmalloc, unchanged");
        rows.push(Comparison::new(
            name,
            rival,
            unit,
            &figures[0],
            &figure(unchanged),
        ));
        rows
    };
    let mut all = rows(workload.name, "ms", Taken::ms);
    let memory = format!("{}_memory", workload.name);
    all.extend(rows(&memory, "MiB", Taken::peak_mib));
    Ok(all)
}
