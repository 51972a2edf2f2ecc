//! Sites that grow from each snapshot of a run to the next.
//!
//! A cache that is full and a pool that breathes stay level, or fall, between two of several
//! snapshots; a leak does not. Sites are matched as [`diff`](super::diff) matches them.

use serde::Serialize;

use super::diff::{Bound, Gate, Metric, at_place, pairs};
use crate::analyses::units::{bytes, plural, sum};
use crate::profile::{Profile, Site};

/// What was alive in a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Alive {
    /// Usable bytes.
    pub bytes: u64,
    /// Chunks.
    pub chunks: u64,
}

/// A site with more bytes alive in each snapshot than in the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grower {
    /// Index in the last snapshot.
    pub site: usize,
    /// In each snapshot.
    pub alive: Vec<Alive>,
}

impl Grower {
    /// Bytes that are alive in the last snapshot beyond those in the first.
    #[must_use]
    pub fn growth(&self) -> u64 {
        match self.alive[..] {
            [first, .., last] => last.bytes.saturating_sub(first.bytes),
            _ => 0,
        }
    }
}

/// What has grown over several snapshots of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Growth {
    /// When each snapshot was taken, in seconds from the start of the recording.
    pub seconds: Vec<f64>,
    /// All that was alive in each.
    pub total: Vec<Alive>,
    /// Those that have grown most first.
    pub sites: Vec<Grower>,
}

impl Growth {
    /// Seconds from the first snapshot to the last; `None` if they are not known.
    #[must_use]
    pub fn span(&self) -> Option<f64> {
        let span = self.seconds.last()? - self.seconds.first()?;
        (span > 0.0).then_some(span)
    }
}

/// Why profiles are no series of snapshots; the numbers are indices of profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSeries {
    /// It does not say which run it is of, as files of other tools.
    Unknown(usize),
    /// They are of two runs.
    OtherRun(usize, usize),
    /// They are of one moment.
    SameMoment(usize, usize),
}

/// Whether both profiles are of one run of a process.
#[must_use]
pub fn is_one_run(a: &Profile, b: &Profile) -> bool {
    (a.run.pid, a.run.started_ns) == (b.run.pid, b.run.started_ns) && a.run.started_ns > 0
}

/// The order of time of snapshots of one run, as indices.
///
/// # Errors
///
/// If they are not of one run, or two are the same.
pub fn order(snapshots: &[Profile]) -> Result<Vec<usize>, NoSeries> {
    for (at, it) in snapshots.iter().enumerate() {
        if it.run.started_ns == 0 {
            return Err(NoSeries::Unknown(at));
        }
        if !is_one_run(&snapshots[0], it) {
            return Err(NoSeries::OtherRun(0, at));
        }
    }
    // Events do not go on while a program waits.
    let by_time = |a: usize, b: usize| {
        let [a, b] = [a, b].map(|index| &snapshots[index].run);
        a.end.cmp(&b.end).then(a.seconds.total_cmp(&b.seconds))
    };
    let mut order: Vec<usize> = (0..snapshots.len()).collect();
    order.sort_by(|&a, &b| by_time(a, b));
    match order.windows(2).find(|two| by_time(two[0], two[1]).is_eq()) {
        Some(same) => Err(NoSeries::SameMoment(same[0], same[1])),
        None => Ok(order),
    }
}

/// What has grown in each of these snapshots, which are in the order of time.
#[must_use]
pub fn growth(snapshots: &[&Profile]) -> Growth {
    let alive = |site: &Site| Alive {
        bytes: site.end_usable,
        chunks: site.end_chunks,
    };
    // Of the sites of the latest snapshot so far, what was alive in each.
    let mut all: Vec<Vec<Alive>> = Vec::new();
    if let Some(first) = snapshots.first() {
        all = first.sites.iter().map(|site| vec![alive(site)]).collect();
    }
    for (number, two) in (1..).zip(snapshots.windows(2)) {
        let mut next = vec![Vec::new(); two[1].sites.len()];
        for pair in pairs(two[0], two[1]) {
            let Some(new) = pair.new else {
                continue;
            };
            let before = pair.old.map(|old| std::mem::take(&mut all[old]));
            next[new] = before.unwrap_or_else(|| vec![Alive::default(); number]);
            next[new].push(alive(&two[1].sites[new]));
        }
        all = next;
    }
    let sites = all.into_iter().enumerate();
    let mut sites: Vec<Grower> = { sites.map(|(site, alive)| Grower { site, alive }) }
        .filter(|it| it.alive.windows(2).all(|two| two[0].bytes < two[1].bytes))
        .collect();
    sites.sort_by_key(|it| (u64::MAX - it.growth(), it.site));
    Growth {
        seconds: snapshots.iter().map(|it| it.run.seconds).collect(),
        total: { snapshots.iter().map(|it| &it.total) }
            .map(|it| Alive {
                bytes: it.end_usable,
                chunks: it.end_chunks,
            })
            .collect(),
        sites,
    }
}

