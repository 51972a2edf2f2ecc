//! Records of chunks and the access path, on chunks at addresses that need no memory: the runtime
//! never reads what lies in a chunk, but for loads of eight bytes in windows.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use super::capture::{BASE, at, chunk, header, node, site};
use super::chunks;
use super::fast_path::access;
use super::local::local;
use super::sums::Allocation;
use super::unwind::SharedFrames;
use super::{maps, shadow, start};
use crate::capture_format::accesses::Coder;
use crate::capture_format::{Chunk, Curve, Group, Point, SIZES_DIFFER, WATCHED, flags, layout};

/// One capture for the process: tests that use it take turns.
pub(crate) static TURN: Mutex<()> = Mutex::new(());

fn begin() -> MutexGuard<'static, ()> {
    let turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    start::for_test(0, true);
    turn
}

const HEAP: u64 = 0x7000_0000_0000;

fn allocate(at: u64, size: u64, stack: &[u64]) {
    let new = Allocation {
        start: at,
        size,
        usable: size.next_multiple_of(16),
        site: 0,
        stack,
        kept: SharedFrames::default(),
        nodes: None,
    };
    // SAFETY: the capture is mapped, and the address is nobody else's.
    unsafe { chunks::allocated(local(), &new, None) };
}

fn free(at: u64, size: u64) {
    // SAFETY: the capture is mapped, and the chunk at the address is this test's.
    unsafe { chunks::freed(local(), at, size.next_multiple_of(16)) }
}

/// The site's histogram, in this thread's shard.
fn histogram(id: u32) -> *mut u64 {
    // SAFETY: the block is this thread's.
    histogram_in(unsafe { (*local()).shard }, id)
}

fn histogram_in(shard: u64, id: u32) -> *mut u64 {
    // SAFETY: the site exists.
    at(shard - BASE + unsafe { (*site(id)).hist })
}

fn of(address: u64) -> Chunk {
    let id = shadow::find(address);
    assert_ne!(id, 0, "no chunk at {address:#x}");
    // SAFETY: the entry exists.
    unsafe { *chunk(id) }
}

#[test]
fn an_address_belongs_to_its_chunk() {
    let _turn = begin();
    // Within a page, over pages, whole pages, and byte-sized neighbours.
    let chunks = [
        (0x10, 24),
        (0x28, 8),
        (0x30, 8),
        (0xFF0, 32),
        (0x2000, 4096),
        (0x3008, 10_000),
    ];
    for (offset, size) in chunks {
        allocate(HEAP + offset, size, &[1]);
    }
    for (offset, size) in chunks {
        for inside in [0, size / 2, size - 1] {
            assert_eq!(of(HEAP + offset + inside).start, HEAP + offset);
        }
    }
    assert_eq!(shadow::find(HEAP + 0x38), 0);
    assert_eq!(shadow::find(HEAP + 0x3008 + 10_000), 0);
    assert_eq!(shadow::find(u64::MAX), 0);
    for (offset, size) in chunks {
        free(HEAP + offset, size);
        assert_eq!(shadow::find(HEAP + offset), 0);
        assert_eq!(shadow::find(HEAP + offset + size - 1), 0);
    }
    // SAFETY: the capture is mapped.
    assert_eq!(unsafe { (*header()).total.live_chunks }, 0);
}

#[test]
fn chunks_from_before_the_first_access_are_looked_up_too() {
    let _turn = begin();
    start::for_test(0, false);
    allocate(HEAP, 24, &[1]);
    allocate(HEAP + 0x100, 600, &[2]);
    free(HEAP, 24);
    allocate(HEAP + 0x10, 24, &[1]);
    assert_eq!((shadow::find(HEAP), shadow::find(HEAP + 0x300)), (0, 0));
    // SAFETY: the block is this thread's. (So an access sees it that is the first.)
    unsafe { (*local()).busy = false };
    access::<true>(HEAP + 0x300, 8);
    access::<false>(HEAP + 0x18, 8);
    let [small, large] = [of(HEAP + 0x20), of(HEAP + 0x300)];
    assert_eq!((small.reads, small.touched), (1, 0xFF << 8));
    assert_eq!((large.writes, large.start), (1, HEAP + 0x100));
    // SAFETY: the map is the chunk's.
    assert_eq!(unsafe { maps::touched_bytes(&large) }, 8);
    free(HEAP + 0x10, 24);
    free(HEAP + 0x100, 600);
    assert_eq!(shadow::find(HEAP + 0x300), 0);
}

