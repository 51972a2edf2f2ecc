//! What `memory_usage` says is what the allocator gave.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ctree::{CTreeMap, CTreeSet, FrozenCTreeMap, FrozenCTreeSet};

/// The system's allocator, which counts the bytes that each thread holds.
struct Counting;

thread_local! {
    /// Bytes allocated less bytes freed by this thread.
    static HELD_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated, less those that it has freed.
pub(crate) fn held_bytes() -> isize {
    HELD_BYTES.get()
}

fn count(bytes: usize, sign: isize) {
    let bytes = isize::try_from(bytes).expect("a layout is at most isize::MAX bytes");
    // At the end of a thread, when its counter is gone, nobody asks any more.
    let _gone = HELD_BYTES.try_with(|held| held.set(held.get() + sign * bytes));
}

// SAFETY: every call goes to `System` unchanged; counting allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Builds something and compares what it says that it holds with what is held.
fn held_agrees<T>(what: &str, build: impl FnOnce() -> T, memory_usage: impl FnOnce(&T) -> usize) {
    let before = HELD_BYTES.get();
    let built = build();
    assert_eq!(
        isize::try_from(memory_usage(&built)),
        Ok(HELD_BYTES.get() - before),
        "{what}"
    );
    drop(built);
    assert_eq!(HELD_BYTES.get(), before, "{what}");
}

#[test]
fn memory_usage_is_what_was_allocated() {
    for len in [0u32, 1, 15, 16, 17, 33, 300, 5_000, 200_000] {
        held_agrees(
            "joined",
            || {
                (0..len)
                    .map(|n| (u64::from(n), n))
                    .collect::<FrozenCTreeMap<_, _>>()
            },
            FrozenCTreeMap::memory_usage,
        );
        held_agrees(
            "apart",
            || {
                (0..len)
                    .map(|n| (n, [n; 9]))
                    .collect::<FrozenCTreeMap<_, _>>()
            },
            FrozenCTreeMap::memory_usage,
        );
        held_agrees(
            "tuples",
            || {
                (0..len)
                    .map(|n| ((n, n), n))
                    .collect::<FrozenCTreeMap<_, _>>()
            },
            FrozenCTreeMap::memory_usage,
        );
        held_agrees(
            "set",
            || (0..len).collect::<FrozenCTreeSet<_>>(),
            FrozenCTreeSet::memory_usage,
        );
        held_agrees(
            "no size",
            || (0..len).map(|_| ((), ())).collect::<FrozenCTreeMap<_, _>>(),
            FrozenCTreeMap::memory_usage,
        );
        let original: FrozenCTreeMap<u128, u8> = (0..len).map(|n| (n.into(), 1)).collect();
        held_agrees("clone", || original.clone(), FrozenCTreeMap::memory_usage);
    }
}

#[test]
fn integer_maps_take_little_more_than_their_entries() {
    let map: FrozenCTreeMap<u64, u64> = (0..100_000).map(|n| (n, n)).collect();
    assert!(
        map.memory_usage() * 10 < 100_000 * 16 * 11,
        "{} bytes",
        map.memory_usage()
    );
    let set: FrozenCTreeSet<[u8; 4]> = (0..10_000u32).map(u32::to_be_bytes).collect();
    assert_eq!(set.memory_usage(), 10_000 * 4);
    // Heads take 8.5 bytes a key.
    let set: FrozenCTreeSet<String> = (0..10_000).map(|n| n.to_string()).collect();
    assert!(set.memory_usage() < 10_000 * (size_of::<String>() + 9));
}

#[test]
fn memory_usage_of_dynamic_maps_is_what_was_allocated() {
    let lens: [u32; 7] = [0, 1, 31, 33, 300, 5_000, 200_000];
    for len in lens.into_iter().take(if cfg!(miri) { 5 } else { 7 }) {
        let scattered = move || (0..len).map(|n| n.wrapping_mul(0x9E37_79B1));
        held_agrees(
            "inserted one by one",
            || {
                let mut map = CTreeMap::new();
                for n in scattered() {
                    map.insert(n, u64::from(n));
                }
                map
            },
            CTreeMap::memory_usage,
        );
        held_agrees(
            "collected",
            || {
                scattered()
                    .map(|n| ((n, n), [n; 9]))
                    .collect::<CTreeMap<_, _>>()
            },
            CTreeMap::memory_usage,
        );
        held_agrees(
            "with ranks",
            || {
                let mut set = CTreeSet::with_ranks();
                set.extend(scattered());
                set
            },
            CTreeSet::memory_usage,
        );
        held_agrees(
            "thinned out",
            || {
                let mut map: CTreeMap<u64, u64> = scattered().map(|n| (n.into(), 1)).collect();
                map.retain(|key, _| key % 16 == 3);
                map
            },
            CTreeMap::memory_usage,
        );
        held_agrees(
            "compacted",
            || {
                let mut map: CTreeMap<u64, u64> = scattered().map(|n| (n.into(), 1)).collect();
                map.retain(|key, _| key % 16 == 3);
                let before = map.memory_usage();
                map.compact();
                assert!(map.memory_usage() <= before);
                map
            },
            CTreeMap::memory_usage,
        );
        let original: CTreeMap<u128, u8> = scattered().map(|n| (n.into(), 1)).collect();
        held_agrees("clone", || original.clone(), CTreeMap::memory_usage);
    }
}

#[test]
fn a_compact_map_takes_half_as_much_again_at_most() {
    let len = if cfg!(miri) { 2_000 } else { 100_000 };
    let mut map: CTreeMap<u64, u64> = (0..len).map(|n| (n * 7919 % 1_000_003, n)).collect();
    for n in 0..len / 2 {
        map.remove(&(n * 7919 % 1_000_003));
    }
    map.compact();
    let entry_bytes = map.len() * 16;
    assert!(
        map.memory_usage() * 2 < entry_bytes * 3,
        "{} bytes for {entry_bytes}",
        map.memory_usage()
    );
    assert_eq!(map.check(), Ok(()));
}
