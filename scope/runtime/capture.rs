//! The capture as mapped in this process: its parts by address, and memory for what varies in size.
//!
//! It lies at a fixed address, so that the access path needs no pointer to it. What is written here
//! under [`LOCK`] is plain memory; what accesses count is written by relaxed atomics.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence};

use super::sys;
use crate::capture_format::{Chunk, Header, Node, Site, Thread, WINDOW_ROOM, Window, layout};

/// Address of the capture: far from where the kernel puts programs, libraries, heaps and stacks.
/// Under test, where the sanitizers' own memory does not lie.
pub(crate) const BASE: u64 = if cfg!(test) {
    0x5700_0000_0000
} else {
    0x1000_0000_0000
};

/// Guards all but what accesses write.
///
/// **Lock invariant**: what of the capture accesses do not write, `LOCKED_STATE`, `FREE`, and the
/// lists of compact chunks and of tables are read and written by the holder only, while the capture
/// is mapped. Numbers and offsets in them are 0, or of entries and pieces that were made and not
/// given back.
pub(crate) static LOCK: Lock = Lock {
    held: AtomicU32::new(0),
    alone: AtomicU32::new(0),
    sharers: AtomicU32::new(0),
};

/// A lock that takes no atomic operation, which would be a sixth of the runtime's time, while one
/// thread uses it.
///
/// That thread stores `alone`, then looks for `sharers`. Any other stores `sharers`, has the kernel
/// interrupt the first, and then looks at `alone`: the two stores and loads of at least one of them
/// are in the order in which both see them.
pub(crate) struct Lock {
    held: AtomicU32,
    /// 1 while the only thread has the lock.
    alone: AtomicU32,
    /// 0: one thread uses it; 2: several do; 1: the first may not have noticed yet.
    sharers: AtomicU32,
}

impl Lock {
    #[inline(always)]
    pub(crate) fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        if !self.take_alone() && !self.take() {
            self.wait();
        }
        let result = work();
        // In this order: once `alone` is clear, another thread may hold it. Of several threads none
        // has it alone, and one that says so for a moment looks again.
        self.held.store(0, Ordering::Release);
        self.alone.store(0, Ordering::Release);
        result
    }

    /// Whether several threads use the lock. Who holds it may take "no" for an answer.
    #[inline(always)]
    pub(crate) fn is_shared(&self) -> bool {
        self.sharers.load(Ordering::Relaxed) != 0
    }

    #[inline(always)]
    fn take_alone(&self) -> bool {
        if self.is_shared() {
            return false;
        }
        self.alone.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        let alone = !self.is_shared();
        if !alone {
            self.alone.store(0, Ordering::Release);
        }
        alone
    }

    /// The calling thread is the only one, and there will be others.
    pub(crate) fn will_be_shared(&self) {
        self.sharers.store(2, Ordering::Release);
    }

    /// Before the calling thread, which is not the only one, takes the lock for the first time.
    #[cold]
    pub(crate) fn share(&self) {
        if self.sharers.load(Ordering::Acquire) == 2 {
            return;
        }
        self.sharers.store(1, Ordering::SeqCst);
        // SAFETY: no memory is read or written by the kernel.
        unsafe { sys::system_call(sys::SYS_MEMBARRIER, sys::MEMBARRIER_INTERRUPT) };
        // Far longer than stores take, should a filter of system calls forbid the other.
        sleep();
        while self.alone.load(Ordering::Acquire) != 0 {
            sleep();
        }
        self.sharers.store(2, Ordering::Release);
    }

    #[inline(always)]
    fn take(&self) -> bool {
        self.held
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Takes the lock when it is free. The holder has it for less time than a thread takes to
    /// sleep, unless it does not run: perhaps because this thread does, with a higher priority.
    /// Who gives the lock back need not know of this, which would cost another atomic operation.
    #[cold]
    #[inline(never)]
    fn wait(&self) {
        const TURNS: u32 = 200;
        loop {
            for _ in 0..TURNS {
                core::hint::spin_loop();
                if self.held.load(Ordering::Relaxed) == 0 && self.take() {
                    return;
                }
            }
            sleep();
        }
    }

    /// For a new process, in which the holder no longer exists.
    pub(crate) fn reset(&self) {
        // SAFETY: no memory is read or written by the kernel.
        let refused =
            unsafe { sys::system_call(sys::SYS_MEMBARRIER, sys::MEMBARRIER_REGISTER) } != 0;
        self.held.store(0, Ordering::Relaxed);
        self.alone.store(0, Ordering::Relaxed);
        self.sharers
            .store(2 * u32::from(refused), Ordering::Relaxed);
    }
}

