//! `ccmalloc` as a rival.

use ccmalloc::CcMalloc;

use super::{Install, Methods};

/// `ccmalloc`, where it serves a whole process.
pub const METHODS: &Methods = CcMalloc::METHODS;

impl Install for CcMalloc {
    const ALLOCATOR: Self = CcMalloc::new();
    const NAME: &'static str = NAME;
}

/// Its name in words.
pub const NAME: &str = "ccmalloc";
