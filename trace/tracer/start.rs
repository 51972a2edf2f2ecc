//! The start of processes: options, and what is taken over.

use core::ffi::{c_char, c_int};
use core::sync::atomic::Ordering::Relaxed;

use super::lock::LOCK;
use super::masks::{self, SIGBUS, SIGSEGV, SIGSYS, SIGTRAP};
use super::options::{self, AT_ONCE, BSS, DATA, HEAP, PATCH, hex, option, traces};
use super::sys::{self, PAGE};
use super::{
    answers, arena, calls, events, faults, folder, gate, hooks, maps, memory, patches, points,
    signals, threads, thunks, ticks, unwind, zones,
};

/// Of addresses, the least that a process has to be allowed.
const SPACE: u64 = 1 << 36;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// The bytes of a text that ends with 0.
///
/// # Safety
///
/// It does, and lives for ever.
unsafe fn text_at(address: *const c_char) -> &'static [u8] {
    // SAFETY: the text ends with 0 and lives for ever (`# Safety`).
    unsafe { core::ffi::CStr::from_ptr(address) }.to_bytes()
}

extern "C" fn start(_: c_int, _: *const *const c_char, environment: *const *const c_char) {
    let mut text = None;
    let mut at = environment;
    // SAFETY: the environment ends with a null pointer, and behind it lies the auxiliary vector.
    let linker = unsafe {
        while !(*at).is_null() {
            if let Some(value) = text_at(*at).strip_prefix(b"CCSCOPE_TRACE=") {
                text = Some(value);
            }
            at = at.add(1);
        }
        let mut pair = at.add(1).cast::<[u64; 2]>();
        const BASE: u64 = 7;
        while (*pair)[0] != 0 && (*pair)[0] != BASE {
            pair = pair.add(1);
        }
        (*pair)[1]
    };
    let Some(text) = text else {
        return;
    };
    let number = |name: &[u8]| option(text, name).map_or(0, hex);
    let folder = option(text, b"folder").unwrap_or_default();
    if !folder::set(folder) {
        sys::die(b"CCSCOPE_TRACE names no folder");
    }
    options::set(number(b"options"), number(b"most"));
    zones::EVERY.store(number(b"every").max(1), Relaxed);
    if !gate::can_dispatch() {
        sys::say(b"without Syscall User Dispatch (Linux 5.11) a process is not traced");
        return;
    }
    if sys::limit_of(sys::RLIMIT_AS).0 < SPACE {
        sys::say(b"a process is not traced: 64 GiB of address space are needed (see `ulimit -v`)");
        return;
    }
    if threads::are_several() {
        sys::say(b"a process with threads before its main function is not traced");
        return;
    }
    unwind::leave_out_own();
    sys::keep_spare();
    maps::init();
    sys::begin_process();
    // The folder cannot be reached any more by programs that gave up rights, or outlived the tool.
    // SAFETY: there are no events yet.
    if !unsafe { events::init(options::most()) } {
        return;
    }
    if !zones::init() {
        sys::say(b"no file in memory can be made: a process is not traced");
        return;
    }
    gate::init();
    thunks::init();
    answers::init();
    arena::init();
    hooks::init();
    hooks::end_sequences();
    if traces(PATCH) && !patches::init() {
        sys::say(b"nothing is patched: there is no address space for it, or no membarrier");
    }
    set_handlers();
    let thread = threads::this();
    thread.begin();
    ticks::forget(thread);
    let stack = thread.stack_of_handlers();
    // SAFETY: the stack is the thread's from now on.
    unsafe { sys::call(sys::SIGALTSTACK, [(&raw const stack) as u64, 0, 0, 0, 0, 0]) };
    gate::dispatch();
    let mask = masks::block();
    LOCK.take();
    take(linker);
    for (name, set) in [
        (&b"from"[..], points::set_from as fn(u64)),
        (b"to", points::set_to),
    ] {
        // `OFFSET:PATH`, the offset from where the file's first page is mapped.
        if let Some(place) = option(text, name)
            && let Some(colon) = place.iter().position(|&byte| byte == b':')
        {
            // Other programs that the first one starts have no such file.
            if let Some(base) = maps::base_of(&place[colon + 1..]) {
                set(base + hex(&place[..colon]));
            }
        }
    }
    if traces(AT_ONCE) {
        zones::set_closed(true);
    }
    events::set_ready();
    LOCK.give();
    masks::restore(mask);
}

/// Takes over data, bss and heap. `linker` is where the dynamic linker lies.
fn take(linker: u64) {
    // SAFETY: the process has one thread, as `begin` has seen; `copy_maps` and `base_of`, which
    // read the text anew, are not called while this one is used.
    let text = unsafe { maps::read() };
    let own = take as fn(u64) as *const () as u64;
    let path_at = |address: u64| {
        let found = maps::rows(text).find(|row| (row.start..row.end).contains(&address));
        found.map_or(&b""[..], |row| row.path)
    };
    let (own, linker) = (path_at(own), path_at(linker));
    if let Some(row) =
        maps::rows(text).find(|row| row.path == linker && row.rights.get(2) == Some(&b'x'))
    {
        maps::set_linker(row.start, row.end);
    }
    // First, since aliases of data would lie where the heap grows.
    if traces(HEAP) {
        // SAFETY: asks where the heap ends.
        let end = unsafe { sys::call(sys::BRK, [0; 6]) }.cast_unsigned();
        let end = end.next_multiple_of(PAGE);
        let heap = maps::rows(text).find(|row| row.path == b"[heap]");
        memory::take_heap(heap.map_or(end, |row| row.start), end);
    }
    let mut before: Option<maps::Row<'_>> = None;
    for row in maps::rows(text) {
        let is_plain = row.rights == b"rw-p";
        let is_file = row.path.first() == Some(&b'/');
        let kind = if is_file && maps::is_module(text, row.path) {
            DATA
        } else if before.is_some_and(|it| it.end == row.start && maps::is_module(text, it.path))
            && row.path.is_empty()
        {
            BSS
        } else {
            0
        };
        let module = if is_file {
            row.path
        } else {
            before.map_or(&b""[..], |it| it.path)
        };
        if is_file || row.path.is_empty() && kind == BSS {
            before = Some(maps::Row {
                path: module,
                ..row
            });
        } else {
            before = None;
        }
        if !is_plain || kind == 0 || !traces(kind) || module == own || module == linker {
            continue;
        }
        // Behind bss may lie what is none: the kernel makes one mapping of both.
        let end = if kind == BSS {
            row.end.min(maps::end_of_module(text, module))
        } else {
            row.end
        };
        if end <= row.start || zones::touches(row.start, end) || arena::is_in(row.start) {
            continue;
        }
        zones::take_data(row.start, end);
    }
}

/// Sets our handlers of the signals that we need.
fn set_handlers() {
    for (signal, handler) in [
        (SIGTRAP, faults::on_trap as *const () as u64),
        (SIGBUS, faults::on_fault as *const () as u64),
        (SIGSEGV, faults::on_fault as *const () as u64),
        (SIGSYS, calls::on_call as *const () as u64),
    ] {
        // SAFETY: the handlers take what the kernel passes.
        unsafe { signals::set_handler(signal, handler) };
    }
}
