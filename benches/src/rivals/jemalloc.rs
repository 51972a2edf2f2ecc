//! Rival: jemalloc, in its default mode.

use tikv_jemallocator::Jemalloc;

use super::{AllocatorRival, Unhinted};
use crate::install::Install;

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "jemalloc",
    name: "jemalloc",
    allocator: Unhinted(&Jemalloc),
    methods: Jemalloc::METHODS,
    owns: None,
};

impl Install for Jemalloc {
    const ALLOCATOR: Self = Jemalloc;
    const NAME: &'static str = "jemalloc";
}
