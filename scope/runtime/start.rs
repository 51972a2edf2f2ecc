//! The beginning of recording: of the process, of a child process, and of threads.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::access::MANY;
use super::arena::{self, BASE, header};
use super::local::{Local, local};
use super::{chunks, copies, hooks, regions, stacks, sys, threads, unwind, windows};
use crate::format::{
    GUEST, MAGIC, Module, NO_THREAD, OPTIONS_VARIABLE, Options, SOCKET_VARIABLE, VERSION, layout,
    state,
};

/// 0 before the first call, 1 while it is decided, 2 without the tool, 3 recording.
///
/// In a page of its own, which the kernel clears in a child of `fork`: whatever the child calls
/// first, be it a handler of `fork` before ours, begins a capture instead of writing into that of
/// its parent.
static STATE: Page = Page(AtomicU8::new(0));
static OPTIONS: Chosen = Chosen(UnsafeCell::new(Options::DEFAULT));
/// Without the tool: whether the table of pages could not be mapped.
static NO_TABLE: AtomicBool = AtomicBool::new(false);
/// Whether this process or the one that it was forked from has begun.
static BEGUN: AtomicBool = AtomicBool::new(false);
/// Whether the kernel clears the page of `STATE`.
static CLEARED: AtomicBool = AtomicBool::new(false);
/// Key of the destructor that ends threads.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

#[repr(align(4096))]
struct Page(AtomicU8);

struct Chosen(UnsafeCell<Options>);

// SAFETY: written by the first thread, before `STATE` says that anything is recorded.
unsafe impl Sync for Chosen {}

/// Whether this process is recorded. The first call begins.
#[inline(always)]
pub(crate) fn active() -> bool {
    match STATE.0.load(Ordering::Acquire) {
        3 => true,
        2 | 1 => false,
        _ => first(),
    }
}

/// What is recorded.
#[inline(always)]
pub(crate) fn options() -> &'static Options {
    // SAFETY: written by the first thread before `STATE` says that anything is recorded, and in a
    // child of `fork`, which has one thread: never while another reads it.
    unsafe { &*OPTIONS.0.get() }
}

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

#[cold]
fn first() -> bool {
    if STATE
        .0
        .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        return STATE.0.load(Ordering::Acquire) == 3;
    }
    if BEGUN.load(Ordering::Relaxed) {
        // SAFETY: this is a child of `fork`, and has one thread.
        return unsafe { begin_child() };
    }
    // SAFETY: the names end with 0.
    let socket = unsafe { sys::getenv(name(SOCKET_VARIABLE).as_ptr().cast()) };
    let begun = !socket.is_null() && {
        read_options();
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
        BEGUN.store(true, Ordering::Relaxed);
        // SAFETY: the handlers are functions of this library, which is never unloaded.
        unsafe {
            sys::__register_atfork(None, None, Some(in_child), core::ptr::null());
            let mut key = 0;
            if sys::pthread_key_create(&raw mut key, Some(thread_ends)) == 0 {
                KEY.store(key, Ordering::Relaxed);
            }
            let page = (&raw const STATE).cast_mut().cast();
            let cleared = sys::madvise(page, size_of::<Page>(), sys::MADV_WIPEONFORK) == 0;
            CLEARED.store(cleared, Ordering::Relaxed);
        }
    }
    begun
}

/// Begins a capture that no tool gets.
#[cfg(test)]
pub(crate) fn for_test(rate: u64, accesses: bool) {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
    // SAFETY: nobody else uses these addresses.
    assert!(unsafe { sys::map(BASE, layout::END, sys::PROT_READ_WRITE, flags, -1) });
    MANY.store(false, Ordering::Relaxed);
    LANES.store(1, Ordering::Relaxed);
    windows::forget();
    // SAFETY: the capture is mapped and new; the tests that use it run one at a time.
    unsafe {
        *OPTIONS.0.get() = Options {
            rate,
            accesses,
            ..Options::DEFAULT
        };
        (*header()).chunks = 1;
        chunks::forget();
        local().write_bytes(0, 1);
        (*local()).busy = true;
        thread(local());
    }
    STATE.0.store(3, Ordering::Release);
}

