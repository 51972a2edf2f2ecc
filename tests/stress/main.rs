//! Puts the allocator under every kind of load at once, and checks everything that it says.
//!
//! ```text
//! cargo run --release -p tests --bin stress -- --operations 1e9 --threads 2 --seed 1
//! ```
//!
//! Threads come and go in a fixed number of *lanes*. Each makes objects of all sizes and alignments
//! with hints of all qualities, through `cc_alloc`, through the standard library's types under
//! `near`, and in regions; resizes them; frees them, or has a thread of another lane do it, or
//! leaves them behind when it ends. An operation is one call of the allocator: one allocation, one
//! free, or one change of size.
//!
//! What is checked, always:
//! - no two live objects share a byte: a bitmap of the address space, kept outside of the allocator
//!   ([`shadow::Claims`]), has a bit for every 8 B;
//! - an object's first and last bytes are what its owner wrote, whoever frees or resizes it; zeroed
//!   memory is zero; alignments are kept;
//! - the allocator's own metadata, every [`lane::CHECK_EVERY`] operations of a lane, and at the end
//!   of each thread.
//!
//! The first contradiction ends the process with a message and status 101 (a panic) or 134 (the
//! allocator's own abort). The choices of a lane follow from the seed; how the lanes interleave
//! does not.

mod counts;
mod lane;
mod shadow;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use counts::Counts;
use lane::Yard;

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// How often a line of progress is printed.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// Random load on the allocator, checked against a bitmap of the address space
#[derive(Parser)]
struct Arguments {
    /// Calls of the allocator in all; may be written as 1e9
    #[arg(long, default_value = "20e6", value_parser = number)]
    operations: u64,
    /// Threads at a time
    #[arg(long, default_value = "2", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// The choices of each thread follow from it
    #[arg(long, default_value = "1", value_parser = number)]
    seed: u64,
}

/// A whole number, maybe in the form `2e7`.
fn number(text: &str) -> Result<u64, String> {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let number = || {
        let power = 10_u64.checked_pow(exponent.parse().ok()?)?;
        mantissa.parse::<u64>().ok()?.checked_mul(power)
    };
    number().ok_or_else(|| format!("{text} is no whole number below 2^64"))
}

fn main() {
    let arguments = Arguments::parse();
    // A panic in one thread is a contradiction found: nothing that the others still do matters.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::exit(101);
    }));
    let started = Instant::now();
    let yard = Yard::new(&arguments);
    let done = AtomicBool::new(false);
    let total = std::thread::scope(|scope| {
        scope.spawn(|| tell_progress(&yard, &arguments, started, &done));
        let lanes: Vec<_> = (0..usize::from(arguments.threads))
            .map(|number| {
                let yard = &yard;
                scope.spawn(move || lane::run(yard, number))
            })
            .collect();
        let total = lanes
            .into_iter()
            .map(|lane| lane.join().expect("a panic ends the process"))
            .fold(Counts::default(), Counts::plus);
        done.store(true, Ordering::Relaxed);
        total
    });
    let left = yard.finish();
    let total = total.plus(left);
    assert_eq!(
        yard.claims.count(),
        0,
        "bytes are claimed without an object"
    );
    assert_eq!(total.allocations(), total.freed(), "objects are left");
    println!(
        "done: {} operations on {} threads, seed {}, in {:.1} s\n{total}\n{:?}\n{:?}",
        total.operations(),
        arguments.threads,
        arguments.seed,
        started.elapsed().as_secs_f64(),
        ccmalloc::placement(),
        ccmalloc::stats(),
    );
}

/// Prints a line now and then until `done`.
fn tell_progress(yard: &Yard, arguments: &Arguments, started: Instant, done: &AtomicBool) {
    let mut next = started + PROGRESS_EVERY;
    while !done.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        if Instant::now() < next {
            continue;
        }
        next += PROGRESS_EVERY;
        let operations = yard.done.load(Ordering::Relaxed);
        println!(
            "{:6.0} s  {operations} operations ({:.1} %), {} threads so far, {} MiB of chunks",
            started.elapsed().as_secs_f64(),
            100.0 * operations as f64 / arguments.operations as f64,
            yard.threads.load(Ordering::Relaxed),
            ccmalloc::stats().chunk_bytes >> 20
        );
    }
}
