//! Patches (`--patch`): an instruction that faults often becomes a jump to a [body](Body),
//! which records its accesses without a fault. Under the tracer's [lock](super::lock::LOCK).
//!
//! A jump has five bytes, and instructions may have two. Only bytes of the instruction itself are
//! changed, so no other instruction is, wherever threads stand and branches lead: where it is
//! shorter, the bytes behind it become the upper part of the jump's distance as they are, and the
//! body is put where that leads (Chamith et al., "Instruction Punning", PLDI 2017). Prefixes before
//! the jump give other distances to choose from (Duck et al., "Binary Rewriting without Control
//! Flow Recovery", PLDI 2020).
//!
//! ```text
//!     48 89 10        mov [rax], rdx          e9 .. ..        jmp body
//!     48 83 c0 08     add rax, 8              48 83 c0 08     is 0x8348.... away
//! ```
//!
//! A patch whose distance lies in bytes that are to change is taken back first, and made anew.
//! Bodies stay for ever: a thread may be in one.

use core::mem::offset_of;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::context::{Context, Info};
use super::sys::{self, PAGE};
use super::wire::{BODY, BODY_DELTA, BODY_STACK, Body, FOR_PATCH, Header, LONGEST, Question};
use super::{arena, events, numbers, questions, recorder};

/// An instruction that is, or was, patched.
#[repr(C)]
#[derive(Clone, Copy)]
struct Patch {
    ip: u64,
    /// What its body is copied from.
    template: u64,
    /// Where in the body the instruction is.
    run: u64,
    /// Bytes of the instruction.
    len: u8,
    /// Bytes of the body.
    body_len: u8,
    /// [`Body::scratch`].
    scratch: u8,
    /// Bytes of its jump, also of those behind it, or 0: it is as it was.
    jump: u8,
    /// It is taken back for a moment only.
    again: bool,
    /// What it was, and what follows.
    old: [u8; 16],
    /// The jump.
    new: [u8; 8],
}

/// Most patches.
const MOST: usize = 1 << 15;
/// Most places of bodies, each a mapping: processes have 2^16 of them.
const MOST_PLACES: usize = 1 << 13;
/// Faults of an instruction before it is patched; it is tried again after twice as many.
const LEAST_FAULTS: u64 = 8;
/// Prefixes that a jump ignores. `e9` is the jump.
const PREFIX: u8 = 0x26;
const JUMP: u8 = 0xe9;
const JUMP_LEN: u64 = 5;
const MOST_PREFIXES: u64 = 3;
const LONGEST_JUMP: u64 = MOST_PREFIXES + JUMP_LEN;
/// From here on addresses are a program's.
const LOWEST: u64 = 1 << 20;
/// Memory for bodies that can be in many places.
const AREA: u64 = 1 << 18;

/// In order of addresses. 0: nothing is patched.
static PATCHES: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Up to here bodies may be: above that the stack of the first thread grows.
static HIGHEST: AtomicU64 = AtomicU64::new(0);
/// Code that the program changes itself: from where on, up to where.
static CHANGED: [AtomicU64; 2] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
/// Bodies to copy.
static TEMPLATES: AtomicU64 = AtomicU64::new(0);
/// By `run`: open addressing over twice as many slots.
static RUNS: AtomicU64 = AtomicU64::new(0);
static RUNS_COUNT: AtomicU64 = AtomicU64::new(0);
/// Memory for bodies: up to where it is used, its end, and its start.
static PLACES: [[AtomicU64; 3]; MOST_PLACES] =
    [const { [const { AtomicU64::new(0) }; 3] }; MOST_PLACES];

/// Before all else; false if the machine does not allow it.
pub(crate) fn init() -> bool {
    const REGISTER: u64 = 64;
    // SAFETY: has no requirements.
    if sys::failed(unsafe { sys::call(sys::MEMBARRIER, [REGISTER, 0, 0, 0, 0, 0]) })
        || !recorder::init()
    {
        return false;
    }
    HIGHEST.store(below_stack(), Relaxed);
    PATCHES.store(sys::memory((MOST * size_of::<Patch>()) as u64), Relaxed);
    TEMPLATES.store(sys::memory((MOST * BODY) as u64), Relaxed);
    RUNS.store(sys::memory(MOST as u64 * 2 * 16), Relaxed);
    true
}

