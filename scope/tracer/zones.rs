//! Zones: memory of the program that is mapped twice from one file in memory. Where the program
//! knows it, it may not be accessed while tracing is on; `delta` above that, it may.
//!
//! All of it is under the tracer's [lock](crate::LOCK).

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::sys::{self, PAGE};
use crate::table::{self, MOST, SPARE, all, count, get, insert, part, remove, search, set};
use crate::wire::Header;
use crate::{arena, events, recorder, threads};

pub(crate) use crate::table::{Zone, find};

/// Size of the file: it has no content where nobody wrote.
const FILE: u64 = 1 << 44;
/// Of `--every`: bytes that are traced or left out together.
const UNIT: u64 = 1 << 16;

static FD: AtomicU64 = AtomicU64::new(0);
static FILE_USED: AtomicU64 = AtomicU64::new(0);
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);
/// Whether zones may not be accessed.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// One unit of so many is traced.
pub(crate) static EVERY: AtomicU64 = AtomicU64::new(1);
/// A file in memory; `None` if there is no descriptor or no memory for it.
fn new_file() -> Option<u64> {
    const CLOSED_BY_EXEC: u64 = 1;
    // SAFETY: the name ends with 0. A number above those that programs choose is taken.
    unsafe {
        let fd = sys::call(
            sys::MEMFD_CREATE,
            [c"ccscope".as_ptr() as u64, CLOSED_BY_EXEC, 0, 0, 0, 0],
        );
        let fd = if sys::failed(fd) {
            fd
        } else {
            crate::start::high(fd.cast_unsigned())
        };
        if sys::failed(fd)
            || sys::failed(sys::call(
                sys::FTRUNCATE,
                [fd.cast_unsigned(), FILE, 0, 0, 0, 0],
            ))
        {
            return None;
        }
        Some(fd.cast_unsigned())
    }
}

/// The descriptor of the file.
pub(crate) fn file() -> u64 {
    FD.load(Relaxed)
}

/// The program wants the descriptor's number for itself: ours gets another.
pub(crate) fn move_file() {
    let moved = crate::start::high(FD.load(Relaxed));
    FD.store(moved.cast_unsigned(), Relaxed);
}

/// Before all else.
pub(crate) fn init() {
    table::init();
    let Some(file) = new_file() else {
        sys::die(b"no file in memory can be made");
    };
    FD.store(file, Relaxed);
}

/// Where `address` may be accessed: in the alias if it is in a zone.
pub(crate) fn usable(address: u64) -> u64 {
    find(address).map_or(address, |zone| address.wrapping_add_signed(zone.delta))
}

/// Whether a zone has part of the range.
pub(crate) fn touches(start: u64, end: u64) -> bool {
    match search(start) {
        Ok(_) => start < end,
        Err(at) => get(at).is_some_and(|zone| zone.start < end),
    }
}

/// Whether the kernel can be given the range as one: all of it is as far from where it may be
/// accessed.
pub(crate) fn is_one_piece(start: u64, len: u64) -> bool {
    let end = start.saturating_add(len);
    let delta = |at: u64| find(at).map_or(0, |zone| zone.delta);
    let first = delta(start);
    let mut at = start;
    while at < end {
        match find(at) {
            Some(zone) if zone.delta == first => at = zone.end,
            None if first == 0 => return !touches(at, end),
            _ => return false,
        }
    }
    true
}

/// Whether the program may store to all zones of a range.
pub(crate) fn may_store(start: u64, len: u64) -> bool {
    let (Ok(first) | Err(first)) = search(start);
    (first..)
        .map_while(get)
        .take_while(|zone| zone.start < start.saturating_add(len))
        .all(|zone| zone.protection & sys::PROT_WRITE != 0)
}

/// Copies a range of the program to or from memory of our own; false if not all of it can be
/// accessed.
pub(crate) fn copy(to: u64, from: u64, len: u64) -> bool {
    let mut at = 0;
    while at < len {
        let left = |start: u64| PAGE - start.wrapping_add(at) % PAGE;
        let part = left(to).min(left(from)).min(len - at);
        let [to, from] = [to, from].map(|start| usable(start.wrapping_add(at)));
        // SAFETY: the program asked the kernel for the same.
        if !unsafe { sys::try_copy(to, from, part) } {
            return false;
        }
        at += part;
    }
    true
}

/// Whether tracing is on.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Relaxed)
}

