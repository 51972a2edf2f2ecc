//! Rival: Microsoft's mimalloc, in its default mode.

use std::ffi::c_void;

use mimalloc::MiMalloc;

use super::{AllocatorRival, Unhinted};
use crate::install::Install;

pub(super) const RIVAL: AllocatorRival = AllocatorRival {
    slug: "mimalloc",
    name: "mimalloc",
    allocator: Unhinted(&MiMalloc),
    methods: MiMalloc::METHODS,
    owns: Some(owns),
};

impl Install for MiMalloc {
    const ALLOCATOR: Self = MiMalloc;
    const NAME: &'static str = "mimalloc";
}

unsafe extern "C" {
    /// Of the library that the crate links: whether it manages the page of `object`. It never reads
    /// through the pointer.
    safe fn mi_is_in_heap_region(object: *const c_void) -> bool;
}

fn owns(object: *const u8) -> bool {
    mi_is_in_heap_region(object.cast())
}
