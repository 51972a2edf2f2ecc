//! Rival: the system's malloc, whatever the global allocator is.

use super::{AllocatorRival, Unhinted};

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "malloc",
    process_slug: "glibc",
    name: "system malloc",
    allocator: Unhinted(&std::alloc::System),
};
