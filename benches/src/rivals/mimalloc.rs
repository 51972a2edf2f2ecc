//! Rival: Microsoft's mimalloc, in its default mode.

use mimalloc::MiMalloc;

use super::{AllocatorRival, Unhinted};
use crate::dispatch::Install;

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "mimalloc",
    name: "mimalloc",
    allocator: Unhinted(&MiMalloc),
    methods: MiMalloc::METHODS,
};

impl Install for MiMalloc {
    const ALLOCATOR: Self = MiMalloc;
    const NAME: &'static str = "mimalloc";
}
