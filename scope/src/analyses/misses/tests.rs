use ccmodel::{CacheGeometry, Frames, LevelKind, Machine, SearchCosts, Simulator};

use super::*;
use crate::analyses::test_profile::{access, profile, window};
use crate::profile::{Access, Window};

/// L1 of 4 sets and 2 ways, L2 of 16 sets and 4 ways, both LRU with lines of 64 bytes, and a TLB of
/// 4 pages.
fn machine() -> Machine {
    let level = |name, sets, block, ways| {
        let geometry = CacheGeometry::new(sets, block, ways).expect("a geometry");
        CacheLevel::lru(name, geometry)
    };
    let caches = vec![level("L1", 4, 64, 2), level("L2", 16, 64, 4)];
    let tlbs = vec![level("dTLB", 1, 4096, 4)];
    let costs = SearchCosts {
        operation_ns: 1.0,
        node_ns: 1.0,
        misprediction_ns: 1.0,
        branch_free_node_ns: 1.0,
    };
    let steps = [("L1", 512.0, 4.0), ("L2", 4096.0, 90.0)];
    let levels =
        steps.map(|(name, bytes, ns)| ccmodel::Level::new(name, LevelKind::Data, 64, bytes, ns));
    let mut machine = Machine::new("test", costs, levels.to_vec()).expect("a machine");
    machine.hierarchy = Hierarchy::new(caches, Inclusion::NonInclusive, tlbs).ok();
    machine
}

fn misses(profile: &Profile, machine: &Machine) -> Option<Misses> {
    super::misses(profile, &ReplayedWindows::new(profile, machine)?)
}

/// Numbers that look random (Knuth's MMIX generator).
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Site 0: 8 KiB at random, twice what L2 holds; site 1: 256 bytes that stay in L1; site 2: a scan.
/// Some cross lines.
fn trace(accesses: u64, seed: u64) -> Vec<Access> {
    let mut state = seed;
    let one = |i| match random(&mut state, 10) {
        ..4 => access(0x1_0000 + random(&mut state, 8192), 0, 0),
        4..8 => access(0x2_0000 + random(&mut state, 32) * 8, 1, 0),
        _ => access(0x10_0000 + i * 8, 2, 0),
    };
    (0..accesses).map(one).collect()
}

/// A run whose accesses are `all`, with these windows of them.
fn run(all: &[Access], windows: Vec<Window>) -> Profile {
    let mut run = profile();
    run.total.heap_reads = all.len() as u64;
    run.total.heap_writes = 0;
    (run.total.other_reads, run.total.other_writes) = (0, 0);
    for (index, site) in (0..).zip(&mut run.sites) {
        site.reads = all.iter().filter(|access| access.site == index).count() as u64;
        site.writes = 0;
    }
    run.windows = windows;
    run
}

/// Misses of a simulator that sees everything, by site and level.
fn truth(all: &[Access], site: Option<u32>) -> Vec<u64> {
    let hierarchy = machine().hierarchy.expect("caches");
    let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
    let mut misses = vec![0; 3];
    for access in all {
        let before = [simulator.cache_misses(), simulator.tlb_misses()];
        simulator.access(access.address, u32::from(access.size));
        let after = [simulator.cache_misses(), simulator.tlb_misses()];
        if site.is_none_or(|site| site == access.site) {
            for (i, (kind, level)) in [(0, 0), (0, 1), (1, 0)].into_iter().enumerate() {
                misses[i] += after[kind][level] - before[kind][level];
            }
        }
    }
    misses
}

fn exact(misses: u64) -> Interval {
    let misses = misses as f64;
    Interval {
        low: misses,
        estimate: misses,
        high: misses,
    }
}