#[test]
fn compact_chunks_that_begin_close_together_are_told_apart() {
    let _turn = begin();
    start::for_test(0, false);
    // Four in 32 bytes, and one in the next table.
    let chunks = [(0, 8), (8, 8), (0x10, 8), (0x18, 100), (1 << 14, 8)];
    for (offset, size) in chunks {
        allocate(HEAP + offset, size, &[1]);
    }
    // Its end was not seen.
    allocate(HEAP + 8, 16, &[1]);
    for offset in [0x10, 0, 0x20] {
        free(HEAP + offset, 8);
    }
    for offset in [8, 0x18, 1 << 14, 8] {
        free(HEAP + offset, 8);
    }
    free(u64::MAX, 8);
    // SAFETY: the capture is mapped.
    let known = unsafe { ((*header()).total.frees, (*header()).unknown_frees) };
    assert_eq!(known, (5, 3));
}

#[test]
fn accesses_are_counted_where_they_fall() {
    let _turn = begin();
    allocate(HEAP, 24, &[1]);
    access::<true>(HEAP + 8, 8);
    access::<false>(HEAP + 8, 4);
    access::<false>(HEAP + 23, 1);
    access::<false>(HEAP - 0x10_0000, 8);
    let chunk = of(HEAP);
    assert_eq!((chunk.reads, chunk.writes), (2, 1));
    assert_eq!(chunk.touched, 0xFF << 8 | 1 << 23);
    // The allocation is event 1.
    assert_eq!((chunk.allocated, chunk.first, chunk.last), (1, 2, 4));
    free(HEAP, 24);
    // SAFETY: the capture is mapped; the only chunk is of site 2, since 1 is the unknown one.
    let sum = unsafe { *site(2) };
    assert_eq!(
        (sum.reads, sum.writes, sum.touched_bytes, sum.useful_bytes),
        (2, 1, 9, 9)
    );
    // Freed at event 6: it lived for 5, 2 of them active, 24 bytes idle for 2 and 1 before.
    assert_eq!(
        (sum.lifetime, sum.shortest_life, sum.longest_life),
        (5, 5, 5)
    );
    assert_eq!(
        f64::from_bits(sum.active_ratio).to_bits(),
        (2.0_f64 / 5.0).to_bits()
    );
    assert_eq!(f64::from_bits(sum.drag).to_bits(), 48.0_f64.to_bits());
    assert_eq!(f64::from_bits(sum.wait).to_bits(), 24.0_f64.to_bits());
    assert_eq!(
        // SAFETY: the block is this thread's.
        unsafe { (*local()).other },
        [0, 0],
        "freeing has added up what was counted"
    );
    // SAFETY: the capture is mapped.
    assert_eq!(unsafe { (*header()).other_reads }, 1);
}

#[test]
fn histograms_count_each_byte_while_sizes_agree() {
    let _turn = begin();
    let row = |id: u32, write: usize| {
        // SAFETY: the site has a histogram of chunks of 24 bytes.
        unsafe {
            let counts = histogram(id).add(write);
            let mut sum = 0_u64;
            (0..24)
                .map(|i| {
                    sum = sum.wrapping_add(*counts.add(2 * i));
                    sum
                })
                .collect::<Vec<_>>()
        }
    };
    allocate(HEAP, 24, &[1]);
    allocate(HEAP + 64, 24, &[1]);
    for chunk in [HEAP, HEAP + 64] {
        access::<true>(chunk, 8);
        access::<false>(chunk + 4, 8);
    }
    access::<false>(HEAP, 16);
    let expected = |byte: usize| 2 * u64::from((4..12).contains(&byte)) + u64::from(byte < 16);
    assert_eq!(row(2, 0), (0..24).map(expected).collect::<Vec<_>>());
    assert_eq!(
        row(2, 1),
        (0..24)
            .map(|byte| 2 * u64::from(byte < 8))
            .collect::<Vec<_>>()
    );
    allocate(HEAP + 128, 32, &[1]);
    assert_eq!(
        // SAFETY: the capture is mapped.
        unsafe { (*site(2)).hist_size },
        SIZES_DIFFER
    );
    access::<false>(HEAP, 8);
    assert_eq!(of(HEAP).reads, 3);
}

