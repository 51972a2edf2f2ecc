//! The loaded modules, by which the tool finds names of return addresses.

use core::sync::atomic::{AtomicU64, Ordering};

use super::capture::{at, header};
use super::unwind;
use crate::capture_format::{Module, NUMBER_SHIFT, layout};

/// Notes a loaded module in the capture.
pub(crate) fn note(start: u64, end: u64, bias: u64, path: &[u8]) {
    // SAFETY: the unwinder calls this for one module at a time; entries beyond the count are
    // nobody's.
    unsafe {
        let modules = AtomicU64::from_ptr(&raw mut (*header()).modules);
        let index = modules.load(Ordering::Relaxed);
        if index >= layout::MAX_MODULES {
            return;
        }
        let entry: *mut Module = at(layout::MODULES + index * size_of::<Module>() as u64);
        let len = path.len().min(487);
        (*entry).start = start;
        (*entry).end = end;
        (*entry).bias = bias;
        (&raw mut (*entry).path)
            .cast::<u8>()
            .copy_from_nonoverlapping(path.as_ptr(), len);
        modules.store(index + 1, Ordering::Release);
    }
}

const _: () = assert!(unwind::NUMBER_SHIFT == NUMBER_SHIFT);
