//! Counting in the measures under way: what `Profiled` calls while there are any.
//!
//! A measure is a node that its thread counts in; nested ones are a list from the innermost out,
//! whose head is a thread-local variable without a destructor. So counting allocates nothing, takes
//! no lock, and works at any time of a thread's life.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Sites of which a measure keeps counts.
pub(crate) const SITES: usize = 16;

/// What calls of the allocator have to do: nothing of what follows if this is [`PLAIN`], which is
/// the only comparison outside of measures. The low two bits say whether the tool is there, the
/// third whether the program samples its heap; the rest counts measures under way, of all threads.
static STATE: AtomicU32 = AtomicU32::new(0);
/// The tool is not there.
const PLAIN: u32 = 1;
/// The tool is there.
const TOOL: u32 = 2;
const SAMPLED: u32 = 4;
const MEASURE: u32 = 8;

thread_local! {
    /// The innermost measure of the thread, or null; and the same if it is alone: not shared, and
    /// without another around it. [`MUTED`] while a wrapped allocator works.
    static INNERMOST: Cell<*const Measure> = const { Cell::new(ptr::null()) };
    static ALONE: Cell<*const Measure> = const { Cell::new(ptr::null()) };
}

/// No measure: nothing is counted, whatever is innermost.
const MUTED: *const Measure = ptr::without_provenance(usize::MAX);

/// What a call of the allocator has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// It is passed on as it is.
    None,
    /// The tool is not there, but a measure is.
    Count,
    /// Neither is there, but the heap is sampled.
    #[cfg(feature = "heap-profile")]
    Sample,
    /// The tool is there, or nobody has looked for it, or there is more than one thing to do.
    Tell,
}

#[inline(always)]
pub(crate) fn duty() -> Duty {
    match STATE.load(Ordering::Acquire) {
        PLAIN => Duty::None,
        #[cfg(feature = "heap-profile")]
        state if state == PLAIN | SAMPLED => Duty::Sample,
        state if state % MEASURE == PLAIN => Duty::Count,
        _ => Duty::Tell,
    }
}

/// Whether the tool records this process; `find` looks for it, once or a few times.
#[inline(always)]
pub(crate) fn has_tool(find: impl FnOnce() -> bool) -> bool {
    match STATE.load(Ordering::Acquire) % SAMPLED {
        0 => decide(find()),
        state => state == TOOL,
    }
}

#[cold]
fn decide(is_found: bool) -> bool {
    let found = if is_found { TOOL } else { PLAIN };
    STATE.fetch_or(found, Ordering::AcqRel);
    is_found
}

/// Says whether the program samples its heap.
#[cfg(feature = "heap-profile")]
pub(crate) fn set_sampled(is_sampled: bool) {
    if is_sampled {
        STATE.fetch_or(SAMPLED, Ordering::AcqRel);
    } else {
        STATE.fetch_and(!SAMPLED, Ordering::AcqRel);
    }
}

/// What a measure counts. Its thread alone writes it, unless it is shared: then by atomic
/// operations.
#[derive(Debug)]
pub(crate) struct Measure {
    pub(crate) allocations: AtomicU64,
    pub(crate) frees: AtomicU64,
    pub(crate) reallocations: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) freed: AtomicU64,
    /// The most `bytes` less `freed`, from 0 on.
    pub(crate) peak: AtomicU64,
    /// `bytes` less `freed` in one number, if the measure is shared.
    live: AtomicU64,
    /// Under the tool: a site, its allocations and bytes; 0 for an entry that is not used.
    pub(crate) sites: [[AtomicU64; 3]; SITES],
    is_shared: bool,
    /// The thread that measures, by the address of its variable; 0 once the measure has ended.
    owner: AtomicUsize,
    /// For the owner, the measure around this one. It outlives this one.
    around: Cell<*const Measure>,
    /// For other threads, the next shared measure around this one.
    shared_around: Option<Arc<Measure>>,
}

// SAFETY: `around` is read and written by the owner alone ([`Measure::next`], [`begin`]), which no
// other thread is taken for; all else is atomic, or not written once other threads know of it.
unsafe impl Send for Measure {}
// SAFETY: as for `Send`.
unsafe impl Sync for Measure {}

impl Measure {
    /// A measure of this thread alone.
    pub(crate) fn new() -> Measure {
        Measure::with(false, None)
    }

    /// A measure for this thread and those that it spawns, and the shared one around it.
    pub(crate) fn shared(around: Option<Arc<Measure>>) -> Measure {
        Measure::with(true, around)
    }

