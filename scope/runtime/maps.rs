//! Which bytes of a chunk were touched, and where a site counts accesses by offset.

use super::capture::{self, at, header};
use crate::capture_format::{BLOCK, Chunk, MAX_MAPPED_BYTES, SIZES_DIFFER, Site, layout};

/// Whether the site has a histogram for chunks of this size; it is made with the first chunk and
/// dropped when the sizes differ.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
pub(crate) unsafe fn histogram(sum: *mut Site, size: u64) -> bool {
    // SAFETY: by the lock. Accesses of chunks that live read `hist` and write there without it; the
    // memory of a dropped one is not used again, so that they do no harm.
    unsafe {
        let (sum, used) = (&mut *sum, &mut (*header()).hists_used);
        // Up to 16 bytes are counted from the chunk's last granule on.
        let bytes = (size.next_multiple_of(8) + 9) * 16;
        let first = sum.hist_size == 0 && sum.allocations == 1;
        if first && (1..=MAX_MAPPED_BYTES).contains(&size) && *used + bytes <= layout::SHARD {
            (sum.hist, sum.hist_size) = (*used, size);
            *used += bytes;
        } else if sum.hist_size != size {
            sum.hist_size = SIZES_DIFFER;
        }
        size > 0 && sum.hist_size == size
    }
}

/// Bytes of the map of touched bytes of a chunk of this size, beyond those in its entry.
fn map_bytes(size: u64) -> u64 {
    match size {
        0..=64 => 0,
        65..=MAX_MAPPED_BYTES => size.div_ceil(64) * 8,
        _ => size.div_ceil(64 * BLOCK) * 8,
    }
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped.
pub(crate) unsafe fn map_of(size: u64) -> u64 {
    match map_bytes(size) {
        0 => 0,
        // SAFETY: the lock is held, and the capture is mapped (`# Safety`).
        bytes => unsafe { capture::take(bytes) },
    }
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped; the chunk is dead, and its map was not
/// given back.
pub(crate) unsafe fn give_map(old: &Chunk) {
    let bytes = map_bytes(old.size());
    if bytes > 0 && old.touched != 0 {
        // SAFETY: the lock is held; the chunk is dead (`# Safety`), so nobody uses its map, which
        // has `bytes`.
        unsafe { capture::give(old.touched, bytes) }
    }
}

/// Bytes of a chunk that were touched, in whole blocks for large ones.
///
/// # Safety
///
/// The chunk is dead, and its map was not given back.
#[inline(always)]
pub(crate) unsafe fn touched_bytes(old: &Chunk) -> u64 {
    if old.first == 0 {
        return 0;
    }
    let size = old.size();
    let words = map_bytes(size) / 8;
    if words == 0 {
        return u64::from(old.touched.count_ones());
    }
    if old.touched == 0 {
        return 0;
    }
    // SAFETY: `touched` is not 0, so it is the offset of so many words that nobody else uses (`#
    // Safety`).
    let map = unsafe { core::slice::from_raw_parts(at::<u64>(old.touched), words as usize) };
    let ones: u64 = map.iter().map(|word| u64::from(word.count_ones())).sum();
    if size <= MAX_MAPPED_BYTES {
        return ones;
    }
    let rest = size % BLOCK;
    let last = (size - 1) / BLOCK;
    let cut = rest != 0 && map[(last / 64) as usize] >> (last % 64) & 1 == 1;
    ones * BLOCK - if cut { BLOCK - rest } else { 0 }
}

/// Calls `each` with offset and length of the touched parts of a chunk.
///
/// # Safety
///
/// As for [`touched_bytes`].
pub(crate) unsafe fn touched_ranges(old: &Chunk, mut each: impl FnMut(u64, u64)) {
    let words = map_bytes(old.size()) / 8;
    let own = [old.touched];
    let map = if words == 0 {
        &own[..]
    } else if old.touched == 0 {
        return;
    } else {
        // SAFETY: `touched` is not 0, so it is the offset of so many words that nobody else uses
        // (`# Safety`).
        unsafe { core::slice::from_raw_parts(at::<u64>(old.touched), words as usize) }
    };
    let unit = if old.size() <= MAX_MAPPED_BYTES {
        1
    } else {
        BLOCK
    };
    for (index, &word) in map.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            let from = u64::from(rest.trailing_zeros());
            let len = u64::from((!(rest >> from)).trailing_zeros());
            each((index as u64 * 64 + from) * unit, len * unit);
            if from + len >= 64 {
                break;
            }
            rest = rest >> (from + len) << (from + len);
        }
    }
}