/// Whether a new zone has room in the table; else it is left out.
fn has_room() -> bool {
    let has = count() + SPARE < MOST;
    if !has {
        events::count(offset_of!(Header, left_out), 1);
    }
    has
}

/// Before zones are split at both ends of a range: if the table is full, those that would be are
/// released as a whole.
pub(crate) fn make_room(start: u64, end: u64) {
    for border in [start, end] {
        if count() + SPARE > MOST
            && let Some(zone) = find(border).filter(|zone| zone.start < border)
        {
            release(zone.start, zone.end);
            events::count(offset_of!(Header, left_out), 1);
        }
    }
}

/// Makes `address` the border of a zone if it lies within one.
fn split(address: u64) {
    if let Ok(at) = search(address)
        && let Some(zone) = get(at)
        && zone.start < address
    {
        set(at, part(&zone, zone.start, address));
        insert(at + 1, part(&zone, address, zone.end));
    }
}

/// Calls `each` with the zones within the range, which are split at its ends.
fn within(start: u64, end: u64, mut each: impl FnMut(&mut Zone)) {
    split(start);
    split(end);
    let (Ok(first) | Err(first)) = search(start);
    for at in first.. {
        let Some(mut zone) = get(at).filter(|zone| zone.start < end) else {
            break;
        };
        each(&mut zone);
        set(at, zone);
    }
}

/// Sees to it that a zone can be accessed as it should.
fn apply(zone: &Zone) {
    let len = zone.end - zone.start;
    let own = if is_closed() {
        sys::PROT_NONE
    } else {
        zone.protection
    };
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // SAFETY: both ranges are the zone's.
    unsafe {
        sys::protect(zone.start, len, own);
        sys::protect(alias, len, zone.protection);
    }
    mark(zone);
}

/// Tells patched instructions where the zone's memory may be accessed. What the program may not
/// both load and store is left to faults.
fn mark(zone: &Zone) {
    let both = sys::PROT_READ | sys::PROT_WRITE;
    let delta = if is_closed() && zone.protection == both {
        zone.delta
    } else {
        0
    };
    recorder::mark(zone.start, zone.end, delta);
}

/// Stops or allows accesses.
pub(crate) fn set_closed(is_closed: bool) {
    if IS_CLOSED.swap(is_closed, Relaxed) != is_closed {
        all().for_each(|zone| apply(&zone));
    }
}

/// Maps part of the file at both places of a zone, of which nobody has anything that is needed.
fn map_both(zone: &Zone) -> bool {
    let (len, fd) = (zone.end - zone.start, FD.load(Relaxed).cast_signed());
    let flags = sys::MAP_SHARED | sys::MAP_NORESERVE | sys::MAP_FIXED;
    let own = if is_closed() {
        sys::PROT_NONE
    } else {
        zone.protection
    };
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // SAFETY: the caller's, who reserved both places.
    let is_whole = unsafe {
        !sys::failed(sys::map(alias, len, zone.protection, flags, fd, zone.file))
            && !sys::failed(sys::map(zone.start, len, own, flags, fd, zone.file))
    };
    if is_whole {
        mark(zone);
    }
    is_whole
}

/// A part of the file that was not used before.
fn file_range(len: u64) -> u64 {
    FILE_USED.fetch_add(len, Relaxed)
}

/// Whether `--every` leaves out the unit at `address`.
fn is_left_out(address: u64) -> bool {
    let every = EVERY.load(Relaxed);
    // A hash, so that what a program lays out in steps is not all in or all out.
    let hash = (address / UNIT).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    !hash.is_multiple_of(every)
}

/// The parts of a range that are traced.
fn chosen(start: u64, end: u64, mut each: impl FnMut(u64, u64)) {
    let mut at = start;
    while at < end {
        let out = is_left_out(at);
        let mut to = at;
        while to < end && is_left_out(to) == out {
            to = (to / UNIT + 1) * UNIT;
        }
        let to = to.min(end);
        if !out {
            each(at, to);
        }
        at = to;
    }
}

fn add(zone: Zone) {
    let (Ok(at) | Err(at)) = search(zone.start);
    if let Some(at) = at.checked_sub(1)
        && let Some(mut before) = get(at)
    {
        let follows = before.end == zone.start
            && before.delta == zone.delta
            && before.protection == zone.protection
            && before.file + (before.end - before.start) == zone.file;
        if follows {
            before.end = zone.end;
            set(at, before);
            return;
        }
    }
    insert(at, zone);
}

