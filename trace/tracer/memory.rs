//! System calls that change the program's memory.

use core::mem::offset_of;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use super::options::{self, traces};
use super::sys::{self, PAGE};
use super::wire::Header;
use super::{arena, events, file, maps, patches, used_pages, zones};

const FIXED_NOREPLACE: u64 = sys::MAP_FIXED_NOREPLACE;
const ANYWHERE: u64 = sys::MAP_FIXED | FIXED_NOREPLACE;
/// Stacks, memory at low addresses, huge pages: `MAP_GROWSDOWN`, `MAP_STACK`, `MAP_32BIT`,
/// `MAP_HUGETLB`.
const NOT_TRACED: u64 = 0x100 | 0x2_0000 | 0x40 | 0x4_0000;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;
const ENOMEM: i64 = -12;
const EFAULT: i64 = -14;

/// The heap that grows by `brk`: first byte, end, up to where it may grow; 0: not ours.
static HEAP: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static HEAP_DELTA: AtomicI64 = AtomicI64::new(0);

/// Of `pkey_mprotect`: as `mprotect`.
const NO_KEY: u32 = u32::MAX;

/// The result of a call, or `None` if the kernel is to do it.
pub(crate) fn call(number: u64, arguments: [u64; 6], ip: u64) -> Option<i64> {
    let [address, len, ..] = arguments;
    match number {
        sys::MMAP => map(arguments, ip),
        sys::BRK => set_heap(address),
        _ => {
            let end = address.checked_add(len.checked_next_multiple_of(PAGE)?)?;
            let may_change = match number {
                sys::MPROTECT | sys::PKEY_MPROTECT => arguments[2] & sys::PROT_WRITE != 0,
                _ => number == sys::MADVISE,
            };
            if may_change {
                patches::give_back(address, end);
            }
            let is_ours = zones::touches(address, end) || arena::is_in(address);
            if !is_ours {
                return None;
            }
            zones::make_room(address, end);
            if address % PAGE != 0 || len == 0 && number != sys::MREMAP {
                return Some(
                    if len == 0 && address % PAGE == 0 && number != sys::MUNMAP {
                        0
                    } else {
                        EINVAL
                    },
                );
            }
            match number {
                sys::MUNMAP => Some(unmap(address, end)),
                sys::MPROTECT => protect(address, end, arguments[2]),
                sys::PKEY_MPROTECT if arguments[3] as u32 == NO_KEY => {
                    protect(address, end, arguments[2])
                }
                sys::PKEY_MPROTECT => {
                    zones::release(address, end);
                    events::count(offset_of!(Header, left_out), 1);
                    None
                }
                sys::MREMAP => remap(arguments),
                _ => advise(address, end, arguments[2]),
            }
        }
    }
}

