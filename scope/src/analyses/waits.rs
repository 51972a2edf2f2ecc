//! How long the program waits for each of its data structures.

use std::collections::{BTreeMap, HashMap};

use ccmodel::Machine;

use crate::analyses::replay::{LEAST, ReplayedWindows};
use crate::analyses::structures::together;
use crate::analyses::types::type_name;
use crate::profile::Profile;

/// Waiting that takes a smaller part of the time is what every program does.
const MIN_PART: f64 = 0.1;
/// Less of the time, if what is not known was in a cache, may be none, unless much is probable.
const MIN_SURE: f64 = 0.05;
const CLEAR_PART: f64 = 0.25;
/// Nobody waits for a program that waits so little, in nanoseconds.
const MIN_NS: f64 = 5e6;
/// The run's beginning stands for the rest of it up to so many times its length.
const MAX_SCALE: f64 = 8.0;

/// What the program waits for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// The part of the time for which the program waits for memory, that outside the heap included.
    pub share: f64,
    /// Whether what was recorded stands for the run: not its beginning alone.
    pub is_typical: bool,
    /// The structures, those that it waits for longest first.
    pub structures: Vec<Waiting>,
}

/// Sites of one data structure.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// Indices of sites, the one waited for longest first; those without waiting come last.
    pub sites: Vec<usize>,
    /// The name of what they allocate, if it is known.
    pub name: Option<String>,
    /// The part of the time for which the program waits for them.
    pub share: f64,
    /// Whether that is long enough, and sure enough, to be said.
    pub is_finding: bool,
}

/// Nanoseconds that the program waits for each site. `None` as for [`ReplayedWindows::new`].
#[must_use]
pub fn waits_by_site(profile: &Profile, machine: &Machine) -> Option<Vec<f64>> {
    let windows = ReplayedWindows::new(profile, machine)?;
    let share = |site: u32| windows.waits.get(&site).copied().unwrap_or(0.0);
    let sites = (0..).zip(&profile.sites);
    Some(
        sites
            .map(|(site, _)| share(site) * windows.run_ns)
            .collect(),
    )
}

/// How long a program waits for what.
///
/// O(accesses in the windows).
#[must_use]
pub fn waits(profile: &Profile, windows: &ReplayedWindows) -> Waits {
    let trace = &windows.trace;
    let least = windows.baseline.waits(trace, windows.cpu, LEAST);
    let probable = &windows.waits;
    let is_typical = trace.ends.len() > 1 || trace.scale <= MAX_SCALE;
    let first = together(profile);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (site, &first) in first.iter().enumerate() {
        groups.entry(first).or_default().push(site);
    }
    let part = |waits: &HashMap<u32, f64>, site: usize| {
        let site = u32::try_from(site).ok();
        site.and_then(|site| waits.get(&site))
            .copied()
            .unwrap_or(0.0)
    };
    let of_group = |mut sites: Vec<usize>| {
        let [sure, share] =
            [&least, probable].map(|waits| sites.iter().map(|&it| part(waits, it)).sum::<f64>());
        sites.sort_by(|&a, &b| {
            part(probable, b)
                .total_cmp(&part(probable, a))
                .then(a.cmp(&b))
        });
        let name = type_name(profile, profile.sites[sites[0]].type_id);
        Waiting {
            name: name.filter(|&name| name != "bytes").map(str::to_owned),
            is_finding: is_typical
                && (share >= CLEAR_PART || share >= MIN_PART && sure >= MIN_SURE)
                && share * windows.run_ns >= MIN_NS,
            sites,
            share,
        }
    };
    let mut structures: Vec<Waiting> = groups.into_values().map(of_group).collect();
    structures.retain(|it| it.share > 0.0);
    structures.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.sites.cmp(&b.sites)));
    Waits {
        share: (0.0 + probable.values().sum::<f64>()).min(1.0),
        is_typical,
        structures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{access, profile, window};

    /// Windows that go around 2,000 nodes, a page apart, of sites 0 and 1, which allocate one map.
    fn run() -> Profile {
        let mut run = profile();
        run.types[0].name = "BTreeMap<u64, u64>".to_owned();
        run.sites[1].type_id = Some(0);
        let node = |i: u64| 0x1000_0000 + i % 2000 * 4160;
        let load = |i: u64| crate::profile::Access {
            pointer: node(i + 1),
            target: u32::from(i.is_multiple_of(2)),
            ..access(node(i), u32::from(i % 2 == 1), 0)
        };
        let windows = (0..8).map(|n| window(n * 10_000, 0, (0..4000).map(load).collect()));
        run.windows = windows.collect();
        (run.total.heap_reads, run.run.end) = (100_000_000, 100_000_000);
        run
    }

    fn of(run: &Profile) -> Waits {
        let machine = Machine::preset("zen4-desktop").expect("a machine");
        waits(
            run,
            &ReplayedWindows::new(run, &machine).expect("there are windows"),
        )
    }

    #[test]
    fn sites_of_a_structure_are_waited_for_together() {
        let waits = of(&run());
        let map = &waits.structures[0];
        assert_eq!(map.name.as_deref(), Some("BTreeMap<u64, u64>"));
        assert!(map.sites.len() == 2 && map.sites.contains(&0), "{map:?}");
        assert!(map.is_finding && map.share > 0.5, "{map:?}");
        assert!((waits.share - map.share).abs() < 1e-9, "{waits:?}");
    }

    /// A run of a millisecond; the run's beginning alone; nodes that a cache holds.
    #[test]
    fn short_or_unknown_waits_are_no_finding() {
        let is_finding = |change: &dyn Fn(&mut Profile)| {
            let mut run = run();
            change(&mut run);
            of(&run).structures.iter().any(|it| it.is_finding)
        };
        assert!(is_finding(&|_| {}));
        assert!(!is_finding(&|run| run.total.heap_reads = 100_000));
        assert!(!is_finding(&|run| {
            run.windows.truncate(1);
            run.windows[0].from_start = true;
        }));
        assert!(!is_finding(&|run| {
            for access in run.windows.iter_mut().flat_map(|it| &mut it.accesses) {
                access.address = 0x1000_0000 + access.address % 4160;
                access.pointer = 0x1000_0000;
            }
        }));
    }
}
