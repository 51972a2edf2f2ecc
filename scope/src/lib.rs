//! Finds what to place: a heap profiler that sees every access, on stable Rust.

#[path = "../format/mod.rs"]
pub mod format;
pub mod profile;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
#[path = "../runtime/unwind/mod.rs"]
mod unwind;

pub use profile::Profile;
