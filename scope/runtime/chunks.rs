//! The books: what is done when a chunk is allocated, resized or freed.
//!
//! All of it happens under one lock. Accesses do not take it: they count in the chunk's entry.

use core::sync::atomic::{AtomicU64, Ordering};

use super::arena::{self, LOCK, at, chunk, header, site, thread};
use super::births::{self, birth};
use super::curves::{self, Level};
use super::local::Local;
use super::stacks::{self, Stacks, UNKNOWN};
use super::unwind::Memo;
use super::{access, groups, shadow, start, sys};
use crate::format::{
    BLOCK, Birth, Chunk, Dead, MAX_MAPPED_BYTES, NO_THREAD, SIZES_DIFFER, Site, flags, layout,
};

const PROCESS_POINTS: u32 = 2048;
const SITE_POINTS: u32 = 128;
const THREAD_POINTS: u32 = 64;

/// What the lock guards beside the capture.
struct Books {
    stacks: Stacks,
    /// Entries of chunks that were freed: a list through the `next` of births and the `touched` of
    /// others.
    free: u32,
}

struct Guarded(core::cell::UnsafeCell<Books>);

// SAFETY: used under `LOCK` only.
unsafe impl Sync for Guarded {}

static BOOKS: Guarded = Guarded(core::cell::UnsafeCell::new(Books {
    stacks: Stacks::NEW,
    free: 0,
}));

fn births_flag() -> &'static AtomicU64 {
    // SAFETY: the counter is a field of the header.
    unsafe { AtomicU64::from_ptr(&raw mut (*header()).births) }
}

/// Whether accesses are looked up. Until the first, a chunk is a birth, and no map of its touched
/// bytes is kept.
#[inline(always)]
fn looked_up() -> bool {
    births_flag().load(Ordering::Acquire) == 0
}

/// What an allocation is.
pub(crate) struct Allocation<'a> {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) usable: u64,
    /// Its site, or 0 if that follows from the stack.
    pub(crate) site: u32,
    /// Return addresses, innermost first.
    pub(crate) stack: &'a [u64],
}

/// A chunk that `realloc` has taken out of the books until it knows the outcome.
pub(crate) struct Detached {
    pub(crate) chunk: Chunk,
    usable: u64,
}

/// The calling thread's stacks so far, if there is room for them.
///
/// # Safety
///
/// `local` is the calling thread's, marked as busy; the capture is mapped.
#[inline(always)]
pub(crate) unsafe fn memo<'a>(local: *mut Local) -> Option<&'a mut Memo> {
    // SAFETY: the caller's.
    unsafe {
        if (*local).memo.is_null() && (*local).endings == 0 {
            first_memo(local);
        }
        (*local).memo.as_mut()
    }
}

/// # Safety
///
/// As for [`memo`].
#[cold]
unsafe fn first_memo(local: *mut Local) {
    // SAFETY: by the lock; zeros are an empty one.
    LOCK.with(|| unsafe {
        let place = arena::take(size_of::<Memo>() as u64);
        if place != 0 {
            (*local).memo = at(place);
        }
    });
}

/// The thread ends, and its stacks need no room any more. What its own destructors allocate is
/// walked in full.
///
/// # Safety
///
/// As for [`memo`].
pub(crate) unsafe fn give_memo(local: *mut Local) {
    // SAFETY: by the lock; the place is from `first_memo`.
    LOCK.with(|| unsafe {
        let memo = core::mem::replace(&mut (*local).memo, core::ptr::null_mut());
        if !memo.is_null() {
            let place = memo.expose_provenance() as u64 - arena::BASE;
            arena::give(place, size_of::<Memo>() as u64);
        }
    });
}

