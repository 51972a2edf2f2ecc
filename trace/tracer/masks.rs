//! Signals that we need, and which of them a thread is kept from.

use inside::sys::block_signals;
pub(crate) use inside::sys::restore_signals as restore;

pub(crate) const SIGTRAP: i32 = 5;
pub(crate) const SIGBUS: i32 = 7;
pub(crate) const SIGSEGV: i32 = 11;
pub(crate) const SIGSYS: i32 = 31;
/// Those that we need.
pub(crate) const FOUR: [i32; 4] = [SIGTRAP, SIGBUS, SIGSEGV, SIGSYS];
/// The signals that may never be blocked.
pub(crate) const OURS: u64 =
    1 << (SIGTRAP - 1) | 1 << (SIGBUS - 1) | 1 << (SIGSEGV - 1) | 1 << (SIGSYS - 1);
/// With those that an instruction may raise, SIGILL and SIGFPE.
pub(crate) const OF_INSTRUCTIONS: u64 = OURS | 1 << 3 | 1 << 7;

/// Keeps handlers of all other signals from the thread; which were kept before.
pub(crate) fn block() -> u64 {
    block_signals(!OURS)
}
