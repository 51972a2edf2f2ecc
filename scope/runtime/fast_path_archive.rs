//! The fast path as an archive of its own, which is linked into each instrumented program: its
//! calls then take no detour through the table of the dynamic linker.
#![no_std]

#[path = "../capture_format/mod.rs"]
mod capture_format;

mod callbacks;
mod capture;
mod counts;
mod fast_path;
mod local;
mod stack_cache;
mod shadow;
mod sys;
mod track;

use inside::unwind;