/// The same for regions: 1, or 2 with levels of recursion.
#[cfg(test)]
pub(crate) fn for_test_of_regions(which: u64) {
    for_test(0, true);
    // SAFETY: `for_test` has mapped the capture, and tests that use it run one at a time.
    unsafe { ((*OPTIONS.0.get()).regions, (*local()).busy) = (which, false) };
    regions::begin(true);
}

/// A name with a 0 at its end.
pub(crate) fn name(text: &str) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

/// Without the tool no page belongs to a chunk: reading the table of pages gives 0.
fn map_nothing(over: bool) {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let len = layout::GRANULES - layout::PAGES;
    // SAFETY: nobody else uses these addresses, far from where the kernel puts things.
    let mapped = unsafe { sys::map_at(BASE + layout::PAGES, len, sys::PROT_READ, flags, -1, over) };
    NO_TABLE.store(!mapped, Ordering::Relaxed);
}

/// Ends the process if accesses cannot be looked up. Only an instrumented program makes them: any
/// other runs on without the table.
pub(crate) fn require_table() {
    if NO_TABLE.load(Ordering::Relaxed) {
        sys::die(b"this instrumented program needs 128 GiB of address space (see `ulimit -v`)");
    }
}

fn read_options() {
    // SAFETY: the name ends with 0.
    let text = unsafe { sys::getenv(name(OPTIONS_VARIABLE).as_ptr().cast()) };
    if text.is_null() {
        return;
    }
    let mut rest = text.cast::<u8>();
    // SAFETY: the text ends with 0, and no byte after it is read. Nothing is recorded yet.
    unsafe {
        let options = &mut *OPTIONS.0.get();
        while *rest != 0 {
            let start = rest;
            while *rest != 0 && *rest != b'=' && *rest != b',' {
                rest = rest.add(1);
            }
            let key = core::slice::from_raw_parts(start, rest.offset_from(start).cast_unsigned());
            let mut value = 0_u64;
            while *rest != 0 && *rest != b',' {
                if rest.read().is_ascii_digit() {
                    value = value.wrapping_mul(10) + u64::from(*rest - b'0');
                }
                rest = rest.add(1);
            }
            if *rest == b',' {
                rest = rest.add(1);
            }
            match key {
                b"stacks" => options.stacks = value != 0,
                b"sites" => options.sites = value != 0,
                b"accesses" => options.accesses = value != 0,
                b"full" => options.full = value != 0,
                b"regions" => options.regions = value,
                b"all_memory" => options.all_memory = value != 0,
                b"rate" => options.rate = value.min(1 << 40),
                _ => sys::say(b"an option of the tool is unknown to the runtime"),
            }
        }
    }
}

/// Gives the capture its length, for which a limit of the size of files must not hold: the kernel
/// would end the process.
fn lengthen(file: c_int) -> bool {
    let mut limit = sys::Limit { now: 0, most: 0 };
    // SAFETY: the limits are where they are said to be, and the descriptor is ours.
    unsafe {
        sys::getrlimit(sys::RLIMIT_FSIZE, &raw mut limit);
        let raised = sys::Limit {
            now: limit.most,
            ..limit
        };
        if raised.now < layout::END {
            return false;
        }
        if limit.now < layout::END {
            sys::setrlimit(sys::RLIMIT_FSIZE, &raw const raised);
        }
        let done = sys::ftruncate(file, layout::END.cast_signed()) == 0;
        if limit.now < layout::END {
            sys::setrlimit(sys::RLIMIT_FSIZE, &raw const limit);
        }
        done
    }
}

