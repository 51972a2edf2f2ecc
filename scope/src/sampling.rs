//! Samples that a program takes of its own heap: what `Profiled` calls while it does.
//!
//! A chunk that is not taken costs a subtraction in a variable of its thread, and when it is freed
//! a look into [`Alive`]. One that is taken is recorded with its stack, under a lock. A thread is
//! **busy** while it holds that: what it allocates meanwhile, and what a signal handler in it does,
//! passes on unseen. Nobody waits for the lock without end: the sample is lost, and counted so.
//!
//! A `fork` takes the lock for itself, so that the child has whole records and a free lock.

use std::cell::{Cell, UnsafeCell};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use inside::unwind::{self, Stack};

use crate::capture_format::sampling::{self, Alive};
use crate::capture_format::weight;
use crate::counts;

/// Outer frames of a stack are left out beyond these.
const MAX_FRAMES: usize = 64;
/// What more stacks than these have allocated is added up as of one without frames.
const MAX_STACKS: usize = 1 << 16;
/// So often a thread looks for the lock, and so often after a pause: a second or two.
const MAX_LOOKS: u32 = 100;
const MAX_PAUSES: u32 = 10_000;
const PAUSE: Duration = Duration::from_micros(100);

/// Chunks of fewer bytes are left to chance; 0 while there is no sampling.
static SAMPLE: AtomicU64 = AtomicU64::new(0);
static ALIVE: Alive = Alive::none();
static SAMPLES: Guarded = Guarded {
    is_held: AtomicBool::new(false),
    samples: UnsafeCell::new(Samples::NONE),
};
/// Allocations and frees that could not be recorded.
static LOST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static UNTIL_POINT: Cell<i64> = const { Cell::new(0) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
    /// Whether the thread holds the lock for a `fork`.
    static FORKS: Cell<bool> = const { Cell::new(false) };
}

/// What is known of the chunks of one stack, of those that count for others too.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    /// Return addresses, innermost first.
    pub(crate) stack: Arc<[u64]>,
    pub(crate) chunks: u64,
    pub(crate) bytes: u64,
    pub(crate) live_chunks: u64,
    pub(crate) live_bytes: u64,
}

/// A recorded chunk that is alive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    /// Index of its sums.
    sums: usize,
    /// As how many chunks it counts, and with how many bytes.
    weight: u64,
    bytes: u64,
}

struct Samples {
    chunks: BTreeMap<usize, Chunk>,
    index_of: BTreeMap<Arc<[u64]>, usize>,
    sums: Vec<Sums>,
}

impl Samples {
    const NONE: Samples = Samples {
        chunks: BTreeMap::new(),
        index_of: BTreeMap::new(),
        sums: Vec::new(),
    };

    fn add(&mut self, address: usize, size: u64, sample: u64, stack: &[u64]) {
        let weight = weight(size, sample);
        let chunk = Chunk {
            sums: self.index(stack),
            weight,
            bytes: size * weight,
        };
        let sums = &mut self.sums[chunk.sums];
        sums.chunks += chunk.weight;
        sums.bytes += chunk.bytes;
        self.attach(address, chunk);
    }

    fn attach(&mut self, address: usize, chunk: Chunk) {
        // Of what is there, the free was lost.
        self.detach(address);
        let sums = &mut self.sums[chunk.sums];
        sums.live_chunks += chunk.weight;
        sums.live_bytes += chunk.bytes;
        self.chunks.insert(address, chunk);
        ALIVE.add(address as u64);
    }

    fn detach(&mut self, address: usize) -> Option<Chunk> {
        let chunk = self.chunks.remove(&address)?;
        let sums = &mut self.sums[chunk.sums];
        sums.live_chunks -= chunk.weight;
        sums.live_bytes -= chunk.bytes;
        ALIVE.remove(address as u64);
        Some(chunk)
    }

    fn index(&mut self, stack: &[u64]) -> usize {
        let stack = match self.index_of.get(stack) {
            Some(&index) => return index,
            None if self.sums.len() < MAX_STACKS || stack.is_empty() => Arc::from(stack),
            None => return self.index(&[]),
        };
        self.index_of.insert(Arc::clone(&stack), self.sums.len());
        self.sums.push(Sums {
            stack,
            chunks: 0,
            bytes: 0,
            live_chunks: 0,
            live_bytes: 0,
        });
        self.sums.len() - 1
    }
}

struct Guarded {
    is_held: AtomicBool,
    samples: UnsafeCell<Samples>,
}

// SAFETY: `samples` is used by who has set `is_held` only (`Guarded::with`), and what it holds may
// be used by any thread.
unsafe impl Sync for Guarded {}

impl Guarded {
    /// Calls `work` with the samples, unless this thread is busy or the lock cannot be had.
    fn with<R>(&self, work: impl FnOnce(&mut Samples) -> R) -> Option<R> {
        self.locked(&Busy::enter()?, work)
    }

