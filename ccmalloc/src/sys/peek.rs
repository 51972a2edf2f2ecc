//! Words of a value of any type, as numbers.

use core::arch::asm;

/// Returns the word in memory at `word`.
///
/// The word may be padding, and another thread may be changing it: Rust cannot read it then. So
/// the processor does. By Rust's rules this function reads nothing and returns an arbitrary
/// number, and its caller must be right whatever it returns.
///
/// # Safety
/// - `word` is aligned, and its 8 bytes lie in a value that outlives the call.
#[inline]
pub(crate) unsafe fn peek(word: *const usize) -> usize {
    let number: usize;
    // SAFETY: the bytes are mapped, by the caller's promise. Nothing is written, and the stack and
    // the flags stay as they are.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!(
            "mov {number}, qword ptr [{word}]",
            word = in(reg) word,
            number = lateout(reg) number,
            options(readonly, nostack, preserves_flags),
        );
        #[cfg(target_arch = "aarch64")]
        asm!(
            "ldr {number}, [{word}]",
            word = in(reg) word,
            number = lateout(reg) number,
            options(readonly, nostack, preserves_flags),
        );
    }
    number
}
