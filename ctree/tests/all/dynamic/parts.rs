//! Maps that were split and joined, and share memory: they stay right, and the memory comes back.

use std::collections::BTreeMap;
use std::thread;

use ctree::CTreeMap;

use crate::memory::held_bytes;

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).expect("below `end`")
    }
}

/// Keys in a random order.
fn shuffled(len: usize, random: &mut Random) -> Vec<usize> {
    let mut keys: Vec<usize> = (0..len).collect();
    for at in (1..len).rev() {
        keys.swap(at, random.below(at + 1));
    }
    keys
}

type Both<K> = (CTreeMap<K, Value>, BTreeMap<K, Value>);

type Value = [usize; 12];

fn agree<K: Ord + std::fmt::Debug>((map, model): &Both<K>) {
    assert_eq!(map.check(), Ok(()));
    assert_eq!(map.len(), model.len());
    assert!(map.iter().eq(model));
}

/// Maps of neighbouring ranges are split, joined again in any order, changed, and dropped.
fn parts_agree<K: Ord + Clone + std::fmt::Debug>(
    make: fn() -> CTreeMap<K, Value>,
    key: fn(usize) -> K,
) {
    let (len, rounds) = if cfg!(miri) { (600, 6) } else { (6000, 60) };
    let before = held_bytes();
    for seed in 1..=3 {
        let random = &mut Random(seed);
        let mut whole = (make(), BTreeMap::new());
        for number in shuffled(len, random) {
            whole.0.insert(key(number), [number; 12]);
            whole.1.insert(key(number), [number; 12]);
        }
        let mut parts = vec![whole];
        for _ in 0..rounds {
            let at = random.below(parts.len());
            match random.below(4) {
                0 | 1 => {
                    let cut = key(random.below(len));
                    let (map, model) = &mut parts[at];
                    let behind = (map.split_off(&cut), model.split_off(&cut));
                    parts.insert(at + 1, behind);
                }
                2 if at + 1 < parts.len() => {
                    let (mut behind, mut model_behind) = parts.remove(at + 1);
                    let (map, model) = &mut parts[at];
                    if random.below(2) == 0 {
                        map.append(&mut behind);
                    } else {
                        behind.append(map);
                        *map = behind;
                    }
                    model.append(&mut model_behind);
                }
                _ => {
                    // Every third key of a range goes, or all in it come.
                    let start = random.below(len);
                    let range = start..(start + len / 8).min(len);
                    let whose = |number: usize| {
                        let key = key(number);
                        parts.iter().rposition(|part| {
                            part.1
                                .first_key_value()
                                .is_some_and(|(first, _)| *first <= key)
                        })
                    };
                    let places: Vec<_> = range.map(|number| (number, whose(number))).collect();
                    for (number, place) in places {
                        let (map, model) = &mut parts[place.unwrap_or(0)];
                        let (key, value) = (key(number), [number; 12]);
                        if number % 3 == start % 3 {
                            assert_eq!(map.remove(&key), model.remove(&key));
                        } else {
                            assert_eq!(map.insert(key.clone(), value), model.insert(key, value));
                        }
                    }
                }
            }
            parts.iter().for_each(agree);
        }
        // Those that are left read what others made, and free it.
        while parts.len() > 1 {
            let at = random.below(parts.len());
            let (map, model) = parts.swap_remove(at);
            assert!(
                map.into_iter()
                    .take(len / 16)
                    .eq(model.into_iter().take(len / 16))
            );
            parts.iter().for_each(agree);
        }
    }
    assert_eq!(held_bytes(), before);
}

#[test]
fn parts_of_integers_agree() {
    parts_agree(CTreeMap::new, |number| number as u64);
}

#[test]
fn parts_of_integers_with_ranks_agree() {
    parts_agree(CTreeMap::with_ranks, |number| number as u64);
}

#[test]
fn parts_of_strings_with_prefixes_agree() {
    parts_agree(CTreeMap::new, |number| {
        format!("a prefix that all share/{:02}/{number:06}", number / 1000)
    });
}

