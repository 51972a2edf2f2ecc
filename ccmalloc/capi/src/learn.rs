//! Learns rules from a program that runs: `CCMALLOC_LEARN=FILE`.
//!
//! Every so many calls, one is a *sample*: the registers and the words of the stack at the call are
//! kept, and after 4, 64 and 1,024 calls more of its thread those are counted that lead to an
//! object which points to the new one, or to which the new one points. A place where nearly all
//! samples of a call site find such an object is where the site's hint lies.
//!
//! The calls around a sample are looked at, too, for two questions that their objects' addresses
//! answer: whether the sample was freed at once (its memory is given out again), and from which
//! site the object comes that it is linked with.
//!
//! The program is read only where the allocator knows an object of the calling thread. Memory is
//! bounded, and time: samples become rarer if they take more than [`TIME_SHARE`] of the process's.

mod met;
mod pending;
mod sites;
mod write;

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::ffi::OsString;
use std::sync::OnceLock;

use crate::entry::{
    self, REGISTERS, STACK_START, STACK_WORDS, Snapshot, ThreadState, thread_state,
};
use crate::{errno, modules};
use met::Met;
use pending::{NewSample, Pending};
use sites::Sites;

/// How many places a sample keeps: the registers, and words of the stack.
const PLACES: usize = REGISTERS + STACK_WORDS;
/// What learning may take of the process's time, in hundredths.
const TIME_SHARE: u64 = 2;
/// What it may take in any case, in nanoseconds: programs often build their structures first.
const TIME_CREDIT: u64 = 1_000_000;
/// Calls from sample to sample of a thread, at least and at most.
const INTERVAL_MIN: u64 = 32;
const INTERVAL_MAX: u64 = 1 << 20;
/// So many calls before and after a sample are looked at.
const AROUND: u64 = 4;
/// A sample stands for this part of the calls for which none has stood.
const DEBT_PARTS: u64 = 16;
/// What one look may count for, in nanoseconds: a longer one was interrupted by other processes.
const LOOK_MAX: u64 = 20_000;
/// Calls until the next look while another thread learns.
const BUSY_CALLS: i32 = 64;

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
    met: Met,
    started: u64,
    spent: u64,
    /// Looks at calls, and how many calls of all threads there have been.
    looks: u64,
    calls: u64,
    random: u64,
    samples: u64,
    /// Calls for which no sample has stood yet.
    debt: u64,
}

/// Invariant: the value is reached only by the thread that [`HOLDER`] names, and there only by the
/// call of [`with`] that has set it.
struct Shared(UnsafeCell<Learner>);

// SAFETY: reached by one thread at a time, by the invariant.
unsafe impl Sync for Shared {}

static LEARNER: Shared = Shared(UnsafeCell::new(Learner {
    sites: Sites::new(),
    pending: Pending::new(),
    met: Met::new(),
    started: 0,
    spent: 0,
    looks: 0,
    calls: 0,
    random: 0,
    samples: 0,
    debt: 0,
}));
/// The thread that reaches it, by the address of its state, or 0.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
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
    // The program may change its folder.
    let file = std::path::absolute(&file).map_or(file, OsString::from);
    modules::prepare();
    if FILE.set(file).is_ok() {
        with(|learner| learner.begin(now()));
        // SAFETY: the function may be called in the child.
        unsafe { libc::pthread_atfork(None, None, Some(begin_in_child)) };
        entry::learn();
    }
}

/// The child of a `fork` begins anew.
extern "C" fn begin_in_child() {
    let holder = HOLDER.load(Ordering::Relaxed);
    // A signal handler may fork while this thread looks at a call: that goes on when it returns.
    if holder != this_thread() {
        // Whoever held it does not exist here.
        HOLDER.store(0, Ordering::Release);
    }
    with(|learner| learner.begin(now()));
}

fn this_thread() -> usize {
    (&raw const *thread_state()).addr()
}

/// Writes what was learned, at the end of the process.
pub(crate) fn finish() {
    /// Other threads may go on. Each of their looks is short.
    const TRIES: usize = 1000;

    if FILE.get().is_none() {
        return;
    }
    let thread = thread_state();
    let left = i64::from(thread.granted.get()) - i64::from(thread.countdown.get());
    let is_written = |_| {
        with(|learner| {
            learner.calls += u64::try_from(left).unwrap_or_default();
            learner.write(now());
        })
        .is_some()
    };
    let _is_written = (0..TRIES).any(|number| {
        if number != 0 {
            // SAFETY: has no preconditions.
            unsafe { libc::sched_yield() };
        }
        is_written(number)
    });
}

