//! Rival: the system's malloc, whatever the global allocator is.

use std::alloc::System;

use super::{AllocatorRival, Unhinted};
use crate::dispatch::Install;

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "malloc",
    name: "system malloc",
    allocator: Unhinted(&System),
    methods: System::METHODS,
};

impl Install for System {
    const ALLOCATOR: Self = System;
    const NAME: &'static str = "glibc";
}
