//! A simulation of machines: a heap of boxed events, each of which brings about others.

use fastrand::Rng;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

pub(super) struct Event {
    time: u64,
    machine: usize,
    load: [u32; 16],
}

impl Event {
    pub(super) fn key(&self) -> (u64, usize) {
        (self.time, self.machine)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The earliest is the greatest.
impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

pub(super) trait Queue {
    fn add(&mut self, event: Box<Event>);
    fn next(&mut self) -> Option<Box<Event>>;
}

impl Queue for BinaryHeap<Box<Event>> {
    fn add(&mut self, event: Box<Event>) {
        self.push(event);
    }

    fn next(&mut self) -> Option<Box<Event>> {
        self.pop()
    }
}

/// Each machine has one event to come.
pub(super) fn simulate(size: usize, queue: &mut impl Queue) -> u64 {
    let mut random = Rng::with_seed(52);
    let mut loads = vec![0_u64; size];
    for machine in 0..size {
        queue.add(Box::new(Event {
            time: random.u64(..1 << 32),
            machine,
            load: [1; 16],
        }));
    }
    let mut sum = 0_u64;
    for _ in 0..2 * size {
        let Some(event) = queue.next() else { break };
        let load: u64 = event.load.iter().map(|&load| u64::from(load)).sum();
        loads[event.machine] += load;
        sum = sum.rotate_left(1) ^ event.time;
        queue.add(Box::new(Event {
            time: event.time + random.u64(1..1 << 32),
            machine: event.machine,
            load: [random.u32(..9); 16],
        }));
    }
    loads
        .iter()
        .fold(sum, |sum, load| sum.rotate_left(1) ^ load)
}

pub fn run(size: usize) -> u64 {
    simulate(size, &mut BinaryHeap::<Box<Event>>::new())
}
