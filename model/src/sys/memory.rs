//! Anonymous mappings with a chosen page size.

use std::hint::black_box;
use std::io;

use memmap2::MmapMut;
use zerocopy::FromBytes;

use super::{page_bytes, physical_memory_bytes};
use crate::geometry::PageSize;

/// A huge page. Memory starts at a multiple of it, so that huge pages can back all of it.
const HUGE_BYTES: usize = 2 << 20;

/// A zeroed array of `u64` in its own mapping, for which a page size was asked for, with every page
/// present.
///
/// The page size is a request (`madvise` on Linux): a kernel whose transparent huge pages are
/// switched off, or a machine short of free huge pages, gives small ones. Dropping the value
/// returns the memory to the system.
#[derive(Debug)]
pub struct PagedMemory {
    map: MmapMut,
    /// Bytes of the mapping before the first word: up to a multiple of `HUGE_BYTES`.
    start: usize,
    /// Bytes of the words.
    bytes: usize,
}

impl PagedMemory {
    /// Maps `len` zeroed words in pages of the given size and touches each page once.
    ///
    /// Costs one page fault for each page: about a second for 4 GiB of small pages.
    ///
    /// # Errors
    /// The system's error when it refuses the mapping, `InvalidInput` when `len` words exceed the
    /// address space, `OutOfMemory` when they exceed the machine's memory: all of it is touched,
    /// and the system would kill for it.
    pub fn new(len: usize, pages: PageSize) -> io::Result<PagedMemory> {
        let bytes = len.checked_mul(size_of::<u64>());
        let bytes = bytes.ok_or(io::ErrorKind::InvalidInput)?;
        // Whole huge pages, and one more to start at a multiple of one.
        let whole = bytes.max(1).checked_next_multiple_of(HUGE_BYTES);
        let mapped = whole.and_then(|whole| whole.checked_add(HUGE_BYTES));
        let mapped = mapped.ok_or(io::ErrorKind::InvalidInput)?;
        if physical_memory_bytes().is_some_and(|memory| mapped as u64 > memory) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let map = MmapMut::map_anon(mapped)?;
        let address = map.as_ptr().addr();
        let start = address.next_multiple_of(HUGE_BYTES) - address;
        advise(&map, start, mapped - HUGE_BYTES, pages);
        let mut memory = PagedMemory { map, start, bytes };
        // Real frames lie behind all pages once each is written to, not the shared page of zeros.
        let step = page_bytes().unwrap_or(4096).max(8) / 8;
        for word in memory.as_mut_slice().iter_mut().step_by(step) {
            *word = black_box(0);
        }
        Ok(memory)
    }

    /// The words.
    pub fn as_slice(&self) -> &[u64] {
        match <[u64]>::ref_from_bytes(&self.map[self.start..][..self.bytes]) {
            Ok(words) => words,
            Err(error) => unreachable!("whole words at a multiple of a page: {error}"),
        }
    }

    /// The words, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        match <[u64]>::mut_from_bytes(&mut self.map[self.start..][..self.bytes]) {
            Ok(words) => words,
            Err(error) => unreachable!("whole words at a multiple of a page: {error}"),
        }
    }
}

/// Asks for pages of this size. The result is ignored: a kernel without transparent huge pages
/// refuses, and the request is only a request.
#[cfg(target_os = "linux")]
fn advise(map: &MmapMut, start: usize, bytes: usize, pages: PageSize) {
    let advice = match pages {
        PageSize::Small4K => memmap2::Advice::NoHugePage,
        PageSize::Huge2M => memmap2::Advice::HugePage,
    };
    drop(map.advise_range(advice, start, bytes));
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &MmapMut, _: usize, _: usize, _: PageSize) {}
