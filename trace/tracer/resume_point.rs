//! Where the program is when a signal interrupts a thread: its handlers find the thread there, and
//! not in code of ours. Unwinders, profilers and the cancellation of threads look at that.
//!
//! * In the [gate](super::gate): before or behind the program's own `syscall`.
//! * Behind a [thunk's](super::thunks) instruction: behind the program's own.
//! * Before it, or within a [body](super::wire::Body): the access is recorded already, or half of
//!   it is. The signal is sent again, and the thread goes on by traps with signals kept away until
//!   it is out of there.

use core::sync::atomic::Ordering::Relaxed;

use super::context::{Context, Info, TRAP_FLAG};
use super::threads::{self, Thread};
use super::{gate, masks, patches, sys, thunks};

const SIGILL: i32 = 4;
const SIGFPE: i32 = 8;

/// Puts an interrupted thread to where the program is, under the lock. False: it has to go on
/// first, and the signal comes again.
pub(crate) fn rewind(signal: i32, info: &mut Info, context: &mut Context) -> bool {
    gate::rewind(context);
    // The instruction itself is what failed: it is not done, and will not be.
    let is_fault = [SIGILL, SIGFPE].contains(&signal) && info.code > 0;
    if let Some(thunk) = thunks::instruction_of(context.rip) {
        let is_recorded = context.rip == thunk.code && thunk.delta != 0;
        if is_recorded && !is_fault && go_on(signal, info, context) {
            return false;
        }
        thunk.leave(context);
    } else if is_fault {
        patches::leave(info, context);
    } else if patches::is_in_body(context.rip) {
        return !go_on(signal, info, context);
    }
    if is_fault {
        info.address = context.rip;
    }
    true
}

/// Sends the signal again, and has the thread run one instruction; false if it cannot be sent.
fn go_on(signal: i32, info: &Info, context: &mut Context) -> bool {
    let (process, thread) = (sys::process(), u64::from(sys::thread()));
    let number = u64::from(signal.unsigned_abs());
    let place = core::ptr::from_ref(info) as u64;
    // SAFETY: the kernel reads what it has written for the handler.
    let result = unsafe {
        let words = [process, thread, number, place, 0, 0];
        sys::call(sys::RT_TGSIGQUEUEINFO, words)
    };
    if sys::failed(result) {
        return false;
    }
    let thread = threads::this();
    thread.mask.store(context.mask, Relaxed);
    thread.goes_on.store(1, Relaxed);
    context.mask = !masks::OF_INSTRUCTIONS;
    context.eflags |= TRAP_FLAG;
    true
}

/// Handles a trap of a thread that goes on; false if it does not.
pub(crate) fn went_on(thread: &Thread, context: &mut Context) -> bool {
    let goes_on = thread.goes_on.load(Relaxed) != 0;
    if goes_on && !patches::is_in_body(context.rip) {
        stop(thread, context);
    }
    goes_on
}

/// A thread that goes on is where it should be, or has faulted.
pub(crate) fn stop(thread: &Thread, context: &mut Context) {
    if thread.goes_on.swap(0, Relaxed) != 0 {
        context.eflags &= !TRAP_FLAG;
        context.mask = thread.mask.load(Relaxed);
    }
}