/// Takes over memory that the program has: its content moves into the file. Other threads that
/// store meanwhile fault, and wait for the lock.
pub(crate) fn take_over(start: u64, end: u64, protection: u64, delta: i64) {
    chosen(start, end, |start, end| {
        if !has_room() {
            return;
        }
        let zone = Zone {
            start,
            end,
            delta,
            file: file_range(end - start),
            protection,
        };
        let (len, alias) = (end - start, start.wrapping_add_signed(delta));
        let flags = sys::MAP_SHARED | sys::MAP_NORESERVE | sys::MAP_FIXED;
        let both = sys::PROT_READ | sys::PROT_WRITE;
        // SAFETY: the alias is reserved; the content is the program's, who may read and write it.
        unsafe {
            let fd = FD.load(Relaxed).cast_signed();
            if sys::failed(sys::map(alias, len, both, flags, fd, zone.file)) {
                return;
            }
            sys::protect(start, len, sys::PROT_READ);
            copy_pages(alias, start, len);
        }
        if map_both(&zone) {
            add(zone);
        } else {
            // SAFETY: the program's memory, as it was.
            unsafe { sys::protect(start, len, protection) };
        }
    });
}

/// Takes over data or bss of a module, unless there is no room for an alias.
pub(crate) fn take_data(start: u64, end: u64) {
    match reserve_alias(start, end - start) {
        Some(delta) => take_over(start, end, sys::PROT_READ | sys::PROT_WRITE, delta),
        None => {
            events::count(offset_of!(Header, left_out), 1);
        }
    }
}

/// Copies what is not zero, so that the rest takes no memory.
///
/// # Safety
///
/// As for [`sys::copy`]; both are whole pages, and the target's are zero.
unsafe fn copy_pages(to: u64, from: u64, len: u64) {
    for at in (0..len).step_by(PAGE as usize) {
        let page = core::ptr::with_exposed_provenance::<[u64; 512]>((from + at) as usize);
        // SAFETY: the caller's.
        unsafe {
            if (*page).iter().any(|&word| word != 0) {
                sys::copy(to + at, from + at, PAGE);
            }
        }
    }
}

/// Calls `each` with where a zone has content, from its start on, and how much. The rest is holes
/// of the file: who reads these has them take memory. Meanwhile the alias can be read.
fn each_written(zone: &Zone, mut each: impl FnMut(u64, u64)) {
    const SEEK_DATA: u64 = 3;
    const SEEK_HOLE: u64 = 4;
    let (len, fd) = (zone.end - zone.start, FD.load(Relaxed));
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // Memory that may be stored to can be read.
    let is_readable = zone.protection & (sys::PROT_READ | sys::PROT_WRITE) != 0;
    if !is_readable {
        // SAFETY: the alias is the zone's.
        unsafe { sys::protect(alias, len, sys::PROT_READ) };
    }
    // SAFETY: the file is ours, and nobody needs its offset.
    let seek = |at, what| unsafe { sys::call(sys::LSEEK, [fd, at, what, 0, 0, 0]) };
    let end = zone.file + len;
    let mut at = zone.file;
    while at < end {
        let from = seek(at, SEEK_DATA);
        if sys::failed(from) || from.cast_unsigned() >= end {
            break;
        }
        let from = from.cast_unsigned();
        at = seek(from, SEEK_HOLE).cast_unsigned().min(end);
        each(from - zone.file, at - from);
    }
    if !is_readable {
        // SAFETY: as above.
        unsafe { sys::protect(alias, len, zone.protection) };
    }
}

/// Copies a zone to memory of zeros.
///
/// # Safety
///
/// As many bytes are writable there, and of nobody else.
unsafe fn copy_zone(to: u64, zone: &Zone) {
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // SAFETY: the caller's; the alias is the same memory.
    each_written(zone, |at, len| unsafe {
        copy_pages(to + at, alias + at, len);
    });
}

/// New memory of zeros at a place of a reserved range and its alias.
pub(crate) fn fresh(start: u64, end: u64, protection: u64, delta: i64) -> bool {
    let mut is_whole = true;
    let plain = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
    // SAFETY: the range is reserved for this.
    is_whole &= !sys::failed(unsafe { sys::map(start, end - start, protection, plain, -1, 0) });
    chosen(start, end, |start, end| {
        if !has_room() {
            return;
        }
        let zone = Zone {
            start,
            end,
            delta,
            file: file_range(end - start),
            protection,
        };
        match map_both(&zone) {
            true => add(zone),
            false => is_whole = false,
        }
    });
    is_whole
}

