//! The program's signals: it has its handlers as without us, also of those signals that we need.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::context::{Context, Info};
use crate::faults::record;
use crate::sys;
use crate::wire::SIGNAL;
use crate::{calls, faults, gate, start, threads, zones};

const SIGTRAP: i32 = 5;
pub(crate) const SIGBUS: i32 = 7;
pub(crate) const SIGSEGV: i32 = 11;
const SIGSYS: i32 = 31;
const FOUR: [i32; 4] = [SIGTRAP, SIGBUS, SIGSEGV, SIGSYS];
/// The signals that may never be blocked.
pub(crate) const OURS: u64 =
    1 << (SIGTRAP - 1) | 1 << (SIGBUS - 1) | 1 << (SIGSEGV - 1) | 1 << (SIGSYS - 1);

/// With those that an instruction may raise, SIGILL and SIGFPE.
pub(crate) const OF_INSTRUCTIONS: u64 = OURS | 1 << 3 | 1 << 7;

const ON_STACK: u64 = 0x0800_0000;
const NO_DEFER: u64 = 0x4000_0000;
const RESET: u64 = 0x8000_0000;
const HAS_RESTORER: u64 = 0x0400_0000;
const HAS_INFO: u64 = 4;
const ERROR: i64 = -14;
const INVALID: i64 = -22;

/// What the program wants for our four signals: handler, flags, restorer, mask.
static ACTIONS: [[AtomicU64; 4]; 4] = [const { [const { AtomicU64::new(0) }; 4] }; 4];

/// Sets our handlers.
pub(crate) fn init() {
    for (signal, handler) in [
        (SIGTRAP, faults::on_trap as *const () as u64),
        (SIGBUS, faults::on_fault as *const () as u64),
        (SIGSEGV, faults::on_fault as *const () as u64),
        (SIGSYS, calls::on_call as *const () as u64),
    ] {
        let flags = HAS_INFO | HAS_RESTORER | ON_STACK | NO_DEFER;
        // The four stay open: a fault of ours ends the process, and one that is sent waits (`lock`).
        let action = [handler, flags, gate::start() + gate::RETURN, !OURS];
        let mut old = [0_u64; 4];
        let at = FOUR.iter().position(|it| *it == signal).unwrap_or(0);
        // SAFETY: the handlers are made for this.
        unsafe {
            let call = [
                u64::from(signal.unsigned_abs()),
                (&raw const action) as u64,
                (&raw mut old) as u64,
                8,
                0,
                0,
            ];
            sys::call(sys::RT_SIGACTION, call);
        }
        for (word, value) in ACTIONS[at].iter().zip(old) {
            word.store(value, Relaxed);
        }
    }
}

/// `rt_sigaction`.
pub(crate) fn set_action([signal, new, old, size, ..]: [u64; 6]) -> i64 {
    if size != 8 {
        return INVALID;
    }
    let mut action = [0_u64; 4];
    if new != 0 && !zones::copy((&raw mut action) as u64, new, 32) {
        return ERROR;
    }
    action[3] &= !OURS;
    let mut before = [0_u64; 4];
    if let Some(at) = FOUR
        .iter()
        .position(|it| u64::from(it.unsigned_abs()) == signal)
    {
        for (word, value) in before.iter_mut().zip(&ACTIONS[at]) {
            *word = value.load(Relaxed);
        }
        // A child of `vfork` shares its parent's table; with `exec` ours are gone anyway.
        if new != 0 && start::is_own_process() {
            for (word, value) in ACTIONS[at].iter().zip(action) {
                word.store(value, Relaxed);
            }
        }
    } else {
        let new = if new == 0 {
            0
        } else {
            (&raw const action) as u64
        };
        // SAFETY: the program's own call.
        let result = unsafe {
            sys::call(
                sys::RT_SIGACTION,
                [signal, new, (&raw mut before) as u64, 8, 0, 0],
            )
        };
        if sys::failed(result) {
            return result;
        }
    }
    if old != 0 && !zones::copy(old, (&raw const before) as u64, 32) {
        return ERROR;
    }
    0
}

/// `rt_sigprocmask`, on the mask that the thread will have.
pub(crate) fn set_mask([how, new, old, size, ..]: [u64; 6], mask: &mut u64) -> i64 {
    if size != 8 {
        return INVALID;
    }
    let before = *mask;
    if new != 0 {
        let mut set = 0_u64;
        if !zones::copy((&raw mut set) as u64, new, 8) {
            return ERROR;
        }
        *mask = match how {
            0 => before | set,
            1 => before & !set,
            2 => set,
            _ => return INVALID,
        } & !OURS;
    }
    if old != 0 && !zones::copy(old, (&raw const before) as u64, 8) {
        return ERROR;
    }
    0
}

