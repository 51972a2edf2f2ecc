//! The `CPUID` instruction.

use core::arch::x86_64::__cpuid_count;

/// Registers `[eax, ebx, ecx, edx]` of a `CPUID` leaf, or `None` when the processor does not have
/// that leaf.
#[allow(
    unused_unsafe,
    reason = "the intrinsic is an unsafe function up to the declared minimum toolchain and a safe one in newer ones"
)]
pub(crate) fn cpuid(leaf: u32, subleaf: u32) -> Option<[u32; 4]> {
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
