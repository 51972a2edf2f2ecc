//! Numbers of four bytes, or another dictionary.

use super::before::{index, intersection, queries};
use ctree::CTreeMap;
use std::collections::HashMap;

pub fn smaller(size: usize) -> u64 {
    let slim = |(word, list): (String, Vec<u64>)| {
        let list: Vec<u32> = list.into_iter().map(|it| it as u32).collect();
        (word, list)
    };
    let documents: HashMap<_, _> = index(size).documents.into_iter().map(slim).collect();
    queries(size, |a, b| answer(documents.get(a)?, documents.get(b)?))
}

pub fn container(size: usize) -> u64 {
    let documents: CTreeMap<_, _> = index(size).documents.into_iter().collect();
    queries(size, |a, b| answer(documents.get(a)?, documents.get(b)?))
}

fn answer<T: Copy + Ord + Into<u64>>(a: &[T], b: &[T]) -> Option<u64> {
    let both = intersection(a, b);
    let last: u64 = (*both.last()?).into();
    Some(both.len() as u64 ^ last)
}
