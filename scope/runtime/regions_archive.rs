//! The fast path of regions as an archive of its own, which is linked into programs that are built
//! for them.
#![no_std]

#[path = "../capture_format/mod.rs"]
mod capture_format;

mod callbacks;
mod local;
mod stack_cache;
mod track;

mod fast_path {
    pub(crate) use crate::regions::fast_path::access;
}

mod regions {
    pub(crate) mod fast_path;
}

use inside::unwind;
