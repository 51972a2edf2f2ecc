//! Finds what to place: a heap profiler that sees every access, on stable Rust.
//!
//! Most users need the commands `cargo ccscope` and `ccscope` only; the README has them. The
//! library is for programs that read profiles, [`Profiled`] for programs whose allocator is
//! written in Rust, and [`region!`] for those that name what they do.
//!
//! * A **site** is an allocation point: one call stack. A **chunk** is one allocation.
//! * **Time** is a count of events: accesses, allocations and frees; `Profile::seconds` converts
//!   it.
//! * **Drag** is the time from a chunk's last access to its free.
//! * A **window** is a burst of complete access records.
//!
//! `Profile::open` reads a file. `analyses` says what is wrong at a site and what to try; `views`
//! shows it as text or JSON. Profiles come from strangers: reading one gives an error or what is
//! whole of it, and takes no more memory than the file justifies.

// Modules, lowest first: `capture_format`, `profile`, `hook`, `counts`, `sampling`, `profiled`,
// `spawned`, `measure`, `marks`, `regions`, `runtime`, `symbols`, `types`, `capture`, `store`,
// `analyses`, `advice`, `views`, `improve`, `exports`, `heap_profile`, `imports`, `cli`.

#[cfg(feature = "profiles")]
pub mod advice;
#[cfg(feature = "profiles")]
pub mod analyses;
#[cfg(feature = "profiles")]
pub mod capture;
#[cfg(any(feature = "profiles", test))]
#[path = "../capture_format/mod.rs"]
#[expect(missing_docs, reason = "fields say what they are")]
pub mod capture_format;
#[cfg(feature = "cli")]
pub mod cli;
mod counts;
#[cfg(feature = "profiles")]
pub mod exports;
#[cfg(feature = "heap-profile")]
mod heap_profile;
mod hook;
#[cfg(feature = "profiles")]
pub mod imports;
#[cfg(feature = "cli")]
mod improve;
mod marks;
mod measure;
#[cfg(feature = "profiles")]
#[expect(missing_docs, reason = "fields say what they are")]
pub mod profile;
mod profiled;
mod regions;
#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
#[allow(
    dead_code,
    reason = "under test nobody calls the functions that the library exports"
)]
#[path = "../runtime/lib.rs"]
mod runtime;
#[cfg(feature = "heap-profile")]
mod sampling;
#[doc(hidden)]
pub mod spawned;
#[cfg(feature = "profiles")]
pub mod store;
#[cfg(feature = "profiles")]
pub mod symbols;
#[cfg(feature = "profiles")]
pub mod types;
#[cfg(feature = "profiles")]
pub mod views;

#[cfg(feature = "profiles")]
pub use ccmodel::Error;
#[cfg(feature = "heap-profile")]
pub use heap_profile::{heap_profile, sample_heap};
pub use marks::{snapshot, trace_start, trace_stop};
pub use measure::{Heap, measure, measure_with_threads};
#[cfg(feature = "profiles")]
pub use profile::Profile;
pub use profiled::Profiled;
pub use regions::RegionGuard;
#[cfg(feature = "tracing")]
pub use regions::Regions;
