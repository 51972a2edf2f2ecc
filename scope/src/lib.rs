//! Finds what to place: a heap profiler that sees every access, on stable Rust.

#[path = "../format/mod.rs"]
pub mod format;
pub mod profile;
#[cfg(test)]
#[path = "../runtime/unwind/mod.rs"]
mod unwind;

pub use profile::Profile;
