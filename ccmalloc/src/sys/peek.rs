//! Words of a value of any type, as numbers.

/// The instruction that loads a word.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! load {
    () => {
        "mov {number}, qword ptr [{word}]"
    };
}
#[cfg(all(target_arch = "aarch64", not(miri)))]
macro_rules! load {
    () => {
        "ldr {number}, [{word}]"
    };
}

/// Returns the word in memory at `word`; 0 under Miri and on other processors.
///
/// The word may be padding, and another thread may be changing it: Rust cannot read it then. So
/// the processor does. By Rust's rules this function reads nothing and returns an arbitrary
/// number, and its caller must be right whatever it returns.
///
/// # Safety
/// - `word` is aligned, and its 8 bytes lie in a value that outlives the call.
#[inline]
pub unsafe fn peek(word: *const usize) -> usize {
    #[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
    {
        let number: usize;
        // SAFETY: the bytes are mapped, by the caller's promise. Nothing is written, and the stack
        // and the flags stay as they are.
        unsafe {
            core::arch::asm!(
                load!(),
                word = in(reg) word,
                number = lateout(reg) number,
                options(readonly, nostack, preserves_flags),
            );
        }
        number
    }
    #[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
    {
        let _ = word;
        0
    }
}
