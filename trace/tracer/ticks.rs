//! Signals of timers. A handler that takes longer than the timer's interval, since it is traced,
//! would be called again and again and the program would not go on; or, with `SA_NODEFER`, it would
//! be interrupted by itself until its stack ends. So what comes too soon is left out: the kernel,
//! too, makes one signal of several that wait.
//!
//! A thread counts for itself: where several have handlers of one signal, one that returns says
//! nothing of how long another still runs.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::context::Info;
use super::{sys, threads};

const GETITIMER: u64 = 36;
const TIMER_GETTIME: u64 = 224;
const CLOCK_GETTIME: u64 = 228;
/// SIGALRM, SIGVTALRM and SIGPROF: signals of timers without numbers, in their order.
const OF_TIMERS: [i32; 3] = [14, 26, 27];

/// The least and the most nanoseconds between two calls of a handler.
const LEAST: u64 = 1_000_000;
const MOST: u64 = 320_000_000;

/// When a signal's handler was called last, how long after that it is not to be called again, and
/// whether it has not returned since.
type Tick = [AtomicU64; 3];

/// Those of the [threads](threads::THREADS), for each signal.
static TICKS: [[Tick; 65]; threads::MOST] =
    [const { [const { [const { AtomicU64::new(0) }; 3] }; 65] }; threads::MOST];

fn of(signal: i32) -> &'static Tick {
    let own = &TICKS[threads::this().index()];
    let at = usize::try_from(signal).unwrap_or(0);
    own.get(at).unwrap_or(&own[0])
}

/// A thread begins in the place of another.
pub(crate) fn forget(thread: &threads::Thread) {
    for word in TICKS[thread.index()].iter().flatten() {
        word.store(0, Relaxed);
    }
}

fn now() -> u64 {
    const MONOTONIC: u64 = 1;
    let mut time = [0_u64; 2];
    let place = (&raw mut time) as u64;
    // SAFETY: the kernel writes two words.
    unsafe { sys::call(CLOCK_GETTIME, [MONOTONIC, place, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}

/// Whether a timer sent the signal.
fn is_of_timer(info: &Info) -> bool {
    const BY_TIMER: i32 = -2;
    const BY_KERNEL: i32 = 128;
    info.code == BY_TIMER || info.code == BY_KERNEL && OF_TIMERS.contains(&info.signal)
}

/// Nanoseconds from one signal of the timer to the next; 0 if there is no other.
fn interval(info: &Info) -> u64 {
    let mut words = [0_u64; 4];
    let place = (&raw mut words) as u64;
    let which = OF_TIMERS.iter().position(|&it| it == info.signal);
    let (call, timer, fraction) = match which {
        Some(which) if info.code > 0 => (GETITIMER, which as u64, 1000),
        // Where faults have an address, these have the timer's number.
        _ => (TIMER_GETTIME, info.address & 0xffff_ffff, 1),
    };
    // SAFETY: the kernel writes four words, or none.
    unsafe { sys::call(call, [timer, place, 0, 0, 0, 0]) };
    words[0].saturating_mul(1_000_000_000) + words[1] * fraction
}

/// Whether the signal is left out.
pub(crate) fn is_too_soon(info: &Info) -> bool {
    let [start, gap, _] = of(info.signal).each_ref().map(|it| it.load(Relaxed));
    is_of_timer(info)
        && start != 0
        && now().saturating_sub(start) < gap
        && (1..gap).contains(&interval(info))
}

/// The handler of a signal is called.
pub(crate) fn begins(info: &Info) {
    if is_of_timer(info) {
        let [start, gap, runs] = of(info.signal);
        start.store(now(), Relaxed);
        // It may have been left by `longjmp`, or is interrupted.
        let more = 1 + runs.swap(1, Relaxed);
        gap.store((gap.load(Relaxed) * more).clamp(LEAST, MOST), Relaxed);
    }
}

/// It returns.
pub(crate) fn ends(signal: i32) {
    let [start, gap, runs] = of(signal);
    if runs.swap(0, Relaxed) != 0 {
        let took = now().saturating_sub(start.load(Relaxed));
        gap.store((4 * took).clamp(LEAST, MOST), Relaxed);
    }
}
