//! Has a thread of another process call functions, at a moment when it could call them itself.
//!
//! That moment is either within a system call in which threads wait and hold none of libc's locks,
//! or the entry of `malloc` or `free`, called by code outside libc. There, `dlopen` may be called:
//! what it waits for, no frame of this thread holds. A handler of a signal may have interrupted
//! anything, so a thread whose stack has one is left alone.
//!
//! The thread runs on a stack of its own meanwhile, since that of a coroutine may be short. The
//! function returns to nowhere, at which the thread stops. Then all registers, the mask of signals
//! and `errno` are as they were, and what was interrupted goes on: a system call begins anew, as
//! after a signal without a handler.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use libc::user_regs_struct;

use super::super::{CliError, fail};
use super::memory::{Mapping, Memory};
use super::ptrace::{LONG, Stop, Traced, has_signal, status_line};

/// So long a thread is waited for that can call functions.
const PATIENCE: Duration = Duration::from_secs(3);
/// So long a thread may take to stop, or to come to `malloc`.
const SHORT: Duration = Duration::from_millis(20);
const STACK: u64 = 512 << 10;
/// Words of the stack in which the frame of a signal is looked for.
const SEARCHED: usize = 8 << 10;
/// `mov $15, %rax; syscall`, to which handlers of signals return.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
const CALL: [u8; 2] = [0x0f, 0x05];

/// A process whose threads can be stopped.
#[derive(Debug)]
pub(super) struct Injector<'p> {
    pub(super) pid: u32,
    pub(super) memory: &'p Memory,
    pub(super) maps: &'p [Mapping],
    /// Where to wait for a thread that does not wait by itself: `malloc` and the like.
    pub(super) entries: Vec<u64>,
    /// Of libc: the address of `errno`.
    pub(super) errno: u64,
}

