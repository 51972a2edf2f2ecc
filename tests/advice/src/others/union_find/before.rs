//! Regions of a picture that touch: sets that are joined, each an object with statistics.

use fastrand::Rng;

struct Region {
    parent: usize,
    size: usize,
    colour: [f32; 3],
    bounds: [u32; 4],
}

struct Regions(Vec<Box<Region>>);

impl Regions {
    fn new(size: usize) -> Self {
        let region = |number| {
            let colour = [number as f32; 3];
            Box::new(Region {
                parent: number,
                size: 1,
                colour,
                bounds: [0; 4],
            })
        };
        Regions((0..size).map(region).collect())
    }

    fn find(&mut self, mut at: usize) -> usize {
        while self.0[at].parent != at {
            let parent = self.0[at].parent;
            self.0[at].parent = self.0[parent].parent;
            at = parent;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) -> bool {
        let (mut a, mut b) = (self.find(a), self.find(b));
        if a == b {
            return false;
        }
        if self.0[a].size < self.0[b].size {
            std::mem::swap(&mut a, &mut b);
        }
        self.0[b].parent = a;
        self.0[a].size += self.0[b].size;
        self.0[a].bounds[0] += 1;
        true
    }
}

/// Pairs that touch, until nearly all are one.
pub(super) fn touching(size: usize, mut join: impl FnMut(usize, usize) -> bool) -> u64 {
    let mut random = Rng::with_seed(60);
    (0..2 * size).fold(0, |sum: u64, _| {
        let joined = join(random.usize(..size), random.usize(..size));
        sum.rotate_left(1) ^ u64::from(joined)
    })
}

pub fn run(size: usize) -> u64 {
    let mut regions = Regions::new(size);
    let sum = touching(size, |a, b| regions.join(a, b));
    regions.0.iter().fold(sum, |sum, it| {
        sum ^ (it.colour[1] as u64 + u64::from(it.bounds[0]))
    })
}
