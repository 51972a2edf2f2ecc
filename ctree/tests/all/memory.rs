//! What `memory_usage` says is what the allocator gave.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeMap;

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
    // The counter is gone at the end of a thread.
    let _gone = HELD_BYTES.try_with(|held| held.set(held.get() + sign * bytes));
}

// SAFETY: every call goes to `System` unchanged; counting allocates nothing and does not unwind.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is `System`'s too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is `System`'s too.
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
        let numbers = || 0..len;
        let joined = || FrozenCTreeMap::from_iter(numbers().map(|n| (u64::from(n), n)));
        held_agrees("joined", joined, FrozenCTreeMap::memory_usage);
        let apart = || FrozenCTreeMap::from_iter(numbers().map(|n| (n, [n; 9])));
        held_agrees("apart", apart, FrozenCTreeMap::memory_usage);
        let tuples = || FrozenCTreeMap::from_iter(numbers().map(|n| ((n, n), n)));
        held_agrees("tuples", tuples, FrozenCTreeMap::memory_usage);
        let set = || FrozenCTreeSet::from_iter(numbers());
        held_agrees("set", set, FrozenCTreeSet::memory_usage);
        let no_size = || FrozenCTreeMap::from_iter(numbers().map(|_| ((), ())));
        held_agrees("no size", no_size, FrozenCTreeMap::memory_usage);
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
        let inserted = || {
            let mut map = CTreeMap::new();
            for n in scattered() {
                map.insert(n, u64::from(n));
            }
            map
        };
        held_agrees("inserted one by one", inserted, CTreeMap::memory_usage);
        let collected = || CTreeMap::from_iter(scattered().map(|n| ((n, n), [n; 9])));
        held_agrees("collected", collected, CTreeMap::memory_usage);
        let with_ranks = || {
            let mut set = CTreeSet::with_ranks();
            set.extend(scattered());
            set
        };
        held_agrees("with ranks", with_ranks, CTreeSet::memory_usage);
        let thinned_out = || {
            let mut map: CTreeMap<u64, u64> = scattered().map(|n| (n.into(), 1)).collect();
            map.retain(|key, _| key % 16 == 3);
            map
        };
        held_agrees("thinned out", thinned_out, CTreeMap::memory_usage);
        let compacted = || {
            let mut map = thinned_out();
            let before = map.memory_usage();
            map.compact();
            assert!(map.memory_usage() <= before);
            map
        };
        held_agrees("compacted", compacted, CTreeMap::memory_usage);
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

/// The bytes that `build` leaves allocated, and what it built.
fn held_by<T>(build: impl FnOnce() -> T) -> (f64, T) {
    let before = HELD_BYTES.get();
    let built = build();
    ((HELD_BYTES.get() - before) as f64, built)
}

