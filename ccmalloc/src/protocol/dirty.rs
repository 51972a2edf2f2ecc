//! Tells an owner which of its places other threads have set bits in: flags on nodes, and a stack
//! of the nodes that have flags.
//!
//! ```text
//! another thread                                 the owner
//! ──────────────                                 ─────────
//! word |= bit                    (RMW)           take the whole stack                (RMW)
//! if node.flags has the place:   done            for each node: take its flags       (RMW)
//! else node.flags |= place       (RMW)             for each place: take its words  (load, RMW)
//!   if it was 0: push the node   (CAS)
//! ```
//!
//! **No bit is missed.** All operations on words and flags are sequentially consistent. Take the
//! single order of them: if the other thread saw the place's flag set, the owner had not yet
//! swapped it to zero, and looks at the word after it does, which is after the bit. If it did not,
//! it sets the flag itself.
//!
//! **The stack is never behind.** Only the thread that changes a node's flags from none to some
//! pushes it: the node is on the stack once, until the owner takes the stack. The owner reads a
//! node's link before it takes its flags, because from then on the node may be pushed again.
//!
//! Between flag and push another thread may set a second flag and leave; the owner learns of both
//! when the first thread has pushed.

use core::ops::ControlFlow;
use core::ptr::null_mut;

use crate::primitive::{AtomicPtr, AtomicU32, Ordering, constructor};

/// What a node of a [`DirtyStack`] carries: 32 flags, one for each place, and the link.
///
/// Invariant: the flags are other than zero from some time before the node is pushed until the
/// owner has taken the stack.
pub(crate) struct Dirty<N> {
    /// May name places that hold nothing any more; never misses one that needs a look.
    flags: AtomicU32,
    /// Written by the thread that pushes.
    next: AtomicPtr<N>,
}

/// Has a [`Dirty`].
pub(crate) trait DirtyNode: Sized {
    /// Its flags and link.
    fn dirty(&self) -> &Dirty<Self>;
}

impl<N> Dirty<N> {
    constructor! {
        /// No flags, in no stack.
        pub(crate) fn new() -> Self {
            Self { flags: AtomicU32::new(0), next: AtomicPtr::new(null_mut()) }
        }
    }

    /// The places that were announced since the owner last looked, one bit each. More may come at
    /// any time.
    pub(crate) fn announced(&self) -> u32 {
        self.flags.load(Ordering::Relaxed)
    }

    /// Whether the flag of `place` (`0..32`) is set. Saves an atomic read-modify-write for each
    /// further bit.
    #[inline]
    fn is_marked(&self, place: usize) -> bool {
        self.flags.load(Ordering::SeqCst) & (1 << place) != 0
    }

    /// Sets the flag of `place`; returns whether the node must be pushed, which the caller alone
    /// then does.
    fn mark(&self, place: usize) -> bool {
        self.flags.fetch_or(1 << place, Ordering::SeqCst) == 0
    }
}

/// A stack of nodes that other threads push onto and the owner takes as a whole.
pub(crate) struct DirtyStack<N> {
    head: AtomicPtr<N>,
}

impl<N: DirtyNode> DirtyStack<N> {
    constructor! {
        /// An empty one.
        pub(crate) fn new() -> Self {
            Self { head: AtomicPtr::new(null_mut()) }
        }
    }

    /// Whether there is nothing to collect, as far as this thread knows. One relaxed load.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Tells the owner to look at `place` (`0..32`) of `node`, after a bit was set there.
    ///
    /// # Safety
    /// - `node` is announced to this stack only, and lives as long as the stack is collected from.
    #[inline]
    pub(crate) unsafe fn announce(&self, node: &N, place: usize) {
        if !node.dirty().is_marked(place) {
            // SAFETY: `node` is announced to this stack only, and lives as long as it (`# Safety`).
            unsafe { self.announce_first(node, place) };
        }
    }

    /// [`announce`](Self::announce), the first time since the owner has looked. A function of C,
    /// which does not unwind: a free ends by a jump here.
    ///
    /// # Safety
    /// - As for [`announce`](Self::announce).
    #[inline(never)]
    unsafe extern "C" fn announce_first(&self, node: &N, place: usize) {
        if !node.dirty().mark(place) {
            return;
        }
        // Release: the owner sees the link.
        let _ = (self.head).fetch_update(Ordering::Release, Ordering::Relaxed, |head| {
            node.dirty().next.store(head, Ordering::Relaxed);
            Some((&raw const *node).cast_mut())
        });
    }

    /// Calls `each(node, place)` for every place that has been announced since the last time, and
    /// maybe for others. If `each` breaks, the remaining places of that node are skipped and not
    /// reported again. For the owner alone.
    pub(crate) fn collect(&self, mut each: impl FnMut(&N, usize) -> ControlFlow<()>) {
        let mut next = self.head.swap(null_mut(), Ordering::Acquire);
        // SAFETY: null or a node that was announced here, which lives: `announce`'s contract.
        while let Some(node) = unsafe { next.as_ref() } {
            // Before the flags are taken: after that, another thread may push the node again.
            next = node.dirty().next.load(Ordering::Relaxed);
            let mut flags = node.dirty().flags.swap(0, Ordering::SeqCst);
            while flags != 0 {
                let place = flags.trailing_zeros() as usize;
                flags &= flags - 1;
                if each(node, place).is_break() {
                    break;
                }
            }
        }
    }
}