    fn locked<R>(&self, _: &Busy, work: impl FnOnce(&mut Samples) -> R) -> Option<R> {
        if !self.take() {
            LOST.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        // SAFETY: this thread has set `is_held`, and `work` does not get here again, as the thread
        // is busy.
        let result = counts::uncounted(|| work(unsafe { &mut *self.samples.get() }));
        self.give_back();
        Some(result)
    }

    fn take(&self) -> bool {
        let is_free = || !self.is_held.swap(true, Ordering::Acquire);
        let after = |pause: fn()| {
            move |_| {
                pause();
                is_free()
            }
        };
        is_free()
            || (0..MAX_LOOKS).any(after(thread::yield_now))
            || (0..MAX_PAUSES).any(after(|| thread::sleep(PAUSE)))
    }

    fn give_back(&self) {
        self.is_held.store(false, Ordering::Release);
    }
}

/// Runs `work` without sampling what it does.
pub(crate) fn unseen<R>(work: impl FnOnce() -> R) -> R {
    let _busy = Busy::enter();
    work()
}

/// Marks the thread as busy until it is dropped; there is one of a thread at most.
struct Busy;

impl Busy {
    fn enter() -> Option<Busy> {
        // Not `then_some`: dropping what is not used would end what is under way.
        (!IS_BUSY.replace(true)).then(|| Busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        IS_BUSY.set(false);
    }
}

/// An allocation gave `new`.
#[inline(always)]
pub(crate) fn allocated(new: *mut u8, size: usize) {
    let size = (size as u64).max(1);
    let sample = SAMPLE.load(Ordering::Relaxed);
    if size < sample {
        let left = UNTIL_POINT.get() - size.cast_signed();
        UNTIL_POINT.set(left);
        if left > 0 {
            return;
        }
    }
    record(new, size, sample);
}

#[cold]
#[inline(never)]
fn record(new: *mut u8, size: u64, sample: u64) {
    if sample == 0 || size < sample && !is_taken(size, sample) || new.is_null() {
        return;
    }
    let Some(busy) = Busy::enter() else { return };
    let mut frames = [0; MAX_FRAMES];
    // SAFETY: where the thread's stack is counts as unknown.
    let stack = unsafe { unwind::stack(&mut frames, None, [0; 2], |_, _, _, _| {}) };
    let len = match stack {
        Stack::Walked { len, .. } => len,
        Stack::Known(_) => 0,
    };
    SAMPLES.locked(&busy, |samples| {
        // It may have ended.
        if SAMPLE.load(Ordering::Relaxed) != 0 {
            samples.add(new.addr(), size, sample, &frames[..len]);
        }
    });
}

fn is_taken(size: u64, sample: u64) -> bool {
    let (mut until_point, mut random) = (UNTIL_POINT.get(), RANDOM.get());
    let seed = || RandomState::new().hash_one(size);
    let is_taken = sampling::is_taken([size, sample], &mut until_point, &mut random, seed);
    UNTIL_POINT.set(until_point);
    RANDOM.set(random);
    is_taken
}

/// Takes a chunk out of the samples that is about to be freed or resized.
#[inline(always)]
pub(crate) fn detach(old: *mut u8) -> Option<Chunk> {
    if !ALIVE.may_have(old.addr() as u64) {
        return None;
    }
    detach_sampled(old)
}

#[cold]
#[inline(never)]
fn detach_sampled(old: *mut u8) -> Option<Chunk> {
    SAMPLES.with(|samples| samples.detach(old.addr())).flatten()
}

/// What `old` was [detached](detach) from is now at `new`, unless that is null.
#[inline(always)]
pub(crate) fn reallocated(before: Option<Chunk>, old: *mut u8, new: *mut u8, size: usize) {
    if !new.is_null() {
        allocated(new, size);
    } else if let Some(chunk) = before {
        SAMPLES.with(|samples| {
            // It may have begun anew.
            if chunk.sums < samples.sums.len() {
                samples.attach(old.addr(), chunk);
            }
        });
    }
}

/// Has chunks of fewer than `sample` bytes sampled from now on; 0 ends it, and forgets all.
pub(crate) fn set(sample: u64) -> bool {
    static WATCH: Once = Once::new();
    // SAFETY: the functions are there as long as the program is.
    WATCH.call_once(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child));
    });
    let done = SAMPLES.with(|samples| {
        SAMPLE.store(sample, Ordering::Relaxed);
        counts::set_sampled(sample != 0);
        if sample == 0 {
            ALIVE.clear();
            LOST.store(0, Ordering::Relaxed);
            return Some(std::mem::replace(samples, Samples::NONE));
        }
        None
    });
    done.is_some()
}

/// Below how many bytes chunks are left to chance; 0 without sampling.
pub(crate) fn sample() -> u64 {
    SAMPLE.load(Ordering::Relaxed)
}

/// All sums, and how many samples were lost; `None` if the lock cannot be had.
pub(crate) fn sums() -> Option<(Vec<Sums>, u64)> {
    let sums = SAMPLES.with(|samples| samples.sums.clone())?;
    // Of libraries that were closed since, other code may have the place.
    unwind::forget();
    Some((sums, LOST.load(Ordering::Relaxed)))
}

extern "C" fn before_fork() {
    if !IS_BUSY.get() && SAMPLES.take() {
        IS_BUSY.set(true);
        FORKS.set(true);
    }
}

extern "C" fn after_fork() {
    if FORKS.replace(false) {
        SAMPLES.give_back();
        IS_BUSY.set(false);
    }
}

extern "C" fn in_child() {
    // Else a thread holds the lock that the child does not have.
    if !FORKS.get() && !IS_BUSY.get() {
        SAMPLE.store(0, Ordering::Relaxed);
        counts::set_sampled(false);
        ALIVE.clear();
    }
    after_fork();
}
