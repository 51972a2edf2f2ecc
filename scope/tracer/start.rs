//! The start of processes: options, what is taken over, and talk with the tool.

use core::ffi::{c_char, c_int};
use core::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use crate::sys::{self, PAGE};
use crate::wire::Question;
use crate::{
    LOCK, answers, arena, events, gate, hooks, memory, patches, points, signals, threads, thunks,
    zones,
};

/// Kinds of memory.
pub(crate) const HEAP: u64 = 1;
pub(crate) const DATA: u64 = 2;
pub(crate) const BSS: u64 = 4;
/// Besides: tracing is on from the start.
const AT_ONCE: u64 = 8;
/// Besides: instructions that fault often are patched.
pub(crate) const PATCH: u64 = 16;

static OPTIONS: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);
static IS_READY: AtomicBool = AtomicBool::new(false);
/// Number of the process.
static PROCESS: AtomicU64 = AtomicU64::new(0);
/// Libraries were mapped that the tool does not know yet.
static MODULES_ARE_NEW: AtomicBool = AtomicBool::new(false);
/// Where the dynamic linker's code begins and ends.
static LINKER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Of addresses, the least that a process has to be allowed.
const SPACE: u64 = 1 << 36;
/// Memory for a copy of `/proc/self/maps`.
static MAPS: AtomicU64 = AtomicU64::new(0);
const MAPS_SIZE: u64 = 1 << 22;
/// Where events go, with its 0.
static FOLDER: [AtomicU64; 24] = [const { AtomicU64::new(0) }; 24];

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = start;

/// Whether memory of a kind is traced.
pub(crate) fn traces(kind: u64) -> bool {
    OPTIONS.load(Relaxed) & kind != 0
}

/// Whether events can be written.
pub(crate) fn is_ready() -> bool {
    IS_READY.load(Acquire)
}

/// The value of an option: `NAME=VALUE` and a line's end.
pub(crate) fn option<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let mut lines = text.split(|&byte| byte == b'\n');
    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(b"="))
}

/// A number in base 16.
fn hex(text: &[u8]) -> u64 {
    text.iter().fold(0, |sum, byte| {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => 0,
        };
        sum << 4 | u64::from(digit)
    })
}

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
    if folder.is_empty() || folder.len() > 100 {
        sys::die(b"CCSCOPE_TRACE names no folder");
    }
    for (at, part) in folder.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        FOLDER[at].store(u64::from_le_bytes(word), Relaxed);
    }
    OPTIONS.store(number(b"options"), Relaxed);
    MOST.store(number(b"most"), Relaxed);
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
    sys::keep_spare();
    MAPS.store(sys::memory(MAPS_SIZE), Relaxed);
    PROCESS.store(sys::process(), Relaxed);
    // The folder cannot be reached any more by programs that gave up rights, or outlived the tool.
    // SAFETY: there are no events yet.
    if !unsafe { events::init(MOST.load(Relaxed)) } {
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
    signals::init();
    let thread = threads::this();
    thread.begin();
    let stack = thread.stack_of_handlers();
    // SAFETY: the stack is the thread's from now on.
    unsafe { sys::call(sys::SIGALTSTACK, [(&raw const stack) as u64, 0, 0, 0, 0, 0]) };
    gate::dispatch();
    let mask = block_signals();
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
            if let Some(base) = base_of(&place[colon + 1..]) {
                set(base + hex(&place[..colon]));
            }
        }
    }
    if traces(AT_ONCE) {
        zones::set_closed(true);
    }
    IS_READY.store(true, Release);
    LOCK.give();
    restore_signals(mask);
}

/// A row of `/proc/self/maps`.
#[derive(Clone, Copy)]
struct Row<'t> {
    start: u64,
    end: u64,
    rights: &'t [u8],
    offset: u64,
    path: &'t [u8],
}

