//! The hot path of regions as an archive of its own, which is linked into programs that are built
//! for them.
#![no_std]

#[path = "../format/mod.rs"]
mod format;

mod callbacks;
mod local;
mod room;
mod track;

mod hot {
    pub(crate) use crate::regions::hot::access;
}

mod regions {
    pub(crate) mod hot;
}

use inside::unwind;
