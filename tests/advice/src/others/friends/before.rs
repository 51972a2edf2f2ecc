//! People who know each other, as reference-counted nodes: how many steps from one to all others?

use fastrand::Rng;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

pub(super) type Link = Rc<RefCell<Person>>;

pub(super) struct Person {
    name: String,
    pub(super) number: usize,
    seen: usize,
    pub(super) friends: Vec<Link>,
}

/// Most friends live nearby.
pub(super) fn people(size: usize) -> Vec<Link> {
    let mut random = Rng::with_seed(54);
    let person = |number| {
        Rc::new(RefCell::new(Person {
            name: format!("Person {number}"),
            number,
            seen: 0,
            friends: Vec::new(),
        }))
    };
    let mut all: Vec<Link> = (0..size).map(person).collect();
    for _ in 0..4 * size {
        let near = random.usize(..size);
        let other = match random.u8(..4) {
            0 => (near + random.usize(1..size)) % size,
            _ => (near + random.usize(1..size / 8)) % size,
        };
        all[near].borrow_mut().friends.push(all[other].clone());
        all[other].borrow_mut().friends.push(all[near].clone());
    }
    // They are not asked in the order in which they came.
    random.shuffle(&mut all);
    all
}

fn steps(start: &Link, round: usize) -> u64 {
    let mut queue = VecDeque::from([(start.clone(), 0)]);
    start.borrow_mut().seen = round;
    let mut sum = 0;
    while let Some((person, distance)) = queue.pop_front() {
        sum += distance;
        for friend in &person.borrow().friends {
            let is_new = friend.borrow().seen != round;
            if is_new {
                friend.borrow_mut().seen = round;
                queue.push_back((friend.clone(), distance + 1));
            }
        }
    }
    sum
}

pub(super) const ROUNDS: usize = 8;

pub fn run(size: usize) -> u64 {
    let all = people(size);
    let sum = (1..=ROUNDS).fold(0, |sum: u64, round| {
        sum.rotate_left(20) ^ steps(&all[round], round)
    });
    sum ^ names(&all)
}

/// The length of all names. The people part: circles of references are not freed by themselves.
pub(super) fn names(all: &[Link]) -> u64 {
    let parted = |person: &Link| {
        let mut person = person.borrow_mut();
        person.friends.clear();
        person.name.len() as u64
    };
    all.iter().map(parted).sum()
}
