//! Learns rules from a program that runs: `CCMALLOC_LEARN=FILE`.
//!
//! Every so many calls, one is a *sample*: the registers and the words of the stack at the call are
//! kept, and after 4, 64 and 1,024 calls more of its thread those are counted that lead to an object
//! which points to the new one, or to which the new one points. A place where nearly all samples of
//! a call site find such an object is where the site's hint lies.
//!
//! The program is read only where the allocator knows an object of the calling thread. Memory is
//! bounded, and time: samples become rarer if they take more than [`TIME_SHARE`] of the process's.

mod pending;
mod sites;
mod write;

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::OsString;
use std::sync::OnceLock;

use crate::entry::{
    self, REGISTERS, STACK_START, STACK_WORDS, Snapshot, ThreadState, thread_state,
};
use crate::errno;
use pending::{NewSample, Pending};
use sites::Sites;

/// How many places a sample keeps: the registers, and words of the stack.
const PLACES: usize = REGISTERS + STACK_WORDS;
/// What learning may take of the process's time, in hundredths.
const TIME_SHARE: u64 = 3;
/// What it may take in any case, in nanoseconds: programs often build their structures first.
const TIME_CREDIT: u64 = 1_000_000;
/// Calls from look to look of a thread, at least and at most.
const INTERVAL_MIN: u64 = 16;
const INTERVAL_MAX: u64 = 1 << 20;
/// Calls until the next look while another thread learns.
const BUSY_CALLS: i32 = 64;
/// From file to file, in nanoseconds: processes that are killed write none at their end.
const FILE_EVERY: u64 = 10_000_000_000;

/// The word of a snapshot that is place number `place`. Between the registers and the stack, it has
/// what is no place.
const fn word_of(place: usize) -> usize {
    if place < REGISTERS {
        place
    } else {
        place - REGISTERS + STACK_START
    }
}

/// What was learned.
struct Learner {
    sites: Sites,
    pending: Pending,
    /// The process that it was learned of: the child of a `fork` begins anew.
    process: i32,
    started: u64,
    spent: u64,
    /// Looks at calls, and how many calls of all threads there have been.
    looks: u64,
    calls: u64,
    written: u64,
    random: u64,
    samples: u64,
}

/// Invariant: the value is reached only while `IS_TAKEN` is set by who reaches it.
struct Shared(UnsafeCell<Learner>);

// SAFETY: reached by one thread at a time, by the invariant.
unsafe impl Sync for Shared {}

static LEARNER: Shared = Shared(UnsafeCell::new(Learner {
    sites: Sites::new(),
    pending: Pending::new(),
    process: 0,
    started: 0,
    spent: 0,
    looks: 0,
    calls: 0,
    written: 0,
    random: 0,
    samples: 0,
}));
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// The file, to which the process's number is added.
static FILE: OnceLock<OsString> = OnceLock::new();

/// Nanoseconds of a clock that does not jump.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes a time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Learns from now on. What was learned is written to `file` and the process's number.
pub(crate) fn start(file: OsString) {
    if FILE.set(file).is_ok() {
        with(|learner| learner.begin(now()));
        entry::learn();
    }
}

/// Writes what was learned, at the end of the process.
pub(crate) fn finish() {
    if FILE.get().is_some() {
        with(|learner| learner.write(now()));
    }
}

/// Calls `f`, unless another thread learns: also this one, further out.
fn with<R>(f: impl FnOnce(&mut Learner) -> R) -> Option<R> {
    if IS_TAKEN.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: `IS_TAKEN` was set by this thread.
    let result = f(unsafe { &mut *LEARNER.0.get() });
    IS_TAKEN.store(false, Ordering::Release);
    Some(result)
}

/// Looks at a call that has given `object` of `bytes`; returns the object.
#[cold]
pub(crate) fn see(object: *mut c_void, bytes: usize, at: &Snapshot) -> *mut c_void {
    let before = errno::get();
    let thread = thread_state();
    let passed = u64::try_from(thread.granted.get()).unwrap_or_default() + 1;
    thread.calls.set(thread.calls.get() + passed);
    let granted = with(|learner| learner.look(object.addr(), bytes, at, thread, passed));
    let granted = granted.unwrap_or(BUSY_CALLS);
    thread.granted.set(granted);
    thread.countdown.set(granted);
    errno::set(before);
    object
}

impl Learner {
    /// Forgets all.
    fn begin(&mut self, now: u64) {
        self.sites.clear();
        self.pending.clear();
        // SAFETY: has no preconditions.
        self.process = unsafe { libc::getpid() };
        self.started = now;
        self.written = now;
        self.spent = 0;
        self.looks = 0;
        self.calls = 0;
        self.samples = 0;
        self.random = now | 1;
    }

    /// Looks at what is due, and at this call, `passed` calls after the thread's last look; returns
    /// how many are to pass until the next.
    fn look(
        &mut self,
        object: usize,
        bytes: usize,
        at: &Snapshot,
        thread: &ThreadState,
        passed: u64,
    ) -> i32 {
        let start = now();
        // SAFETY: has no preconditions.
        if self.process != unsafe { libc::getpid() } {
            self.begin(start);
        }
        self.looks += 1;
        self.calls += passed;
        if self.looks.is_power_of_two() {
            // Modules may have been loaded, ever less likely.
            self.sites.find_code();
        }
        let elapsed = start - self.started;
        let allowed = elapsed / 100 * TIME_SHARE + TIME_CREDIT;
        let mut next = self.interval(allowed, elapsed);
        if self.spent < allowed {
            let id = (&raw const *thread).addr();
            let calls = thread.calls.get();
            self.pending.check(&mut self.sites, id, calls);
            if let Some(site) = self.sites.site_of(at, bytes) {
                let sample = NewSample {
                    site,
                    object,
                    bytes,
                    at,
                    thread: id,
                    calls,
                    taken: start,
                };
                if object != 0 && self.pending.keep(sample) {
                    let stands_for = calls - thread.sampled.get();
                    self.sites.count(site, stands_for, object);
                    thread.sampled.set(calls);
                    self.samples += 1;
                }
            }
            if let Some(due) = self.pending.next_due(id) {
                next = next.min(due.saturating_sub(calls).max(1));
            }
        }
        let end = now();
        self.spent += end - start;
        if end - self.written > FILE_EVERY {
            self.write(end);
        }
        i32::try_from(next).map_or(i32::MAX, |next| next - 1)
    }

    /// Calls until the next look, if both the program and looks go on as before: so many that looks
    /// take what is allowed from now on, or, after too many, until they have not taken more.
    fn interval(&mut self, allowed: u64, elapsed: u64) -> u64 {
        let (calls, spent) = (u128::from(self.calls), u128::from(self.spent));
        let mean = match self.spent.checked_sub(allowed) {
            None => calls * spent / (u128::from(self.looks) * u128::from(allowed)),
            Some(surplus) => {
                calls * u128::from(surplus * 100 / TIME_SHARE) / u128::from(elapsed.max(1))
            }
        };
        let interval = u64::try_from(mean).unwrap_or(u64::MAX);
        let interval = interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        // Half to one and a half times that: the program's calls may have a period, too.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        interval / 2 + self.random % interval
    }
}
