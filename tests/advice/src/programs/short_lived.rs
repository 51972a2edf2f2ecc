//! A queue of jobs, each of which is gone soon after it came.
//!
//! The jobs that are waiting fit the cache, and their places are used again and again. A hint at
//! the job before changes nothing.

use super::mix;
use std::collections::VecDeque;

hinted!(queue);

struct Job {
    number: u64,
    state: [u64; 3],
}

fn queue(size: usize, new: impl Fn(&Option<&Box<Job>>, Job) -> Box<Job>) -> u64 {
    let (mut waiting, mut sum) = (VecDeque::new(), 0);
    for number in 0..size as u64 {
        let job = new(
            &waiting.back(),
            Job {
                number,
                state: [sum; 3],
            },
        );
        waiting.push_back(job);
        if waiting.len() > 100 {
            let job = waiting.pop_front().expect("there are some");
            sum = mix(sum, job.number ^ job.state[1]);
        }
    }
    sum
}
