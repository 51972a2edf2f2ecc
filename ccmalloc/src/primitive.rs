//! The atomics that [`protocol`](crate::protocol) is made of.
//!
//! A module of its own, so that the model checker's crate can put loom's in their place: see
//! `ccmalloc/loom`.

pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Makes a constructor `const`. The model checker's twin does not: its atomics are made at run
/// time.
macro_rules! constructor {
    ($(#[$doc:meta])* $vis:vis fn $($rest:tt)*) => {
        $(#[$doc])* $vis const fn $($rest)*
    };
}
pub(crate) use constructor;