#[test]
fn what_is_known_of_bytes_ends_with_their_chunk() {
    let _turn = begin();
    // SAFETY: the capture is mapped.
    let live = || unsafe { (*header()).total.live_touched };
    // Bits of all four are in one word but for the last bytes, which are in the next page.
    let chunks = [(0xFC0, 16), (0xFD0, 8), (0xFD8, 8), (0xFE0, 100)];
    for (offset, size) in chunks {
        allocate(HEAP + offset, size, &[1]);
        access::<true>(HEAP + offset, size);
    }
    assert_eq!(live(), 132);
    free(HEAP + 0xFD0, 8);
    free(HEAP + 0xFE0, 100);
    assert_eq!(live(), 24);
    access::<false>(HEAP + 0xFD0, 8);
    assert_eq!(live(), 24, "nobody's");
    allocate(HEAP + 0xFD0, 8, &[1]);
    allocate(HEAP + 0xFE0, 64, &[1]);
    access::<true>(HEAP + 0xFD0, 4);
    access::<true>(HEAP + 0xFFC, 8);
    assert_eq!((live(), of(HEAP + 0xFD0).touched), (36, 0xF));
    assert_eq!(of(HEAP + 0xFE0).touched, 0xF_F000_0000);
    for (offset, size) in chunks {
        access::<false>(HEAP + offset, size);
        access::<false>(HEAP + offset, size);
    }
    assert_eq!(live(), 16 + 8 + 8 + 64);
    assert_eq!(of(HEAP + 0xFE0).reads, 2);
    free(HEAP + 0xFC0, 16);
    // The page of a table is another chunk's, and then has a table again.
    free(HEAP + 0xFD0, 8);
    free(HEAP + 0xFD8, 8);
    free(HEAP + 0xFE0, 64);
    allocate(HEAP, 8192, &[2]);
    free(HEAP, 8192);
    allocate(HEAP + 0xFC0, 32, &[2]);
    access::<true>(HEAP + 0xFC0, 1);
    assert_eq!(live(), 1);
}

#[test]
fn large_chunks_are_touched_by_blocks_and_then_by_pages() {
    let _turn = begin();
    // 10,000 bytes are 156 blocks and 16 bytes; the middle page is whole.
    allocate(HEAP + 0x10, 10_000, &[1]);
    // SAFETY: the capture is mapped.
    let live = || unsafe { (*header()).total.live_touched };
    access::<true>(HEAP + 0x10 + 60, 8);
    assert_eq!(live(), 128, "an access across blocks touches both");
    access::<false>(HEAP + 0x10 + 9_999, 1);
    assert_eq!(live(), 144, "the last block has 16 bytes");
    for offset in (0..10_000).step_by(8) {
        access::<false>(HEAP + 0x10 + offset, 8);
    }
    assert_eq!(live(), 10_000);
    assert!(matches!(shadow::page(HEAP + 0x1800), shadow::Page::Full(_)));
    assert!(matches!(
        shadow::page(HEAP + 0x100),
        shadow::Page::Several(_)
    ));
    let before = of(HEAP + 0x10).reads;
    access::<false>(HEAP + 0x1800, 8);
    assert_eq!(of(HEAP + 0x10).reads, before + 1);
    free(HEAP + 0x10, 10_000);
    assert_eq!(live(), 0);
}

#[test]
fn recursion_is_folded() {
    let _turn = begin();
    // build(left) and build(right) below main, in any order.
    let (main, left, right, leaf) = (1, 2, 3, 4);
    let mut sites = std::collections::BTreeSet::new();
    for (i, turns) in [
        &[left][..],
        &[left, left],
        &[right, left, left],
        &[left; 100],
    ]
    .into_iter()
    .enumerate()
    {
        let mut stack = vec![leaf];
        stack.extend(turns.iter().rev());
        stack.push(main);
        let at = HEAP + 64 * i as u64;
        allocate(at, 8, &stack);
        sites.insert(of(at).site);
    }
    // leaf-left-main three times, and leaf-left-right-main.
    assert_eq!(sites.len(), 2);
    for id in sites {
        let mut frames = Vec::new();
        // SAFETY: nodes of a site lead to the outermost frame.
        unsafe {
            let mut path = (*site(id)).node as u32;
            while path != 0 {
                frames.push((*node(path)).pc);
                path = (*node(path)).parent;
            }
        }
        assert_eq!((frames[0], frames.last()), (leaf, Some(&main)));
        let distinct: std::collections::BTreeSet<_> = frames.iter().collect();
        assert_eq!(distinct.len(), frames.len(), "no frame twice");
    }
}

