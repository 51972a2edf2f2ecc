//! What the allocator asks of the operating system. Everything here returns failure as a value, and allocates nothing.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(miri))]
mod memory;
#[cfg(miri)]
#[path = "sys/memory_miri.rs"]
mod memory;

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu",
    not(miri)
)))]
mod local;
#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu",
    not(miri)
))]
#[path = "sys/local_static.rs"]
mod local;

pub(crate) use local::{fast_heap, with_thread};
pub(crate) use memory::{
    Growth, TAKES_PARTS_BACK, advise_huge, clear, grow_in_place, map, map_aligned, remap, unmap,
};

/// The key whose destructor runs at thread exit, plus one; 0 before it is made.
static EXIT_KEY: AtomicUsize = AtomicUsize::new(0);

/// Has `at_exit(value)` called when this thread ends. `value` must not be null. Without effect when the OS has no key left:
/// the thread's heap is then never adopted, which wastes it and harms nothing.
pub(crate) fn on_thread_exit(value: *const c_void, at_exit: unsafe extern "C" fn(*mut c_void)) {
    let mut key = EXIT_KEY.load(Ordering::Acquire);
    if key == 0 {
        let mut fresh: libc::pthread_key_t = 0;
        // SAFETY: `fresh` is writable, and `at_exit` has the signature of a key's destructor.
        if unsafe { libc::pthread_key_create(&raw mut fresh, Some(at_exit)) } != 0 {
            return;
        }
        match EXIT_KEY.compare_exchange(0, fresh as usize + 1, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => key = fresh as usize + 1,
            Err(winner) => {
                // SAFETY: made above, and shown to nobody.
                unsafe { libc::pthread_key_delete(fresh) };
                key = winner;
            }
        }
    }
    let Ok(key) = libc::pthread_key_t::try_from(key - 1) else {
        return;
    };
    // SAFETY: the key was made by `pthread_key_create` and is never deleted.
    unsafe { libc::pthread_setspecific(key, value) };
}

/// Milliseconds since some time in the past, to a few. Some nanoseconds.
pub(crate) fn milliseconds() -> usize {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(CLOCK, &raw mut time) };
    usize::try_from(time.tv_sec)
        .unwrap_or(0)
        .wrapping_mul(1000)
        .wrapping_add(usize::try_from(time.tv_nsec / 1_000_000).unwrap_or(0))
}

/// A clock that is cheap to read.
#[cfg(target_os = "linux")]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
#[cfg(not(target_os = "linux"))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Says `message` and `address` on stderr in one line, by a raw write, and aborts.
#[cold]
#[inline(never)]
pub(crate) fn die(message: &str, address: usize) -> ! {
    let mut line = [0u8; 160];
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        for &byte in bytes {
            if let Some(place) = line.get_mut(len) {
                *place = byte;
                len += 1;
            }
        }
    };
    put(b"ccmalloc: ");
    put(message.as_bytes());
    put(b" 0x");
    let digits = (usize::BITS - address.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        let value = address >> (4 * digit) & 0xf;
        put(b"0123456789abcdef".get(value..=value).unwrap_or(b"?"));
    }
    put(b"\n");
    // SAFETY: writes the initialised front of a local buffer; `len <= line.len()` by the check above.
    unsafe {
        libc::write(2, line.as_ptr().cast(), len);
        libc::abort()
    }
}
