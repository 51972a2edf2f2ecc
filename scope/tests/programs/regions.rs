//! Programs for tests of regions: the first argument chooses one.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use ccscope::region;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let run: fn() -> u64 = match &*name {
        "recursion" => recursion,
        "mutual" => mutual,
        "threads" => threads,
        "panics" => panics,
        "sort" => sort,
        "maps" => maps,
        "tree" => tree,
        "matrix" => matrix,
        "strings" => strings,
        "futures" => futures,
        "independent" => independent,
        "reduction" => reduction,
        "list" => list,
        "pipeline" => pipeline,
        "divide" => divide,
        "wavefront" => wavefront,
        "local" => local,
        "variables" => variables,
        _ => || 0,
    };
    println!("{name} {}", run());
}

fn mix(state: u64) -> u64 {
    let z = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (z ^ (z >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (z >> 32)
}

#[inline(never)]
fn walk(numbers: &[u64]) -> u64 {
    match numbers {
        [] => 0,
        [first, rest @ ..] => first.wrapping_add(black_box(walk(rest)).rotate_left(1)),
    }
}

/// 1,000 deep.
fn recursion() -> u64 {
    let numbers: Vec<u64> = (0..1000).collect();
    walk(&numbers).wrapping_add(walk(&numbers[500..]))
}

#[inline(never)]
fn even(numbers: &[u64]) -> u64 {
    numbers
        .first()
        .map_or(0, |first| first ^ black_box(odd(&numbers[1..])))
}

#[inline(never)]
fn odd(numbers: &[u64]) -> u64 {
    let Some(first) = numbers.first() else {
        return 1;
    };
    first ^ black_box(leaf(numbers)) ^ black_box(even(&numbers[1..]))
}

#[inline(never)]
fn leaf(numbers: &[u64]) -> u64 {
    black_box(numbers)[numbers.len() / 2]
}

fn mutual() -> u64 {
    let numbers: Vec<u64> = (0..200).collect();
    even(&numbers) ^ odd(&numbers)
}

#[inline(never)]
fn sum(numbers: &[u64]) -> u64 {
    numbers
        .iter()
        .fold(0, |sum, number| sum.wrapping_add(*number))
}

/// Threads that share a vector, one after the other and side by side.
fn threads() -> u64 {
    let numbers: Arc<Vec<u64>> = Arc::new((0..5000).collect());
    let total = Arc::new(Mutex::new(0_u64));
    for _ in 0..2 {
        let one = |from: usize| {
            let (numbers, total) = (numbers.clone(), total.clone());
            thread::spawn(move || {
                let own: Vec<u64> = numbers[from..].to_vec();
                *total.lock().unwrap() += sum(&own) ^ sum(&numbers);
            })
        };
        let threads: Vec<_> = (0..4).map(|index| one(index * 1000)).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    }
    let total = *total.lock().unwrap();
    total
}

#[inline(never)]
fn fails(numbers: &[u64], depth: u64) -> u64 {
    if depth == 0 {
        assert!(numbers.is_empty(), "as it should");
    }
    numbers[0] + black_box(fails(&numbers[1..], depth - 1))
}

fn panics() -> u64 {
    std::panic::set_hook(Box::new(|_| ()));
    let numbers: Vec<u64> = (0..100).collect();
    let mut total = 0;
    for depth in 1..20 {
        let _region = region!("attempt");
        let result = catch_unwind(AssertUnwindSafe(|| fails(&numbers, depth)));
        total += u64::from(result.is_err()) + sum(&numbers);
    }
    total
}

fn sort() -> u64 {
    let mut numbers: Vec<u64> = (0..2000).map(mix).collect();
    let _region = region!("sort");
    numbers.sort_unstable();
    numbers[700]
}

#[inline(never)]
fn look_up(map: &BTreeMap<u64, u64>, key: u64) -> u64 {
    map.get(&key).copied().unwrap_or(1)
}

fn maps() -> u64 {
    let mut map = BTreeMap::new();
    let mut hash: HashMap<u64, Vec<u64>, std::hash::BuildHasherDefault<std::hash::DefaultHasher>> =
        HashMap::default();
    for key in (0..1000).map(mix) {
        map.insert(key, key >> 3);
        hash.entry(key % 64).or_default().push(key);
    }
    let found: u64 = (0..1000).map(|key| look_up(&map, mix(key)) & 0xFF).sum();
    found + hash.values().map(|list| list.len() as u64).sum::<u64>()
}

struct Node {
    key: u64,
    children: [Option<Box<Node>>; 2],
}

#[inline(never)]
fn insert(mut place: &mut Option<Box<Node>>, key: u64) {
    while let Some(node) = place {
        place = &mut node.children[usize::from(key > node.key)];
    }
    *place = Some(Box::new(Node {
        key,
        children: [None, None],
    }));
}

#[inline(never)]
fn depth(node: &Option<Box<Node>>) -> u64 {
    let depths = |node: &Node| {
        let [left, right] = &node.children;
        1 + black_box(depth(left)).max(black_box(depth(right)))
    };
    node.as_deref().map_or(0, depths)
}

fn tree() -> u64 {
    let mut root = None;
    for key in (0..500).map(mix) {
        insert(&mut root, key);
    }
    depth(&root)
}

const SIDE: usize = 24;

#[inline(never)]
fn multiply(a: &[u64], b: &[u64], into: &mut [u64], block: usize) {
    for from in (0..SIDE).step_by(block) {
        for row in 0..SIDE {
            let _region = region!("row");
            for column in from..from + block {
                let product = |at: usize| a[row * SIDE + at].wrapping_mul(b[at * SIDE + column]);
                into[row * SIDE + column] = (0..SIDE).map(product).fold(0, u64::wrapping_add);
            }
        }
    }
}

fn matrix() -> u64 {
    let numbers = |seed| {
        (0..SIDE * SIDE)
            .map(|at| mix(at as u64 + seed))
            .collect::<Vec<u64>>()
    };
    let (a, b, mut into) = (numbers(1), numbers(2), numbers(3));
    for block in [SIDE, SIDE / 4] {
        let _whole = region!("whole");
        multiply(&a, &b, &mut into, block);
    }
    sum(&into)
}

#[inline(never)]
fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_uppercase).collect()
}

