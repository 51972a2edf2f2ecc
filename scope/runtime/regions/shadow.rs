//! Which open regions have touched which bytes.
//!
//! A region gets a version at its first access, larger than all before, so the versions of a
//! thread's open regions grow from the outermost inwards. Each byte has one stamp (`SlimTV`:
//! *Skadu*, 3.2): the version of the region that was the innermost one at its last access. Open
//! regions with that version or a smaller one have touched the byte; regions with a larger one have
//! not. A touch adds to one count and subtracts from another; the sums are made when a region ends.
//!
//! Bytes with one stamp share an entry: a block of 64 bytes has one for its newest stamp and, if
//! need be, a list of others. Stamps between which no open region begins are alike and are merged,
//! so a list is never longer than the stack of open regions. Each thread has stamps of its own.

use core::sync::atomic::{AtomicU32, Ordering};

use super::super::track::{BLOCK, Block, ELSEWHERE, LINES, Line, PAGE, State, line, mask};
use super::super::{capture, recording, sys, unwind};
use super::{events, opens, spans, stack_ranges};
use crate::capture_format::layout;

/// Behind the capture: a word for each page, which is the number of its newest record; records;
/// and entries of lists.
const PAGES: u64 = capture::BASE + layout::END;
const PAGES_LEN: u64 = 4 << (47 - 12);
const RECORDS: u64 = PAGES + PAGES_LEN;
const RECORDS_LEN: u64 = 128 << 30;
const ENTRIES: u64 = RECORDS + RECORDS_LEN;
const ENTRIES_LEN: u64 = 32 << 30;

/// The next record and entry. 0 stands for none.
static NEW: [AtomicU32; 2] = [const { AtomicU32::new(1) }; 2];
/// Changes when memory that was of the heap may be a stack's or a library's, or the other way
/// round.
pub(crate) static EPOCH: AtomicU32 = AtomicU32::new(1);

/// How one thread has touched a page.
#[repr(C)]
struct Record {
    /// The newest stamp of its blocks.
    newest: u32,
    /// Number of the thread's track, from 1 on. Others may look while it is written.
    track: AtomicU32,
    /// The page's record of another thread.
    next: u32,
    /// Twice the [`EPOCH`] in which it was looked up whether the page is of the heap, and one more
    /// if it is.
    heap: u32,
    blocks: [Block; (PAGE / BLOCK) as usize],
}

/// Maps what lies behind the capture, in a child of `fork` over its parent's.
pub(crate) fn begin(over: bool) -> bool {
    for next in &NEW {
        next.store(1, Ordering::Relaxed);
    }
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let len = ENTRIES + ENTRIES_LEN - PAGES;
    // SAFETY: nobody else uses these addresses.
    unsafe { sys::map_at(PAGES, len, sys::PROT_READ_WRITE, flags, -1, over) }
}

fn at<T>(address: u64) -> *mut T {
    core::ptr::with_exposed_provenance_mut(address as usize)
}

fn record(number: u32) -> *mut Record {
    at(RECORDS + u64::from(number) * size_of::<Record>() as u64)
}

fn entry(number: u32) -> *mut Block {
    at(ENTRIES + u64::from(number) * size_of::<Block>() as u64)
}

/// Takes a number that `own`, those set aside for a thread, begins with.
fn take(own: &mut [u32; 2], new: &AtomicU32, room: u64) -> u32 {
    const SET: u32 = 64;
    if own[0] == own[1] {
        let next = |first: u32| (u64::from(first) + u64::from(SET) < room).then_some(first + SET);
        let Ok(first) = new.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) else {
            return 0;
        };
        *own = [first, first + SET];
    }
    own[0] += 1;
    own[0] - 1
}

/// What one access adds to the counts of open regions.
#[derive(Clone, Copy)]
enum Kind {
    Bytes = 0,
    Blocks = 1,
    Pages = 2,
}

/// The number of open regions, from the outermost on, that have touched what has `stamp`.
///
/// # Safety
///
/// `state` is the calling thread's; the innermost open region has a version.
unsafe fn level(state: *const State, stamp: u32) -> usize {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    let opens = unsafe { opens(state) };
    match opens {
        _ if stamp == 0 => 0,
        [.., caller, last] if caller.version <= stamp => {
            opens.len() - usize::from(last.version > stamp)
        }
        _ => opens.partition_point(|open| open.version <= stamp),
    }
}

