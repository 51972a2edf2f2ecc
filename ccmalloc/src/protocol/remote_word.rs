//! A word of bits that other threads set and the owner takes.

use crate::primitive::{AtomicU64, Ordering};

/// 64 objects, each with a bit that says: freed by another thread, not yet seen by the owner. Zero
/// bytes are the default: none.
///
/// Sequentially consistent, like the flags of [`Dirty`](super::Dirty) that announce it; that module
/// has the argument.
#[repr(transparent)]
#[derive(Default)]
pub(crate) struct RemoteWord(AtomicU64);

impl RemoteWord {
    /// Sets the bits of `mask`. `false` when one of them was set already: its object has been freed
    /// before.
    ///
    /// Release (as part of sequential consistency): what this thread did with the objects comes
    /// before their next use. Unless the thread knows of another live object there, it must not
    /// touch the word's memory again: the owner may unmap it.
    #[inline]
    #[must_use]
    pub(crate) fn set(&self, mask: u64) -> bool {
        self.0.fetch_or(mask, Ordering::SeqCst) & mask == 0
    }

    /// Takes all bits. Costs one load when none is set.
    ///
    /// Acquire: what the other threads did with the objects happened before they are handed out
    /// again.
    #[inline]
    pub(crate) fn take(&self) -> u64 {
        if self.0.load(Ordering::SeqCst) == 0 {
            return 0;
        }
        self.0.swap(0, Ordering::SeqCst)
    }
}
