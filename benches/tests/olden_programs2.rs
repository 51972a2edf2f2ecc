//! Health, mst and em3d at their smallest and at odd sizes, under every placement; and what their
//! checks find.
//!
//! `cargo test --workspace` leaves it out, because it needs the rivals:
//! `cargo test --release -p measure --test olden_programs2`.

use std::process::Command;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};
use measure::dispatch::{ALLOCATOR_VARIABLE, DispatchAllocator, served_by};
use measure::olden::em3d::{self, Em3d};
use measure::olden::health::{self, Health};
use measure::olden::mst::Mst;
use measure::olden::placement::{AsAllocated, Hinted, NullHinted, Placement, Prefetched};
use measure::olden::{Olden, Size};
use measure::rivals::{ALLOCATORS, ours};

#[global_allocator]
static GLOBAL: DispatchAllocator = DispatchAllocator;

/// Whether `ccmalloc` serves this process; if not, runs the test called `name` in one that it does
/// serve.
fn is_ours(name: &str) -> bool {
    is_served_by(ours::METHODS.name, name)
}

/// Whether `allocator` serves this process; if not, runs the test called `name` in one that it does
/// serve.
fn is_served_by(allocator: &str, name: &str) -> bool {
    if served_by() == allocator {
        return true;
    }
    let status = Command::new(std::env::current_exe().expect("a process has a program"))
        .args([name, "--exact"])
        .env(ALLOCATOR_VARIABLE, allocator)
        .status()
        .expect("it runs once more");
    assert!(status.success(), "{name} under {allocator}");
    false
}

/// One run, checked; laid out after the build and during the work if `morphed`.
fn run_once<O: Olden, P: Placement>(input: &O::Input, placement: P, morphed: bool) -> u64 {
    let morph = Morph::new();
    let relayout = morphed.then_some(&morph);
    let mut program = O::build(input, placement);
    if morphed {
        program.morph(&morph).expect("ccmalloc serves");
    }
    let result = program.work(input, placement, relayout);
    let result = result.expect("ccmalloc serves");
    assert_eq!(program.check(input, result), Ok(()));
    let wrong = program.check(input, result ^ 1);
    assert!(wrong.is_err(), "a wrong result is told");
    if morphed {
        // Once more, when everything is there.
        program.morph(&morph).expect("ccmalloc serves");
        assert_eq!(program.check(input, result), Ok(()));
    }
    result
}

/// The result, which is the same for all placements, in a process that `ccmalloc` serves.
fn run_all<O: Olden>(input: &O::Input) -> u64 {
    let result = run_once::<O, _>(input, AsAllocated, false);
    for morphed in [false, true] {
        let mut results = vec![
            run_once::<O, _>(input, AsAllocated, morphed),
            run_once::<O, _>(input, Prefetched, morphed),
            run_once::<O, _>(input, NullHinted::new(), morphed),
        ];
        for policy in [Policy::Closest, Policy::FirstFit, Policy::NewBlock] {
            results.push(run_once::<O, _>(input, Hinted::new(policy), morphed));
        }
        assert!(results.iter().all(|&other| other == result), "{results:x?}");
    }
    result
}

#[test]
fn health_is_the_same_wherever_its_patients_lie() {
    if !is_ours("health_is_the_same_wherever_its_patients_lie") {
        return;
    }
    let mut results = Vec::new();
    for (levels, steps, draws, steps_between_layouts) in
        [(1, 0, 1, 1), (1, 500, 1, 7), (2, 60, 9, 1), (4, 120, 3, 50)]
    {
        let input = health::Input {
            levels,
            steps,
            draws,
            steps_between_layouts,
        };
        results.push(run_all::<Health>(&input));
    }
    assert_eq!(results[0], 0, "nobody has come before the first step");
    results.sort_unstable();
    results.dedup();
    assert_eq!(results.len(), 4, "each input has its own result");
}

#[test]
fn nobody_leaves_before_assessment_and_treatment_are_over() {
    let input = |steps| health::Input {
        levels: 1,
        steps,
        draws: 300,
        steps_between_layouts: 1,
    };
    let left_after = |steps| {
        let input = input(steps);
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
fn a_spanning_tree_is_minimal_wherever_its_entries_lie() {
    if !is_ours("a_spanning_tree_is_minimal_wherever_its_entries_lie") {
        return;
    }
    let lengths = [1, 2, 3, 5, 64, 203].map(|vertices| run_all::<Mst>(&vertices));
    assert_eq!(lengths[0], 0, "one vertex needs no edge");
    assert!(
        lengths[1..].iter().all(|&length| length > 0),
        "edges are at least 1 long: {lengths:?}"
    );
}

#[test]
fn a_wave_is_the_same_wherever_its_points_lie() {
    if !is_ours("a_wave_is_the_same_wherever_its_points_lie") {
        return;
    }
    for (points, degree, iterations) in [(1, 0, 3), (1, 1, 1), (7, 7, 2), (300, 1, 5), (500, 12, 3)]
    {
        run_all::<Em3d>(&em3d::Input::new(points, degree, iterations));
    }
    let once = run_all::<Em3d>(&em3d::Input::new(50, 4, 1));
    let twice = run_all::<Em3d>(&em3d::Input::new(50, 4, 2));
    assert_ne!(once, twice, "an iteration changes the values");
}

#[test]
fn a_morph_that_fails_leaves_a_wave_without_pointers() {
    let name = "a_morph_that_fails_leaves_a_wave_without_pointers";
    if !is_served_by(ALLOCATORS[0].methods.name, name) {
        return;
    }
    let input = |iterations| em3d::Input::new(300, 5, iterations);
    let mut program = Em3d::build(&input(3), AsAllocated);
    let failure = program.morph(&Morph::new());
    assert_eq!(failure, Err(MorphError::NotCcMalloc));
    let work = |program: &mut Em3d, iterations| {
        let result = program.work(&input(iterations), AsAllocated, None);
        result.expect("no morph")
    };
    let first_values = work(&mut Em3d::build(&input(0), AsAllocated), 0);
    let result = work(&mut program, 3);
    assert_eq!(result, first_values, "nothing depends on anything");
    assert!(program.check(&input(3), result).is_err());
}

#[test]
#[should_panic(expected = "a number of edges is a u32")]
fn more_edges_than_a_u32_can_count_are_refused() {
    em3d::Input::new(1 << 17, 1 << 15, 1);
}

#[test]
fn nodes_are_as_many_as_the_sizes_say() {
    fn bytes<O: Olden>(size: Size) -> usize {
        let nodes = O::nodes(&O::input(size));
        nodes
            .iter()
            .map(|(layout, count)| layout.size() * count)
            .sum()
    }
    const MB: usize = 1_000_000;
    for (program, bytes) in [
        ("health", bytes::<Health>(Size::Large)),
        ("mst", bytes::<Mst>(Size::Large)),
        ("em3d", bytes::<Em3d>(Size::Large)),
    ] {
        assert!(bytes > 130 * MB, "{program}: {bytes} B");
    }
}