/// Reads `/proc/self/maps`.
///
/// # Safety
///
/// Nobody else is here meanwhile, and what an earlier call returned is not used any more.
unsafe fn maps() -> &'static [u8] {
    let place = MAPS.load(Relaxed);
    let mut len = 0;
    // SAFETY: `MAPS_SIZE` bytes at `place` are mapped for this alone, and no earlier answer is
    // still in use (`# Safety`). `len` of them were written, and the path ends with 0.
    unsafe {
        let name = c"/proc/self/maps".as_ptr() as u64;
        let fd = sys::call(sys::OPEN, [name, 0, 0, 0, 0, 0]);
        if !sys::failed(fd) {
            loop {
                let words = [fd.cast_unsigned(), place + len, MAPS_SIZE - len, 0, 0, 0];
                let got = sys::call(sys::READ, words);
                if got <= 0 {
                    break;
                }
                len += got.cast_unsigned();
            }
            sys::call(sys::CLOSE, [fd.cast_unsigned(), 0, 0, 0, 0, 0]);
        }
        let first = core::ptr::with_exposed_provenance(place as usize);
        core::slice::from_raw_parts(first, len as usize)
    }
}

fn rows(text: &[u8]) -> impl Iterator<Item = Row<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.splitn(6, |&byte| byte == b' ');
        let range = words.next()?;
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let rights = words.next()?;
        let offset = hex(words.next()?);
        let path = words.nth(2).unwrap_or_default();
        let path = path.trim_ascii_start();
        Some(Row {
            start: hex(&range[..dash]),
            end: hex(&range[dash + 1..]),
            rights,
            offset,
            path,
        })
    })
}

/// Where the first page of a file is mapped.
fn base_of(path: &[u8]) -> Option<u64> {
    // SAFETY: by the lock invariant nobody else is here. A number is all that is kept of the text.
    let text = unsafe { maps() };
    rows(text)
        .find(|row| row.path == path && row.offset == 0)
        .map(|row| row.start)
}

