//! What the processor itself reports of its caches, its name, its maker and a hypervisor.

use super::{CacheFacts, CacheKind, Source, printable};
use crate::sys::cpuid;

/// Deterministic cache parameters: Intel's leaf, AMD's leaf of the same form.
const CACHE_LEAVES: [u32; 2] = [4, 0x8000_001D];
/// No processor has more caches than this; guards against a leaf that never ends.
const MAX_CACHES: u32 = 16;

/// The answers of `CPUID`; empty where there is no such instruction.
#[derive(Clone, Default)]
pub(crate) struct Processor {
    pub(super) caches: Vec<CacheFacts>,
    pub(super) name: Option<String>,
    pub(super) vendor: Option<String>,
    pub(super) hypervisor: Option<bool>,
}

impl Processor {
    pub(super) fn this() -> Processor {
        Processor {
            caches: caches(),
            name: text(0x8000_0002..=0x8000_0004, |registers| registers),
            vendor: text(0..=0, |[_, ebx, ecx, edx]| [ebx, edx, ecx, 0]),
            hypervisor: cpuid(1, 0).map(|[_, _, ecx, _]| ecx >> 31 == 1),
        }
    }
}

/// The caches of the first leaf that describes any.
fn caches() -> Vec<CacheFacts> {
    let of_leaf = |leaf| -> Vec<CacheFacts> {
        (0..MAX_CACHES)
            .map_while(|subleaf| cpuid(leaf, subleaf).and_then(decode_cache))
            .filter(CacheFacts::is_plausible)
            .collect()
    };
    let mut leaves = CACHE_LEAVES.into_iter().map(of_leaf);
    leaves.find(|caches| !caches.is_empty()).unwrap_or_default()
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

/// The characters in the registers of some leaves, in the given order.
fn text(leaves: impl Iterator<Item = u32>, order: impl Fn([u32; 4]) -> [u32; 4]) -> Option<String> {
    let mut bytes = Vec::new();
    for leaf in leaves {
        bytes.extend(order(cpuid(leaf, 0)?).map(u32::to_le_bytes).as_flattened());
    }
    let text = printable(String::from_utf8_lossy(&bytes).trim_matches('\0'));
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