#[test]
fn what_a_site_has_at_the_peak_is_known_whenever_it_changes() {
    let _turn = begin();
    allocate(HEAP, 160, &[1]); // site 2: 160
    allocate(HEAP + 0x1000, 320, &[2]); // site 3: 320, the peak at 480
    free(HEAP, 160);
    allocate(HEAP, 16, &[1]);
    free(HEAP + 0x1000, 320);
    // SAFETY: the capture is mapped.
    unsafe {
        assert_eq!(
            ((*header()).total.peak_usable, (*header()).total.peak_time),
            (480, 2)
        );
        for (id, usable) in [(2, 160), (3, 320)] {
            assert_eq!(
                ((*site(id)).peak_seen, (*site(id)).at_peak_usable),
                (2, usable)
            );
        }
    }
}

#[test]
fn realloc_carries_content_over() {
    let _turn = begin();
    allocate(HEAP, 64, &[1]);
    access::<true>(HEAP, 8);
    let new = Allocation {
        start: HEAP + 0x1000,
        size: 2048,
        usable: 2048,
        site: 0,
        stack: &[2],
        kept: SharedFrames::default(),
        nodes: None,
    };
    // SAFETY: the capture is mapped, and the addresses are nobody else's.
    unsafe {
        let old = chunks::detached(HEAP, 64).expect("it is known");
        assert_eq!(shadow::find(HEAP), 0);
        chunks::allocated(local(), &new, Some(old));
    }
    let chunk = of(HEAP + 0x1000);
    assert_eq!((chunk.generation, chunk.writes, chunk.reads), (1, 1, 0));
    // SAFETY: the capture is mapped.
    unsafe {
        let (from, to) = (*site(2), *site(3));
        assert_eq!(
            (from.reallocs, from.moved_bytes, from.frees, from.reads),
            (1, 64, 1, 1)
        );
        assert_eq!(
            (from.useful_bytes, to.longest_chain, to.live_touched),
            (8, 1, 64)
        );
        assert_eq!((*header()).total.live_chunks, 1);
    }
}

#[test]
fn without_memory_for_tables_of_stacks_there_is_one_site() {
    let _turn = begin();
    // StackCache for the first table, and what the process's curve takes, but not for the second.
    // SAFETY: `begin` has mapped the capture, and its turn keeps all other tests out of it.
    unsafe {
        (*header()).heap_used = layout::HEAP_END - layout::HEAP - (16 << 14) - 4096;
    }
    for chunk in 0..3 {
        allocate(HEAP + chunk * 64, 8, &[1 + chunk]);
        assert_eq!(of(HEAP + chunk * 64).site, super::call_tree::UNKNOWN);
    }
    // SAFETY: `begin` has mapped the capture, and its turn keeps all other tests out of it.
    assert_eq!(unsafe { ((*header()).nodes, (*header()).sites) }, (0, 1));
}

#[test]
fn groups_are_never_coarser_than_a_thousandth_of_the_run() {
    let _turn = begin();
    // Three bursts of ten chunks, 5,000 events apart, after 100,000 events.
    let mut at = HEAP;
    let idle = |events: u64| {
        for _ in 0..events {
            access::<false>(HEAP - 0x10_0000, 8);
        }
    };
    idle(100_000);
    for _ in 0..3 {
        for _ in 0..10 {
            allocate(at, 16, &[1]);
            free(at, 16);
            at += 16;
        }
        idle(5_000);
    }
    // SAFETY: the site's groups are where it says.
    let groups = unsafe {
        std::slice::from_raw_parts(at_groups((*site(2)).groups), (*site(2)).groups_len as usize)
    };
    assert_eq!(
        groups.iter().map(|group| group.chunks).collect::<Vec<_>>(),
        [10, 10, 10]
    );
    for group in groups {
        // Allocations at every other event, freed one later.
        assert_eq!(group.last_allocated - group.first_allocated, 18);
        assert_eq!((group.chunks, group.lifetimes), (10, 10));
        assert_eq!(group.last_freed, group.last_allocated + 1);
    }
}

fn at_groups(offset: u64) -> *const Group {
    at(offset)
}

