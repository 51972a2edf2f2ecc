//! One thread of another process, stopped by `ptrace`: the calls of the kernel that this takes.

use std::fmt::Display;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use libc::{c_int, c_long, c_void, pid_t, user_regs_struct};

/// Registers that hold more than integers.
const XSTATE: usize = 0x202;
const GETSIGMASK: u32 = 0x420a;
const SETSIGMASK: u32 = 0x420b;

/// So long a thread may take to stop, on a machine that is busy.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// A thread that this process traces. Dropped, it runs on.
#[derive(Debug)]
pub(super) struct Traced {
    tid: pid_t,
    is_gone: bool,
    is_stopped: bool,
    /// The signal that the thread has stopped for, which it gets when it runs on.
    signal: c_int,
}

/// Why a traced thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Before or after a system call.
    Call,
    /// It was asked to, or its process is stopped by a signal.
    Asked,
    /// A debug register holds its address. The thread never gets that signal, which would end it.
    Trap,
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
        let mut traced = Traced {
            tid,
            is_gone: true,
            is_stopped: false,
            signal: 0,
        };
        traced.request(libc::PTRACE_SEIZE, 0, options)?;
        traced.is_gone = false;
        Ok(traced)
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

    /// Keeps the signal that has come last from the thread.
    pub(super) fn drop_signal(&mut self) {
        self.signal = 0;
    }

    /// Lets the thread run on.
    pub(super) fn go_on(&mut self) -> io::Result<()> {
        self.request_with_signal(libc::PTRACE_CONT)
    }

    fn request_with_signal(&mut self, what: u32) -> io::Result<()> {
        let signal = usize::try_from(std::mem::take(&mut self.signal)).unwrap_or(0);
        self.request(what, 0, signal)?;
        self.is_stopped = false;
        Ok(())
    }

    /// Lets the thread run on until the next system call begins or ends.
    pub(super) fn run_to_call(&mut self) -> io::Result<()> {
        self.request_with_signal(libc::PTRACE_SYSCALL)
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
                self.is_stopped = true;
                let signal = libc::WSTOPSIG(status);
                return Ok(Some(match status >> 16 {
                    0 if signal == libc::SIGTRAP | 0x80 => Stop::Call,
                    0 if signal == libc::SIGTRAP && self.is_at_debug_register()? => Stop::Trap,
                    0 => {
                        self.signal = signal;
                        Stop::Signal(signal)
                    }
                    event => {
                        if event == libc::PTRACE_EVENT_STOP && signal == libc::SIGTRAP {
                            self.keep_call()?;
                        }
                        Stop::Asked
                    }
                }));
            }
            if Instant::now() > until {
                return Ok(None);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_micros(50));
        }
    }

    /// Has a call begin anew that fails with `EINTR` only since the thread was stopped. Most calls
    /// are made so that they do; these are not. A handler of a signal that runs meanwhile still has
    /// it fail.
    fn keep_call(&self) -> io::Result<()> {
        /// The kernel's `ERESTARTNOHAND`.
        const UNLESS_HANDLED: i64 = -514;
        const CALLS: [c_long; 11] = [
            libc::SYS_accept,
            libc::SYS_accept4,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2,
            libc::SYS_epoll_wait,
            libc::SYS_io_getevents,
            libc::SYS_io_uring_enter,
            libc::SYS_recvfrom,
            libc::SYS_recvmsg,
            libc::SYS_rt_sigtimedwait,
            libc::SYS_semtimedop,
        ];
        let mut registers = self.registers()?;
        if registers.rax.cast_signed() == -i64::from(libc::EINTR)
            && CALLS.contains(&registers.orig_rax.cast_signed())
        {
            registers.rax = UNLESS_HANDLED.cast_unsigned();
            self.set_registers(&registers)?;
        }
        Ok(())
    }

    /// Whether the signal that the thread has stopped for comes of a debug register.
    fn is_at_debug_register(&self) -> io::Result<bool> {
        // SAFETY: that is what the kernel answers.
        let info: libc::siginfo_t = unsafe { self.get(libc::PTRACE_GETSIGINFO)? };
        Ok(info.si_code == libc::TRAP_HWBKPT)
    }

    pub(super) fn registers(&self) -> io::Result<user_regs_struct> {
        // SAFETY: that is what the kernel answers.
        unsafe { self.get(libc::PTRACE_GETREGS) }
    }

    /// # Safety
    ///
    /// The kernel answers this request with a whole `T`.
    unsafe fn get<T>(&self, what: u32) -> io::Result<T> {
        let mut found = std::mem::MaybeUninit::<T>::uninit();
        let (none, into) = (std::ptr::null_mut::<c_void>(), found.as_mut_ptr());
        // SAFETY: it is written, unless the request fails (`# Safety`).
        unsafe {
            errno(libc::ptrace(what, self.tid, none, into))?;
            Ok(found.assume_init())
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

    /// Has no debug register hold an address any more, and takes a signal away that one has sent
    /// already: it may still be on its way while the thread stops for another reason. Waits for
    /// however long it takes until the thread has stopped, which it then has.
    pub(super) fn clear_debug_registers(&mut self) -> io::Result<()> {
        loop {
            while !self.stop()? {}
            self.set_debug_register(7, 0)?;
            let has = |name| has_signal(self.tid, name, libc::SIGTRAP);
            if !has("SigPnd:") || has("SigBlk:") {
                return Ok(());
            }
            self.go_on()?;
            // Not asked to: that would come before the signal.
            self.wait(Instant::now() + LONG)?;
        }
    }

    /// Stops the thread, unless it has; whether it has within [`LONG`]. One that sleeps in the
    /// kernel stops when it leaves that.
    fn stop(&mut self) -> io::Result<bool> {
        if !self.is_stopped {
            self.interrupt()?;
            self.wait(Instant::now() + LONG)?;
        }
        Ok(self.is_stopped)
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
        // Only a thread that has stopped can be left.
        if !self.is_gone && matches!(self.stop(), Ok(true)) {
            // Nothing can be done if that fails: the thread has ended.
            drop(self.request_with_signal(libc::PTRACE_DETACH));
        }
    }
}

/// Whether a set of signals of a thread has this one, or cannot be read.
pub(super) fn has_signal(tid: impl Display, name: &str, signal: c_int) -> bool {
    let line = status_line(tid, name);
    let set = line.and_then(|line| u64::from_str_radix(&line, 16).ok());
    set.is_none_or(|set| set & 1 << (signal - 1) != 0)
}

/// What the kernel says of a thread under this name.
pub(super) fn status_line(tid: impl Display, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().to_owned())
}