#[test]
fn a_whole_trace_gives_what_the_simulator_gives() {
    let all = trace(20_000, 1);
    let whole = Window {
        from_start: true,
        ..window(1, 0, all.clone())
    };
    let run = run(&all, vec![whole]);
    let found = misses(&run, &machine()).expect("windows");
    assert!(found.is_complete);
    assert_eq!(found.levels, ["L1", "L2", "dTLB"]);
    let expected: Vec<Interval> = truth(&all, None).into_iter().map(exact).collect();
    assert_eq!(found.total, expected);
    assert_eq!(found.sites.len(), 3);
    for site in &found.sites {
        let of_site = truth(&all, u32::try_from(site.site).ok());
        let expected: Vec<Interval> = of_site.iter().copied().map(exact).collect();
        assert_eq!(site.misses, expected);
        let per_1000 = of_site[0] as f64 * 1000.0 / site.recorded as f64;
        assert!((site.per_1000[0].estimate - per_1000).abs() < 1e-9);
        // Several misses are under way together.
        let latencies = of_site[0] as f64 * 4.0 + of_site[1] as f64 * 90.0;
        let waits = site.wait_ns < latencies && site.wait_share < 1.0;
        assert!(
            waits && (site.wait_ns > 0.0) == (latencies > 0.0),
            "{site:?}"
        );
    }
    // The random site misses most, and the shares are of everything.
    assert_eq!(found.sites[0].site, 0);
    let shares: f64 = found.sites.iter().map(|site| site.share[1]).sum();
    assert!((shares - 1.0).abs() < 1e-9);
}

/// Bursts of 400 accesses, one of 4,000 each at its own place: a tenth of the trace.
fn sampled(all: &[Access], seed: u64) -> Vec<Window> {
    let mut state = seed;
    let starts = (0..all.len() as u64 / 4000).map(|i| i * 4000);
    let starts = starts.map(|start| start + random(&mut state, 3600));
    let burst = |at: u64| {
        all.iter()
            .skip(at.try_into().expect("an index"))
            .take(400)
            .copied()
            .collect()
    };
    starts.map(|at| window(at, 0, burst(at))).collect()
}

/// The intervals are for 95 of 100, and unknown first accesses widen them: of 40 samples by 3
/// sites and the total by 3 levels, at most 5 % may be outside.
#[test]
fn samples_cover_the_truth() {
    let all = trace(200_000, 2);
    let totals = truth(&all, None);
    let by_site: Vec<Vec<u64>> = (0..3).map(|site| truth(&all, Some(site))).collect();
    let (mut covered, mut tried) = (0, 0);
    for seed in 0..40 {
        let run = run(&all, sampled(&all, seed));
        let found = misses(&run, &machine()).expect("windows");
        assert!(!found.is_complete);
        assert_eq!((found.windows, found.recorded), (50, 20_000));
        let sites = found
            .sites
            .iter()
            .map(|site| (&site.misses, &by_site[site.site]));
        for (found, truth) in sites.chain([(&found.total, &totals)]) {
            for (interval, &truth) in found.iter().zip(truth) {
                assert!(interval.low <= interval.estimate && interval.estimate <= interval.high);
                tried += 1;
                let truth = truth as f64;
                covered += u32::from((interval.low..=interval.high).contains(&truth));
            }
        }
        // ReplayedWindows fill L1: what is unknown there is little.
        let l1 = found.total[0];
        assert!(l1.high - l1.low < 0.2 * l1.estimate, "{l1:?}");
    }
    assert!(covered * 100 >= tried * 95, "{covered} of {tried}");
}

/// One line, twice: the first access is unknown, the second hits. Then two others of its set: with
/// 2 ways, they fill it, so the third is certain.
#[test]
fn first_accesses_are_unknown_until_the_set_is_full() {
    let lines = [0u64, 0, 4, 8].map(|line| access(line * 64, 0, 0)).to_vec();
    let mut run = run(
        &lines,
        vec![window(1, 0, lines.clone()), window(2, 0, lines.clone())],
    );
    run.total.heap_reads = 8;
    run.sites[0].reads = 8;
    let found = misses(&run, &machine()).expect("windows");
    // All accesses were seen, in two windows: no sampling error, but two cold starts.
    let l1 = found.total[0];
    assert_eq!((l1.low, l1.high), (2.0, 6.0));
    // L2 is certainly asked only for the last.
    assert_eq!((found.total[1].low, found.total[1].high), (0.0, 6.0));
}

