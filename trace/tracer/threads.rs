//! What is known of each thread, found by the address of its control block: our own variables of
//! threads would be memory that only libc can make.

use core::arch::asm;
use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed},
};

use super::sys::{self, PAGE};

/// Pages that one instruction may open: it has two operands, and each may cross a border; gathers
/// open more and are then let through page by page.
const OPEN: usize = 8;
/// Most threads that live at a time.
pub(crate) const MOST: usize = 4096;
/// Bytes of a thread's stack for our handlers; programs' handlers of signals use it, too. It is
/// replaced if the program has a larger one.
pub(crate) const STACK: u64 = 256 << 10;

/// Words of what a sent signal tells: its number, code, sender and value.
pub(crate) const INFO: usize = 4;
/// What a thread was sent of each of the four signals; 0: none.
type Sent = [[AtomicU64; INFO]; 4];

/// A thread.
pub(crate) struct Thread {
    /// Its control block; 0: free.
    pub(crate) base: AtomicU64,
    /// The kernel's number.
    pub(crate) number: AtomicU32,
    /// Above 0: no accesses are recorded.
    pub(crate) quiet: AtomicU32,
    /// Its stack for handlers, as `sigaltstack` wants it.
    pub(crate) stack: [AtomicU64; 3],
    /// What the program takes for its stack for handlers: address, flags, length.
    pub(crate) own_stack: [AtomicU64; 3],
    /// Pages that are open until the next trap.
    pub(crate) open: [AtomicU64; OPEN],
    /// The signals that the program keeps from the thread; until the trap, all are kept.
    pub(crate) mask: AtomicU64,
    /// The gather or scatter that is run in place until then; 0: none.
    pub(crate) elements: AtomicU64,
    /// [`zones::forgotten`](super::zones::forgotten) at its last fault that nothing explains.
    pub(crate) forgotten: AtomicU64,
    /// Signals that were sent to it while it held the lock.
    pub(crate) sent: Sent,
    /// Not 0: the thread goes on by traps until it is where a signal may find it.
    pub(crate) goes_on: AtomicU32,
    /// Which of our four signals the program takes for blocked.
    pub(crate) blocked: AtomicU64,
    /// Memory of a system call that a child of `vfork` leaves behind: address and length.
    pub(crate) kept: [AtomicU64; 2],
    /// Where it waits as a futex, as the program knows it; the kernel was told the alias.
    pub(crate) waits_at: AtomicU64,
    /// Stack pointer at which `--from`'s function returns; 0: it is not running.
    pub(crate) until: AtomicU64,
    /// And where to.
    pub(crate) back: AtomicU64,
}

pub(crate) static THREADS: [Thread; MOST] = [const {
    Thread {
        base: AtomicU64::new(0),
        number: AtomicU32::new(0),
        quiet: AtomicU32::new(0),
        stack: [const { AtomicU64::new(0) }; 3],
        own_stack: [const { AtomicU64::new(0) }; 3],
        open: [const { AtomicU64::new(0) }; OPEN],
        mask: AtomicU64::new(0),
        elements: AtomicU64::new(0),
        forgotten: AtomicU64::new(0),
        sent: [const { [const { AtomicU64::new(0) }; _] }; _],
        goes_on: AtomicU32::new(0),
        blocked: AtomicU64::new(0),
        kept: [const { AtomicU64::new(0) }; 2],
        waits_at: AtomicU64::new(0),
        until: AtomicU64::new(0),
        back: AtomicU64::new(0),
    }
}; MOST];

/// The address of the calling thread's control block.
pub(crate) fn control_block() -> u64 {
    let base: u64;
    // SAFETY: the platform's convention has the control block begin with its own address.
    unsafe { asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly, preserves_flags)) };
    base
}

/// Whether threads may have a control block together.
static SHARE_BLOCKS: AtomicBool = AtomicBool::new(false);

/// A thread is made that has the control block of the thread that makes it.
pub(crate) fn share_blocks() {
    SHARE_BLOCKS.store(true, Relaxed);
}

/// What tells the calling thread from others, and is not 0.
pub(crate) fn identity() -> u64 {
    if SHARE_BLOCKS.load(Relaxed) {
        sys::thread().into()
    } else {
        control_block()
    }
}