/// Counts `new` bytes, blocks or pages for all but the outermost `level` open regions.
///
/// # Safety
///
/// As for [`level`].
unsafe fn credit(state: *mut State, kind: Kind, level: usize, new: u64) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let opens = super::opens_mut(state);
        let depth = opens.len();
        if level == depth {
            return;
        }
        let kind = kind as usize;
        // A level may be of the parent process, if a handler of signals has forked.
        let Some(last) = opens.last_mut() else { return };
        last.touched[kind] += new.cast_signed();
        match opens.get_mut(level.wrapping_sub(1)..=level) {
            Some([outer, inner]) => {
                outer.touched[kind] -= new.cast_signed();
                if kind == Kind::Bytes as usize {
                    inner.reused += new;
                }
            }
            _ if kind == Kind::Bytes as usize => (*state).track.fresh += new,
            _ => {}
        }
    }
}

/// Notes that the program accesses these bytes of the heap; false if they are not of the heap.
///
/// # Safety
///
/// `state` is the calling thread's, which is at work for nobody else.
pub(crate) unsafe fn touch(state: *mut State, address: u64, size: u64) -> bool {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let epoch = EPOCH.load(Ordering::Acquire);
        if (*state).epoch != epoch {
            (*state).epoch = epoch;
            forget_lines(state);
        }
        let end = address.saturating_add(size);
        let mut from = address;
        while from < end {
            let blocks = blocks_of(state, from / PAGE);
            if blocks == ELSEWHERE {
                return from > address;
            }
            let page_end = end.min((from / PAGE + 1) * PAGE);
            while from < page_end {
                let len = (page_end - from).min(BLOCK - from % BLOCK);
                let place = blocks.add((from % PAGE / BLOCK) as usize);
                touch_block(state, blocks, place, from, mask(from, len));
                from += len;
            }
        }
        true
    }
}

/// # Safety
///
/// As for [`touch`].
pub(crate) unsafe fn forget_lines(state: *mut State) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        (*state).lines = [Line {
            page: u64::MAX,
            blocks: ELSEWHERE,
        }; LINES];
    }
}

/// # Safety
///
/// As for [`touch`]; `place` is one of `blocks`, which are a record's; `new` are bits of bytes.
unsafe fn touch_block(
    state: *mut State,
    blocks: *mut Block,
    place: *mut Block,
    address: u64,
    bytes: u64,
) {
    // SAFETY: `state` is this thread's, `place` one of its record's blocks (`# Safety`). Records
    // and entries are mapped; those of this track are its thread's, and an entry is in one list.
    unsafe {
        if (*state).current == u32::MAX {
            super::give_version(state);
        }
        let current = (*state).current;
        let mut head = *place;
        let is_newest = head.stamp >= current;
        let mut rest = bytes & !head.mask;
        if is_newest && rest == 0 {
            return;
        }
        let known = level(state, head.stamp);
        if !is_newest {
            credit(state, Kind::Blocks, known, 1);
            let newest = blocks
                .cast::<u8>()
                .sub(core::mem::offset_of!(Record, blocks));
            let newest: *mut u32 = newest.cast();
            if *newest < current {
                credit(state, Kind::Pages, level(state, *newest), 1);
                *newest = current;
            }
            take_over(state, known, bytes & head.mask, address);
            head.mask &= !bytes;
        }
        let mut link: *mut u32 = &raw mut head.next;
        while rest != 0 && *link != 0 {
            let older = entry(*link);
            let hit = rest & (*older).mask;
            if hit != 0 {
                rest &= !hit;
                (*older).mask &= !hit;
                take_over(state, level(state, (*older).stamp), hit, address);
            }
            if (*older).mask == 0 {
                drop_entry(state, link);
            } else {
                link = &raw mut (*older).next;
            }
        }
        take_over(state, 0, rest, address);
        if is_newest {
            head.mask |= bytes;
        } else {
            if head.mask != 0 && head.stamp != 0 {
                // What no open region has begun between is alike.
                while head.next != 0 && level(state, (*entry(head.next)).stamp) == known {
                    head.mask |= (*entry(head.next)).mask;
                    drop_entry(state, &raw mut head.next);
                }
                let number = take_entry(state);
                // Without room, these bytes count as new once more.
                if number != 0 {
                    *entry(number) = head;
                    head.next = number;
                }
            }
            (head.mask, head.stamp) = (bytes, current);
        }
        *place = head;
    }
}

/// Takes the entry out of its list that `link` leads to.
///
/// # Safety
///
/// As for [`touch`]; `link` is of a list, and not its end.
unsafe fn drop_entry(state: *mut State, link: *mut u32) {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        let gone = entry(*link);
        let number = core::mem::replace(&mut *link, (*gone).next);
        (*gone).next = core::mem::replace(&mut (*state).free_entry, number);
    }
}

