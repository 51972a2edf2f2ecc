//! The hot path as an archive of its own, which is linked into each instrumented program: its calls
//! then take no detour through the table of the dynamic linker.
#![no_std]

#[path = "../format/mod.rs"]
mod format;

mod callbacks;
mod capture;
mod counts;
mod hot;
mod local;
mod room;
mod shadow;
mod sys;
mod track;

use inside::unwind;
