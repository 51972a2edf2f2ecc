//! An ordered map in place of the list.

use ctree::CTreeMap;
use fastrand::Rng;
use std::collections::BTreeMap;

macro_rules! looked_up {
    ($map:ident, $size:ident) => {{
        let (mut random, mut map, mut sum) = (Rng::with_seed(46), $map::new(), 0_u64);
        for value in 0..$size as u64 {
            map.insert(random.u64(..), value);
        }
        for _ in 0..$size {
            let found = map.range(random.u64(..)..).next().map_or(1, |it| *it.1);
            sum = sum.rotate_left(1) ^ found;
        }
        sum
    }};
}

pub fn container(size: usize) -> u64 {
    looked_up!(CTreeMap, size)
}

pub fn idea(size: usize) -> u64 {
    looked_up!(BTreeMap, size)
}
