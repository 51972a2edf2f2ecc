//! The programs. Each sets up its data, and returns what one round of its work is.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;

/// A round of a program's work; gives a sum of its answers.
pub(crate) type Work = Box<dyn FnMut() -> u64 + Send>;

/// What makes the work of so many rounds.
type Program = fn(u64) -> Work;

pub(crate) const PROGRAMS: &[(&str, Program)] = &[
    ("tree_find", tree_find),
    ("tree_sum", tree_sum),
    ("vec_sum", vec_sum),
    ("vec_gather", vec_gather),
    ("vec_push", vec_push),
    ("hashmap", hashmap),
    ("sort", sort),
    ("btree", btree),
    ("json", json),
    ("maps", maps),
    ("alloc", alloc),
    ("deep", deep),
    ("big_vec", big_vec),
    ("big_list", big_list),
];

/// `SplitMix64`'s step from a state to a number.
pub(crate) fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn numbers(count: u64) -> Vec<u64> {
    (0..count).map(mix).collect()
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::wrapping_add)
}

#[derive(Default)]
struct Tree(Option<Box<(u64, [Tree; 2])>>);

impl Tree {
    fn new() -> Self {
        let mut root = Tree::default();
        for key in numbers(100_000) {
            let mut place = &mut root;
            while let Tree(Some(node)) = place {
                place = &mut node.1[usize::from(key > node.0)];
            }
            place.0 = Some(Box::new((key, <[Tree; 2]>::default())));
        }
        root
    }

    fn depth(&self, key: u64) -> u64 {
        let (mut place, mut depth) = (self, 0);
        while let Some(node) = place.0.as_ref().filter(|node| node.0 != key) {
            place = &node.1[usize::from(key > node.0)];
            depth += 1;
        }
        depth
    }

    fn sum(&self) -> u64 {
        self.0.as_ref().map_or(0, |node| {
            let [left, right] = &node.1;
            left.sum().wrapping_add(right.sum()).wrapping_add(node.0)
        })
    }
}

fn tree_find(_rounds: u64) -> Work {
    let tree = Tree::new();
    Box::new(move || sum((0..100_000).map(|key| tree.depth(mix(key)))))
}

fn tree_sum(_rounds: u64) -> Work {
    let tree = Tree::new();
    Box::new(move || sum((0..5).map(|_| black_box(&tree).sum())))
}

fn vec_sum(_rounds: u64) -> Work {
    let numbers = numbers(1_000_000);
    let total = move || sum(black_box(&numbers).iter().copied());
    Box::new(move || sum((0..20).map(|_| total())))
}

fn vec_gather(_rounds: u64) -> Work {
    let numbers = numbers(1_000_000);
    let places: Vec<usize> = numbers.iter().map(|n| (n % 1_000_000) as usize).collect();
    let total = move || sum(places.iter().map(|&place| numbers[place]));
    Box::new(move || sum((0..10).map(|_| total())))
}

fn vec_push(_rounds: u64) -> Work {
    Box::new(|| {
        sum((0..5).map(|_| {
            let mut numbers = Vec::new();
            for number in 0..1_000_000_u64 {
                numbers.push(black_box(number));
            }
            numbers[numbers.len() / 2]
        }))
    })
}

/// Whose order of keys is the same in each run.
type Hashed<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

fn hashmap(_rounds: u64) -> Work {
    let keys = numbers(50_000);
    Box::new(move || {
        let mut map = Hashed::default();
        for &key in &keys {
            map.insert(key, key >> 1);
        }
        sum(keys.iter().chain(&keys).map(|key| map[key]))
    })
}

fn sort(_rounds: u64) -> Work {
    let numbers = numbers(100_000);
    Box::new(move || {
        sum((0..3).map(|_| {
            let mut sorted = numbers.clone();
            sorted.sort_unstable();
            sorted[sorted.len() / 3]
        }))
    })
}