    fn with(is_shared: bool, shared_around: Option<Arc<Measure>>) -> Measure {
        Measure {
            allocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            reallocations: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            live: AtomicU64::new(0),
            sites: Default::default(),
            is_shared,
            owner: AtomicUsize::new(this_thread()),
            around: Cell::new(ptr::null()),
            shared_around,
        }
    }

    /// Forgets what was counted.
    pub(crate) fn clear(&self) {
        let counts = [
            &self.allocations,
            &self.frees,
            &self.bytes,
            &self.freed,
            &self.peak,
        ];
        for count in counts {
            count.store(0, Ordering::Relaxed);
        }
        for slot in self.sites.iter().flatten() {
            slot.store(0, Ordering::Relaxed);
        }
    }

    /// Bytes allocated less bytes freed.
    pub(crate) fn live(&self) -> i64 {
        let [bytes, freed] = [&self.bytes, &self.freed].map(|it| it.load(Ordering::Relaxed));
        bytes.wrapping_sub(freed).cast_signed()
    }

    /// Counts bytes, and what they make of the peak.
    #[inline(always)]
    fn grow(&self, is_shared: bool, bytes: u64) {
        let sum = add(is_shared, &self.bytes, bytes);
        let live = match is_shared {
            true => add(true, &self.live, bytes),
            false => sum.wrapping_sub(self.freed.load(Ordering::Relaxed)),
        };
        // Less than at the start is no peak.
        if live.cast_signed() > self.peak.load(Ordering::Relaxed).cast_signed() {
            if is_shared {
                self.peak.fetch_max(live, Ordering::Relaxed);
            } else {
                self.peak.store(live, Ordering::Relaxed);
            }
        }
    }

