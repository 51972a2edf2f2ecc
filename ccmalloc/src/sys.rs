//! What the allocator asks of the operating system. Everything here returns failure as a value, and
//! allocates nothing.

use core::ffi::c_void;
use core::fmt::{self, Write};
use core::ptr::null;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(miri))]
mod memory;
#[cfg(miri)]
#[path = "sys/memory_miri.rs"]
mod memory;

mod peek;

pub(crate) use memory::{
    Growth, TAKES_PARTS_BACK, advise_huge, clear, grow_in_place, map, map_aligned, remap, unmap,
};
pub(crate) use peek::peek;

/// The key whose destructor runs at thread exit, plus one; 0 before it is made, [`NO_KEY`] after it
/// is gone.
static EXIT_KEY: AtomicUsize = AtomicUsize::new(0);
/// [`EXIT_KEY`] when there is none any more.
const NO_KEY: usize = usize::MAX;

/// Has `at_exit(value)` called when this thread ends. `value` must not be null. Does nothing when
/// the OS has no key left: the thread's heap is then never adopted, which wastes it.
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
                // SAFETY: made above, and not shown.
                unsafe { libc::pthread_key_delete(fresh) };
                key = winner;
            }
        }
    }
    if key == NO_KEY {
        return;
    }
    let Ok(key) = libc::pthread_key_t::try_from(key - 1) else {
        return;
    };
    // SAFETY: the key was made by `pthread_key_create`. If it has been deleted since it was read
    // above, the C library refuses it, or it is somebody else's new key, and the value is taken
    // back below: this thread has had no time to give that key a value of its own.
    unsafe { libc::pthread_setspecific(key, value) };
    if EXIT_KEY.load(Ordering::SeqCst) == NO_KEY {
        // SAFETY: as above.
        unsafe { libc::pthread_setspecific(key, null()) };
    }
}

/// Deletes the key, so that threads which end later do not call its destructor.
///
/// The allocator may be part of a shared library (a plug-in with a global allocator of its own).
/// When a program closes that with `dlclose`, the code of the destructor goes, while the program's
/// threads, and with them the values of the key, live on.
#[cfg(all(
    any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ),
    not(miri)
))]
extern "C" fn delete_exit_key() {
    let key = EXIT_KEY.swap(NO_KEY, Ordering::SeqCst);
    if let Some(key) = key.checked_sub(1)
        && let Ok(key) = libc::pthread_key_t::try_from(key)
    {
        // SAFETY: made by `pthread_key_create`; the swap gives it to one caller only.
        unsafe { libc::pthread_key_delete(key) };
    }
}

/// Called when the library that this is part of is unloaded, or else at the end of the process,
/// after all handlers of `atexit`.
#[cfg(all(
    any(
        target_os = "linux",
        target_os = "android",
        target_os = "freebsd",
        target_os = "netbsd",
        target_os = "openbsd"
    ),
    not(miri)
))]
#[used]
// Sound, because that section is an array of the addresses of such functions.
#[unsafe(link_section = ".fini_array")]
static AT_UNLOAD: extern "C" fn() = delete_exit_key;

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
    let mut line = Line::new();
    line.put(message.as_bytes());
    line.put(b" 0x");
    let digits = (usize::BITS - address.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        let value = address >> (4 * digit) & 0xf;
        line.put(b"0123456789abcdef".get(value..=value).unwrap_or(b"?"));
    }
    line.write();
    abort()
}

/// As [`die`], without an address.
#[cold]
#[inline(never)]
pub(crate) fn die_of(message: &str) -> ! {
    say(format_args!("{message}"));
    abort()
}

/// Says `message` on stderr in one line, by a raw write, without an allocation.
#[cold]
#[inline(never)]
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let mut line = Line::new();
    // A line that is too long is cut off.
    let _ = line.write_fmt(message);
    line.write();
}

fn abort() -> ! {
    // SAFETY: may be called at any time.
    unsafe { libc::abort() }
}

/// A line for stderr.
struct Line {
    bytes: [u8; 320],
    len: usize,
}

impl Line {
    fn new() -> Self {
        let mut line = Self {
            bytes: [0; 320],
            len: 0,
        };
        line.put(b"ccmalloc: ");
        line
    }

    /// Adds as much of `bytes` as there is room for, and for the line's end.
    fn put(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if self.len + 1 < self.bytes.len()
                && let Some(place) = self.bytes.get_mut(self.len)
            {
                *place = byte;
                self.len += 1;
            }
        }
    }

    fn write(mut self) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = b'\n';
            self.len += 1;
        }
        let written = self.bytes.get(..self.len).unwrap_or_default();
        // SAFETY: writes an initialised local buffer of this length.
        unsafe { libc::write(2, written.as_ptr().cast(), written.len()) };
    }
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}
