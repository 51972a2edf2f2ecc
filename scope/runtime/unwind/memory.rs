//! Reads words of the stack, and only where there is memory.
//!
//! A wrong rule leads anywhere. So a page is asked for before the first read, and pages known to
//! be readable are kept in a small table. What only a guess led to is read by the kernel: it may
//! be the stack of a thread that ends just now. The kernel reads several frames at once.

use core::mem::MaybeUninit;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::super::sys::system_call;

const PAGE_BITS: u32 = 12;
const KNOWN: usize = 4096;

/// Numbers of readable pages, each at its number modulo the length.
static READABLE: [AtomicU64; KNOWN] = [const { AtomicU64::new(0) }; KNOWN];

/// How far an address can be relied on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trust {
    /// It follows from unwind information.
    Rule,
    /// It may be anything.
    Guess,
}

/// Words that the kernel reads at once: a call of it costs as much as 4 KiB that it copies.
const COPIED: usize = 128;
/// Of these so many are below the word that is asked for. The next may be there.
const BELOW: u64 = 8;

/// Reads words, most of them from one page.
#[derive(Debug)]
pub(super) struct Reader {
    /// The page of the last read.
    page: u64,
    /// What the kernel has read: the first `copied` words are those from `copy_start` on.
    copy: [MaybeUninit<u64>; COPIED],
    copy_start: u64,
    copied: usize,
}

impl Reader {
    /// `sp` is the stack pointer of this thread: its page is there.
    pub(super) fn new(sp: u64) -> Self {
        Reader {
            page: sp >> PAGE_BITS,
            copy: [MaybeUninit::uninit(); COPIED],
            copy_start: 0,
            copied: 0,
        }
    }

    /// The aligned word at `address`, or `None` if it cannot be read.
    pub(super) fn word(&mut self, address: u64, trust: Trust) -> Option<u64> {
        if trust == Trust::Guess {
            return self.word_by_kernel(address);
        }
        let page = address >> PAGE_BITS;
        if page != self.page && !self.turn(page) {
            return None;
        }
        self.word_of_page(address)
    }

    /// The aligned word at `address`, or `None` if it is not in the page of the last read.
    #[inline(always)]
    pub(super) fn word_of_page(&self, address: u64) -> Option<u64> {
        if address >> PAGE_BITS != self.page || !address.is_multiple_of(8) {
            return None;
        }
        let address = core::ptr::with_exposed_provenance::<u64>(usize::try_from(address).ok()?);
        // SAFETY: the address is aligned and its page is readable. What lies there may be
        // anything, and any bytes are a number; the volatile read keeps the compiler from assuming
        // more.
        Some(unsafe { address.read_volatile() })
    }

    /// Turns to another page, if that is readable.
    fn turn(&mut self, page: u64) -> bool {
        let known = &READABLE[usize::try_from(page).unwrap_or(0) % KNOWN];
        let there = page != 0 && (known.load(Relaxed) == page || is_readable(page));
        if there {
            known.store(page, Relaxed);
            self.page = page;
        }
        there
    }

    /// The aligned word at `address`, by `process_vm_readv` on this process, which fails where a
    /// load would be a fault.
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
        const GETPID: u64 = 39;
        const PROCESS_VM_READV: u64 = 310;
        // In the same page, so that it can be read if `address` can.
        let page = address >> PAGE_BITS << PAGE_BITS;
        self.copy_start = page.max(address.saturating_sub(BELOW * 8));
        let into = [
            self.copy.as_mut_ptr().expose_provenance() as u64,
            size_of_val(&self.copy) as u64,
        ];
        let from = [self.copy_start, into[1]];
        let [into, from] =
            [into.as_ptr(), from.as_ptr()].map(|part| part.expose_provenance() as u64);
        // SAFETY: the kernel reads two pairs of an address and a length, and writes at most the
        // length of `copy` to it, which nobody else uses.
        let read = unsafe {
            let own = system_call(GETPID, [0; 6]).cast_unsigned();
            system_call(PROCESS_VM_READV, [own, into, 1, from, 1, 0])
        };
        // Where a page cannot be read, the words before it are.
        self.copied = usize::try_from(read).map_or(0, |bytes| bytes / 8);
    }
}

/// Asks the kernel to read a set of signals from the page for a command that does not exist. It
/// looks at the set first: an unreadable page is an error of its own.
#[cold]
fn is_readable(page: u64) -> bool {
    const SIGPROCMASK: u64 = 14;
    const UNREADABLE: i64 = -14;
    // SAFETY: the call changes nothing.
    unsafe { system_call(SIGPROCMASK, [u64::MAX, page << PAGE_BITS, 0, 8, 0, 0]) != UNREADABLE }
}