/// The lowest place that the stack of the first thread, which is the calling one, may grow to.
fn below_stack() -> u64 {
    const STACK: u64 = 3;
    const MOST_ROOM: u64 = 1 << 30;
    // What the kernel keeps free below a stack, and more.
    const GAP: u64 = 4 << 20;
    let mut limits = [0_u64; 2];
    let place = (&raw mut limits) as u64;
    // SAFETY: the kernel writes two words.
    unsafe { sys::call(numbers::GETRLIMIT, [STACK, place, 0, 0, 0, 0]) };
    place - limits[0].min(MOST_ROOM) - GAP
}

fn count() -> usize {
    COUNT.load(Relaxed) as usize
}

fn slot(at: usize) -> *mut Patch {
    let first = core::ptr::with_exposed_provenance_mut::<Patch>(PATCHES.load(Relaxed) as usize);
    first.wrapping_add(at)
}

fn get(at: usize) -> Option<Patch> {
    // SAFETY: the table's first `COUNT` entries are whole, and only who holds the lock is here.
    (at < count()).then(|| unsafe { slot(at).read() })
}

fn set(at: usize, patch: Patch) {
    assert!(at < count());
    // SAFETY: within the table, which only who holds the lock accesses.
    unsafe { slot(at).write(patch) };
}

/// Index of the first patch at `ip` or behind it.
fn search(ip: u64) -> usize {
    let (mut low, mut high) = (0, count());
    while low < high {
        let middle = low.midpoint(high);
        match get(middle) {
            Some(patch) if patch.ip < ip => low = middle + 1,
            _ => high = middle,
        }
    }
    low
}

/// The patch of an instruction, in use or not, and its index.
fn find(ip: u64) -> Option<(usize, Patch)> {
    let at = search(ip);
    let patch = get(at).filter(|patch| patch.ip == ip)?;
    Some((at, patch))
}

/// What code is patched at `ip`. If other code is there by now, the patch is forgotten.
fn patched(ip: u64) -> Option<(usize, Patch)> {
    let (at, patch) = find(ip).filter(|it| it.1.jump != 0)?;
    let mut there = [0_u8; 8];
    let len = patch.written();
    // SAFETY: the place may be gone, which `try_copy` finds out.
    let is_there = unsafe { sys::try_copy(there.as_mut_ptr() as u64, ip, len as u64) };
    if !is_there || there[..len] != patch.new[..len] {
        set(at, Patch { jump: 0, ..patch });
        return None;
    }
    Some((at, patch))
}

/// Whether the instruction is a jump to its body now.
pub(crate) fn is_patched(ip: u64) -> bool {
    patched(ip).is_some()
}

/// Puts the program's own bytes into what was read at `ip`, the start of an instruction.
pub(crate) fn original(ip: u64, bytes: &mut [u8; 16]) {
    if let Some((_, patch)) = patched(ip) {
        bytes[..usize::from(patch.len)].copy_from_slice(&patch.old[..usize::from(patch.len)]);
    }
}

impl Patch {
    /// Whether these bytes begin with the instruction.
    fn is_of(&self, bytes: &[u8]) -> bool {
        let len = usize::from(self.len);
        self.old[..len] == bytes[..len]
    }

    /// Bytes of the instruction that its jump has changed.
    fn written(&self) -> usize {
        usize::from(self.jump.min(self.len))
    }
}

/// Whether an instruction that has faulted so often should be patched.
pub(crate) fn is_due(ip: u64, faults: u64) -> bool {
    let is_time = faults >= LEAST_FAULTS && faults.is_power_of_two();
    let [start, end] = [0, 1].map(|it| CHANGED[it].load(Relaxed));
    let is_left_out = sys::is_own(ip) || (start..end).contains(&ip);
    PATCHES.load(Relaxed) != 0 && is_time && !is_left_out && !is_patched(ip)
}

