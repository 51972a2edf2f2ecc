//! The units of memory, and the arithmetic that leads from an address to its chunk, slot, page and
//! block.
//!
//! ```text
//! chunk  2 MiB, aligned to its size          owned by one arena
//!  └ slot 64 KiB, 32 a chunk                 slot 0 holds metadata, 1..=31 hold objects
//!     └ page 4 KiB, 16 a slot                (co-location pages: hints are served within one)
//!        └ block 64 B, 64 a page             the unit between memory and cache
//!           └ granule 8 B, 8 a block         the unit of a map
//! ```

/// Bytes of the smallest unit that a co-location page hands out.
pub(crate) const GRANULE_BYTES: usize = 8;
/// Bytes of a cache block, on every machine that this crate is tuned for.
pub(crate) const BLOCK_BYTES: usize = 64;
/// Granules in a block: one byte of a map.
pub(crate) const BLOCK_GRANULES: usize = BLOCK_BYTES / GRANULE_BYTES;
/// Bytes of a co-location page, and of the smallest page of the OS.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Blocks in a page: one byte each, so that the map of a page is itself one block.
pub(crate) const PAGE_BLOCKS: usize = PAGE_BYTES / BLOCK_BYTES;
/// Granules in a page.
pub(crate) const PAGE_GRANULES: usize = PAGE_BYTES / GRANULE_BYTES;
/// Bytes of a slot, the unit that a chunk is dealt out in.
pub(crate) const SLOT_BYTES: usize = 64 * 1024;
/// Pages in a slot.
pub(crate) const SLOT_PAGES: usize = SLOT_BYTES / PAGE_BYTES;
/// Granules in a slot: bits of its map.
pub(crate) const SLOT_GRANULES: usize = SLOT_BYTES / GRANULE_BYTES;
/// Words in the map of a slot.
pub(crate) const MAP_WORDS: usize = SLOT_GRANULES / 64;
/// Bytes of a chunk; also its alignment, and that of everything larger.
pub(crate) const CHUNK_BYTES: usize = 2 * 1024 * 1024;
/// Slots in a chunk, the metadata's own included.
pub(crate) const CHUNK_SLOTS: usize = CHUNK_BYTES / SLOT_BYTES;
/// Pages in a chunk.
pub(crate) const CHUNK_PAGES: usize = CHUNK_BYTES / PAGE_BYTES;

const _: () =
    assert!(PAGE_BLOCKS == 64 && BLOCK_GRANULES == 8 && MAP_WORDS == 128 && CHUNK_SLOTS == 32);

/// The base address of the chunk that contains `address`.
#[inline]
pub(crate) const fn chunk_base(address: usize) -> usize {
    address & !(CHUNK_BYTES - 1)
}

/// Which slot of its chunk contains `address`: `0..CHUNK_SLOTS`.
#[inline]
pub(crate) const fn slot_index(address: usize) -> usize {
    (address & (CHUNK_BYTES - 1)) / SLOT_BYTES
}

/// Offset of `address` in its slot, in bytes.
#[inline]
pub(crate) const fn slot_offset(address: usize) -> usize {
    address & (SLOT_BYTES - 1)
}

/// Rounds `bytes` up to a multiple of `unit`, a power of two; `None` on overflow.
#[inline]
pub(crate) const fn round_up(bytes: usize, unit: usize) -> Option<usize> {
    match bytes.checked_add(unit - 1) {
        Some(sum) => Some(sum & !(unit - 1)),
        None => None,
    }
}
