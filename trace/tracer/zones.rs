//! Zones: memory of the program that is mapped twice from one file in memory. At the
//! program's address it is `PROT_NONE` while tracing is on, so that each access faults; `delta`
//! bytes above, the tracer can access it.
//!
//! All of it is under the tracer's [lock](super::lock::LOCK).

use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::sys::{self, PAGE};
use super::wire::Header;
use super::zone_table::{self, MOST, SPARE, all, count, get, insert, part, remove, search, set};
use super::{arena, events, file, recorder, threads};

pub(crate) use super::zone_table::{Zone, find, usable};

/// Of `--every`: bytes that are traced or left out together.
const UNIT: u64 = 1 << 16;

/// Below and above the stack pointer, what is of the stack.
pub(crate) const STACK_BELOW: u64 = 16 * PAGE;
const STACK_ABOVE: u64 = 2 * PAGE;

static FORGOTTEN: AtomicU64 = AtomicU64::new(0);
/// Whether zones may not be accessed.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);
/// One unit of so many is traced.
pub(crate) static EVERY: AtomicU64 = AtomicU64::new(1);

/// Before all else; false if there is no file for zones.
pub(crate) fn init() -> bool {
    zone_table::init();
    file::init()
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
        // SAFETY: one range is ours; the other the program has passed to the kernel to be read or
        // written so, and an alias shows the same memory.
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
    let has = count() + SPARE < MOST && file::is_there();
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
    let (len, fd) = (zone.end - zone.start, file::descriptor().cast_signed());
    let flags = sys::MAP_SHARED | sys::MAP_NORESERVE | sys::MAP_FIXED;
    let own = if is_closed() {
        sys::PROT_NONE
    } else {
        zone.protection
    };
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // SAFETY: who calls has reserved both places for the zone, or moved what was there: nothing
    // that is still needed is mapped over. The part of the file is the zone's own.
    let is_whole = unsafe {
        !sys::failed(sys::map(alias, len, zone.protection, flags, fd, zone.file))
            && !sys::failed(sys::map(zone.start, len, own, flags, fd, zone.file))
    };
    if is_whole {
        mark(zone);
    }
    is_whole
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

/// A zone with a part of the file of its own.
fn new(start: u64, end: u64, protection: u64, delta: i64) -> Zone {
    Zone {
        start,
        end,
        delta,
        file: file::range(end - start),
        protection,
    }
}

/// Takes over memory that the program has: its content moves into the file. Other threads that
/// store meanwhile fault, and wait for the lock.
pub(crate) fn take_over(start: u64, end: u64, protection: u64, delta: i64) {
    chosen(start, end, |start, end| {
        if !has_room() {
            return;
        }
        let zone = new(start, end, protection, delta);
        let (len, alias) = (end - start, start.wrapping_add_signed(delta));
        let flags = sys::MAP_SHARED | sys::MAP_NORESERVE | sys::MAP_FIXED;
        let both = sys::PROT_READ | sys::PROT_WRITE;
        // SAFETY: the alias is reserved; the content is the program's, who may read and write it.
        unsafe {
            let fd = file::descriptor().cast_signed();
            if sys::failed(sys::map(alias, len, both, flags, fd, zone.file)) {
                return;
            }
            sys::protect(start, len, sys::PROT_READ);
            file::copy_pages(alias, start, len);
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
        let zone = new(start, end, protection, delta);
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
        let file = file::range(zone.end - zone.start);
        let new = Zone {
            file,
            protection,
            ..*zone
        };
        match map_both(&new) {
            true => {
                file::empty(zone.file, zone.end - zone.start);
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
        file::empty(zone.file, zone.end - zone.start);
        let alias = zone.start.wrapping_add_signed(zone.delta);
        let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
        let is_reserved = stays || arena::is_in(zone.start);
        // SAFETY: the program gave the memory back.
        unsafe {
            for at in [alias, zone.start] {
                if is_reserved {
                    sys::map(at, zone.end - zone.start, sys::PROT_NONE, flags, -1, 0);
                } else {
                    sys::call(sys::MUNMAP, [at, zone.end - zone.start, 0, 0, 0, 0]);
                }
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

/// Content becomes zero, as with `madvise(MADV_DONTNEED)`.
pub(crate) fn clear(start: u64, end: u64) {
    within(start, end, |zone| {
        file::empty(zone.file, zone.end - zone.start);
    });
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
            file::copy_zone(copy, zone);
            sys::protect(copy, len, zone.protection);
            let moved = [copy, len, len, 3, zone.start, 0];
            sys::call(sys::MREMAP, moved);
            sys::map(alias, len, sys::PROT_NONE, flags | sys::MAP_FIXED, -1, 0);
        }
        threads::wake(zone.start, zone.end, zone.delta, true);
        file::empty(zone.file, len);
    });
    forget(start, end);
}

/// Frees the pages around a stack pointer from tracing: signals, calls and our own words need them.
pub(crate) fn release_stack(rsp: u64, address: u64) {
    if let Some(zone) = find(rsp) {
        let low = rsp.min(address).saturating_sub(STACK_BELOW) & !(PAGE - 1);
        let high = (rsp.max(address) + STACK_ABOVE) & !(PAGE - 1);
        release(low.max(zone.start), high.min(zone.end));
    }
}

/// A thread's control block and what lies around it cannot be traced: our handlers need it.
pub(crate) fn release_block(address: u64) {
    const AROUND: u64 = 16 * PAGE;
    if let Some(zone) = find(address) {
        let start = (address & !(PAGE - 1)).saturating_sub(AROUND);
        let end = (address & !(PAGE - 1)) + 2 * PAGE;
        release(start.max(zone.start), end.min(zone.end));
    }
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

/// In the child of `fork`: uses the copy. The answer is the parent's file.
pub(crate) fn use_file(fd: u64) -> u64 {
    let old = file::swap(fd);
    if !all().all(|zone| map_both(&zone)) {
        sys::die(b"no memory for fork");
    }
    old
}

/// In the child of `fork` without a file: the memory that `copy` has takes the place of zones, and
/// there will be no others.
pub(crate) fn leave_file(copy: u64) {
    let mut at = copy;
    for zone in all() {
        let (len, flags) = (zone.end - zone.start, sys::MAP_PRIVATE | sys::MAP_ANONYMOUS);
        let flags = flags | sys::MAP_NORESERVE | sys::MAP_FIXED;
        let alias = zone.start.wrapping_add_signed(zone.delta);
        const MAY_MOVE_THERE: u64 = 3;
        // SAFETY: `file::private_copy` has put a copy of each zone at `copy`, one after the other;
        // this process has one thread, and no instruction of the program is on its way to an alias.
        unsafe {
            sys::protect(at, len, zone.protection);
            let moved = [at, len, len, MAY_MOVE_THERE, zone.start, 0];
            if sys::failed(sys::call(sys::MREMAP, moved)) {
                sys::die(b"no memory for fork");
            }
            sys::map(alias, len, sys::PROT_NONE, flags, -1, 0);
        }
        at += len;
    }
    IS_CLOSED.store(false, Relaxed);
    forget(0, u64::MAX);
    sys::say(b"a child of fork is not traced: no file in memory can be made for it");
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
