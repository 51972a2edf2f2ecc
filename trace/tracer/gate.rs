//! The gate: the only code from which system calls reach the kernel.
//!
//! Every other system call of a thread comes to us as SIGSYS (Syscall User Dispatch). We let the
//! thread go on at a stub of the gate that does the call, so it waits, is interrupted and is left
//! by `longjmp` as if it had called the kernel itself.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::context::Context;
use super::sys;

/// Bytes of the gate.
pub(crate) const SIZE: u64 = 1 << 20;
/// `syscall; ret`.
const CALL: u64 = 0;
/// `mov rax, 15; syscall`: where handlers of signals return to. Unwinders know these bytes.
pub(crate) const RETURN: u64 = 16;
/// `syscall; int3`: the call's end comes to us, too.
pub(crate) const AFTER: u64 = 32;
/// The same for calls that return twice.
pub(crate) const TWICE: u64 = 48;
/// `syscall` with nothing behind it, where there is no place for the return of a handler.
pub(crate) const LAST: u64 = 64;
/// From here on, `syscall; jmp [rip]` with the address behind it, for each place that calls.
const PLACES: u64 = 128;
const PLACE: u64 = 16;

/// Where the gate lies.
static START: AtomicU64 = AtomicU64::new(0);

/// Where the gate lies.
pub(crate) fn start() -> u64 {
    START.load(Relaxed)
}

/// Makes the gate.
pub(crate) fn init() {
    let start = sys::memory(SIZE);
    let stubs: [(u64, &[u8]); 5] = [
        (CALL, &[0x0f, 0x05, 0xc3]),
        (
            RETURN,
            &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b],
        ),
        (AFTER, &[0x0f, 0x05, 0xcc]),
        (TWICE, &[0x0f, 0x05, 0xcc]),
        (LAST, &[0x0f, 0x05, 0x0f, 0x0b]),
    ];
    let exec = sys::PROT_READ | sys::PROT_WRITE | sys::PROT_EXEC;
    // SAFETY: the memory is ours, and nobody runs it yet.
    unsafe {
        for (at, code) in stubs {
            sys::copy(start + at, code.as_ptr() as u64, code.len() as u64);
        }
        sys::protect(start, SIZE, exec);
    }
    START.store(start, Relaxed);
    // SAFETY: the stub with `syscall; ret` was written there just now, and is never unmapped.
    unsafe { sys::set_gate(start + CALL) };
}

/// `syscall`, for [`stub_to`].
pub(crate) const CALL_64: u16 = 0x050f;
/// `int 0x80`, for [`stub_to`].
pub(crate) const INT_80: u16 = 0x80cd;

/// A stub that does a system call by this instruction and goes on at `next`, behind the program's
/// own of that kind; the caller holds the lock.
pub(crate) fn stub_to(next: u64, instruction: u16) -> Option<u64> {
    let start = start();
    let most = (SIZE - PLACES) / PLACE;
    // Open addressing: a place's own words are the table.
    let mut at = next.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    for _ in 0..64 {
        at %= most;
        let place = start + PLACES + at * PLACE;
        // SAFETY: within the gate; only this function writes there, under the lock. Who runs a
        // stub got its address after it was whole.
        unsafe {
            let known = sys::word(place + 8);
            if known == next {
                return Some(place);
            }
            if known == 0 {
                // ff 25 00000000: jmp [rip].
                sys::set_word(place, 0x25ff << 16 | u64::from(instruction));
                sys::set_word(place + 8, next);
                return Some(place);
            }
        }
        at += 1;
    }
    None
}

/// Bytes of the program's own instruction, of either kind.
pub(crate) const SYSCALL: u64 = 2;

/// Takes a thread out of a stub: to behind the program's call, or to before it, if it is still to
/// be made or made again. The caller holds the lock.
pub(crate) fn rewind(context: &mut Context) {
    let at = context.rip.wrapping_sub(start());
    if at == CALL + SYSCALL {
        // SAFETY: a call of our own has put the address there that it returns to.
        context.rip = unsafe { sys::word(context.rsp) };
        context.rsp += 8;
    } else if (PLACES..SIZE).contains(&at) {
        let place = at - at % PLACE;
        // SAFETY: a thread is here, so the stub is whole.
        let next = unsafe { sys::word(start() + place + 8) };
        context.rip = if at == place { next - SYSCALL } else { next };
    }
}

/// Whether this kernel has what [`dispatch`] needs.
pub(crate) fn can_dispatch() -> bool {
    const OFF: u64 = 0;
    // SAFETY: no call goes to a handler before `dispatch`, and this turns off what is off.
    !sys::failed(unsafe { sys::call(sys::PRCTL, [SET_DISPATCH, OFF, 0, 0, 0, 0]) })
}

const SET_DISPATCH: u64 = 59;

/// Dispatches the calling thread's system calls to us.
pub(crate) fn dispatch() {
    const ON: u64 = 1;
    let range = [SET_DISPATCH, ON, start(), SIZE, 0, 0];
    // SAFETY: calls from the gate go through; the handler of SIGSYS is there.
    let result = unsafe { sys::call(sys::PRCTL, range) };
    if sys::failed(result) {
        sys::die(b"this kernel has no Syscall User Dispatch (Linux 5.11)");
    }
}
