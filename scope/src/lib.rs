//! Finds what to place: a heap profiler that sees every access, on stable Rust.

pub mod analyses;
pub mod capture;
#[cfg(feature = "cli")]
pub mod cli;
mod error;
#[path = "../format/mod.rs"]
pub mod format;
pub mod profile;
pub mod store;
pub mod symbols;
pub mod types;
#[cfg(test)]
#[path = "../runtime/unwind/mod.rs"]
mod unwind;
pub mod views;

pub use error::Error;
pub use profile::Profile;
