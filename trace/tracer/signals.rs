//! The program's signals: it has its handlers as without us, also of those signals that we need.
//!
//! Its handlers of other signals are entered through [`ccscope_on_signal`], which puts the thread
//! where the program is and then jumps to the handler: nothing of ours stays on the stack.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::accesses::record;
use super::context::{Context, Info};
use super::lock::LOCK;
use super::masks::{FOUR, OURS, SIGSYS, SIGTRAP};
use super::sys;
use super::wire::SIGNAL;
use super::{gate, resume_point, syscall_exit, threads, ticks, zones};

const ON_STACK: u64 = 0x0800_0000;
const NO_DEFER: u64 = 0x4000_0000;
const RESET: u64 = 0x8000_0000;
const HAS_RESTORER: u64 = 0x0400_0000;
const HAS_INFO: u64 = 4;
const IGNORED: u64 = 1;
const SET_MASK: u64 = 2;
const ERROR: i64 = -14;
const INVALID: i64 = -22;
/// In [`Context::reserved`], beside how quiet the thread was: the handler was entered through us.
const ENTERED: u64 = 0x656e_7465_7265_6421;

/// What the program wants for each signal: handler, flags, restorer, mask. Under the lock.
static ACTIONS: [[AtomicU64; 4]; 65] = [const { [const { AtomicU64::new(0) }; 4] }; 65];

/// What the program wants for a signal.
fn action_of(signal: i32) -> &'static [AtomicU64; 4] {
    let at = usize::try_from(signal).unwrap_or(0);
    ACTIONS.get(at).unwrap_or(&ACTIONS[0])
}

// Called as a handler. The program's is left on the stack that it has natively.
core::arch::global_asm!(
    ".hidden ccscope_on_signal",
    ".globl ccscope_on_signal",
    "ccscope_on_signal:",
    ".cfi_startproc",
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "push rsi",
    ".cfi_adjust_cfa_offset 8",
    "push rdx",
    ".cfi_adjust_cfa_offset 8",
    "call {enter}",
    "pop rdx",
    ".cfi_adjust_cfa_offset -8",
    "pop rsi",
    ".cfi_adjust_cfa_offset -8",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    "test rax, rax",
    "jz 2f",
    "jmp rax",
    "2:",
    "ret",
    ".cfi_endproc",
    enter = sym enter,
);
unsafe extern "C" {
    fn ccscope_on_signal();
}