/// Records an allocation and returns its site; `from` is the chunk that it replaces, by `realloc`.
///
/// # Safety
///
/// `local` is the calling thread's, marked as busy; the capture is mapped; the bytes belong to
/// nobody else until the chunk is freed.
pub(crate) unsafe fn allocated(
    local: *mut Local,
    new: &Allocation<'_>,
    mut from: Option<Detached>,
) -> u32 {
    let hash = if new.site == 0 {
        stacks::hash(new.stack)
    } else {
        0
    };
    LOCK.with(|| {
        // SAFETY: by the lock and the caller's promise.
        unsafe {
            let books = &mut *BOOKS.0.get();
            let time = access::event(local);
            if let Some(old) = &mut from {
                moved(old, new);
                if old.chunk.first != 0 {
                    // Its content is read.
                    old.chunk.reads = old.chunk.reads.saturating_add(1);
                    old.chunk.last = time;
                }
                retire(old, time, false);
            }
            if !start::options().sites {
                grow(total(), new, time);
                draw_process(time, true);
                return UNKNOWN;
            }
            let id = if new.site == 0 {
                books.stacks.site(new.stack, hash)
            } else {
                new.site
            };
            grow(site(id), new, time);
            note_size(&mut *site(id), new.size, time);
            (*site(id)).threads |= 1 << (*local).thread.min(63);
            draw(site(id), SITE_POINTS, time, true);
            // After the site: a peak of the process includes this chunk.
            grow(total(), new, time);
            draw_process(time, true);
            let of_thread = thread((*local).thread);
            (*of_thread).allocations += 1;
            (*of_thread).live += new.usable;
            (*of_thread).peak = (*of_thread).peak.max((*of_thread).live);
            draw_thread((*local).thread, time, true);
            (*local).last_allocated = time;
            groups::join(site(id), time);
            let kept = histogram(site(id), new.size);
            let generation = from
                .as_ref()
                .map_or(0, |old| old.chunk.generation.saturating_add(1));
            let entry = books.take_entry();
            let chunk = Chunk {
                start: new.start,
                size_and_thread: new.size | u64::from((*local).thread) << 48,
                reads: 0,
                writes: 0,
                touched: 0,
                allocated: time,
                first: 0,
                last: 0,
                site: id,
                toucher: NO_THREAD,
                generation,
                flags: if kept { flags::HISTOGRAM } else { 0 },
            };
            if entry == 0 || !books.put_entry(entry, &chunk) {
                (*header()).lost_chunks += 1;
                return id;
            }
            if let Some(old) = &from {
                access::inherit(local, &old.chunk, arena::chunk(entry));
                give_map(&old.chunk);
                let sum = site(id);
                (*sum).longest_chain = (*sum).longest_chain.max(u64::from(generation));
            }
            id
        }
    })
}

/// Takes the chunk at `start` out, before its memory is given back to the allocator.
///
/// # Safety
///
/// As for [`allocated`]; nobody accesses the chunk any more.
pub(crate) unsafe fn freed(local: *mut Local, start: u64, usable: u64) {
    LOCK.with(|| {
        // SAFETY: by the lock and the caller's promise.
        unsafe {
            let time = access::event(local);
            if !start::options().sites {
                let sum = &mut *total();
                sum.frees += 1;
                sum.live_chunks = sum.live_chunks.saturating_sub(1);
                sum.live_usable = sum.live_usable.saturating_sub(usable);
                draw_process(time, false);
                return;
            }
            let Some(old) = detach(start, usable) else {
                return;
            };
            let temporary = old.chunk.allocated == (*local).last_allocated
                && old.chunk.thread() == (*local).thread;
            retire(&old, time, temporary);
            give_map(&old.chunk);
        }
    });
}

/// Takes the chunk at `start` from its place, for `realloc`, which then calls [`allocated`] or
/// [`attach`].
///
/// # Safety
///
/// As for [`freed`].
pub(crate) unsafe fn detached(start: u64, usable: u64) -> Option<Detached> {
    // SAFETY: by the lock and the caller's promise.
    LOCK.with(|| unsafe { detach(start, usable) })
}

/// Puts a chunk back, because `realloc` failed.
///
/// # Safety
///
/// As for [`allocated`].
pub(crate) unsafe fn attach(old: &Detached) {
    LOCK.with(|| {
        // SAFETY: by the lock and the caller's promise.
        unsafe {
            let books = &mut *BOOKS.0.get();
            let entry = books.take_entry();
            if entry != 0 {
                books.put_entry(entry, &old.chunk);
            }
        }
    });
}

