//! What depends on the operating system and the processor: memory with a chosen page size, facts
//! that `sysconf` knows, and the `CPUID` instruction.

#[cfg(feature = "calibrate")]
mod memory;

#[cfg(feature = "calibrate")]
pub use memory::PagedMemory;

/// Registers `[eax, ebx, ecx, edx]` of a `CPUID` leaf, or `None` when the processor does not have
/// that leaf.
#[cfg(target_arch = "x86_64")]
#[allow(
    unused_unsafe,
    reason = "the intrinsic is unsafe in the declared minimum toolchain and safe in newer ones"
)]
pub(crate) fn cpuid(leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
    use core::arch::x86_64::__cpuid_count;
    // Leaf 0 of each range (basic, extended) tells the last leaf of that range.
    // SAFETY: every x86-64 processor has `CPUID`; the instruction only writes the four result
    // registers.
    let last = unsafe { __cpuid_count(leaf & 0x8000_0000, 0) }.eax;
    if leaf > last {
        return None;
    }
    // SAFETY: as above, and the leaf exists by the check before.
    let registers = unsafe { __cpuid_count(leaf, subleaf) };
    Some([registers.eax, registers.ebx, registers.ecx, registers.edx])
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn cpuid(_leaf: u32, _subleaf: u32) -> Option<[u32; 4]> {
    None
}

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
