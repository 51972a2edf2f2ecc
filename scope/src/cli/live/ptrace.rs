//! One thread of another process, stopped by `ptrace`: the calls of the kernel that this takes.

use std::io;
use std::time::{Duration, Instant};

use libc::{c_int, c_long, c_void, pid_t, user_regs_struct};

/// Registers that hold more than integers.
const XSTATE: usize = 0x202;
const GETSIGMASK: u32 = 0x420a;
const SETSIGMASK: u32 = 0x420b;

/// A thread that this process traces. Dropped, it runs on.
#[derive(Debug)]
pub(super) struct Traced {
    tid: pid_t,
    is_gone: bool,
}

/// Why a traced thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Before or after a system call.
    Call,
    /// It was asked to, or its process is stopped by a signal.
    Asked,
    /// A signal comes.
    Signal(c_int),
}

fn errno(result: c_long) -> io::Result<c_long> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}

impl Traced {
    /// Begins to trace a thread, which runs on.
    pub(super) fn new(tid: u32) -> io::Result<Traced> {
        let tid = pid_t::try_from(tid).map_err(io::Error::other)?;
        let options = libc::PTRACE_O_TRACESYSGOOD as usize;
        let traced = Traced { tid, is_gone: true };
        traced.request(libc::PTRACE_SEIZE, 0, options)?;
        Ok(Traced {
            tid,
            is_gone: false,
        })
    }

    /// A request whose arguments are numbers.
    fn request(&self, what: u32, address: usize, data: usize) -> io::Result<c_long> {
        let pointer = std::ptr::without_provenance_mut::<c_void>;
        // SAFETY: requests made through this take numbers in the place of pointers.
        errno(unsafe { libc::ptrace(what, self.tid, pointer(address), pointer(data)) })
    }

    pub(super) fn interrupt(&self) -> io::Result<()> {
        self.request(libc::PTRACE_INTERRUPT, 0, 0).map(drop)
    }

    /// Lets the thread run on.
    pub(super) fn go_on(&self) -> io::Result<()> {
        self.request(libc::PTRACE_CONT, 0, 0).map(drop)
    }

    /// Lets the thread run on until the next system call begins or ends.
    pub(super) fn to_next_call(&self) -> io::Result<()> {
        self.request(libc::PTRACE_SYSCALL, 0, 0).map(drop)
    }

    /// Waits until the thread has stopped; `None` if it has not by `until`.
    pub(super) fn wait(&mut self, until: Instant) -> io::Result<Option<Stop>> {
        let mut pause = Duration::from_micros(1);
        loop {
            let mut status = 0;
            // SAFETY: the kernel writes the status, an integer.
            let found =
                unsafe { libc::waitpid(self.tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
            if errno(found.into())? != 0 {
                if !libc::WIFSTOPPED(status) {
                    self.is_gone = true;
                    return Err(io::ErrorKind::NotFound.into());
                }
                let signal = libc::WSTOPSIG(status);
                return Ok(Some(match status >> 16 {
                    0 if signal == libc::SIGTRAP | 0x80 => Stop::Call,
                    0 => Stop::Signal(signal),
                    _ => Stop::Asked,
                }));
            }
            if Instant::now() > until {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_micros(50));
        }
    }

    pub(super) fn registers(&self) -> io::Result<user_regs_struct> {
        let mut registers = std::mem::MaybeUninit::<user_regs_struct>::uninit();
        let (none, into) = (std::ptr::null_mut::<c_void>(), registers.as_mut_ptr());
        // SAFETY: the kernel writes all of the registers, unless it fails.
        unsafe {
            errno(libc::ptrace(libc::PTRACE_GETREGS, self.tid, none, into))?;
            Ok(registers.assume_init())
        }
    }

    pub(super) fn set_registers(&self, registers: &user_regs_struct) -> io::Result<()> {
        let (none, from) = (std::ptr::null_mut::<c_void>(), &raw const *registers);
        // SAFETY: the kernel reads the registers.
        errno(unsafe { libc::ptrace(libc::PTRACE_SETREGS, self.tid, none, from) }).map(drop)
    }

    /// All other registers, as the kernel has them.
    pub(super) fn wide_registers(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; 1 << 14];
        let mut part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let (kind, place) = (
            std::ptr::without_provenance_mut::<c_void>(XSTATE),
            &raw mut part,
        );
        // SAFETY: the kernel writes as many bytes as there are at most, and says how many.
        errno(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, self.tid, kind, place) })?;
        bytes.truncate(part.iov_len);
        Ok(bytes)
    }

    pub(super) fn set_wide_registers(&self, bytes: &mut [u8]) -> io::Result<()> {
        let mut part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let (kind, place) = (
            std::ptr::without_provenance_mut::<c_void>(XSTATE),
            &raw mut part,
        );
        // SAFETY: the kernel reads so many bytes.
        errno(unsafe { libc::ptrace(libc::PTRACE_SETREGSET, self.tid, kind, place) }).map(drop)
    }

    /// Blocks these signals in the thread, and returns those that were blocked before.
    pub(super) fn block(&self, signals: u64) -> io::Result<u64> {
        let mut before = 0_u64;
        let len = std::ptr::without_provenance_mut::<c_void>(8);
        // SAFETY: the kernel writes one word of 8 bytes, and reads the other.
        unsafe {
            errno(libc::ptrace(GETSIGMASK, self.tid, len, &raw mut before))?;
            errno(libc::ptrace(SETSIGMASK, self.tid, len, &raw const signals))?;
        }
        Ok(before)
    }

    /// Sets a register for debuggers: from 0 to 3 an address at which to stop, 7 which of them.
    pub(super) fn set_debug_register(&self, index: usize, value: u64) -> io::Result<()> {
        let at = std::mem::offset_of!(libc::user, u_debugreg) + index * 8;
        let value = usize::try_from(value).map_err(io::Error::other)?;
        self.request(libc::PTRACE_POKEUSER, at, value).map(drop)
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if self.is_gone || self.request(libc::PTRACE_DETACH, 0, 0).is_ok() {
            return;
        }
        // Only a thread that has stopped can be left.
        let until = Instant::now() + Duration::from_millis(100);
        if self.interrupt().is_ok() && matches!(self.wait(until), Ok(Some(_))) {
            // Nothing can be done if that fails: the thread has ended.
            drop(self.request(libc::PTRACE_DETACH, 0, 0));
        }
    }
}
