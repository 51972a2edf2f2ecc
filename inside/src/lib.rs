//! What the libraries have in common that `ccscope` puts into the processes of programs.
//!
//! They are without `std` and without an allocator, and may run within `malloc`, before `main` and
//! in a handler of signals. The tools compile this file by one call of the compiler ([`SOURCE`]),
//! and link it into each of their libraries.
#![cfg_attr(not(test), no_std)]
#![expect(
    clippy::cast_possible_truncation,
    reason = "x86-64 only: words have 64 bits"
)]

// Modules, lowest first: `sys`, `options`, `aside`, `unwind`.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[macro_use]
pub mod aside;
pub mod options;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod sys;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod unwind;

/// This file, for who compiles it.
pub const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
