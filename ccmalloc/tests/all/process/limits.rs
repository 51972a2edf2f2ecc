//! Memory that the OS refuses: null, and nothing else.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccmalloc::{CcMalloc, Region, cc_alloc, cc_dealloc, cc_realloc, check};

use super::{bare_thread, stage};

/// Sets the soft limit on address space, or lifts it to the hard one.
fn limit(bytes: Option<usize>) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is writable.
    let read = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    assert_eq!(read, 0);
    limit.rlim_cur = bytes.map_or(limit.rlim_max, |bytes| bytes as libc::rlim_t);
    // SAFETY: a valid limit.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    assert_eq!(set, 0);
}

/// Address space in use, in bytes.
pub(crate) fn mapped_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').next().unwrap().parse::<usize>().unwrap() * 4096
}

pub(super) fn out_of_address_space() {
    // Relative to what is in use: a sanitizer's shadow alone takes terabytes.
    let limit_bytes = mapped_bytes() + (512 << 20);
    limit(Some(limit_bytes));
    for bytes in [24, 64, 5000, 100_000, 3 << 20] {
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        let mut last: *mut u8 = std::ptr::null_mut();
        let mut count = 0usize;
        loop {
            // SAFETY: the layout is not empty.
            let object = unsafe { CcMalloc.alloc(layout) };
            if object.is_null() {
                break;
            }
            // SAFETY: fresh, aligned, and at least 24 bytes.
            unsafe { object.cast::<*mut u8>().write(last) };
            last = object;
            count += 1;
        }
        assert!(
            count > (200 << 20) / bytes.next_multiple_of(1 << 16),
            "{bytes}: {count}"
        );
        // SAFETY: `last` is live; on failure it stays as it is, and no other memory is left.
        assert!(unsafe { CcMalloc.realloc(last, layout, 600 << 20) }.is_null());
        while !last.is_null() {
            // SAFETY: written above.
            let next = unsafe { last.cast::<*mut u8>().read() };
            // SAFETY: allocated above with this layout.
            unsafe { CcMalloc.dealloc(last, layout) };
            last = next;
        }
        check().unwrap();
    }
    // A new thread's heap, which has kept nothing yet.
    crate::in_thread(move || kept_memory_makes_room_for_any_alignment(limit_bytes));
}

fn kept_memory_makes_room_for_any_alignment(limit_bytes: usize) {
    let kept = Layout::from_size_align(12 << 20, 8).unwrap();
    let object = cc_alloc(kept, None).unwrap();
    // SAFETY: allocated above with this layout.
    unsafe { cc_dealloc(object, kept) };
    let room = limit_bytes - mapped_bytes();
    // With what is needed to align it, 6 MiB more than there is room for.
    let layout = Layout::from_size_align(room + (2 << 20), 4 << 20).unwrap();
    let object = cc_alloc(layout, None).expect("room that was only kept");
    // SAFETY: allocated just above with this layout.
    unsafe { cc_dealloc(object, layout) };
}

pub(super) fn mappings_grow_without_leaks() {
    let mut first = 0;
    for round in 0..200usize {
        // Lengths on both sides of where huge pages are asked for, most of them no multiple of 2
        // MiB.
        let mut vector: Vec<u8> = Vec::with_capacity((9 << 20) + round * 4096);
        vector.extend([1, 2, 3]);
        for mebibytes in [12, 13, 40] {
            vector.reserve_exact((mebibytes << 20) - vector.len());
            assert_eq!(vector, [1, 2, 3]);
        }
        vector.shrink_to(10 << 20);
        // Advice of the program's own for a part cuts the mapping in pieces; then it is copied.
        ccmalloc::advise_huge_pages(vector.as_ptr().wrapping_add(1 << 20), 4 << 20);
        vector.reserve_exact(20 << 20);
        assert_eq!(vector, [1, 2, 3]);
        drop(vector);
        if round == 10 {
            first = mapped_bytes();
        }
    }
    let last = mapped_bytes();
    assert!(last < first + (64 << 20), "{first} -> {last}");
}

/// One object of each kind of memory, by each way to it, as far as there is memory; frees them all.
/// Returns how often there was none, and the first contradiction in the heap.
///
/// Allocates nothing but these: it runs where any allocation may fail.
fn try_everything() -> (usize, Result<(), &'static str>) {
    const SIZES: [usize; 9] = [8, 24, 200, 3000, 16_384, 40_000, 200_000, 900_000, 3 << 20];
    let mut failures = 0;
    let mut first_error = Ok(());
    let mut objects = [(None, Layout::new::<u8>()); 4 * SIZES.len()];
    let mut places = objects.iter_mut();
    for bytes in SIZES {
        let layout = Layout::from_size_align(bytes, 8).unwrap_or(Layout::new::<u64>());
        let plain = cc_alloc(layout, None);
        let mut hinted = cc_alloc(layout, plain.or(Some(NonNull::dangling())));
        let mut hinted_layout = layout;
        if let Some(object) = hinted {
            // SAFETY: allocated above with this layout, and replaced by the result if there is one.
            match unsafe { cc_realloc(object, layout, 2 * bytes, plain) } {
                Some(grown) => {
                    hinted = Some(grown);
                    hinted_layout = Layout::from_size_align(2 * bytes, 8).unwrap_or(layout);
                }
                None => failures += 1,
            }
        }
        let aligned_layout = Layout::from_size_align(bytes, 1 << 17).unwrap_or(layout);
        let aligned = cc_alloc(aligned_layout, None);
        // SAFETY: the layout is not empty.
        let zeroed = NonNull::new(unsafe { CcMalloc.alloc_zeroed(layout) });
        let (plain, zeroed) = ((plain, layout), (zeroed, layout));
        for object in [
            plain,
            (hinted, hinted_layout),
            (aligned, aligned_layout),
            zeroed,
        ] {
            failures += usize::from(object.0.is_none());
            if let Some(start) = object.0 {
                // SAFETY: live, and at least 8 bytes.
                unsafe { start.cast::<u64>().write(7) };
            }
            if let Some(place) = places.next() {
                *place = object;
            }
        }
        first_error = first_error.and(check());
    }
    // A region's own list comes from the global allocator, too, which it asks politely.
    match Region::reserve(3 << 20) {
        Some(mut region) => {
            let layout = Layout::new::<[u64; 3]>();
            let object = region.alloc_at(64, layout);
            if !object.is_null() {
                // SAFETY: an ordinary allocation with this layout.
                unsafe { CcMalloc.dealloc(object, layout) };
            }
        }
        None => failures += 1,
    }
    for (object, layout) in objects {
        if let Some(object) = object {
            // SAFETY: allocated above with this layout.
            unsafe { cc_dealloc(object, layout) };
        }
    }
    (failures, first_error.and(check()))
}

