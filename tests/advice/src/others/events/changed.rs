//! The time beside the box, or another queue.

use super::before::{Event, Queue, simulate};
use ctree::CTreeMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

type Key = (u64, usize);

impl Queue for BinaryHeap<(Reverse<Key>, Box<Event>)> {
    fn add(&mut self, event: Box<Event>) {
        self.push((Reverse(event.key()), event));
    }

    fn next(&mut self) -> Option<Box<Event>> {
        self.pop().map(|(_, event)| event)
    }
}

impl Queue for CTreeMap<Key, Box<Event>> {
    fn add(&mut self, event: Box<Event>) {
        self.insert(event.key(), event);
    }

    fn next(&mut self) -> Option<Box<Event>> {
        self.pop_first().map(|(_, event)| event)
    }
}

pub fn idea(size: usize) -> u64 {
    simulate(size, &mut BinaryHeap::<(Reverse<Key>, Box<Event>)>::new())
}

pub fn container(size: usize) -> u64 {
    simulate(size, &mut CTreeMap::<Key, Box<Event>>::new())
}