/// Makes the capture, maps it and hands it to the tool.
///
/// A child process says nothing: its standard error may be anything by then.
fn begin(socket: *const c_char, is_child: bool) -> bool {
    let say = |line| {
        if !is_child {
            sys::say(line);
        }
    };
    // SAFETY: the name ends with 0.
    let file = unsafe { sys::memfd_create(c"ccscope".as_ptr(), sys::MFD_CLOEXEC_SEALABLE) };
    if file < 0 {
        say(b"no memory file for the capture: the program runs without being recorded");
        return false;
    }
    let flags = sys::MAP_SHARED | sys::MAP_NORESERVE;
    let protection = sys::PROT_READ_WRITE;
    let problem: &[u8] = if !lengthen(file) {
        b"files of 1.3 TiB must be allowed (see `ulimit -f`): nothing is recorded"
    // SAFETY: nobody else uses these addresses. A capture of the parent process is replaced.
    } else if !unsafe { sys::map_at(BASE, layout::END, protection, flags, file, is_child) } {
        b"1.3 TiB of address space are needed (see `ulimit -v`): nothing is recorded"
    } else {
        b""
    };
    if !problem.is_empty() {
        say(problem);
        // SAFETY: the descriptor is ours.
        unsafe { sys::close(file) };
        return false;
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
        (*header).chunks = 1;
        chunks::forget();
        (*header).magic = MAGIC;
        let sent = send(socket, file);
        sys::close(file);
        // Without a word: the tool is gone, and the program goes on as without it.
        sent
    }
}

/// Sends the capture's descriptor to the tool.
///
/// # Safety
///
/// The capture is mapped.
unsafe fn send(path: *const c_char, file: c_int) -> bool {
    let mut address = sys::UnixAddress {
        family: sys::AF_UNIX as u16,
        path: [0; 108],
    };
    // SAFETY: `path` ends with 0; the message's parts live until it is sent.
    unsafe {
        let mut len = 0;
        while *path.add(len) != 0 && len < 107 {
            address.path[len] = path.add(len).cast::<u8>().read();
            len += 1;
        }
        let connection = sys::socket(sys::AF_UNIX, sys::SOCK_STREAM_CLOEXEC, 0);
        let address_len = (2 + len + 1) as u32;
        if connection < 0 || sys::connect(connection, &raw const address, address_len) != 0 {
            sys::close(connection);
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
        (*local).window = core::ptr::null_mut();
        (*local).stacks = core::ptr::null_mut();
        windows::forget();
        threads::forget();
        MANY.store(false, Ordering::Relaxed);
        LANES.store(1, Ordering::Relaxed);
        let socket = sys::getenv(name(SOCKET_VARIABLE).as_ptr().cast());
        let begun = !socket.is_null() && begin(socket, true);
        if begun {
            unwind::report_again(module);
            regions::begin(true);
        } else {
            regions::forget();
            map_nothing(true);
        }
        // A handler that forked returns into the hot path, which may be about to count in its lane.
        ((*local).thread, (*local).mark) = (0, 0);
        (*local).pausing = 0;
        (*local).now = 0;
        (*local).limit = 0;
        (*local).synced = 0;
        (*local).other = [0; 2];
        (*local).last_allocated = 0;
        STATE.0.store(if begun { 3 } else { 2 }, Ordering::Release);
        (*local).busy = busy;
        begun
    }
}

/// Gives the calling thread a number.
///
/// # Safety
///
/// `local` is the calling thread's, marked as busy, and the capture is mapped.
pub(crate) unsafe fn thread(local: *mut Local) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        let threads = AtomicU64::from_ptr(&raw mut (*header()).threads);
        let id = threads.fetch_add(1, Ordering::Relaxed) + 1;
        if id > 1 {
            // Libc may have started this thread by itself.
            MANY.store(true, Ordering::Relaxed);
            arena::LOCK.share();
        }
        // Threads beyond the table share its last entry.
        let id = id.min(layout::MAX_THREADS - 2);
        (*local).thread = id as u16;
        // That of a parent process.
        (*local).lane = 0;
        if id < layout::MAX_THREADS - 2 {
            take_lane(local);
        }
        let events = AtomicU64::from_ptr(&raw mut (*header()).events).load(Ordering::Relaxed);
        (*local).synced = events;
        (*local).now = events;
        (*local).limit = events;
        (*local).gap = 0;
        if id > 1 {
            windows::wait(local);
        }
        let entry = arena::thread(id as u16);
        (*entry).id = id;
        (*entry).started = events + 1;
        let key = KEY.load(Ordering::Relaxed);
        if key != u32::MAX {
            sys::pthread_setspecific(key, local.cast::<c_void>());
        }
    }
}

