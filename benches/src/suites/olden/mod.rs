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
//! ([`crate::olden::runner`]), in turns, and checks its result.

mod race;
mod simulate;

use std::sync::{Mutex, PoisonError};

use clap::ValueEnum as _;

use self::race::{Contest, Entry};
use self::simulate::{Choice, PLACED, Simulated};
use crate::olden::Size;
use crate::olden::runner::{PROGRAMS, Program, Setting, Stages, Variant, name};
use crate::output::table::Table;
use crate::programs::Scale;
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

/// The suite's name.
pub const SUITE: &str = "olden";

/// What this process has measured so far, each contest and simulation once: the means and the table
/// are over what the programs' own workloads measured.
static CONTESTS: Mutex<Vec<Contest>> = Mutex::new(Vec::new());
static SIMULATED: Mutex<Vec<Simulated>> = Mutex::new(Vec::new());

/// Runs `f` with what is behind `mutex`, whose values are put there whole.
fn locked<T, R>(mutex: &Mutex<T>, f: impl FnOnce(&mut T) -> R) -> R {
    f(&mut mutex.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The contest of a program in a setting.
fn contest(
    program: &'static Program,
    setting: Setting,
    effort: &Effort,
) -> Result<Contest, Failure> {
    let is_it = |one: &&Contest| one.program.name == program.name && one.setting == setting;
    if let Some(known) = locked(&CONTESTS, |all| all.iter().find(is_it).cloned()) {
        return Ok(known);
    }
    let size = match effort.scale {
        Scale::Quick => Size::Quick,
        Scale::Full => Size::Large,
    };
    // These take longer than other whole programs, and there are more of them.
    let rounds = effort.process_rounds.div_ceil(3);
    let contest = Contest::hold(program, setting, size, effort.scale, rounds)?;
    locked(&CONTESTS, |all| all.push(contest.clone()));
    Ok(contest)
}

/// The simulation of a program; none where there is no simulator.
fn simulation(program: &'static Program, effort: &Effort) -> Result<Option<Simulated>, Failure> {
    let is_it = |simulated: &&Simulated| simulated.program.name == program.name;
    if let Some(known) = locked(&SIMULATED, |all| all.iter().find(is_it).cloned()) {
        return Ok(Some(known));
    }
    let size = match effort.scale {
        Scale::Quick => Size::Tiny,
        Scale::Full => Size::Thesis,
    };
    let simulated = Simulated::run(program, size, effort.scale)?;
    locked(&SIMULATED, |all| all.extend(simulated.clone()));
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
            ours: ours.total_ms(),
            theirs: theirs.total_ms(),
            unit: "ms",
        }
    }

    fn of_memory(ours: &Entry, theirs: &Entry) -> Figure {
        Figure {
            ours: ours.peak_mib(),
            theirs: theirs.peak_mib(),
            unit: "MiB",
        }
    }

    /// Simulated cycles, which are counts: there is one round, and no spread.
    fn of_cycles(simulated: &Simulated, ours: Choice) -> Figure {
        let megacycles = |variant| simulated.cycles_of(variant) / 1e6;
        let hinted = megacycles(simulated.program.hinted);
        Figure {
            ours: Rounds::once(ours(hinted, megacycles(Variant::Clustered))),
            theirs: Rounds::once(megacycles(Variant::AsAllocated)),
            unit: "Mcycles",
        }
    }

    /// The geometric mean of the figures; none of none.
    fn mean(figures: Vec<Figure>) -> Option<Figure> {
        let unit = figures.first()?.unit;
        let pairs = figures
            .into_iter()
            .map(|figure| (figure.ours, figure.theirs));
        let (ours, theirs): (Vec<Rounds>, Vec<Rounds>) = pairs.unzip();
        Some(Figure {
            ours: Rounds::geometric_mean(&ours),
            theirs: Rounds::geometric_mean(&theirs),
            unit,
        })
    }

    fn row(&self, name: String, rival: &str) -> Comparison {
        Comparison::new(SUITE, name, rival, self.unit, &self.ours, &self.theirs)
    }
}

const SIMULATED_RIVAL: &str = "system malloc, simulated";

/// The comparisons of the program with this number in [`PROGRAMS`].
pub(super) fn of_program<const PROGRAM: usize>(workload: &Workload, effort: &Effort) -> Rows {
    let program = &PROGRAMS[PROGRAM];
    let mut comparisons = Vec::new();
    for &setting in Setting::value_variants() {
        let beginning = format!("{}_{}", workload.name, name(setting));
        if workload.wants(effort, &beginning) {
            comparisons.extend(rows(&contest(program, setting, effort)?, &beginning));
        }
    }
    let name = format!("{}_thesis_sim", workload.name);
    if workload.wants(effort, &name)
        && let Some(simulated) = simulation(program, effort)?
    {
        for (end, ours) in PLACED {
            let figure = Figure::of_cycles(&simulated, ours);
            comparisons.push(figure.row(format!("{name}{end}"), SIMULATED_RIVAL));
        }
    }
    Ok(comparisons)
}