#[test]
fn a_curve_keeps_its_peak_when_it_grows_coarse() {
    let _turn = begin();
    // A saw of 3,000 teeth: 128 points must do for the site.
    for tooth in 0..3_000 {
        allocate(HEAP, 16, &[1]);
        if tooth == 1_234 {
            allocate(HEAP + 0x1000, 16_000, &[1]);
            free(HEAP + 0x1000, 16_000);
        }
        free(HEAP, 16);
    }
    // SAFETY: the site's curve is where it says, its points behind it.
    let (curve, mut points) = unsafe {
        let curve: *mut Curve = at((*site(2)).curve.offset);
        let points = curve.add(1).cast::<Point>();
        let points = std::slice::from_raw_parts(points, (*curve).len as usize);
        (*curve, points.to_vec())
    };
    // SAFETY: the capture is mapped.
    let now = unsafe { *site(2) };
    let last = points.last_mut().expect("there are points");
    assert!(now.curve.until > 6_004 && last.time <= 6_004);
    last.allocations = now.allocations - last.allocations;
    (last.peak, last.usable) = (now.curve.peak, now.live_usable);
    assert!(curve.len <= 128 && curve.len > 32, "{curve:?}");
    assert!(points.is_sorted_by_key(|point| point.time));
    assert_eq!(points.iter().map(|point| point.peak).max(), Some(16_016));
    assert_eq!(
        points.iter().map(|point| point.allocations).sum::<u64>(),
        3_001
    );
    assert_eq!(points.last().map(|point| point.usable), Some(0));
}