/// The gates on [`Metric::Grown`] that fail, a sentence for each. `last` is the last snapshot.
///
/// # Errors
///
/// If a gate is on sites of which there are none, or on a change: growth is one already.
pub fn breaches(growth: &Growth, last: &Profile, gates: &[Gate]) -> Result<Vec<String>, String> {
    let mut breaches = Vec::new();
    for gate in gates.iter().filter(|gate| gate.metric == Metric::Grown) {
        if gate.of != Bound::Value {
            return Err(format!("{gate}: write `grown>BYTES`"));
        }
        let there = gate.place.as_ref().map(|place| at_place(last, place));
        if there.as_ref().is_some_and(Vec::is_empty) {
            return Err(format!("{gate}: no profile has a site there"));
        }
        let is_there = |it: &&Grower| there.as_ref().is_none_or(|all| all.contains(&it.site));
        let sites: Vec<&Grower> = growth.sites.iter().filter(is_there).collect();
        let grown = sum(sites.iter().map(|it| it.growth()));
        let value = grown as f64;
        if (gate.is_above && value > gate.bound) || (!gate.is_above && value < gate.bound) {
            let number = plural(sites.len() as u64, "site");
            breaches.push(format!("{gate}: {} at {number}", bytes(grown)));
        }
    }
    Ok(breaches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::diff::gates;
    use crate::analyses::test_profile::profile;

    /// Snapshots after 10, 20, … seconds, whose first sites have so many bytes alive, in chunks of
    /// 10 bytes.
    fn series(bytes: &[[u64; 3]]) -> Vec<Profile> {
        let snapshot = |(number, alive): (usize, &[u64; 3])| {
            let mut run = profile();
            (run.run.pid, run.run.started_ns) = (7, 1_000_000_000);
            run.run.seconds = 10.0 * (number + 1) as f64;
            run.run.end = 1_000_000 * (number as u64 + 1);
            for (site, &bytes) in run.sites.iter_mut().zip(alive) {
                (site.end_usable, site.end_chunks) = (bytes, bytes / 10);
            }
            run.total.end_usable = alive.iter().sum();
            run
        };
        bytes.iter().enumerate().map(snapshot).collect()
    }

    fn grown(snapshots: &[Profile]) -> Growth {
        growth(&snapshots.iter().collect::<Vec<_>>())
    }

    #[test]
    fn only_what_grows_each_time_is_told() {
        // A cache that is full after the second; a pool; two leaks.
        let mut all = series(&[[100, 500, 20], [900, 300, 30], [900, 600, 2000]]);
        let told = grown(&all);
        assert_eq!(told.sites.len(), 1);
        assert_eq!((told.sites[0].site, told.sites[0].growth()), (2, 1980));
        assert_eq!(
            told.sites[0].alive[1],
            Alive {
                bytes: 30,
                chunks: 3
            }
        );
        assert_eq!(told.span(), Some(20.0));
        assert_eq!(told.total[2].bytes, 3500);
        // Other indices in a later snapshot; and a site that is new there.
        all[2].sites.rotate_left(1);
        assert_eq!(grown(&all).sites[0].site, 1);
        all = series(&[[10, 10, 0], [20, 20, 5], [30, 40, 9]]);
        all[0].sites.remove(2);
        let order: Vec<usize> = grown(&all).sites.iter().map(|it| it.site).collect();
        assert_eq!(order, [1, 0, 2]);
        assert_eq!(grown(&all).sites[2].alive[0], Alive::default());
        assert_eq!((growth(&[]).sites.len(), growth(&[]).span()), (0, None));
    }

    #[test]
    fn snapshots_are_put_in_order() {
        let mut all = series(&[[1, 1, 1], [2, 2, 2], [3, 3, 3]]);
        all.rotate_left(1);
        assert_eq!(order(&all), Ok(vec![2, 0, 1]));
        // A program that only waited in between.
        all[0].run.end = all[1].run.end;
        assert_eq!(order(&all), Ok(vec![2, 0, 1]));
        all[0].run.seconds = all[1].run.seconds;
        assert_eq!(order(&all), Err(NoSeries::SameMoment(0, 1)));
        all[2].run.pid = 8;
        assert_eq!(order(&all), Err(NoSeries::OtherRun(0, 2)));
        all[0].run.started_ns = 0;
        assert_eq!(order(&all), Err(NoSeries::Unknown(0)));
    }

    #[test]
    fn growth_is_gated() {
        let all = series(&[[10, 10, 0], [20, 20, 5], [30, 40, 9]]);
        let growth = grown(&all);
        let of = |text: &str| breaches(&growth, &all[2], &gates(text).unwrap());
        assert_eq!(of("grown>59"), Ok(vec![]));
        let told = vec!["grown>58: 59 B at 3 sites".to_owned()];
        assert_eq!(of("grown>58"), Ok(told));
        let place = &all[2].frames[all[2].sites[1].place.unwrap() as usize];
        let gate = format!("site:{}:grown>0", place.function);
        assert_eq!(of(&gate).unwrap().len(), 1);
        assert!(of("site:nowhere:grown>0").is_err());
        assert!(of("grown>+0").is_err());
    }
}