#[test]
fn parts_of_pairs_agree() {
    parts_agree(CTreeMap::new, |number| (number / 7, number % 7));
}

fn filled(keys: impl Iterator<Item = usize>) -> CTreeMap<usize, usize> {
    keys.map(|key| (key, key)).collect()
}

/// What is left of a map of `len` keys, from `at` on, when the other part is gone; and the bytes
/// that the whole map held.
fn upper_part(len: usize, at: usize) -> (CTreeMap<usize, usize>, isize) {
    let before = held_bytes();
    let mut low = filled(0..len);
    let whole = held_bytes() - before;
    let high = low.split_off(&at);
    assert!(
        held_bytes() - before < whole + whole / 8,
        "a split allocates"
    );
    (high, whole)
}

#[test]
fn a_part_that_becomes_small_gives_up_the_memory_of_the_whole() {
    let len = if cfg!(miri) { 4000 } else { 100_000 };
    let before = held_bytes();
    let (mut high, whole) = upper_part(len, len / 2);
    high.retain(|key, _| key % 64 == 0);
    assert!(
        held_bytes() - before < whole / 4,
        "memory of the other part is kept"
    );
    assert_eq!(
        (high.check(), high.len()),
        (Ok(()), len / 64 - len / 2 / 64)
    );
    // A small part is small from the start.
    let (high, whole) = upper_part(len, len - len / 50);
    assert!(high.memory_usage() < usize::try_from(whole).expect("positive") / 8);
}

#[test]
fn an_owning_iterator_over_a_part_frees_as_it_goes() {
    let len = if cfg!(miri) { 4000 } else { 100_000 };
    let before = held_bytes();
    let (high, whole) = upper_part(len, len / 3);
    let mut high = high.into_iter();
    assert!(
        high.by_ref()
            .take(len / 2)
            .map(|(key, _)| key)
            .eq(len / 3..len / 3 + len / 2)
    );
    assert!(
        high.by_ref()
            .rev()
            .take(len / 7)
            .map(|(key, _)| key)
            .eq((len - len / 7..len).rev())
    );
    assert!(held_bytes() - before < whole / 4, "memory is kept");
    assert_eq!(high.count(), len - len / 3 - len / 2 - len / 7);
    assert_eq!(held_bytes(), before);
}

#[test]
fn threads_change_and_drop_parts_of_one_map() {
    let len = if cfg!(miri) { 2000 } else { 50_000 };
    let mut rest = filled(0..len);
    let mut parts = Vec::new();
    for start in (1..8).rev() {
        parts.push((start * len / 8, rest.split_off(&(start * len / 8))));
    }
    thread::scope(|scope| {
        for (start, mut part) in parts {
            scope.spawn(move || {
                for key in start..start + len / 16 {
                    assert_eq!(part.remove(&key), Some(key));
                    part.insert(key + 10 * len, key);
                }
                assert_eq!((part.check(), part.len()), (Ok(()), len / 8));
            });
        }
        rest.retain(|key, _| key % 2 == 0);
    });
    assert_eq!((rest.check(), rest.len()), (Ok(()), len / 16));
}

#[test]
fn maps_that_follow_each_other_are_joined_without_a_look_at_their_entries() {
    use std::cell::Cell;
    use std::cmp::Ordering;

    thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }
    #[derive(PartialEq, Eq)]
    struct Counted(usize);
    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> Ordering {
            COMPARISONS.set(COMPARISONS.get() + 1);
            self.0.cmp(&other.0)
        }
    }
    let map = |keys: std::ops::Range<usize>| -> CTreeMap<Counted, ()> {
        keys.map(|key| (Counted(key), ())).collect()
    };
    // Of about the same height, and of very different ones, in both orders.
    let many = if cfg!(miri) { 1200 } else { 20_000 };
    for [low, high] in [
        [0..many / 2, many / 2..many],
        [0..300, 300..many],
        [0..many, many..many + 300],
    ] {
        let end = high.end;
        for low_first in [false, true] {
            let (mut first, mut second) = (map(low.clone()), map(high.clone()));
            if !low_first {
                std::mem::swap(&mut first, &mut second);
            }
            COMPARISONS.set(0);
            first.append(&mut second);
            assert!(COMPARISONS.get() <= 2, "{} comparisons", COMPARISONS.get());
            assert!(second.is_empty());
            assert_eq!(first.check(), Ok(()));
            assert!(first.keys().map(|key| key.0).eq(0..end));
        }
    }
}