fn map(arguments: [u64; 6], ip: u64) -> Option<i64> {
    let [address, len, protection, flags, fd, offset] = arguments;
    let end = address.checked_add(len.checked_next_multiple_of(PAGE)?)?;
    let is_plain = flags & sys::MAP_ANONYMOUS != 0
        && flags & (sys::MAP_SHARED | sys::MAP_PRIVATE) == sys::MAP_PRIVATE
        && flags & NOT_TRACED == 0
        && protection & sys::PROT_EXEC == 0;
    if protection & sys::PROT_EXEC != 0 && fd.cast_signed() >= 0 {
        maps::note_module();
    }
    if flags & (sys::MAP_FIXED | FIXED_NOREPLACE) != 0 {
        let is_in_arena = arena::is_in(address);
        if address % PAGE != 0 {
            return None;
        }
        // The arena's aliases, and others' memory behind it, are not to be had.
        if end > arena::next_border(address) || is_in_arena && arena::has_aliases(address) {
            return Some(if flags & FIXED_NOREPLACE != 0 {
                EEXIST
            } else {
                ENOMEM
            });
        }
        if !is_in_arena && !zones::touches(address, end) {
            return if maps::is_linker(ip) {
                map_data(arguments, end)
            } else {
                None
            };
        }
        zones::make_room(address, end);
        let is_free = is_in_arena && used_pages::find(address, end).is_none();
        if flags & FIXED_NOREPLACE != 0 && !is_free {
            return Some(EEXIST);
        }
        if is_free {
            if is_plain && traces(options::HEAP) && place_at(address, end, protection) {
                return Some(address.cast_signed());
            }
            used_pages::add(address, end);
            let flags = flags & !FIXED_NOREPLACE | sys::MAP_FIXED;
            let rest = [address, len, protection, flags, fd, offset];
            // SAFETY: the program makes this call. By `used_pages` nothing is there but our
            // reservation, which it may replace.
            return Some(unsafe { sys::call(sys::MMAP, rest) });
        }
        if is_plain && zones::find(address).is_some_and(|zone| zone.end >= end) {
            return Some(match zones::renew(address, end, protection) {
                true => address.cast_signed(),
                false => ENOMEM,
            });
        }
        // A call that fails leaves what is there.
        let trial = [0, len, protection, flags & !ANYWHERE, fd, offset];
        // SAFETY: it is put where nothing is.
        let trial = unsafe { sys::call(sys::MMAP, trial) };
        if sys::failed(trial) {
            return Some(trial);
        }
        // SAFETY: mapped just now.
        unsafe { sys::call(sys::MUNMAP, [trial.cast_unsigned(), len, 0, 0, 0, 0]) };
        zones::free(address, end, true);
        used_pages::add(address, end);
        return None;
    }
    if !is_plain || !traces(options::HEAP) || len == 0 {
        return None;
    }
    let place = allocate(end - address, protection);
    if place.is_none() {
        events::count(offset_of!(Header, left_out), 1);
    }
    place.map(u64::cast_signed)
}

/// The dynamic linker maps data or bss of a library. It is taken over before anybody knows the
/// place, since what the linker or a thread stores while the content moves would be lost.
fn map_data(arguments: [u64; 6], end: u64) -> Option<i64> {
    let [address, _, protection, flags, ..] = arguments;
    let kind = if flags & sys::MAP_ANONYMOUS == 0 {
        options::DATA
    } else {
        options::BSS
    };
    let is_private = flags & (sys::MAP_SHARED | sys::MAP_PRIVATE) == sys::MAP_PRIVATE;
    if !is_private || protection != sys::PROT_READ | sys::PROT_WRITE || !traces(kind) {
        return None;
    }
    // SAFETY: the linker makes this call: what it replaces is its own, and no zone's.
    let result = unsafe { sys::call(sys::MMAP, arguments) };
    if !sys::failed(result) {
        zones::take_data(address, end);
    }
    Some(result)
}

/// Memory of the arena: its address, or `None` if there is no room.
pub(crate) fn allocate(len: u64, protection: u64) -> Option<u64> {
    arena::place(len).filter(|&start| fresh(start, start + len, protection))
}

/// Memory at a place of the arena where nothing is; false if it cannot be there.
fn place_at(start: u64, end: u64, protection: u64) -> bool {
    arena::place_at(start, end) && fresh(start, end, protection)
}

fn fresh(start: u64, end: u64, protection: u64) -> bool {
    zones::fresh(start, end, protection, arena::STRIPE.cast_signed())
}

/// Keeps a part of the arena that the program has no more.
fn reserve(start: u64, end: u64) {
    used_pages::remove(start, end);
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED;
    // SAFETY: the arena is ours, and the program gave this part of it back.
    unsafe { sys::map(start, end - start, sys::PROT_NONE, flags, -1, 0) };
}

