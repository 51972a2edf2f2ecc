//! `libccmalloc.so`: hints for C and C++ (`hinted`), and the whole malloc family (`family`) for
//! programs that are linked with it or run with `LD_PRELOAD`. `include/ccmalloc.h` is the
//! documentation for its users.
//!
//! A thin layer over [`allocator::raw`], which frees by the pointer alone: it translates null
//! pointers and errors. Nothing panics. Nothing here calls the exported functions: another library
//! may have replaced any of them. `reorganize` is the C entry of `ccmorph`.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
mod deepbind;
#[cfg(has_rules)]
mod entry;
#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
))]
mod environment;
mod errno;
mod family;
mod hinted;
#[cfg(has_rules)]
mod learn;
#[cfg(has_rules)]
mod modules;
mod reorganize;
#[cfg(has_rules)]
mod rules;
mod statistics;