fn rows(contest: &Contest, beginning: &str) -> Vec<Comparison> {
    let (best, heap) = (contest.best(), contest.best_heap());
    let row = |end: &str, figure: Figure, rival: &Entry| {
        figure.row(format!("{beginning}{end}"), rival.who)
    };
    let mut comparisons = Vec::new();
    let hinted = contest.program.hinted;
    for entry in &contest.entries {
        let end = match entry.variant {
            Variant::AsAllocated | Variant::Prefetched => continue,
            variant if variant == hinted => String::new(),
            Variant::Clustered => "_morphed".to_owned(),
            variant => format!("_{}", name(variant).replace('-', "_")),
        };
        comparisons.push(row(&end, Figure::of_times(entry, best), best));
        if entry.variant == hinted || entry.variant == Variant::Clustered {
            let figure = Figure::of_times(entry, heap);
            comparisons.push(row(&format!("{end}_vs_heaps"), figure, heap));
            if contest.scale == Scale::Full {
                let figure = Figure::of_memory(entry, best);
                comparisons.push(row(&format!("{end}_memory"), figure, best));
            }
        }
    }
    if let Some([without, with]) = &contest.prefetched {
        let rival = format!("{0}; not ours but {0} with prefetches", without.who);
        let figure = Figure::of_times(with, without);
        comparisons.push(figure.row(format!("{beginning}_prefetched"), &rival));
    }
    comparisons
}

/// The means over all programs.
pub(super) fn means(workload: &Workload, effort: &Effort) -> Rows {
    let wants = |part: &str| workload.wants(effort, part);
    let mut comparisons = Vec::new();
    let mut add = |figures: Vec<Figure>, name: String, rival: &str| {
        comparisons.extend(Figure::mean(figures).map(|mean| mean.row(name, rival)));
    };
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
            for &setting in Setting::value_variants() {
                let contest = contest(program, setting, effort)?;
                let ours = contest.entry(variant.unwrap_or(program.hinted));
                against_best.push(Figure::of_times(ours, contest.best()));
                against_heaps.push(Figure::of_times(ours, contest.best_heap()));
            }
        }
        add(against_best, format!("{beginning}_all"), "the best of each");
        let name = format!("{beginning}_vs_heaps");
        add(against_heaps, name, "the best heap of each");
    }
    if wants("olden_thesis_sim_geomean") {
        let mut all = Vec::new();
        for program in PROGRAMS {
            all.extend(simulation(program, effort)?);
        }
        for (end, ours) in PLACED {
            let figures = all
                .iter()
                .map(|simulated| Figure::of_cycles(simulated, ours));
            let name = format!("olden_thesis_sim_geomean{end}");
            add(figures.collect(), name, SIMULATED_RIVAL);
        }
    }
    Ok(comparisons)
}

const EXPLANATION: &str = "Time (build, layout and work together) and peak memory over those of \
    the best rival as allocated, below 1 being better. Layout is the one after the build: programs \
    that lay out again while they work, bisort and health, have that time in work. Prefetched rows \
    are the best rival's, not ours. Simulated: cycles on the thesis's machine (table 4.1) over \
    those of the system's malloc as allocated, on the input that is simulated, in a fresh heap.";

/// All that this process measured, side by side, in the form of the thesis's figure 4-5; none when
/// it measured nothing of this suite.
pub fn table() -> Option<Table> {
    let (contests, simulated) = (
        locked(&CONTESTS, |all| all.clone()),
        locked(&SIMULATED, |all| all.clone()),
    );
    let rows = contests.iter().flat_map(|contest| {
        // The simulated heap is a fresh one.
        let simulated = simulated.iter().find(|simulated| {
            simulated.program.name == contest.program.name && contest.setting == Setting::Fresh
        });
        let prefetched = contest.prefetched.iter().map(|[_, with]| with);
        let entries = contest.entries.iter().chain(prefetched);
        entries.map(move |entry| cells(contest, entry, simulated))
    });
    let header = [
        "program",
        "heap",
        "allocator",
        "placement",
        "time",
        "build ms",
        "layout ms",
        "work ms",
        "memory",
        "simulated",
    ];
    (!contests.is_empty()).then(|| Table {
        suite: SUITE.to_owned(),
        title: "The Olden programs".to_owned(),
        explanation: EXPLANATION.to_owned(),
        header: header.map(str::to_owned).into(),
        rows: rows.map(Vec::from).collect(),
    })
}

/// The line of the table for one contestant.
fn cells(contest: &Contest, entry: &Entry, simulated: Option<&Simulated>) -> [String; 10] {
    let best = contest.best();
    let share = |of: fn(&Entry) -> Rounds| format!("{:.2}", of(entry).median() / of(best).median());
    let ms = |of: fn(&Stages) -> u64| format!("{:.1}", entry.figures(of, 1e6).median());
    let is_best = entry.who == best.who && entry.variant == Variant::AsAllocated;
    let time = share(Entry::total_ms);
    let cycles = simulated.and_then(|simulated| simulated.share(entry));
    [
        contest.program.name.to_owned(),
        name(contest.setting),
        entry.who.to_owned(),
        name(entry.variant),
        if is_best { format!("**{time}**") } else { time },
        ms(|stages| stages.build_ns),
        ms(|stages| stages.morph_ns),
        ms(|stages| stages.work_ns),
        share(Entry::peak_mib),
        cycles.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
    ]
}
