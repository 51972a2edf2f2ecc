//! Stacks that a thread had before, which need not be walked again.
//!
//! A walk follows from the registers it begins with, from unwind information, and from the words
//! that it reads: a return address for each frame, and saved frame pointers where frames are found
//! by them. While all of these are what they were, so is the stack.

use super::Frame;
use super::dependences::Entry;
use super::path::LastWalk;

const WAYS: usize = 4;
const SETS: usize = 64;

/// The walks of one thread. All zeros is an empty one.
#[repr(C)]
pub struct Memo {
    sets: [[Entry; WAYS]; SETS],
    /// Walks that were not found, of which each takes the next way.
    misses: usize,
    path: LastWalk,
}

impl core::fmt::Debug for Memo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let misses = self.misses;
        f.debug_struct("Memo")
            .field("misses", &misses)
            .finish_non_exhaustive()
    }
}

/// Where a walk can be kept.
pub(super) type Vacant<'m> = (&'m mut Entry, &'m mut LastWalk);

impl Memo {
    /// What the caller has noted for the stack that begins with `frame`; 0 if it is not known.
    #[inline(always)]
    pub(super) fn find(&self, frame: Frame) -> u32 {
        let known = self.sets[Self::set(frame)]
            .iter()
            .find(|way| way.is_of(frame));
        known.map_or(0, |way| way.value)
    }

    /// Where to keep a walk that begins with `frame` and is not known.
    #[inline]
    pub(super) fn vacant(&mut self, frame: Frame) -> Vacant<'_> {
        self.misses += 1;
        (
            &mut self.sets[Self::set(frame)][self.misses % WAYS],
            &mut self.path,
        )
    }

    #[inline(always)]
    fn set(frame: Frame) -> usize {
        let mixed = (frame.ip ^ frame.sp.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 32) as usize % SETS
    }
}
