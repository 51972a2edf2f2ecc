//! Mappings, on Unix.

#[cfg(target_os = "linux")]
use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use crate::geometry::{CHUNK_BYTES, PAGE_BYTES};

/// Whether parts of mappings, and neighbouring mappings as one, can be given back.
pub(crate) const TAKES_PARTS_BACK: bool = true;

/// Maps `bytes` (a multiple of the page size) of zeroed private memory at a multiple of `align`, a
/// power of two no smaller than a page. `None` when the OS refuses.
pub(crate) fn map_aligned(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    // Kernels place large mappings next to each other: the plain request is aligned already more
    // often than not once the first chunk has been trimmed.
    let first = map(bytes)?;
    if first.addr().get() & (align - 1) == 0 {
        return Some(first);
    }
    // SAFETY: mapped just above with this length, and not given out.
    unsafe { unmap(first, bytes) };
    let padded = bytes.checked_add(align - PAGE_BYTES)?;
    let start = map(padded)?;
    let head = start.addr().get().wrapping_neg() & (align - 1);
    let tail = padded - head - bytes;
    // SAFETY: `head <= align - PAGE_BYTES`, since both addresses are multiples of a page, so
    // `head + bytes <= padded`.
    let aligned = unsafe { start.add(head) };
    if head > 0 {
        // SAFETY: the first `head` bytes of the fresh mapping, in front of what is returned.
        unsafe { unmap(start, head) };
    }
    if tail > 0 {
        // SAFETY: the last `tail` bytes of the fresh mapping, behind what is returned.
        unsafe { unmap(aligned.add(bytes), tail) };
    }
    Some(aligned)
}

/// Maps `bytes` of zeroed private memory wherever the OS likes.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches no memory in use.
    let address = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        None
    } else {
        NonNull::new(address.cast())
    }
}

/// Gives `[start, start + bytes)` back to the OS.
///
/// # Safety
/// - The range is page-aligned and was mapped by this module.
/// - Nothing in it is used any more.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    let errno = errno();
    // SAFETY: the caller vouches for the range. A failure (splitting a mapping past the limit on
    // mappings) leaves the pages mapped, which is a leak and nothing worse.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
    set_errno(errno);
}

/// The C library's `errno`. A free must leave it as it was (POSIX.1-2024), also when the OS refuses
/// to unmap.
#[cfg(target_os = "linux")]
fn errno() -> libc::c_int {
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() }
}

/// Puts `errno` back.
#[cfg(target_os = "linux")]
fn set_errno(value: libc::c_int) {
    // SAFETY: the calling thread's errno.
    unsafe { *libc::__errno_location() = value };
}

/// Portable twin: not kept.
#[cfg(not(target_os = "linux"))]
fn errno() -> libc::c_int {
    0
}

/// Portable twin: not kept.
#[cfg(not(target_os = "linux"))]
fn set_errno(_value: libc::c_int) {}

/// What came of a try to make a mapping longer where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// It is longer now.
    Grown,
    /// Something lies behind it, or the OS refuses memory; [`remap`] may work.
    NoRoom,
    /// The OS cannot resize it at all, because it is in pieces: made of neighbours that were mapped
    /// one by one, or cut by advice or protection that covers a part of it. It can only be copied.
    Impossible,
}

/// Tries to make `[start, start + old_bytes)` longer where it lies.
///
/// # Safety
/// - That range is page-aligned, was mapped by this module, be it as a part of a mapping or by
///   several calls, and is used by the caller alone; `old_bytes <= new_bytes`.
#[cfg(target_os = "linux")]
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
    match errno() {
        libc::ENOMEM => Growth::NoRoom,
        _ => Growth::Impossible,
    }
}

/// Portable twin: pages cannot be moved, so the caller copies.
///
/// # Safety
/// - As for the Linux version.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn grow_in_place(
    _start: NonNull<u8>,
    _old_bytes: usize,
    _new_bytes: usize,
) -> Growth {
    Growth::Impossible
}