/// Patches an instruction in which there is no breakpoint, if that can be.
pub(crate) fn consider(ip: u64, bytes: &[u8; 16], len: u64) {
    match find(ip) {
        Some((_, patch)) if !patch.is_of(bytes) => return,
        Some(_) => {}
        None => match ask(ip, bytes, len) {
            Some(patch) => insert(patch),
            None => return,
        },
    }
    change(ip, || {
        if put(ip) {
            events::count(offset_of!(Header, patched), 1);
        }
    });
}

/// Has `how` change a byte of code, or look at an instruction that begins there, as the program has
/// it.
pub(crate) fn without(address: u64, how: impl FnOnce()) {
    let covering = { search(address + 1).checked_sub(1).and_then(get) }
        .filter(|patch| patch.ip + patch.written() as u64 > address)
        .map(|patch| patch.ip);
    change(covering.unwrap_or(address), || {
        covering.into_iter().for_each(take_back);
        how();
    });
}

/// The program may change code from now on: it has to find its own, and nothing is patched there.
pub(crate) fn give_back(start: u64, end: u64) {
    let first = start.saturating_sub(LONGEST_JUMP);
    let all = search(first)..search(end);
    if !all.is_empty() {
        CHANGED[0].fetch_min(first, Relaxed);
        CHANGED[1].fetch_max(end, Relaxed);
    }
    // In order: what a jump reaches over is taken back after it.
    all.filter_map(get).for_each(|patch| take_back(patch.ip));
}

/// Has `how` change the instruction at `ip`. Patches whose jump's distance has bytes of it are
/// taken back before, and made anew.
fn change(ip: u64, how: impl FnOnce()) {
    let end = search(ip);
    let (mut first, mut lowest) = (end, ip);
    for at in (0..end).rev() {
        let Some(patch) = get(at).filter(|patch| patch.ip + LONGEST_JUMP > lowest) else {
            break;
        };
        if patch.ip + u64::from(patch.jump) > lowest {
            (first, lowest) = (at, patch.ip);
        }
    }
    // From the lowest on: as long as one is there, what it reaches over is as it was.
    for at in first..end {
        if let Some(patch) = get(at).filter(|patch| patch.jump != 0) {
            take_back(patch.ip);
            set(
                at,
                Patch {
                    jump: 0,
                    again: true,
                    ..patch
                },
            );
        }
    }
    how();
    for at in (first..end).rev() {
        if let Some(patch) = get(at).filter(|patch| patch.again) {
            set(
                at,
                Patch {
                    again: false,
                    ..patch
                },
            );
            put(patch.ip);
        }
    }
}

/// Has the tool make a body.
fn ask(ip: u64, bytes: &[u8; 16], len: u64) -> Option<Patch> {
    if count() == MOST {
        return None;
    }
    let question = Question {
        asks: FOR_PATCH,
        ip,
        thunk: 0,
        delta: 0,
        len,
        bytes: *bytes,
    };
    // SAFETY: all zeros are an answer.
    let mut body: Body = unsafe { core::mem::zeroed() };
    let parts = [body.run, body.recorder];
    if !questions::ask(&question, &mut body)
        || body.len == 0
        || usize::from(body.len) > BODY
        || parts.iter().any(|&part| part >= body.len)
    {
        return None;
    }
    let [run, recorder] = [body.run, body.recorder].map(usize::from);
    body.code[recorder..recorder + 8].copy_from_slice(&recorder::address().to_le_bytes());
    let template = TEMPLATES.load(Relaxed) + COUNT.load(Relaxed) * BODY as u64;
    // SAFETY: the table has room for a template of each patch.
    unsafe { sys::copy(template, body.code.as_ptr() as u64, body.len.into()) };
    let mut own_len = 0;
    // The next instruction's address stands before that of the recorder.
    if recorder >= 8 {
        let next = u64::from_le_bytes(body.code[recorder - 8..recorder].try_into().ok()?);
        own_len = next.wrapping_sub(ip);
    }
    (1..=LONGEST as u64).contains(&own_len).then_some(Patch {
        ip,
        template,
        run: run as u64,
        len: own_len as u8,
        body_len: body.len,
        scratch: body.scratch,
        jump: 0,
        again: false,
        old: *bytes,
        new: [0; 8],
    })
}

