//! Particles that move freely, and whose charge within the middle is summed after each step.

use fastrand::Rng;

pub(super) struct Particle {
    pub(super) position: [f64; 3],
    pub(super) velocity: [f64; 3],
    spin: [f64; 3],
    mass: f64,
    pub(super) charge: f64,
    id: u64,
    history: [f32; 6],
}

pub(super) fn particles(size: usize) -> Vec<Particle> {
    let mut random = Rng::with_seed(58);
    let mut particle = |id| {
        let mut vector = || [random.f64(), random.f64(), random.f64()];
        Particle {
            position: vector(),
            velocity: vector(),
            spin: vector(),
            mass: 1.0,
            charge: random.f64() - 0.5,
            id,
            history: [0.0; 6],
        }
    };
    (0..size as u64).map(&mut particle).collect()
}

fn charge(all: &[Particle], round: usize) -> f64 {
    let within = |it: &&Particle| it.position[round % 3] > 0.5;
    all.iter().filter(within).map(|it| it.charge).sum()
}

/// Steps are few, sums are many.
pub(super) const SUMS: usize = 150;

pub fn run(size: usize) -> u64 {
    let mut all = particles(size);
    let mut sum = 0.0;
    for round in 0..SUMS {
        sum += charge(&all, round);
        if round % 50 == 0 {
            for it in &mut all {
                for axis in 0..3 {
                    it.position[axis] = (it.position[axis] + it.velocity[axis]).fract();
                }
            }
        }
    }
    checksum(&all, sum)
}

pub(super) fn checksum(all: &[Particle], sum: f64) -> u64 {
    all.iter().fold(sum.to_bits(), |sum, it| {
        let rest = it.spin[0] + it.mass + f64::from(it.history[1]);
        sum.rotate_left(1) ^ it.id ^ rest.to_bits()
    })
}
