//! Arenas without a thread of their own: those of ended threads, and those that many threads share.
//!
//! The first wait on a lock-free stack for a thread that takes them over. Until then, a thread that
//! frees an object there *borrows* the arena, and frees as its owner would: so what the last object
//! leaves goes back to the OS. Where more than [`ARENAS_MAX`] threads have arenas, further ones
//! borrow a shared arena for each allocation: an arena takes 2 MiB of address space and two
//! mappings, and the OS has limits on both.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::arena::{ALL_ARENAS, Arena, Own};
use crate::bin::ARENA_ALIGN_BYTES;
use crate::owner::{BORROWED, OWNED};
use crate::protocol::{Linked, TaggedStack};
use crate::{sweep, sys};

/// How many threads have arenas of their own.
const ARENAS_MAX: usize = 512;
/// How many arenas the other threads share.
const SHARED: usize = 64;
/// How many arenas one thread looks through for memory before it maps more.
pub(crate) const RECLAIM_ARENAS_MAX: usize = 64;

/// How long a thread waits for a shared arena. A borrower is done in less, unless it was another
/// thread of a process that has forked: then nobody is.
const WAIT_MILLISECONDS: usize = 1000;

/// Arenas whose threads have ended. Invariant: an arena is on it when no thread owns it.
static ABANDONED: TaggedStack<Arena> = TaggedStack::new();

/// Arenas that no thread ever owns; null where none was made yet.
static SHARED_ARENAS: [AtomicPtr<Arena>; SHARED] = [const { AtomicPtr::new(null_mut()) }; SHARED];

/// Whether a thread is making a shared arena.
static SHARING: AtomicBool = AtomicBool::new(false);

impl Linked for Arena {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.next_abandoned
    }
}

/// An arena in the hands of this thread until it is dropped.
pub(crate) struct Borrowed(Own<'static>);

impl Borrowed {
    pub(crate) fn own(&self) -> Own<'static> {
        self.0
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let own = self.0;
        // Not under Miri, for which a box that is being dropped holds on to its memory.
        if !own.is_shared.get() && !own.spare.get().is_null() && cfg!(not(miri)) {
            own.trim_chunks();
        }
        own.arena().holder.leave();
        sweep::tick(sys::milliseconds());
    }
}

/// Borrows `arena` if it has no thread of its own.
#[inline]
pub(crate) fn borrow(arena: &'static Arena) -> Option<Borrowed> {
    if !arena.holder.take(BORROWED) {
        return None;
    }
    // SAFETY: it was nobody's, and is this thread's until `Borrowed` is dropped.
    let own = unsafe { Own::new(arena) };
    if !own.dirty.0.is_empty() {
        own.collect_remote();
    }
    Some(Borrowed(own))
}

/// Borrows a shared arena. `None` when the OS refuses memory.
pub(crate) fn borrow_shared() -> Option<Borrowed> {
    let mut start = None;
    loop {
        for place in &SHARED_ARENAS {
            // SAFETY: null or an arena, which lives for ever, put there by `share`.
            let arena = unsafe { place.load(Ordering::Acquire).as_ref() };
            let borrowed = match arena {
                Some(arena) => borrow(arena),
                // One thread at a time: a thousand may be here at once.
                None if SHARING.swap(true, Ordering::Acquire) => break,
                None => {
                    let shared = share(place, null_mut());
                    SHARING.store(false, Ordering::Release);
                    shared
                }
            };
            if borrowed.is_some() {
                return borrowed;
            }
        }
        // All are in use, or the OS gives no more.
        let now = sys::milliseconds();
        if now.saturating_sub(*start.get_or_insert(now)) > WAIT_MILLISECONDS {
            break;
        }
        // Not a yield: a thousand threads that yield leave the borrowers little time.
        sys::pause();
    }
    // In the child of a `fork`, those that were in use then are so for ever.
    let [first, ..] = &SHARED_ARENAS;
    share(first, first.load(Ordering::Relaxed))
}

/// Borrows a new arena, which takes the place of `old`, if that is still there. `None` when the OS
/// refuses memory.
fn share(place: &AtomicPtr<Arena>, old: *mut Arena) -> Option<Borrowed> {
    let borrowed = map_borrowed()?;
    let own = borrowed.own();
    let arena = (&raw const *own.arena()).cast_mut();
    own.is_shared.set(true);
    let (order, failed) = (Ordering::AcqRel, Ordering::Relaxed);
    // If another thread was first, this one is not shared.
    let placed = place.compare_exchange(old, arena, order, failed).is_ok();
    own.is_shared.set(placed);
    Some(borrowed)
}