/// Takes over data, bss and heap. `linker` is where the dynamic linker lies.
fn take(linker: u64) {
    // SAFETY: the process has one thread, as `begin` has seen; `copy_maps` and `base_of`, which
    // read the text anew, are not called while this one is used.
    let text = unsafe { maps() };
    let own = take as fn(u64) as *const () as u64;
    let path_at = |address: u64| {
        let found = rows(text).find(|row| (row.start..row.end).contains(&address));
        found.map_or(&b""[..], |row| row.path)
    };
    let (own, linker) = (path_at(own), path_at(linker));
    if let Some(row) = rows(text).find(|row| row.path == linker && row.rights.get(2) == Some(&b'x'))
    {
        LINKER[0].store(row.start, Relaxed);
        LINKER[1].store(row.end, Relaxed);
    }
    // First, since aliases of data would lie where the heap grows.
    if traces(HEAP) {
        // SAFETY: asks where the heap ends.
        let end = unsafe { sys::call(sys::BRK, [0; 6]) }.cast_unsigned();
        let end = end.next_multiple_of(PAGE);
        let heap = rows(text).find(|row| row.path == b"[heap]");
        memory::take_heap(heap.map_or(end, |row| row.start), end);
    }
    let mut before: Option<Row<'_>> = None;
    for row in rows(text) {
        let is_plain = row.rights == b"rw-p";
        let is_file = row.path.first() == Some(&b'/');
        let kind = if is_file && is_module(text, row.path) {
            DATA
        } else if before.is_some_and(|it| it.end == row.start && is_module(text, it.path))
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
            before = Some(Row {
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
            row.end.min(end_of_module(text, module))
        } else {
            row.end
        };
        if end <= row.start || zones::touches(row.start, end) || arena::is_in(row.start) {
            continue;
        }
        zones::take_data(row.start, end);
    }
}

/// Whether code of the file is mapped.
fn is_module(text: &[u8], path: &[u8]) -> bool {
    rows(text).any(|row| row.path == path && row.rights.get(2) == Some(&b'x'))
}

/// Where the last segment of a module ends, with its bss; 0 if that is not known.
fn end_of_module(text: &[u8], path: &[u8]) -> u64 {
    let first = rows(text).find(|row| row.path == path && row.offset == 0);
    let Some(row) = first.filter(|row| row.rights.first() == Some(&b'r')) else {
        return 0;
    };
    const MAGIC: u64 = u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0");
    const LOADED: u64 = 1;
    const HALF: u64 = 0xffff_ffff;
    // SAFETY: the page is mapped and can be read, and the linker has read the same: the file's
    // header, and segments as it says.
    unsafe {
        if sys::word(row.start) & !(0xff << 56) != MAGIC & !(0xff << 56) {
            return 0;
        }
        let (segments, number) = (
            sys::word(row.start + 32),
            sys::word(row.start + 56) & 0xffff,
        );
        if segments + number * 56 > row.end - row.start {
            return 0;
        }
        let places = (0..number)
            .map(|at| row.start + segments + at * 56)
            .filter(|&at| sys::word(at) & HALF == LOADED)
            .map(|at| [sys::word(at + 8), sys::word(at + 16), sys::word(at + 40)]);
        let base = places.clone().find(|place| place[0] == 0);
        let end = places.map(|[_, address, len]| address + len).max();
        match (base, end) {
            (Some([_, first, _]), Some(end)) => {
                (row.start - (first & !(PAGE - 1)) + end).next_multiple_of(PAGE)
            }
            _ => 0,
        }
    }
}

/// A library is being mapped.
pub(crate) fn note_module() {
    MODULES_ARE_NEW.store(true, Relaxed);
}

/// Whether that happened.
pub(crate) fn modules_are_new() -> bool {
    MODULES_ARE_NEW.load(Relaxed)
}

/// Whether code is the dynamic linker's.
pub(crate) fn is_linker(ip: u64) -> bool {
    let [start, end] = [0, 1].map(|it| LINKER[it].load(Relaxed));
    (start..end).contains(&ip)
}

/// Tells the tool of libraries that are new, once the dynamic linker has mapped all of them.
pub(crate) fn tell_modules(ip: u64) {
    if !is_linker(ip) {
        MODULES_ARE_NEW.store(false, Relaxed);
        let mut name = Path::in_folder();
        name.number(sys::process());
        copy_maps(name);
    }
}

/// In a child of `fork`: a file of events of its own.
pub(crate) fn begin_process() {
    PROCESS.store(sys::process(), Relaxed);
    // SAFETY: a child of `fork` has one thread.
    unsafe { events::begin_process(MOST.load(Relaxed)) };
    if events::is_full() {
        zones::set_closed(false);
    }
}

/// False in a child of `vfork`, which has its parent's memory.
pub(crate) fn is_own_process() -> bool {
    PROCESS.load(Relaxed) == sys::process()
}

/// Turns tracing on or off.
pub(crate) fn set_tracing(is_on: bool) {
    if is_ready() {
        let mask = block_signals();
        LOCK.take();
        zones::set_closed(is_on);
        LOCK.give();
        restore_signals(mask);
    }
}

/// Keeps handlers of signals from the thread; which were kept before.
pub(crate) fn block_signals() -> u64 {
    let (all, mut before) = (!signals::OURS, 0_u64);
    // SAFETY: the kernel reads one word and writes the other.
    unsafe {
        let [from, to] = [(&raw const all) as u64, (&raw mut before) as u64];
        let words = [2, from, to, 8, 0, 0];
        sys::call(sys::RT_SIGPROCMASK, words);
    }
    before
}

/// Undoes it.
pub(crate) fn restore_signals(before: u64) {
    let words = [2, (&raw const before) as u64, 0, 8, 0, 0];
    // SAFETY: the kernel reads the word.
    unsafe { sys::call(sys::RT_SIGPROCMASK, words) };
}

/// Moves a descriptor to a number that programs do not choose.
pub(crate) fn high(fd: u64) -> i64 {
    const FCNTL: u64 = 72;
    const DUPLICATE_FROM: u64 = 1030;
    for from in [700, 200, 50, fd + 1, 3] {
        // SAFETY: the descriptor is ours.
        unsafe {
            let moved = sys::call(FCNTL, [fd, DUPLICATE_FROM, from, 0, 0, 0]);
            if !sys::failed(moved) {
                sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
                return moved;
            }
        }
    }
    fd.cast_signed()
}

/// Asks the tool. `A` is what the question asks for; false without an answer.
pub(crate) fn ask<A>(question: &Question, answer: &mut A) -> bool {
    const UNIX: u64 = 1;
    const SEQPACKET_CLOSED_BY_EXEC: u64 = 5 | 0o2_000_000;
    let mut address = [0_u8; 110];
    address[0] = UNIX as u8;
    let name = Path::in_folder();
    address[2..].copy_from_slice(&name.bytes[..108]);
    address[2 + name.len..][..1].copy_from_slice(b"0");
    let size = size_of::<A>() as u64;
    let place = core::ptr::from_mut(answer).expose_provenance() as u64;
    // SAFETY: the kernel reads and writes what is ours, and any bytes are an answer.
    let got = unsafe {
        let fd =
            sys::call(sys::SOCKET, [UNIX, SEQPACKET_CLOSED_BY_EXEC, 0, 0, 0, 0]).cast_unsigned();
        let mut got = sys::call(sys::CONNECT, [fd, address.as_ptr() as u64, 110, 0, 0, 0]);
        if got == 0 {
            let asked = core::ptr::from_ref(question) as u64;
            let words = [fd, asked, size_of::<Question>() as u64, 0, 0, 0];
            sys::call(sys::WRITE, words);
            got = sys::call(sys::READ, [fd, place, size, 0, 0, 0]);
        }
        sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
        got
    };
    const REFUSED: i64 = -111;
    const IS_ABSENT: i64 = -2;
    if got == REFUSED || got == IS_ABSENT {
        // The tool is gone: nobody reads what is written.
        events::end();
    }
    got == size.cast_signed()
}

/// A path below the folder.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    bytes: [u8; 192],
    len: usize,
}

