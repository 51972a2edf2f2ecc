//! What a program tells `ccscope run` and `ccscope trace`.

use std::ffi::c_void;

use crate::hook::Hook;

static START: Hook = Hook::new(c"ccscope_trace_start");
static STOP: Hook = Hook::new(c"ccscope_trace_stop");

/// Turns tracing on under `ccscope trace`; with its option `--paused`, it is off until then.
///
/// Without the tool this does nothing. It looks for the tracer each time, which takes some
/// microseconds.
///
/// ```
/// let mut numbers = vec![3, 1, 2];
/// ccscope::trace_start();
/// numbers.sort();
/// ccscope::trace_stop();
/// # assert_eq!(numbers, [1, 2, 3]);
/// ```
pub fn trace_start() {
    call(&START);
}

/// Turns tracing off under `ccscope trace`; see [`trace_start`].
pub fn trace_stop() {
    call(&STOP);
}

static SNAPSHOT: Hook = Hook::new(c"ccscope_snapshot");

/// Has `ccscope run` write a profile of this moment, soon, while the program runs on. Returns
/// whether the program is recorded.
///
/// Without the tool this does nothing, in some microseconds.
///
/// ```
/// let numbers = vec![3, 1, 2];
/// assert!(!ccscope::snapshot());
/// # drop(numbers);
/// ```
pub fn snapshot() -> bool {
    type Function = unsafe extern "C" fn() -> bool;
    if !SNAPSHOT.find() {
        return false;
    }
    #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
    // SAFETY: the runtime's function of this name, which may be called at any time.
    unsafe {
        std::mem::transmute::<*mut c_void, Function>(SNAPSHOT.address())()
    }
}

fn call(hook: &Hook) {
    type Function = unsafe extern "C" fn();
    if hook.find() {
        #[expect(clippy::disallowed_methods, reason = "what `dlsym` gives has no type")]
        // SAFETY: the tracer's function of this name, which may be called at any time.
        unsafe {
            std::mem::transmute::<*mut c_void, Function>(hook.address())();
        }
    }
}
