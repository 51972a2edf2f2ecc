//! Times, values and qualities in vectors of their own.

use super::before::{Request, requests};
use std::collections::HashMap;

#[derive(Default)]
struct Columns {
    times: Vec<u64>,
    values: Vec<f64>,
    qualities: Vec<u8>,
}

pub fn split(size: usize) -> u64 {
    let mut store: HashMap<String, Columns> = HashMap::new();
    requests(size, |request| match request {
        Request::Append(name, point) => {
            let columns = store.entry(name).or_default();
            columns.times.push(point.time);
            columns.values.push(point.value);
            columns.qualities.push(point.quality);
            0.0
        }
        Request::Greatest(name, from, to) => {
            let Some(Columns {
                times,
                values,
                qualities,
            }) = store.get(&name)
            else {
                return 0.0;
            };
            let first = times.partition_point(|&time| time < from);
            let last = times.partition_point(|&time| time < to);
            let inside = values[first..last].iter().zip(&qualities[first..last]);
            let good = inside.filter(|point| *point.1 > 10);
            good.map(|point| *point.0).fold(0.0, f64::max)
        }
    })
}
