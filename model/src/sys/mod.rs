//! What depends on the operating system and the processor, behind names that are the same
//! everywhere.
//!
//! Four things are needed from outside the language: memory with a chosen page size (for the
//! pointer chases of [`calibrate`](crate::CalibrateOptions)), a few facts that `sysconf` knows, the
//! `CPUID` instruction, and hardware [counters](crate::counters). Each has one module that provides
//! it and one portable twin that does without: it only knows less.

#[cfg(all(target_os = "linux", feature = "counters"))]
#[path = "counters_perf.rs"]
mod counters;
#[cfg(not(all(target_os = "linux", feature = "counters")))]
#[path = "counters_portable.rs"]
mod counters;

#[cfg(target_arch = "x86_64")]
#[path = "cpuid_x86_64.rs"]
mod cpuid;
#[cfg(not(target_arch = "x86_64"))]
#[path = "cpuid_portable.rs"]
mod cpuid;

#[cfg(target_os = "linux")]
#[path = "memory_linux.rs"]
mod memory;
#[cfg(not(target_os = "linux"))]
#[path = "memory_portable.rs"]
mod memory;

pub(crate) use counters::EventGroup;
pub(crate) use cpuid::cpuid;
pub use memory::PagedMemory;
pub(crate) use memory::{page_bytes, physical_memory_bytes};