impl<'p> Injector<'p> {
    /// Runs `work` with a thread that has stopped where it can call functions; also returns for how
    /// long it was stopped.
    pub(super) fn with_thread<R>(
        &self,
        work: impl FnOnce(&mut Caller<'p>) -> Result<R, CliError>,
    ) -> Result<(R, Duration), CliError> {
        let Some(gate) = self.in_libc(&CALL) else {
            return fail("no system call is found in its libc");
        };
        let may_fault = !has_signal(self.pid, "SigIgn:", libc::SIGSEGV);
        let (traced, registers, since) = self.stop()?;
        let mut caller = Caller::new(traced, registers, gate, may_fault, self.memory)
            .map_err(|error| gone(self.pid, &error))?;
        let result = caller
            .begin(self.errno)
            .map_err(|error| gone(self.pid, &error))
            .and_then(|()| work(&mut caller));
        caller.end().map_err(|error| gone(self.pid, &error))?;
        Ok((result?, since.elapsed()))
    }

    /// Where these bytes are in the code of libc.
    fn in_libc(&self, bytes: &[u8]) -> Option<u64> {
        let mut code = { self.maps.iter() }.filter(|it| it.is_libc() && it.is_executable);
        code.find_map(|part| {
            let len = usize::try_from(part.end - part.start).ok()?;
            let code = self.memory.read(part.start, len).ok()?;
            let at = code.windows(bytes.len()).position(|it| it == bytes)?;
            Some(part.start + at as u64)
        })
    }

    fn stop(&self) -> Result<(Traced, user_regs_struct, Instant), CliError> {
        let signal_return = self.in_libc(&SIGNAL_RETURN);
        let until = Instant::now() + PATIENCE;
        let mut refused = None;
        while Instant::now() < until {
            let threads = threads(self.pid).map_err(|error| gone(self.pid, &error))?;
            let waiting = threads
                .iter()
                .filter_map(|&tid| Some((tid, waits(self.pid, tid)?)));
            for (tid, call) in waiting {
                match self.stop_waiting(tid, call, signal_return) {
                    Ok(Some(stopped)) => return Ok(stopped),
                    Ok(None) => {}
                    Err(error) => refused = Some(error),
                }
            }
            for &tid in &threads {
                match self.stop_at_entry(tid, signal_return) {
                    Ok(Some(stopped)) => return Ok(stopped),
                    Ok(None) => {}
                    Err(error) => refused = Some(error),
                }
            }
            if let Some(error) = refused
                .as_ref()
                .filter(|it| it.raw_os_error() == Some(libc::EPERM))
            {
                return Err(not_allowed(self.pid, error));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid = self.pid;
        fail(format!(
            "no thread of {pid} came to a place where it can load a library: try again"
        ))
    }

    /// Stops a thread if it still waits in this system call.
    fn stop_waiting(
        &self,
        tid: u32,
        call: Waiting,
        signal_return: Option<u64>,
    ) -> io::Result<Option<(Traced, user_regs_struct, Instant)>> {
        let mut traced = Traced::new(tid)?;
        let since = Instant::now();
        traced.interrupt()?;
        if traced.wait(since + SHORT)? != Some(Stop::Asked) {
            return Ok(None);
        }
        let registers = traced.registers()?;
        let is_same = registers.orig_rax == call.number
            && registers.rip == call.at
            && is_interrupted(registers.rax);
        let is_free = is_same && !self.is_within(&registers, signal_return);
        Ok(is_free.then_some((traced, registers, since)))
    }

    /// Whether the thread is in a handler of a signal, which may have interrupted anything, or in
    /// an allocator, which may wait for a lock of its own.
    fn is_within(&self, registers: &user_regs_struct, signal_return: Option<u64>) -> bool {
        const CALLERS: usize = 64;
        let mut callers = self.memory.words(registers.rsp, CALLERS);
        callers.push(registers.rip);
        let mut code = self
            .maps
            .iter()
            .filter(|it| it.is_executable && it.is_of_allocator());
        code.any(|part| callers.iter().any(|&address| part.contains(address)))
            || self.is_in_handler(registers.rsp, signal_return)
    }

    /// Whether the stack has the frame of a signal: where its handler returns to, and what has been
    /// interrupted. The former alone may be left of a handler that has returned.
    fn is_in_handler(&self, sp: u64, signal_return: Option<u64>) -> bool {
        /// In words, of a frame as the kernel writes it: `uc_flags`, and the segment of the code.
        const FLAGS: usize = 1;
        const SEGMENTS: usize = 24;
        const MAX_FLAGS: u64 = 7;
        const USER_CODE: u64 = 0x33;
        let stack = self.memory.words(sp, SEARCHED);
        let mut frames = stack.windows(SEGMENTS + 1);
        frames.any(|frame| {
            Some(frame[0]) == signal_return
                && frame[FLAGS] <= MAX_FLAGS
                && frame[SEGMENTS] & 0xffff == USER_CODE
        })
    }

    /// Stops a thread that runs, when it calls `malloc` or the like next, from outside libc.
    fn stop_at_entry(
        &self,
        tid: u32,
        signal_return: Option<u64>,
    ) -> io::Result<Option<(Traced, user_regs_struct, Instant)>> {
        if self.entries.is_empty() || !may_trap(tid) {
            return Ok(None);
        }
        let mut traced = Traced::new(tid)?;
        let until = Instant::now() + SHORT;
        traced.interrupt()?;
        if traced.wait(until)? != Some(Stop::Asked) {
            return Ok(None);
        }
        let mut which = 0;
        for (index, &entry) in self.entries.iter().take(4).enumerate() {
            traced.set_debug_register(index, entry)?;
            which |= 1 << (2 * index);
        }
        traced.set_debug_register(7, which)?;
        let found = self.run_to_entry(&mut traced, until, signal_return);
        // A thread that keeps them would end by them.
        traced.clear_debug_registers()?;
        Ok(found?.map(|(registers, since)| (traced, registers, since)))
    }

    fn run_to_entry(
        &self,
        traced: &mut Traced,
        until: Instant,
        signal_return: Option<u64>,
    ) -> io::Result<Option<(user_regs_struct, Instant)>> {
        loop {
            traced.go_on()?;
            match traced.wait(until)? {
                Some(Stop::Trap) => {}
                // One of its own, which it gets.
                Some(Stop::Signal(_)) => continue,
                _ => return Ok(None),
            }
            let since = Instant::now();
            let registers = traced.registers()?;
            let caller = self.memory.word(registers.rsp)?;
            let is_outside =
                !{ self.maps.iter() }.any(|it| it.contains(caller) && it.is_of_system());
            if self.entries.contains(&registers.rip)
                && is_outside
                && !self.is_in_handler(registers.rsp, signal_return)
            {
                return Ok(Some((registers, since)));
            }
        }
    }
}

/// The kernel refuses what `ptrace` is needed for.
pub(super) fn not_allowed(pid: u32, error: &io::Error) -> CliError {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "" | "0" => format!("process {pid} cannot be traced: {error}"),
        "3" => "no process can be traced on this machine: kernel.yama.ptrace_scope is 3".to_owned(),
        _ => format!(
            "process {pid} cannot be traced, as kernel.yama.ptrace_scope is {}: run this as root, \
             or `sudo sysctl kernel.yama.ptrace_scope=0`",
            scope.trim()
        ),
    }
    .into()
}

pub(super) fn gone(pid: u32, error: &io::Error) -> CliError {
    if fs::metadata(format!("/proc/{pid}")).is_err() || error.kind() == io::ErrorKind::NotFound {
        return format!("process {pid} has ended meanwhile").into();
    }
    format!("process {pid}: {error}").into()
}

fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"))?;
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(name).collect())
}

