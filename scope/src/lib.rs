//! Finds what to place: a heap profiler that sees every access, on stable Rust.

pub mod analyses;
#[path = "../format/mod.rs"]
pub mod format;
pub mod profile;
pub mod views;

pub use profile::Profile;