fn unmap(start: u64, end: u64) -> i64 {
    // The alias of the heap stays reserved, as it may grow there again.
    let [heap, _, most] = [0, 1, 2].map(|it| HEAP[it].load(Relaxed));
    zones::free(start, end, (heap..most).contains(&start));
    let mut at = start;
    while at < end {
        let to = arena::next_border(at).min(end);
        if arena::is_in(at) {
            if !arena::has_aliases(at) {
                reserve(at, to);
            }
        } else {
            // SAFETY: the program makes this call: what it gives up is its own, and no zone's any
            // more.
            let result = unsafe { sys::call(sys::MUNMAP, [at, to - at, 0, 0, 0, 0]) };
            if sys::failed(result) {
                return result;
            }
        }
        at = to;
    }
    0
}

fn protect(start: u64, end: u64, protection: u64) -> Option<i64> {
    if protection & sys::PROT_EXEC != 0 {
        zones::release(start, end);
        events::count(offset_of!(Header, left_out), 1);
        return None;
    }
    // What lies between zones is the kernel's affair.
    let mut at = start;
    while at < end {
        let to = match zones::find(at) {
            Some(zone) => zone.end.min(end),
            None => {
                let (mut to, is_free) = (at + PAGE, is_nothing(at));
                while to < end && zones::find(to).is_none() && is_nothing(to) == is_free {
                    to += PAGE;
                }
                if is_free {
                    return Some(ENOMEM);
                }
                // SAFETY: the program makes this call, for memory of its own that is no zone's.
                let result = unsafe { sys::protect(at, to - at, protection) };
                if sys::failed(result) {
                    return Some(result);
                }
                at = to;
                continue;
            }
        };
        zones::set_protection(at, to, protection);
        at = to;
    }
    Some(0)
}

/// Of `mremap`: the old place stays mapped.
const STAYS: u64 = 4;

/// Whether the page is one of the arena's where the program has nothing.
fn is_nothing(page: u64) -> bool {
    arena::is_in(page) && used_pages::find(page, page + PAGE).is_none()
}

fn remap(arguments: [u64; 6]) -> Option<i64> {
    let [address, old_len, new_len, flags, to, _] = arguments;
    const MAY_MOVE: u64 = 1;
    const TO_PLACE: u64 = 2;
    let old = old_len.checked_next_multiple_of(PAGE)?;
    let new = new_len.checked_next_multiple_of(PAGE)?;
    if new == 0 {
        return Some(EINVAL);
    }
    let end = address + old;
    if !zones::touches(address, end) {
        return Some(if is_nothing(address) {
            EFAULT
        } else {
            remap_plain(arguments, end)
        });
    }
    if flags & TO_PLACE != 0 || old == 0 {
        zones::release(address, end);
        if flags & TO_PLACE != 0 {
            // What is there goes, and the kernel puts it there.
            zones::free(to, to.saturating_add(new), true);
            used_pages::add(to, to.saturating_add(new));
        }
        return Some(remap_plain(arguments, end));
    }
    if flags & STAYS != 0 {
        if flags & MAY_MOVE == 0 || new != old {
            return Some(EINVAL);
        }
    } else if new <= old {
        if new < old {
            unmap(address + new, end);
        }
        return Some(address.cast_signed());
    }
    if flags & MAY_MOVE == 0 {
        return Some(ENOMEM);
    }
    let protection =
        zones::find(address).map_or(sys::PROT_READ | sys::PROT_WRITE, |zone| zone.protection);
    let Some(place) = allocate(new, sys::PROT_READ | sys::PROT_WRITE) else {
        zones::release(address, end);
        return Some(remap_plain(arguments, end));
    };
    file::copy_content(place, address, old);
    if protection != sys::PROT_READ | sys::PROT_WRITE {
        protect(place, place + new, protection);
    }
    if flags & STAYS != 0 {
        advise(address, end, DONT_NEED);
    } else {
        unmap(address, end);
    }
    Some(place.cast_signed())
}

/// The kernel moves memory that is no zone's; what it leaves of the arena stays ours.
fn remap_plain(arguments: [u64; 6], end: u64) -> i64 {
    let [address, old_len, _, flags, ..] = arguments;
    // SAFETY: the program makes this call, for memory of its own that is no zone's any more, to a
    // place that has none.
    let result = unsafe { sys::call(sys::MREMAP, arguments) };
    let is_left = !sys::failed(result) && result != address.cast_signed();
    if is_left && old_len != 0 && flags & STAYS == 0 && arena::is_in(address) {
        reserve(address, end);
    }
    result
}

