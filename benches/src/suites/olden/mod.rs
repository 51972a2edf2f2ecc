//! The Olden programs: hinted and morphed against as allocated by the rivals, fresh and aged, on
//! this machine and on the thesis's.
//!
//! Of program P in setting S:
//!
//! - `olden_P_S`: ours hinted, under the program's own policy, against the fastest rival as
//!   allocated; `olden_P_S_morphed`: ours after a morph.
//! - `.._vs_heaps`: these two against the best rival that takes memory back.
//! - `.._closest`, `_first_fit`, `_new_block`, `_null_hints`, `_coloured`: the other variants, in
//!   full runs.
//! - `.._prefetched`: the best rival with prefetches by hand against itself, in full runs.
//! - `.._memory`, `_morphed_memory`: peak resident memory of the first two, in full runs.
//! - `olden_P_thesis_sim`: simulated cycles of the better of hinted and morphed, against the
//!   system's malloc; `.._hinted` and `.._morphed`: of each.
//! - `olden_geomean_hinted_all`, `.._morphed_all`, `olden_thesis_sim_geomean` and so on: geometric
//!   means over all programs and both settings.
//!
//! A program's time is build, layout and work together. Each run is a process of its own
//! ([`crate::olden::runner`]), in turns. All must compute the same, and one of them is checked
//! by another algorithm.

mod race;
mod simulate;

use std::sync::Mutex;

use self::race::{Contest, Entry};
use self::simulate::{Placed, Simulated};
use crate::olden::Size;
use crate::olden::runner::{PROGRAMS, Program, Setting, Variant};
use crate::olden::table::{Bar, OldenTable, Panel};
use crate::programs::Scale;
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Workload};

/// A workload of one program.
macro_rules! of_program {
    ($($name:ident: $workload:literal, $program:literal;)*) => {
        $(
            #[doc = concat!("The program ", $program, ".")]
            pub const $name: Workload = Workload {
                suite: SUITE,
                name: $workload,
                also: &[],
                run: |effort| of_program($workload, $program, effort),
            };
        )*
    };
}

/// The suite's name.
pub const SUITE: &str = "olden";

of_program! {
    TREEADD: "olden_treeadd", "treeadd";
    PERIMETER: "olden_perimeter", "perimeter";
    BISORT: "olden_bisort", "bisort";
    HEALTH: "olden_health", "health";
    MST: "olden_mst", "mst";
    EM3D: "olden_em3d", "em3d";
    TSP: "olden_tsp", "tsp";
}

/// The means over all programs.
pub const MEANS: Workload = Workload {
    suite: SUITE,
    name: "olden_geomean",
    also: &["olden_thesis_sim"],
    run: means,
};

/// What this process has measured so far: the means are over what the programs' own workloads
/// measured, and the table shows all of it.
static MEASURED: Mutex<Measured> = Mutex::new(Measured {
    contests: Vec::new(),
    simulated: Vec::new(),
});

#[derive(Debug)]
struct Measured {
    contests: Vec<Contest>,
    simulated: Vec<Simulated>,
}

/// Runs `f` with what was measured.
fn measured<R>(f: impl FnOnce(&mut Measured) -> R) -> R {
    // Figures that were put there whole stay right when somebody panicked later.
    let mut guard = MEASURED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    f(&mut guard)
}

/// The input on which programs are timed.
fn timed_size(effort: &Effort) -> Size {
    match effort.scale {
        Scale::Quick => Size::Quick,
        Scale::Full => Size::Large,
    }
}

/// The input on which programs are simulated.
fn simulated_size(effort: &Effort) -> Size {
    match effort.scale {
        Scale::Quick => Size::Tiny,
        Scale::Full => Size::Thesis,
    }
}

/// A third of the rounds of other whole programs: these take longer, and there are more of them.
fn rounds(effort: &Effort) -> usize {
    effort.process_rounds.div_ceil(3)
}

/// The contest of a program in a setting; held once in the life of a process.
fn contest(
    program: &'static Program,
    setting: Setting,
    effort: &Effort,
) -> Result<Contest, Failure> {
    let is_it =
        |contest: &&Contest| contest.program.name == program.name && contest.setting == setting;
    if let Some(known) = measured(|all| all.contests.iter().find(is_it).cloned()) {
        return Ok(known);
    }
    let contest = Contest::hold(
        program,
        setting,
        timed_size(effort),
        effort.scale,
        rounds(effort),
    )?;
    measured(|all| all.contests.push(contest.clone()));
    Ok(contest)
}

