//! Another table in memory; one without an order is sorted when it becomes a run.

use super::before::{Request, Run, TABLE_LEN, Value, add_run, find, score, serve};
use ctree::CTreeMap;
use std::collections::HashMap;

macro_rules! with {
    ($name:ident, $Table:ident, $sort:expr) => {
        pub fn $name(size: usize) -> u64 {
            let (mut table, mut runs) = ($Table::<String, Value>::new(), Vec::new());
            serve(size, |request| match request {
                Request::Put(key, value) => {
                    table.insert(key, value);
                    if table.len() == TABLE_LEN {
                        let mut run: Run = std::mem::take(&mut table).into_iter().collect();
                        $sort(&mut run);
                        add_run(&mut runs, run);
                    }
                    0
                }
                Request::Get(key) => score(table.get(key.as_str()).or_else(|| find(&runs, &key))),
            })
        }
    };
}

with!(container, CTreeMap, |_: &mut Run| {});
with!(idea, HashMap, |run: &mut Run| run
    .sort_by(|a, b| a.0.cmp(&b.0)));
