//! Costs in a vector of all places, or in another map.

use super::before::{Costs, Place, ways};
use ctree::CTreeMap;

struct Table {
    costs: Vec<u32>,
    side: i32,
}

impl Table {
    fn index(&self, (x, y): Place) -> usize {
        (y * self.side + x) as usize
    }
}

impl Costs for Table {
    fn get(&self, place: Place) -> Option<u32> {
        let cost = self.costs[self.index(place)];
        (cost != u32::MAX).then_some(cost)
    }

    fn set(&mut self, place: Place, cost: u32) {
        let index = self.index(place);
        self.costs[index] = cost;
    }
}

pub fn idea(size: usize) -> u64 {
    ways(size, |map| Table {
        costs: vec![u32::MAX; (map.side * map.side) as usize],
        side: map.side,
    })
}

impl Costs for CTreeMap<Place, u32> {
    fn get(&self, place: Place) -> Option<u32> {
        CTreeMap::get(self, &place).copied()
    }

    fn set(&mut self, place: Place, cost: u32) {
        self.insert(place, cost);
    }
}

pub fn container(size: usize) -> u64 {
    ways(size, |_| CTreeMap::<Place, u32>::new())
}
