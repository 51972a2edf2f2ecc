//! What `ccscope::measure` asks of the runtime, and tells it.

use core::sync::atomic::{AtomicU64, Ordering};

use super::capture::{at, header};
use super::local::local;
use super::recording::active;
use crate::capture_format::{Exceeded, layout};

/// Where the calling thread has allocated last; 0 if it has not.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) extern "C" fn ccscope_site() -> u32 {
    // SAFETY: the block is this thread's.
    unsafe { (*local()).last_site }
}

/// Notes that a test panicked after a measure at `place`, and what that has counted by site.
///
/// # Safety
///
/// `place` points to `len` bytes and `sites` to `count` entries.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn ccscope_exceeded(
    place: *const u8,
    len: usize,
    sites: *const [u64; 3],
    count: usize,
) {
    if !active() {
        return;
    }
    let mut entry = Exceeded {
        place: [0; 128],
        sites: [[0; 3]; 16],
    };
    // SAFETY: both point to as many as is said (`# Safety`). The capture is mapped, and entries
    // that the count leads to are this call's alone.
    unsafe {
        let place = core::slice::from_raw_parts(place, len.min(entry.place.len() - 1));
        entry.place[..place.len()].copy_from_slice(place);
        let sites = core::slice::from_raw_parts(sites, count.min(entry.sites.len()));
        entry.sites[..sites.len()].copy_from_slice(sites);
        let all = AtomicU64::from_ptr(&raw mut (*header()).exceeded);
        let index = all.fetch_add(1, Ordering::Relaxed);
        if index < layout::MAX_EXCEEDED {
            *at(layout::EXCEEDED + index * size_of::<Exceeded>() as u64) = entry;
        }
    }
}
