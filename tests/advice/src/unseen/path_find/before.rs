//! Units of a strategy game find their ways over a map with obstacles, by A*.

use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

pub(super) type Place = (i32, i32);

pub(super) struct Map {
    pub(super) side: i32,
    is_wall: Vec<bool>,
}

impl Map {
    pub(super) fn new(size: usize) -> Self {
        let mut random = Rng::with_seed(109);
        let side = ((size as f64).sqrt() as i32).max(8);
        let is_wall = (0..side * side).map(|_| random.u8(..10) < 3).collect();
        Map { side, is_wall }
    }

    fn is_free(&self, (x, y): Place) -> bool {
        let is_on = (0..self.side).contains(&x) && (0..self.side).contains(&y);
        is_on && !self.is_wall[(y * self.side + x) as usize]
    }
}

/// The least costs that are known so far.
pub(super) trait Costs {
    fn get(&self, place: Place) -> Option<u32>;
    fn set(&mut self, place: Place, cost: u32);
}

impl Costs for HashMap<Place, u32> {
    fn get(&self, place: Place) -> Option<u32> {
        HashMap::get(self, &place).copied()
    }

    fn set(&mut self, place: Place, cost: u32) {
        self.insert(place, cost);
    }
}

/// The length of the way, and how many places were looked at.
fn way(map: &Map, costs: &mut impl Costs, from: Place, to: Place) -> (u32, u64) {
    let at_least = |place: Place| place.0.abs_diff(to.0) + place.1.abs_diff(to.1);
    let mut open = BinaryHeap::from([Reverse((at_least(from), from))]);
    costs.set(from, 0);
    let mut looked = 0;
    while let Some(Reverse((estimate, place))) = open.pop() {
        let cost = costs.get(place).unwrap();
        if place == to {
            return (cost, looked);
        }
        if cost + at_least(place) < estimate {
            continue;
        }
        looked += 1;
        for (x, y) in [(1, 0), (0, 1), (-1, 0), (0, -1)] {
            let next = (place.0 + x, place.1 + y);
            if map.is_free(next) && costs.get(next).is_none_or(|known| cost + 1 < known) {
                costs.set(next, cost + 1);
                open.push(Reverse((cost + 1 + at_least(next), next)));
            }
        }
    }
    (0, looked)
}

pub(super) fn ways<C: Costs>(size: usize, mut new: impl FnMut(&Map) -> C) -> u64 {
    let (map, mut random) = (Map::new(size), Rng::with_seed(110));
    let ways = size as u64 / 2000 + 10;
    (0..ways).fold(0, |sum: u64, _| {
        let mut place = || (random.i32(0..map.side), random.i32(0..map.side));
        let (from, to) = (place(), place());
        let (length, looked) = way(&map, &mut new(&map), from, to);
        sum.rotate_left(5) ^ u64::from(length) << 32 ^ looked
    })
}

pub fn run(size: usize) -> u64 {
    ways(size, |_| HashMap::<Place, u32>::new())
}
