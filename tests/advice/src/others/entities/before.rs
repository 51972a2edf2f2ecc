//! Creatures of a game that run after each other.

use fastrand::Rng;

pub(super) struct Creature {
    pub(super) name: String,
    pub(super) inventory: Vec<u32>,
    pub(super) skills: [u16; 40],
    pub(super) home: [f32; 3],
    pub(super) position: [f32; 3],
    pub(super) health: f32,
    pub(super) prey: usize,
}

pub(super) fn creatures(size: usize) -> Vec<Creature> {
    let mut random = Rng::with_seed(57);
    let mut creature = |number| {
        let mut place = || [random.f32(), random.f32(), random.f32()];
        let (home, position) = (place(), place());
        Creature {
            name: format!("creature {number}"),
            inventory: vec![number as u32],
            skills: [1; 40],
            home,
            position,
            health: 1.0,
            prey: random.usize(..size),
        }
    };
    (0..size).map(&mut creature).collect()
}

fn step(all: &mut [Creature], round: usize) {
    for at in 0..all.len() {
        let prey = all[at].prey;
        let target = all[prey].position;
        let own = &mut all[at];
        for (place, target) in own.position.iter_mut().zip(target) {
            *place += (target - *place) / 8.0;
        }
        own.health -= 0.001;
        if at % 128 == round {
            own.position = own.home;
            own.health += f32::from(own.skills[round % 40]);
        }
    }
}

pub(super) const ROUNDS: usize = 100;

pub(super) fn checksum(sum: u64, position: &[f32; 3], health: f32) -> u64 {
    let bits = u64::from(position[0].to_bits()) << 32 | u64::from(position[2].to_bits());
    sum.rotate_left(1) ^ bits ^ u64::from(health.to_bits())
}

pub(super) fn things(creature: &Creature) -> u64 {
    (creature.name.len() + creature.inventory.len()) as u64
}

pub fn run(size: usize) -> u64 {
    let mut all = creatures(size);
    (0..ROUNDS).for_each(|round| step(&mut all, round));
    all.iter().fold(0, |sum, it| {
        checksum(sum, &it.position, it.health) ^ things(it)
    })
}
