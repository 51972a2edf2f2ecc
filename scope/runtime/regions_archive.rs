//! The hot path of regions as an archive of its own, which is linked into programs that are built
//! for them.
#![no_std]

#[path = "../format/mod.rs"]
mod format;

mod callbacks;
mod local;

mod hot {
    pub(crate) use crate::regions::hot::access;
}

mod regions {
    pub(crate) mod hot;

    unsafe extern "C" {
        #[cold]
        pub(crate) safe fn ccscope_region_load(address: u64, size: u64);
        #[cold]
        pub(crate) safe fn ccscope_region_store(address: u64, size: u64);
    }
}

// The block of a thread leads to one; the hot path does not follow it.
mod stacks {
    pub(crate) enum Room {}
}
