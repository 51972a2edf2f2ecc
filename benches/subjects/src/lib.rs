//! What `report --suite scope` profiles: small loops, each of one kind of access, and programs.
//!
//! `subjects NAME THREADS ROUNDS` does the work of a program so often on each thread, and prints a
//! line: `subject`, a sum of the answers, nanoseconds of processor time and of wall time without
//! those of the set-up, and peak resident bytes.
//!
//! `subjects of LINES PROGRAM ARGUMENTS` runs another program, and prints the same line about it.
//! The sum is of its first LINES lines, whose order is free; the times are those of its whole
//! process.

mod child;
mod programs;

use std::mem::zeroed;
use std::process::ExitCode;
use std::sync::Barrier;
use std::thread::{ScopedJoinHandle, scope};
use std::time::Instant;

use programs::{PROGRAMS, mix};

/// Sum of the answers, processor time, wall time, peak bytes.
type Outcome = Result<[u64; 4], String>;

/// Runs what the command line names.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &args[..] {
        [of, lines, program, rest @ ..] if of == "of" => match lines.parse() {
            Ok(lines) => child::run(lines, program, rest),
            Err(_) => Err("LINES is a number".to_owned()),
        },
        [name, threads, rounds] => match (threads.parse(), rounds.parse()) {
            (Ok(threads @ 1..), Ok(rounds)) => work(name, threads, rounds),
            _ => Err("THREADS and ROUNDS are numbers".to_owned()),
        },
        _ => Err("subjects NAME THREADS ROUNDS, or subjects of LINES PROGRAM ARGUMENTS".to_owned()),
    };
    match outcome {
        Ok([sum, processor, wall, peak]) => {
            println!("subject {sum} {processor} {wall} {peak}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("subjects: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(name: &str, threads: usize, rounds: u64) -> Outcome {
    let known = PROGRAMS.iter().find(|program| program.0 == name);
    let (_, program) = known.ok_or_else(|| format!("there is no program {name:?}"))?;
    let (started, together) = (Instant::now(), Barrier::new(threads));
    let now = || (processor_ns(), nanoseconds(started));
    let one = || {
        let mut work = program(rounds);
        together.wait();
        let begun = now();
        let sum = (0..rounds).fold(0, |sum, _| mix(sum ^ work()));
        (begun, sum >> 8, work)
    };
    // With one thread no other is started. Data is dropped after the clocks are read.
    let (mine, others) = scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        (
            one(),
            others
                .into_iter()
                .map(ScopedJoinHandle::join)
                .collect::<Vec<_>>(),
        )
    });
    let (begun, ended) = (mine.0, now());
    let sums = others
        .iter()
        .map(|other| Ok(other.as_ref().map_err(|_| "a thread panicked")?.1));
    let sum = sums.sum::<Result<u64, &str>>()?.wrapping_add(mine.1);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    let peak = peak.ok_or("the system does not tell the peak of memory")? << 10;
    Ok([sum, ended.0 - begun.0, ended.1 - begun.1, peak])
}

fn nanoseconds(since: Instant) -> u64 {
    since.elapsed().as_nanos().try_into().unwrap_or(u64::MAX)
}

fn processor_ns() -> u64 {
    // SAFETY: numbers may be 0; the function fills what it is given.
    unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        (time.tv_sec * 1_000_000_000 + time.tv_nsec).cast_unsigned()
    }
}
