//! Mappings, on Unix.

use core::ptr::{NonNull, null_mut};

use super::keeping_errno;
use crate::geometry::PAGE_BYTES;

/// Whether parts of mappings, and neighbouring mappings as one, can be given back.
pub(crate) const TAKES_PARTS_BACK: bool = true;

/// Maps `bytes` (a multiple of the page size) of zeroed private memory at a multiple of `align`, a
/// power of two no smaller than a page. `None` when the OS refuses.
pub(crate) fn map_aligned(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    // Kernels place large mappings next to each other, so the plain request is often aligned.
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
    // SAFETY: the caller vouches for the range. A failure (splitting a mapping past the limit on
    // mappings) leaves the pages mapped, which is a leak and nothing worse.
    keeping_errno(|| unsafe { libc::munmap(start.as_ptr().cast(), bytes) });
}
