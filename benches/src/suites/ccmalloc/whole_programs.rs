//! Programs that get everything from one allocator: time and peak memory, `ccmalloc` against each
//! rival.
//!
//! Each run is a process of its own ([`crate::worker`]), allocators in turns. Means over programs
//! are geometric: a ratio counts the same whether the program is long or short, and the mean of the
//! ratios is the ratio of the means.

use super::super::against_the_best;
use crate::programs::{self, Program, trees};
use crate::rivals::{ALLOCATORS, ours};
use crate::rounds::Rounds;
use crate::worker::{Taken, measure, measure_small};
use crate::workload::{Comparison, Effort, Failure, Workload, covers};

/// Twelve programs without hints, and the geometric means over them: wall time, and as `rss_..`
/// peak resident memory.
pub const UNHINTED: Workload = Workload {
    suite: "ccmalloc",
    name: "unhinted",
    also: &["rss"],
    run: unhinted,
};

/// The same programs with 1, 4 and 16 MiB of memory each: peak resident memory. Their code and
/// libraries are in it.
pub const SMALL_RSS: Workload = Workload {
    suite: "ccmalloc",
    name: "small_rss",
    also: &[],
    run: small_rss,
};

/// A tree of 4 M nodes that is built once and walked twice, without hints.
pub const BUILD_ONCE_TREE: Workload = Workload {
    suite: "ccmalloc",
    name: "build_once_tree",
    also: &[],
    run: build_once_tree,
};

/// The programs that give hints, with every hint null, against the best rival: what a program pays
/// where hints gain nothing.
pub const NULL_HINT_CONTROL: Workload = Workload {
    suite: "ccmalloc",
    name: "null_hint_control",
    also: &["null_hint_bst", "null_hint_chain"],
    run: null_hint_control,
};

/// Resident bytes of a node in a hinted tree, against the system's malloc without hints.
pub const HINTED_MEMORY_BST: Workload = Workload {
    suite: "ccmalloc",
    name: "hinted_memory_bst",
    also: &[],
    run: hinted_memory_bst,
};

/// A figure of a run, of which less is better.
#[derive(Clone, Copy)]
struct Figure {
    unit: &'static str,
    of: fn(&Taken) -> f64,
}

const TIME: Figure = Figure {
    unit: "ms",
    of: |taken| taken.time.as_secs_f64() * 1e3,
};

const PEAK: Figure = Figure {
    unit: "MiB",
    of: |taken| taken.peak_bytes / f64::from(1 << 20),
};

const OBJECT: Figure = Figure {
    unit: "B",
    of: |taken| taken.object_bytes,
};

/// Ours, and the rivals in their order.
fn allocator_names() -> Vec<&'static str> {
    let rivals = ALLOCATORS.iter().map(|rival| rival.methods.name);
    [ours::METHODS.name].into_iter().chain(rivals).collect()
}

/// What some programs took under ours and under the rivals.
struct Measured {
    suite: &'static str,
    /// A row a program: ours first, then the rivals in their order, and of each all rounds.
    taken: Vec<Vec<Vec<Taken>>>,
}

