//! The beginning of recording, of the process and of a child process, and the ends of threads.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

use super::capture::{self, BASE, LOCK, header};
use super::local::local;
use super::recording::{EPOCH, NO_TABLE, Page, SEVERAL_THREADS, STATE, active, options_mut};
use super::{
    call_tree, chunks, clock, copies, hooks, modules, recording, regions, seats, sys, threads,
    unwind, windows,
};
use crate::capture_format::{
    MAGIC, OPTIONS_VARIABLE, Options, SOCKET_VARIABLE, VERSION, layout, live, state,
};

/// Whether this process or the one that it was forked from has begun.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Whether the kernel clears the page of `STATE`.
static CLEARED: AtomicBool = AtomicBool::new(false);

/// Runs before the program's own constructors, if nothing has called `active` before.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

#[cfg(not(test))]
extern "C" fn at_start() {
    super::local::publish();
    active();
}

/// What the first call of [`active`] does.
#[cold]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccscope_begin() -> bool {
    first()
}

// A function with a path, by which profilers know what is ours.
#[inline(never)]
fn first() -> bool {
    if STATE
        .0
        .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        return STATE.0.load(Ordering::Acquire) == 3;
    }
    if seats::is_late() {
        // A child of `fork`: `ccscope attach` is for one process.
        seats::forget();
        STATE.0.store(2, Ordering::Release);
        return false;
    }
    if BEGUN.load(Ordering::Relaxed) {
        // SAFETY: this is a child of `fork`, and has one thread.
        return unsafe { begin_child() };
    }
    #[cfg(not(test))]
    unwind::leave_out_own();
    let socket = sys::variable(SOCKET_VARIABLE);
    let begun = !socket.is_null() && {
        // SAFETY: nothing is recorded yet. Nobody changes the environment while the process begins.
        unsafe { read_options(sys::variable(OPTIONS_VARIABLE)) };
        begin(socket, false)
    };
    if begun {
        regions::begin(false);
    } else {
        map_nothing(false);
    }
    hooks::find_all();
    STATE.0.store(if begun { 3 } else { 2 }, Ordering::Release);
    copies::begin();
    if begun {
        register();
    }
    begun
}

/// Once: for what becomes of the process and of its threads.
fn register() {
    if BEGUN.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the handlers are functions of this library, which is never unloaded.
    unsafe {
        sys::__register_atfork(None, None, Some(in_child), core::ptr::null());
        let mut key = 0;
        if sys::pthread_key_create(&raw mut key, Some(thread_ends)) == 0 {
            threads::KEY.store(key, Ordering::Relaxed);
        }
        let page = (&raw const STATE).cast_mut().cast();
        let cleared = sys::madvise(page, size_of::<Page>(), sys::MADV_WIPEONFORK) == 0;
        CLEARED.store(cleared, Ordering::Relaxed);
    }
}

/// Whether the capture of a library that came late is mapped.
static HAS_CAPTURE: AtomicBool = AtomicBool::new(false);

/// Begins a recording in a process that runs; the descriptor of its capture, or one of [`live`].
///
/// # Safety
///
/// `options` ends with 0. Nothing is recorded until this has returned, the library has come late,
/// and no other thread calls this or [`end_late`].
pub(crate) unsafe fn begin_late(options: *const c_char) -> i64 {
    // SAFETY: nothing is recorded (`# Safety`), so nobody reads the options. Without the tool no
    // page is looked up but by instrumented code, which a library that came late does not meet.
    unsafe {
        *options_mut() = Options::DEFAULT;
        read_options(options);
        if !NO_TABLE.swap(true, Ordering::Relaxed) {
            sys::unmap(BASE + layout::PAGES, layout::GRANULES - layout::PAGES);
        }
    }
    let file = match make_capture(false) {
        Ok(file) => file,
        Err(problem) => return problem.code(),
    };
    HAS_CAPTURE.store(true, Ordering::Relaxed);
    SEVERAL_THREADS.store(true, Ordering::Relaxed);
    LOCK.will_be_shared();
    threads::forget_shards();
    windows::forget();
    #[cfg(not(test))]
    unwind::leave_out_own();
    unwind::report_again(modules::note);
    // SAFETY: the capture is mapped, and nobody else writes to it yet.
    unsafe { (*header()).late = 1 };
    EPOCH.fetch_add(1, Ordering::Relaxed);
    register();
    file.into()
}

