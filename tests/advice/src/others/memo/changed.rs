//! Other tables.

use super::before::{Texts, checksum};
use ctree::CTreeMap;
use std::collections::HashMap;

macro_rules! with {
    ($map:ident) => {
        fn common(texts: &Texts, i: usize, j: usize, known: &mut $map<(u32, u32), u64>) -> u64 {
            if i == texts.a.len() || j == texts.b.len() || i.abs_diff(j) > 300 {
                return 0;
            }
            let key = (i as u32, j as u32);
            if let Some(&length) = known.get(&key) {
                return length;
            }
            let length = if texts.a[i] == texts.b[j] {
                1 + common(texts, i + 1, j + 1, known)
            } else {
                common(texts, i + 1, j, known).max(common(texts, i, j + 1, known))
            };
            known.insert(key, length);
            length
        }
    };
}

pub fn container(size: usize) -> u64 {
    with!(CTreeMap);
    let (texts, mut known) = (Texts::new(size), CTreeMap::new());
    let length = common(&texts, 0, 0, &mut known);
    checksum(length, known.len())
}

pub fn idea(size: usize) -> u64 {
    with!(HashMap);
    let (texts, mut known) = (Texts::new(size), HashMap::new());
    let length = common(&texts, 0, 0, &mut known);
    checksum(length, known.len())
}
