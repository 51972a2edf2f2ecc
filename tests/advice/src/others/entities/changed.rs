//! What moves in vectors of its own.

use super::before::{Creature, ROUNDS, checksum, creatures, things};

struct Moving {
    position: [f32; 3],
    health: f32,
    prey: u32,
}

pub fn split(size: usize) -> u64 {
    let cold = creatures(size);
    let moving = |it: &Creature| Moving {
        position: it.position,
        health: it.health,
        prey: it.prey as u32,
    };
    let mut all: Vec<Moving> = cold.iter().map(moving).collect();
    (0..ROUNDS).for_each(|round| step(&mut all, &cold, round));
    all.iter().zip(&cold).fold(0, |sum, (it, cold)| {
        checksum(sum, &it.position, it.health) ^ things(cold)
    })
}

fn step(all: &mut [Moving], cold: &[Creature], round: usize) {
    for at in 0..all.len() {
        let target = all[all[at].prey as usize].position;
        let own = &mut all[at];
        for (place, target) in own.position.iter_mut().zip(target) {
            *place += (target - *place) / 8.0;
        }
        own.health -= 0.001;
        if at % 128 == round {
            own.position = cold[at].home;
            own.health += f32::from(cold[at].skills[round % 40]);
        }
    }
}
