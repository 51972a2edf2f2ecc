//! What every access of a program runs through that was built for regions.
//!
//! Compiled into an archive (`regions_archive.rs`) that is linked into programs, and into the
//! library. Most accesses end here: those outside the heap, and those of bytes that the innermost
//! open region, and so all of them, have touched.

use super::super::local::{Local, local};
use super::{ccscope_region_load, ccscope_region_store};
use crate::format::{Track, layout};

/// Pages whose records a thread finds at once.
pub(crate) const LINES: usize = 4096;
pub(crate) const PAGE: u64 = 4096;
pub(crate) const BLOCK: u64 = 64;

/// What a thread needs for its regions; in the capture, where a tool finds the first field and
/// the open regions that lie [`layout::OPENS`] behind.
#[repr(C)]
pub(crate) struct State {
    pub(crate) track: Track,
    /// Version of the innermost open region; `u32::MAX` until that has touched anything.
    pub(crate) current: u32,
    /// Number of this track.
    pub(crate) number: u32,
    pub(crate) stack: u64,
    pub(crate) stack_len: u64,
    /// Where on the stack this module works for the thread; 0 while it does not.
    pub(crate) working: u64,
    /// Of the tree.
    pub(crate) node: u32,
    pub(crate) root: u32,
    pub(crate) calls: u64,
    /// Calls beyond the room for them.
    pub(crate) missed: u64,
    pub(crate) links: u64,
    pub(crate) links_room: u64,
    /// Opens of spans that may be entered again.
    pub(crate) spans: u64,
    /// The newest version.
    pub(crate) version: u32,
    /// The value of `shadow::EPOCH` that `lines` fits.
    pub(crate) epoch: u32,
    /// Records and list entries that are set aside for this thread.
    pub(crate) records: [u32; 2],
    pub(crate) entries: [u32; 2],
    pub(crate) free_entry: u32,
    pub(crate) lines: [Line; LINES],
}

const _: () = assert!(size_of::<State>() as u64 <= layout::OPENS);

/// A page and where its blocks are; [`ELSEWHERE`] if it is not of the heap.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Line {
    pub(crate) page: u64,
    pub(crate) blocks: *mut Block,
}

pub(crate) const ELSEWHERE: *mut Block = core::ptr::without_provenance_mut(1);

/// 64 bytes of memory as one thread has touched them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Block {
    /// A bit for each byte that was touched last under `stamp`.
    pub(crate) mask: u64,
    /// The version of the innermost region that was open then: every region with at most this
    /// version that is still open has touched these bytes (000, theorem 1). 0: nobody has.
    pub(crate) stamp: u32,
    /// The other bytes, with older stamps.
    pub(crate) next: u32,
}

/// Where the thread looks for a page's blocks.
///
/// # Safety
///
/// `state` is a mapped track.
#[inline(always)]
pub(crate) unsafe fn line(state: *mut State, page: u64) -> *mut Line {
    // Arrays that lie a power of two apart are often read together.
    let index = (page ^ page >> 8) as usize % LINES;
    // SAFETY: `state` is a mapped track (`# Safety`).
    unsafe { &raw mut (*state).lines[index] }
}

/// The bits of `size` bytes at `address`, which lie in one block.
#[inline(always)]
pub(crate) fn mask(address: u64, size: u64) -> u64 {
    (u64::MAX >> (64 - size)) << (address % BLOCK)
}

/// One access of `size` bytes, at least 1, which the program makes next.
#[inline(always)]
pub(crate) fn access<const WRITE: bool>(address: u64, size: u64) {
    let local: *mut Local = local();
    // SAFETY: the block is this thread's, and so is its state, which is mapped as long as it is not
    // null. A record of a page is never given back.
    unsafe {
        let state = (*local).track;
        if state.is_null() {
            return rare::<WRITE>(address, size);
        }
        let line = line(state, address / PAGE);
        if (*line).page != address / PAGE {
            return rare::<WRITE>(address, size);
        }
        if (*line).blocks == ELSEWHERE {
            return elsewhere::<WRITE>(local);
        }
        let block = *(*line).blocks.add((address % PAGE / BLOCK) as usize);
        if size > BLOCK - address % BLOCK
            || block.stamp < (*state).current
            || mask(address, size) & !block.mask != 0
        {
            return rare::<WRITE>(address, size);
        }
        count::<WRITE>(local, state);
    }
}

/// # Safety
///
/// Both are the calling thread's.
#[inline(always)]
pub(crate) unsafe fn count<const WRITE: bool>(local: *mut Local, state: *mut State) {
    // SAFETY: both are the calling thread's (`# Safety`), so nobody else uses them.
    unsafe {
        let track = &raw mut (*state).track;
        if WRITE {
            (*track).writes += 1;
        } else {
            (*track).reads += 1;
        }
        (*local).now += 1;
    }
}

/// # Safety
///
/// The block is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn elsewhere<const WRITE: bool>(local: *mut Local) {
    // SAFETY: the block is the calling thread's (`# Safety`).
    unsafe {
        (*local).other[usize::from(WRITE)] += 1;
        (*local).now += 1;
    }
}

#[inline(always)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    if WRITE {
        ccscope_region_store(address, size);
    } else {
        ccscope_region_load(address, size);
    }
}
