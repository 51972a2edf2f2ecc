//! What a thread keeps of its regions, and of the bytes that they have touched.

use crate::capture_format::{Track, layout};

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
    /// The innermost open region, by its number in the tree.
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
    /// version that is still open has touched these bytes (*Skadu*, theorem 1). 0: nobody has.
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
