//! The functions that would be called without this library, and what stands in for them until
//! they are known.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use super::sys;

/// A function of another library, looked up at its first call.
pub(crate) struct Real {
    pub(crate) name: &'static core::ffi::CStr,
    /// Whether to look behind this library, or everywhere.
    next: bool,
    pub(crate) address: AtomicPtr<c_void>,
}

impl Real {
    /// The function that would be called without this library, or one of the program itself.
    pub(crate) const fn new(name: &'static core::ffi::CStr, next: bool) -> Self {
        Self {
            name,
            next,
            address: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// The function's address; null while it is being looked up, or if nobody has it.
    pub(crate) fn address(&self) -> *mut c_void {
        let known = self.address.load(Ordering::Acquire);
        if known.is_null() {
            return self.find();
        }
        known
    }

    #[cold]
    #[inline(never)]
    fn find(&self) -> *mut c_void {
        let place = if self.next {
            sys::RTLD_NEXT
        } else {
            core::ptr::null_mut()
        };
        // SAFETY: the name ends with 0. What `dlsym` allocates meanwhile comes from `early`.
        let found = unsafe { sys::dlsym(place, self.name.as_ptr()) };
        self.address.store(found, Ordering::Release);
        found
    }
}

/// Memory for what `dlsym` allocates before the real functions are known. Never freed.
pub(crate) mod early {
    use super::*;

    const LEN: usize = 1 << 16;

    #[repr(align(16))]
    struct Memory(core::cell::UnsafeCell<[u8; LEN]>);

    // SAFETY: each byte is given out once.
    unsafe impl Sync for Memory {}

    static MEMORY: Memory = Memory(core::cell::UnsafeCell::new([0; LEN]));
    static USED: AtomicUsize = AtomicUsize::new(0);

    #[cold]
    #[inline(never)]
    pub(crate) fn take(bytes: usize) -> *mut c_void {
        let room = bytes.saturating_add(31) & !15;
        let at = USED.fetch_add(room, Ordering::Relaxed) + 16;
        if room > LEN || at + bytes > LEN {
            sys::die(
                b"the dynamic loader takes more memory than expected before `malloc` is known",
            );
        }
        // SAFETY: within the array; the size is kept in front.
        unsafe {
            let taken = MEMORY.0.get().cast::<u8>().add(at);
            taken.sub(16).cast::<usize>().write(bytes);
            taken.cast()
        }
    }

    /// # Safety
    ///
    /// `taken` comes from [`take`].
    pub(crate) unsafe fn size(taken: *mut c_void) -> usize {
        // SAFETY: `take` has written the size 16 bytes before what it gave (`# Safety`).
        unsafe { taken.cast::<u8>().sub(16).cast::<usize>().read() }
    }

    pub(crate) fn owns(address: *mut c_void) -> bool {
        (address as usize).wrapping_sub(MEMORY.0.get() as usize) < LEN
    }
}
