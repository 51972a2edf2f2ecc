//! Rival: Microsoft's snmalloc, in its default mode.

use super::{AllocatorRival, Unhinted};

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "snmalloc",
    name: "snmalloc",
    allocator: Unhinted(&snmalloc_rs::SnMalloc),
};
