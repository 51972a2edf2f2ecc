//! A scheduler: tasks in a table, and lists of those that can run, one for each priority.

use fastrand::Rng;
use std::cell::RefCell;
use std::collections::{HashMap, LinkedList};
use std::rc::Rc;

pub(super) struct Task {
    name: String,
    priority: usize,
    steps: u64,
    used: u64,
}

pub(super) type Shared = Rc<RefCell<Task>>;

/// What is done with the queue of a priority.
pub(super) trait Queue: Default {
    fn push_back(&mut self, task: Shared);
    fn pop_front(&mut self) -> Option<Shared>;
}

impl Queue for LinkedList<Shared> {
    fn push_back(&mut self, task: Shared) {
        self.push_back(task);
    }

    fn pop_front(&mut self) -> Option<Shared> {
        self.pop_front()
    }
}

const PRIORITIES: usize = 8;

#[derive(Default)]
struct Scheduler<Q> {
    tasks: HashMap<u64, Shared>,
    queues: [Q; PRIORITIES],
}

impl<Q: Queue> Scheduler<Q> {
    fn spawn(&mut self, number: u64, random: &mut Rng) {
        let task = Rc::new(RefCell::new(Task {
            name: format!("task {number}"),
            priority: random.usize(..PRIORITIES),
            steps: random.u64(5..20),
            used: 0,
        }));
        self.queues[task.borrow().priority].push_back(task.clone());
        self.tasks.insert(number, task);
    }

    /// Runs the first of the most urgent tasks, which is less urgent afterwards.
    fn step(&mut self, random: &mut Rng) -> Option<u64> {
        let shared = self.queues.iter_mut().find_map(Q::pop_front)?;
        let mut task = shared.borrow_mut();
        task.steps -= 1;
        task.used += random.u64(1..100);
        if task.steps == 0 {
            return Some(task.used ^ task.name.len() as u64);
        }
        // It waits for a disk now and then, and is urgent when that has answered.
        let waited = random.u8(..4) == 0;
        let lower = (task.priority + 1).min(PRIORITIES - 1);
        task.priority = if waited {
            random.usize(..PRIORITIES)
        } else {
            lower
        };
        let priority = task.priority;
        drop(task);
        self.queues[priority].push_back(shared);
        Some(0)
    }
}

pub(super) fn schedule<Q: Queue>(size: usize) -> u64 {
    let mut random = Rng::with_seed(133);
    let mut scheduler = Scheduler::<Q>::default();
    (0..size as u64).for_each(|number| scheduler.spawn(number, &mut random));
    let (mut sum, mut step) = (0_u64, 0);
    while let Some(used) = scheduler.step(&mut random) {
        sum = sum.rotate_left(1) ^ used;
        step += 1;
        if step < 8 * size as u64 && step % 16 == 0 {
            scheduler.spawn(size as u64 + step, &mut random);
        }
    }
    sum ^ scheduler.tasks.len() as u64
}

pub fn run(size: usize) -> u64 {
    schedule::<LinkedList<Shared>>(size)
}