/// A new arena, borrowed.
fn map_borrowed() -> Option<Borrowed> {
    let own = Own::map()?;
    own.arena().holder.set(BORROWED);
    Some(Borrowed(own))
}

/// How many threads of this process have arenas. The child of a `fork` has one.
fn threads() -> &'static AtomicUsize {
    static PROCESS: AtomicU32 = AtomicU32::new(0);
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let process = sys::process_id();
    if PROCESS.load(Ordering::Relaxed) != process {
        PROCESS.store(process, Ordering::Relaxed);
        THREADS.store(0, Ordering::Relaxed);
    }
    &THREADS
}

impl Own<'static> {
    /// An arena for this thread: one whose thread has ended, or a new one. `None` when the OS
    /// refuses memory, or [`ARENAS_MAX`] threads have arenas.
    pub(crate) fn acquire() -> Option<Self> {
        let threads = threads();
        if threads.load(Ordering::Relaxed) >= ARENAS_MAX {
            return None;
        }
        // Counted first: many threads may start at once.
        let is_one_of_them = threads.fetch_add(1, Ordering::Relaxed) < ARENAS_MAX;
        let own = is_one_of_them
            .then(|| Self::abandoned().or_else(Self::map))
            .flatten();
        if own.is_none() {
            threads.fetch_sub(1, Ordering::Relaxed);
        }
        own
    }

    /// An arena whose thread has ended, if there is one that nobody has borrowed.
    fn abandoned() -> Option<Self> {
        let mut found = None;
        ABANDONED.visit_until(RECLAIM_ARENAS_MAX, |arena| {
            if arena.holder.take(OWNED) {
                // SAFETY: it was nobody's, and `visit_until` leaves it off the stack.
                found = Some(unsafe { Own::new(arena) });
            }
            found.is_some()
        });
        found.inspect(|own| own.collect_remote())
    }

    /// A new arena. `None` when the OS refuses memory.
    pub(crate) fn map() -> Option<Self> {
        // Not written to: zero bytes are `Arena::new()`, and a thread touches the bins of the
        // classes that it uses.
        let place: NonNull<Arena> = sys::map_aligned(size_of::<Arena>(), ARENA_ALIGN_BYTES)?.cast();
        // SAFETY: freshly mapped, aligned, valid as all zero bytes are, and never unmapped.
        let arena: &'static Arena = unsafe { place.as_ref() };
        let _ = ALL_ARENAS.fetch_update(Ordering::Release, Ordering::Relaxed, |head| {
            arena.next_arena.store(head, Ordering::Relaxed);
            Some(place.as_ptr())
        });
        // SAFETY: nothing else refers to it but readers of the counters, and sweepers.
        Some(unsafe { Own::new(arena) })
    }

    /// Gives the arena up at the end of its thread: what is empty goes back to the OS, the rest
    /// waits for another thread.
    pub(crate) fn abandon(self) {
        self.collect_remote();
        self.retire_slabs();
        self.trim();
        // The child of a `fork` counts from 0, its first thread not included.
        let fewer = |count: usize| count.checked_sub(1);
        let _ = threads().fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        self.leave();
    }

    /// Leaves the arena to the next thread that starts.
    fn leave(self) {
        self.arena().holder.leave();
        // SAFETY: arenas are mapped by `map`, aligned to 128 KiB, for ever; this one was this
        // thread's, and is on no stack.
        unsafe { ABANDONED.push(self.arena()) };
    }
}

impl Own<'_> {
    /// Gives all slabs, pages and chunks without objects back.
    pub(crate) fn trim(self) {
        self.trim_slabs();
        self.trim_pages();
        self.trim_chunks();
    }
}

/// Gives back to the OS what was freed in up to `count` arenas of ended threads.
pub(crate) fn reclaim(count: usize) {
    ABANDONED.visit_until(count, |arena| {
        if !arena.dirty.0.is_empty() && arena.holder.take(BORROWED) {
            // SAFETY: it was nobody's, and is this thread's until `Borrowed` is dropped.
            let borrowed = Borrowed(unsafe { Own::new(arena) });
            borrowed.own().collect_remote();
            borrowed.own().trim();
        }
        false
    });
}