/// Ends a chunk that `realloc` to 0 bytes has freed.
///
/// # Safety
///
/// As for [`freed`].
pub(crate) unsafe fn gone(local: *mut Local, old: &Detached) {
    LOCK.with(|| {
        // SAFETY: by the lock and the caller's promise.
        unsafe {
            retire(old, access::event(local), false);
            give_map(&old.chunk);
        }
    });
}

/// Forgets everything, for a new capture.
///
/// # Safety
///
/// No other thread exists.
pub(crate) unsafe fn forget() {
    LOCK.reset();
    births_flag().store((!start::options().accesses).into(), Ordering::Relaxed);
    // SAFETY: there is no other thread.
    unsafe {
        *BOOKS.0.get() = Books {
            stacks: Stacks::NEW,
            free: 0,
        };
        arena::forget();
        stacks::new_site(0);
    }
    shadow::forget();
    births::forget();
}

fn total() -> *mut Site {
    // SAFETY: only the address is computed.
    unsafe { &raw mut (*header()).total }
}

impl Books {
    /// # Safety
    ///
    /// The caller holds the lock and the capture is mapped.
    unsafe fn take_entry(&mut self) -> u32 {
        // SAFETY: by the lock.
        unsafe {
            if self.free != 0 {
                let entry = self.free;
                self.free = if looked_up() {
                    (*chunk(entry)).touched as u32
                } else {
                    (*birth(entry)).next
                };
                return entry;
            }
            let next = (*header()).chunks.max(1);
            if next >= layout::MAX_CHUNKS {
                return 0;
            }
            (*header()).chunks = next + 1;
            next as u32
        }
    }

    /// Makes `entry` that of `new`, which is found by its address from now on. If there is no room
    /// for that, gives the entry back and returns false.
    ///
    /// # Safety
    ///
    /// As for [`Books::take_entry`], of which `entry` comes; nobody refers to it.
    #[inline(always)]
    unsafe fn put_entry(&mut self, entry: u32, new: &Chunk) -> bool {
        // SAFETY: by the lock.
        unsafe {
            let found = if looked_up() {
                let touched = if new.touched == 0 {
                    map_of(new.size())
                } else {
                    new.touched
                };
                *chunk(entry) = Chunk { touched, ..*new };
                let set = shadow::set(new.start, new.size(), entry);
                if !set {
                    shadow::set(new.start, new.size(), 0);
                }
                set
            } else {
                *birth(entry) = Birth {
                    start: new.start,
                    size_and_thread: new.size_and_thread,
                    allocated: new.allocated,
                    site_and_generation: new.site | u32::from(new.generation) << 24,
                    next: 0,
                };
                births::insert(new.start, entry)
            };
            if !found {
                self.give_entry(entry);
            }
            found
        }
    }

    /// # Safety
    ///
    /// As for [`Books::put_entry`].
    unsafe fn give_entry(&mut self, entry: u32) {
        // SAFETY: by the lock.
        unsafe {
            if looked_up() {
                (*chunk(entry)).start = 0;
                (*chunk(entry)).touched = u64::from(self.free);
            } else {
                (*birth(entry)).start = 0;
                (*birth(entry)).next = self.free;
            }
        }
        self.free = entry;
    }
}

