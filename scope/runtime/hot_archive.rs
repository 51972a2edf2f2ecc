//! The hot path as an archive of its own, which is linked into each instrumented program: its calls
//! then take no detour through the table of the dynamic linker.
#![no_std]

#[path = "../format/mod.rs"]
mod format;

mod arena;
mod callbacks;
mod hot;
mod local;
mod shadow;
mod sys;

/// What the library does.
mod access {
    use crate::format::Chunk;

    unsafe extern "C" {
        #[cold]
        pub(crate) safe fn ccscope_load(address: u64, size: u64);
        #[cold]
        pub(crate) safe fn ccscope_store(address: u64, size: u64);
        #[cold]
        pub(crate) fn ccscope_spill(entry: *mut Chunk, write: bool);
    }
}

// The block of a thread leads to these; the hot path does not follow it.
mod stacks {
    pub(crate) enum Room {}
}
mod regions {
    pub(crate) mod hot {
        pub(crate) enum State {}
    }
}
