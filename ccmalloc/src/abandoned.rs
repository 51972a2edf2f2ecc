//! Arenas without a thread of their own: those of ended threads, and those that many threads share.
//!
//! The first wait on a lock-free stack for a thread that takes them over. Until then, a thread that
//! frees an object there *borrows* the arena, and frees as its owner would: so what the last object
//! leaves goes back to the OS. Where more than [`ARENAS_MAX`] threads have arenas, further ones
//! borrow a shared arena for each allocation: an arena takes 2 MiB of address space and two
//! mappings, and the OS has limits on both.

use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

use crate::arena::{ALL_ARENAS, Arena, Own};
use crate::bin::ARENA_ALIGN_BYTES;
use crate::protocol::{Linked, TaggedStack};
use crate::sys;

/// How many threads have arenas of their own.
const ARENAS_MAX: usize = 512;
/// How many arenas the other threads share.
const SHARED: usize = 64;
/// How many arenas one thread looks through for memory before it maps more.
pub(crate) const RECLAIM_ARENAS_MAX: usize = 64;
/// How long a thread waits for an arena that another has borrowed. A borrower is done in less,
/// unless it was another thread of a process that has forked: then nobody is.
const WAIT_MILLISECONDS: usize = 300;

/// Arenas whose threads have ended. Invariant: an arena is on it when no thread owns it.
static ABANDONED: TaggedStack<Arena> = TaggedStack::new();

/// Arenas that no thread ever owns; null where none was made yet.
static SHARED_ARENAS: [AtomicPtr<Arena>; SHARED] = [const { AtomicPtr::new(null_mut()) }; SHARED];

/// Threads that have arenas.
static THREADS: AtomicUsize = AtomicUsize::new(0);

impl Linked for Arena {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.next_abandoned
    }
}

/// Who has an arena.
pub(crate) struct Holder(AtomicU8);

/// A thread or a first-class heap, for as long as it likes. Zero bytes are this.
const OWNED: u8 = 0;
/// Nobody.
const FREE: u8 = 1;
/// A thread, for one operation.
const BORROWED: u8 = 2;

impl Holder {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(OWNED))
    }

    /// Takes the arena if nobody has it.
    fn take(&self, taken: u8) -> bool {
        // Acquire: what its holders before did to it has happened.
        self.0.load(Ordering::Relaxed) == FREE
            && (self.0)
                .compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// As `take`, from a thread that may have borrowed it. `false` when that takes too long.
    fn wait_and_take(&self, taken: u8) -> bool {
        if self.take(taken) {
            return true;
        }
        let start = sys::milliseconds();
        while sys::milliseconds().wrapping_sub(start) < WAIT_MILLISECONDS {
            sys::yield_now();
            if self.take(taken) {
                return true;
            }
        }
        false
    }

    /// Whether somebody has it for longer than one operation.
    #[inline]
    pub(crate) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OWNED
    }

    fn leave(&self) {
        self.0.store(FREE, Ordering::Release);
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
        if !self.0.is_shared.get() && !self.0.spare.get().is_null() {
            self.0.trim_chunks();
        }
        self.0.arena().holder.leave();
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
    for (number, place) in SHARED_ARENAS.iter().enumerate() {
        // SAFETY: null or an arena, which lives for ever, put there below.
        match unsafe { place.load(Ordering::Acquire).as_ref() } {
            Some(arena) => match borrow(arena) {
                Some(borrowed) => return Some(borrowed),
                // The last one is waited for, below.
                None if number + 1 < SHARED => {}
                None if arena.holder.wait_and_take(BORROWED) => {
                    // SAFETY: as in `borrow`.
                    return Some(Borrowed(unsafe { Own::new(arena) }));
                }
                None => {}
            },
            None => {
                let own = Own::map()?;
                own.is_shared.set(true);
                own.arena().holder.0.store(BORROWED, Ordering::Relaxed);
                let arena = (&raw const *own.arena()).cast_mut();
                let (order, none) = (Ordering::AcqRel, null_mut());
                if place
                    .compare_exchange(none, arena, order, Ordering::Relaxed)
                    .is_err()
                {
                    // Another thread was first: this one is left for the next thread that starts.
                    own.is_shared.set(false);
                    own.leave();
                    continue;
                }
                return Some(Borrowed(own));
            }
        }
    }
    // All are in use, or were when the process forked.
    let own = Own::map()?;
    own.arena().holder.0.store(BORROWED, Ordering::Relaxed);
    Some(Borrowed(own))
}

impl Own<'static> {
    /// An arena for this thread: one whose thread has ended, or a new one. `None` when the OS
    /// refuses memory, or [`ARENAS_MAX`] threads have arenas.
    pub(crate) fn acquire() -> Option<Self> {
        if THREADS.fetch_add(1, Ordering::Relaxed) >= ARENAS_MAX {
            THREADS.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        while let Some(arena) = ABANDONED.pop() {
            // An arena whose borrower is gone, after a `fork`, is lost to this process.
            if arena.holder.wait_and_take(OWNED) {
                // SAFETY: it was on the stack of abandoned arenas and is off it now, and it was
                // nobody's.
                let own = unsafe { Own::new(arena) };
                own.collect_remote();
                return Some(own);
            }
        }
        let own = Self::map();
        if own.is_none() {
            THREADS.fetch_sub(1, Ordering::Relaxed);
        }
        own
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
        THREADS.fetch_sub(1, Ordering::Relaxed);
        self.leave();
    }

    /// Leaves the arena to the next thread that starts.
    fn leave(self) {
        self.arena().holder.leave();
        // SAFETY: arenas are mapped by `map`, aligned to 32 KiB, for ever; this one was this
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
    ABANDONED.visit(count, |arena| {
        if !arena.dirty.0.is_empty() && arena.holder.take(BORROWED) {
            // SAFETY: it was nobody's, and is this thread's until `Borrowed` is dropped.
            let borrowed = Borrowed(unsafe { Own::new(arena) });
            borrowed.own().collect_remote();
            borrowed.own().trim();
        }
    });
}