/// The calling thread.
pub(crate) fn this() -> &'static Thread {
    let base = control_block();
    let first = (base.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize;
    for turn in 0..MOST {
        let thread = &THREADS[(first + turn) % MOST];
        let known = thread.base.load(Relaxed);
        if known == base {
            return thread;
        }
        if known == 0
            && thread
                .base
                .compare_exchange(0, base, AcqRel, Relaxed)
                .is_ok()
        {
            return thread;
        }
    }
    // The place of a thread that is no more.
    for turn in 0..MOST {
        let thread = &THREADS[(first + turn) % MOST];
        let (known, number) = (thread.base.load(Relaxed), thread.number.load(Relaxed));
        // SAFETY: sends nothing.
        let result = unsafe {
            let words = [sys::process(), u64::from(number), 0, 0, 0, 0];
            sys::call(sys::TGKILL, words)
        };
        const NO_SUCH: i64 = -3;
        if number != 0 && result == NO_SUCH {
            let swap = thread.base.compare_exchange(known, base, AcqRel, Relaxed);
            if swap.is_ok() {
                return thread;
            }
        }
    }
    sys::die(b"too many threads")
}

/// Wakes threads that wait at aliases of a range which are about to go, or gone: they look again,
/// as each that waits for a futex has to.
pub(crate) fn wake(start: u64, end: u64, delta: i64, is_gone: bool) {
    const WAKE: u64 = 1;
    const PRIVATE: u64 = 128;
    for thread in &THREADS {
        let address = thread.waits_at.load(Relaxed);
        if (start..end).contains(&address) {
            // Who shares it is found by its page; who does not, by its address.
            let operation = if is_gone { WAKE | PRIVATE } else { WAKE };
            let alias = address.wrapping_add_signed(delta);
            // SAFETY: the kernel changes no memory.
            unsafe { sys::call(sys::FUTEX, [alias, operation, i32::MAX as u64, 0, 0, 0]) };
        }
    }
}

/// Whether the process has more than one thread.
pub(crate) fn are_several() -> bool {
    // Links of a folder come third; there are two besides one for each thread.
    let mut status = [0_u64; 18];
    // SAFETY: the path ends with 0, and the kernel writes 144 bytes.
    let result = unsafe {
        let path = c"/proc/self/task".as_ptr() as u64;
        sys::call(sys::STAT, [path, status.as_mut_ptr() as u64, 0, 0, 0, 0])
    };
    result == 0 && status[2] > 3
}

/// A stack for handlers, above a page that faults.
pub(crate) fn new_stack(len: u64) -> [u64; 3] {
    let len = len.next_multiple_of(PAGE);
    let start = sys::memory(PAGE + len);
    // SAFETY: the page was just mapped.
    unsafe { sys::protect(start, PAGE, sys::PROT_NONE) };
    [start + PAGE, 0, len]
}

impl Thread {
    /// The stack for handlers, as `sigaltstack` wants it.
    pub(crate) fn stack_of_handlers(&self) -> [u64; 3] {
        self.larger_stack(STACK)
    }

    /// The same, if it has so many bytes; else another.
    pub(crate) fn larger_stack(&self, least: u64) -> [u64; 3] {
        if self.stack[2].load(Relaxed) < least {
            // A handler may be on the old one.
            for (word, value) in self.stack.iter().zip(new_stack(least)) {
                word.store(value, Relaxed);
            }
        }
        [0, 1, 2].map(|it| self.stack[it].load(Relaxed))
    }

    /// Its place in [`THREADS`].
    pub(crate) fn index(&self) -> usize {
        let bytes = core::ptr::from_ref(self).addr() - THREADS.as_ptr().addr();
        bytes / size_of::<Thread>()
    }

    /// The thread is about to end. What is here is found again by who gets its control block.
    pub(crate) fn end(&self) {
        self.until.store(0, Relaxed);
    }

    /// At the start of a thread, whose control block may have been another's.
    pub(crate) fn begin(&self) {
        self.number.store(sys::thread(), Relaxed);
        self.quiet.store(0, Relaxed);
        self.until.store(0, Relaxed);
        self.goes_on.store(0, Relaxed);
        self.blocked.store(0, Relaxed);
        const DISABLED: u64 = 2;
        for (word, value) in self.own_stack.iter().zip([0, DISABLED, 0]) {
            word.store(value, Relaxed);
        }
        self.open.iter().for_each(|page| page.store(0, Relaxed));
    }
}