/// Takes the capture away that [`begin_late`] has made.
pub(crate) fn end_late() {
    if HAS_CAPTURE.swap(false, Ordering::Relaxed) {
        // SAFETY: nothing is recorded, and no thread has a seat, so nobody uses the capture.
        unsafe { sys::unmap(BASE, layout::END) };
    }
}

/// Begins a capture that no tool gets.
#[cfg(test)]
pub(crate) fn for_test(rate: u64, accesses: bool) {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
    // SAFETY: nobody else uses these addresses.
    assert!(unsafe { sys::map(BASE, layout::END, sys::PROT_READ_WRITE, flags, -1) });
    SEVERAL_THREADS.store(false, Ordering::Relaxed);
    threads::forget();
    windows::forget();
    // SAFETY: the capture is mapped and new; the tests that use it run one at a time.
    unsafe {
        *options_mut() = Options {
            rate,
            accesses,
            ..Options::DEFAULT
        };
        (*header()).chunks = 1;
        chunks::forget();
        local().write_bytes(0, 1);
        (*local()).busy = true;
        threads::give_number(local());
    }
    STATE.0.store(3, Ordering::Release);
}

/// The same for regions: 1, or 2 with levels of recursion.
#[cfg(test)]
pub(crate) fn for_test_of_regions(which: u64) {
    for_test(0, true);
    // SAFETY: `for_test` has mapped the capture, and tests that use it run one at a time.
    unsafe { ((*options_mut()).regions, (*local()).busy) = (which, false) };
    regions::begin(true);
}

/// Without the tool no page belongs to a chunk: reading the table of pages gives 0.
fn map_nothing(over: bool) {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let len = layout::GRANULES - layout::PAGES;
    // SAFETY: nobody else uses these addresses, far from where the kernel puts things.
    let mapped = unsafe { sys::map_at(BASE + layout::PAGES, len, sys::PROT_READ, flags, -1, over) };
    NO_TABLE.store(!mapped, Ordering::Relaxed);
}

/// # Safety
///
/// `text` is null or ends with 0, and nobody changes it. Nothing is recorded.
unsafe fn read_options(text: *const c_char) {
    if text.is_null() {
        return;
    }
    // SAFETY: the text ends with 0, and nobody changes it (`# Safety`).
    let text = unsafe { core::ffi::CStr::from_ptr(text) }.to_bytes();
    // SAFETY: nothing is recorded (`# Safety`), so nobody reads the options.
    let options = unsafe { &mut *options_mut() };
    for (name, value) in inside::options::each(text, b',') {
        let value = inside::options::decimal(value);
        match name {
            b"stacks" => options.stacks = value != 0,
            b"sites" => options.sites = value != 0,
            b"accesses" => options.accesses = value != 0,
            b"full" => options.full = value != 0,
            b"regions" => options.regions = value,
            b"all_memory" => options.all_memory = value != 0,
            b"leaks" => options.leaks = value != 0,
            b"rate" => options.rate = value.min(1 << 40),
            b"sample" => options.sample = value.min(1 << 40),
            _ => sys::say(b"an option of the tool is unknown to the runtime"),
        }
    }
}

/// Why there is no capture.
enum Problem {
    NoFile,
    TooLong,
    NoAddresses,
}

impl Problem {
    fn code(&self) -> i64 {
        match self {
            Problem::NoFile => live::NO_FILE,
            Problem::TooLong => live::TOO_LONG,
            Problem::NoAddresses => live::NO_ADDRESSES,
        }
    }

    fn line(&self) -> &'static [u8] {
        match self {
            Problem::NoFile => {
                b"no memory file for the capture: the program runs without being recorded"
            }
            Problem::TooLong => {
                b"files of 1.3 TiB must be allowed (see `ulimit -f`): nothing is recorded"
            }
            Problem::NoAddresses => {
                b"1.3 TiB of address space are needed (see `ulimit -v`): nothing is recorded"
            }
        }
    }
}

/// Makes the capture and hands it to the tool.
///
/// A child process says nothing: its standard error may be anything by then.
fn begin(socket: *const c_char, is_child: bool) -> bool {
    match make_capture(is_child) {
        // SAFETY: the capture is mapped, and the descriptor is ours.
        Ok(file) => unsafe {
            let sent = send(socket, file);
            sys::close(file);
            // Without a word: the tool is gone, and the program goes on as without it.
            sent
        },
        Err(problem) => {
            if !is_child {
                sys::say(problem.line());
            }
            false
        }
    }
}

