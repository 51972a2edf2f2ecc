//! Rival: Microsoft's snmalloc, in its default mode.

use super::{AllocatorRival, Unhinted};

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "snmalloc",
    process_slug: "snmalloc",
    name: "snmalloc",
    allocator: Unhinted(&snmalloc_rs::SnMalloc),
};
