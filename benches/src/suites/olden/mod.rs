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
//! A program's time is build, layout and work together. Each run checks its result.

mod race;
mod simulate;

use std::sync::{Mutex, PoisonError};

use clap::ValueEnum as _;

use self::race::{Contest, Entry};
use self::simulate::{Simulated, has_valgrind};
use crate::olden::runner::{PROGRAMS, Program, Setting, Variant, name};
use crate::output::table::Table;
use crate::programs::Scale;
use crate::rounds::Rounds;
use crate::worker::Taken;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

/// The suite's name.
pub const SUITE: &str = "olden";

/// What this process has measured so far. The means and the table use what the programs' own
/// workloads measured.
static CONTESTS: Mutex<Vec<Contest>> = Mutex::new(Vec::new());
static SIMULATED: Mutex<Vec<Simulated>> = Mutex::new(Vec::new());

/// A copy of what `all` holds.
fn known<T: Clone>(all: &Mutex<Vec<T>>) -> Vec<T> {
    all.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The one of `all` that `is_it` names; made and added when it is not there.
fn find_or_make<T: Clone>(
    all: &Mutex<Vec<T>>,
    is_it: impl Fn(&T) -> bool,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(found) = known(all).into_iter().find(is_it) {
        return Ok(found);
    }
    let made = make()?;
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    all.push(made.clone());
    Ok(made)
}

/// The contest of a program in a setting.
fn contest(
    program: &'static Program,
    setting: Setting,
    effort: &Effort,
) -> Result<Contest, Failure> {
    let is_it = |one: &Contest| one.program.name == program.name && one.setting == setting;
    // These take longer than other whole programs, and there are more of them.
    let rounds = effort.process_rounds.div_ceil(3);
    let hold = || Contest::hold(program, setting, effort.scale, rounds);
    find_or_make(&CONTESTS, is_it, hold)
}

/// The simulation of a program; `None` without a simulator.
fn simulation(program: &'static Program, effort: &Effort) -> Result<Option<Simulated>, Failure> {
    if !has_valgrind() {
        return Ok(None);
    }
    let is_it = |simulated: &Simulated| simulated.program.name == program.name;
    let run = || Simulated::run(program, effort.scale);
    find_or_make(&SIMULATED, is_it, run).map(Some)
}

/// Our variants of a program that a run measures.
fn variants(program: &Program, scale: Scale) -> Vec<Variant> {
    match scale {
        Scale::Quick => vec![program.hinted, Variant::Clustered],
        Scale::Full => vec![
            Variant::AsAllocated,
            Variant::NullHints,
            Variant::Closest,
            Variant::FirstFit,
            Variant::NewBlock,
            Variant::Clustered,
            Variant::Coloured,
        ],
    }
}

/// Ours and theirs.
type Pair = (Rounds, Rounds);

fn times(ours: &Entry, theirs: &Entry) -> Pair {
    (ours.taken.ms.clone(), theirs.taken.ms.clone())
}

/// Simulated cycles in millions. They are counts, so one round is enough.
fn cycles(simulated: &Simulated, ours: Choice) -> Pair {
    let megacycles = |variant| simulated.cycles_of(variant).unwrap_or(f64::NAN) / 1e6;
    let hinted = megacycles(simulated.program.hinted);
    let ours = ours(hinted, megacycles(Variant::Clustered));
    let theirs = megacycles(Variant::AsAllocated);
    (Rounds::once(ours), Rounds::once(theirs))
}

/// Which cycles a row is about, of those of hinted and of morphed.
type Choice = fn(f64, f64) -> f64;

/// The choices, with what names of rows end in. The thesis reports the better of the two, chosen
/// for each program, and so does the floor.
const CHOICES: [(&str, Choice); 3] = [
    ("", f64::min),
    ("_hinted", |hinted, _| hinted),
    ("_morphed", |_, morphed| morphed),
];

fn row(name: String, rival: &str, unit: &str, (ours, theirs): &Pair) -> Comparison {
    Comparison::new(name, rival, unit, ours, theirs)
}

/// The row of the geometric mean of `pairs`; none without pairs.
fn mean_row(name: String, rival: &str, unit: &str, pairs: Vec<Pair>) -> Option<Comparison> {
    let (ours, theirs): (Vec<Rounds>, Vec<Rounds>) = pairs.into_iter().unzip();
    let mean = || [&ours, &theirs].map(|figures| Rounds::geometric_mean(figures));
    let [ours, theirs] = (!ours.is_empty()).then(mean)?;
    Some(row(name, rival, unit, &(ours, theirs)))
}

const SIMULATED_RIVAL: &str = "system malloc, simulated";

/// The comparisons of the program that the workload names, `olden_treeadd`.
pub(super) fn of_program(workload: &Workload, effort: &Effort) -> Rows {
    let is_it = |program: &&Program| workload.name.strip_prefix("olden_") == Some(program.name);
    let program = PROGRAMS.iter().find(is_it);
    let program = program.ok_or("there is no such program")?;
    let mut comparisons = Vec::new();
    for &setting in Setting::value_variants() {
        let beginning = format!("{}_{}", workload.name, name(setting));
        if effort.wants(workload, &beginning) {
            let contest = contest(program, setting, effort)?;
            comparisons.extend(rows(&contest, &beginning, effort));
        }
    }
    let name = format!("{}_thesis_sim", workload.name);
    if effort.wants(workload, &name)
        && let Some(simulated) = simulation(program, effort)?
    {
        comparisons.extend(CHOICES.map(|(end, ours)| {
            let pair = cycles(&simulated, ours);
            row(format!("{name}{end}"), SIMULATED_RIVAL, "Mcycles", &pair)
        }));
    }
    Ok(comparisons)
}

fn rows(contest: &Contest, beginning: &str, effort: &Effort) -> Vec<Comparison> {
    let (best, heap) = (contest.best(), contest.best_heap());
    let row = |end: &str, rival: &Entry, unit, pair: Pair| {
        let rival = rival.allocator.name;
        row(format!("{beginning}{end}"), rival, unit, &pair)
    };
    let mut comparisons = Vec::new();
    let hinted = contest.program.hinted;
    for entry in &contest.entries {
        let end = match entry.variant {
            Variant::AsAllocated => continue,
            variant if variant == hinted => String::new(),
            Variant::Clustered => "_morphed".to_owned(),
            variant => format!("_{}", name(variant).replace('-', "_")),
        };
        comparisons.push(row(&end, best, "ms", times(entry, best)));
        if entry.variant == hinted || entry.variant == Variant::Clustered {
            comparisons.push(row(
                &format!("{end}_vs_heaps"),
                heap,
                "ms",
                times(entry, heap),
            ));
            if effort.scale == Scale::Full {
                let memory = (entry.taken.peak_mib.clone(), best.taken.peak_mib.clone());
                comparisons.push(row(&format!("{end}_memory"), best, "MiB", memory));
            }
        }
    }
    if let [without, with] = contest.prefetched.as_slice() {
        comparisons.push(Comparison {
            rival: format!(
                "{0}; not ours but {0} with prefetches",
                without.allocator.name
            ),
            ..row("_prefetched", without, "ms", times(with, without))
        });
    }
    comparisons
}

/// The means over all programs.
pub(super) fn means(workload: &Workload, effort: &Effort) -> Rows {
    let mut comparisons = Vec::new();
    for (beginning, variant) in [
        ("olden_geomean_hinted", None),
        ("olden_geomean_morphed", Some(Variant::Clustered)),
    ] {
        if !effort.wants(workload, beginning) {
            continue;
        }
        let (mut against_best, mut against_heaps) = (Vec::new(), Vec::new());
        for program in PROGRAMS {
            for &setting in Setting::value_variants() {
                let contest = contest(program, setting, effort)?;
                let ours = contest.entry(variant.unwrap_or(program.hinted));
                against_best.push(times(ours, contest.best()));
                against_heaps.push(times(ours, contest.best_heap()));
            }
        }
        for (end, rival, pairs) in [
            ("_all", "the best of each", against_best),
            ("_vs_heaps", "the best heap of each", against_heaps),
        ] {
            comparisons.extend(mean_row(format!("{beginning}{end}"), rival, "ms", pairs));
        }
    }
    let name = "olden_thesis_sim_geomean";
    if effort.wants(workload, name) {
        let mut all = Vec::new();
        for program in PROGRAMS {
            all.extend(simulation(program, effort)?);
        }
        comparisons.extend(CHOICES.iter().filter_map(|(end, ours)| {
            let pairs = all
                .iter()
                .map(|simulated| cycles(simulated, *ours))
                .collect();
            mean_row(format!("{name}{end}"), SIMULATED_RIVAL, "Mcycles", pairs)
        }));
    }
    Ok(comparisons)
}

const EXPLANATION: &str = "Time (build, layout and work together) and peak memory over those of \
    the best rival as allocated, below 1 being better. Layout is the one after the build: programs \
    that lay out again while they work, bisort and health, have that time in work. Prefetched rows \
    are the best rival's, not ours. Simulated: cycles on the thesis's machine (table 4.1) over \
    those of the system's malloc as allocated, on the input that is simulated, in a fresh heap.";

/// All that this process measured, in the form of the thesis's figure 4-5; `None` when it measured
/// nothing of this suite.
pub fn table() -> Option<Table> {
    let (contests, simulated) = (known(&CONTESTS), known(&SIMULATED));
    let rows = contests.iter().flat_map(|contest| {
        // The simulated heap is a fresh one.
        let simulated = simulated.iter().find(|simulated| {
            simulated.program.name == contest.program.name && contest.setting == Setting::Fresh
        });
        let entries = contest.entries.iter().chain(contest.prefetched.last());
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

/// The line of the table for one entry.
fn cells(contest: &Contest, entry: &Entry, simulated: Option<&Simulated>) -> [String; 10] {
    let best = contest.best();
    let share = |of: fn(&Taken) -> &Rounds| {
        let [ours, theirs] = [entry, best].map(|entry| of(&entry.taken).median());
        format!("{:.2}", ours / theirs)
    };
    let [build, layout, work] =
        (entry.taken.stages_ms.each_ref()).map(|stage| format!("{:.1}", stage.median()));
    let is_best =
        entry.allocator.process == best.allocator.process && entry.variant == Variant::AsAllocated;
    let time = share(|taken| &taken.ms);
    let cycles = simulated.and_then(|simulated| simulated.share(entry));
    [
        contest.program.name.to_owned(),
        name(contest.setting),
        entry.allocator.name.to_owned(),
        name(entry.variant),
        if is_best { format!("**{time}**") } else { time },
        build,
        layout,
        work,
        share(|taken| &taken.peak_mib),
        cycles.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
    ]
}
