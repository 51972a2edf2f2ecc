//! The write side of a log-structured store: a sorted table in memory that becomes sorted runs.

use fastrand::Rng;
use std::collections::BTreeMap;

/// `None` where the key was deleted.
pub(super) type Value = Option<Vec<u8>>;
pub(super) type Run = Vec<(String, Value)>;

pub(super) const TABLE_LEN: usize = 40_000;
const RUNS: usize = 4;

struct Store {
    table: BTreeMap<String, Value>,
    runs: Vec<Run>,
}

impl Store {
    fn put(&mut self, key: String, value: Value) {
        self.table.insert(key, value);
        if self.table.len() == TABLE_LEN {
            let run = std::mem::take(&mut self.table).into_iter().collect();
            add_run(&mut self.runs, run);
        }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.table.get(key).or_else(|| find(&self.runs, key))
    }
}

/// Looks from the latest run to the oldest.
pub(super) fn find<'a>(runs: &'a [Run], key: &str) -> Option<&'a Value> {
    runs.iter().rev().find_map(|run| {
        let at = run.binary_search_by(|entry| entry.0.as_str().cmp(key));
        Some(&run[at.ok()?].1)
    })
}

/// Adds the latest run; when there are too many, they become one, without what was deleted.
pub(super) fn add_run(runs: &mut Vec<Run>, run: Run) {
    runs.push(run);
    if runs.len() > RUNS {
        let mut all: Run = runs.drain(..).rev().flatten().collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.dedup_by(|later, first| later.0 == first.0);
        all.retain(|entry| entry.1.is_some());
        runs.push(all);
    }
}

pub(super) enum Request {
    Put(String, Value),
    Get(String),
}

/// Some users are far more active than others.
pub(super) fn serve(size: usize, mut answer: impl FnMut(Request) -> u64) -> u64 {
    let mut random = Rng::with_seed(101);
    (0..size).fold(0, |sum: u64, number| {
        let user = random.f64().powi(3) * size as f64;
        let key = format!("user:{:08}", user as usize);
        let request = match random.u8(..16) {
            0 => Request::Put(key, None),
            1..8 => Request::Put(key, Some(number.to_string().into_bytes())),
            _ => Request::Get(key),
        };
        sum.rotate_left(1) ^ answer(request)
    })
}

pub(super) fn score(found: Option<&Value>) -> u64 {
    let value = found.and_then(Option::as_ref);
    value.map_or(1, |value| u64::from(value[0]) << 8 | value.len() as u64)
}

pub fn run(size: usize) -> u64 {
    let mut store = Store {
        table: BTreeMap::new(),
        runs: Vec::new(),
    };
    serve(size, |request| match request {
        Request::Put(key, value) => {
            store.put(key, value);
            0
        }
        Request::Get(key) => score(store.get(&key)),
    })
}
