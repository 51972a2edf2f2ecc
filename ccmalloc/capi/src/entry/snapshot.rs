//! The state of a caller at the call of an allocation: registers, return address and stack.

use super::processor::{RETURN_WORD, STACK_START};
use super::{stack, thread_state};

/// Words of the caller's stack that a rule can name.
pub(crate) const STACK_WORDS: usize = 32;
/// Within this many bytes, aligned, all memory is mapped or none.
const PAGE_BYTES: usize = 4096;

/// The words that `processor` saves before it calls a function of `hits` or `samples`, with the
/// caller's stack behind them.
///
/// Invariant: a reference to one lies at the lowest address of the saved words, and the caller's
/// frame follows: its stack pointer was that of word [`STACK_START`]. All words up to it may be
/// read.
#[repr(transparent)]
pub(crate) struct Snapshot([usize; STACK_START]);

impl Snapshot {
    /// Where the call returns to.
    pub(crate) fn return_address(&self) -> usize {
        self.0.get(RETURN_WORD).copied().unwrap_or_default()
    }

    /// How many bytes the thread's stack has left; 0 if this is not known to be on it.
    pub(crate) fn stack_room(&self) -> usize {
        let here: *const usize = self.0.as_ptr();
        match is_on_stack(here, here) {
            true => here.addr() - thread_state().stack_start.get(),
            false => 0,
        }
    }

    /// Word `number`: a register that calls preserve, or from [`STACK_START`] on one of the caller's
    /// stack. `None` where that would leave the thread's stack.
    pub(crate) fn word(&self, number: usize) -> Option<usize> {
        if let Some(&word) = self.0.get(number) {
            return Some(word);
        }
        let start: *const usize = (&raw const *self).cast();
        let word = start.wrapping_add(number);
        let last = self.0.as_ptr().wrapping_add(STACK_START - 1).addr();
        // The stack's lowest page is mapped: the saved words lie in it.
        let is_near = word.addr() / PAGE_BYTES == last / PAGE_BYTES;
        if number >= STACK_START + STACK_WORDS || !(is_near || is_on_stack(start, word)) {
            return None;
        }
        // SAFETY: aligned, as the stack pointer is, and mapped: in the page of a word that was just
        // written, or between two bounds of the thread's stack. Whatever is there is a number.
        Some(unsafe { peek(word) })
    }
}

/// Reads a word that other code may be using for anything.
///
/// # Safety
/// - `word` is aligned, and its bytes are mapped.
pub(crate) unsafe fn peek(word: *const usize) -> usize {
    let number;
    // SAFETY: the bytes are mapped, by the caller's promise; nothing is written. As the processor
    // reads it, no rule of Rust's about who else uses the word applies.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!("mov {}, qword ptr [{}]", lateout(reg) number, in(reg) word,
            options(readonly, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!("ldr {}, [{}]", lateout(reg) number, in(reg) word,
            options(readonly, nostack, preserves_flags));
    }
    number
}

/// Whether both lie on the stack that the thread was started with: not so on a coroutine's, or a
/// signal's.
#[cold]
fn is_on_stack(start: *const usize, word: *const usize) -> bool {
    let state = thread_state();
    if state.stack_end.get() == 0 {
        let (start, end) = stack::of_thread().unwrap_or((1, 1));
        state.stack_start.set(start);
        state.stack_end.set(end);
    }
    let stack = state.stack_start.get()..state.stack_end.get();
    stack.contains(&start.addr()) && stack.contains(&(word.addr() + size_of::<usize>() - 1))
}