#[test]
fn chunks_of_several_threads_are_shared_and_none_is_lost() {
    let _turn = begin();
    allocate(HEAP, 64, &[1]);
    access::<true>(HEAP, 8);
    let threads = [(); 4].map(|()| {
        std::thread::spawn(|| {
            for _ in 0..10_000 {
                access::<false>(HEAP, 8);
            }
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    let chunk = of(HEAP);
    assert_eq!((chunk.reads, chunk.writes), (0, 1));
    // SAFETY: the entry is the chunk's.
    let counts =
        unsafe { *super::fast_path::non_owner_counts(super::capture::chunk(shadow::find(HEAP))) };
    assert_eq!(counts, [40_000, 0]);
    let both = flags::SHARED | flags::NON_OWNER;
    assert_eq!(chunk.flags & both, both);
    free(HEAP, 64);
    // SAFETY: the capture is mapped.
    let sum = unsafe { *site(2) };
    assert_eq!((sum.reads, sum.writes), (40_000, 1));
    // The entry is used again.
    allocate(HEAP, 64, &[1]);
    free(HEAP, 64);
    // SAFETY: the capture is mapped.
    assert_eq!(unsafe { (*site(2)).reads }, 40_000);
}

/// Another thread has stored to another chunk in the line.
#[test]
fn a_watched_chunk_is_shared_from_its_first_guest_on() {
    let _turn = begin();
    allocate(HEAP, 16, &[1]);
    access::<true>(HEAP, 8);
    let entry = chunk(shadow::find(HEAP));
    // SAFETY: the entry is the chunk's, which lives to the end.
    unsafe { super::fast_path::last_accessor(entry) }.store(WATCHED, Ordering::Relaxed);
    access::<false>(HEAP, 8);
    assert_eq!(of(HEAP).flags & flags::SHARED, 0);
    let other = std::thread::spawn(|| access::<true>(HEAP, 8));
    other.join().unwrap();
    assert_eq!(of(HEAP).flags & flags::SHARED, flags::SHARED);
}

#[test]
fn counts_of_owner_and_others_may_pass_two_to_the_32_together() {
    let _turn = begin();
    allocate(HEAP, 64, &[1]);
    access::<false>(HEAP, 8);
    let other = std::thread::spawn(|| access::<false>(HEAP, 8));
    other.join().unwrap();
    // SAFETY: the entry is the chunk's.
    unsafe { (*super::fast_path::non_owner_counts(chunk(shadow::find(HEAP))))[0] = u32::MAX };
    free(HEAP, 64);
    // SAFETY: the capture is mapped.
    assert_eq!(unsafe { (*site(2)).reads }, 1 << 32);
}

#[test]
fn the_lane_of_a_thread_that_ended_is_another_s() {
    let _turn = begin();
    allocate(HEAP, 24, &[1]);
    let shards = || {
        // SAFETY: the block is this thread's.
        let shard = unsafe { (*local()).shard };
        access::<true>(HEAP, 8);
        // SAFETY: the block is this thread's, which ends only here; the capture is mapped.
        unsafe {
            let taken = (*local()).shard;
            start::thread_ends(core::ptr::null_mut());
            access::<true>(HEAP, 8);
            assert_eq!(((*local()).shard, (*local()).mark), (0, 0));
            (shard, taken)
        }
    };
    let [one, other] = [(); 2].map(|()| std::thread::scope(|it| it.spawn(shards).join().unwrap()));
    assert_eq!(one, other);
    // SAFETY: the block is this thread's.
    assert!(one.0 == 0 && one.1 > unsafe { (*local()).shard });
    // In that shard, and in the first.
    // SAFETY: the site has a histogram.
    let [theirs, first, ours] = unsafe {
        let at = |shard: u64| *histogram_in(shard, 2).add(1);
        [one.1, BASE + layout::HISTS, (*local()).shard].map(at)
    };
    assert_eq!([theirs, first, ours], [2, 2, 0]);
    // SAFETY: the capture is mapped.
    assert_eq!(unsafe { (*header()).shards }, 0b111);
}

#[test]
fn a_thread_that_comes_to_a_chunk_puts_its_clock_forward() {
    let _turn = begin();
    allocate(HEAP, 64, &[1]);
    for _ in 0..1000 {
        access::<false>(HEAP - 0x10_0000, 8);
    }
    access::<true>(HEAP, 8);
    // Its time begins with what this thread has added up so far: one event.
    let other = std::thread::spawn(|| access::<true>(HEAP, 8));
    other.join().unwrap();
    let chunk = of(HEAP);
    assert!(chunk.last >= chunk.first, "{chunk:?}");
    free(HEAP, 64);
    // SAFETY: the capture is mapped.
    let sum = unsafe { *site(2) };
    assert_eq!(
        (sum.frees, f64::from_bits(sum.active_ratio).to_bits()),
        (1, 0)
    );
}

#[test]
fn bytes_of_two_chunks_in_one_granule_stay_within_the_histogram() {
    let _turn = begin();
    allocate(HEAP + 0x100, 16, &[2]);
    allocate(HEAP + 4, 4, &[1]);
    // SAFETY: the site has a histogram of chunks of 4 bytes; before it is another's memory.
    let around = || unsafe {
        let counts = histogram(3);
        std::slice::from_raw_parts(counts.sub(16), 26).to_vec()
    };
    let before = around();
    access::<true>(HEAP + 4, 4);
    let after = around();
    assert_eq!(after[16 + 1], before[16 + 1] + 1);
    // Those of a chunk before it.
    for size in [1, 4, 8] {
        access::<true>(HEAP, size);
        access::<false>(HEAP, size);
    }
    assert_eq!(around(), after);
}

#[test]
fn a_window_records_every_access() {
    let turn = begin();
    start::for_test(1000, true);
    let memory = Box::new([0_u64; 8]);
    let start = (&raw const *memory).expose_provenance() as u64;
    allocate(start, 64, &[1]);
    // A pointer to itself.
    let memory = {
        let mut memory = memory;
        memory[3] = start;
        memory
    };
    // SAFETY: the block is this thread's. What a busy thread reads is not looked at.
    unsafe { (*local()).busy = false };
    access::<true>(start + 24, 8);
    access::<false>(start + 24, 8);
    access::<false>(start, 600);
    // SAFETY: the first window is this thread's.
    unsafe {
        let window = super::capture::window(0);
        assert_eq!(((*window).len, (*window).burst, (*window).time), (5, 0, 2));
        let bytes = window.add(1).cast::<u8>();
        let mut bytes = std::slice::from_raw_parts(bytes, (*window).bytes as usize);
        let mut coder = Coder::default();
        let [write, read, rest @ ..] = [(); 5].map(|()| coder.take(&mut bytes).unwrap());
        assert!(bytes.is_empty() && write.write && !read.write);
        assert_eq!((write.address, write.size), (start + 24, 8));
        assert_eq!(
            (read.pointer, read.target, read.site, read.offset),
            (start, 2, 2, 24)
        );
        assert_eq!(rest.map(|piece| piece.size), [255, 255, 90]);
    }
    drop(memory);
    drop(turn);
}
