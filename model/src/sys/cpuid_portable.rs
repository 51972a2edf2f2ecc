//! Processors without `CPUID`.

/// There is no such instruction here.
pub(crate) fn cpuid(_leaf: u32, _subleaf: u32) -> Option<[u32; 4]> {
    None
}
