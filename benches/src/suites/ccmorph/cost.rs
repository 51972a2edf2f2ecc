//! What a morph takes: its time against that of a plain recursive copy, and the memory of the tree
//! before and after.
//!
//! Copies and morphs run in processes of their own, in turns, each on a tree that was built there
//! ([`crate::programs::morphs`]): neither finds memory or caches as the other left them. `CcMalloc`
//! serves the morphs; copies are made under it, too, and under each rival.

use crate::programs::{Scale, morphs};
use crate::rivals::ours;
use crate::rounds::Rounds;
use crate::source;
use crate::worker::{Taken, measure_apart};
use crate::workload::{Comparison, Effort, Failure, Workload};

/// A recursive copy of a random tree of 2^22 nodes of 32 bytes against its morph in the layout that
/// the model chooses; and resident memory before the morph against after.
pub const MORPH_COST: Workload = Workload {
    suite: "ccmorph",
    name: "morph_vs_clone",
    also: &["morph_memory"],
    run: morph_cost,
};

fn morph_cost(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let rounds = match effort.scale {
        Scale::Quick => 1,
        Scale::Full => effort.process_rounds,
    };
    let rivals: Vec<_> = match effort.scale {
        Scale::Quick => Vec::new(),
        Scale::Full => source::rivals().collect(),
    };
    let mut servers = vec![ours::METHODS.name];
    servers.extend(rivals.iter().map(|rival| rival.methods.name));

    // A tree is copied under each allocator and morphed under ours in each round, in turns.
    let mut variants = vec![(&morphs::MORPH, servers[0])];
    variants.extend(servers.iter().map(|&server| (&morphs::CLONE, server)));
    let mut copies = measure_apart(&variants, effort.scale, rounds)?;
    let morphs = copies.remove(0);

    let milliseconds = |taken: &Taken| taken.time.as_secs_f64() * 1e3;
    let bytes = |taken: &Taken| taken.object_bytes;
    let comparison = |name: String, unit, rival: &str, ours: &Rounds, theirs: &Rounds| {
        Comparison::new(MORPH_COST.suite, name, rival, unit, ours, theirs)
    };
    let morph_time = Taken::rounds(&morphs, milliseconds);
    let morph_bytes = Taken::rounds(&morphs, bytes);
    let mut times = vec![comparison(
        MORPH_COST.name.to_owned(),
        "ms",
        "recursive copy",
        &morph_time,
        &Taken::rounds(&copies[0], milliseconds),
    )];
    let mut memory = vec![comparison(
        MORPH_COST.also[0].to_owned(),
        "B",
        "before the morph",
        &morph_bytes,
        &Taken::rounds(&copies[0], bytes),
    )];
    for (rival, copies) in rivals.iter().zip(&copies[1..]) {
        let slug = rival.methods.name;
        times.push(comparison(
            format!("{}_in_{slug}", MORPH_COST.name),
            "ms",
            &format!("copy in {}", rival.name),
            &morph_time,
            &Taken::rounds(copies, milliseconds),
        ));
        memory.push(comparison(
            format!("{}_vs_{slug}", MORPH_COST.also[0]),
            "B",
            rival.name,
            &morph_bytes,
            &Taken::rounds(copies, bytes),
        ));
    }
    times.extend(memory);
    Ok(times)
}
