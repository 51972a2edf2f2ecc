//! Finds what to place: a heap profiler that sees every access, on stable Rust.

pub mod analyses;
pub mod capture;
#[cfg(feature = "cli")]
pub mod cli;
mod error;
#[path = "../format/mod.rs"]
#[allow(missing_docs, reason = "fields say what they are")]
pub mod format;
#[allow(missing_docs, reason = "fields say what they are")]
pub mod profile;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
#[allow(dead_code, reason = "under test nobody calls the functions that the library exports")]
#[path = "../runtime/lib.rs"]
mod runtime;
pub mod store;
pub mod symbols;
pub mod types;
pub mod views;

pub use error::Error;
pub use profile::Profile;
