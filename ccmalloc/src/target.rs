//! Which object a reference means as a hint.
//!
//! `near(&x, ..)` takes a reference to a node, or to a variable that holds a pointer to one. A
//! trait cannot tell them apart, because any type may be a node. So the address decides:
//!
//! 1. If `x` lies in an object that was placed by a hint, `x` means that object.
//! 2. Otherwise `x` means the target of the first pointer to such an object among the words in its
//!    first [`BYTES_SEARCHED`] bytes.
//!
//! The words are read when the hint is given: at the time of the allocation, `x` may be gone. They
//! may hold any number (`sys::peek`), and a hint may be any number.

use core::panic::Location;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::arena::Own;
use crate::sys;

/// How much of a value is searched for a pointer.
const BYTES_SEARCHED: usize = 64;
const WORD_BYTES: usize = size_of::<usize>();

/// The address that `hint` means in the arena `own`: the argument of `Own::alloc_near`.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn target<T: ?Sized>(own: Option<Own<'_>>, hint: &T) -> usize {
    let address = (&raw const *hint).addr();
    if own.is_some_and(|own| own.is_colocated(address)) {
        return address;
    }
    let start: *const u8 = (&raw const *hint).cast();
    // SAFETY: the bytes of a value behind a reference, which outlives the call.
    unsafe { pointee(own, start, size_of_val(hint)) }.unwrap_or(address)
}

/// The first pointer to an object that was placed by a hint, among the words of a value.
///
/// # Safety
/// - The `bytes` bytes from `start` on belong to a value that outlives the call.
#[cold]
#[inline(never)]
#[cfg_attr(debug_assertions, track_caller)]
unsafe fn pointee(own: Option<Own<'_>>, start: *const u8, bytes: usize) -> Option<usize> {
    let first = start.addr().wrapping_neg() % WORD_BYTES;
    let last = bytes.min(BYTES_SEARCHED).checked_sub(WORD_BYTES)?;
    let mut is_empty = true;
    let found = (first..last + 1).step_by(WORD_BYTES).find_map(|at| {
        // SAFETY: aligned, and inside the value.
        let word = unsafe { sys::peek(start.wrapping_add(at).cast()) };
        is_empty &= word == 0;
        own.is_some_and(|own| own.is_colocated(word))
            .then_some(word)
    });
    if cfg!(debug_assertions) && found.is_none() && !is_empty {
        warn_of_local(start.addr());
    }
    found
}

/// Whether debug builds warn of hints that are local variables and lead nowhere.
static WARNS: AtomicBool = AtomicBool::new(true);

/// Turns the warning of hints that are local variables and lead to no object placed by a hint on or
/// off. Builds with debug assertions print it to stderr, once for each place in the source, except
/// for hints whose words are all zero, such as `()` and `None`.
pub fn set_hint_warnings(on: bool) {
    WARNS.store(on, Ordering::Relaxed);
}

/// A hint this close above the stack pointer counts as a local variable.
const STACK_BYTES: usize = 1 << 20;

/// Warns if `hint` is on the calling thread's stack, once for each place in the source.
#[track_caller]
fn warn_of_local(hint: usize) {
    static WARNED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];
    let here = 0u8;
    let is_local = hint.wrapping_sub((&raw const here).addr()) <= STACK_BYTES;
    if !is_local || !WARNS.load(Ordering::Relaxed) {
        return;
    }
    let place = Location::caller();
    let key = (&raw const *place).addr();
    for slot in &WARNED {
        match slot.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => {
                return sys::say(format_args!(
                    "{place}: this hint is a local variable that leads to no object placed by a \
                     hint of this thread (see `ccmalloc::near`; `set_hint_warnings` silences this)"
                ));
            }
            Err(warned) if warned == key => return,
            Err(_) => {}
        }
    }
}