/// Makes the capture and maps it, over that of a parent process if there is one; its descriptor.
fn make_capture(over: bool) -> Result<c_int, Problem> {
    // SAFETY: the name ends with 0.
    let file = unsafe { sys::memfd_create(c"ccscope".as_ptr(), sys::MFD_CLOEXEC_SEALABLE) };
    if file < 0 {
        return Err(Problem::NoFile);
    }
    let flags = sys::MAP_SHARED | sys::MAP_NORESERVE;
    let protection = sys::PROT_READ_WRITE;
    // SAFETY: the descriptor is ours.
    let problem = if !unsafe { sys::lengthen(u64::from(file.unsigned_abs()), layout::END) } {
        Some(Problem::TooLong)
    // SAFETY: nobody else uses these addresses. A capture of the parent process is replaced.
    } else if !unsafe { sys::map_at(BASE, layout::END, protection, flags, file, over) } {
        Some(Problem::NoAddresses)
    } else {
        None
    };
    if let Some(problem) = problem {
        // SAFETY: the descriptor is ours.
        unsafe { sys::close(file) };
        return Err(problem);
    }
    let (ns, tsc) = sys::clocks();
    // SAFETY: the capture is mapped and new; no other thread uses it yet.
    unsafe {
        let header = header();
        (*header).version = VERSION;
        (*header).pid = sys::getpid().cast_unsigned();
        (*header).parent = sys::getppid().cast_unsigned();
        (*header).start_ns = ns;
        (*header).start_tsc = tsc;
        (*header).last_ns = ns;
        (*header).last_tsc = tsc;
        (*header).state = state::RUNNING;
        (*header).sample = recording::options().sample;
        (*header).chunks = 1;
        chunks::forget();
        (*header).magic = MAGIC;
    }
    Ok(file)
}

/// Sends the capture's descriptor to the tool.
///
/// # Safety
///
/// The capture is mapped.
unsafe fn send(path: *const c_char, file: c_int) -> bool {
    // SAFETY: `path` ends with 0; the message's parts live until it is sent.
    unsafe {
        let connection = connect(path);
        if connection < 0 {
            return false;
        }
        let header = header();
        let hello = [
            MAGIC,
            u64::from((*header).pid) | u64::from((*header).parent) << 32,
        ];
        let part = sys::IoVec {
            base: hello.as_ptr().cast(),
            len: 16,
        };
        let rights = sys::Rights {
            len: 20,
            level: sys::SOL_SOCKET,
            kind: sys::SCM_RIGHTS,
            descriptor: file,
            padding: 0,
        };
        let message = sys::Message {
            name: core::ptr::null(),
            name_len: 0,
            parts: &raw const part,
            parts_len: 1,
            control: (&raw const rights).cast(),
            control_len: size_of::<sys::Rights>(),
            flags: 0,
        };
        let sent = sys::sendmsg(connection, &raw const message, sys::MSG_NOSIGNAL) == 16;
        sys::close(connection);
        sent
    }
}

/// A connection to the tool; negative without.
///
/// # Safety
///
/// `path` ends with 0.
unsafe fn connect(path: *const c_char) -> c_int {
    let mut address = sys::UnixAddress {
        family: sys::AF_UNIX,
        path: [0; 108],
    };
    // SAFETY: `path` ends with 0 (`# Safety`); the address lives until the call has ended.
    unsafe {
        let mut len = 0;
        while *path.add(len) != 0 && len < 107 {
            address.path[len] = path.add(len).cast::<u8>().read();
            len += 1;
        }
        let connection = sys::socket(sys::AF_UNIX.into(), sys::SOCK_STREAM_CLOEXEC, 0);
        let address_len = (2 + len + 1) as u32;
        if connection < 0 || sys::connect(connection, &raw const address, address_len) != 0 {
            sys::close(connection);
            return -1;
        }
        connection
    }
}

/// In a child of `fork`.
///
/// # Safety
///
/// The process has one thread.
unsafe extern "C" fn in_child() {
    if !CLEARED.load(Ordering::Relaxed) {
        STATE.0.store(0, Ordering::Relaxed);
    }
    active();
    // SAFETY: the block is this thread's.
    if seats::is_late() && !unsafe { (*local()).busy } {
        end_late();
    }
}