fn insert(patch: Patch) {
    let at = search(patch.ip);
    let behind = count() - at;
    COUNT.fetch_add(1, Relaxed);
    // SAFETY: `ask` has seen that there is room, and only who holds the lock is here.
    unsafe { core::ptr::copy(slot(at), slot(at + 1), behind) };
    set(at, patch);
}

/// Makes an instruction a jump to its body, at a place that the bytes behind it allow; false if
/// there is none.
fn put(ip: u64) -> bool {
    let Some((at, mut patch)) = find(ip) else {
        return false;
    };
    let len = u64::from(patch.len);
    let mut there = [0_u8; 24];
    // SAFETY: the code may end behind the instruction, which `try_copy` finds out.
    let is_there = unsafe { sys::try_copy(there.as_mut_ptr() as u64, ip, len + JUMP_LEN) };
    if !is_there || !patch.is_of(&there) {
        return false;
    }
    for prefixes in 0..len.min(MOST_PREFIXES + 1) {
        // Of the distance's four bytes, those within the instruction can be chosen.
        let free = (len - prefixes - 1).min(4);
        let next = ip + prefixes + JUMP_LEN;
        let distance = (prefixes + 1) as usize;
        let mut bytes: [u8; 4] = match there[distance..distance + 4].try_into() {
            Ok(bytes) => bytes,
            Err(_) => return false,
        };
        bytes[..free as usize].fill(0);
        let first = next.wrapping_add_signed(i32::from_le_bytes(bytes).into());
        let (lowest, span) = match free {
            // What is a sign of the distance otherwise.
            4 => (next.saturating_sub(1 << 30), 1 << 31),
            _ => (first, 1 << (8 * free)),
        };
        let Some(place) = place_of_body(lowest, lowest.saturating_add(span), patch.body_len.into())
        else {
            continue;
        };
        let mut new = [0; 8];
        new[..prefixes as usize].fill(PREFIX);
        new[prefixes as usize] = JUMP;
        let to = place.wrapping_sub(next) as u32;
        let free = free as usize;
        new[distance..distance + free].copy_from_slice(&to.to_le_bytes()[..free]);
        // SAFETY: the place was just found, and nobody runs it.
        unsafe { sys::copy(place, patch.template, patch.body_len.into()) };
        if !note_run(place + patch.run, ip) {
            return false;
        }
        patch.jump = (prefixes + JUMP_LEN) as u8;
        patch.new = new;
        set(at, patch);
        let written = patch.written();
        poke(ip, &new[..written]);
        return true;
    }
    false
}

/// Makes a patched instruction what it was.
fn take_back(ip: u64) {
    if let Some((at, patch)) = patched(ip) {
        set(at, Patch { jump: 0, ..patch });
        poke(ip, &patch.old[..patch.written()]);
    }
}

/// Changes code that other threads may run: who comes by meanwhile traps, and waits for the lock.
fn poke(at: u64, bytes: &[u8]) {
    const BREAK: [u8; 1] = [0xcc];
    for (at, part) in [(at, &BREAK[..]), (at + 1, &bytes[1..]), (at, &bytes[..1])] {
        write_code(at, part);
        // All threads see it before the next step.
        const SYNC_CORE: u64 = 32;
        // SAFETY: has no requirements.
        unsafe { sys::call(sys::MEMBARRIER, [SYNC_CORE, 0, 0, 0, 0, 0]) };
    }
}

/// Writes bytes of code.
pub(crate) fn write_code(at: u64, bytes: &[u8]) {
    const READ_AND_WRITE: u64 = 2;
    let len = bytes.len() as u64;
    let name = c"/proc/self/mem".as_ptr() as u64;
    // SAFETY: the tool has seen the file of this code, which is mapped to be read and executed.
    unsafe {
        // Where that is allowed, the mapping stays one.
        let fd = sys::call(sys::OPEN, [name, READ_AND_WRITE, 0, 0, 0, 0]).cast_unsigned();
        let written = sys::call(sys::PWRITE, [fd, bytes.as_ptr() as u64, len, at, 0, 0]);
        sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
        if written.cast_unsigned() == len {
            return;
        }
        let start = at & !(PAGE - 1);
        let pages = (at + len).next_multiple_of(PAGE) - start;
        let code = sys::PROT_READ | sys::PROT_EXEC;
        if sys::failed(sys::protect(start, pages, code | sys::PROT_WRITE)) {
            sys::die(b"code cannot be patched");
        }
        sys::copy(at, bytes.as_ptr() as u64, len);
        sys::protect(start, pages, code);
    }
}

