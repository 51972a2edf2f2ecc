//! Numbers for links, in one vector.

use super::before::{ROUNDS, names, people};
use std::collections::VecDeque;

pub fn idea(size: usize) -> u64 {
    let all = people(size);
    let (mut starts, mut links) = (vec![0; size], Vec::new());
    for person in &all {
        let person = person.borrow();
        starts[person.number] = links.len();
        links.push(person.friends.len());
        links.extend(person.friends.iter().map(|other| other.borrow().number));
    }
    let mut seen = vec![0; size];
    let sum = (1..=ROUNDS).fold(0, |sum: u64, round| {
        let start = all[round].borrow().number;
        sum.rotate_left(20) ^ steps(start, &starts, &links, &mut seen, round)
    });
    sum ^ names(&all)
}

fn steps(start: usize, starts: &[usize], links: &[usize], seen: &mut [usize], round: usize) -> u64 {
    let mut queue = VecDeque::from([(start, 0)]);
    seen[start] = round;
    let mut sum = 0;
    while let Some((person, distance)) = queue.pop_front() {
        sum += distance;
        let place = starts[person];
        for &friend in &links[place + 1..][..links[place]] {
            if seen[friend] != round {
                seen[friend] = round;
                queue.push_back((friend, distance + 1));
            }
        }
    }
    sum
}
