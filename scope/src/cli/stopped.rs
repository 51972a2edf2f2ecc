//! Threads of another process that stand still, and their registers.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// The threads of a process, stopped until this is dropped.
#[derive(Debug)]
pub(super) struct Stopped {
    /// Those that stand still, and signals that were on their way.
    threads: Vec<(libc::pid_t, i32)>,
}

/// What a thread's registers hold.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    pub(super) words: Vec<u64>,
    pub(super) stack_pointer: u64,
    /// Where its thread-local variables end.
    pub(super) thread_pointer: u64,
}

impl Stopped {
    /// Stops all threads of `pid`, those too that begin meanwhile.
    pub(super) fn all(pid: u32) -> io::Result<Stopped> {
        let mut stopped = Stopped {
            threads: Vec::new(),
        };
        let mut known = BTreeSet::new();
        loop {
            let mut is_done = true;
            for entry in std::fs::read_dir(format!("/proc/{pid}/task"))? {
                let name = entry?.file_name();
                let thread = name.to_str().and_then(|it| it.parse().ok());
                let Some(thread) = thread.filter(|&it| known.insert(it)) else {
                    continue;
                };
                is_done = false;
                match stop(thread) {
                    Ok(signal) => stopped.threads.push((thread, signal)),
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(error) => return Err(error),
                }
            }
            if is_done {
                return Ok(stopped);
            }
        }
    }

    pub(super) fn registers(&self) -> impl Iterator<Item = Registers> {
        self.threads
            .iter()
            .filter_map(|&(thread, _)| registers(thread).ok())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for &(thread, signal) in &self.threads {
            // One that has been killed is no longer there.
            drop(request(
                libc::PTRACE_DETACH,
                thread,
                ptr::without_provenance_mut(usize::try_from(signal).unwrap_or(0)),
            ));
        }
    }
}

/// Stops a thread; a signal that came first, which it is to have when it goes on.
fn stop(thread: libc::pid_t) -> io::Result<i32> {
    request(libc::PTRACE_SEIZE, thread, ptr::null_mut())?;
    request(libc::PTRACE_INTERRUPT, thread, ptr::null_mut())?;
    let mut status = 0;
    loop {
        // SAFETY: the status is written.
        let waited = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL) };
        if waited == thread {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    if !libc::WIFSTOPPED(status) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    let is_interrupted = status >> 16 == libc::PTRACE_EVENT_STOP;
    Ok(if is_interrupted {
        0
    } else {
        libc::WSTOPSIG(status)
    })
}

fn registers(thread: libc::pid_t) -> io::Result<Registers> {
    let mut registers = MaybeUninit::<libc::user_regs_struct>::zeroed();
    request(libc::PTRACE_GETREGS, thread, registers.as_mut_ptr().cast())?;
    // SAFETY: integers, which zeros and the kernel have initialised.
    let it = unsafe { registers.assume_init() };
    Ok(Registers {
        words: vec![
            it.r15, it.r14, it.r13, it.r12, it.rbp, it.rbx, it.r11, it.r10, it.r9, it.r8, it.rax,
            it.rcx, it.rdx, it.rsi, it.rdi,
        ],
        stack_pointer: it.rsp,
        thread_pointer: it.fs_base,
    })
}

fn request(what: u32, thread: libc::pid_t, data: *mut libc::c_void) -> io::Result<()> {
    let nowhere = ptr::null_mut::<libc::c_void>();
    // SAFETY: of these requests, one writes, and `data` has room for what it does.
    match unsafe { libc::ptrace(what, thread, nowhere, data) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