/// The simulation of a program, held once, too; none where there is no simulator.
fn simulation(program: &'static Program, effort: &Effort) -> Result<Option<Simulated>, Failure> {
    let is_it = |simulated: &&Simulated| simulated.program.name == program.name;
    if let Some(known) = measured(|all| all.simulated.iter().find(is_it).cloned()) {
        return Ok(Some(known));
    }
    let simulated = Simulated::run(program, simulated_size(effort), effort.scale)?;
    measured(|all| all.simulated.extend(simulated.clone()));
    Ok(simulated)
}

/// What a row compares, of which less is better.
struct Figure {
    ours: Rounds,
    theirs: Rounds,
    unit: &'static str,
}

impl Figure {
    fn of_times(ours: &Entry, theirs: &Entry) -> Figure {
        Figure {
            ours: ours.total_ms.clone(),
            theirs: theirs.total_ms.clone(),
            unit: "ms",
        }
    }

    fn of_memory(ours: &Entry, theirs: &Entry) -> Figure {
        Figure {
            ours: ours.peak_mib.clone(),
            theirs: theirs.peak_mib.clone(),
            unit: "MiB",
        }
    }

    fn row(&self, name: String, rival: &str) -> Comparison {
        Comparison::new(SUITE, name, rival, self.unit, &self.ours, &self.theirs)
    }
}

/// The comparisons of one program.
fn of_program(workload: &str, program: &str, effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let program = Program::find(program).ok_or_else(|| Failure::Worker {
        program: program.to_owned(),
        what: "no program is called so".to_owned(),
    })?;
    let mut comparisons = Vec::new();
    for &setting in Setting::ALL {
        let beginning = format!("{workload}_{}", setting.name());
        if effort.wants(workload, &beginning) {
            let contest = contest(program, setting, effort)?;
            comparisons.extend(rows(&contest, &beginning));
        }
    }
    let name = format!("{workload}_thesis_sim");
    if effort.wants(workload, &name)
        && let Some(simulated) = simulation(program, effort)?
    {
        for (placed, end) in Placed::ALL {
            let figure = simulated_figure(&simulated, placed);
            comparisons.push(figure.row(format!("{name}{end}"), SIMULATED_RIVAL));
        }
    }
    Ok(comparisons)
}

fn rows(contest: &Contest, beginning: &str) -> Vec<Comparison> {
    let (best, heap) = (contest.best(), contest.best_heap());
    let row = |end: &str, figure: Figure, rival: &Entry| {
        figure.row(format!("{beginning}{end}"), &rival.who)
    };
    let mut comparisons = Vec::new();
    let hinted = contest.program.hinted();
    for entry in &contest.entries {
        let end = match entry.variant {
            variant if variant == hinted => "",
            Variant::NewBlock => "_new_block",
            Variant::Clustered => "_morphed",
            Variant::Closest => "_closest",
            Variant::FirstFit => "_first_fit",
            Variant::NullHints => "_null_hints",
            Variant::Coloured => "_coloured",
            Variant::Prefetched => {
                // In a race of its own: its rival is itself without the prefetches.
                let without = contest.unprefetched.as_ref().unwrap_or(best);
                let rival = format!(
                    "{who}; not ours but {who} with prefetches",
                    who = without.who
                );
                let figure = Figure::of_times(entry, without);
                comparisons.push(figure.row(format!("{beginning}_prefetched"), &rival));
                continue;
            }
            Variant::AsAllocated => continue,
        };
        comparisons.push(row(end, Figure::of_times(entry, best), best));
        if entry.variant == hinted || entry.variant == Variant::Clustered {
            let figure = Figure::of_times(entry, heap);
            comparisons.push(row(&format!("{end}_vs_heaps"), figure, heap));
            if contest.scale == Scale::Full {
                let figure = Figure::of_memory(entry, best);
                comparisons.push(row(&format!("{end}_memory"), figure, best));
            }
        }
    }
    comparisons
}

