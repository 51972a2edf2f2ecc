//! Numbers in place of names, once the graph is read.

use super::before::{edits, graph, name, summary};
use std::collections::HashMap;

struct Target {
    time: u64,
    inputs: Vec<usize>,
}

fn latest(targets: &[Target], at: usize, known: &mut [Option<u64>]) -> u64 {
    if let Some(time) = known[at] {
        return time;
    }
    let inputs = targets[at].inputs.iter();
    let time = inputs
        .map(|&it| latest(targets, it, known))
        .fold(targets[at].time, u64::max);
    known[at] = Some(time);
    time
}

pub fn idea(size: usize) -> u64 {
    let graph = graph(size);
    let numbers: HashMap<&str, usize> = graph.keys().zip(0..).map(|it| (&**it.0, it.1)).collect();
    let target = |target: &super::before::Target| Target {
        time: target.time,
        inputs: target.inputs.iter().map(|it| numbers[&**it]).collect(),
    };
    let mut targets: Vec<Target> = graph.values().map(target).collect();
    let sum = edits(size, |edited, time| {
        targets[numbers[&*name(edited)]].time = time;
        let mut known = vec![None; targets.len()];
        (0..targets.len())
            .map(|at| latest(&targets, at, &mut known))
            .sum()
    });
    sum ^ summary(&graph)
}