/// Calls `f`, unless another thread learns: also this one, further out.
fn with<R>(f: impl FnOnce(&mut Learner) -> R) -> Option<R> {
    let order = (Ordering::Acquire, Ordering::Relaxed);
    (HOLDER.compare_exchange(0, this_thread(), order.0, order.1)).ok()?;
    // SAFETY: `HOLDER` was set by this call: calls from within, signal handlers and other threads
    // get `None` until it is reset. The child of a `fork` resets it for a thread that it lacks.
    let result = f(unsafe { &mut *LEARNER.0.get() });
    HOLDER.store(0, Ordering::Release);
    Some(result)
}

/// Looks at a call that has given `object` of `bytes`; returns the object.
#[cold]
pub(crate) fn see(object: *mut c_void, bytes: usize, at: &Snapshot) -> *mut c_void {
    let before = errno::get();
    let thread = thread_state();
    let passed = u64::try_from(thread.granted.get()).unwrap_or_default() + 1;
    thread.calls.set(thread.calls.get() + passed);
    // For calls from within.
    thread.granted.set(BUSY_CALLS);
    thread.countdown.set(BUSY_CALLS);
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
        self.met.clear();
        self.started = now;
        self.spent = 0;
        self.looks = 0;
        self.calls = 0;
        self.samples = 0;
        self.debt = 0;
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
        self.looks += 1;
        self.calls += passed;
        let (id, calls) = (this_thread(), thread.calls.get());
        self.pending.meet(object);
        self.met.insert(object, (at.return_address(), bytes));
        let elapsed = start.saturating_sub(self.started);
        let allowed = elapsed / 100 * TIME_SHARE + TIME_CREDIT;
        let mut next = thread.next.get();
        self.pending.check(&mut self.sites, &self.met, id, calls);
        if calls >= next {
            if self.spent < allowed {
                self.sample(object, bytes, at, thread, start);
            }
            next = calls + self.interval(allowed, elapsed);
            thread.next.set(next);
        }
        let due = self.pending.next_due(id, calls).unwrap_or(u64::MAX);
        let next = (next.saturating_sub(AROUND).max(calls + 1)).min(due.max(calls + 1));
        self.spent += now().saturating_sub(start).min(LOOK_MAX);
        i32::try_from(next - calls).map_or(i32::MAX, |next| next - 1)
    }

    /// Keeps a call, if there is room.
    fn sample(
        &mut self,
        object: usize,
        bytes: usize,
        at: &Snapshot,
        thread: &ThreadState,
        taken: u64,
    ) {
        let (stack, mut words) = (at.stack(), [0; PLACES]);
        for (place, word) in words.iter_mut().enumerate() {
            *word = match place.checked_sub(REGISTERS) {
                None => at.word(place).unwrap_or_default(),
                Some(place) => stack.get(place).copied().unwrap_or_default(),
            };
        }
        let site = self.sites.site_of(at.return_address(), bytes, &words);
        let Some(site) = site.filter(|_| object != 0) else {
            return;
        };
        let calls = thread.calls.get();
        // A long pause is not for the one site that ends it: each sample stands for a part of the
        // calls that none has stood for.
        let debt = self.debt + calls - thread.sampled.get();
        let stands_for = debt.div_ceil(DEBT_PARTS);
        let sample = NewSample {
            site,
            object,
            bytes,
            words,
            thread: this_thread(),
            calls,
            taken,
            stands_for,
        };
        if self.pending.keep(sample) {
            self.debt = debt - stands_for;
            self.sites.count(site, object, stands_for);
            thread.sampled.set(calls);
            self.samples += 1;
        }
    }

    /// Calls until the next sample, if the program goes on as before. What was spent nears what is
    /// allowed, and then grows with it; more than that is made up for by a pause.
    fn interval(&mut self, allowed: u64, elapsed: u64) -> u64 {
        let spent = u128::from(self.spent);
        // For `nanoseconds` of looks.
        let calls_for = |nanoseconds: u128| {
            u128::from(self.calls) * nanoseconds * 100
                / (u128::from(TIME_SHARE) * u128::from(elapsed.max(1)))
        };
        let steady = calls_for(spent / u128::from(self.samples.max(1)));
        let mean = match self.spent.checked_sub(allowed) {
            None => steady * spent / u128::from(allowed),
            Some(surplus) => steady + calls_for(surplus.into()),
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
