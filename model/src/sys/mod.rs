//! What depends on the operating system and the processor: memory with a chosen page size, facts
//! that `sysconf` knows, and the `CPUID` instruction.

#[cfg(target_arch = "x86_64")]
#[path = "cpuid_x86_64.rs"]
mod cpuid;
#[cfg(not(target_arch = "x86_64"))]
#[path = "cpuid_portable.rs"]
mod cpuid;

#[cfg(all(target_os = "linux", feature = "calibrate"))]
#[path = "memory_linux.rs"]
mod memory;
#[cfg(all(not(target_os = "linux"), feature = "calibrate"))]
#[path = "memory_portable.rs"]
mod memory;

pub(crate) use cpuid::cpuid;
#[cfg(feature = "calibrate")]
pub use memory::PagedMemory;

/// A `sysconf` value, `None` when the system does not know it.
#[cfg(target_os = "linux")]
fn sysconf(name: libc::c_int) -> Option<usize> {
    // SAFETY: `sysconf` takes any number and touches no memory of ours.
    let value = unsafe { libc::sysconf(name) };
    usize::try_from(value).ok().filter(|&value| value > 0)
}

/// Size of a small page in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn page_bytes() -> Option<usize> {
    sysconf(libc::_SC_PAGESIZE)
}

/// Physical memory of the machine in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn physical_memory_bytes() -> Option<u64> {
    let pages = sysconf(libc::_SC_PHYS_PAGES)?;
    Some(pages as u64 * page_bytes()? as u64)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn page_bytes() -> Option<usize> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn physical_memory_bytes() -> Option<u64> {
    None
}
