//! Threads that are spawned in a measure: the function that creates threads, taken over by a
//! program that asks for it.

use std::ffi::{c_int, c_void};
use std::sync::{Arc, OnceLock};

use crate::counts::{self, Measure};
use crate::hook::Hook;

/// Key of what has threads leave their measure when they end; none if the program does not have
/// [`count_threads!`](crate::count_threads). Its destructor runs after those of thread-local
/// variables.
static KEY: OnceLock<libc::pthread_key_t> = OnceLock::new();

pub(crate) fn are_counted() -> bool {
    KEY.get().is_some()
}

/// Lets [`measure_with_threads`](crate::measure_with_threads) see the threads that a program
/// spawns. It stands once in a test or program, outside of functions.
///
/// It defines `pthread_create`, which calls that of libc: Linux with glibc only.
#[macro_export]
macro_rules! count_threads {
    () => {
        const _: () = {
            #[used]
            #[unsafe(link_section = ".init_array")]
            static BEGIN: extern "C" fn() = $crate::spawned::begin;

            /// `pthread_create`
            ///
            /// # Safety
            ///
            /// As for that function.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn pthread_create(
                thread: *mut ::core::ffi::c_void,
                attributes: *const ::core::ffi::c_void,
                function: $crate::spawned::Function,
                argument: *mut ::core::ffi::c_void,
            ) -> ::core::ffi::c_int {
                // SAFETY: the arguments are those of a call of `pthread_create` (`# Safety`).
                unsafe { $crate::spawned::create(thread, attributes, function, argument) }
            }
        };
    };
}

/// What a thread runs.
pub type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// What is to run in a thread, and which measure it counts in.
struct Start {
    function: Function,
    argument: *mut c_void,
    measure: Arc<Measure>,
}

/// Says that the program has the macro.
pub extern "C" fn begin() {
    let mut key = 0;
    // SAFETY: the key is written, and the destructor takes what `run` gives it.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(end)) } == 0 {
        KEY.get_or_init(|| key);
    }
}

/// # Safety
///
/// `measure` is of [`counts::join`], and the thread ends.
unsafe extern "C" fn end(measure: *mut c_void) {
    // SAFETY: as the caller promises (`# Safety`).
    unsafe { counts::leave(measure.cast_const().cast()) };
}

/// `pthread_create`, whose thread counts in the nearest shared measure of this one.
///
/// # Safety
///
/// As for `pthread_create`.
pub unsafe fn create(
    thread: *mut c_void,
    attributes: *const c_void,
    function: Function,
    argument: *mut c_void,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut c_void, *const c_void, Function, *mut c_void) -> c_int;
    static REAL: Hook = Hook::new(c"pthread_create");
    if REAL.address().is_null() && !REAL.find_next() {
        return libc::EAGAIN;
    }
    #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
    // SAFETY: `pthread_create` has this type.
    let real = unsafe { std::mem::transmute::<*mut c_void, Create>(REAL.address()) };
    let start = counts::nearest_shared().map(|measure| {
        counts::uncounted(|| {
            Box::into_raw(Box::new(Start {
                function,
                argument,
                measure,
            }))
        })
    });
    let Some(start) = start else {
        // SAFETY: the arguments are those of a call of `pthread_create` (`# Safety`).
        return unsafe { real(thread, attributes, function, argument) };
    };
    // SAFETY: as above. `run` takes `start`, and calls `function` with `argument` once, as the real
    // function would.
    let status = unsafe { real(thread, attributes, run, start.cast()) };
    if status != 0 {
        // SAFETY: no thread has begun, so that nobody else has the box.
        counts::uncounted(|| drop(unsafe { Box::from_raw(start) }));
    }
    status
}

/// The function that such threads begin in.
///
/// # Safety
///
/// `start` is of [`create`], for this thread.
unsafe extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: the box is this thread's (`# Safety`).
    let Start {
        function,
        argument,
        measure,
    } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    let measure = counts::join(measure);
    if let Some(&key) = KEY.get() {
        // SAFETY: the destructor of this key takes it when this thread ends.
        unsafe { libc::pthread_setspecific(key, measure.cast()) };
    }
    // SAFETY: the program has passed both to `pthread_create` for one call.
    unsafe { function(argument) }
}
