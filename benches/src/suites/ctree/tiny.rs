//! Many maps of 1 to 8 entries with strings as keys, as programs that read documents have them.

use std::collections::BTreeMap;
use std::time::Duration;

use ctree::CTreeMap;

use super::WARM_BYTES;
use crate::keys;
use crate::ordered_map::{OrderedMap, Passes, add_in_order, value_of};
use crate::rivals::maps::{BTREEMAP, BTREEMAP_NAME};
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::sys::{heap_bytes, warm_memory};
use crate::timing::{timed, turns};
use crate::workload::{Comparison, Effort, Rows, SEED, Workload, agree};

const STEPS: [&str; 5] = ["collect", "clone", "get", "eq", "drop"];

type Entries = Vec<(String, u64)>;

/// What one side takes in a round: the time of each step, bytes, and a sum over all answers.
type Taken = ([Duration; STEPS.len()], Option<u64>, u64);

/// Runs each step over all maps. Lookups are independent, each in another map.
fn steps<M>(all: &[Entries], queries: &[(usize, &String)]) -> Taken
where
    M: OrderedMap<String> + FromIterator<(String, u64)> + Clone + PartialEq,
{
    let before = heap_bytes();
    let entries = all.to_vec();
    let (collected, maps) = timed(|| entries.into_iter().map(M::from_iter).collect::<Vec<M>>());
    let bytes = heap_bytes().zip(before).map(|(now, then)| now - then);
    let (cloned, copies) = timed(|| maps.clone());
    let (got, sum) = timed(|| {
        let get = |&(map, key): &(usize, _)| maps[map].get(key).copied();
        queries.iter().map(get).fold(0, add_in_order)
    });
    let (compared, equal) = timed(|| maps.iter().zip(&copies).filter(|(a, b)| a == b).count());
    let (dropped, ()) = timed(|| drop(maps));
    let left = copies.iter().map(Passes::iterate);
    let times = [collected, cloned, got, compared, dropped];
    (
        times,
        bytes,
        left.fold(sum ^ equal as u64, u64::wrapping_add),
    )
}

/// A map's `collect`, `clone`, `get`, `==` and `drop`, and its bytes, the keys' own included.
pub(in crate::suites) fn tiny_maps(workload: &Workload, effort: &Effort) -> Rows {
    warm_memory(WARM_BYTES);
    // Fields of documents come again and again.
    let names = keys::words_and_paths(1 << 16, SEED);
    let mut rows = Vec::new();
    for (part, count) in [("tiny_maps_100k", 100_000), ("tiny_maps_1m", 1_000_000)] {
        if effort.wants(workload, part) {
            rows.extend(tiny_maps_of(part, &names, count, effort)?);
        }
    }
    Ok(rows)
}

fn tiny_maps_of(part: &str, names: &[String], count: usize, effort: &Effort) -> Rows {
    let mut rng = Rng::new(SEED);
    let mut entry = |place| (names[rng.below(names.len())].clone(), value_of(place));
    let lens = (0..count).map(|map| 1 + map % 8);
    let all: Vec<Entries> = lens.map(|len| (0..len).map(&mut entry).collect()).collect();
    let queries = (0..count).map(|_| {
        let map = rng.below(count);
        (map, &all[map][rng.below(all[map].len())].0)
    });
    let queries: Vec<(usize, &String)> = queries.collect();
    let mut times = [(); STEPS.len()].map(|()| [Vec::new(), Vec::new()]);
    let (mut bytes, mut sum) = ([None; 2], None);
    for which in turns(effort.process_rounds, 2) {
        let (taken, heap, answers) = match which {
            0 => steps::<CTreeMap<String, u64>>(&all, &queries),
            _ => steps::<BTreeMap<String, u64>>(&all, &queries),
        };
        agree(&mut sum, answers, part, BTREEMAP_NAME)?;
        bytes[which] = heap;
        let pairs = times.iter_mut().zip(taken);
        pairs.for_each(|(times, time)| times[which].push(time));
    }
    let mut rows = Vec::new();
    let mut add = |step: &str, unit, [ours, theirs]: [Rounds; 2]| {
        let name = format!("{part}_{step}_vs_{BTREEMAP}");
        rows.push(Comparison::new(name, BTREEMAP_NAME, unit, &ours, &theirs));
    };
    for (step, times) in STEPS.iter().zip(times) {
        let rounds = times.map(|times| Rounds::of_times(&times, count));
        add(step, "ns", rounds);
    }
    if let [Some(ours), Some(theirs)] = bytes {
        let each = |bytes: u64| Rounds::once(bytes as f64 / count as f64);
        add("bytes", "B", [ours, theirs].map(each));
    }
    Ok(rows)
}