/// Handles a trap: a thread ran into code that was being changed.
pub(crate) fn trapped(context: &mut Context) -> bool {
    let ip = context.rip.wrapping_sub(1);
    let is_ours = find(ip).is_some() && {
        let mut byte = [0xcc_u8];
        // SAFETY: the place may be gone, which `try_copy` finds out.
        unsafe { sys::try_copy(byte.as_mut_ptr() as u64, ip, 1) && byte[0] != 0xcc }
    };
    if is_ours {
        context.rip = ip;
    }
    is_ours
}

/// A body's instruction has faulted: the thread is put back to before it. The answer says how far
/// away the operand was accessed; `None`: it is not in a body.
pub(crate) fn leave(info: &mut Info, context: &mut Context) -> Option<i64> {
    const OF_A_PAGE: [i32; 2] = [1, 2];
    let ip = ip_of(context.rip)?;
    let (_, patch) = find(ip)?;
    let mut own = 0_u64;
    let mut delta = 0_u64;
    let at = context.rsp.wrapping_add_signed(BODY_DELTA);
    // SAFETY: a body has written both words.
    unsafe {
        if !sys::try_copy((&raw mut own) as u64, context.rsp, 8)
            || !sys::try_copy((&raw mut delta) as u64, at, 8)
        {
            return None;
        }
    }
    *context.register(patch.scratch)? = own;
    context.rsp += BODY_STACK;
    context.rip = ip;
    if OF_A_PAGE.contains(&info.code) {
        info.address = info.address.wrapping_sub(delta);
    }
    Some(delta.cast_signed())
}

/// Whether a thread that is there is in a body, or in what that calls.
pub(crate) fn is_in_body(ip: u64) -> bool {
    let in_use = PLACES.iter().take_while(|it| it[0].load(Relaxed) != 0);
    COUNT.load(Relaxed) != 0
        && (recorder::contains(ip) || { in_use }
            .any(|it| (it[2].load(Relaxed)..it[0].load(Relaxed)).contains(&ip)))
}

fn run_slot(turn: u64) -> u64 {
    RUNS.load(Relaxed) + turn % (2 * MOST as u64) * 16
}

fn first_turn(run: u64) -> u64 {
    run.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

/// Notes where the instruction is in a body; false once half of the table is used.
fn note_run(run: u64, ip: u64) -> bool {
    if RUNS_COUNT.fetch_add(1, Relaxed) >= MOST as u64 {
        return false;
    }
    for turn in 0..2 * MOST as u64 {
        let slot = run_slot(first_turn(run) + turn);
        // SAFETY: within the table, which starts as zeros.
        unsafe {
            if [0, run].contains(&sys::word(slot)) {
                sys::set_word(slot, run);
                sys::set_word(slot + 8, ip);
                return true;
            }
        }
    }
    false
}

fn ip_of(run: u64) -> Option<u64> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    for turn in 0..2 * MOST as u64 {
        let slot = run_slot(first_turn(run) + turn);
        // SAFETY: within the table.
        let (key, ip) = unsafe { (sys::word(slot), sys::word(slot + 8)) };
        if key == run {
            return Some(ip);
        }
        if key == 0 {
            return None;
        }
    }
    None
}

/// A place for a body that begins in a range.
fn place_of_body(lowest: u64, end: u64, len: u64) -> Option<u64> {
    let (lowest, end) = (lowest.max(LOWEST), end.min(HIGHEST.load(Relaxed)));
    let mut free = None;
    for place in &PLACES {
        let [used, last] = [0, 1].map(|it| place[it].load(Relaxed));
        if used == 0 {
            free = Some(place);
            break;
        }
        let at = used.max(lowest);
        if at < end && at + len <= last {
            place[0].store(at + len, Relaxed);
            return Some(at);
        }
    }
    let free = free?;
    if lowest >= end {
        return None;
    }
    const TRIES: u64 = 64;
    let step = ((end - lowest) / TRIES).max(PAGE);
    (0..TRIES)
        .map(|turn| lowest + turn * step)
        .take_while(|&at| at < end)
        .find_map(|at| {
            let start = at & !(PAGE - 1);
            let size = match end - lowest >= 1 << 24 {
                true => AREA,
                false => (at + len).next_multiple_of(PAGE) - start,
            };
            map_code(start, size).then(|| {
                free[2].store(start, Relaxed);
                free[0].store(at + len, Relaxed);
                free[1].store(start + size, Relaxed);
                at
            })
        })
}