/// Gives up the processor for a while.
fn sleep() {
    static PAUSE: sys::Time = sys::Time {
        seconds: 0,
        nanoseconds: 50_000,
    };
    let pause = (&raw const PAUSE).expose_provenance() as u64;
    // SAFETY: the kernel reads the time, and writes none.
    unsafe { sys::system_call(sys::SYS_NANOSLEEP, [pause, 0, 0, 0, 0, 0]) };
}

pub(crate) fn header() -> *mut Header {
    core::ptr::with_exposed_provenance_mut((BASE + layout::HEADER) as usize)
}

#[inline(always)]
pub(crate) fn chunk(id: u32) -> *mut Chunk {
    at(layout::CHUNKS + u64::from(id) * size_of::<Chunk>() as u64)
}

#[inline(always)]
pub(crate) fn site(id: u32) -> *mut Site {
    at(layout::SITES + u64::from(id) * size_of::<Site>() as u64)
}

pub(crate) fn node(id: u32) -> *mut Node {
    at(layout::NODES + u64::from(id) * size_of::<Node>() as u64)
}

pub(crate) fn thread(id: u16) -> *mut Thread {
    at(layout::THREADS + u64::from(id) * size_of::<Thread>() as u64)
}

pub(crate) fn window(index: u64) -> *mut Window {
    at(layout::WINDOWS + index * WINDOW_ROOM)
}

/// What lies at an offset into the capture.
#[inline(always)]
pub(crate) fn at<T>(offset: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut((BASE + offset) as usize)
}

/// Free pieces by size: powers of two from 64 bytes on. Kept outside the capture; a child
/// process begins with none.
struct Pieces(UnsafeCell<[u64; 40]>);

// SAFETY: used under `LOCK` only.
unsafe impl Sync for Pieces {}

static FREE: Pieces = Pieces(UnsafeCell::new([0; 40]));

fn class(bytes: u64) -> (usize, u64) {
    let room = bytes.max(64).next_power_of_two();
    (room.trailing_zeros() as usize, room)
}

/// Takes zeroed memory from the capture's heap; returns its offset, or 0 if there is no more.
///
/// # Safety
///
/// The caller holds [`LOCK`] and the capture is mapped.
pub(crate) unsafe fn take(bytes: u64) -> u64 {
    let (class, room) = class(bytes);
    if class >= 38 {
        return 0;
    }
    // SAFETY: the lock is held (`# Safety`), so `FREE` and `heap_used` are ours. By the lock
    // invariant a listed piece is nobody's, and its first word is the offset of the next.
    unsafe {
        let first = &raw mut (*FREE.0.get())[class];
        if *first != 0 {
            let offset = *first;
            let piece = at::<u64>(offset);
            *first = *piece;
            core::ptr::write_bytes(piece.cast::<u8>(), 0, bytes as usize);
            return offset;
        }
        let used = &raw mut (*header()).heap_used;
        let offset = (layout::HEAP + *used).next_multiple_of(64);
        if offset + room > layout::HEAP_END {
            return 0;
        }
        *used = offset + room - layout::HEAP;
        offset
    }
}

/// Gives memory back.
///
/// # Safety
///
/// As for [`take`], of which `offset` comes, with the same `bytes`; nobody uses it any more.
pub(crate) unsafe fn give(offset: u64, bytes: u64) {
    let (class, _) = class(bytes);
    // SAFETY: the lock is held, and the piece has `bytes` and is nobody's (`# Safety`): its first
    // word may be written, and it is of the class that `bytes` has.
    unsafe {
        let first = &raw mut (*FREE.0.get())[class];
        *at::<u64>(offset) = *first;
        *first = offset;
    }
}

/// Forgets what was given back, for a new capture.
///
/// # Safety
///
/// As for [`take`].
pub(crate) unsafe fn forget() {
    // SAFETY: the lock is held (`# Safety`), under which `FREE` is used only.
    unsafe { *FREE.0.get() = [0; 40] }
}