impl Path {
    /// The folder with a slash.
    pub(crate) fn in_folder() -> Path {
        let mut path = Path {
            bytes: [0; 192],
            len: 0,
        };
        for (at, word) in FOLDER.iter().enumerate() {
            path.bytes[at * 8..at * 8 + 8].copy_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        path.len = path.bytes.iter().position(|&byte| byte == 0).unwrap_or(0);
        path.text(b"/");
        path
    }

    /// Adds text; what has no room is left out.
    pub(crate) fn text(&mut self, text: &[u8]) {
        for &byte in text {
            if self.len + 1 < self.bytes.len() {
                self.bytes[self.len] = byte;
                self.len += 1;
                self.bytes[self.len] = 0;
            }
        }
    }

    /// Adds a decimal number.
    pub(crate) fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[at..]);
    }

    /// Its bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// For the kernel.
    pub(crate) fn pointer(&self) -> u64 {
        self.bytes.as_ptr() as u64
    }
}

/// Appends `/proc/self/maps` to the file `maps`, by which the tool knows modules, behind a line
/// that says of whom it is. One file costs less than one of each process.
pub(crate) fn copy_maps(mut of: Path) {
    const CREATE_TO_APPEND: u64 = 0o100 | 0o2000 | 1;
    of.text(b"\n");
    let mut path = Path::in_folder();
    path.text(b"maps");
    // SAFETY: by the lock invariant nobody else is here, or the process has one thread. The text is
    // used in this function only.
    let text = unsafe { maps() };
    let parts = [of.as_bytes(), text].map(|part| [part.as_ptr() as u64, part.len() as u64]);
    const MOST: u64 = 1 << 40;
    // SAFETY: the path ends with 0, and both parts are readable.
    sys::with_files_of(MOST, || unsafe {
        let words = [path.pointer(), CREATE_TO_APPEND, 0o600, 0, 0, 0];
        let fd = sys::call(sys::OPEN, words);
        if !sys::failed(fd) {
            let fd = fd.cast_unsigned();
            // In one call, so that no other process writes between them.
            sys::call(sys::WRITEV, [fd, (&raw const parts) as u64, 2, 0, 0, 0]);
            sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
        }
        fd
    });
}

/// Says that a function of `--from` or `--to` begins with what cannot be moved.
pub(crate) fn say_removed() {
    sys::say(b"a function of --from or --to begins with a branch: it is seen once only");
}
