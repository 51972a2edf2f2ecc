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

/// The bytes that `build` leaves allocated, and what it built.
fn held_by<T>(build: impl FnOnce() -> T) -> (f64, T) {
    let before = HELD_BYTES.get();
    let built = build();
    ((HELD_BYTES.get() - before) as f64, built)
}

/// Keys in no order, all different.
fn scattered(len: u32) -> impl DoubleEndedIterator<Item = u64> {
    (0..len).map(|n| u64::from(n.wrapping_mul(0x9E37_79B1)))
}

#[test]
fn a_map_takes_four_words() {
    assert!(size_of::<CTreeMap<String, u64>>() <= 4 * size_of::<u64>());
    assert!(size_of::<Option<CTreeSet<u8>>>() <= 4 * size_of::<u64>());
}

#[test]
fn one_entry_takes_256_bytes_at_most() {
    assert!(held_by(|| CTreeMap::from([(1u64, 1u64)])).0 <= 256.0);
    assert!(held_by(|| CTreeMap::from([((1u32, 2u32), 1u64)])).0 <= 256.0);
    assert!(held_by(|| CTreeSet::from([1u8])).0 <= 256.0);
    let mut map = CTreeMap::with_ranks();
    assert!(held_by(|| map.insert("one", String::new())).0 <= 256.0);
    // Entries that are larger than that are not allocated by the dozen either.
    assert!(held_by(|| CTreeMap::from([(1u64, [1u64; 128])])).0 <= 2048.0);
}

#[test]
fn removals_return_memory() {
    for len in [1_000, 30_000, 1_000_000] {
        if cfg!(miri) && len > 1_000 {
            break;
        }
        let removed = |n: &u64| n % 10 != 0;
        for way in ["one by one", "retain", "pop_first", "pop_last", "built"] {
            let (mut ours, mut map) = held_by(|| CTreeMap::new());
            ours += held_by(|| map.extend(scattered(len).map(|n| (n, n)))).0;
            let (mut theirs, mut std_map) = held_by(|| BTreeMap::new());
            theirs += held_by(|| std_map.extend(scattered(len).map(|n| (n, n)))).0;
            let full = (ours / theirs, ours, theirs);
            match way {
                "one by one" => {
                    ours += held_by(|| scattered(len).filter(removed).for_each(|n| drop(map.remove(&n)))).0;
                    theirs += held_by(|| scattered(len).filter(removed).for_each(|n| drop(std_map.remove(&n)))).0;
                }
                "retain" => {
                    ours += held_by(|| map.retain(|n, _| !removed(n))).0;
                    theirs += held_by(|| std_map.retain(|n, _| !removed(n))).0;
                }
                "pop_first" => {
                    ours += held_by(|| (0..len - len / 10).for_each(|_| drop(map.pop_first()))).0;
                    theirs += held_by(|| (0..len - len / 10).for_each(|_| drop(std_map.pop_first()))).0;
                }
                _ => {
                    ours += held_by(|| (0..len - len / 10).for_each(|_| drop(map.pop_last()))).0;
                    theirs += held_by(|| (0..len - len / 10).for_each(|_| drop(std_map.pop_last()))).0;
                }
            }
            eprintln!("{len} {way}: full {full:?}, then {ours} {theirs} = {}", ours / theirs);
            ours += held_by(|| while map.pop_last().is_some() {}).0;
            theirs += held_by(|| while std_map.pop_last().is_some() {}).0;
            eprintln!("   emptied {ours} {theirs}");
        }
    }
}

#[test]
fn strings_probe() {
    let len = 1_000_000;
    let name = |n: u64| format!("{n:011}");
    macro_rules! probe {
        ($what:literal, $key:expr, $value:expr) => {{
            let keys: Vec<u64> = scattered(len).collect();
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            for (order, keys) in [("scattered", &keys), ("sorted", &sorted)] {
                let own = held_by(|| keys.iter().map(|&n| $key(n)).collect::<Vec<_>>());
                let own = own.0 - size_of_val(own.1.as_slice()) as f64;
                let a = held_by(|| { let mut m = CTreeMap::new(); for &n in keys { m.insert($key(n), $value(n)); } m }).0 - own;
                let b = held_by(|| { let mut m = BTreeMap::new(); for &n in keys { m.insert($key(n), $value(n)); } m }).0 - own;
                let c = held_by(|| keys.iter().map(|&n| ($key(n), $value(n))).collect::<CTreeMap<_, _>>()).0 - own;
                let d = held_by(|| keys.iter().map(|&n| ($key(n), $value(n))).collect::<BTreeMap<_, _>>()).0 - own;
                eprintln!("{} {order}: insert {a} {b} = {}; collect {c} {d} = {}", $what, a / b, c / d);
            }
        }};
    }
    probe!("String->u64", name, |n: u64| n);
    probe!("String->()", name, |_| ());
    probe!("String->u32", name, |n: u64| n as u32);
    probe!("Box<str>->u64", |n| name(n).into_boxed_str(), |n: u64| n);
    probe!("&str->u64", |n| &*Box::leak(name(n).into_boxed_str()), |n: u64| n);
    probe!("&str->()", |n| &*Box::leak(name(n).into_boxed_str()), |_| ());
    probe!("(u32,u32)->u64", |n| (n as u32, 0u32), |n: u64| n);
    probe!("u64->u64", |n| n, |n: u64| n);
    probe!("u64->()", |n| n, |_| ());
}