fn strings() -> u64 {
    let mut text = String::new();
    for number in 0..300 {
        text += &format!("{number} ");
    }
    let mut words = words(&text);
    words.sort();
    words.concat().len() as u64
}

/// A future that is ready when it is polled for the third time; each time it touches memory.
struct Steps<'a> {
    left: u64,
    numbers: &'a [u64],
    sum: u64,
}

impl Future for Steps<'_> {
    type Output = u64;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<u64> {
        let _region = region!("step");
        let at = self.left as usize * 100;
        self.sum += sum(&self.numbers[at..at + 150]);
        self.left = self.left.saturating_sub(1);
        match self.left {
            0 => Poll::Ready(self.sum),
            _ => Poll::Pending,
        }
    }
}

/// Polls two futures in turns, in two threads.
fn futures() -> u64 {
    let both = |seed: u64| {
        let numbers: Vec<u64> = (0..1000).map(|number| number ^ seed).collect();
        let steps = |left| Steps {
            left,
            numbers: &numbers,
            sum: 0,
        };
        let (mut first, mut second) = (pin!(steps(3)), pin!(steps(5)));
        let mut context = Context::from_waker(Waker::noop());
        let (mut done, mut total) = ([false; 2], 0);
        while !done.iter().all(|done| *done) {
            for (which, future) in [&mut first, &mut second].into_iter().enumerate() {
                if !done[which]
                    && let Poll::Ready(sum) = future.as_mut().poll(&mut context)
                {
                    total += sum;
                    done[which] = true;
                }
            }
        }
        total
    };
    let other = thread::spawn(move || both(1));
    both(2) + other.join().unwrap()
}

/// Writes and reads an array on the stack, all within its bounds.
#[inline(never)]
fn array(seed: u64) -> u64 {
    let mut numbers = [0_u64; 512];
    for (number, at) in numbers.iter_mut().zip(seed..) {
        *number = mix(at);
    }
    numbers[black_box(7)]
}

fn local() -> u64 {
    array(black_box(1))
}

thread_local! {
    static NUMBERS: Cell<[u64; 100]> = const { Cell::new([0; 100]) };
}
static GLOBAL: [AtomicU64; 1000] = [const { AtomicU64::new(0) }; 1000];

#[inline(never)]
fn count() -> u64 {
    let numbers = NUMBERS.get().map(|number| number + 1);
    NUMBERS.set(numbers);
    for number in &GLOBAL {
        number.fetch_add(numbers[0], Relaxed);
    }
    GLOBAL[black_box(7)].load(Relaxed)
}

/// Counts in thread-local variables of the first thread and another, and in global ones.
fn variables() -> u64 {
    count() + thread::spawn(count).join().unwrap()
}

// Loops whose parallelism is known, each body a region: `UNITS` of them, or as they say.

const UNITS: usize = 64;

/// None depends on another.
fn independent() -> u64 {
    let mut numbers: Vec<u64> = (0..UNITS as u64).collect();
    for number in &mut numbers {
        let _region = region!("unit");
        *number = mix(black_box(*number));
    }
    sum(&numbers)
}

/// Each adds to one sum, which the compiler keeps in a register.
fn reduction() -> u64 {
    let numbers: Vec<u64> = (0..UNITS as u64).collect();
    let mut total = 0_u64;
    for number in &numbers {
        let _region = region!("unit");
        total = mix(total ^ number);
    }
    total
}

struct Link {
    number: u64,
    next: Option<Box<Link>>,
}

/// Each finds its node by the one before.
fn list() -> u64 {
    let mut first = None;
    for number in 0..UNITS as u64 {
        first = Some(Box::new(Link {
            number,
            next: first,
        }));
    }
    let (mut place, mut total) = (first.as_deref(), 0_u64);
    while let Some(link) = place {
        let _region = region!("unit");
        total ^= mix(link.number);
        place = link.next.as_deref();
    }
    total
}

/// Twenty items pass through three stages, each of which has a state.
fn pipeline() -> u64 {
    let (mut items, mut states): (Vec<u64>, Vec<u64>) = ((0..20).collect(), vec![0; 3]);
    for item in &mut items {
        for state in &mut states {
            let _region = region!("unit");
            *state = mix(*black_box(&mut *item) ^ *black_box(&mut *state));
            *item ^= *state;
        }
    }
    sum(&items)
}

/// Pairs are added, then pairs of sums, and so on.
fn divide() -> u64 {
    let mut numbers: Vec<u64> = (0..UNITS as u64).collect();
    let mut step = 1;
    while step < UNITS {
        for at in (0..UNITS).step_by(2 * step) {
            let _region = region!("unit");
            numbers[at] += black_box(&numbers)[at + step];
        }
        step *= 2;
    }
    numbers[0]
}

/// Each of 8 times 8 cells needs those above and on its left.
fn wavefront() -> u64 {
    let mut cells = vec![1_u64; 81];
    for at in (10..81).filter(|at| at % 9 != 0) {
        let _region = region!("unit");
        cells[at] = black_box(&cells)[at - 9] ^ black_box(&cells)[at - 1];
    }
    cells[80]
}
