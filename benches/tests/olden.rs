//! The Olden programs compute the same wherever their nodes lie, and what they compute is right: in
//! this process, on small and odd inputs, and in processes of their own, as in `report`.
//!
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test --release -p measure --test olden`.

use std::process::{Command, Output};

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};
use clap::ValueEnum;
use measure::dispatch::{ALLOCATOR_VARIABLE, DispatchAllocator, served_by};
use measure::olden::bisort::Bisort;
use measure::olden::em3d::{self, Em3d};
use measure::olden::health::{self, Health};
use measure::olden::mst::Mst;
use measure::olden::perimeter::{Image, Perimeter};
use measure::olden::runner::{
    Extent, Finished, PROGRAMS, Program, Run, Setting, Stages, Target, Variant,
};
use measure::olden::treeadd::TreeAdd;
use measure::olden::tsp::{Point, Tsp, random_cities};
use measure::olden::{Olden, Size};
use measure::placement::{AsAllocated, Hinted, NullHinted, Placement, Prefetched};
use measure::rivals::{ALLOCATORS, ARENAS, ours};

#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

/// Every allocator that can serve a process, ours first.
fn allocators() -> impl Iterator<Item = &'static str> {
    let rivals = ALLOCATORS.iter().chain(ARENAS);
    std::iter::once(ours::NAME).chain(rivals.map(|rival| rival.methods.name))
}

/// Runs the test called `name` in a process that `allocator` serves.
fn test_under(allocator: &str, name: &str) -> String {
    let output = Command::new(std::env::current_exe().expect("a process has a program"))
        .args([name, "--exact", "--nocapture"])
        .env(ALLOCATOR_VARIABLE, allocator)
        .output()
        .expect("it runs once more");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name} under {allocator}: {text}");
    text
}

/// One run, checked; laid out after the build, during the work and after it if there is a `morph`.
fn run_once<O: Olden, P: Placement>(
    input: &O::Input,
    placement: P,
    morph: Option<&Morph<'_>>,
) -> u64 {
    let mut program = O::build(input, placement);
    let lay_out = |program: &mut O| morph.map_or(Ok(()), |morph| program.morph(morph));
    lay_out(&mut program).expect("ccmalloc serves");
    let result = program.work(input, placement, morph);
    let result = result.expect("ccmalloc serves");
    assert_eq!(program.check(input, result), Ok(()), "{}", O::NAME);
    let is_tiny = O::nodes(input)[0].1 < 2;
    let wrong = program.check(input, result ^ 1 << 40);
    assert!(
        wrong.is_err() || is_tiny,
        "{}: a wrong result is found",
        O::NAME
    );
    lay_out(&mut program).expect("ccmalloc serves");
    assert_eq!(program.check(input, result), Ok(()), "{}", O::NAME);
    result
}

/// The results, which are the same for all placements that this process can have.
fn everywhere<O: Olden>(inputs: &[O::Input]) -> Vec<u64> {
    let result = |input: &O::Input| {
        let result = run_once::<O, _>(input, AsAllocated, None);
        let mut others = vec![run_once::<O, _>(input, Prefetched, None)];
        if served_by() == ours::NAME {
            let (clustered, coloured) = (Morph::new(), Morph::new().colour(0.5));
            for morph in [None, Some(&clustered), Some(&coloured)] {
                others.push(run_once::<O, _>(input, AsAllocated, morph));
                others.push(run_once::<O, _>(input, NullHinted::new(), morph));
                for policy in [Policy::Closest, Policy::FirstFit, Policy::NewBlock] {
                    others.push(run_once::<O, _>(input, Hinted::new(policy), morph));
                }
            }
        }
        assert!(
            others.iter().all(|&other| other == result),
            "{}: {others:x?}",
            O::NAME
        );
        result
    };
    inputs.iter().map(result).collect()
}

fn health_input(
    (levels, steps, draws, steps_between_layouts): (u32, u32, u32, u32),
) -> health::Input {
    health::Input {
        levels,
        steps,
        draws,
        steps_between_layouts,
    }
}

/// Even cities, of numbers around those where the program changes its way, all in one place, and in
/// line.
fn tours() -> Vec<Vec<Point>> {
    let mut inputs = [0, 1, 2, 3, 4, 149, 150, 151, 152, 302, 303, 3000]
        .map(|cities| random_cities(cities, 5))
        .to_vec();
    inputs.push(vec![[0.25, 0.5]; 400]);
    inputs.push((0..500).map(|city| [f64::from(city % 7), 0.0]).collect());
    inputs
}

/// Each program on small and odd inputs, whose results are all different.
const CASES: [fn() -> Vec<u64>; 6] = [
    || everywhere::<TreeAdd>(&[0, 1, 2, 5, 9]),
    || everywhere::<Perimeter>(&[4, 5, 7].map(|levels| Image { levels })),
    || everywhere::<Bisort>(&[0, 1, 2, 5, 9]),
    || {
        let inputs = [(1, 0, 1, 1), (1, 500, 1, 7), (2, 60, 9, 1), (4, 120, 3, 50)];
        everywhere::<Health>(&inputs.map(health_input))
    },
    || everywhere::<Mst>(&[1, 2, 3, 5, 64, 203]),
    || {
        let inputs = [
            (1, 0, 3),
            (1, 1, 1),
            (7, 7, 2),
            (300, 1, 5),
            (50, 4, 1),
            (50, 4, 2),
        ];
        let input = |(points, degree, iterations)| em3d::Input::new(points, degree, iterations);
        everywhere::<Em3d>(&inputs.map(input))
    },
];

/// What precedes the results of one process in its output.
const RESULTS: &str = "results:";

#[test]
fn in_this_process() {
    let mut all: Vec<Vec<u64>> = CASES.iter().map(|case| case()).collect();
    for results in &all {
        let different: std::collections::HashSet<_> = results.iter().collect();
        assert_eq!(different.len(), results.len(), "{results:?}");
    }
    all.push(everywhere::<Tsp>(&tours()));
    println!("{RESULTS} {all:?}");
}

#[test]
fn under_every_allocator() {
    let mut expected = None;
    for name in allocators() {
        let text = test_under(name, "in_this_process");
        let results = text
            .split_once(RESULTS)
            .and_then(|(_, rest)| rest.lines().next());
        let results = results.expect("a line of results").to_owned();
        assert_eq!(*expected.get_or_insert(results.clone()), results, "{name}");
    }
}

/// Builds, and morphs under an allocator that knows no morphs: no old links are left.
fn fails<O: Olden>(input: &O::Input) {
    let mut program = O::build(input, AsAllocated);
    let result = program.work(input, AsAllocated, None).expect("no morph");
    program.check(input, result).expect("the result is right");
    // The program moves as a value, which is no reason for its nodes to.
    let mut program = *Box::new(program);
    assert_eq!(program.morph(&Morph::new()), Err(MorphError::NotCcMalloc));
    let again = program.work(input, AsAllocated, None).expect("no morph");
    assert!(again != result && program.check(input, again).is_err());
}

#[test]
fn a_morph_that_fails_leaves_no_old_links() {
    let system = ALLOCATORS[0].methods.name;
    if served_by() != system {
        test_under(system, "a_morph_that_fails_leaves_no_old_links");
        return;
    }
    fails::<Tsp>(&random_cities(3000, 5));
    fails::<Em3d>(&em3d::Input::new(300, 5, 3));
}

#[test]
fn a_broken_tour_is_found_out() {
    let input = random_cities(500, 9);
    let mut tour = Tsp::build(&input, AsAllocated);
    assert!(tour.check(&input, 0).is_err(), "there is no tour yet");
    let length = tour.work(&input, AsAllocated, None).expect("no morph");
    assert!(tour.check(&random_cities(501, 9), length).is_err());
    let nan = f64::NAN.to_bits();
    assert!(tour.check(&input, nan).is_err(), "no length at all");
    let nowhere = vec![[f64::NAN; 2]; 3];
    let mut tour = Tsp::build(&nowhere, AsAllocated);
    let length = tour.work(&nowhere, AsAllocated, None).expect("no morph");
    assert!(tour.check(&nowhere, length).is_err(), "cities nowhere");
}

#[test]
fn no_patient_leaves_before_assessment_and_treatment_are_over() {
    let left_after = |steps| {
        let input = health_input((1, steps, 300, 1));
        let mut program = Health::build(&input, AsAllocated);
        let result = program.work(&input, AsAllocated, None).expect("no morph");
        assert_eq!(program.check(&input, result), Ok(()));
        program.left()
    };
    // They come at the end of step 1, are assessed in steps 2 to 4 and treated in steps 5 to 14.
    assert_eq!(left_after(13), 0);
    assert!((60..140).contains(&left_after(14)), "a third of 300");
}

#[test]
#[should_panic(expected = "a number of edges is a u32")]
fn more_edges_than_a_u32_can_count_are_refused() {
    em3d::Input::new(1 << 17, 1 << 15, 1);
}

#[test]
fn sizes_are_what_the_guide_says() {
    // More than twice the second-level cache of the simulated machine, 256 KB; four times the 8 MiB
    // that a program gets of a shared last-level cache, and what the modules say.
    for program in PROGRAMS {
        let mebibytes = |size| program.node_bytes(size) as f64 / f64::from(1 << 20);
        let least = match program.name {
            "health" | "mst" | "em3d" => 124.0,
            _ => 32.0,
        };
        assert!(mebibytes(Size::Tiny) >= 0.6, "{}", program.name);
        assert!(mebibytes(Size::Large) >= least, "{}", program.name);
    }
}

fn worker(name: &str, allocator: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_measure"))
        .args(["--worker", name])
        .env(ALLOCATOR_VARIABLE, allocator)
        .output()
        .expect("report is built beside its tests")
}

fn finished(run: &Run, allocator: &str) -> Stages {
    let output = worker(&run.to_string(), allocator);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{run} under {allocator}: {complaint}"
    );
    let finished: Finished = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!(finished.run, run.to_string());
    assert_eq!(finished.allocator, allocator);
    finished.stages
}

/// A run that checks itself.
fn checked(program: &'static Program, setting: Setting, variant: Variant) -> Run {
    Run {
        program,
        setting,
        variant,
        size: Size::Tiny,
        extent: Extent::Check,
        target: Target::This,
    }
}

#[test]
fn workers_compute_the_same_wherever_their_nodes_lie() {
    for program in PROGRAMS {
        let simulated = Run {
            target: Target::Rsim,
            ..checked(program, Setting::Fresh, Variant::Coloured)
        };
        let expected = finished(&simulated, ours::NAME).checksum;
        for &setting in Setting::value_variants() {
            for &variant in Variant::value_variants() {
                let run = checked(program, setting, variant);
                let again: Run = run.to_string().parse().expect("it was written so");
                assert_eq!(again.to_string(), run.to_string());
                let takes_part = |name: &&str| *name == ours::NAME || !variant.needs_ours();
                for allocator in allocators().filter(takes_part) {
                    let stages = finished(&run, allocator);
                    assert_eq!(stages.checksum, expected, "{run} under {allocator}");
                    let is_morphed = matches!(variant, Variant::Clustered | Variant::Coloured);
                    let times = (stages.build_ns, stages.work_ns);
                    assert!(times.0 > 0 && times.1 > 0, "{run}: {stages:?}");
                    assert_eq!(stages.morph_ns > 0, is_morphed, "{run}: {stages:?}");
                }
            }
        }
    }
}

#[test]
fn a_run_that_ends_before_the_build_computes_nothing() {
    let run = Run {
        extent: Extent::Input,
        ..checked(&PROGRAMS[0], Setting::Aged, Variant::NewBlock)
    };
    let stages = finished(&run, ours::NAME);
    assert_eq!((stages.total_ns(), stages.checksum), (0, 0));
}

#[test]
fn names_of_runs_may_be_short_and_unknown_ones_are_refused() {
    let short: Run = "olden:treeadd:aged:new-block:quick"
        .parse()
        .expect("the rest is known");
    assert_eq!((short.extent, short.target), (Extent::Run, Target::This));
    for (name, word) in [
        ("olden:nonesuch:aged:new-block:quick", "nonesuch"),
        ("olden:treeadd:young:new-block:quick", "young"),
        ("olden:treeadd:aged:anywhere:quick", "anywhere"),
        ("olden:treeadd:aged:new-block:huge", "huge"),
        ("olden:treeadd:aged", "variant"),
    ] {
        let output = worker(name, ours::NAME);
        assert!(!output.status.success(), "{name}");
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(complaint.contains(word), "{name}: {complaint}");
    }
}
