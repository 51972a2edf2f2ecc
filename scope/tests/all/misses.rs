//! Misses that are simulated from the windows of a profile, compared with those of the same
//! simulator on lackey's whole trace.

use ccmodel::{
    CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion, LevelKind, Machine, SearchCosts,
    Simulator,
};
use ccscope::Profile;
use ccscope::analyses::misses::{Interval, misses};
use ccscope::analyses::replay::ReplayedWindows;

use super::programs::{Run, cargo_run, is_installed};
use super::valgrind::trace;

/// L1 of 32 KiB, which the list and the array do not fit, and L2 of 1 MiB, which they do.
fn machine() -> Machine {
    let level =
        |name, sets, ways| CacheLevel::lru(name, CacheGeometry::new(sets, 64, ways).unwrap());
    let caches = vec![level("L1", 64, 8), level("L2", 2048, 8)];
    let costs = SearchCosts {
        operation_ns: 1.0,
        node_ns: 1.0,
        misprediction_ns: 1.0,
        branch_free_node_ns: 1.0,
    };
    let steps = [("L1", 32_768.0, 4.0), ("L2", 1_048_576.0, 90.0)];
    let levels =
        steps.map(|(name, bytes, ns)| ccmodel::Level::new(name, LevelKind::Data, 64, bytes, ns));
    let mut machine = Machine::new("test", costs, levels.to_vec()).unwrap();
    machine.hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new()).ok();
    machine
}

/// Misses of the nodes by level, of all accesses.
fn truth(executable: &str, rounds: &str) -> [u64; 2] {
    let hierarchy = machine().hierarchy.unwrap();
    let trace = trace(executable, &[rounds]);
    let ranges: Vec<(u64, u64)> = trace
        .chunks
        .iter()
        .map(|&(start, len)| (start, start + len))
        .collect();
    assert!(ranges.len() == 4096 && ranges.is_sorted());
    let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
    let mut misses = [0; 2];
    for access in &trace.accesses {
        let before = simulator.cache_misses();
        simulator.access(access.address, u32::from(access.bytes));
        let after = simulator.cache_misses();
        let at = ranges.partition_point(|&(start, _)| start <= access.address);
        if at > 0 && access.address < ranges[at - 1].1 {
            misses
                .iter_mut()
                .enumerate()
                .for_each(|(i, sum)| *sum += after[i] - before[i]);
        }
    }
    misses
}

/// Misses of the site of the nodes; and whether all accesses were recorded.
fn from_windows(profile: &Profile) -> (Vec<Interval>, bool) {
    let windows = ReplayedWindows::new(profile, &machine()).unwrap();
    let all = misses(profile, &windows).unwrap();
    let nodes = profile
        .sites
        .iter()
        .position(|site| site.smallest == 48 && site.allocations == 4096);
    let nodes = nodes.unwrap();
    let site = all
        .sites
        .into_iter()
        .find(|site| site.site == nodes)
        .unwrap();
    (site.misses, all.is_complete)
}

#[test]
#[ignore = "takes long: CI runs it"]
fn misses_of_windows_are_those_of_the_whole_trace() {
    if !is_installed("valgrind") {
        return;
    }
    let program = cargo_run("chase");
    let executable = program.executable.to_str().unwrap();
    for (rounds, is_complete) in [("20", true), ("60", false)] {
        let run = Run::of(&["--rate=2", executable, rounds]);
        let (ours, all) = from_windows(&run.profile());
        let theirs = truth(executable, rounds);
        assert_eq!(all, is_complete);
        for (ours, theirs) in ours.iter().zip(theirs) {
            let theirs = theirs as f64;
            // Lackey sees the precompiled code of `std`, too, which takes some lines of the caches.
            let slack = theirs * 1e-3;
            assert!(
                ours.low - slack <= theirs && theirs <= ours.high + slack,
                "{ours:?} {theirs}"
            );
        }
        // Of the second level, which holds more than a window touches, little is known.
        let first = ours[0];
        assert!(first.high - first.low < theirs[0] as f64 / 2.0, "{first:?}");
    }
}
