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

use std::ptr;
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum as _;

use self::race::{Contest, Entry};
use self::simulate::{Simulated, has_valgrind};
use crate::olden::runner::{PROGRAMS, Program, Setting, Variant, name};
use crate::output::record::Table;
use crate::programs::Scale;
use crate::rounds::Rounds;
use crate::worker::Taken;
use crate::workload::{Comparison, Effort, Failure, Rows, Workload};

pub const SUITE: &str = "olden";

/// What this process has measured so far: the means and the table use it again.
static CONTESTS: Mutex<Vec<Contest>> = Mutex::new(Vec::new());
static SIMULATED: Mutex<Vec<Simulated>> = Mutex::new(Vec::new());

/// The one of `all` that `is_it` names; made and added when it is not there.
fn find_or_make<T: Clone>(
    all: &Mutex<Vec<T>>,
    is_it: impl Fn(&T) -> bool,
    make: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = all.iter().find(|one| is_it(one)) {
        return Ok(found.clone());
    }
    let made = make()?;
    all.push(made.clone());
    Ok(made)
}

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

fn variants(program: &Program, scale: Scale) -> Vec<Variant> {
    let all = Variant::value_variants().iter().copied();
    let full = all.filter(|&variant| variant != Variant::Prefetched);
    scale.pick(vec![program.hinted, Variant::Clustered], full.collect())
}

type Choice = fn(f64, f64) -> f64;

/// Which cycles a row is about, of those of hinted and of morphed. The thesis reports the better of
/// the two, chosen for each program, and so does the floor.
const CHOICES: [(&str, Choice); 3] = [
    ("", f64::min),
    ("_hinted", |hinted, _| hinted),
    ("_morphed", |_, morphed| morphed),
];

/// Rows of the geometric means of `all`'s simulated cycles, one for each of [`CHOICES`].
fn simulated_rows(name: &str, all: &[Simulated]) -> Vec<Comparison> {
    if all.is_empty() {
        return Vec::new();
    }
    // Counts, in millions, so one round is enough.
    let mean = |cycles: &dyn Fn(&Simulated) -> f64| {
        let figures = all.iter().map(|one| Rounds::once(cycles(one) / 1e6));
        mean_of(figures.collect())
    };
    let rows = CHOICES.iter().map(|(end, choice)| {
        let ours = mean(&|one| {
            let hinted = one.cycles_of(one.program.hinted);
            choice(hinted, one.cycles_of(Variant::Clustered))
        });
        let theirs = mean(&|one| one.cycles_of(Variant::AsAllocated));
        let rival = "system malloc, simulated";
        Comparison::new(format!("{name}{end}"), rival, "Mcycles", &ours, &theirs)
    });
    rows.collect()
}

fn mean_of(mut figures: Vec<Rounds>) -> Rounds {
    match figures.len() {
        1 => figures.remove(0),
        _ => Rounds::geometric_mean(&figures),
    }
}

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
    if effort.wants(workload, &name) {
        let simulated = simulation(program, effort)?;
        comparisons.extend(simulated_rows(&name, simulated.as_slice()));
    }
    Ok(comparisons)
}

fn rows(contest: &Contest, beginning: &str, effort: &Effort) -> Vec<Comparison> {
    let (best, heap, hinted) = (contest.best(), contest.best_heap(), contest.program.hinted);
    let mut comparisons = Vec::new();
    for entry in &contest.ours {
        let end = match entry.variant {
            Variant::AsAllocated => continue,
            variant if variant == hinted => String::new(),
            Variant::Clustered => "_morphed".to_owned(),
            variant => format!("_{}", name(variant).replace('-', "_")),
        };
        let mut add = |what, rival: &Entry, unit, figure: fn(&Taken) -> Rounds| {
            let name = format!("{beginning}{end}{what}");
            let [ours, theirs] = [entry, rival].map(|entry| figure(&entry.taken));
            let rival = rival.allocator.name;
            comparisons.push(Comparison::new(name, rival, unit, &ours, &theirs));
        };
        add("", best, "ms", Taken::ms);
        if entry.variant == hinted || entry.variant == Variant::Clustered {
            add("_vs_heaps", heap, "ms", Taken::ms);
            if effort.scale == Scale::Full {
                add("_memory", best, "MiB", Taken::peak_mib);
            }
        }
    }
    if let [without, with] = contest.prefetched.as_slice() {
        let name = without.allocator.name;
        let rival = format!("{name}; not ours but {name} with prefetches");
        let name = format!("{beginning}_prefetched");
        let [ours, theirs] = [with, without].map(|entry| entry.taken.ms());
        comparisons.push(Comparison::new(name, &rival, "ms", &ours, &theirs));
    }
    comparisons
}