/// New memory of zeros in place of what zones have; memory outside of zones stays. False if some of
/// it could not be had.
pub(crate) fn renew(start: u64, end: u64, protection: u64) -> bool {
    let mut is_whole = true;
    within(start, end, |zone| {
        let file = file_range(zone.end - zone.start);
        let new = Zone {
            file,
            protection,
            ..*zone
        };
        match map_both(&new) {
            true => {
                empty(zone.file, zone.end - zone.start);
                *zone = new;
            }
            false => is_whole = false,
        }
    });
    is_whole
}

/// More of a heap whose place is reserved.
pub(crate) fn grow(start: u64, end: u64, delta: i64) -> bool {
    fresh(start, end, sys::PROT_READ | sys::PROT_WRITE, delta)
}

/// What the program may do with a range from now on.
pub(crate) fn set_protection(start: u64, end: u64, protection: u64) {
    within(start, end, |zone| {
        zone.protection = protection;
        apply(zone);
    });
}

/// Forgets zones. Their place is reserved where `stays` says so, else it is unmapped.
pub(crate) fn free(start: u64, end: u64, stays: bool) {
    make_room(start, end);
    within(start, end, |zone| {
        empty(zone.file, zone.end - zone.start);
        let alias = zone.start.wrapping_add_signed(zone.delta);
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
        let is_reserved = stays || arena::is_in(zone.start);
        // SAFETY: the program gave the memory back.
        unsafe {
            if is_reserved {
                sys::map(alias, zone.end - zone.start, sys::PROT_NONE, flags, -1, 0);
            } else {
                sys::call(sys::MUNMAP, [alias, zone.end - zone.start, 0, 0, 0, 0]);
            }
            if is_reserved {
                sys::map(
                    zone.start,
                    zone.end - zone.start,
                    sys::PROT_NONE,
                    flags,
                    -1,
                    0,
                );
            } else {
                sys::call(sys::MUNMAP, [zone.start, zone.end - zone.start, 0, 0, 0, 0]);
            }
        }
    });
    forget(start, end);
}

/// How often zones were forgotten: a fault may come of one that is gone by now.
pub(crate) fn forgotten() -> u64 {
    FORGOTTEN.load(Relaxed)
}

fn forget(start: u64, end: u64) {
    FORGOTTEN.fetch_add(1, Relaxed);
    let (Ok(at) | Err(at)) = search(start);
    while let Some(zone) = get(at).filter(|zone| zone.start < end) {
        recorder::mark(zone.start, zone.end, 0);
        remove(at);
    }
}

/// A part of the file is zero again and takes no memory.
fn empty(file: u64, len: u64) {
    const KEEP_SIZE_AND_PUNCH_HOLE: u64 = 1 | 2;
    // SAFETY: the file is ours.
    unsafe {
        let fd = FD.load(Relaxed);
        sys::call(
            sys::FALLOCATE,
            [fd, KEEP_SIZE_AND_PUNCH_HOLE, file, len, 0, 0],
        );
    }
}

/// Content becomes zero, as with `madvise(MADV_DONTNEED)`.
pub(crate) fn clear(start: u64, end: u64) {
    within(start, end, |zone| empty(zone.file, zone.end - zone.start));
}

/// Makes plain memory of zones, with their content: stacks and code cannot be traced.
pub(crate) fn release(start: u64, end: u64) {
    make_room(start, end);
    within(start, end, |zone| {
        threads::wake(zone.start, zone.end, zone.delta, false);
        recorder::mark(zone.start, zone.end, 0);
        let (len, alias) = (
            zone.end - zone.start,
            zone.start.wrapping_add_signed(zone.delta),
        );
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
        let both = sys::PROT_READ | sys::PROT_WRITE;
        // SAFETY: the zone's memory. Nobody stores to it while it is copied to a place of its own:
        // who tries to faults, and waits for the lock. The copy is moved over it in one step.
        unsafe {
            sys::protect(zone.start, len, zone.protection & sys::PROT_READ);
            sys::protect(alias, len, sys::PROT_READ);
            let copy = sys::map(0, len, both, flags, -1, 0);
            if sys::failed(copy) {
                sys::die(b"no memory for a stack");
            }
            let copy = copy.cast_unsigned();
            copy_zone(copy, zone);
            sys::protect(copy, len, zone.protection);
            let moved = [copy, len, len, 3, zone.start, 0];
            sys::call(sys::MREMAP, moved);
            sys::map(alias, len, sys::PROT_NONE, flags | sys::MAP_FIXED, -1, 0);
        }
        threads::wake(zone.start, zone.end, zone.delta, true);
        empty(zone.file, len);
    });
    forget(start, end);
}

