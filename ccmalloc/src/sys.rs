//! Requests to the operating system. Nothing here allocates; failure is a value.

use core::ffi::c_void;
use core::fmt::{self, Write};
use core::ptr::null;
use core::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(miri))]
mod memory;
#[cfg(miri)]
#[path = "sys/memory_miri.rs"]
mod memory;

#[cfg_attr(all(target_os = "linux", not(miri)), path = "sys/linux.rs")]
#[cfg_attr(not(all(target_os = "linux", not(miri))), path = "sys/portable.rs")]
mod vm;

mod peek;

pub(crate) use memory::{TAKES_PARTS_BACK, map, map_aligned, unmap};
pub use peek::peek;
#[cfg(not(miri))]
use vm::keeping_errno;
pub(crate) use vm::{advise_huge, advise_small, clear, grow_in_place, remap};

/// The result of a try to make a mapping longer where it lies.
#[cfg_attr(
    any(miri, not(target_os = "linux")),
    expect(dead_code, reason = "the other results need Linux")
)]
pub(crate) enum Growth {
    /// It is longer now.
    Grown,
    /// Something lies behind it, or the OS refuses memory; [`remap`] may work.
    NoRoom,
    /// The OS cannot resize it at all, because it is in pieces: made of neighbours that were mapped
    /// one by one, or cut by advice or protection that covers a part of it. It can only be copied.
    Impossible,
}

/// The key whose destructor runs at thread exit, plus one; 0 before it is made, [`NO_KEY`] after it
/// is gone.
static EXIT_KEY: AtomicUsize = AtomicUsize::new(0);
/// [`EXIT_KEY`] when there is none any more.
const NO_KEY: usize = usize::MAX;

/// Registers `at_exit(value)` to be called when this thread ends. `value` must not be null. Does
/// nothing when the OS has no key left: the memory of the thread's arena is then never reused.
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
    // above, the C library refuses it, or it is other code's new key, and the value is taken back
    // below: this thread has had no time to give that key a value of its own.
    unsafe { libc::pthread_setspecific(key, value) };
    if EXIT_KEY.load(Ordering::SeqCst) == NO_KEY {
        // SAFETY: a deleted key is refused; if it is other code's now, this thread has no value of
        // its own there.
        unsafe { libc::pthread_setspecific(key, null()) };
    }
}

/// Deletes the exit key when the library that this is part of is unloaded, or else at the end of
/// the process, after all handlers of `atexit`.
///
/// A plug-in may have this allocator. When a program closes it with `dlclose`, the code of the
/// key's destructor goes, while the program's threads, and their values of the key, live on.
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
mod at_unload {
    use super::{EXIT_KEY, NO_KEY, Ordering};

    extern "C" fn delete_exit_key() {
        let key = EXIT_KEY.swap(NO_KEY, Ordering::SeqCst);
        if let Some(key) = key.checked_sub(1)
            && let Ok(key) = libc::pthread_key_t::try_from(key)
        {
            // SAFETY: made by `pthread_key_create`; the swap gives it to one caller only.
            unsafe { libc::pthread_key_delete(key) };
        }
    }

    #[used]
    // Sound, because that section is an array of the addresses of such functions.
    #[unsafe(link_section = ".fini_array")]
    static AT_UNLOAD: extern "C" fn() = delete_exit_key;
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    // SAFETY: has no preconditions.
    unsafe { libc::sched_yield() };
}

/// Lets other threads run for a quarter of a millisecond or longer.
pub(crate) fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 250_000,
    };
    // SAFETY: reads a local variable, and writes nothing.
    unsafe { libc::nanosleep(&raw const time, core::ptr::null_mut()) };
}

/// The number of this process: another one in the child of a `fork`. Neither 0 nor `u32::MAX`.
pub(crate) fn process_id() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::getpid() }.cast_unsigned()
}

/// Milliseconds since some time in the past, precise to a few.
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

/// A clock that is fast to read.
#[cfg(target_os = "linux")]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
#[cfg(not(target_os = "linux"))]
const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// Calls `f` while the thread takes no signals, and what it starts takes none.
pub(crate) fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: zero bytes are a signal set, which is filled below.
    let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { core::mem::zeroed() };
    // SAFETY: both are sets of this function's.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    let result = f();
    // SAFETY: `before` was filled by the first call, and the old set is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, core::ptr::null_mut()) };
    result
}

/// Prints `message` and `address` to stderr, and aborts unless the program wants to go on without
/// the free that this is about.
#[cold]
#[inline(never)]
pub(crate) fn refuse(message: &str, address: usize) {
    if !crate::options::warns() {
        die(message, address);
    }
    say(format_args!("{message} {address:#x} (ignored)"));
}

/// Prints `message` and `address` to stderr and aborts.
#[cold]
#[inline(never)]
pub(crate) fn die(message: &str, address: usize) -> ! {
    die_of(format_args!("{message} {address:#x}"))
}

/// Prints `message` to stderr and aborts.
#[cold]
#[inline(never)]
pub(crate) fn die_of(message: fmt::Arguments<'_>) -> ! {
    say(message);
    // SAFETY: may be called at any time.
    unsafe { libc::abort() }
}

/// Prints a line to stderr in one write, without an allocation.
#[cold]
#[inline(never)]
pub(crate) fn say(message: fmt::Arguments<'_>) {
    let mut line = Line([0; 320], 0);
    // A line that is too long is cut off.
    let _ = writeln!(line, "ccmalloc: {message}");
    // SAFETY: writes an initialised local buffer of this length.
    unsafe { libc::write(2, line.0.as_ptr().cast(), line.1) };
}

/// The bytes of a line, and how many there are.
struct Line([u8; 320], usize);

impl Write for Line {
    /// Adds as much of `text` as there is room for; the last byte is for the line's end.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for &byte in text.as_bytes() {
            if let Some(place) = self.0.get_mut(self.1)
                && (self.1 < 319 || byte == b'\n')
            {
                *place = byte;
                self.1 += 1;
            }
        }
        Ok(())
    }
}
