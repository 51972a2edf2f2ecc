//! What views of `ccscope` cost: the comparison of two profiles.

use std::time::Instant;

use ccmodel::Machine;
use ccscope::analyses::diff::diff;
use ccscope::profile::{BUCKETS, Frame, Profile, Run, Site};

use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::workload::{Comparison, Effort, Rows, SEED, Workload};

const SITES: u64 = 100_000;
const FUNCTIONS: u64 = 20_000;
const STACK_LEN: usize = 30;

/// Sites of a program in which each function calls eight others.
pub(super) fn profile(sites: u64) -> Profile {
    let mut random = Rng::new(SEED);
    let frame = |number: u64| Frame {
        function: format!(
            "demo::module{}::<T as Trait{}>::f{number}",
            number / 100,
            number / 7
        ),
        file: format!("src/module{}.rs", number / 100),
        line: u32::try_from(number % 1000 + 1).expect("it is small"),
        module: "demo".to_owned(),
        address: number * 16,
        inlined: number.is_multiple_of(3),
    };
    let mut site = || {
        let mut at = random.next_u64() % FUNCTIONS;
        let mut stack = Vec::with_capacity(STACK_LEN);
        for _ in 0..STACK_LEN {
            stack.push(u32::try_from(at).expect("there are few functions"));
            at = (at * 31 + random.next_u64() % 8 * 977 + 1) % FUNCTIONS;
        }
        let chunks = random.next_u64() % 1000 + 1;
        Site {
            place: Some(stack[0]),
            stack,
            allocations: chunks,
            frees: chunks,
            requested: 24 * chunks,
            usable: 24 * chunks,
            sizes: vec![0; BUCKETS],
            lifetimes: vec![0; BUCKETS],
            ..Site::default()
        }
    };
    Profile {
        run: Run {
            end: 1000,
            seconds: 1.0,
            ..Run::default()
        },
        frames: (0..FUNCTIONS).map(frame).collect(),
        sites: (0..sites).map(|_| site()).collect(),
        ..Profile::default()
    }
}

/// Two profiles of 10^5 sites: lines have moved, a hundredth of the functions has other names,
/// a fiftieth of the stacks another frame, and a hundredth of the sites is gone.
pub(super) fn diff_sites(workload: &Workload, effort: &Effort) -> Rows {
    let old = profile(SITES);
    let mut new = old.clone();
    for (number, frame) in new.frames.iter_mut().enumerate() {
        frame.line += 3;
        frame.address += 64;
        if number.is_multiple_of(100) {
            frame.function.push_str("_renamed");
        }
    }
    for site in new.sites.iter_mut().step_by(50) {
        site.stack.remove(3);
    }
    new.sites.drain(..1000);
    let mut times = Vec::new();
    for _ in 0..effort.process_rounds {
        let started = Instant::now();
        let found = diff(&old, &new, Machine::this());
        times.push(started.elapsed().as_secs_f64() * 1e3);
        if found.sites.len() < old.sites.len() {
            return Err("sites are missing".into());
        }
    }
    Ok(vec![floor(workload.name, times, 1000.0)])
}

/// Milliseconds, held against the most that is allowed.
pub(super) fn floor(name: &str, times: Vec<f64>, largest: f64) -> Comparison {
    let allowed = Rounds::new(vec![largest; times.len()]);
    Comparison::new(name, "largest allowed", "ms", &Rounds::new(times), &allowed)
}