/// Opens the pages of an address for one instruction; false if no zone has it.
pub(crate) fn open_page(address: u64) -> bool {
    let page = address & !(PAGE - 1);
    find(address).is_some_and(|zone| {
        // SAFETY: the page is the zone's.
        if sys::failed(unsafe { sys::protect(page, PAGE, zone.protection) }) {
            // The process has too many mappings. The instruction would fault for ever.
            release(zone.start, zone.end);
        }
        true
    })
}

/// Closes it again.
pub(crate) fn close_page(page: u64) {
    if is_closed() && find(page).is_some() {
        // SAFETY: the page is a zone's.
        unsafe { sys::protect(page, PAGE, sys::PROT_NONE) };
    }
}

/// Before `fork`: a copy of the file for the child.
pub(crate) fn copy_file() -> Option<u64> {
    let fd = new_file()?;
    for zone in all() {
        let len = zone.end - zone.start;
        let both = sys::PROT_READ | sys::PROT_WRITE;
        // SAFETY: the zone's own place in the new file, mapped where nothing is.
        unsafe {
            let copy = sys::map(
                0,
                len,
                both,
                sys::MAP_SHARED | sys::MAP_NORESERVE,
                fd.cast_signed(),
                zone.file,
            );
            if sys::failed(copy) {
                sys::die(b"no memory for fork");
            }
            copy_zone(copy.cast_unsigned(), &zone);
            sys::call(sys::MUNMAP, [copy.cast_unsigned(), len, 0, 0, 0, 0]);
        }
    }
    Some(fd)
}

/// In the child of `fork`: uses the copy. The answer is the parent's file.
pub(crate) fn use_file(fd: u64) -> u64 {
    let old = FD.swap(fd, Relaxed);
    if !all().all(|zone| map_both(&zone)) {
        sys::die(b"no memory for fork");
    }
    old
}

/// Copies content from one range to another of zeros; parts of both may lie outside of zones.
pub(crate) fn copy_content(to: u64, from: u64, len: u64) {
    let mut at = from;
    while at < from + len {
        let zone = find(at);
        let end = zone.map_or(at + PAGE, |zone| zone.end).min(from + len);
        let place = to + (at - from);
        match zone {
            Some(zone) => each_written(&part(&zone, at, end), |offset, len| {
                for offset in (offset..offset + len).step_by(PAGE as usize) {
                    let from = at.wrapping_add_signed(zone.delta) + offset;
                    // SAFETY: whole pages of an alias; the target was just made.
                    unsafe { sys::copy(usable(place + offset), from, PAGE) };
                }
            }),
            // SAFETY: a whole page, if the program has it; the target was just made.
            None => unsafe {
                sys::try_copy(usable(place), at, PAGE);
            },
        }
        at = end;
    }
}

/// Where an alias of a range can lie: reserved, at most 1.75 GiB away.
pub(crate) fn reserve_alias(start: u64, len: u64) -> Option<i64> {
    let flags =
        sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED_NOREPLACE;
    for step in 1..112_i64 {
        for delta in [step << 24, -(step << 24)] {
            let Some(alias) = start.checked_add_signed(delta) else {
                continue;
            };
            // Code of programs at low addresses has them in 32 bits with a sign.
            let is_low = start < 1 << 31;
            if alias < 1 << 16 || (is_low && alias + len > 0x7fff_0000) {
                continue;
            }
            // SAFETY: it is put where nothing is, or not at all.
            let place = unsafe { sys::map(alias, len, sys::PROT_NONE, flags, -1, 0) };
            if place.cast_unsigned() == alias {
                return Some(delta);
            }
            if !sys::failed(place) {
                // SAFETY: just mapped by a kernel that takes the flag for a hint.
                unsafe { sys::call(sys::MUNMAP, [place.cast_unsigned(), len, 0, 0, 0, 0]) };
            }
        }
    }
    None
}

/// Reserves a place for what must be near `address`.
pub(crate) fn reserve_near(address: u64, len: u64) -> Option<u64> {
    let start = address & !(PAGE - 1);
    reserve_alias(start, len).map(|delta| start.wrapping_add_signed(delta))
}
