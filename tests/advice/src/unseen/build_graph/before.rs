//! A build system: which targets are older than what they are made of?

use fastrand::Rng;
use std::collections::HashMap;

pub(super) struct Target {
    pub(super) command: String,
    pub(super) time: u64,
    pub(super) inputs: Vec<String>,
}

pub(super) type Graph = HashMap<String, Target>;

pub(super) fn name(number: usize) -> String {
    format!("src/module_{}/file_{number}.o", number / 100)
}

/// Each target is made of earlier ones, of its own module mostly.
pub(super) fn graph(size: usize) -> Graph {
    let mut random = Rng::with_seed(119);
    let target = |number: usize| {
        let inputs = (0..random.usize(..6).min(number)).map(|_| {
            let near = number.saturating_sub(200);
            name(if random.u8(..8) == 0 {
                random.usize(..number)
            } else {
                random.usize(near..number)
            })
        });
        let inputs = inputs.collect();
        let target = Target {
            command: format!("cc -c {number}"),
            time: random.u64(..1000),
            inputs,
        };
        (name(number), target)
    };
    (0..size).map(target).collect()
}

/// The time of the latest of all that a target is made of, and of itself.
fn latest<'a>(graph: &'a Graph, name: &'a str, known: &mut HashMap<&'a str, u64>) -> u64 {
    if let Some(&time) = known.get(name) {
        return time;
    }
    let target = &graph[name];
    let inputs = target
        .inputs
        .iter()
        .map(|input| latest(graph, input, known));
    let time = inputs.fold(target.time, u64::max);
    known.insert(name, time);
    time
}

/// Edits of sources, each followed by a build of all.
pub(super) fn edits(size: usize, mut build: impl FnMut(usize, u64) -> u64) -> u64 {
    let mut random = Rng::with_seed(120);
    (0..4).fold(0, |sum: u64, round| {
        let edited = random.usize(..size);
        sum.rotate_left(9) ^ build(edited, 1000 + round)
    })
}

pub(super) fn summary(graph: &Graph) -> u64 {
    graph
        .values()
        .map(|target| target.command.len() as u64)
        .sum()
}

pub fn run(size: usize) -> u64 {
    let mut graph = graph(size);
    let sum = edits(size, |edited, time| {
        graph.get_mut(&name(edited)).unwrap().time = time;
        let mut known = HashMap::new();
        let times = graph.keys().map(|name| latest(&graph, name, &mut known));
        times.sum()
    });
    sum ^ summary(&graph)
}