#[test]
fn a_join_keeps_the_list_of_free_nodes() {
    // Both maps keep a few free nodes, in any relation.
    for few in (10..120).step_by(if cfg!(miri) { 100 } else { 10 }) {
        let (mut low, mut high) = (filled(0..2000), filled(10_000..13_000));
        for key in 2000 - few..2000 {
            low.remove(&key);
        }
        for key in (10_000..12_000).filter(|key| key % 4 != 0) {
            high.remove(&key);
        }
        low.append(&mut high);
        assert_eq!(low.check(), Ok(()), "{few} removed");
        for key in 100_000..103_000 {
            low.insert(key, key);
        }
        assert_eq!((low.check(), low.len()), (Ok(()), 2000 - few + 1500 + 3000));
        assert!(low.iter().all(|(key, value)| key == value));
    }
}

#[test]
fn three_parts_are_joined_as_they_were_cut() {
    let mut low = filled(0..3000);
    let mut middle = low.split_off(&1000);
    let mut high = middle.split_off(&2000);
    let address = |map: &CTreeMap<usize, usize>, key: usize| std::ptr::from_ref(&map[&key]).addr();
    let at = [
        address(&low, 500),
        address(&middle, 1500),
        address(&high, 2500),
    ];
    low.append(&mut middle);
    low.append(&mut high);
    assert_eq!(
        [500, 1500, 2500].map(|key| address(&low, key)),
        at,
        "entries moved"
    );
    assert_eq!((low.check(), low.len()), (Ok(()), 3000));
}

#[test]
fn a_window_that_moves_on_holds_little_more_than_it_needs() {
    let before = held_bytes();
    let (len, mut window) = (2000, filled(0..2000));
    let most = 8 * (held_bytes() - before);
    for start in (0..40_000).step_by(len / 2) {
        window.extend((start + len..start + len + len / 2).map(|key| (key, key)));
        let newer = window.split_off(&(start + len / 2));
        window = newer;
        assert_eq!((window.check(), window.len()), (Ok(()), len));
        assert!(
            held_bytes() - before < most,
            "{} bytes",
            held_bytes() - before
        );
    }
}

#[test]
fn an_order_that_lies_makes_wrong_joins_and_nothing_worse() {
    use std::cmp::Ordering;

    thread_local! {
        static COMPARISONS: std::cell::Cell<u64> = const { std::cell::Cell::new(1) };
    }
    #[derive(PartialEq, Eq)]
    struct Liar(Box<usize>);
    impl PartialOrd for Liar {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Liar {
        fn cmp(&self, other: &Self) -> Ordering {
            let number = COMPARISONS.get().wrapping_mul(0x9E37_79B9_7F4A_7C15);
            COMPARISONS.set(number.rotate_left(7));
            match number >> 61 {
                0 => Ordering::Less,
                1 => Ordering::Greater,
                _ => self.0.cmp(&other.0),
            }
        }
    }
    let before = held_bytes();
    let len = if cfg!(miri) { 400 } else { 1500 };
    for round in 0..if cfg!(miri) { 4 } else { 200 } {
        // One by one: std's sort, of what is collected, panics when it finds out.
        let inserted = |start| {
            let mut map = CTreeMap::new();
            for key in start..start + len {
                map.insert(Liar(Box::new(key)), key);
            }
            map
        };
        let (mut map, mut other) = (inserted(0), inserted(round * len / 50));
        let mut upper = map.split_off(&Liar(Box::new(len / 2)));
        map.append(&mut other);
        upper.append(&mut map);
        for key in 0..len / 4 {
            upper.remove(&Liar(Box::new(key * 3)));
        }
        assert!(other.is_empty() && map.is_empty());
        assert_eq!(upper.iter().count(), upper.len());
    }
    assert_eq!(held_bytes(), before);
}