/// A set of signals without ours, in memory of our own.
pub(crate) fn filtered(at: u64, scratch: &mut [u64; 2]) -> u64 {
    let mut set = 0_u64;
    if at == 0 || !zones::copy((&raw mut set) as u64, at, 8) || set & OURS == 0 {
        return zones::usable(at);
    }
    *scratch = [sys::memory(sys::PAGE), sys::PAGE];
    // SAFETY: just mapped.
    unsafe { sys::set_word(scratch[0], set & !OURS) };
    scratch[0]
}

/// `sigaltstack`: the program's stack for handlers is noted; ours is larger and takes its place.
pub(crate) fn set_stack([new, old, ..]: [u64; 6]) -> i64 {
    const LEAST: u64 = 2048;
    const DISABLED: u64 = 2;
    const NO_MEMORY: i64 = -12;
    let own = &threads::this().own_stack;
    let before = [0, 1, 2].map(|it| own[it].load(Relaxed));
    if new != 0 {
        let mut stack = [0_u64; 3];
        if !zones::copy((&raw mut stack) as u64, new, 24) {
            return ERROR;
        }
        stack[1] &= 0xffff_ffff;
        if stack[1] & DISABLED == 0 && stack[2] < LEAST {
            return NO_MEMORY;
        }
        for (word, value) in own.iter().zip(stack) {
            word.store(value, Relaxed);
        }
    }
    if old != 0 && !zones::copy(old, (&raw const before) as u64, 24) {
        return ERROR;
    }
    0
}

/// A handler of the program returns.
pub(crate) fn on_return(ip: u64, frame: u64) {
    let [mut mask, mut number] = [0_u64; 2];
    let [own_mask, own_number] = [(&raw mut mask), (&raw mut number)].map(|it| it as u64);
    let place = frame.wrapping_add(offset_of!(Context, mask) as u64);
    let info = frame.wrapping_add(size_of::<Context>() as u64);
    // SAFETY: the kernel put both there for a handler. If there is nothing, it will say so.
    unsafe {
        if sys::try_copy(own_mask, place, 8) && sys::try_copy(own_number, info, 4) {
            let mask = mask & !OURS;
            sys::try_copy(place, (&raw const mask) as u64, 8);
            record(SIGNAL, ip, number, 0);
        }
    }
}

/// A signal that is the program's: its handler is called, or what happens without one.
pub(crate) fn deliver(signal: i32, info: &mut Info, context: &mut Context) {
    const IGNORED: u64 = 1;
    const SET_MASK: u64 = 2;
    /// No instruction makes it again.
    const OF_THE_KERNEL: i32 = 128;
    let at = FOUR.iter().position(|it| *it == signal).unwrap_or(0);
    let [handler, flags, _, mask] = [0, 1, 2, 3].map(|it| ACTIONS[at][it].load(Relaxed));
    if handler == IGNORED && info.code <= 0 {
        return;
    }
    if handler <= IGNORED {
        let action = [0_u64, HAS_RESTORER, gate::start() + gate::RETURN, 0];
        let number = u64::from(signal.unsigned_abs());
        // SAFETY: the process is to end as it would without us: by the same signal at the same
        // place, or by one that is sent again.
        unsafe {
            sys::call(
                sys::RT_SIGACTION,
                [number, (&raw const action) as u64, 0, 8, 0, 0],
            );
            if info.code <= 0 || info.code == OF_THE_KERNEL || [SIGSYS, SIGTRAP].contains(&signal) {
                let (process, thread) = (sys::process(), u64::from(sys::thread()));
                sys::call(sys::TGKILL, [process, thread, number, 0, 0, 0]);
            }
        }
        return;
    }
    if flags & RESET != 0 {
        ACTIONS[at][0].store(0, Relaxed);
    }
    let own = if flags & NO_DEFER == 0 {
        1_u64 << (signal - 1)
    } else {
        0
    };
    let mask = (context.mask | mask | own) & !OURS;
    let handler = core::ptr::with_exposed_provenance::<()>(handler as usize);
    // What the handler does is seen even if the fault was within a block operation.
    let quiet = &threads::this().quiet;
    let before = quiet.swap(0, Relaxed);
    // SAFETY: the program gave this function for this signal. It may leave by `longjmp`: nothing of
    // ours is held.
    unsafe {
        sys::call(
            sys::RT_SIGPROCMASK,
            [SET_MASK, (&raw const mask) as u64, 0, 8, 0, 0],
        );
        let handler: unsafe extern "C" fn(i32, *mut Info, *mut Context) =
            core::mem::transmute(handler);
        handler(signal, info, context);
    }
    quiet.store(before, Relaxed);
    record(SIGNAL, context.rip, u64::from(signal.unsigned_abs()), 0);
}
