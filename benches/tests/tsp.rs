//! The Olden program tsp: every placement, morph and allocator gives the same, right tour, on even
//! and on degenerate input.
//!
//! Hints need a process that `ccmalloc` serves, so the test starts itself again for each allocator.
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test -p measure --test tsp`.

use std::process::Command;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};
use measure::dispatch::{ALLOCATOR_VARIABLE, DispatchAllocator, served_by};
use measure::olden::Olden;
use measure::olden::placement::{AsAllocated, Hinted, NullHinted, Placement, Prefetched};
use measure::olden::{tsp, tsp::Tsp};
use measure::rivals::{ALLOCATORS, ARENAS, ours};

#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

/// What precedes the results of one process in its output.
const RESULTS: &str = "results:";

/// Builds, morphs where asked to, works twice (the second time with what the first left behind),
/// checks; the result.
fn run<O: Olden, P: Placement>(input: &O::Input, placement: P, morph: Option<&Morph<'_>>) -> u64 {
    let mut program = O::build(input, placement);
    let mut result = None;
    for _ in 0..2 {
        if let Some(morph) = morph {
            program.morph(morph).expect("ccmalloc serves this process");
        }
        let again = program.work(input, placement, morph).expect("as above");
        program.check(input, again).expect("the result is right");
        assert_eq!(*result.get_or_insert(again), again);
        let wrong = program.check(input, again ^ 1 << 40);
        assert!(
            wrong.is_err() || O::nodes(input)[0].1 < 2,
            "a wrong result is found out"
        );
    }
    result.expect("the program ran")
}

/// The result, which is the same in every placement that this process can have.
fn run_everywhere<O: Olden>(input: &O::Input) -> u64 {
    let expected = run::<O, _>(input, AsAllocated, None);
    assert_eq!(run::<O, _>(input, Prefetched, None), expected);
    if served_by() == ours::NAME {
        for policy in [Policy::Closest, Policy::FirstFit, Policy::NewBlock] {
            assert_eq!(run::<O, _>(input, Hinted::new(policy), None), expected);
        }
        assert_eq!(run::<O, _>(input, NullHinted::new(), None), expected);
        let clustered = Morph::new();
        let coloured = Morph::new().colour(0.5);
        for morph in [clustered, coloured] {
            assert_eq!(run::<O, _>(input, AsAllocated, Some(&morph)), expected);
        }
    }
    expected
}

/// Inputs for tours: even ones of sizes around those where the program changes its way, all cities
/// in one place, and in line.
fn tours() -> Vec<tsp::Input> {
    let mut inputs: Vec<tsp::Input> = [0, 1, 2, 3, 4, 149, 150, 151, 152, 302, 303, 3000]
        .into_iter()
        .map(|cities| tsp::Input::random(cities, 5))
        .collect();
    inputs.push(tsp::Input::of(vec![[0.25, 0.5]; 400]));
    inputs.push(tsp::Input::of(
        (0..500).map(|city| [f64::from(city % 7), 0.0]).collect(),
    ));
    inputs
}

#[test]
fn in_this_process() {
    let tours: Vec<u64> = tours().iter().map(run_everywhere::<Tsp>).collect();
    println!("{RESULTS} {tours:?}");
}

#[test]
fn under_every_allocator() {
    let rivals = ALLOCATORS.iter().chain(ARENAS);
    let names = std::iter::once(ours::NAME).chain(rivals.map(|rival| rival.methods.name));
    let this = std::env::current_exe().expect("the test has a file");
    let mut expected = None;
    for name in names {
        let output = Command::new(&this)
            .args(["--exact", "in_this_process", "--nocapture"])
            .env(ALLOCATOR_VARIABLE, name)
            .output()
            .expect("the test can be started");
        let text = String::from_utf8(output.stdout).expect("the test prints text");
        assert!(output.status.success(), "{name}: {text}");
        let results = text
            .split_once(RESULTS)
            .and_then(|(_, rest)| rest.lines().next())
            .unwrap_or_else(|| panic!("{name} printed no results: {text}"))
            .to_owned();
        assert_eq!(*expected.get_or_insert(results.clone()), results, "{name}");
    }
}

/// What `program` computes after a morph that fails, which is what it computes without one.
fn work_after_failure<O: Olden>(input: &O::Input) {
    let mut program = O::build(input, AsAllocated);
    let result = program.work(input, AsAllocated, None).expect("no morph");
    // The program moves as a value, which is no reason for its nodes to.
    let mut program = Box::new(program);
    program.check(input, result).expect("the result is right");
    assert_eq!(
        program.morph(&Morph::new()),
        Err(MorphError::NotCcMalloc),
        "{}",
        served_by()
    );
    let wrong = program.check(input, result);
    assert!(wrong.is_err(), "no links are left from before the morph");
    let again = program.work(input, AsAllocated, None).expect("no morph");
    assert_eq!(again, result);
    program.check(input, again).expect("the result is right");
}

#[test]
fn a_morph_that_fails_leaves_no_old_links() {
    if served_by() != ALLOCATORS[0].methods.name {
        let status = Command::new(std::env::current_exe().expect("the test has a file"))
            .args(["--exact", "a_morph_that_fails_leaves_no_old_links"])
            .env(ALLOCATOR_VARIABLE, ALLOCATORS[0].methods.name)
            .status()
            .expect("the test can be started");
        assert!(status.success());
        return;
    }
    work_after_failure::<Tsp>(&tsp::Input::random(3000, 5));
}

#[test]
fn a_broken_tour_is_found_out() {
    let input = tsp::Input::random(500, 9);
    let mut tour = Tsp::build(&input, AsAllocated);
    assert!(tour.check(&input, 0).is_err(), "there is no tour yet");
    let length = tour.work(&input, AsAllocated, None).expect("no morph");
    assert!(tour.check(&tsp::Input::random(501, 9), length).is_err());
    let nan = f64::NAN.to_bits();
    assert!(tour.check(&input, nan).is_err(), "no length at all");
    let nowhere = tsp::Input::of(vec![[f64::NAN; 2]; 3]);
    let mut tour = Tsp::build(&nowhere, AsAllocated);
    let length = tour.work(&nowhere, AsAllocated, None).expect("no morph");
    assert!(tour.check(&nowhere, length).is_err(), "cities nowhere");
}