/// The key of a number: keys of different numbers differ, and are in no order.
fn key_of(n: u32) -> u64 {
    let mixed = (u64::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 31
}

#[test]
fn a_map_takes_four_words() {
    assert!(size_of::<CTreeMap<String, u64>>() <= 4 * size_of::<u64>());
    assert!(size_of::<Option<CTreeSet<u8>>>() <= 4 * size_of::<u64>());
}

#[test]
fn one_entry_takes_256_bytes_or_less_than_std_takes() {
    assert!(held_by(|| CTreeMap::from([(1u64, 1u64)])).0 <= 256.0);
    assert!(held_by(|| CTreeMap::from([((1u32, 2u32), 1u64)])).0 <= 256.0);
    assert!(held_by(|| CTreeSet::from([1u8])).0 <= 256.0);
    let mut map = CTreeMap::with_ranks();
    let mut of_std = BTreeMap::new();
    assert!(
        held_by(|| map.insert("one", String::new())).0
            < held_by(|| of_std.insert("one", String::new())).0
    );
    // Entries that are larger than that are not allocated by the dozen either.
    assert!(held_by(|| CTreeMap::from([(1u64, [1u64; 128])])).0 <= 2048.0);
}

/// Removes nine of ten entries of both maps, and compares what is still held.
fn removals_return_memory_of(
    len: u32,
    most: f64,
    remove: fn(&mut CTreeMap<u64, u64>, &mut BTreeMap<u64, u64>),
) {
    let (ours_full, mut ours) =
        held_by(|| CTreeMap::from_iter((0..len).map(key_of).map(|n| (n, n))));
    let (theirs_full, mut theirs) =
        held_by(|| BTreeMap::from_iter((0..len).map(key_of).map(|n| (n, n))));
    let before = HELD_BYTES.get();
    remove(&mut ours, &mut BTreeMap::new());
    let ours_left = ours_full - (before - HELD_BYTES.get()) as f64;
    let before = HELD_BYTES.get();
    remove(&mut CTreeMap::new(), &mut theirs);
    let theirs_left = theirs_full - (before - HELD_BYTES.get()) as f64;
    assert_eq!(ours.len(), theirs.len());
    assert_eq!(ours.check(), Ok(()));
    assert!(
        ours_left <= most * theirs_left,
        "{len} entries: {ours_full} B, {ours_left} B; std {theirs_full} B, {theirs_left} B"
    );
    while ours.pop_last().is_some() {}
    assert!(ours.memory_usage() <= 1024, "{}", ours.memory_usage());
    ours.clear();
    assert_eq!(ours.memory_usage(), 0);
}

#[test]
#[ignore = "takes long: CI runs it"]
fn removals_return_memory() {
    let lens: &[(u32, f64)] = &[(1_000_000, 1.5)];
    for &(len, most) in if cfg!(miri) { &[(1000, 5.0)] } else { lens } {
        removals_return_memory_of(len, most, |ours, theirs| {
            for n in (0..len_of(ours, theirs)).filter(|n| n % 10 != 0) {
                let key = key_of(n);
                let _removed = (ours.remove(&key), theirs.remove(&key));
            }
        });
        removals_return_memory_of(len, most, |ours, theirs| {
            ours.retain(|key, _| key % 10 == 0);
            theirs.retain(|key, _| key % 10 == 0);
        });
        removals_return_memory_of(len, most, |ours, theirs| {
            for _ in 0..len_of(ours, theirs) / 10 * 9 {
                let _popped = (ours.pop_first(), theirs.pop_first());
            }
        });
    }
}

/// Entries of the map that has some.
fn len_of(ours: &CTreeMap<u64, u64>, theirs: &BTreeMap<u64, u64>) -> u32 {
    u32::try_from(ours.len().max(theirs.len())).expect("less than 2^32 entries")
}

#[test]
fn into_iter_returns_what_it_has_passed() {
    let len = if cfg!(miri) { 2_000 } else { 200_000 };
    for (front, back) in [(len / 2, 0), (0, len / 2), (len / 4, len / 4), (len - 1, 0)] {
        let map: CTreeMap<u64, u64> = (0..len).map(key_of).map(|n| (n, n)).collect();
        let expected: Vec<_> = map.iter().map(|(&key, _)| key).collect();
        let full = map.memory_usage();
        let before = HELD_BYTES.get();
        let mut entries = map.into_iter();
        let (front, back) = (front as usize, back as usize);
        let from_front = entries.by_ref().take(front).map(|(key, _)| key);
        assert!(from_front.eq(expected[..front].iter().copied()));
        let from_back = entries.by_ref().rev().take(back).map(|(key, _)| key);
        assert!(from_back.eq(expected.iter().rev().take(back).copied()));
        let returned = usize::try_from(before - HELD_BYTES.get()).expect("memory was returned");
        let left = full - returned;
        let most = full * (len as usize - front - back) / len as usize;
        assert!(
            left <= most + most / 2 + 32_768,
            "{left} of {full} B after {front} and {back} of {len} entries"
        );
        let rest = &expected[front..expected.len() - back];
        assert!(entries.map(|(key, _)| key).eq(rest.iter().copied()));
    }
}
