//! Where a hinted object goes when the hint's block is full (thesis, section 4.2.1).

use core::sync::atomic::{AtomicU8, Ordering};

/// Where on the hint's page a new object goes when the hint's own block has no room for it.
///
/// From T. Chilimbi, *Cache-Conscious Data Structures* (1999), section 4.2.1. If the page has no
/// room, all three take another page; see also [`set_reserved_blocks`]. [`set_default_policy`]
/// changes the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The nearest room in the 512 bytes around the hint, also across the border of two blocks;
    /// else behind the latest object on the page, else the nearest 512 bytes with room. For
    /// structures that are built in the order of their traversal; if one grows at many places,
    /// unrelated objects soon share blocks. (The thesis takes the nearest *block* with room.)
    Closest,
    /// The first block of the page that has room. Packs tightest.
    FirstFit,
    /// An empty block, first in the hint's 256 B (about one access to DRAM), so that later hints at
    /// the new object find room beside it. Takes the most memory, and gains the most.
    #[default]
    NewBlock,
}

/// Blocks of a co-location page.
const PAGE_BLOCKS: u8 = 64;
/// How many of them are left to hints at what lies on the page.
static RESERVED: AtomicU8 = AtomicU8::new(0);

/// Reserves `blocks` of the 64 blocks of each page for objects that are hinted at something on the
/// page; other objects go to a page with more room. For all threads, from now on. The default is 0,
/// the maximum 63. Costs memory, and gains little: see `docs/inside/ccmalloc.md`.
pub fn set_reserved_blocks(blocks: usize) {
    let most = PAGE_BLOCKS - 1;
    RESERVED.store(
        u8::try_from(blocks).map_or(most, |blocks| blocks.min(most)),
        Ordering::Relaxed,
    );
}

/// How many of the 64 blocks of a page are left to hints at what lies on the page.
#[must_use]
pub fn reserved_blocks() -> usize {
    usize::from(reserved())
}

/// As [`reserved_blocks`].
#[inline]
pub(crate) fn reserved() -> u8 {
    RESERVED.load(Ordering::Relaxed)
}

static DEFAULT: AtomicU8 = AtomicU8::new(Policy::NewBlock as u8);

/// Sets the policy of every hinted allocation that does not name one, in all threads, from now on.
/// [`cc_alloc_with`](crate::cc_alloc_with) and [`near_with`](crate::near_with) name one.
pub fn set_default_policy(policy: Policy) {
    DEFAULT.store(policy as u8, Ordering::Relaxed);
}

/// The policy of hinted allocations that do not name one.
#[must_use]
pub fn default_policy() -> Policy {
    match DEFAULT.load(Ordering::Relaxed) {
        0 => Policy::Closest,
        1 => Policy::FirstFit,
        // 2. A new policy needs a line.
        _ => Policy::NewBlock,
    }
}