/// # Safety
///
/// As for [`touch`].
unsafe fn take_entry(state: *mut State) -> u32 {
    // SAFETY: `state` is this thread's (`# Safety`), and so are its free entries, of which each
    // names the next.
    unsafe {
        let free = (*state).free_entry;
        if free != 0 {
            (*state).free_entry = (*entry(free)).next;
            return free;
        }
        let room = ENTRIES_LEN / size_of::<Block>() as u64;
        take(&mut (*state).entries, &NEW[1], room)
    }
}

/// Counts bytes of a block that so many open regions have touched.
///
/// # Safety
///
/// As for [`touch`].
#[inline(always)]
unsafe fn take_over(state: *mut State, level: usize, bytes: u64, address: u64) {
    if bytes == 0 {
        return;
    }
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        credit(state, Kind::Bytes, level, bytes.count_ones().into());
        if (*state).spans > 0 {
            spans::touch(state, level, address / BLOCK, bytes);
        }
    }
}

/// The blocks of a page.
///
/// # Safety
///
/// As for [`touch`].
unsafe fn blocks_of(state: *mut State, page: u64) -> *mut Block {
    // SAFETY: `state` is this thread's (`# Safety`), and so is its record of the page, which is
    // never given back.
    unsafe {
        let line = line(state, page);
        if (*line).page == page {
            return (*line).blocks;
        }
        let record = find_or_make(state, page);
        let blocks = match record.is_null() || !is_heap(state, record, page * PAGE) {
            true => ELSEWHERE,
            false => (&raw mut (*record).blocks).cast(),
        };
        if blocks == ELSEWHERE || !events::are_written() {
            *line = Line { page, blocks };
        }
        blocks
    }
}

/// # Safety
///
/// As for [`touch`].
unsafe fn find_or_make(state: *mut State, page: u64) -> *mut Record {
    if page * 4 >= PAGES_LEN {
        return core::ptr::null_mut();
    }
    // SAFETY: the words and records are mapped, and a record is whole before the page's word leads
    // to it. One of this track is this thread's (`# Safety`).
    unsafe {
        let word = AtomicU32::from_ptr(at(PAGES + page * 4));
        let mut first = word.load(Ordering::Acquire);
        let mut number = first;
        while number != 0 {
            if (*record(number)).track.load(Ordering::Relaxed) == (*state).number {
                return record(number);
            }
            number = (*record(number)).next;
        }
        let room = RECORDS_LEN / size_of::<Record>() as u64;
        let number = take(&mut (*state).records, &NEW[0], room);
        if number == 0 {
            return core::ptr::null_mut();
        }
        let new = record(number);
        (*new).track.store((*state).number, Ordering::Relaxed);
        loop {
            (*new).next = first;
            match word.compare_exchange(first, number, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return new,
                Err(now) => first = now,
            }
        }
    }
}

/// Whether the page is neither of a stack nor of a program or library.
///
/// # Safety
///
/// As for [`touch`]; `record` is that of the page at `address`.
unsafe fn is_heap(state: *mut State, record: *mut Record, address: u64) -> bool {
    // SAFETY: `state` is this thread's, which is at work (`# Safety`). By the track
    // invariant the track is mapped and nobody else uses it.
    unsafe {
        if (*record).heap / 2 != (*state).epoch {
            let is_heap = recording::options().all_memory
                || !(stack_ranges::contain(address) || unwind::is_loaded(address));
            (*record).heap = (*state).epoch * 2 + u32::from(is_heap);
        }
        (*record).heap % 2 == 1
    }
}

/// Gives new versions to all open regions and stamps, of which few are left.
///
/// # Safety
///
/// As for [`touch`].
pub(crate) unsafe fn renumber(state: *mut State) {
    // SAFETY: records and entries below `NEW` are mapped. Those of other tracks, which their
    // threads may be making, are told by `track`, an atomic; the rest are this thread's (`#
    // Safety`).
    unsafe {
        for number in 1..NEW[0].load(Ordering::Acquire) {
            let record = record(number);
            if (*record).track.load(Ordering::Relaxed) != (*state).number {
                continue;
            }
            (*record).newest = level(state, (*record).newest) as u32;
            for index in 0..PAGE / BLOCK {
                let mut place = (&raw mut (*record).blocks)
                    .cast::<Block>()
                    .add(index as usize);
                loop {
                    (*place).stamp = level(state, (*place).stamp) as u32;
                    if (*place).next == 0 {
                        break;
                    }
                    place = entry((*place).next);
                }
            }
        }
        for (version, open) in (1..).zip(super::opens_mut(state)) {
            if open.version != u32::MAX {
                open.version = version;
                (*state).version = version;
                (*state).current = version;
            }
        }
    }
}
