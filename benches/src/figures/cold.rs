//! Cold caches: what is to be searched is put out of them before each series of searches, and
//! translations of addresses are pushed out.
//!
//! An instruction flushes single lines on `x86_64`, from all caches of the machine, so that it does
//! not matter how large these are, or who shares them. Elsewhere a sweep over much memory has to
//! do. What stays warm are the page tables' own lines.

use ccmodel::{PageSize, PagedMemory};

use super::btree::Word;

/// What memory delivers at once on some machines: neighbours of what was read may have come along.
const NEIGHBOURHOOD_BYTES: usize = 256;
const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// More than second-level TLBs have entries, by far.
const SWEPT_PAGES: usize = 16_384;

/// Empties caches and TLBs of what a structure left there.
#[derive(Debug)]
pub struct Cold {
    swept: PagedMemory,
}

impl Cold {
    /// Memory to push other things out.
    ///
    /// # Errors
    /// When there is none.
    pub fn new() -> std::io::Result<Cold> {
        let words = SWEPT_PAGES * PAGE_BYTES / size_of::<u64>();
        // Where no instruction flushes, all lines of 256 MiB, an L3 of today and more.
        let words = if cfg!(target_arch = "x86_64") {
            words
        } else {
            words * 4
        };
        let swept = PagedMemory::new(words, PageSize::Small4K)?;
        Ok(Cold { swept })
    }

    /// Puts the line in which `place` begins out of all caches, on machines that can; the rest is
    /// up to [`sweep`](Cold::sweep).
    pub fn flush_line<T>(&self, place: &T) {
        flush_neighbourhood(std::ptr::from_ref(place).cast(), LINE_BYTES);
    }

    /// As [`flush_line`](Cold::flush_line), and neighbours that may have come along when it was
    /// read.
    pub fn flush_around<T>(&self, place: &T) {
        flush_neighbourhood(std::ptr::from_ref(place).cast(), NEIGHBOURHOOD_BYTES);
    }

    /// Pushes translations out of the TLBs, and, where nothing can be flushed, all else out of the
    /// caches. Returns a sum that keeps the compiler from leaving it out.
    #[must_use]
    pub fn sweep(&self) -> u64 {
        let step = if cfg!(target_arch = "x86_64") {
            // One line of each page, each time another one, or they would all fall into the same
            // sets.
            PAGE_BYTES + LINE_BYTES
        } else {
            LINE_BYTES
        };
        let words = self.swept.as_slice().iter();
        let sum = words.step_by(step / size_of::<u64>()).sum();
        std::hint::black_box(sum)
    }
}

/// Flushes the lines of the aligned piece of memory of `bytes` bytes that `place` is in: a line, or
/// several, within a page.
#[cfg(target_arch = "x86_64")]
fn flush_neighbourhood(place: *const u8, bytes: usize) {
    let first = place.map_addr(|address| address & !(bytes - 1));
    for offset in (0..bytes).step_by(LINE_BYTES) {
        // SAFETY: the instruction reads and writes nothing that a program could see, but faults
        // where nothing is mapped; both sizes divide a page, so that all of the piece is in the
        // page of `place`, which a reference was made of.
        unsafe { core::arch::x86_64::_mm_clflush(first.wrapping_add(offset)) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn flush_neighbourhood(_place: *const u8, _bytes: usize) {}

/// Zeroed words in memory of their own, and the index of one that begins a page, with `len` words
/// behind it: in huge pages where these are many enough, as `ccmorph` has it for the nodes that it
/// moves.
pub fn paged_words<W: Word>(len: usize) -> (Vec<W>, usize) {
    let bytes = len * size_of::<W>();
    let align_bytes = if bytes >= 4 * HUGE_PAGE_BYTES {
        HUGE_PAGE_BYTES
    } else {
        PAGE_BYTES
    };
    // Untouched as yet: zeroed memory of this size comes from the kernel.
    let words = vec![W::default(); len + align_bytes / size_of::<W>()];
    let address = words.as_ptr().addr();
    let start = (address.next_multiple_of(align_bytes) - address) / size_of::<W>();
    if align_bytes == HUGE_PAGE_BYTES {
        advise_huge_pages(&words[start..]);
    }
    (words, start)
}

/// Asks for huge pages under `words`.
#[cfg(target_os = "linux")]
fn advise_huge_pages<W>(words: &[W]) {
    let whole_pages = size_of_val(words) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    let place = words.as_ptr().cast_mut().cast::<libc::c_void>();
    // The result is ignored: the request is only a request.
    // SAFETY: all of the range is in one live allocation, and this advice changes no contents.
    unsafe { libc::madvise(place, whole_pages, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<W>(_words: &[W]) {}
