//! Breakpoints, by which `--from` and `--to` turn tracing on and off. Under the tracer's lock.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::context::{Context, Info};
use super::sys;
use super::threads::{self, Thread};
use super::wire::LONGEST;
use super::{patches, thunks, zones};

const MOST: usize = 64;
const FROM: u64 = 1;
const TO: u64 = 2;
const BACK: u64 = 3;
const BREAK: u8 = 0xcc;

/// A breakpoint: its address, what it is for, and the byte that it stands for.
static POINTS: [[AtomicU64; 3]; MOST] = [const { [const { AtomicU64::new(0) }; 3] }; MOST];
/// Whether `--to` is given; else tracing ends when `--from`'s function returns.
static HAS_TO: AtomicU64 = AtomicU64::new(0);

/// Sets the breakpoint of `--from`.
pub(crate) fn set_from(address: u64) {
    set(address, FROM);
}

/// Sets the breakpoint of `--to`.
pub(crate) fn set_to(address: u64) {
    HAS_TO.store(1, Relaxed);
    set(address, TO);
}

fn set(address: u64, kind: u64) {
    if POINTS.iter().any(|it| it[0].load(Relaxed) == address) {
        return;
    }
    let Some(point) = POINTS.iter().find(|it| it[0].load(Relaxed) == 0) else {
        return;
    };
    patches::without(address, || {
        let mut byte = [0_u8];
        // SAFETY: there may be nothing, which `try_copy` finds out.
        if unsafe { sys::try_copy(byte.as_mut_ptr() as u64, address, 1) } {
            point[2].store(byte[0].into(), Relaxed);
            point[1].store(kind, Relaxed);
            point[0].store(address, Relaxed);
            patches::write_code(address, &[BREAK]);
        }
    });
}

/// Whether there is one in the instruction at `ip`, however long.
pub(crate) fn are_near(ip: u64) -> bool {
    let is_near = |point: &[AtomicU64; 3]| point[0].load(Relaxed).wrapping_sub(ip) < LONGEST as u64;
    POINTS.iter().any(is_near)
}

/// Puts the program's own bytes in place of breakpoints in what was read at `ip`.
pub(crate) fn original(ip: u64, bytes: &mut [u8; 16]) {
    for point in &POINTS {
        let at = point[0].load(Relaxed).wrapping_sub(ip);
        if at < 16 {
            bytes[at as usize] = point[2].load(Relaxed) as u8;
        }
    }
}

/// Handles a trap; false if it is none of our breakpoints.
pub(crate) fn hit(info: &Info, context: &mut Context) -> bool {
    const BY_BREAKPOINT: i32 = 0x80;
    let address = context.rip.wrapping_sub(1);
    if address == 0 || info.code != BY_BREAKPOINT {
        return false;
    }
    let Some(point) = POINTS.iter().find(|it| it[0].load(Relaxed) == address) else {
        const INT_3: [u8; 2] = [0xcd, 3];
        let mut code = INT_3;
        // SAFETY: the place may be gone, which `try_copy` finds out.
        unsafe { sys::try_copy(code.as_mut_ptr() as u64, address - 1, 2) };
        // Another thread has removed it since.
        let was_ours = code != INT_3 && code[1] != BREAK;
        if was_ours {
            context.rip = address;
        }
        return was_ours;
    };
    context.rip = address;
    // A coroutine's stack may be traced from now on, or be so already.
    zones::release_stack(context.rsp, context.rsp);
    let thread = threads::this();
    match point[1].load(Relaxed) {
        FROM if !zones::is_closed() || is_left(thread, context.rsp) => {
            zones::set_closed(true);
            let is_first = thread.until.load(Relaxed) == 0 || is_left(thread, context.rsp);
            if HAS_TO.load(Relaxed) == 0 && is_first {
                // A function begins with its return address on the stack.
                let mut back = 0_u64;
                // SAFETY: there may be nothing, which `try_copy` finds out.
                if unsafe { sys::try_copy((&raw mut back) as u64, context.rsp, 8) } {
                    thread.until.store(context.rsp + 8, Relaxed);
                    thread.back.store(back, Relaxed);
                    set(back, BACK);
                }
            }
        }
        TO => zones::set_closed(false),
        BACK if thread.until.load(Relaxed) == context.rsp => {
            thread.until.store(0, Relaxed);
            zones::set_closed(false);
            // There is room for some only, and a function may be called from many places.
            let waits =
                |it: &Thread| it.until.load(Relaxed) != 0 && it.back.load(Relaxed) == address;
            if !threads::THREADS.iter().any(waits) {
                remove(point);
                return true;
            }
        }
        _ => {}
    }
    let mut bytes = [0; 16];
    let len = thunks::code_at(address, &mut bytes);
    original(address, &mut bytes);
    // What is there runs elsewhere, so that the breakpoint stays for all threads.
    match thunks::of(address, 0, &bytes, len) {
        Some(thunk) if thunk.plan == super::wire::Plan::Copy as u8 => context.rip = thunk.code,
        _ => {
            remove(point);
            sys::say(b"a function of --from or --to begins with a branch: it is seen once only");
        }
    }
    true
}

/// Whether an exception or `longjmp` has left the call that tracing began with.
fn is_left(thread: &Thread, rsp: u64) -> bool {
    (1..=rsp + 8).contains(&thread.until.load(Relaxed))
}

fn remove(point: &[AtomicU64; 3]) {
    let address = point[0].load(Relaxed);
    patches::without(address, || {
        patches::write_code(address, &[point[2].load(Relaxed) as u8]);
    });
    point[0].store(0, Relaxed);
}
