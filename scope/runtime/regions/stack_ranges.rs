//! Where the stacks of threads are.

use core::sync::atomic::{AtomicU64, Ordering};

use super::super::{capture::header, local, sys};
use super::state_of;

unsafe extern "C" {
    static __libc_stack_end: u64;
}

/// Where the first thread's variables are, which other threads have on their stacks.
static VARIABLES: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Address and length of the calling thread's.
pub(super) fn own() -> (u64, u64) {
    /// Nobody else is mapped so close below the first thread's stack.
    const GAP: u64 = 128 << 20;
    let mark = 0_u8;
    let here = (&raw const mark) as u64;
    // SAFETY: libc writes it at the start.
    let end = unsafe { __libc_stack_end }.next_multiple_of(4096);
    if (end - GAP..end).contains(&here) {
        let (start, thread_pointer) = local::variables();
        VARIABLES[0].store(start & !4095, Ordering::Relaxed);
        VARIABLES[1].store(thread_pointer, Ordering::Relaxed);
        // Arguments and environment lie above.
        return (end - GAP, GAP + (8 << 20));
    }
    let [start, end] = sys::thread_stack();
    (start, end - start)
}

/// Whether the stack of a thread that has regions is at `address`, that of a page, or the first
/// thread's variables, or the stack on which the calling thread handles signals.
pub(super) fn contain(address: u64) -> bool {
    let [start, end] = [0, 1].map(|at| VARIABLES[at].load(Ordering::Relaxed));
    if (start..end).contains(&address) {
        return true;
    }
    // SAFETY: the capture is mapped. Others may just begin or end: then the epoch changes.
    unsafe {
        let tracks = AtomicU64::from_ptr(&raw mut (*header()).tracks).load(Ordering::Acquire);
        (0..tracks).map(state_of).any(|state| {
            let len = AtomicU64::from_ptr(&raw mut (*state).stack_len).load(Ordering::Relaxed);
            let stack = AtomicU64::from_ptr(&raw mut (*state).stack).load(Ordering::Relaxed);
            address.wrapping_sub(stack) < len
        }) || sys::signal_stack_contains(address)
    }
}
