//! Caches, name and hypervisor bit as the processor itself reports them.

use super::{CacheFacts, CacheKind, Source};
use crate::sys::cpuid;

/// Deterministic cache parameters: Intel's leaf, AMD's leaf of the same form.
const CACHE_LEAVES: [u32; 2] = [4, 0x8000_001D];
/// No processor has more caches than this; guards against a leaf that never ends.
const MAX_CACHES: u32 = 16;

/// The caches of the first leaf that describes any; empty without `CPUID`.
pub(super) fn caches() -> Vec<CacheFacts> {
    CACHE_LEAVES
        .iter()
        .map(|&leaf| {
            (0..MAX_CACHES)
                .map_while(|subleaf| cpuid(leaf, subleaf).and_then(decode_cache))
                .filter(CacheFacts::is_plausible)
                .collect()
        })
        .find(|caches: &Vec<CacheFacts>| !caches.is_empty())
        .unwrap_or_default()
}

/// One subleaf; `None` at the end of the list.
pub(super) fn decode_cache([eax, ebx, ecx, edx]: [u32; 4]) -> Option<CacheFacts> {
    let kind = match eax & 0x1F {
        1 => CacheKind::Data,
        2 => CacheKind::Instruction,
        3 => CacheKind::Unified,
        _ => return None,
    };
    let line_bytes = u64::from(ebx & 0xFFF) + 1;
    let partitions = u64::from((ebx >> 12) & 0x3FF) + 1;
    let ways = (ebx >> 22) + 1;
    let sets = u64::from(ecx) + 1;
    Some(CacheFacts {
        level: (eax >> 5) & 0x7,
        kind,
        size_bytes: line_bytes * partitions * u64::from(ways) * sets,
        line_bytes,
        ways,
        sets: sets * partitions,
        inclusive: Some(edx & 0b10 != 0),
        // The count in this leaf is of identifiers, not of processors that exist.
        shared_by: 0,
        source: Source::Cpuid,
    })
}

/// The processor's brand string.
pub(super) fn brand() -> Option<String> {
    let mut bytes = Vec::with_capacity(48);
    for leaf in 0x8000_0002..=0x8000_0004 {
        for register in cpuid(leaf, 0)? {
            bytes.extend(register.to_le_bytes());
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    let name = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    (!name.is_empty()).then(|| name.to_owned())
}

/// Who made the processor.
pub(super) fn vendor() -> Option<String> {
    let [_, ebx, ecx, edx] = cpuid(0, 0)?;
    let bytes = [ebx, edx, ecx].map(u32::to_le_bytes).concat();
    Some(
        String::from_utf8_lossy(&bytes)
            .trim_matches('\0')
            .to_owned(),
    )
}

/// Whether a hypervisor announces itself.
pub(super) fn hypervisor() -> Option<bool> {
    cpuid(1, 0).map(|[_, _, ecx, _]| ecx >> 31 == 1)
}