/// A system call in which a thread waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    number: u64,
    /// Behind the instruction.
    at: u64,
}

/// The call in which a thread waits, if threads do not wait there with a lock of libc.
fn waits(pid: u32, tid: u32) -> Option<Waiting> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let words: Vec<u64> = words.filter_map(hex).collect();
    let [first, second, _, _, _, _, _, at] = words[..] else {
        return None;
    };
    let is_safe = match i64::try_from(number).ok()? {
        libc::SYS_poll
        | libc::SYS_ppoll
        | libc::SYS_select
        | libc::SYS_pselect6
        | libc::SYS_epoll_wait
        | libc::SYS_epoll_pwait
        | libc::SYS_epoll_pwait2
        | libc::SYS_nanosleep
        | libc::SYS_clock_nanosleep
        | libc::SYS_pause
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_wait4
        | libc::SYS_waitid
        | libc::SYS_rt_sigsuspend
        | libc::SYS_rt_sigtimedwait
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_io_getevents
        | libc::SYS_io_uring_enter => true,
        // Libc's own locks wait without a mask of bits.
        libc::SYS_futex => second & 0x7f == 9,
        // The dynamic linker reads files.
        libc::SYS_read => {
            let file = fs::read_link(format!("/proc/{pid}/fd/{first}")).ok()?;
            let file = file.to_string_lossy();
            ["socket:", "pipe:", "anon_inode:", "/dev/"]
                .iter()
                .any(|it| file.starts_with(it))
        }
        _ => false,
    };
    is_safe.then_some(Waiting { number, at })
}

/// Whether a system call was interrupted: it is to begin anew, or to fail with `EINTR`.
fn is_interrupted(result: u64) -> bool {
    matches!(result.cast_signed(), -4 | -516..=-512)
}

/// Whether a thread runs and can be stopped by the signal of debuggers: were that blocked or
/// ignored, the kernel would end that.
fn may_trap(tid: u32) -> bool {
    let traps = |name| has_signal(tid, name, libc::SIGTRAP);
    let state = status_line(tid, "State:");
    state.is_some_and(|it| it.starts_with('R')) && !traps("SigBlk:") && !traps("SigIgn:")
}

const NO_RETURN: &str = "it does not come back from a function";

/// A stopped thread that calls functions.
#[derive(Debug)]
pub(super) struct Caller<'p> {
    traced: Traced,
    memory: &'p Memory,
    /// As they were.
    registers: user_regs_struct,
    wide: Vec<u8>,
    blocked: u64,
    gate: u64,
    /// A stack to call functions on; 0 without.
    stack: u64,
    /// Where `errno` is, and what it was.
    errno: Option<(u64, [u8; 4])>,
    /// Whether functions may return to nowhere, which takes one stop instead of two for each call
    /// of the kernel. Were that signal ignored, the kernel would end that.
    may_fault: bool,
    /// Bytes of the stack in use for what functions are passed.
    used: u64,
}

