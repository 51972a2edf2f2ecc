//! The Olden programs compute the same wherever their nodes lie, here and in workers. A second
//! algorithm confirmed the expected results.
//!
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test --release -p measure --test olden`.

use std::iter::zip;
use std::process::{Command, Output};

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};
use clap::ValueEnum;
use measure::dispatch::{ALLOCATOR_VARIABLE, DispatchAllocator, served_by};
use measure::olden::Olden;
use measure::olden::bisort::Bisort;
use measure::olden::em3d::{self, Em3d};
use measure::olden::health::Health;
use measure::olden::mst::Mst;
use measure::olden::perimeter::Perimeter;
use measure::olden::runner::{Mode, PROGRAMS, Program, Run, Setting, Variant, name};
use measure::olden::treeadd::TreeAdd;
use measure::olden::tsp::{Tsp, random_cities};
use measure::placement::{AS_ALLOCATED, Hinted, NullHinted, PREFETCHED, Placement};
use measure::rivals::{ALLOCATORS, ARENAS, OURS};
use measure::worker::Finished;

#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

fn start(program: &str, arguments: &[&str], allocator: &str) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env(ALLOCATOR_VARIABLE, allocator);
    command.output().expect("it is built beside its tests")
}

/// Whether `allocator` serves this process. If not, runs the test called `name` in one that it
/// serves.
fn is_under(allocator: &str, name: &str) -> bool {
    if served_by() == allocator {
        return true;
    }
    let program = std::env::current_exe().expect("a process has a program");
    let program = program.to_str().expect("it has a plain name");
    let output = start(program, &[name, "--exact"], allocator);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{name} under {allocator}: {text}");
    false
}

/// The result of one run, laid out before, during and after the work if there is a `morph`.
fn run_once<O: Olden, P: Placement>(
    input: &O::Input,
    placement: P,
    morph: Option<&Morph<'_>>,
) -> u64 {
    let lay_out = |program: &mut O| {
        let result = morph.map_or(Ok(()), |morph| program.morph(morph));
        result.expect("ccmalloc serves");
    };
    let mut program = O::build(input, placement);
    lay_out(&mut program);
    let result = program.work(input, placement, lay_out);
    lay_out(&mut program);
    result
}

/// Checks the result for each input, under all placements.
fn everywhere<O: Olden>(cases: impl IntoIterator<Item = (O::Input, u64)>) {
    let (clustered, coloured) = (Morph::new(), Morph::new().colour(0.5));
    for (input, expected) in cases {
        let check = |result: u64| assert_eq!(result, expected, "{}", O::NAME);
        check(run_once::<O, _>(&input, PREFETCHED, None));
        for morph in [None, Some(&clustered), Some(&coloured)] {
            check(run_once::<O, _>(&input, AS_ALLOCATED, morph));
            check(run_once::<O, _>(&input, NullHinted::new(O::POLICY), morph));
            for policy in [Policy::Closest, Policy::FirstFit, Policy::NewBlock] {
                check(run_once::<O, _>(&input, Hinted::new(policy), morph));
            }
        }
    }
}

#[test]
fn results_of_small_inputs() {
    if !is_under(OURS.process, "results_of_small_inputs") {
        return;
    }
    everywhere::<TreeAdd>([(0, 0), (1, 4), (2, 12), (5, 124), (9, 2044)]);
    everywhere::<Perimeter>([(4, 256), (5, 1056), (7, 16_466)]);
    everywhere::<Bisort>([
        (0, 0),
        (1, 10_457_864_100_307_469_890),
        (2, 10_663_021_949_992_284_696),
        (5, 255_872_411_278_285_172),
        (9, 16_323_256_446_352_852_324),
    ]);
    let health = [
        ([1, 0, 1, 1], 0),
        ([1, 500, 1, 7], 3_189_403_718_142_447_053),
        ([2, 60, 9, 1], 17_689_017_126_302_379_555),
        ([4, 120, 3, 50], 17_760_200_666_216_217_826),
    ];
    everywhere::<Health>(health);
    let vertices = [1, 2, 3, 5, 64, 203];
    everywhere::<Mst>(zip(vertices, [0, 1161, 2372, 2400, 2355, 2268]));
    let em3d = [
        ([1, 0, 3], 7_801_464_255_651_320_862),
        ([1, 1, 1], 14_702_390_919_710_656_477),
        ([7, 7, 2], 7_157_680_844_565_431_576),
        ([300, 1, 5], 196_362_920_393_692_119),
        ([50, 4, 1], 10_543_875_857_811_215_646),
        ([50, 4, 2], 9_063_364_657_039_015_472),
    ];
    everywhere::<Em3d>(em3d.map(|(input, result)| (em3d::Input::new(input), result)));
    // Even cities, of numbers around those where the program changes its method.
    let tours = [
        (0, 0),
        (1, 0),
        (2, 4_607_390_995_881_633_020),
        (3, 4_610_934_499_205_553_403),
        (4, 4_612_541_720_535_538_782),
        (149, 4_622_471_061_398_239_047),
        (150, 4_622_654_212_811_795_087),
        (151, 4_623_310_275_042_529_386),
        (152, 4_623_241_612_166_344_688),
        (302, 4_625_663_656_717_838_230),
        (303, 4_625_703_366_122_663_806),
        (3000, 4_633_106_754_478_727_888),
    ];
    everywhere::<Tsp>(tours.map(|(cities, result)| (random_cities(cities, 5), result)));
    // All in one place, and in line.
    let in_line = (0..500).map(|city| [f64::from(city % 7), 0.0]);
    everywhere::<Tsp>([
        (vec![[0.25, 0.5]; 400], 0),
        (in_line.collect(), 4_631_670_741_773_844_480),
    ]);
}

/// Builds, and morphs under an allocator that knows no morphs: no old links are left.
fn fails<O: Olden>(input: &O::Input) {
    let mut program = O::build(input, AS_ALLOCATED);
    let result = program.work(input, AS_ALLOCATED, |_| ());
    // The program moves as a value, which is no reason for its nodes to.
    let mut program = *Box::new(program);
    assert_eq!(program.morph(&Morph::new()), Err(MorphError::NotCcMalloc));
    assert_ne!(program.work(input, AS_ALLOCATED, |_| ()), result);
}

#[test]
fn a_morph_that_fails_leaves_no_old_links() {
    let system = ALLOCATORS[0].process;
    if is_under(system, "a_morph_that_fails_leaves_no_old_links") {
        fails::<Tsp>(&random_cities(3000, 5));
        fails::<Em3d>(&em3d::Input::new([300, 5, 3]));
    }
}

fn worker(name: &str, allocator: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_measure");
    start(program, &["--worker", name], allocator)
}

/// A run, which checks its result.
fn finished(run: &Run, allocator: &str) -> Finished {
    let output = worker(&run.to_string(), allocator);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{run} under {allocator}: {errors}");
    let finished: Finished = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(finished.program, run.to_string());
    assert_eq!(finished.allocator, allocator);
    finished
}

fn tiny(program: &Program, setting: Setting, variant: Variant, mode: Mode) -> Run {
    let (program, setting, variant) = (program.name, name(setting), name(variant));
    let run = format!("olden:{program}:{setting}:{variant}:tiny:{}", name(mode));
    let parsed: Run = run.parse().expect("all parts are known");
    assert_eq!(parsed.to_string(), run);
    parsed
}

#[test]
fn workers_compute_the_same_wherever_their_nodes_lie() {
    let rivals = ALLOCATORS.iter().chain(ARENAS);
    let rivals: Vec<&str> = rivals.map(|rival| rival.process).collect();
    for program in PROGRAMS {
        let simulated = tiny(program, Setting::Fresh, Variant::Coloured, Mode::Rsim);
        assert!(finished(&simulated, OURS.process).stages_ns[1] > 0);
        for &setting in Setting::value_variants() {
            for &variant in Variant::value_variants() {
                let run = tiny(program, setting, variant, Mode::Run);
                let is_morphed = matches!(variant, Variant::Clustered | Variant::Coloured);
                let with_any = matches!(variant, Variant::AsAllocated | Variant::Prefetched);
                let rivals = if with_any { &rivals[..] } else { &[] };
                for allocator in rivals.iter().chain(&[OURS.process]) {
                    let stages = finished(&run, allocator).stages_ns;
                    assert_eq!(stages.map(|ns| ns > 0), [true, is_morphed, true], "{run}");
                }
            }
        }
    }
}

#[test]
fn a_run_that_ends_before_the_build_computes_nothing() {
    let run = tiny(&PROGRAMS[0], Setting::Aged, Variant::NewBlock, Mode::Input);
    let finished = finished(&run, OURS.process);
    assert_eq!((finished.stages_ns, finished.checksum), ([0; 3], 0));
}

#[test]
fn names_of_runs_may_be_short_and_unknown_ones_are_refused() {
    let short = "olden:treeadd:aged:new-block:quick".parse();
    let short: Run = short.expect("the mode may be left out");
    assert_eq!(short.mode, Mode::Run);
    for (name, word) in [
        ("olden:nonesuch:aged:new-block:quick", "nonesuch"),
        ("olden:treeadd:young:new-block:quick", "young"),
        ("olden:treeadd:aged:anywhere:quick", "anywhere"),
        ("olden:treeadd:aged:new-block:huge", "huge"),
        ("olden:treeadd:aged", "variant"),
    ] {
        let output = worker(name, OURS.process);
        assert!(!output.status.success(), "{name}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(word), "{name}: {errors}");
    }
}