/// Moves the pages of `[start, start + old_bytes)` to the front of `[target, target + new_bytes)`,
/// without copying them, and gives the old addresses back to the OS. On `false`, the source is as
/// it was, and what became of the target is not known: it must not be used again, nor unmapped.
///
/// # Safety
/// - Both are page-aligned, were mapped by this module, and are used by the caller alone;
///   `old_bytes <= new_bytes`.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn remap(
    start: NonNull<u8>,
    old_bytes: usize,
    target: NonNull<u8>,
    new_bytes: usize,
) -> bool {
    // SAFETY: the caller owns both ranges; the call replaces the target by the source's pages.
    let moved = unsafe {
        libc::mremap(
            start.as_ptr().cast(),
            old_bytes,
            new_bytes,
            libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED,
            target.as_ptr().cast::<c_void>(),
        )
    };
    moved != libc::MAP_FAILED
}

/// Portable twin: copies the pages.
///
/// # Safety
/// - As for the Linux version.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn remap(
    start: NonNull<u8>,
    old_bytes: usize,
    target: NonNull<u8>,
    _new_bytes: usize,
) -> bool {
    // SAFETY: two distinct mappings of at least `old_bytes`, the caller's alone.
    unsafe { core::ptr::copy_nonoverlapping(start.as_ptr(), target.as_ptr(), old_bytes) };
    // SAFETY: the source is the caller's alone, and not used any more.
    unsafe { unmap(start, old_bytes) };
    true
}

/// Gives the memory of `[start, start + bytes)`, to the end of its last page, back to the OS while
/// the addresses stay mapped; it is zero when next used. Returns whether the OS did so.
///
/// # Safety
/// - The range starts at a page, and all pages that it touches were mapped by this module.
/// - Nothing in them is used any more.
#[cfg(target_os = "linux")]
pub(crate) unsafe fn clear(start: *mut u8, bytes: usize) -> bool {
    // Refused where the program has locked its memory.
    let errno = errno();
    // SAFETY: the caller vouches for the range; private anonymous memory reads as zero after this
    // advice.
    let cleared = unsafe { libc::madvise(start.cast(), bytes, libc::MADV_DONTNEED) == 0 };
    set_errno(errno);
    cleared
}

/// Portable twin: elsewhere the advice does not promise zeroes.
///
/// # Safety
/// - As for the Linux version.
#[cfg(not(target_os = "linux"))]
pub(crate) unsafe fn clear(_start: *mut u8, _bytes: usize) -> bool {
    false
}

/// Asks for huge pages in `[start, start + bytes)`, rounded inwards to whole chunks. Returns
/// whether the OS took the advice.
#[cfg(target_os = "linux")]
pub(crate) fn advise_huge(start: *const u8, bytes: usize) -> bool {
    let begin = start.addr().wrapping_add(CHUNK_BYTES - 1) & !(CHUNK_BYTES - 1);
    let end = start.addr().wrapping_add(bytes) & !(CHUNK_BYTES - 1);
    if begin < start.addr() || end <= begin {
        return false;
    }
    // SAFETY: MADV_HUGEPAGE changes how pages are backed, never what they contain; the kernel
    // refuses ranges that are not mapped, and the address is only named, not read.
    unsafe {
        libc::madvise(
            start.with_addr(begin).cast_mut().cast(),
            end - begin,
            libc::MADV_HUGEPAGE,
        ) == 0
    }
}

/// Portable twin: no such advice.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge(_start: *const u8, _bytes: usize) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_a_free_asks_leaves_errno_alone() {
        let start = map(2 * PAGE_BYTES).unwrap();
        let page = start.as_ptr();
        // SAFETY: fresh memory; the advice is refused, because the range starts inside a page.
        unsafe {
            page.write(1);
            set_errno(libc::EDOM);
            assert!(!clear(page.wrapping_add(1), PAGE_BYTES));
            assert_eq!((errno(), page.read()), (libc::EDOM, 1));
            assert!(clear(page, PAGE_BYTES));
            assert_eq!((errno(), page.read()), (libc::EDOM, 0));
            unmap(start, 2 * PAGE_BYTES);
            assert_eq!(errno(), libc::EDOM);
        }
    }
}