/// Steps the limit through the first megabytes, so that each of the mappings that
/// [`try_everything`] needs is refused in turn: the heap's own, tables, chunks, metadata, large
/// objects, their growth. Each time in a thread that has no heap yet.
pub(super) fn every_mapping_fails_once() {
    const STEPS: usize = 200;
    /// Small steps at first, where a heap, its metadata and its first chunks come into being; then
    /// larger ones, up to all that is asked for.
    fn room_bytes(step: usize) -> usize {
        match step {
            0..64 => step * (64 << 10),
            _ => (4 << 20) + (step - 64) * (512 << 10),
        }
    }
    static ROOM: AtomicUsize = AtomicUsize::new(0);
    static FAILED: AtomicUsize = AtomicUsize::new(0);
    static STEPS_FAILED: AtomicUsize = AtomicUsize::new(0);
    static WRONG: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn step(_: *mut libc::c_void) -> *mut libc::c_void {
        // The address space in use was read by the thread that made this one: reading allocates.
        limit(Some(ROOM.load(Ordering::Relaxed)));
        let (failures, result) = try_everything();
        limit(None);
        let (failures_then, result_then) = try_everything();
        FAILED.fetch_add(failures, Ordering::Relaxed);
        STEPS_FAILED.fetch_add(usize::from(failures > 0), Ordering::Relaxed);
        let wrong = usize::from(result.and(result_then).is_err()) + failures_then;
        WRONG.fetch_add(wrong, Ordering::Relaxed);
        std::ptr::null_mut()
    }
    for number in 0..STEPS {
        // The thread's own stack is part of what is in use when it starts: some 8 MiB with its
        // guard, if it is not a cached one.
        let room = room_bytes(number);
        ROOM.store(mapped_bytes() + room, Ordering::Relaxed);
        bare_thread(step);
        assert_eq!(
            WRONG.load(Ordering::Relaxed),
            0,
            "with {room} bytes of room"
        );
    }
    let [failed, steps] = [&FAILED, &STEPS_FAILED].map(|count| count.load(Ordering::Relaxed));
    let is_some = (STEPS / 4 + 1..STEPS).contains(&steps);
    assert!(
        failed > STEPS && is_some,
        "{failed} failures in {steps} steps"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_small_program_frees_is_used_again() {
    stage("memory: small programs");
}

/// Two chunks and a little more, three times over: no huge page for the little, and no fresh memory
/// in the second round.
pub(super) fn small_programs_stay_small() {
    const OBJECTS: usize = 4600 * 1024 / 192;
    let before = peak_kib();
    let mut objects: Vec<Box<[u8; 192]>> = Vec::with_capacity(OBJECTS);
    for round in 0..3 {
        objects.extend((0..OBJECTS).map(|_| Box::new([round; 192])));
        objects.clear();
    }
    let grown = peak_kib() - before;
    assert!(grown < 5400, "{grown} KiB for objects of 4600 KiB");
    // Ten chunks of spans, and of each the first pages.
    let mut spans: Vec<Vec<u8>> = (0..60).map(|_| Vec::with_capacity(300 << 10)).collect();
    spans.iter_mut().for_each(|span| span.resize(32 << 10, 1));
    let grown = peak_kib() - before - grown;
    assert!(grown < 60 * 40, "{grown} KiB for 60 spans of 32 KiB");
}

#[cfg(target_os = "linux")]
#[test]
fn what_pieces_leave_of_their_slots_is_not_resident() {
    stage("memory: pieces");
}

/// Pieces of 32 KiB and a header, as pools of a program's own take them; enough of them for huge
/// pages.
pub(super) fn pieces_of_pools_waste_little() {
    const PIECES: usize = 2000;
    let before = peak_kib();
    let pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; (32 << 10) + 64]).collect();
    let grown = peak_kib() - before;
    let count = pieces.len();
    assert!(
        grown < count * 40,
        "{grown} KiB for {count} pieces of 32 KiB"
    );
}

/// A chunk with huge pages has room for a span that is better not there.
pub(super) fn spans_take_what_room_there_is() {
    let large: Vec<u8> = Vec::with_capacity(40 << 20);
    // A chunk and a half, of which the second one asks for huge pages.
    let objects: Vec<_> = (0..3 << 8).map(|_| Box::new([1_u8; 4096])).collect();
    let layout = Layout::new::<[u8; 100_000]>();
    limit(Some(mapped_bytes()));
    let span = cc_alloc(layout, None);
    limit(None);
    let span = span.expect("room in a chunk");
    // SAFETY: allocated above with this layout.
    unsafe { cc_dealloc(span, layout) };
    assert_eq!((objects.len(), large.len()), (768, 0));
}

/// The most memory that the process has had.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|kib| kib.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0)
}
