//! Rival: Microsoft's mimalloc, in its default mode.

use super::{AllocatorRival, Unhinted};

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "mimalloc",
    process_slug: "mimalloc",
    name: "mimalloc",
    allocator: Unhinted(&mimalloc::MiMalloc),
};