pub(super) fn means(workload: &Workload, effort: &Effort) -> Rows {
    let mut comparisons = Vec::new();
    for (beginning, variant) in [
        ("olden_geomean_hinted", None),
        ("olden_geomean_morphed", Some(Variant::Clustered)),
    ] {
        if !effort.wants(workload, beginning) {
            continue;
        }
        let [mut ours, mut best, mut heaps] = [const { Vec::new() }; 3];
        for program in PROGRAMS {
            for &setting in Setting::value_variants() {
                let contest = contest(program, setting, effort)?;
                ours.push(contest.entry(variant.unwrap_or(program.hinted)).taken.ms());
                best.push(contest.best().taken.ms());
                heaps.push(contest.best_heap().taken.ms());
            }
        }
        let ours = mean_of(ours);
        for (end, rival, theirs) in [
            ("_all", "the best of each", best),
            ("_vs_heaps", "the best heap of each", heaps),
        ] {
            let name = format!("{beginning}{end}");
            comparisons.push(Comparison::new(name, rival, "ms", &ours, &mean_of(theirs)));
        }
    }
    let name = "olden_thesis_sim_geomean";
    if effort.wants(workload, name) {
        let all = PROGRAMS.iter();
        let all = all.filter_map(|program| simulation(program, effort).transpose());
        comparisons.extend(simulated_rows(name, &all.collect::<Result<Vec<_>, _>>()?));
    }
    Ok(comparisons)
}

const EXPLANATION: &str = "Time (build, layout and work together) and peak memory over those of \
    the best rival as allocated, below 1 being better. Layout is the one after the build: programs \
    that lay out again while they work, bisort and health, have that time in work. Prefetched rows \
    are the best rival's, not ours. Simulated: cycles on the thesis's machine (table 4.1) over \
    those of the system's malloc as allocated, on the input that is simulated, in a fresh heap.";

/// All that this process measured, in the form of the thesis's figure 4-5.
pub fn table() -> Option<Table> {
    let contests = CONTESTS.lock().unwrap_or_else(PoisonError::into_inner);
    let simulated = SIMULATED.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = contests.iter().flat_map(|contest| {
        // The simulated heap is a fresh one.
        let simulated = simulated.iter().find(|simulated| {
            simulated.program.name == contest.program.name && contest.setting == Setting::Fresh
        });
        let entries = contest.rivals.iter().chain(&contest.ours);
        let entries = entries.chain(contest.prefetched.last());
        entries.map(move |entry| cells(contest, entry, simulated).into())
    });
    let header =
        "program|heap|allocator|placement|time|build ms|layout ms|work ms|memory|simulated";
    (!contests.is_empty()).then(|| Table {
        suite: SUITE.to_owned(),
        title: "The Olden programs".to_owned(),
        explanation: EXPLANATION.to_owned(),
        header: header.split('|').map(str::to_owned).collect(),
        rows: rows.collect(),
    })
}

fn cells(contest: &Contest, entry: &Entry, simulated: Option<&Simulated>) -> [String; 10] {
    let best = contest.best();
    let share = |of: fn(&Taken) -> Rounds| {
        let [ours, theirs] = [entry, best].map(|entry| of(&entry.taken).median());
        format!("{:.2}", ours / theirs)
    };
    let stages = entry.taken.stages_ms();
    let [build, layout, work] = stages.map(|stage| format!("{:.1}", stage.median()));
    let mark = if ptr::eq(entry, best) { "**" } else { "" };
    let cycles = simulated.and_then(|simulated| simulated.share(entry));
    [
        contest.program.name.to_owned(),
        name(contest.setting),
        entry.allocator.name.to_owned(),
        name(entry.variant),
        format!("{mark}{}{mark}", share(Taken::ms)),
        build,
        layout,
        work,
        share(Taken::peak_mib),
        cycles.map_or_else(|| "-".to_owned(), |share| format!("{share:.2}")),
    ]
}