/// Before the first access of a thread: from now on all bytes of a chunk lead to it.
///
/// # Safety
///
/// The capture is mapped, and the thread is not within these books.
pub(crate) unsafe fn look_up() {
    if looked_up() {
        return;
    }
    LOCK.with(|| {
        if looked_up() {
            return;
        }
        // SAFETY: by the lock; entries with a start are of live chunks.
        unsafe {
            for id in 1..(*header()).chunks as u32 {
                let mut new = (*birth(id)).chunk();
                if new.start == 0 {
                    (*chunk(id)).touched = u64::from((*birth(id)).next);
                    continue;
                }
                let sum = site(new.site);
                if (*sum).hist != 0 {
                    new.flags = flags::HISTOGRAM;
                }
                new.touched = map_of(new.size());
                *chunk(id) = new;
                if !shadow::set(new.start, new.size(), id) {
                    (*header()).lost_chunks += 1;
                }
            }
        }
        births_flag().store(0, Ordering::Release);
    });
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped.
#[inline(always)]
unsafe fn detach(start: u64, usable: u64) -> Option<Detached> {
    // SAFETY: by the lock.
    unsafe {
        let (entry, mut old) = if looked_up() {
            let entry = shadow::find(start);
            (entry, *chunk(entry))
        } else {
            let entry = births::remove(start);
            (entry, (*birth(entry)).chunk())
        };
        if entry == 0 || old.start != start {
            if start::options().sites {
                (*header()).unknown_frees += 1;
            }
            return None;
        }
        if looked_up() {
            if old.flags & flags::GUESTS != 0 {
                access::add_guests(chunk(entry), &mut old);
            }
            shadow::set(start, old.size(), 0);
        }
        (*BOOKS.0.get()).give_entry(entry);
        // What allocators do not tell is what was asked for.
        Some(Detached {
            chunk: old,
            usable: usable.max(old.size()),
        })
    }
}

/// Adds a new chunk to the sums.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn grow(sum: *mut Site, new: &Allocation<'_>, time: u64) {
    // SAFETY: by the lock.
    unsafe {
        note_peak(sum);
        let sum = &mut *sum;
        sum.allocations += 1;
        sum.bytes += new.size;
        sum.usable += new.usable;
        sum.live_chunks += 1;
        sum.live_bytes += new.size;
        sum.live_usable += new.usable;
        if sum.live_usable > sum.peak_usable {
            sum.peak_usable = sum.live_usable;
            sum.peak_time = time;
            sum.peak_chunks = sum.live_chunks;
        }
    }
}

/// Adds a new chunk to what is only told of sites.
fn note_size(sum: &mut Site, size: u64, time: u64) {
    sum.smallest = sum.smallest.min(size);
    sum.largest = sum.largest.max(size);
    if sum.first_time == 0 {
        sum.first_time = time;
    }
    sum.last_time = time;
    sum.run = if size > sum.last_size { sum.run + 1 } else { 1 };
    sum.longest_run = sum.longest_run.max(sum.run);
    sum.last_size = size;
}

/// Before the first change after a peak of the process: notes what a site had then.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn note_peak(sum: *mut Site) {
    // SAFETY: by the lock.
    unsafe {
        let peak = (*total()).peak_time;
        if (*sum).peak_seen != peak {
            (*sum).peak_seen = peak;
            (*sum).at_peak_usable = (*sum).live_usable;
            (*sum).at_peak_bytes = (*sum).live_bytes;
            (*sum).at_peak_chunks = (*sum).live_chunks;
            (*sum).at_peak_touched = (*sum).live_touched;
        }
    }
}

fn bits(n: u64) -> usize {
    ((64 - n.leading_zeros()) as usize).min(47)
}

/// Folds a dead chunk into its site and its thread.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn retire(old: &Detached, time: u64, temporary: bool) {
    // SAFETY: by the lock.
    unsafe {
        let of_thread = thread(old.chunk.thread());
        (*of_thread).live = (*of_thread).live.saturating_sub(old.usable);
        let touched = touched_bytes(&old.chunk);
        let sum = site(old.chunk.site);
        for sum in [sum, total()] {
            note_peak(sum);
            shrink(&mut *sum, &old.chunk, old.usable, touched);
        }
        fold(&mut *sum, &old.chunk, time, touched);
        (*sum).temporary += u64::from(temporary);
        groups::leave(site(old.chunk.site), &old.chunk, time);
        let full = start::options().full;
        if full || is_sampled((*site(old.chunk.site)).frees) {
            let chunk = Chunk {
                touched,
                ..old.chunk
            };
            put(Dead { chunk, freed: time }, full);
        }
        draw_process(time, false);
        draw(site(old.chunk.site), SITE_POINTS, time, false);
        draw_thread(old.chunk.thread(), time, false);
    }
}

/// Whether the `nth` chunk of a site to be freed is kept: the first 31, and 16 for each doubling.
fn is_sampled(nth: u64) -> bool {
    nth.trailing_zeros() as usize + 5 >= bits(nth)
}

/// Turns in which the tool may make room before a dead chunk is given up.
const PATIENCE: u32 = 1 << 20;

