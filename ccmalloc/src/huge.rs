//! Huge pages in the mapping of one large object.
//!
//! A huge page is resident as a whole from its first byte on. So they are asked for only where the
//! object fills them: not for what rounding adds to the mapping, and not for an object that is
//! requested as zeros, of which a program may touch little.

use core::ptr::NonNull;

use crate::extents::{Chunks, ones};
use crate::geometry::{CHUNK_BYTES, PAGE_BYTES, round_up};
use crate::options::{self, HugeMode};
use crate::sys;

/// Objects that end this far behind the start of their mappings ask for huge pages. The
/// second-level TLB reaches as far with small ones, and fresh huge pages can cost more: a
/// hypervisor may have to find them first.
const HUGE_FROM_BYTES: usize = 8 << 20;
/// A huge page may have this many bytes that the object does not fill.
const UNFILLED_BYTES_MAX: usize = 64 << 10;
/// From this many bytes on, what lies behind an object in its last chunk is not left resident.
const TAIL_BYTES_MIN: usize = 256 << 10;

/// Which chunks of a mapping were advised to have huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HugePages {
    No = 0,
    /// None, now and when the object grows: it was requested as zeros.
    Never = 1,
    /// All but the last chunk.
    Front = 2,
    All = 3,
}

impl HugePages {
    /// From the two lowest bits of a number.
    pub(crate) fn from_bits(bits: usize) -> Self {
        match bits & 3 {
            0 => Self::No,
            1 => Self::Never,
            2 => Self::Front,
            _ => Self::All,
        }
    }

    /// What suits a mapping of `bytes` whose object ends at `end`, counted from its start.
    pub(crate) fn suiting(bytes: usize, end: usize) -> Self {
        match options::huge_pages() {
            HugeMode::Always => Self::All,
            HugeMode::Filled if end < HUGE_FROM_BYTES => Self::No,
            HugeMode::Filled if bytes - end <= UNFILLED_BYTES_MAX => Self::All,
            HugeMode::Filled => Self::Front,
            HugeMode::Never => Self::No,
        }
    }

    /// The advised chunks among the last `count` of a mapping, or all `count` of it: see
    /// [`Chunks::huge`].
    pub(crate) fn mask(self, count: usize) -> u64 {
        match self {
            Self::No | Self::Never => 0,
            Self::Front => ones(count - 1),
            Self::All => ones(count),
        }
    }

    /// The last `bytes` of a mapping, from `start` on, or all of it.
    pub(crate) fn tail(self, start: NonNull<u8>, bytes: usize) -> Chunks {
        let chunks = Chunks::new(start.as_ptr(), bytes / CHUNK_BYTES);
        let huge = self.mask(chunks.count);
        Chunks { huge, ..chunks }
    }

    /// Gives `advice` on the chunks of a mapping for which this asks for huge pages.
    fn advise(self, start: *mut u8, bytes: usize) {
        match self {
            Self::No | Self::Never => {}
            Self::Front => {
                sys::advise_huge(start, bytes - CHUNK_BYTES);
            }
            Self::All => {
                sys::advise_huge(start, bytes);
            }
        }
    }

    /// Prepares chunks, in no use yet, for an object that ends at `end`, counted from their start.
    pub(crate) fn apply(self, chunks: Chunks, end: usize) {
        if chunks.zero {
            // Before anything in them is touched: a small page excludes a huge one.
            return self.advise(chunks.start, chunks.bytes());
        }
        let mask = self.mask(chunks.count);
        if mask & !chunks.huge != 0 {
            self.advise(chunks.start, chunks.bytes());
        }
        let surplus = chunks.huge & !mask;
        let surplus_from = surplus.trailing_zeros() as usize;
        if surplus != 0 {
            let from = chunks.start.wrapping_add(surplus_from * CHUNK_BYTES);
            sys::advise_small(from, chunks.bytes() - surplus_from * CHUNK_BYTES);
        }
        clear_tail(chunks.start, end, chunks.bytes());
    }

    /// Undoes [`unify`](Self::unify).
    pub(crate) fn undo(self, start: NonNull<u8>, bytes: usize) {
        if self == Self::Front {
            let last = bytes - CHUNK_BYTES;
            sys::advise_small(start.as_ptr().wrapping_add(last), CHUNK_BYTES);
        }
    }

    /// Makes the advice of a mapping one, so that the OS can move it as a whole.
    pub(crate) fn unify(self, start: NonNull<u8>, bytes: usize) {
        if self == Self::Front {
            sys::advise_huge(start.as_ptr(), bytes);
        }
    }

    /// Advice for a mapping that has grown to `bytes`, to hold an object that ends at `end`, after
    /// [`unify`](Self::unify). What suits it now.
    pub(crate) fn grown(self, start: NonNull<u8>, bytes: usize, end: usize) -> Self {
        if self == Self::Never {
            return self;
        }
        let suits = Self::suiting(bytes, end);
        suits.advise(start.as_ptr(), bytes);
        match (self, suits) {
            (Self::Front | Self::All, Self::Front) => {
                // The OS has extended the advice on what was there.
                let last = bytes - CHUNK_BYTES;
                sys::advise_small(start.as_ptr().wrapping_add(last), CHUNK_BYTES);
                suits
            }
            (Self::Front | Self::All, _) => Self::All,
            _ => suits,
        }
    }
}

/// Leaves what lies behind an object, between `end` and `bytes` from `start` on, not resident.
pub(crate) fn clear_tail(start: *mut u8, end: usize, bytes: usize) {
    let Some(end) = round_up(end, PAGE_BYTES).filter(|&end| end + TAIL_BYTES_MIN <= bytes) else {
        return;
    };
    // SAFETY: the end of a mapping of the caller's, behind all that is used of it.
    unsafe { sys::clear(start.wrapping_add(end), bytes - end) };
}
