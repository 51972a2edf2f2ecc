//! Arenas whose threads have ended wait on a lock-free stack for a thread that takes them over.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::arena::{ALL_ARENAS, Arena, Own};
use crate::bin::ARENA_ALIGN_BYTES;
use crate::protocol::{Linked, TaggedStack};
use crate::sys;

/// How many arenas one thread looks through for memory before it maps more.
const RECLAIM_ARENAS_MAX: usize = 64;

/// Arenas whose threads have ended. Invariant: an arena is on it when no thread owns it.
static ABANDONED: TaggedStack<Arena> = TaggedStack::new();

impl Linked for Arena {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.next_abandoned
    }
}

impl Own<'static> {
    /// An arena for this thread: one whose thread has ended, or a new one. `None` when the OS
    /// refuses memory.
    pub(crate) fn acquire() -> Option<Self> {
        if let Some(arena) = ABANDONED.pop() {
            // SAFETY: it was on the stack of abandoned arenas, so no thread owned it, and it is off
            // the stack now.
            let own = unsafe { Own::new(arena) };
            own.collect_remote();
            return Some(own);
        }
        Self::map()
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
        // SAFETY: nothing else refers to it but readers of the counters.
        Some(unsafe { Own::new(arena) })
    }

    /// Gives the arena up at the end of its thread: what is empty goes back to the OS, the rest
    /// waits for another thread.
    pub(crate) fn abandon(self) {
        self.collect_remote();
        self.trim();
        // SAFETY: arenas are mapped by `map`, aligned to 32 KiB, for ever; this one is this
        // thread's, and on no stack.
        unsafe { ABANDONED.push(self.arena()) };
    }
}

impl Own<'_> {
    /// Gives all slabs, pages and chunks without objects back.
    fn trim(self) {
        self.trim_slabs();
        self.trim_pages();
        self.trim_chunks();
    }
}

/// Gives back to the OS what was freed in arenas without a thread, before more memory is mapped.
pub(crate) fn reclaim() {
    ABANDONED.visit(RECLAIM_ARENAS_MAX, |arena| {
        if !arena.dirty.0.is_empty() {
            // SAFETY: it was on the stack of abandoned arenas, so no thread owned it, and it is off
            // the stack now.
            let own = unsafe { Own::new(arena) };
            own.collect_remote();
            own.trim();
        }
    });
}
