//! Anonymous mappings with a chosen page size.

use std::io;
use std::ptr::NonNull;

use super::{page_bytes, physical_memory_bytes};
use crate::geometry::PageSize;

/// A huge page. Mappings start at a multiple of it, so that huge pages can back all of them.
const HUGE_BYTES: usize = 2 << 20;

/// A zeroed array of `u64` in its own mapping, for which a page size was asked for, with every page
/// present.
///
/// The page size is a request (`madvise`): a kernel whose transparent huge pages are switched off,
/// or a machine short of free huge pages, gives small ones. Dropping the value returns the memory
/// to the system.
///
/// Invariants: `base..base + mapped_bytes` is one live private anonymous mapping owned by this
/// value alone; `words..words + len` lies inside it, is aligned to 2 MiB and was zeroed by the
/// kernel.
#[derive(Debug)]
pub struct PagedMemory {
    base: NonNull<libc::c_void>,
    mapped_bytes: usize,
    words: NonNull<u64>,
    len: usize,
}

// SAFETY: the value owns its mapping as a `Box<[u64]>` owns its allocation: no other pointer to it
// exists, shared access only reads, and `u64` is `Send`.
unsafe impl Send for PagedMemory {}
// SAFETY: as above; `&PagedMemory` only gives `&[u64]`, and `u64` is `Sync`.
unsafe impl Sync for PagedMemory {}

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
        let bytes = len
            .max(1)
            .checked_mul(size_of::<u64>())
            .and_then(|bytes| bytes.checked_next_multiple_of(HUGE_BYTES))
            .filter(|&bytes| bytes <= isize::MAX as usize - HUGE_BYTES)
            .ok_or(io::ErrorKind::InvalidInput)?;
        if physical_memory_bytes().is_some_and(|memory| bytes as u64 > memory) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let mapped_bytes = bytes + HUGE_BYTES;
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice touches no
        // existing memory.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                mapped_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base).ok_or_else(io::Error::last_os_error)?;
        let address = base.addr().get();
        let padding = address.next_multiple_of(HUGE_BYTES) - address;
        // SAFETY: the next multiple of `HUGE_BYTES` is less than `HUGE_BYTES` away, by which the
        // mapping is longer than `bytes`: the result lies inside the mapping. (No overflow: the
        // mapping, which reaches beyond, is addressable.)
        let start = unsafe { base.byte_add(padding) };
        let memory = PagedMemory {
            base,
            mapped_bytes,
            words: start.cast(),
            len,
        };
        let advice = match pages {
            PageSize::Small4K => libc::MADV_NOHUGEPAGE,
            PageSize::Huge2M => libc::MADV_HUGEPAGE,
        };
        // The result is ignored: a kernel without transparent huge pages refuses, and the request
        // is only a request.
        // SAFETY: `start..start + bytes` lies in the mapping that `memory` owns; these advices
        // change no contents.
        unsafe { libc::madvise(start.as_ptr(), bytes, advice) };
        let mut memory = memory;
        memory.touch_pages();
        Ok(memory)
    }

    /// Writes to each page once, so that real frames (not the shared page of zeros) lie behind all
    /// of them.
    fn touch_pages(&mut self) {
        let step = page_bytes().unwrap_or(4096).max(8) / 8;
        for word in self.as_mut_slice().iter_mut().step_by(step) {
            // SAFETY: `word` is a live exclusive reference to an initialised `u64`; volatile, so
            // that the compiler does not drop the store of a value that is already there.
            unsafe { core::ptr::write_volatile(word, 0) };
        }
    }

    /// The words.
    pub fn as_slice(&self) -> &[u64] {
        // SAFETY: by the invariant `words` points to `len` initialised, aligned words inside one
        // mapping, which no code writes while `self` is borrowed; the length in bytes is below
        // `isize::MAX` by the check in `new`.
        unsafe { core::slice::from_raw_parts(self.words.as_ptr(), self.len) }
    }

    /// The words, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        // SAFETY: as in `as_slice`, and `&mut self` makes the access exclusive.
        unsafe { core::slice::from_raw_parts_mut(self.words.as_ptr(), self.len) }
    }
}

impl Drop for PagedMemory {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value, and no borrow of it outlives the value.
        let result = unsafe { libc::munmap(self.base.as_ptr(), self.mapped_bytes) };
        debug_assert_eq!(result, 0, "unmapping {} bytes failed", self.mapped_bytes);
    }
}
