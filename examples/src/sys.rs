//! What an object of the system's malloc takes beyond the bytes asked for.

pub(crate) use imp::system_object_bytes;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod imp {
    use std::alloc::Layout;

    /// Bytes that the system's malloc set aside for the object at `ptr`: its usable size and the
    /// size word in front of it.
    ///
    /// # Safety
    /// - `ptr` was returned by the system's malloc and is live.
    pub(crate) unsafe fn system_object_bytes(ptr: *mut u8, _layout: Layout) -> usize {
        // SAFETY: the caller's promise is just what malloc_usable_size asks for.
        let usable_bytes = unsafe { libc::malloc_usable_size(ptr.cast()) };
        usable_bytes + size_of::<usize>()
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod imp {
    use std::alloc::Layout;

    /// Bytes asked for: this system does not tell what its malloc adds.
    ///
    /// # Safety
    /// None here; the twin for glibc reads in front of `ptr`.
    pub(crate) unsafe fn system_object_bytes(_ptr: *mut u8, layout: Layout) -> usize {
        layout.size()
    }
}