impl<'p> Caller<'p> {
    fn new(
        traced: Traced,
        registers: user_regs_struct,
        gate: u64,
        may_fault: bool,
        memory: &'p Memory,
    ) -> io::Result<Caller<'p>> {
        Ok(Caller {
            wide: traced.wide_registers()?,
            blocked: traced.block(!(1 << (libc::SIGSEGV - 1)))?,
            may_fault,
            traced,
            memory,
            registers,
            gate,
            stack: 0,
            errno: None,
            used: 0,
        })
    }

    fn begin(&mut self, errno: u64) -> io::Result<()> {
        const READ_WRITE: u64 = 3;
        const PRIVATE_ANONYMOUS: u64 = 0x22;
        let words = [0, STACK, READ_WRITE, PRIVATE_ANONYMOUS, u64::MAX, 0];
        let stack = self.system_call(libc::SYS_mmap, words)?;
        if (-4095..0).contains(&stack.cast_signed()) {
            return Err(io::Error::other("there is no memory for a stack"));
        }
        self.stack = stack;
        let errno = self.call(errno, [0; 2])?;
        let bytes = self.memory.read(errno, 4)?;
        let bytes = *bytes.first_chunk().expect("four bytes were read");
        self.errno = Some((errno, bytes));
        Ok(())
    }

    /// Puts bytes where functions can be passed them; their address.
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.stack + self.used;
        self.memory.write(at, bytes)?;
        self.used += (bytes.len() as u64).next_multiple_of(16);
        Ok(at)
    }

    pub(super) fn memory(&self) -> &'p Memory {
        self.memory
    }

    /// Has the thread call the kernel.
    pub(super) fn system_call(&mut self, number: i64, words: [u64; 6]) -> io::Result<u64> {
        let mut registers = self.registers;
        let [first, second, third, fourth, fifth, sixth] = words;
        (registers.rdi, registers.rsi, registers.rdx) = (first, second, third);
        (registers.r10, registers.r8, registers.r9) = (fourth, fifth, sixth);
        registers.rax = number.cast_unsigned();
        registers.orig_rax = u64::MAX;
        registers.rip = self.gate;
        self.traced.set_registers(&registers)?;
        self.step()?;
        self.step()?;
        Ok(self.traced.registers()?.rax)
    }

    /// Has the thread call a function.
    pub(super) fn call(&mut self, function: u64, words: [u64; 2]) -> io::Result<u64> {
        const DIRECTION: u64 = 0x400;
        let mut registers = self.registers;
        let top = self.stack + STACK - 64;
        let end = if self.may_fault { 0 } else { self.gate };
        self.memory.write(top - 8, &end.to_le_bytes())?;
        (registers.rdi, registers.rsi) = (words[0], words[1]);
        (registers.rax, registers.orig_rax) = (0, u64::MAX);
        (registers.rip, registers.rsp, registers.rbp) = (function, top - 8, 0);
        registers.eflags &= !DIRECTION;
        self.traced.set_registers(&registers)?;
        if self.may_fault {
            return self.run_to_fault(top);
        }
        loop {
            self.step()?;
            let mut registers = self.traced.registers()?;
            if registers.rip == self.gate + 2 && registers.rsp == top {
                // What the function has returned is the number of a call, which is not made.
                let result = registers.orig_rax;
                registers.orig_rax = u64::MAX;
                self.traced.set_registers(&registers)?;
                self.step()?;
                return Ok(result);
            }
        }
    }

    /// The thread does not get a signal that comes of what it was made to do.
    fn unexpected(&mut self, signal: i32) -> io::Error {
        self.traced.drop_signal();
        io::Error::other(format!("signal {signal} came while it called a function"))
    }

    /// Lets a function run until it returns to nowhere; what it has returned.
    fn run_to_fault(&mut self, top: u64) -> io::Result<u64> {
        loop {
            self.traced.go_on()?;
            match self.traced.wait(Instant::now() + LONG)? {
                Some(Stop::Signal(libc::SIGSEGV)) => {
                    self.traced.drop_signal();
                    let registers = self.traced.registers()?;
                    return match (registers.rip, registers.rsp) {
                        (0, sp) if sp == top => Ok(registers.rax),
                        _ => Err(self.unexpected(libc::SIGSEGV)),
                    };
                }
                Some(Stop::Signal(signal)) => return Err(self.unexpected(signal)),
                Some(_) => {}
                None => return Err(io::Error::other(NO_RETURN)),
            }
        }
    }

    /// Lets the thread run until a system call begins or ends.
    fn step(&mut self) -> io::Result<()> {
        loop {
            self.traced.run_to_call()?;
            match self.traced.wait(Instant::now() + LONG)? {
                Some(Stop::Call) => return Ok(()),
                Some(Stop::Asked | Stop::Trap) => {}
                Some(Stop::Signal(signal)) => return Err(self.unexpected(signal)),
                None => return Err(io::Error::other(NO_RETURN)),
            }
        }
    }

    /// Leaves the thread as it was.
    fn end(mut self) -> io::Result<()> {
        if let Some((at, bytes)) = self.errno {
            self.memory.write(at, &bytes)?;
        }
        if self.stack != 0 {
            self.system_call(libc::SYS_munmap, [self.stack, STACK, 0, 0, 0, 0])?;
        }
        let mut registers = self.registers;
        if registers.orig_rax.cast_signed() >= 0 && is_interrupted(registers.rax) {
            // What the kernel does where a signal without a handler has interrupted a call. A sleep
            // goes on until its end.
            const RESTART_BLOCK: i64 = -516;
            registers.rax = match registers.rax.cast_signed() {
                RESTART_BLOCK => libc::SYS_restart_syscall.cast_unsigned(),
                _ => registers.orig_rax,
            };
            registers.rip -= 2;
        }
        registers.orig_rax = u64::MAX;
        self.traced.set_wide_registers(&mut self.wide)?;
        self.traced.set_registers(&registers)?;
        self.traced.block(self.blocked)?;
        Ok(())
    }
}