fn btree(_rounds: u64) -> Work {
    let keys = numbers(50_000);
    Box::new(move || {
        let mut map = BTreeMap::new();
        for &key in &keys {
            map.insert(key, key >> 1);
        }
        sum(keys.iter().map(|key| map[key]))
    })
}

/// One document, of 2 MB for each round; the first round works on all of it.
fn json(rounds: u64) -> Work {
    let mut text = String::from("[0");
    while text.len() as u64 <= rounds * 2_000_000 {
        let number = mix(text.len() as u64);
        let tags = [number % 7, number % 11, number % 13];
        let start = format!(",{{\"id\":{number},\"name\":\"object {}\"", number >> 40);
        text += &format!("{start},\"tags\":{tags:?},\"on\":{}}}", number & 1 == 0);
    }
    let mut text = Some(text + "]");
    Box::new(move || {
        text.take().map_or(0, |text| {
            let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
            value.to_string().len() as u64
        })
    })
}

/// Inserts, removals and lookups in a B-tree of strings and a hash map of lists.
fn maps(_rounds: u64) -> Work {
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    let mut lists: Hashed<u64, Vec<u64>> = Hashed::default();
    let mut state = 0;
    Box::new(move || {
        sum((0..20_000).map(|_| {
            state = mix(state);
            let key = state % 10_000;
            if state >> 62 == 0 {
                names.remove(&key);
                lists.remove(&key);
            } else {
                names.entry(key).or_insert_with(|| format!("name {state}"));
                lists.entry(key).or_default().push(state);
            }
            sum(names
                .range(key..)
                .take(4)
                .map(|(_, name)| name.len() as u64))
        }))
    })
}

/// 475,000 allocations: lines of a log are split into words, words are counted, lines sorted.
fn alloc(_rounds: u64) -> Work {
    Box::new(move || {
        let (mut counts, mut lines) = (BTreeMap::new(), Vec::new());
        for number in (0..27_740).map(mix) {
            let [user, page, time] = [97, 100_003, 4093].map(|bound| number % bound);
            let line = format!("{user} get /{page} took {time} us");
            let words: Vec<String> = line.split(' ').map(str::to_uppercase).collect();
            for word in &words {
                *counts.entry(word.clone()).or_insert(0) += 1;
            }
            lines.push(words);
        }
        lines.sort_unstable();
        counts.len() as u64 + lines[1000][2].len() as u64
    })
}

/// A recursion 1,000 deep, each of whose calls reads 64 bytes.
fn deep(_rounds: u64) -> Work {
    fn walk(numbers: &[[u64; 8]]) -> u64 {
        let Some((first, rest)) = numbers.split_first() else {
            return 0;
        };
        sum(first.iter().copied()).wrapping_add(black_box(walk(rest)).rotate_left(1))
    }
    let numbers: Vec<[u64; 8]> = numbers(1000).into_iter().map(|n| [n; 8]).collect();
    Box::new(move || sum((0..200).map(|_| walk(black_box(&numbers)))))
}

/// 512 MB, written once and read twice.
fn big_vec(_rounds: u64) -> Work {
    Box::new(|| {
        let numbers = numbers(1 << 26);
        sum((0..2).map(|_| sum(black_box(&numbers).iter().copied())))
    })
}

/// 512 MB of nodes, one after the other.
fn big_list(_rounds: u64) -> Work {
    struct Node {
        numbers: [u64; 6],
        next: Option<Box<Node>>,
    }
    Box::new(|| {
        let mut list = None;
        for number in (0..1 << 23).map(mix) {
            let numbers = [number; 6];
            list = Some(Box::new(Node {
                numbers,
                next: list,
            }));
        }
        let (mut total, mut place) = (0_u64, &list);
        while let Some(node) = place {
            total = total.wrapping_add(node.numbers[3]);
            place = &node.next;
        }
        // Not by a recursion as deep as the list is long.
        while let Some(mut node) = list {
            list = node.next.take();
        }
        total
    })
}
