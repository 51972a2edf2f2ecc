//! Rival: Microsoft's snmalloc, in its default mode.

use snmalloc_rs::SnMalloc;

use super::{AllocatorRival, Unhinted};
use crate::install::Install;

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "snmalloc",
    name: "snmalloc",
    allocator: Unhinted(&SnMalloc),
    methods: SnMalloc::METHODS,
    owns: None,
};

impl Install for SnMalloc {
    const ALLOCATOR: Self = SnMalloc;
    const NAME: &'static str = "snmalloc";
}