#[test]
fn one_window_says_nothing_of_the_rest() {
    let lines = vec![access(0, 0, 0)];
    let mut run = run(&lines, vec![window(1, 0, lines.clone())]);
    run.total.heap_reads = 1000;
    let found = misses(&run, &machine()).expect("a window");
    assert_eq!((found.total[0].low, found.total[0].high), (0.0, 1000.0));
}

#[test]
fn fields_are_told_apart() {
    let mut lines = vec![
        access(64, 0, 0),
        access(128 + 4, 0, 404),
        access(128, 0, 800),
    ];
    lines.push(access(0x5000, u32::MAX, 0));
    lines.push(access(0x6000, 99, 0));
    let run = run(&lines[..3], vec![window(1, 0, lines.clone())]);
    let found = misses(&run, &machine()).expect("a window");
    let fields: Vec<_> = { found.sites[0].fields.iter() }
        .map(|it| (it.offset, it.field.as_deref(), it.recorded, it.possible[0]))
        .collect();
    // Elements of 400 bytes: 404 is 4, 800 is 0, and the line of 132 is that of 128.
    assert_eq!(fields, [(0, Some("id"), 2, 1), (4, Some("text"), 1, 1)]);
    assert_eq!(found.sites.len(), 1);
}

#[test]
fn nothing_comes_of_nothing() {
    let mut run = run(&[], Vec::new());
    assert_eq!(misses(&run, &machine()), None);
    run.windows = vec![window(1, 0, vec![access(0, u32::MAX, 0)])];
    assert_eq!(misses(&run, &machine()), None);
    run.windows = vec![window(1, 0, vec![access(0, 0, 0)])];
    let mut without = machine();
    without.hierarchy = None;
    assert_eq!(misses(&run, &without), None);
}

/// A victim cache of 2 ways behind one of 2: after 4 other blocks of its set, and no sooner, it
/// has lost a block for certain.
#[test]
fn a_victim_cache_forgets_later() {
    let machine = {
        let mut machine = machine();
        let level = |name| CacheLevel::lru(name, CacheGeometry::new(1, 64, 2).expect("a geometry"));
        let caches = vec![level("L1"), level("L2")];
        machine.hierarchy = Hierarchy::new(caches, Inclusion::VictimLast, Vec::new()).ok();
        machine
    };
    let certain = |blocks: u64| {
        let lines: Vec<Access> = (0..blocks).map(|line| access(line * 64, 0, 0)).collect();
        let windows = vec![window(1, 0, lines.clone()), window(2, 0, Vec::new())];
        let found = misses(&run(&lines, windows), &machine).expect("windows");
        [found.total[0].low, found.total[1].low]
    };
    // L1 is full after 2 blocks; the L2 is certainly asked for those from the third on.
    assert_eq!([certain(2), certain(3)], [[0.0, 0.0], [1.0, 0.0]]);
    assert_eq!([certain(6), certain(7)], [[4.0, 0.0], [5.0, 1.0]]);
}

/// L2 has 4 KiB, and the process 1,500 bytes.
#[test]
fn a_block_misses_once_where_the_whole_process_fits() {
    let all = trace(3000, 5);
    let windows = [0, 1000, 2000].map(|at| window(at as u64, 0, all[at..at + 500].to_vec()));
    let mut run = run(&all, windows.to_vec());
    let unlimited = misses(&run, &machine()).expect("windows");
    run.total.peak_usable = 1500;
    run.resident = vec![run.resident[0]];
    run.resident[0].bytes = 1500;
    (run.sites[0].touched_bytes, run.sites[0].smallest) = (6400, 2000);
    run.sites[0].allocations = 3;
    let limited = misses(&run, &machine()).expect("windows");
    let of_first = |misses: &Misses| {
        let site = misses
            .sites
            .iter()
            .find(|it| it.site == 0)
            .expect("the site");
        site.misses.clone()
    };
    let (before, after) = (of_first(&unlimited), of_first(&limited));
    assert_eq!(before[0], after[0]);
    let limit = before[1].low.max(106.0);
    assert!(before[1].high > limit + 1.0, "{before:?}");
    assert!((after[1].high - limit).abs() < 1e-9, "{after:?}");
}
