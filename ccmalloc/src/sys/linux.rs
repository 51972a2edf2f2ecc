//! What only Linux can do with mappings. `portable` is the fallback.

use core::ptr::NonNull;

use super::Growth;
use crate::geometry::CHUNK_BYTES;

/// The calling thread's `errno`.
fn errno() -> *mut libc::c_int {
    // SAFETY: has no preconditions.
    unsafe { libc::__errno_location() }
}

/// Calls `f` and restores `errno`: a free must leave it as it was (POSIX.1-2024), also when the OS
/// refuses something.
pub(crate) fn keeping_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the calling thread's errno, which lives as long as the thread.
    let before = unsafe { *errno() };
    let result = f();
    // SAFETY: the calling thread's errno, which lives as long as the thread.
    unsafe { *errno() = before };
    result
}

/// Tries to make `[start, start + old_bytes)` longer where it lies.
///
/// # Safety
/// - That range is page-aligned, was mapped by this module, be it as a part of a mapping or by
///   several calls, and is used by the caller alone; `old_bytes <= new_bytes`.
pub(crate) unsafe fn grow_in_place(
    start: NonNull<u8>,
    old_bytes: usize,
    new_bytes: usize,
) -> Growth {
    // SAFETY: the caller owns the range; without MREMAP_MAYMOVE, the call changes nothing but what
    // lies behind it, if that is free.
    let result = unsafe { libc::mremap(start.as_ptr().cast(), old_bytes, new_bytes, 0) };
    if result != libc::MAP_FAILED {
        return Growth::Grown;
    }
    // SAFETY: the calling thread's errno, which lives as long as the thread.
    match unsafe { *errno() } {
        libc::ENOMEM => Growth::NoRoom,
        _ => Growth::Impossible,
    }
}

/// Moves the pages of `[start, start + old_bytes)` to the front of `[target, target + new_bytes)`,
/// without copying them, and gives the old addresses back to the OS. On `false`, the source is as
/// it was, and what became of the target is not known: it must not be used again, nor unmapped.
///
/// # Safety
/// - Both are page-aligned, were mapped by this module, and are used by the caller alone;
///   `old_bytes <= new_bytes`.
pub(crate) unsafe fn remap(
    start: NonNull<u8>,
    old_bytes: usize,
    target: NonNull<u8>,
    new_bytes: usize,
) -> bool {
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    let (start, target) = (
        start.as_ptr().cast(),
        target.as_ptr().cast::<libc::c_void>(),
    );
    // SAFETY: the caller owns both ranges; the call replaces the target by the source's pages.
    let moved = unsafe { libc::mremap(start, old_bytes, new_bytes, flags, target) };
    moved != libc::MAP_FAILED
}

/// Gives the memory of `[start, start + bytes)`, to the end of its last page, back to the OS while
/// the addresses stay mapped; it is zero when next used. Returns whether the OS did so: it refuses
/// where the program has locked its memory.
///
/// # Safety
/// - The range starts at a page, and all pages that it touches were mapped by this module.
/// - Nothing in them is used any more.
pub(crate) unsafe fn clear(start: *mut u8, bytes: usize) -> bool {
    // SAFETY: the caller vouches for the range; private anonymous memory reads as zero after this
    // advice.
    keeping_errno(|| unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) }) == 0
}

/// Asks for huge pages in `[start, start + bytes)`, rounded inwards to whole chunks. Returns
/// whether the OS took the advice.
pub(crate) fn advise_huge(start: *const u8, bytes: usize) -> bool {
    advise_chunks(start, bytes, libc::MADV_HUGEPAGE)
}

/// Asks for small pages where [`advise_huge`] asked for huge ones.
pub(crate) fn advise_small(start: *const u8, bytes: usize) -> bool {
    advise_chunks(start, bytes, libc::MADV_NOHUGEPAGE)
}

/// Gives `advice`, one of the two on huge pages.
fn advise_chunks(start: *const u8, bytes: usize, advice: libc::c_int) -> bool {
    let begin = start.addr().wrapping_add(CHUNK_BYTES - 1) & !(CHUNK_BYTES - 1);
    let end = start.addr().wrapping_add(bytes) & !(CHUNK_BYTES - 1);
    if begin < start.addr() || end <= begin {
        return false;
    }
    let begins = start.with_addr(begin).cast_mut().cast();
    // SAFETY: the advice changes how pages are backed, never what they contain; the kernel refuses
    // ranges that are not mapped, and the address is only named, not read.
    keeping_errno(|| unsafe { libc::madvise(begins, end - begin, advice) == 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::PAGE_BYTES;
    use crate::sys::{map, unmap};

    #[test]
    fn a_free_leaves_errno_alone() {
        let start = map(2 * PAGE_BYTES).unwrap();
        let page = start.as_ptr();
        // SAFETY: fresh memory; the advice is refused, because the range starts inside a page.
        unsafe {
            page.write(1);
            *errno() = libc::EDOM;
            assert!(!clear(page.wrapping_add(1), PAGE_BYTES));
            assert_eq!((*errno(), page.read()), (libc::EDOM, 1));
            assert!(clear(page, PAGE_BYTES));
            assert_eq!((*errno(), page.read()), (libc::EDOM, 0));
            unmap(start, 2 * PAGE_BYTES);
            assert_eq!(*errno(), libc::EDOM);
        }
    }
}
