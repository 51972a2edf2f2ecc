//! What [`Health`](super::Health) must come to, by queues instead of lists and walks.
//!
//! A patient is a line with the step at which something happens next, so a run costs a few
//! operations for each patient. The random numbers are drawn in the same order in each village.

use std::collections::VecDeque;

use crate::rng::Rng;

use super::{
    ASSESS_STEPS, Input, TREATMENT_STEPS, Tally, VILLAGES_BELOW, brings_a_patient, is_sent_up,
    random_numbers,
};

/// A patient.
#[derive(Default)]
struct Line {
    hospitals: u32,
    time: u32,
    /// Number of the village where the patient fell ill.
    home: usize,
    /// In `waiting`, the first step there; in `assess` and `inside`, the last one.
    step: u32,
}

/// A hospital.
struct Queues {
    waiting: VecDeque<Line>,
    assess: VecDeque<Line>,
    inside: VecDeque<Line>,
    up: VecDeque<Line>,
    free: u32,
    rng: Rng,
}

impl Queues {
    fn new(personnel: u32, village: usize) -> Queues {
        Queues {
            waiting: VecDeque::new(),
            assess: VecDeque::new(),
            inside: VecDeque::new(),
            up: VecDeque::new(),
            free: personnel,
            rng: random_numbers(village),
        }
    }

    /// Takes in a patient who will be seen first in `first_step`.
    fn admit(&mut self, mut line: Line, first_step: u32) {
        line.hospitals += 1;
        if self.free > 0 {
            self.assess(line, first_step);
        } else {
            line.step = first_step;
            self.waiting.push_back(line);
        }
    }

    fn assess(&mut self, mut line: Line, first_step: u32) {
        self.free -= 1;
        line.time += ASSESS_STEPS;
        line.step = first_step + ASSESS_STEPS - 1;
        self.assess.push_back(line);
    }
}

/// The next patient who is done at `step`.
fn next_due(queue: &mut VecDeque<Line>, step: u32) -> Option<Line> {
    let is_due = queue.front().is_some_and(|line| line.step == step);
    is_due.then(|| queue.pop_front())?
}

/// The patients who have left after all steps, and those who are there.
pub(super) fn run(input: &Input) -> (Tally, Tally) {
    let villages = input.villages();
    let mut hospitals: Vec<Queues> = Vec::with_capacity(villages);
    for level in 0..input.levels {
        let personnel = input.personnel(input.levels - 1 - level);
        let end = hospitals.len() + VILLAGES_BELOW.pow(level);
        hospitals.extend((hospitals.len()..end).map(|village| Queues::new(personnel, village)));
    }
    let mut gone = Tally::default();
    for step in 1..=input.steps {
        // Villages have higher numbers than the one above them.
        for village in (0..villages).rev() {
            simulate(&mut hospitals, village, step, input.draws, &mut gone);
        }
    }
    let mut present = Tally::default();
    for (village, queues) in hospitals.iter().enumerate() {
        for line in &queues.waiting {
            let waited = input.steps + 1 - line.step;
            present.add(line.hospitals, line.time + waited, line.home == village);
        }
        for line in queues.assess.iter().chain(&queues.inside).chain(&queues.up) {
            present.add(line.hospitals, line.time, line.home == village);
        }
    }
    (gone, present)
}

/// One step of one village.
fn simulate(hospitals: &mut [Queues], village: usize, step: u32, draws: u32, gone: &mut Tally) {
    let first_below = VILLAGES_BELOW * village + 1;
    for below in first_below..first_below + VILLAGES_BELOW {
        let sent_up = hospitals
            .get_mut(below)
            .map(|queues| std::mem::take(&mut queues.up));
        for line in sent_up.into_iter().flatten() {
            hospitals[village].admit(line, step);
        }
    }
    let queues = &mut hospitals[village];
    while let Some(line) = next_due(&mut queues.inside, step) {
        queues.free += 1;
        gone.add(line.hospitals, line.time, line.home == village);
    }
    while let Some(mut line) = next_due(&mut queues.assess, step) {
        if is_sent_up(&mut queues.rng) && village != 0 {
            queues.free += 1;
            queues.up.push_back(line);
        } else {
            line.time += TREATMENT_STEPS;
            line.step = step + TREATMENT_STEPS;
            queues.inside.push_back(line);
        }
    }
    while queues.free > 0
        && let Some(mut line) = queues.waiting.pop_front()
    {
        line.time += step - line.step;
        queues.assess(line, step + 1);
    }
    for _ in 0..draws {
        if brings_a_patient(&mut queues.rng) {
            let home = village;
            queues.admit(
                Line {
                    home,
                    ..Line::default()
                },
                step + 1,
            );
        }
    }
}