/// Maps memory for code where nothing of the program is; false if something is there.
fn map_code(start: u64, len: u64) -> bool {
    let all = sys::PROT_READ | sys::PROT_WRITE | sys::PROT_EXEC;
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS;
    // SAFETY: it is put where nothing is, or into the arena, which is ours, where nothing is.
    unsafe {
        let place = sys::map(start, len, all, flags | sys::MAP_FIXED_NOREPLACE, -1, 0);
        if place.cast_unsigned() == start {
            return true;
        }
        if !sys::failed(place) {
            sys::call(sys::MUNMAP, [place.cast_unsigned(), len, 0, 0, 0, 0]);
        }
        let is_free = arena::take(start, start + len);
        if is_free {
            sys::map(start, len, all, flags | sys::MAP_FIXED, -1, 0);
        }
        is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov rax, 1; ret`.
    const ONE: [u8; 8] = [0x48, 0xc7, 0xc0, 1, 0, 0, 0, 0xc3];
    /// `mov eax, 2; ret`.
    const TWO: [u8; 6] = [0xb8, 2, 0, 0, 0, 0xc3];

    fn run(code: u64) -> u64 {
        let function = core::ptr::with_exposed_provenance::<()>(code as usize);
        #[expect(clippy::disallowed_methods, reason = "it was written as bytes")]
        // SAFETY: a function of this type was put there.
        unsafe {
            core::mem::transmute::<*const (), extern "C" fn() -> u64>(function)()
        }
    }

    #[test]
    fn a_patched_instruction_runs_its_body_until_the_patch_is_taken_back() {
        let _turn = crate::tracer::tests::turn();
        assert!(init());
        let code = sys::memory(PAGE);
        // Bodies are to be below the stack of the first thread.
        HIGHEST.store(code + (1 << 32), Relaxed);
        // SAFETY: the pages were just mapped for this test.
        unsafe {
            sys::copy(code, ONE.as_ptr() as u64, ONE.len() as u64);
            sys::protect(code, PAGE, sys::PROT_READ | sys::PROT_EXEC);
        }
        let body = sys::memory(PAGE);
        // SAFETY: the page was just mapped for this test, and has room for the few bytes.
        unsafe { sys::copy(body, TWO.as_ptr() as u64, TWO.len() as u64) };
        assert_eq!(run(code), 1);

        let mut old = [0; 16];
        old[..8].copy_from_slice(&ONE);
        insert(Patch {
            ip: code,
            template: body,
            run: 0,
            len: 7,
            body_len: 6,
            scratch: 0,
            jump: 0,
            again: false,
            old,
            new: [0; 8],
        });
        assert!(put(code) && is_patched(code));
        assert_eq!(run(code), 2);
        let (_, patch) = find(code).expect("it was put there");
        assert_eq!(patch.new[0], JUMP);
        let mut there = [0x11; 16];
        original(code, &mut there);
        assert_eq!(there[..7], ONE[..7]);
        let to = place_of(&patch);
        assert!(is_in_body(to) && ip_of(to) == Some(code));

        // Who looks at its code finds it as it was, for that moment.
        without(code + 2, || assert_eq!(run(code), 1));
        give_back(code, code + PAGE);
        assert!(!is_patched(code));
        assert_eq!(run(code), 1);
    }

    /// Where the jump leads.
    fn place_of(patch: &Patch) -> u64 {
        let distance = i32::from_le_bytes([patch.new[1], patch.new[2], patch.new[3], patch.new[4]]);
        (patch.ip + JUMP_LEN).wrapping_add_signed(distance.into())
    }
}