/// Sets our handler of a signal that we need.
///
/// # Safety
///
/// `handler` is a function that takes what the kernel passes with these flags.
pub(crate) unsafe fn set_handler(signal: i32, handler: u64) {
    let flags = HAS_INFO | HAS_RESTORER | ON_STACK | NO_DEFER;
    // The four stay open: a fault of ours ends the process, and one that is sent waits.
    let action = [handler, flags, gate::start() + gate::RETURN, !OURS];
    let mut old = [0_u64; 4];
    let number = u64::from(signal.unsigned_abs());
    let [new, before] = [(&raw const action) as u64, (&raw mut old) as u64];
    // SAFETY: the handler takes what the kernel passes with these flags (`# Safety`), and returns
    // to the gate; the kernel reads one action and writes the other.
    unsafe { sys::call(sys::RT_SIGACTION, [number, new, before, 8, 0, 0]) };
    for (word, value) in action_of(signal).iter().zip(old) {
        word.store(value, Relaxed);
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
    let Some(known) = usize::try_from(signal).ok().and_then(|at| ACTIONS.get(at)) else {
        return INVALID;
    };
    let was = [0, 1, 2, 3].map(|it| known[it].load(Relaxed));
    let set = |to: [u64; 4]| {
        // A child of `vfork` shares its parent's table; with `exec` ours are gone anyway.
        if new != 0 && sys::is_own_process() {
            known
                .iter()
                .zip(to)
                .for_each(|(word, value)| word.store(value, Relaxed));
        }
    };
    let mut before = was;
    // Before the kernel knows it: the signal may come at once.
    set(action);
    if !FOUR.iter().any(|it| u64::from(it.unsigned_abs()) == signal) {
        let entry = ccscope_on_signal as *const () as u64;
        let mut told = action;
        told[3] &= !OURS;
        if action[0] > IGNORED && sys::is_own_process() {
            let flags = action[1] & !(RESET | NO_DEFER) | HAS_INFO;
            told = [entry, flags, action[2], !OURS];
        }
        let told = if new == 0 {
            0
        } else {
            (&raw const told) as u64
        };
        // SAFETY: the program makes this call; `told` names its handler, or our entry, which takes
        // the same and calls it. The kernel writes `before`.
        let result = unsafe {
            let words = [signal, told, (&raw mut before) as u64, 8, 0, 0];
            sys::call(sys::RT_SIGACTION, words)
        };
        if sys::failed(result) {
            set(was);
            return result;
        }
        if before[0] == entry {
            before = was;
        }
    }
    if old != 0 && !zones::copy(old, (&raw const before) as u64, 32) {
        return ERROR;
    }
    0
}

/// A signal has come: the handler to be called, or 0.
///
/// # Safety
///
/// As the kernel calls handlers, with all signals but ours blocked.
unsafe extern "C" fn enter(signal: i32, info: *mut Info, context: *mut Context) -> u64 {
    // SAFETY: the kernel passes pointers to both, on the handler's stack, and nobody else has them
    // until `ccscope_on_signal` goes on to the program's handler.
    let (info, context) = unsafe { (&mut *info, &mut *context) };
    syscall_exit::rewind(context);
    LOCK.take();
    let known = action_of(signal);
    let [handler, flags, _, mask] = [0, 1, 2, 3].map(|it| known[it].load(Relaxed));
    if handler <= IGNORED
        || ticks::is_too_soon(info)
        || !resume_point::rewind(signal, info, context)
    {
        LOCK.give();
        return 0;
    }
    if flags & RESET != 0 {
        known[0].store(0, Relaxed);
        set_default(signal);
    }
    ticks::begins(info);
    LOCK.give();
    // What the handler does is seen even if the signal came within a block operation, also if it
    // never returns.
    let quiet = &threads::this().quiet;
    context.reserved[0] = ENTERED;
    context.reserved[1] = quiet.swap(0, Relaxed).into();
    let mask = mask_of_handler(signal, flags, mask, context);
    // SAFETY: the kernel reads one word.
    unsafe {
        let words = [SET_MASK, (&raw const mask) as u64, 0, 8, 0, 0];
        sys::call(sys::RT_SIGPROCMASK, words);
    }
    handler
}

/// The signals that are blocked in a handler. Notes which of ours the program takes for blocked
/// there, and after it.
fn mask_of_handler(signal: i32, flags: u64, mask: u64, context: &mut Context) -> u64 {
    let own = if flags & NO_DEFER == 0 {
        1_u64 << (signal - 1)
    } else {
        0
    };
    let thread = threads::this();
    context.mask |= thread.blocked.load(Relaxed);
    let all = context.mask | mask | own;
    thread.blocked.store(all & OURS, Relaxed);
    all & !OURS
}

/// Has the kernel do what it does without a handler.
fn set_default(signal: i32) {
    let action = [0_u64, HAS_RESTORER, gate::start() + gate::RETURN, 0];
    let number = u64::from(signal.unsigned_abs());
    // SAFETY: the kernel reads the action.
    unsafe {
        let words = [number, (&raw const action) as u64, 0, 8, 0, 0];
        sys::call(sys::RT_SIGACTION, words);
    }
}

/// `rt_sigprocmask`, on the mask that the thread will have.
pub(crate) fn set_mask([how, new, old, size, ..]: [u64; 6], mask: &mut u64) -> i64 {
    if size != 8 {
        return INVALID;
    }
    let thread = threads::this();
    let before = *mask | thread.blocked.load(Relaxed);
    if new != 0 {
        let mut set = 0_u64;
        if !zones::copy((&raw mut set) as u64, new, 8) {
            return ERROR;
        }
        let all = match how {
            0 => before | set,
            1 => before & !set,
            2 => set,
            _ => return INVALID,
        };
        *mask = all & !OURS;
        // A child of `vfork` shares this with its parent.
        if sys::is_own_process() {
            thread.blocked.store(all & OURS, Relaxed);
        }
    }
    if old != 0 && !zones::copy(old, (&raw const before) as u64, 8) {
        return ERROR;
    }
    0
}

/// `sigaltstack`: notes the program's stack for handlers; ours, which is larger, takes its place.
/// A handler that asks where it is gets to know ours.
pub(crate) fn set_stack([new, old, ..]: [u64; 6], context: &Context) -> i64 {
    const LEAST: u64 = 2048;
    const IS_ON_IT: u64 = 1;
    const DISABLED: u64 = 2;
    const FOR_US: u64 = 64 << 10;
    const NO_MEMORY: i64 = -12;
    const NOT_ALLOWED: i64 = -1;
    let thread = threads::this();
    let own = &thread.own_stack;
    let mut before = [0, 1, 2].map(|it| own[it].load(Relaxed));
    let [start, _, len] = thread.stack_of_handlers();
    let is_on_it =
        before[1] & DISABLED == 0 && (1..=len).contains(&context.rsp.wrapping_sub(start));
    if is_on_it {
        before = [start, IS_ON_IT, len];
    }
    if new != 0 {
        let mut stack = [0_u64; 3];
        if !zones::copy((&raw mut stack) as u64, new, 24) {
            return ERROR;
        }
        stack[1] &= 0xffff_ffff;
        if is_on_it {
            return NOT_ALLOWED;
        }
        if stack[1] & DISABLED == 0 {
            if stack[2] < LEAST {
                return NO_MEMORY;
            }
            thread.larger_stack(stack[2].saturating_add(FOR_US));
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
    const SIGNAL_OF_INFO: u64 = size_of::<Context>() as u64;
    let at = |field: usize| frame.wrapping_add(field as u64);
    let mask = at(offset_of!(Context, mask));
    let reserved = at(offset_of!(Context, reserved));
    let (mut blocked, mut words, mut signal) = (0_u64, [0_u64; 2], 0_u32);
    // SAFETY: there may be nothing, or not the kernel's: then the kernel finds that out, too.
    unsafe {
        if !sys::try_copy((&raw mut blocked) as u64, mask, 8)
            || !sys::try_copy((&raw mut words) as u64, reserved, 16)
            || !sys::try_copy(
                (&raw mut signal) as u64,
                at(0).wrapping_add(SIGNAL_OF_INFO),
                4,
            )
        {
            return;
        }
        let ours = blocked & OURS;
        if ours != 0 {
            blocked &= !OURS;
            sys::try_copy(mask, (&raw const blocked) as u64, 8);
        }
        if words[0] == ENTERED {
            let thread = threads::this();
            thread.quiet.store(words[1] as u32, Relaxed);
            thread.blocked.store(ours, Relaxed);
            // Only once, should the call be interrupted.
            let done = 0_u64;
            sys::try_copy(reserved, (&raw const done) as u64, 8);
            ticks::ends(signal.cast_signed());
            record(SIGNAL, ip, u64::from(signal), 0);
        }
    }
}

/// A signal that is the program's: its handler is called, or what happens without one.
pub(crate) fn deliver(signal: i32, info: &mut Info, context: &mut Context) {
    /// No instruction makes it again.
    const OF_THE_KERNEL: i32 = 128;
    let known = action_of(signal);
    let [handler, flags, _, mask] = [0, 1, 2, 3].map(|it| known[it].load(Relaxed));
    if handler == IGNORED && info.code <= 0 {
        return;
    }
    let thread = threads::this();
    let blocked = thread.blocked.load(Relaxed);
    let is_blocked = info.code > 0 && blocked & 1 << (signal - 1) != 0;
    if handler <= IGNORED || is_blocked {
        // The process is to end as it would without us: by the same signal at the same place, or by
        // one that is sent again.
        set_default(signal);
        if info.code <= 0 || info.code == OF_THE_KERNEL || [SIGSYS, SIGTRAP].contains(&signal) {
            let (process, thread) = (sys::process(), u64::from(sys::thread()));
            let number = u64::from(signal.unsigned_abs());
            // SAFETY: has no requirements.
            unsafe { sys::call(sys::TGKILL, [process, thread, number, 0, 0, 0]) };
        }
        return;
    }
    if flags & RESET != 0 {
        known[0].store(0, Relaxed);
    }
    let mask = mask_of_handler(signal, flags, mask, context);
    let handler = core::ptr::with_exposed_provenance::<()>(handler as usize);
    // What the handler does is seen even if the fault was within a block operation.
    let before = thread.quiet.swap(0, Relaxed);
    // SAFETY: the program gave this function for this signal. It may leave by `longjmp`: nothing of
    // ours is held.
    unsafe {
        sys::call(
            sys::RT_SIGPROCMASK,
            [SET_MASK, (&raw const mask) as u64, 0, 8, 0, 0],
        );
        #[expect(
            clippy::disallowed_methods,
            reason = "the kernel's interface has handlers as words"
        )]
        let handler: unsafe extern "C" fn(i32, *mut Info, *mut Context) =
            core::mem::transmute(handler);
        handler(signal, info, context);
    }
    thread.quiet.store(before, Relaxed);
    thread.blocked.store(context.mask & OURS, Relaxed);
    context.mask &= !OURS;
    record(SIGNAL, context.rip, u64::from(signal.unsigned_abs()), 0);
}