/// Puts a dead chunk into the ring that the tool empties. Without `full`, a chunk for which there
/// is no room is left out of the sample.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn put(dead: Dead, full: bool) {
    // SAFETY: by the lock; the tool writes `dead_taken` only. A position is below the ring's
    // length.
    unsafe {
        let header = header();
        let taken = AtomicU64::from_ptr(&raw mut (*header).dead_taken);
        let mut turns = 0;
        while (*header).dead_put - taken.load(Ordering::Acquire) >= layout::DEAD_LEN {
            if !full {
                return;
            }
            turns += 1;
            if turns > PATIENCE {
                (*header).dead_lost += 1;
                return;
            }
            sys::sched_yield();
        }
        let index = (*header).dead_put % layout::DEAD_LEN;
        *at::<Dead>(layout::DEAD + index * size_of::<Dead>() as u64) = dead;
        AtomicU64::from_ptr(&raw mut (*header).dead_put)
            .store((*header).dead_put + 1, Ordering::Release);
    }
}

/// Takes a dead chunk off what is live.
fn shrink(sum: &mut Site, old: &Chunk, usable: u64, touched: u64) {
    sum.frees += 1;
    sum.live_chunks -= 1;
    sum.live_bytes -= old.size();
    sum.live_usable = sum.live_usable.saturating_sub(usable);
    sum.live_touched = sum.live_touched.saturating_sub(touched);
}

/// Adds a dead chunk to the sums of its site.
fn fold(sum: &mut Site, old: &Chunk, time: u64, touched: u64) {
    let add = |double: &mut u64, value: f64| {
        *double = (f64::from_bits(*double) + value).to_bits();
    };
    let life = time.saturating_sub(old.allocated);
    sum.reads += u64::from(old.reads);
    sum.writes += u64::from(old.writes);
    sum.touched_bytes += touched;
    match (old.reads > 0, old.writes > 0) {
        (true, true) => sum.useful_bytes += touched,
        (true, false) => sum.unwritten_chunks += 1,
        (false, true) => sum.unread_chunks += 1,
        (false, false) => sum.untouched_chunks += 1,
    }
    sum.shared_chunks += u64::from(old.flags & flags::SHARED != 0);
    sum.lifetime += life;
    sum.shortest_life = sum.shortest_life.min(life);
    sum.longest_life = sum.longest_life.max(life);
    sum.lifetimes[bits(life)] += 1;
    sum.sizes[bits(old.size())] += 1;
    let bytes = old.size() as f64;
    if old.first == 0 {
        add(&mut sum.drag, bytes * life as f64);
    } else {
        add(
            &mut sum.active_ratio,
            // Times of two threads differ until these add up their events.
            old.last.saturating_sub(old.first) as f64 / life.max(1) as f64,
        );
        add(&mut sum.drag, bytes * time.saturating_sub(old.last) as f64);
        add(
            &mut sum.wait,
            bytes * old.first.saturating_sub(old.allocated) as f64,
        );
    }
}

/// Counts what a move has copied.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn moved(old: &Detached, new: &Allocation<'_>) {
    // SAFETY: by the lock.
    unsafe {
        let sum = site(old.chunk.site);
        (*sum).reallocs += 1;
        if old.chunk.start != new.start {
            (*sum).moved_bytes += old.chunk.size().min(new.size);
        }
    }
}

/// Adds a point to the curve of the process.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn draw_process(time: u64, allocated: bool) {
    // SAFETY: by the lock.
    unsafe {
        if draw(total(), PROCESS_POINTS, time, allocated) {
            ((*header()).last_ns, (*header()).last_tsc) = sys::clocks();
        }
    }
}

/// Adds a point to the curve of the process or of a site; returns whether it is a new one.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn draw(sum: *mut Site, room: u32, time: u64, allocated: bool) -> bool {
    // SAFETY: by the lock.
    unsafe {
        let level = Level {
            usable: (*sum).live_usable,
            requested: (*sum).live_bytes,
            touched: AtomicU64::from_ptr(&raw mut (*sum).live_touched).load(Ordering::Relaxed),
        };
        curves::add(&mut (*sum).curve, room, time, level, allocated)
    }
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn draw_thread(id: u16, time: u64, allocated: bool) {
    // SAFETY: by the lock.
    unsafe {
        let live = (*thread(id)).live;
        let level = Level {
            usable: live,
            requested: live,
            touched: live,
        };
        curves::add(
            &mut (*thread(id)).curve,
            THREAD_POINTS,
            time,
            level,
            allocated,
        );
    }
}

