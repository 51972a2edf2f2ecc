//! Rival: the system's malloc, whatever the global allocator is.

use std::alloc::System;

use super::{AllocatorRival, Unhinted};
use crate::install::Install;

pub(crate) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "malloc",
    name: "system malloc",
    allocator: Unhinted(&System),
    methods: System::METHODS,
    owns: None,
};

impl Install for System {
    const ALLOCATOR: Self = System;
    const NAME: &'static str = "glibc";
}
