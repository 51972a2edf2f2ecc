//! Who has an arena, and who may change which of its slots are free.

use core::hint::spin_loop;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::sys;

/// How often the owner looks whether a sweep is over before it lets other threads run.
const SPINS: usize = 200;

/// Who has an arena.
pub(crate) struct Holder(AtomicU8);

/// A thread or a first-class heap, for as long as it likes. Zero bytes are this.
pub(crate) const OWNED: u8 = 0;
/// Nobody.
const FREE: u8 = 1;
/// A thread, for one operation.
pub(crate) const BORROWED: u8 = 2;

impl Holder {
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(OWNED))
    }

    /// Takes the arena if nobody has it.
    pub(crate) fn take(&self, taken: u8) -> bool {
        // Acquire: what its holders before did to it has happened.
        self.0.load(Ordering::Relaxed) == FREE
            && (self.0)
                .compare_exchange(FREE, taken, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Whether somebody has it for longer than one operation.
    #[inline]
    pub(crate) fn is_owned(&self) -> bool {
        self.0.load(Ordering::Relaxed) == OWNED
    }

    /// Says who has an arena that is new.
    pub(crate) fn set(&self, holder: u8) {
        self.0.store(holder, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.0.store(FREE, Ordering::Release);
    }
}

/// Guards what the chunks of an arena say of their slots. The arena's owner takes it for each slot
/// that it takes or frees; a sweep passes arenas by whose owners have it.
pub(crate) struct SlotsLock(AtomicU32);

/// Nobody. Zero bytes are this; any other value but `OWNER` is the process id of a sweep.
const NOBODY: u32 = 0;
const OWNER: u32 = u32::MAX;

impl SlotsLock {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(NOBODY))
    }

    #[inline]
    fn change(&self, from: u32, to: u32) -> Result<u32, u32> {
        (self.0).compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
    }

    /// For the arena's owner, which does not have it yet: waits for a sweep.
    #[inline]
    pub(crate) fn enter(&self) -> SlotsGuard<'_> {
        if self.change(NOBODY, OWNER).is_err() {
            self.wait();
        }
        SlotsGuard(self)
    }

    #[cold]
    fn wait(&self) {
        for spins in 1_usize.. {
            let holder = self.0.load(Ordering::Relaxed);
            // The process id of another: that of a sweep when this process was forked, which nobody
            // ends. It left everything whole: all that it changes is one number, at its end.
            let is_over = holder == NOBODY || (holder != OWNER && holder != sys::process_id());
            if is_over && self.change(holder, OWNER).is_ok() {
                return;
            }
            if spins.is_multiple_of(SPINS) {
                sys::yield_now();
            } else {
                spin_loop();
            }
        }
    }

    /// For a sweep: `None` if the owner or another sweep has it.
    pub(crate) fn try_enter(&self) -> Option<SlotsGuard<'_>> {
        if self.0.load(Ordering::Relaxed) != NOBODY {
            return None;
        }
        let taken = self.change(NOBODY, sys::process_id());
        // Not `then_some`: a guard that is made and dropped would take the lock from its holder.
        taken.is_ok().then(|| SlotsGuard(self))
    }
}

/// See [`SlotsLock`].
pub(crate) struct SlotsGuard<'a>(&'a SlotsLock);

impl Drop for SlotsGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.0.store(NOBODY, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_sweep_that_comes_too_late_leaves_the_lock_to_its_holder() {
        let (lock, is_held) = (SlotsLock::new(), AtomicBool::new(false));
        let hold = |_guard: SlotsGuard<'_>| {
            assert!(!is_held.swap(true, Ordering::Relaxed));
            (0..50).for_each(|_| spin_loop());
            assert!(is_held.swap(false, Ordering::Relaxed));
        };
        let rounds = if cfg!(miri) { 100 } else { 200_000 };
        std::thread::scope(|scope| {
            scope.spawn(|| (0..rounds).for_each(|_| hold(lock.enter())));
            for _ in 0..2 {
                scope.spawn(|| (0..rounds).filter_map(|_| lock.try_enter()).for_each(hold));
            }
        });
    }
}
