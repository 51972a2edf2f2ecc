//! Mappings for Miri, which knows no `munmap` of parts: each is an allocation of the system's, and
//! parts are not unmapped.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::NonNull;
use std::sync::Mutex;

/// See the Unix version.
pub(crate) const TAKES_PARTS_BACK: bool = false;

/// What is mapped: start, bytes, alignment. A plain array, since a collection would allocate from
/// the allocator under test.
static MAPPED: Mutex<[(usize, usize, usize); 512]> = Mutex::new([(0, 0, 0); 512]);

/// See the Unix version.
pub(crate) fn map_aligned(bytes: usize, align: usize) -> Option<NonNull<u8>> {
    let layout = Layout::from_size_align(bytes, align).ok()?;
    // No program under Miri is meant to have more; asking for it would end the interpreter instead
    // of failing.
    if bytes > 256 << 20 {
        return None;
    }
    let mut mapped = MAPPED.lock().ok()?;
    let free = mapped.iter_mut().find(|entry| entry.1 == 0)?;
    // SAFETY: the size is not 0.
    let start = NonNull::new(unsafe { System.alloc_zeroed(layout) })?;
    *free = (start.addr().get(), bytes, align);
    Some(start)
}

/// See the Unix version.
pub(crate) fn map(bytes: usize) -> Option<NonNull<u8>> {
    map_aligned(bytes, 4096)
}

/// See the Unix version. Does nothing unless the range is a whole mapping.
///
/// # Safety
/// - As for the Unix version.
pub(crate) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    let Ok(mut mapped) = MAPPED.lock() else {
        return;
    };
    let whole = mapped
        .iter_mut()
        .find(|entry| entry.0 == start.addr().get() && entry.1 == bytes);
    let Some(entry) = whole else { return };
    let Ok(layout) = Layout::from_size_align(entry.1, entry.2) else {
        return;
    };
    *entry = (0, 0, 0);
    // The provenance of the whole mapping: the caller's pointer may have that of a part.
    let start: *mut u8 = std::ptr::with_exposed_provenance_mut(start.addr().get());
    // SAFETY: allocated by `map_aligned` with this layout, and given up by the caller.
    unsafe { System.dealloc(start, layout) };
}