/// Lanes of threads that run. Of the first, nobody has more than others.
static LANES: AtomicU64 = AtomicU64::new(1);

/// Gives the thread a lane if there is one left.
///
/// # Safety
///
/// As for [`thread`].
unsafe fn take_lane(local: *mut Local) {
    // What a thread before has counted there was counted before this one counts.
    let taken = LANES.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
        taken.checked_add(1).map(|next| taken | next)
    });
    let lane = taken.map_or(0, u64::trailing_ones);
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    unsafe {
        AtomicU64::from_ptr(&raw mut (*header()).lanes).fetch_or(1 << lane, Ordering::Relaxed);
        if lane > 0 {
            (*local).lane = BASE + layout::HISTS + u64::from(lane) * layout::LANE;
            (*local).mark = (*local).thread;
        }
    }
}

/// Gives the thread's lane to the next that begins; this thread counts as a guest from now on.
///
/// # Safety
///
/// As for [`thread`].
unsafe fn give_lane(local: *mut Local) {
    // SAFETY: `local` is this thread's (`# Safety`), which no other thread uses, and the
    // capture, of which all else here is, stays mapped.
    let lane = unsafe {
        AtomicU64::from_ptr(&raw mut (*header()).lanes).fetch_or(1, Ordering::Relaxed);
        (*local).mark = 0;
        core::mem::take(&mut (*local).lane)
    };
    if lane != 0 {
        let lane = (lane - BASE - layout::HISTS) / layout::LANE;
        LANES.fetch_and(!(1 << lane), Ordering::Release);
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
        if active() && (*local).thread != 0 {
            // What a handler accesses must not begin what is ended here, and what it allocates must
            // not wait for the lock.
            (*local).pausing = u64::MAX;
            (*local).busy = true;
            give_lane(local);
            regions::end_thread(local);
            let time = super::access::sync(local);
            windows::end(local);
            (*local).endings += 1;
            if (*local).endings == 1 {
                stacks::give_room(local);
            }
            (*local).busy = false;
            (*local).pausing = 0;
            (*arena::thread((*local).thread)).ended = time;
            // Destructors of later keys run after this one.
            if (*local).endings < ROUNDS {
                sys::pthread_setspecific(KEY.load(Ordering::Relaxed), block);
            }
        }
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
        if STATE.0.load(Ordering::Acquire) == 3 && (*local).thread != 0 {
            super::access::sync(local);
        }
    }
}

/// Notes a loaded module in the capture.
pub(crate) fn module(start: u64, end: u64, bias: u64, path: &[u8]) {
    // SAFETY: the unwinder calls this for one module at a time; entries beyond the count are
    // nobody's.
    unsafe {
        let modules = AtomicU64::from_ptr(&raw mut (*header()).modules);
        let index = modules.load(Ordering::Relaxed);
        if index >= layout::MAX_MODULES {
            return;
        }
        let entry: *mut Module = arena::at(layout::MODULES + index * size_of::<Module>() as u64);
        let len = path.len().min(487);
        (*entry).start = start;
        (*entry).end = end;
        (*entry).bias = bias;
        (&raw mut (*entry).path)
            .cast::<u8>()
            .copy_from_nonoverlapping(path.as_ptr(), len);
        modules.store(index + 1, Ordering::Release);
    }
}

const _: () = assert!(layout::MAX_THREADS - 2 < (NO_THREAD & !GUEST) as u64);
