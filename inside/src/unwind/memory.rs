//! Reads words of the stack, and only where there is memory.
//!
//! A wrong rule leads anywhere, and what lies there may be unmapped at any moment: by this thread
//! before the next walk, by another one during this walk. So only the thread's own stack is read by
//! loads, from the stack pointer up, which stays mapped as long as its frames do. All else is read
//! by the kernel, which fails where a load would be a fault, and nothing is remembered of it beyond
//! the walk.

use core::mem::MaybeUninit;

use crate::sys::system_call;

const PAGE: u64 = 4096;
/// Words that the kernel reads at once: a call of it costs as much as 4 KiB that it copies.
const COPIED: usize = 128;
/// How many of these lie below the word that is asked for. The next may be there.
const BELOW: u64 = 8;
/// How deep the first thread's stack is read by loads. The kernel maps nothing else so close below
/// its end, whatever the limit of its size is.
const FIRST_STACK: u64 = 64 << 20;

unsafe extern "C" {
    static __libc_stack_end: u64;
}

/// Reads words for one walk.
///
/// **Window invariant**: the `len` bytes from `start` on are mapped until the function returns that
/// the walk begins with. A thread that has one `start` again has the same `len` again.
#[derive(Debug)]
pub(super) struct Reader {
    start: u64,
    len: u64,
    /// What the kernel has read: the first `copied` words are those from `copy_start` on.
    copy: [MaybeUninit<u64>; COPIED],
    copy_start: u64,
    copied: usize,
}

impl Reader {
    /// # Safety
    ///
    /// `sp` is the stack pointer of this thread, or mapped to the end of its memory page; this
    /// thread's own stack is at `own`, or `own` is zeros.
    #[inline(always)]
    pub(super) unsafe fn new(sp: u64, own: [u64; 2]) -> Self {
        // SAFETY: the dynamic linker has written it before it ran any code of others.
        let first_end = unsafe { __libc_stack_end }.next_multiple_of(PAGE);
        // The window invariant holds by what `sp` is: the page that it is in is there in any case,
        // and a stack that the thread runs on has no holes above the stack pointer.
        let end = if sp.wrapping_sub(own[0]) < own[1].wrapping_sub(own[0]) {
            own[1]
        } else if first_end.wrapping_sub(sp) <= FIRST_STACK {
            first_end
        } else {
            (sp / PAGE + 1) * PAGE
        };
        Reader {
            start: sp,
            len: end - sp,
            copy: [MaybeUninit::uninit(); COPIED],
            copy_start: 0,
            copied: 0,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Whether `address` is that of a word in the window.
    #[inline(always)]
    pub(super) fn is_in_window(&self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.len && address.is_multiple_of(8)
    }

    /// The word at `address`, or `None` if it is not aligned or not in the window.
    #[inline(always)]
    pub(super) fn word_of_window(&self, address: u64) -> Option<u64> {
        if !self.is_in_window(address) {
            return None;
        }
        let address = core::ptr::with_exposed_provenance::<u64>(address as usize);
        // SAFETY: the address is aligned, and its 8 bytes are mapped by the window invariant: the
        // window ends at a multiple of 8. Any bytes are a number; the volatile read keeps the
        // compiler from assuming more.
        Some(unsafe { address.read_volatile() })
    }

    /// The word at `address`, or `None` if it is not aligned or cannot be read.
    #[inline(always)]
    pub(super) fn word(&mut self, address: u64) -> Option<u64> {
        self.word_of_window(address)
            .or_else(|| self.word_by_kernel(address))
    }

    /// The aligned word at `address`, by `process_vm_readv` on this process, which fails where a
    /// load would be a fault.
    #[cold]
    fn word_by_kernel(&mut self, address: u64) -> Option<u64> {
        if !address.is_multiple_of(8) {
            return None;
        }
        let index = |start| usize::try_from(address.wrapping_sub(start) / 8).ok();
        let known = index(self.copy_start).filter(|&index| index < self.copied);
        let index = known.or_else(|| {
            self.refill(address);
            index(self.copy_start).filter(|&index| index < self.copied)
        })?;
        // SAFETY: the kernel has written the first `copied` words, and `index` is less.
        Some(unsafe { self.copy.get(index)?.assume_init() })
    }

    /// Has the kernel copy the words around `address`, as far as they can be read.
    #[cold]
    fn refill(&mut self, address: u64) {
        // In the same page, so that it can be read if `address` can.
        let page = address & !(PAGE - 1);
        self.copy_start = page.max(address.saturating_sub(BELOW * 8));
        // SAFETY: `copy` has room for so many words.
        self.copied = unsafe { copy_words(self.copy_start, self.copy.as_mut_ptr().cast(), COPIED) };
    }
}

/// Copies the words from the address `from` on, as far as they can be read, and returns how many.
pub(super) fn copy(from: u64, into: &mut [u64]) -> usize {
    // SAFETY: `into` has room for so many words.
    unsafe { copy_words(from, into.as_mut_ptr(), into.len()) }
}

/// The same, by `process_vm_readv` on this process.
///
/// # Safety
///
/// `len` words may be written to `into`, which nobody else uses.
unsafe fn copy_words(from: u64, into: *mut u64, len: usize) -> usize {
    const GETPID: u64 = 39;
    const PROCESS_VM_READV: u64 = 310;
    let len = 8 * len as u64;
    let [into, from] = [[into.expose_provenance() as u64, len], [from, len]];
    let parts = [into.as_ptr(), from.as_ptr()].map(|part| part.expose_provenance() as u64);
    // SAFETY: the kernel reads two pairs of an address and a length, which live until it is done,
    // and writes at most the first length to `into`, which has room for it (`# Safety`).
    let read = unsafe {
        let own = system_call(GETPID, [0; 6]).cast_unsigned();
        system_call(PROCESS_VM_READV, [own, parts[0], 1, parts[1], 1, 0])
    };
    // Where a page cannot be read, the words before it are.
    usize::try_from(read).map_or(0, |bytes| bytes / 8)
}
