//! Reads words of the stack, and only where there is memory.
//!
//! A wrong rule leads anywhere. So a page is asked for before the first read, and pages known to
//! be readable are kept in a small table. What only a guess led to is read by the kernel: it may
//! be the stack of a thread that ends just now.

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

/// Reads words, most of them from one page.
#[derive(Debug)]
pub(super) struct Reader {
    /// The page of the last read.
    page: u64,
}

impl Reader {
    /// `sp` is the stack pointer of this thread: its page is there.
    pub(super) fn new(sp: u64) -> Self {
        Reader {
            page: sp >> PAGE_BITS,
        }
    }

    /// The aligned word at `address`, or `None` if it cannot be read.
    pub(super) fn word(&mut self, address: u64, trust: Trust) -> Option<u64> {
        if trust == Trust::Guess {
            return read_by_kernel(address);
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
}

/// The aligned word at `address`, by `process_vm_readv` on this process, which fails where a load
/// would be a fault.
#[cold]
fn read_by_kernel(address: u64) -> Option<u64> {
    const GETPID: u64 = 39;
    const PROCESS_VM_READV: u64 = 310;
    if !address.is_multiple_of(8) {
        return None;
    }
    let mut word = 0_u64;
    let into = [(&raw mut word).expose_provenance() as u64, 8];
    let from = [address, 8];
    let [into, from] = [into.as_ptr(), from.as_ptr()].map(|part| part.expose_provenance() as u64);
    // SAFETY: the kernel writes `word` and reads two pairs of an address and a length.
    let read = unsafe {
        let own = system_call(GETPID, [0; 6]).cast_unsigned();
        system_call(PROCESS_VM_READV, [own, into, 1, from, 1, 0])
    };
    (read == 8).then_some(word)
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
