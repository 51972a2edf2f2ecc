//! The tracer's lock, over zones, thunks, patches and breakpoints.
//!
//! Its owner has all signals blocked but our four. Of those, a fault cannot come, and one that is
//! sent waits until the lock is given back.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use super::context::Info;
use super::sys;
use super::threads::{self, INFO};

/// A lock that knows its owner.
pub(crate) struct Lock {
    /// The [identity](threads::identity) of the thread that holds it; 0: it is free.
    owner: AtomicU64,
    /// Signals that wait for it.
    waiting: AtomicU64,
}

/// The tracer's lock.
///
/// **Lock invariant**: `zone_table`, `used_pages`, `thunks`, `patches` and the text of
/// `/proc/self/maps` are used by its owner only, or, before `start` has begun and in a child of
/// `fork`, by the only thread. From `fork_clone::enter` to `fork_clone::after` of a `fork` it is
/// kept, and given back in both processes.
pub(crate) static LOCK: Lock = Lock::new();

impl Lock {
    pub(crate) const fn new() -> Lock {
        Lock {
            owner: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
        }
    }

    /// Waits for the lock.
    pub(crate) fn take(&self) {
        let own = threads::identity();
        let mut turns = 0_u32;
        while self
            .owner
            .compare_exchange_weak(0, own, Acquire, Relaxed)
            .is_err()
        {
            turns += 1;
            if turns.is_multiple_of(256) {
                // Its owner may be gone: a child of `vfork` outlives the parent.
                sys::end_if_dying();
                // SAFETY: has no requirements.
                unsafe { sys::call(sys::SCHED_YIELD, [0; 6]) };
            }
            core::hint::spin_loop();
        }
    }

    /// Gives it back, and sends what was sent meanwhile.
    pub(crate) fn give(&self) {
        self.owner.store(0, Release);
        if self.waiting.load(Relaxed) == 0 {
            return;
        }
        for words in &threads::this().sent {
            let mut info = [0_u64; 16];
            for (to, word) in info.iter_mut().zip(words) {
                *to = word.load(Relaxed);
            }
            let number = info[0] & 0xffff_ffff;
            if number != 0 {
                words[0].store(0, Relaxed);
                self.waiting.fetch_sub(1, Relaxed);
                let (process, thread) = (sys::process(), u64::from(sys::thread()));
                let info = (&raw const info) as u64;
                // SAFETY: the kernel reads what a signal's handler is told, 128 bytes.
                unsafe {
                    sys::call(
                        sys::RT_TGSIGQUEUEINFO,
                        [process, thread, number, info, 0, 0],
                    )
                };
            }
        }
    }

    /// Whether the calling thread holds it.
    pub(crate) fn is_mine(&self) -> bool {
        self.owner.load(Relaxed) == threads::identity()
    }

    /// Whether a signal waits, since it was sent to the owner. One that was not is a mistake of
    /// ours.
    pub(crate) fn keeps(&self, info: &Info) -> bool {
        if !self.is_mine() {
            return false;
        }
        if info.code > 0 {
            sys::die(b"internal error in the tracer: a fault");
        }
        let number = info.signal.unsigned_abs();
        let sent = &threads::this().sent;
        let is_free = |words: &&[AtomicU64; INFO]| words[0].load(Relaxed) == 0;
        let is_known = |words: &[AtomicU64; INFO]| words[0].load(Relaxed) as u32 == number;
        // As in the kernel, one that waits already stands for both.
        if !sent.iter().any(is_known)
            && let Some(words) = sent.iter().find(is_free)
        {
            let from = core::ptr::from_ref(info).expose_provenance() as u64;
            for (at, word) in words.iter().enumerate().rev() {
                // SAFETY: the kernel has put 128 bytes there.
                word.store(unsafe { sys::word(from + at as u64 * 8) }, Relaxed);
            }
            self.waiting.fetch_add(1, Relaxed);
        }
        true
    }

    /// In a child of `fork`: what was sent is its parent's.
    pub(crate) fn forget_sent(&self) {
        self.waiting.store(0, Relaxed);
        threads::this()
            .sent
            .iter()
            .for_each(|words| words[0].store(0, Relaxed));
    }
}