impl Measured {
    /// Runs `programs`.
    fn new(
        workload: &Workload,
        programs: &[&'static Program],
        effort: &Effort,
        rounds: usize,
    ) -> Result<Self, Failure> {
        let names = allocator_names();
        let taken = programs
            .iter()
            .map(|program| measure(program, effort.scale, &names, rounds))
            .collect::<Result<_, _>>()?;
        Ok(Measured {
            suite: workload.suite,
            taken,
        })
    }

    /// `figure` of one program against each rival, as comparisons called `beginning_vs_..`.
    fn of_program(&self, index: usize, beginning: &str, figure: Figure) -> Vec<Comparison> {
        self.comparisons(beginning, figure.unit, |who| {
            Taken::rounds(&self.taken[index][who], figure.of)
        })
    }

    /// The geometric mean of `figure` over the programs, likewise.
    fn geometric_mean(&self, beginning: &str, figure: Figure) -> Vec<Comparison> {
        self.comparisons(beginning, figure.unit, |who| {
            let programs = self.taken.iter();
            let figures: Vec<Rounds> = programs
                .map(|row| Taken::rounds(&row[who], figure.of))
                .collect();
            Rounds::geometric_mean(&figures)
        })
    }

    /// `figure` tells it of ours, who is 0, and of the rivals, who follow.
    fn comparisons(
        &self,
        beginning: &str,
        unit: &'static str,
        figure: impl Fn(usize) -> Rounds,
    ) -> Vec<Comparison> {
        let ours = figure(0);
        let rivals = ALLOCATORS.iter().zip(1..);
        rivals
            .map(|(rival, who)| {
                let name = format!("{beginning}_vs_{}", rival.methods.name);
                Comparison::new(self.suite, name, rival.name, unit, &ours, &figure(who))
            })
            .collect()
    }
}

/// The figures of the unhinted programs, with what their comparisons' names begin with.
const UNHINTED_FIGURES: [(&str, Figure); 2] = [("unhinted", TIME), ("rss", PEAK)];

fn unhinted(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let is_asked_for = |program: &&'static Program| {
        let only = effort.only.as_deref().unwrap_or_default();
        UNHINTED_FIGURES
            .iter()
            .any(|(figure, _)| covers(&format!("{figure}_{}", program.name), only))
    };
    let named: Vec<&Program> = programs::UNHINTED.iter().filter(is_asked_for).collect();
    // A name that is not one program's asks for the means, and so for all of them.
    let all = named.is_empty();
    let programs = if all {
        programs::UNHINTED.iter().collect()
    } else {
        named
    };
    let measured = Measured::new(&UNHINTED, &programs, effort, effort.process_rounds)?;
    let mut comparisons = Vec::new();
    for (beginning, figure) in UNHINTED_FIGURES {
        for (index, program) in programs.iter().enumerate() {
            let beginning = format!("{beginning}_{}", program.name);
            comparisons.extend(measured.of_program(index, &beginning, figure));
        }
        if all {
            comparisons.extend(measured.geometric_mean(&format!("{beginning}_geomean"), figure));
        }
    }
    Ok(comparisons)
}

/// What the small programs have, about, in MiB.
const SMALL_MIB: [usize; 3] = [1, 4, 16];

fn small_rss(_effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let names = allocator_names();
    let mut comparisons = Vec::new();
    for mib in SMALL_MIB {
        let taken = programs::UNHINTED
            .iter()
            .map(|program| measure_small(program, mib, &names))
            .collect::<Result<_, _>>()?;
        let measured = Measured {
            suite: SMALL_RSS.suite,
            taken,
        };
        for (index, program) in programs::UNHINTED.iter().enumerate() {
            let beginning = format!("small_rss_{mib}mib_{}", program.name);
            comparisons.extend(measured.of_program(index, &beginning, PEAK));
        }
        let beginning = format!("small_rss_{mib}mib_geomean");
        comparisons.extend(measured.geometric_mean(&beginning, PEAK));
    }
    Ok(comparisons)
}

fn build_once_tree(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &BUILD_ONCE_TREE;
    let measured = Measured::new(
        workload,
        &[&trees::BUILD_ONCE],
        effort,
        effort.process_rounds,
    )?;
    Ok(measured.of_program(0, workload.name, TIME))
}

fn null_hint_control(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &NULL_HINT_CONTROL;
    let programs = [&trees::NULL_HINT_BST, &trees::NULL_HINT_CHAIN];
    let measured = Measured::new(workload, &programs, effort, effort.process_rounds)?;
    let means = measured.geometric_mean(workload.name, TIME);
    let mut comparisons = against_the_best(workload, means);
    for (index, program) in programs.iter().enumerate() {
        comparisons.extend(measured.of_program(index, program.name, TIME));
    }
    Ok(comparisons)
}

/// Resident bytes hardly differ from run to run, so one is enough.
const MEMORY_ROUNDS: usize = 1;

fn hinted_memory_bst(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let workload = &HINTED_MEMORY_BST;
    let measured = Measured::new(workload, &[&trees::MEMORY_BST], effort, MEMORY_ROUNDS)?;
    let mut comparisons = measured.of_program(0, workload.name, OBJECT);
    // The floor is set against the system's malloc, which is the first rival.
    let against_system = comparisons.first().map(|comparison| Comparison {
        name: workload.name.to_owned(),
        ..comparison.clone()
    });
    comparisons.splice(0..0, against_system);
    Ok(comparisons)
}
