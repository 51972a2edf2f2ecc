//! A navigator: shortest ways over roads that were read from a map.

use fastrand::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) struct Road {
    pub(super) name: String,
    pub(super) to: usize,
    pub(super) metres: u64,
    pub(super) speed: u64,
    pub(super) is_closed: bool,
}

#[derive(Default)]
pub(super) struct Junction {
    pub(super) roads: Vec<Road>,
}

impl Road {
    pub(super) fn seconds(&self) -> Option<u64> {
        (!self.is_closed).then_some(self.metres * 4 / self.speed)
    }
}

/// A town of blocks; junctions are numbered as they were surveyed, not as they lie.
pub(super) fn town(size: usize) -> Vec<Junction> {
    let mut random = Rng::with_seed(113);
    let side = (size as f64).sqrt() as usize;
    let mut numbers: Vec<usize> = (0..side * side).collect();
    random.shuffle(&mut numbers);
    let mut junctions: Vec<Junction> = Vec::new();
    junctions.resize_with(side * side, Junction::default);
    for at in 0..side * side {
        let (right, down) = (at + 1, at + side);
        let others = [
            (right, !right.is_multiple_of(side)),
            (down, down < side * side),
        ];
        for (other, _) in others.into_iter().filter(|it| it.1) {
            let (metres, speed) = (random.u64(50..500), random.u64(5..20));
            let is_closed = random.u8(..20) == 0;
            for [from, to] in [[at, other], [other, at]] {
                junctions[numbers[from]].roads.push(Road {
                    name: format!("{} Street", other % 100),
                    to: numbers[to],
                    metres,
                    speed,
                    is_closed,
                });
            }
        }
    }
    junctions
}

/// Dijkstra's algorithm: the sum of the times to all junctions. `roads` calls for each road from a
/// junction, with the other end and the time.
pub(super) fn times(
    len: usize,
    from: usize,
    roads: impl Fn(usize, &mut dyn FnMut(usize, u64)),
) -> u64 {
    let mut best = vec![u64::MAX; len];
    let mut open = BinaryHeap::from([Reverse((0, from))]);
    best[from] = 0;
    let mut sum = 0_u64;
    while let Some(Reverse((seconds, at))) = open.pop() {
        if seconds == best[at] {
            sum = sum.wrapping_mul(31).wrapping_add(seconds);
            roads(at, &mut |to, more| {
                if seconds + more < best[to] {
                    best[to] = seconds + more;
                    open.push(Reverse((seconds + more, to)));
                }
            });
        }
    }
    sum
}

pub(super) const WAYS: usize = 20;

pub(super) fn name_lengths(junctions: &[Junction]) -> u64 {
    let roads = junctions.iter().flat_map(|it| &it.roads);
    roads.map(|road| road.name.len() as u64).sum()
}

pub fn run(size: usize) -> u64 {
    let junctions = town(size);
    let sum = (0..WAYS).fold(0, |sum: u64, from| {
        sum ^ times(junctions.len(), from, |at, each| {
            for road in &junctions[at].roads {
                if let Some(seconds) = road.seconds() {
                    each(road.to, seconds);
                }
            }
        })
    });
    sum ^ name_lengths(&junctions)
}
