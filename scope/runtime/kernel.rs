//! Accesses that the kernel makes, for `read`, `write` and their like.
//!
//! The number of bytes is known only after the call. By then another thread may have received the
//! chunk and freed it. So the access is counted before the call, and undone if no byte was moved.
//! The bytes are recorded after the call, under the lock, if the chunk is still the same.

use core::sync::atomic::{AtomicU32, Ordering};

use super::capture::{LOCK, chunk, header};
use super::counts::add64;
use super::fast_path::{self, add_one, non_owner_counts, tally};
use super::local::local;
use super::recording::{self, several_threads};
use super::{entries, shadow, slow_path, sys, threads};
use crate::capture_format::{Chunk, flags};

/// An access that is under way.
pub(crate) struct Lent {
    address: u64,
    /// When the chunk was allocated: no other one has the same time.
    allocated: u64,
    /// Whether the access was counted as one by the chunk's owner.
    own: bool,
}

impl Lent {
    /// Counts an access of bytes from `address` on, which the program lends to the kernel next.
    /// `None` if they are of no chunk.
    pub(crate) fn new<const WRITE: bool>(address: u64) -> Option<Lent> {
        let (id, local) = (shadow::find(address), local());
        // SAFETY: the block is this thread's. The program owns the bytes until the call begins, so
        // nobody frees their chunk meanwhile, and `id` is its entry. As there is one, the capture
        // is mapped.
        unsafe {
            if id == 0 || (*local).busy {
                return None;
            }
            threads::ensure_number(local);
            let entry = chunk(id);
            let own = entries::touched_by(local, entry);
            if own {
                add_one::<WRITE, true>(entry);
            } else {
                add_one::<WRITE, false>(entry);
            }
            fast_path::last(entry).store((*local).now + 1, Ordering::Relaxed);
            Some(Lent {
                address,
                allocated: (*entry).allocated,
                own,
            })
        }
    }

    /// The chunk's entry; `None` if it was freed meanwhile.
    ///
    /// # Safety
    ///
    /// The capture is mapped.
    unsafe fn entry(&self) -> Option<*mut Chunk> {
        let id = shadow::find(self.address);
        // SAFETY: `find` gives numbers of entries only, and entries are never unmapped.
        let is_same = id != 0 && unsafe { (*chunk(id)).allocated } == self.allocated;
        is_same.then(|| chunk(id))
    }

    /// The call has moved so many bytes.
    pub(crate) fn end<const WRITE: bool>(&self, moved: u64) {
        let local = local();
        // A handler of signals may have forked during the call: this may be a child without a
        // capture.
        if !recording::active() {
            return;
        }
        // SAFETY: the block is this thread's. If no bytes were moved, nobody got the chunk from
        // this thread, so that its entry stays. Else it stays while this thread has the lock,
        // without which no chunk is freed; and with one thread, nobody frees it meanwhile. Signals
        // are blocked, as a handler that leaves by `siglongjmp` would leave the lock held.
        unsafe {
            if moved == 0 {
                return self.undo::<WRITE>();
            }
            (*local).now += 1;
            let many = several_threads();
            if many {
                let signals = sys::block_signals();
                (*local).busy = true;
                LOCK.with(|| self.add_bytes::<WRITE>(moved));
                (*local).busy = false;
                sys::restore_signals(signals);
            } else {
                self.add_bytes::<WRITE>(moved);
            }
            add64(&raw mut (*header()).block_bytes, moved, many);
            add64(&raw mut (*header()).foreign_bytes, moved, many);
        }
    }

    /// # Safety
    ///
    /// As for [`Lent::entry`], and nobody else frees the chunk meanwhile.
    unsafe fn add_bytes<const WRITE: bool>(&self, moved: u64) {
        let local = local();
        // SAFETY: by the condition on callers the entry is that of a live chunk, as all functions
        // called here demand, if `entry` finds it. `touch` and `tally` look at the chunk's bounds.
        unsafe {
            if (*local).now > (*local).limit {
                slow_path::pause(local, self.address, moved, WRITE);
            }
            let Some(entry) = self.entry() else { return };
            fast_path::last(entry).store((*local).now, Ordering::Relaxed);
            let offset = self.address.wrapping_sub((*entry).start);
            entries::touch(entry, offset, moved);
            if fast_path::flags_of(entry) & flags::HISTOGRAM != 0 {
                tally::<WRITE, 0>(local, entry, self.address, moved);
            }
        }
    }

    /// # Safety
    ///
    /// As for [`Lent::add_bytes`].
    unsafe fn undo<const WRITE: bool>(&self) {
        // SAFETY: counters are aligned fields of the capture, which stays mapped.
        unsafe {
            let Some(entry) = self.entry() else { return };
            let counter = match (self.own, WRITE) {
                (true, false) => &raw mut (*entry).reads,
                (true, true) => &raw mut (*entry).writes,
                (false, _) => &raw mut (*non_owner_counts(entry))[usize::from(WRITE)],
            };
            // One that has just overflowed is kept.
            let less = |count: u32| count.checked_sub(1);
            let counter = AtomicU32::from_ptr(counter);
            let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }
}
