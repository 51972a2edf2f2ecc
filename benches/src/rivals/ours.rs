//! Ours, in the rivals' form.

use ccmalloc::CcMalloc;

use crate::install::{Install, Methods};

/// `ccmalloc`, where it serves a whole process.
pub const METHODS: &Methods = CcMalloc::METHODS;

impl Install for CcMalloc {
    const ALLOCATOR: Self = CcMalloc::new();
    const NAME: &'static str = NAME;
}

/// Its name in words.
pub const NAME: &str = "ccmalloc";
