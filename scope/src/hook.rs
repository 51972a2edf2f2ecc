//! Functions of the profiler's libraries, which a process has only under the tool.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A function of the runtime, if the process has one.
pub(crate) struct Hook {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Hook {
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    // In the caller, as all of the profiler's own work is: it is no region.
    #[inline(always)]
    pub(crate) fn find(&self) -> bool {
        self.find_in(libc::RTLD_DEFAULT)
    }

    /// Finds the function that stands behind the program's own.
    pub(crate) fn find_next(&self) -> bool {
        self.find_in(libc::RTLD_NEXT)
    }

    #[inline(always)]
    fn find_in(&self, libraries: *mut c_void) -> bool {
        // SAFETY: the name ends with 0.
        let found = unsafe { libc::dlsym(libraries, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        !found.is_null()
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> *mut c_void {
        self.address.load(Ordering::Acquire)
    }
}
