//! Signals that are meant for the profiled program.
//!
//! What a terminal sends reaches the program by itself; what somebody sends to this process alone
//! is handed on. Either way this process lives on, to report.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_void, siginfo_t};

static PROGRAM: AtomicI32 = AtomicI32::new(0);
/// A signal that has come and is not handed on yet.
static COME: AtomicI32 = AtomicI32::new(0);
/// Whether any signal has come, from whomever.
static IS_INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn hand_on(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    IS_INTERRUPTED.store(true, Ordering::SeqCst);
    // SAFETY: the kernel passes a valid `siginfo_t` to a handler with `SA_SIGINFO`.
    let from_process = unsafe { (*info).si_code } <= 0;
    if from_process {
        COME.store(signal, Ordering::SeqCst);
        pass();
    }
}

/// Sends the program what has come, once that is known. This and the handler, in whatever order,
/// leave no signal behind.
fn pass() {
    let program = PROGRAM.load(Ordering::SeqCst);
    if program > 0 {
        let signal = COME.swap(0, Ordering::SeqCst);
        if signal != 0 {
            // SAFETY: `kill` may be called in a handler. It takes no pointers.
            unsafe { libc::kill(program, signal) };
        }
    }
}

/// Hands signals on to the process `program` from now on, also one that has come before.
pub fn hand_on_to(program: u32) {
    PROGRAM.store(program.try_into().unwrap_or(0), Ordering::SeqCst);
    pass();
}

/// Whether a signal has come since [`outlive`].
pub(super) fn is_interrupted() -> bool {
    IS_INTERRUPTED.load(Ordering::SeqCst)
}

static ASKS_FOR_SNAPSHOT: AtomicBool = AtomicBool::new(false);

extern "C" fn ask_for_snapshot(_: c_int) {
    ASKS_FOR_SNAPSHOT.store(true, Ordering::SeqCst);
}

/// Whether such a signal has come since this was asked last.
pub(super) fn asks_for_snapshot() -> bool {
    ASKS_FOR_SNAPSHOT.swap(false, Ordering::SeqCst)
}

/// Keeps this process alive when it is interrupted, and takes `SIGUSR1` for a wish for a snapshot.
/// Programs that are started later have the default actions again, since `exec` resets handlers.
pub fn outlive() {
    let handler = ask_for_snapshot as extern "C" fn(c_int) as *const ();
    // SAFETY: the handler has the signature that `signal` asks for, and stores to an atomic.
    unsafe { libc::signal(libc::SIGUSR1, handler.addr()) };
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: all zeros is a value of `sigaction`; both pointers are to such values, and the
        // handler has the signature that `SA_SIGINFO` asks for.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            // As `nohup` leaves it, for the program, too.
            if action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action = std::mem::zeroed();
            action.sa_sigaction = hand_on as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Lets signals end this process again, since the program has ended.
pub fn obey() {
    for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: both pointers are to values of `sigaction`; the default needs no handler.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if action.sa_sigaction != libc::SIG_IGN {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
