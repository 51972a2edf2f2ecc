//! What every access of a program runs through that was built for regions.
//!
//! Compiled into an archive (`regions_archive.rs`) that is linked into programs, and into the
//! library. Most accesses end here: those outside the heap, and those of bytes that the innermost
//! open region, and so all of them, have touched.

use super::super::local::{Local, local};
use super::super::track::{BLOCK, ELSEWHERE, PAGE, State, line, mask};

// `mod.rs`, in the library, defines these.
unsafe extern "C" {
    #[cold]
    safe fn ccscope_region_load(address: u64, size: u64);
    #[cold]
    safe fn ccscope_region_store(address: u64, size: u64);
}

/// One access of `size` bytes, at least 1, which the program makes next.
#[inline(always)]
pub(crate) fn access<const WRITE: bool>(address: u64, size: u64) {
    let local: *mut Local = local();
    // SAFETY: the block is this thread's, and so is its state, which is mapped as long as it is not
    // null. A record of a page is never given back.
    unsafe {
        let state = (*local).track;
        if state.is_null() {
            return rare::<WRITE>(address, size);
        }
        let line = line(state, address / PAGE);
        if (*line).page != address / PAGE {
            return rare::<WRITE>(address, size);
        }
        if (*line).blocks == ELSEWHERE {
            return elsewhere::<WRITE>(local);
        }
        let block = *(*line).blocks.add((address % PAGE / BLOCK) as usize);
        if size > BLOCK - address % BLOCK
            || block.stamp < (*state).current
            || mask(address, size) & !block.mask != 0
        {
            return rare::<WRITE>(address, size);
        }
        count::<WRITE>(local, state);
    }
}

/// # Safety
///
/// Both are the calling thread's.
#[inline(always)]
pub(crate) unsafe fn count<const WRITE: bool>(local: *mut Local, state: *mut State) {
    // SAFETY: both are the calling thread's (`# Safety`), so nobody else uses them.
    unsafe {
        let track = &raw mut (*state).track;
        if WRITE {
            (*track).writes += 1;
        } else {
            (*track).reads += 1;
        }
        (*local).now += 1;
    }
}

/// # Safety
///
/// The block is the calling thread's.
#[inline(always)]
pub(crate) unsafe fn elsewhere<const WRITE: bool>(local: *mut Local) {
    // SAFETY: the block is the calling thread's (`# Safety`).
    unsafe {
        (*local).other[usize::from(WRITE)] += 1;
        (*local).now += 1;
    }
}

#[inline(always)]
fn rare<const WRITE: bool>(address: u64, size: u64) {
    if WRITE {
        ccscope_region_store(address, size);
    } else {
        ccscope_region_load(address, size);
    }
}