const DONT_NEED: u64 = 4;
const DONT_NEED_LOCKED: u64 = 24;

fn advise(start: u64, end: u64, advice: u64) -> Option<i64> {
    const FORK_AND_CORE: [u64; 4] = [10, 11, 18, 19];
    // Also to free lazily, to dump, and what is of huge pages.
    const HINTS: [u64; 15] = [0, 1, 2, 3, 8, 12, 13, 14, 15, 16, 17, 20, 21, 22, 23];
    if !zones::touches(start, end) {
        return is_nothing(start).then_some(ENOMEM);
    }
    if advice == DONT_NEED || advice == DONT_NEED_LOCKED {
        // What lies between zones first: that fails nowhere else.
        let mut at = start;
        while at < end {
            let zone = zones::find(at);
            let to = zone.map_or(at + PAGE, |zone| zone.end);
            if zone.is_none() {
                // SAFETY: the program makes this call, for a page of its own that is no zone's.
                unsafe { sys::call(sys::MADVISE, [at, PAGE, advice, 0, 0, 0]) };
            }
            at = to;
        }
        zones::clear(start, end);
    } else if FORK_AND_CORE.contains(&advice) {
        // What a child of `fork` sees is otherwise up to us.
        zones::release(start, end);
        return None;
    }
    HINTS.contains(&advice).then_some(0)
}

/// Takes over the heap that there is, and keeps room for it to grow.
pub(crate) fn take_heap(start: u64, end: u64) {
    let flags =
        sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | sys::MAP_FIXED_NOREPLACE;
    // Data of programs at low addresses needs aliases below 2 GiB, too.
    // Patches need room within 2 GiB, too.
    let is_near = end < 1 << 31 || traces(options::PATCH);
    let shifts = if is_near { 26..29 } else { 26..31 };
    for shift in shifts.rev() {
        let room = 1 << shift;
        // SAFETY: it is put where nothing is, or not at all.
        let [grown, alias] =
            [(end, room - (end - start).min(room)), (start + room, room)].map(|(at, len)| unsafe {
                let place = sys::map(at, len, sys::PROT_NONE, flags, -1, 0);
                if place.cast_unsigned() == at {
                    Some((at, len))
                } else {
                    if !sys::failed(place) {
                        sys::call(sys::MUNMAP, [place.cast_unsigned(), len, 0, 0, 0, 0]);
                    }
                    None
                }
            });
        if grown.is_some() && alias.is_some() {
            for (word, value) in HEAP.iter().zip([start, end, start + room]) {
                word.store(value, Relaxed);
            }
            HEAP_DELTA.store(1 << shift, Relaxed);
            if end > start {
                zones::take_over(start, end, sys::PROT_READ | sys::PROT_WRITE, 1 << shift);
            }
            return;
        }
        for (at, len) in [grown, alias].into_iter().flatten() {
            // SAFETY: mapped above.
            unsafe { sys::call(sys::MUNMAP, [at, len, 0, 0, 0, 0]) };
        }
    }
    events::count(offset_of!(Header, left_out), 1);
}

fn set_heap(to: u64) -> Option<i64> {
    let [start, end, most] = [0, 1, 2].map(|it| HEAP[it].load(Relaxed));
    if start == 0 {
        return None;
    }
    if to < start || to > most {
        return Some(end.cast_signed());
    }
    let [old, new] = [end, to].map(|it| it.next_multiple_of(PAGE));
    if new > old {
        if !zones::grow(old, new, HEAP_DELTA.load(Relaxed)) {
            return Some(end.cast_signed());
        }
    } else if new < old {
        zones::free(new, old, true);
    }
    HEAP[1].store(to, Relaxed);
    Some(to.cast_signed())
}
