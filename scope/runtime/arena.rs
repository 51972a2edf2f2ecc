//! The capture as mapped in this process: its parts by address, and memory for what varies in size.
//!
//! It lies at a fixed address, so that the access path needs no pointer to it. What is written here
//! under [`LOCK`] is plain memory; what accesses count is written by relaxed atomics.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use super::sys;
use crate::format::{Chunk, Header, Node, Site, Thread, WINDOW_ROOM, Window, layout};

/// Address of the capture: far from where the kernel puts programs, libraries, heaps and stacks.
pub(crate) const BASE: u64 = 0x1000_0000_0000;

/// Guards all but what accesses write.
pub(crate) static LOCK: Lock = Lock(AtomicU32::new(0));

pub(crate) struct Lock(AtomicU32);

impl Lock {
    #[inline(always)]
    pub(crate) fn with<R>(&self, work: impl FnOnce() -> R) -> R {
        if !self.take() {
            self.wait();
        }
        let result = work();
        self.0.store(0, Ordering::Release);
        result
    }

    #[inline(always)]
    fn take(&self) -> bool {
        self.0
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
        static PAUSE: sys::Time = sys::Time {
            seconds: 0,
            nanoseconds: 50_000,
        };
        loop {
            for _ in 0..TURNS {
                core::hint::spin_loop();
                if self.0.load(Ordering::Relaxed) == 0 && self.take() {
                    return;
                }
            }
            let pause = (&raw const PAUSE).expose_provenance() as u64;
            // SAFETY: the kernel reads the time, and writes none.
            unsafe { sys::system_call(sys::SYS_NANOSLEEP, [pause, 0, 0, 0, 0, 0]) };
        }
    }

    /// For a child process, in which the holder no longer exists.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
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

/// Free pieces by size: powers of two from 64 bytes on. Kept outside the capture; a child process
/// begins with none.
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
    // SAFETY: by the lock. A free piece's first word is the offset of the next.
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
    // SAFETY: by the lock and the caller's promise.
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
    // SAFETY: by the lock.
    unsafe { *FREE.0.get() = [0; 40] }
}