/// Who is simulated beside ours.
const SIMULATED_RIVAL: &str = "system malloc, simulated";

/// Simulated cycles, which are counts: there is one round, and no spread.
fn simulated_figure(simulated: &Simulated, placed: Placed) -> Figure {
    let megacycles = |cycles: f64| Rounds::once(cycles / 1e6);
    Figure {
        ours: megacycles(simulated.placed_cycles(placed)),
        theirs: megacycles(simulated.as_allocated_cycles()),
        unit: "Mcycles",
    }
}

/// The geometric mean of the figures; none of none.
fn mean(figures: Vec<Figure>) -> Option<Figure> {
    let unit = figures.first()?.unit;
    let (ours, theirs): (Vec<Rounds>, Vec<Rounds>) = figures
        .into_iter()
        .map(|figure| (figure.ours, figure.theirs))
        .unzip();
    Some(Figure {
        ours: Rounds::geometric_mean(&ours),
        theirs: Rounds::geometric_mean(&theirs),
        unit,
    })
}

fn means(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    let wants = |part: &str| effort.wants(MEANS.name, part);
    let mut comparisons = Vec::new();
    let kinds = [
        ("olden_geomean_hinted", None),
        ("olden_geomean_morphed", Some(Variant::Clustered)),
    ];
    for (beginning, variant) in kinds {
        if !wants(beginning) {
            continue;
        }
        let (mut against_best, mut against_heaps) = (Vec::new(), Vec::new());
        for program in PROGRAMS {
            for &setting in Setting::ALL {
                let contest = contest(program, setting, effort)?;
                let ours = contest.entry(variant.unwrap_or(program.hinted()));
                against_best.push(Figure::of_times(ours, contest.best()));
                against_heaps.push(Figure::of_times(ours, contest.best_heap()));
            }
        }
        let kinds = [
            ("_all", against_best, "the best of each"),
            ("_vs_heaps", against_heaps, "the best heap of each"),
        ];
        for (end, figures, rival) in kinds {
            let mean = mean(figures).map(|mean| mean.row(format!("{beginning}{end}"), rival));
            comparisons.extend(mean);
        }
    }
    if wants("olden_thesis_sim_geomean") {
        let mut all = Vec::new();
        for program in PROGRAMS {
            all.extend(simulation(program, effort)?);
        }
        for (placed, end) in Placed::ALL {
            let figures = all
                .iter()
                .map(|simulated| simulated_figure(simulated, placed));
            let name = format!("olden_thesis_sim_geomean{end}");
            let mean = mean(figures.collect()).map(|mean| mean.row(name, SIMULATED_RIVAL));
            comparisons.extend(mean);
        }
    }
    Ok(comparisons)
}

/// All that this process measured, side by side; none when it measured nothing of this suite.
pub fn table() -> Option<OldenTable> {
    measured(|all| {
        let panels = all.contests.iter().map(|contest| {
            let is_it = |simulated: &&Simulated| simulated.program.name == contest.program.name;
            // The simulated heap is a fresh one.
            let simulated = all
                .simulated
                .iter()
                .find(is_it)
                .filter(|_| contest.setting == Setting::Fresh);
            panel(contest, simulated)
        });
        let panels: Vec<Panel> = panels.collect();
        (!panels.is_empty()).then_some(OldenTable { panels })
    })
}

fn panel(contest: &Contest, simulated: Option<&Simulated>) -> Panel {
    let best = contest.best();
    let bars = contest.entries.iter().map(|entry| Bar {
        who: entry.who.clone(),
        variant: entry.variant,
        build_ns: entry.stages.build_ns,
        morph_ns: entry.stages.morph_ns,
        work_ns: entry.stages.work_ns,
        time_share: entry.total_ns() / best.total_ns(),
        peak_bytes: entry.stages.peak_bytes,
        memory_share: entry.stages.peak_bytes / best.stages.peak_bytes,
        simulated_share: simulated.and_then(|simulated| simulated.share(entry)),
    });
    Panel {
        program: contest.program.name,
        setting: contest.setting,
        size: contest.size,
        node_bytes: contest.program.node_bytes(contest.size),
        best: best.who.clone(),
        rounds: contest.rounds,
        bars: bars.collect(),
    }
}
