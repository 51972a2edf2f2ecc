//! Numbers for links, in one vector.

use super::before::{Link, ROUNDS, names, people};
use std::collections::VecDeque;

pub fn idea(size: usize) -> u64 {
    let all = people(size);
    search(&all, all.iter().cloned())
}

/// As `idea`, with neighbours beside each other: numbers in the order of a search.
pub fn smaller(size: usize) -> u64 {
    let all = people(size);
    let (mut is_known, mut order) = (vec![false; size], Vec::new());
    for start in &all {
        let mut queue = VecDeque::from([start.clone()]);
        while let Some(person) = queue.pop_front() {
            let number = person.borrow().number;
            if !std::mem::replace(&mut is_known[number], true) {
                queue.extend(person.borrow().friends.iter().cloned());
                order.push(person);
            }
        }
    }
    search(&all, order.into_iter())
}

/// Searches from the first of all, by links in this order.
fn search(all: &[Link], order: impl Iterator<Item = Link> + Clone) -> u64 {
    let mut numbers = vec![0_u32; all.len()];
    for (new, person) in order.clone().enumerate() {
        numbers[person.borrow().number] = new as u32;
    }
    let (mut ends, mut links) = (vec![0], Vec::new());
    for person in order {
        let person = person.borrow();
        links.extend(person.friends.iter().map(|it| numbers[it.borrow().number]));
        ends.push(links.len());
    }
    let mut seen = vec![0; all.len()];
    let sum = (1..=ROUNDS).fold(0, |sum: u64, round| {
        let start = numbers[all[round].borrow().number];
        sum.rotate_left(20) ^ steps(start, &ends, &links, &mut seen, round)
    });
    sum ^ names(all)
}

fn steps(start: u32, ends: &[usize], links: &[u32], seen: &mut [usize], round: usize) -> u64 {
    let mut queue = VecDeque::from([(start, 0)]);
    seen[start as usize] = round;
    let mut sum = 0;
    while let Some((person, distance)) = queue.pop_front() {
        sum += distance;
        let person = person as usize;
        for &friend in &links[ends[person]..ends[person + 1]] {
            if seen[friend as usize] != round {
                seen[friend as usize] = round;
                queue.push_back((friend, distance + 1));
            }
        }
    }
    sum
}
