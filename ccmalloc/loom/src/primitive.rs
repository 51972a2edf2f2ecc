//! loom's atomics in the place of `core`'s: the twin of `ccmalloc/src/primitive.rs`.

pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Leaves a constructor as it is: loom's atomics are made at run time.
macro_rules! constructor {
    ($(#[$doc:meta])* $vis:vis fn $($rest:tt)*) => {
        $(#[$doc])* $vis fn $($rest)*
    };
}
pub(crate) use constructor;