/// `_Fork`, which calls no handlers of `fork`.
#[cfg_attr(not(test), unsafe(export_name = "_Fork"))]
pub(crate) extern "C" fn fork_alone() -> c_int {
    // SAFETY: it may be called at any time, and its child has one thread.
    unsafe {
        let child = hooks::real_fork::get().map_or(-1, |real| real());
        if child == 0 {
            in_child();
        }
        child
    }
}

/// In a child of `fork`: a capture of its own. What it inherited is not known to it.
///
/// # Safety
///
/// The process has one thread, and `STATE` is 1.
unsafe fn begin_child() -> bool {
    let local = local();
    // SAFETY: the child has one thread, this one.
    unsafe {
        let busy = core::mem::replace(&mut (*local).busy, true);
        windows::forget();
        threads::forget();
        SEVERAL_THREADS.store(false, Ordering::Relaxed);
        let socket = sys::variable(SOCKET_VARIABLE);
        let begun = !socket.is_null() && begin(socket, true);
        if begun {
            unwind::report_again(modules::note);
            regions::begin(true);
        } else {
            regions::forget();
            map_nothing(true);
        }
        // A handler that forked returns into the fast path, which may be about to count in its
        // shard: that stays.
        threads::forget_recording(local);
        STATE.0.store(if begun { 3 } else { 2 }, Ordering::Release);
        (*local).busy = busy;
        begun
    }
}

/// The destructor of the thread's key.
///
/// # Safety
///
/// The capture is mapped.
pub(crate) unsafe extern "C" fn thread_ends(block: *mut c_void) {
    /// So often libc calls destructors of keys that have a value again.
    const ROUNDS: u8 = 4;
    let local = local();
    // SAFETY: the block is this thread's.
    unsafe {
        if (*local).thread == 0 || !seats::take(local) {
            return;
        }
        if (*local).epoch == recording::epoch() {
            // What a handler accesses must not begin what is ended here, and what it allocates must
            // not wait for the lock.
            (*local).pausing = u64::MAX;
            (*local).busy = true;
            threads::give_lane(local);
            regions::end_thread(local);
            let time = clock::sync(local);
            windows::end(local);
            (*local).endings += 1;
            if (*local).endings == 1 {
                call_tree::give_cache(local);
            }
            (*local).busy = false;
            (*local).pausing = 0;
            (*capture::thread((*local).thread)).ended = time;
            // Destructors of later keys run after this one.
            if (*local).endings < ROUNDS {
                sys::pthread_setspecific(threads::KEY.load(Ordering::Relaxed), block);
            }
        }
        seats::give(local);
    }
}

/// Runs after the program's own handlers of `exit`, and before destructors of its libraries.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

#[cfg(not(test))]
extern "C" fn at_end() {
    let local = local();
    // SAFETY: the block is this thread's, and the capture is mapped.
    unsafe {
        if STATE.0.load(Ordering::Acquire) != 3 {
            return;
        }
        if (*local).thread != 0 && seats::take(local) {
            if (*local).epoch == recording::epoch() {
                clock::sync(local);
            }
            seats::give(local);
        }
        if super::recording::options().leaks {
            await_leaks();
        }
    }
}

/// Has the tool look for leaks: its answer is that it closes the connection.
#[cfg(not(test))]
fn await_leaks() {
    let path = sys::variable(SOCKET_VARIABLE);
    if path.is_null() {
        return;
    }
    // SAFETY: `path` ends with 0; the kernel reads the words and writes into the last.
    unsafe {
        let connection = connect(path);
        if connection < 0 {
            return;
        }
        let mut words = [crate::capture_format::ENDS, u64::from((*header()).pid)];
        let part = sys::IoVec {
            base: words.as_ptr().cast(),
            len: 16,
        };
        let message = sys::Message {
            name: core::ptr::null(),
            name_len: 0,
            parts: &raw const part,
            parts_len: 1,
            control: core::ptr::null(),
            control_len: 0,
            flags: 0,
        };
        if sys::sendmsg(connection, &raw const message, sys::MSG_NOSIGNAL) == 16 {
            let into = (&raw mut words[1]) as u64;
            let arguments = [u64::from(connection.unsigned_abs()), into, 8, 0, 0, 0];
            while sys::system_call(sys::SYS_READ, arguments) == sys::INTERRUPTED {}
        }
        sys::close(connection);
    }
}
