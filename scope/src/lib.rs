//! Finds what to place: a heap profiler that sees every access, on stable Rust.

// Modules, lowest first: `format`, `profile`, `error`, `profiled`, `runtime`, `symbols`, `types`,
// `capture`, `store`, `analyses`, `views`, `cli`.

#[cfg(feature = "profiles")]
pub mod analyses;
#[cfg(feature = "profiles")]
pub mod capture;
#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "profiles")]
mod error;
#[cfg(any(feature = "profiles", test))]
#[path = "../format/mod.rs"]
#[allow(missing_docs, reason = "fields say what they are")]
pub mod format;
#[cfg(feature = "profiles")]
#[allow(missing_docs, reason = "fields say what they are")]
pub mod profile;
mod profiled;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
#[allow(
    dead_code,
    reason = "under test nobody calls the functions that the library exports"
)]
#[path = "../runtime/lib.rs"]
mod runtime;
#[cfg(feature = "profiles")]
pub mod store;
#[cfg(feature = "profiles")]
pub mod symbols;
#[cfg(feature = "profiles")]
pub mod types;
#[cfg(feature = "profiles")]
pub mod views;

#[cfg(feature = "profiles")]
pub use error::Error;
#[cfg(feature = "profiles")]
pub use profile::Profile;
pub use profiled::Profiled;
