//! Heap budgets in tests: what a closure allocates.

use std::alloc::Layout;
use std::ffi::c_void;
use std::fmt;
use std::hint::black_box;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::counts::{self, Measure, SITES, begin, uncounted};
use crate::hook::Hook;
use crate::spawned;

/// What a closure has allocated, by [`measure()`].
///
/// If a test panics while it has this, as by an assertion on it, all numbers are printed, and under
/// `cargo ccscope test` the lines that have allocated.
#[derive(Debug)]
#[non_exhaustive]
pub struct Heap<T> {
    /// What the closure has returned.
    pub value: T,
    /// Allocations, without reallocations.
    pub allocations: u64,
    /// Frees, also of what was allocated before.
    pub frees: u64,
    /// Reallocations, as by a vector that grows.
    pub reallocations: u64,
    /// Bytes asked for by allocations, and those by which reallocations made blocks larger.
    pub bytes: u64,
    /// The most bytes that were alive at a time, beyond those at the start.
    pub peak: u64,
    /// Bytes allocated less bytes freed: what `value` holds and what is leaked. It is negative if
    /// more was freed that was allocated before.
    pub live: i64,
    /// Prints what is above in a panic.
    _report: Report,
}

/// Measures what `work` allocates in this thread.
///
/// The program's allocator is a [`Profiled`](crate::Profiled). Tests that run in parallel do not
/// see each other's allocations.
///
/// ```
/// use std::alloc::System;
///
/// #[global_allocator]
/// static GLOBAL: ccscope::Profiled<System> = ccscope::Profiled::new(System);
///
/// let heap = ccscope::measure(|| (1..100).map(|n| n.to_string().len()).sum::<usize>());
/// assert_eq!(heap.value, 189);
/// assert!(heap.allocations <= 99 && heap.peak <= 64);
/// assert_eq!(heap.live, 0);
/// ```
///
/// An allocation in it takes some nanoseconds more. Measures may be nested: the outer one counts
/// what the inner one counts.
///
/// # Panics
///
/// If the program's allocator is no `Profiled`, and if `work` panics.
#[track_caller]
pub fn measure<T>(work: impl FnOnce() -> T) -> Heap<T> {
    run(&Measure::new(), work)
}

/// [`measure()`] that also counts what threads do that `work` spawns, and those that these spawn,
/// until it ends; join them, so that all of it counts.
///
/// Threads that run already, as those of a pool, are not counted. An allocation takes some ten
/// nanoseconds more.
///
/// # Panics
///
/// As for [`measure()`], and without [`count_threads!`](crate::count_threads) in the program.
#[track_caller]
pub fn measure_with_threads<T>(work: impl FnOnce() -> T) -> Heap<T> {
    assert!(
        spawned::are_counted(),
        "threads are not seen: write `ccscope::count_threads!();` at the top of the test"
    );
    let around = counts::nearest_shared();
    let measure = Shared(uncounted(|| Some(Arc::new(Measure::shared(around)))));
    run(measure.0.as_ref().expect("it is taken at its end"), work)
}

/// A measure whose end no other one counts, also if the work panics.
struct Shared(Option<Arc<Measure>>);

impl Drop for Shared {
    fn drop(&mut self) {
        uncounted(|| drop(self.0.take()));
    }
}

#[track_caller]
fn run<T>(measure: &Measure, work: impl FnOnce() -> T) -> Heap<T> {
    let under = begin(measure);
    let is_seen = is_allocator(measure);
    assert!(
        is_seen,
        "nothing is measured: the program's `#[global_allocator]` is no `ccscope::Profiled`"
    );
    let value = work();
    drop(under);
    let number = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let heap = Numbers {
        allocations: number(&measure.allocations),
        frees: number(&measure.frees),
        reallocations: number(&measure.reallocations),
        bytes: number(&measure.bytes),
        peak: number(&measure.peak),
        live: measure.live(),
    };
    Heap {
        value,
        allocations: heap.allocations,
        frees: heap.frees,
        reallocations: heap.reallocations,
        bytes: heap.bytes,
        peak: heap.peak,
        live: heap.live,
        _report: Report {
            place: Location::caller(),
            numbers: heap,
            sites: measure
                .sites
                .each_ref()
                .map(|site| site.each_ref().map(number)),
        },
    }
}

/// Whether the program's allocations are counted in `measure`, which is the innermost. It is asked
/// once.
fn is_allocator(measure: &Measure) -> bool {
    static IS_ALLOCATOR: AtomicBool = AtomicBool::new(false);
    if IS_ALLOCATOR.load(Ordering::Relaxed) {
        return true;
    }
    let layout = Layout::new::<u64>();
    // SAFETY: the layout is not empty, and the block is freed once, with its layout.
    unsafe {
        let block = black_box(std::alloc::alloc(layout));
        if !block.is_null() {
            std::alloc::dealloc(block, layout);
        }
    }
    let is_allocator = measure.allocations.load(Ordering::Relaxed) > 0;
    measure.clear();
    IS_ALLOCATOR.store(is_allocator, Ordering::Relaxed);
    is_allocator
}

#[derive(Clone, Copy, Debug)]
struct Numbers {
    allocations: u64,
    frees: u64,
    reallocations: u64,
    bytes: u64,
    peak: u64,
    live: i64,
}

impl fmt::Display for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Numbers {
            allocations,
            frees,
            reallocations,
            bytes,
            peak,
            live,
        } = self;
        write!(
            f,
            "{allocations} allocations, {reallocations} reallocations and {frees} frees; {bytes} \
             bytes, {peak} at the peak, {live} at the end"
        )
    }
}

/// Says in a panic what was measured.
#[derive(Debug)]
struct Report {
    place: &'static Location<'static>,
    numbers: Numbers,
    /// A site of the runtime's and one, its allocations and bytes.
    sites: [[u64; 3]; SITES],
}

impl Drop for Report {
    fn drop(&mut self) {
        if std::thread::panicking() {
            uncounted(|| {
                eprintln!("ccscope: measured at {}: {}", self.place, self.numbers);
                self.tell();
            });
        }
    }
}

impl Report {
    /// Has the tool print the sites when the process has ended.
    fn tell(&self) {
        type Function = unsafe extern "C" fn(
            place: *const u8,
            len: usize,
            sites: *const [u64; 3],
            count: usize,
        );
        static EXCEEDED: Hook = Hook::new(c"ccscope_exceeded");
        let sites = self
            .sites
            .iter()
            .take_while(|[site, ..]| *site != 0)
            .count();
        if sites == 0 || !EXCEEDED.find() {
            return;
        }
        eprintln!("ccscope: the sites are named after the run");
        let place = self.place.to_string();
        #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
        // SAFETY: the runtime's function of this name, which reads the text and the sites.
        unsafe {
            let function = std::mem::transmute::<*mut c_void, Function>(EXCEEDED.address());
            function(place.as_ptr(), place.len(), self.sites.as_ptr(), sites);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::measure;

    #[test]
    #[should_panic(expected = "is no `ccscope::Profiled`")]
    fn without_the_allocator_nothing_is_measured() {
        measure(|| vec![1, 2, 3].len());
    }
}
