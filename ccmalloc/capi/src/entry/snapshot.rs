//! The state of a caller at the call of an allocation: registers, return address and stack.

use allocator::raw::peek;

use super::processor::{RETURN_WORD, STACK_START};

/// Words of the caller's stack that a rule can name.
pub(crate) const STACK_WORDS: usize = 32;
/// Within this many bytes, aligned, all memory is mapped or none.
const PAGE_BYTES: usize = 4096;

/// The words that `processor` saves before it calls a function of `hits` or `samples`, with the
/// caller's stack behind them.
///
/// Invariant: a reference to one lies at the lowest address of the saved words, and the caller's
/// frame follows: its stack pointer was that of word [`STACK_START`].
#[repr(transparent)]
pub(crate) struct Snapshot([usize; STACK_START]);

impl Snapshot {
    /// Where the call returns to.
    pub(crate) fn return_address(&self) -> usize {
        self.0.get(RETURN_WORD).copied().unwrap_or_default()
    }

    /// Word `number`: a register that calls preserve, or from [`STACK_START`] on one of the
    /// caller's stack. `None` if that lies in another page than the last word saved: nothing says
    /// that the stack reaches there, as it may be a coroutine's.
    #[inline]
    pub(crate) fn word(&self, number: usize) -> Option<usize> {
        if let Some(&word) = self.0.get(number) {
            return Some(word);
        }
        let address = self.address_of(number);
        let last = self.address_of(STACK_START - 1);
        let is_near = address / PAGE_BYTES == last / PAGE_BYTES;
        if number >= STACK_START + STACK_WORDS || !is_near {
            return None;
        }
        // SAFETY: aligned, as the stack pointer is, and in the page of a word that the processor
        // has just written, which is mapped while this thread runs on it.
        Some(unsafe { peek(core::ptr::with_exposed_provenance(address)) })
    }

    /// All words of the caller's stack that a rule can name; 0 where there is no memory.
    pub(crate) fn stack(&self) -> [usize; STACK_WORDS] {
        let mut words = [0; STACK_WORDS];
        let bytes = STACK_WORDS * size_of::<usize>();
        if !copy_from(self.address_of(STACK_START), (&raw mut words).cast(), bytes) {
            for (number, word) in words.iter_mut().enumerate() {
                *word = self.word(STACK_START + number).unwrap_or_default();
            }
        }
        words
    }

    fn address_of(&self, number: usize) -> usize {
        let start = (&raw const *self).expose_provenance();
        start + number * size_of::<usize>()
    }
}

/// Copies bytes from any address to `place`, by the kernel; `false` if not all of them are mapped,
/// or the kernel refuses. Keeps `errno`.
pub(crate) fn copy_from(address: usize, place: *mut u8, bytes: usize) -> bool {
    let part = |start: *mut u8| libc::iovec {
        iov_base: start.cast(),
        iov_len: bytes,
    };
    let (to, from) = (
        part(place),
        part(core::ptr::without_provenance_mut(address)),
    );
    let before = crate::errno::get();
    // SAFETY: the kernel checks both ranges, and writes to `place` alone, which is the caller's. By
    // the raw call: no thread can be cancelled in it.
    let copied = unsafe {
        let process = libc::syscall(libc::SYS_getpid);
        let (to, from) = (&raw const to, &raw const from);
        libc::syscall(
            libc::SYS_process_vm_readv,
            process,
            to,
            1_usize,
            from,
            1_usize,
            0_usize,
        )
    };
    crate::errno::set(before);
    usize::try_from(copied) == Ok(bytes)
}
