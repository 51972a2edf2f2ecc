//! Rival: Microsoft's mimalloc, in its default mode.

use super::{AllocatorRival, Unhinted};

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "mimalloc",
    name: "mimalloc",
    allocator: Unhinted(&mimalloc::MiMalloc),
};