/// Whether the site has a histogram for chunks of this size; it is made with the first chunk and
/// dropped when the sizes differ.
///
/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn histogram(sum: *mut Site, size: u64) -> bool {
    // SAFETY: by the lock. Accesses of chunks that live read `hist` and write there without it; the
    // memory of a dropped one is not used again, so that they do no harm.
    unsafe {
        let (sum, used) = (&mut *sum, &mut (*header()).hists_used);
        // Up to 16 bytes are counted from the chunk's last granule on.
        let bytes = (size.next_multiple_of(8) + 9) * 16;
        let first = sum.hist_size == 0 && sum.allocations == 1;
        if first && (1..=MAX_MAPPED_BYTES).contains(&size) && *used + bytes <= layout::LANE {
            (sum.hist, sum.hist_size) = (*used, size);
            *used += bytes;
        } else if sum.hist_size != size {
            sum.hist_size = SIZES_DIFFER;
        }
        size > 0 && sum.hist_size == size
    }
}

/// Bytes of the map of touched bytes of a chunk of this size, beyond those in its entry.
fn map_bytes(size: u64) -> u64 {
    match size {
        0..=64 => 0,
        65..=MAX_MAPPED_BYTES => size.div_ceil(64) * 8,
        _ => size.div_ceil(64 * BLOCK) * 8,
    }
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn map_of(size: u64) -> u64 {
    match map_bytes(size) {
        0 => 0,
        // SAFETY: by the lock.
        bytes => unsafe { arena::take(bytes) },
    }
}

/// # Safety
///
/// The caller holds the lock and the capture is mapped.
unsafe fn give_map(old: &Chunk) {
    let bytes = map_bytes(old.size());
    if bytes > 0 && old.touched != 0 {
        // SAFETY: by the lock; the chunk is dead.
        unsafe { arena::give(old.touched, bytes) }
    }
}

/// Bytes of a chunk that were touched, in whole blocks for large ones.
///
/// # Safety
///
/// The chunk's map is allocated.
pub(crate) unsafe fn touched_bytes(old: &Chunk) -> u64 {
    if old.first == 0 {
        return 0;
    }
    let size = old.size();
    let words = map_bytes(size) / 8;
    if words == 0 {
        return u64::from(old.touched.count_ones());
    }
    if old.touched == 0 {
        return 0;
    }
    // SAFETY: by the lock, and the caller's promise.
    let map = unsafe { core::slice::from_raw_parts(at::<u64>(old.touched), words as usize) };
    let ones: u64 = map.iter().map(|word| u64::from(word.count_ones())).sum();
    if size <= MAX_MAPPED_BYTES {
        return ones;
    }
    let rest = size % BLOCK;
    let last = (size - 1) / BLOCK;
    let cut = rest != 0 && map[(last / 64) as usize] >> (last % 64) & 1 == 1;
    ones * BLOCK - if cut { BLOCK - rest } else { 0 }
}

/// Calls `each` with offset and length of the touched parts of a chunk.
///
/// # Safety
///
/// As for [`touched_bytes`].
pub(crate) unsafe fn touched_ranges(old: &Chunk, mut each: impl FnMut(u64, u64)) {
    let words = map_bytes(old.size()) / 8;
    let own = [old.touched];
    let map = if words == 0 {
        &own[..]
    } else if old.touched == 0 {
        return;
    } else {
        // SAFETY: by the lock, and the caller's promise.
        unsafe { core::slice::from_raw_parts(at::<u64>(old.touched), words as usize) }
    };
    let unit = if old.size() <= MAX_MAPPED_BYTES {
        1
    } else {
        BLOCK
    };
    for (index, &word) in map.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            let from = u64::from(rest.trailing_zeros());
            let len = u64::from((!(rest >> from)).trailing_zeros());
            each((index as u64 * 64 + from) * unit, len * unit);
            if from + len >= 64 {
                break;
            }
            rest = rest >> (from + len) << (from + len);
        }
    }
}
