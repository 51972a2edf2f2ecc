//! Rival: jemalloc, in its default mode.

use super::{AllocatorRival, Unhinted};

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "jemalloc",
    process_slug: "jemalloc",
    name: "jemalloc",
    allocator: Unhinted(&tikv_jemallocator::Jemalloc),
};