    #[inline(always)]
    fn shrink(&self, is_shared: bool, bytes: u64) {
        add(is_shared, &self.freed, bytes);
        if is_shared {
            self.live.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// The next measure that `thread` counts in.
    #[inline(always)]
    fn next(&self, thread: usize) -> *const Measure {
        if self.owner.load(Ordering::Relaxed) == thread {
            return self.around.get();
        }
        match &self.shared_around {
            Some(around) => Arc::as_ptr(around),
            None => ptr::null(),
        }
    }

    fn note_site(&self, site: u32, bytes: u64) {
        let key = u64::from(site) + 1;
        for [known, allocations, sum] in &self.sites {
            let found = known.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
            if found.is_ok() || found == Err(key) {
                allocations.fetch_add(1, Ordering::Relaxed);
                sum.fetch_add(bytes, Ordering::Relaxed);
                return;
            }
        }
    }
}

/// Adds to a count, which is this thread's unless it is shared.
#[inline(always)]
fn add(is_shared: bool, count: &AtomicU64, number: u64) -> u64 {
    if is_shared {
        return (count.fetch_add(number, Ordering::Relaxed)).wrapping_add(number);
    }
    let sum = count.load(Ordering::Relaxed).wrapping_add(number);
    count.store(sum, Ordering::Relaxed);
    sum
}

fn this_thread() -> usize {
    INNERMOST.with(|head| (&raw const *head).addr())
}

/// Calls `count` for each measure of this thread, and with whether it is shared.
#[inline(always)]
fn each(count: impl Fn(&Measure, bool)) {
    let alone = ALONE.with(Cell::get);
    if alone == MUTED {
        return;
    }
    // SAFETY: it is the innermost measure, which lives as in `each_of_several`.
    if let Some(measure) = unsafe { alone.as_ref() } {
        count(measure, false);
    } else {
        each_of_several(count);
    }
}

#[cold]
#[inline(never)]
fn each_of_several(count: impl Fn(&Measure, bool)) {
    INNERMOST.with(|head| {
        let mut at = head.get();
        let thread = (&raw const *head).addr();
        // SAFETY: a measure in the list lives: its thread takes it out by `Under::drop` before it
        // ends, and shared ones of other threads are kept by an `Arc` as long as they are reachable
        // ([`join`], `shared_around`).
        while let Some(measure) = unsafe { at.as_ref() } {
            count(measure, measure.is_shared);
            at = measure.next(thread);
        }
    });
}

/// Counts what an allocation gave.
#[inline(always)]
pub(crate) fn allocated(address: *mut u8, size: usize) {
    if !address.is_null() {
        each(move |measure, is_shared| {
            add(is_shared, &measure.allocations, 1);
            measure.grow(is_shared, size as u64);
        });
    }
}

/// Counts a free.
#[inline(always)]
pub(crate) fn freed(size: usize) {
    each(move |measure, is_shared| {
        add(is_shared, &measure.frees, 1);
        measure.shrink(is_shared, size as u64);
    });
}

/// Counts what a reallocation gave.
#[inline(always)]
pub(crate) fn reallocated(address: *mut u8, before: usize, size: usize) {
    if !address.is_null() {
        each(move |measure, is_shared| {
            add(is_shared, &measure.reallocations, 1);
            measure.grow(is_shared, size.saturating_sub(before) as u64);
            measure.shrink(is_shared, before.saturating_sub(size) as u64);
        });
    }
}

/// Counts an allocation by its site, which `site` tells if there is a measure.
pub(crate) fn at_site(size: usize, site: impl FnOnce() -> u32) {
    if is_measured() {
        let site = site();
        each(|measure, _| measure.note_site(site, size as u64));
    }
}

/// Whether this thread counts in a measure.
pub(crate) fn is_measured() -> bool {
    INNERMOST.with(|head| !head.get().is_null())
}

/// The innermost measure that other threads may count in, if there is one.
pub(crate) fn nearest_shared() -> Option<Arc<Measure>> {
    INNERMOST.with(|head| {
        let mut at = head.get();
        // SAFETY: measures in the list live, as in `each`.
        while let Some(measure) = unsafe { at.as_ref() } {
            if measure.is_shared {
                // SAFETY: shared measures are made within an `Arc` (`measure::run`), of which the
                // list has not given its count away.
                return Some(unsafe {
                    Arc::increment_strong_count(at);
                    Arc::from_raw(at)
                });
            }
            at = measure.next((&raw const *head).addr());
        }
        None
    })
}

/// Calls the allocator that is wrapped, without counting what it does itself: it may be wrapped
/// twice. It does not unwind.
#[inline(always)]
pub(crate) fn muted<R>(call: impl FnOnce() -> R) -> R {
    let alone = ALONE.with(|alone| alone.replace(MUTED));
    let result = call();
    ALONE.with(|it| it.set(alone));
    result
}

/// Runs `work` without counting what it does.
pub(crate) fn uncounted<R>(work: impl FnOnce() -> R) -> R {
    let _head = Head::set(ptr::null());
    work()
}

/// Has this thread, which is in no measure, count in one of another thread.
pub(crate) fn join(measure: Arc<Measure>) -> *const Measure {
    let measure = Arc::into_raw(measure);
    INNERMOST.with(|head| head.set(measure));
    measure
}

/// Ends what [`join`] began, when this thread ends.
///
/// # Safety
///
/// `measure` is of [`join`], by this thread, whose own measures have all ended.
pub(crate) unsafe fn leave(measure: *const Measure) {
    INNERMOST.with(|head| head.set(ptr::null()));
    // SAFETY: `join` has given the count away (`# Safety`), and the list does not lead to it any
    // more.
    drop(unsafe { Arc::from_raw(measure) });
}

/// Puts back what was the innermost measure, and what was alone.
struct Head([*const Measure; 2]);

impl Head {
    fn set(new: *const Measure) -> Head {
        let alone = ALONE.with(|alone| alone.replace(ptr::null()));
        Head([INNERMOST.with(|head| head.replace(new)), alone])
    }
}

impl Drop for Head {
    fn drop(&mut self) {
        let [innermost, alone] = self.0;
        INNERMOST.with(|head| head.set(innermost));
        ALONE.with(|it| it.set(alone));
    }
}

/// A measure under way, which ends when this is dropped.
pub(crate) struct Under<'m> {
    measure: &'m Measure,
    _head: Head,
}

/// Begins `measure`, which lives until the guard is dropped.
pub(crate) fn begin(measure: &Measure) -> Under<'_> {
    STATE.fetch_add(MEASURE, Ordering::AcqRel);
    let head = Head::set(measure);
    let around = head.0[0];
    measure.around.set(around);
    if around.is_null() && !measure.is_shared {
        ALONE.with(|alone| alone.set(measure));
    }
    Under {
        measure,
        _head: head,
    }
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        // A later thread may have its variable where the owner's was.
        self.measure.owner.store(0, Ordering::Relaxed);
        STATE.fetch_sub(MEASURE, Ordering::AcqRel);
    }
}
