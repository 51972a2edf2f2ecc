//! Allocates in each way that has a type, and prints the return addresses of each allocation.
//!
//! A line is `label size address...`; the first line is the start of the program in memory.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

const MOST: usize = 64;
const DEPTH: usize = 48;

/// Addresses of the recorded stacks, their lengths and the sizes that were asked for.
static ADDRESSES: [[AtomicUsize; DEPTH]; MOST] =
    [const { [const { AtomicUsize::new(0) }; DEPTH] }; MOST];
static SIZES: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];
/// Next entry; `MOST` while nothing is recorded.
static NEXT: AtomicUsize = AtomicUsize::new(MOST);

unsafe extern "C" {
    fn backtrace(addresses: *mut *mut c_void, most: c_int) -> c_int;
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    static __executable_start: u8;
}

#[inline(never)]
fn note(size: usize) {
    let at = NEXT.swap(MOST, Relaxed);
    if at == MOST {
        return;
    }
    let mut stack = [std::ptr::null_mut(); DEPTH];
    // SAFETY: there is room for `DEPTH` addresses.
    unsafe { backtrace(stack.as_mut_ptr(), DEPTH as c_int) };
    // Without this function and its caller, `malloc`.
    for (address, slot) in stack[2..].iter().zip(&ADDRESSES[at]) {
        slot.store(address.addr(), Relaxed);
    }
    SIZES[at].store(size, Relaxed);
    NEXT.store(at + 1, Relaxed);
}

#[unsafe(no_mangle)]
extern "C" fn malloc(size: usize) -> *mut c_void {
    note(size);
    // SAFETY: `__libc_malloc` takes any size.
    unsafe { __libc_malloc(size) }
}

#[unsafe(no_mangle)]
extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    note(count * size);
    // SAFETY: `__libc_calloc` takes any count and size.
    unsafe { __libc_calloc(count, size) }
}

#[unsafe(no_mangle)]
extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    note(size);
    // SAFETY: `old` is null or libc's, as all that this program allocates.
    unsafe { __libc_realloc(old, size) }
}

/// Prints the allocations that `make` makes.
fn record<T>(label: &str, make: impl FnOnce() -> T) {
    NEXT.store(0, Relaxed);
    let made = black_box(make());
    let count = NEXT.swap(MOST, Relaxed);
    for at in 0..count {
        print!("{label} {}", SIZES[at].load(Relaxed));
        for address in &ADDRESSES[at] {
            print!(" {:x}", address.load(Relaxed));
        }
        println!();
    }
    std::mem::forget(made);
}

#[derive(Clone)]
struct Node {
    key: u64,
    next: Option<Box<Node>>,
    weight: f32,
}

enum Shape {
    Circle { radius: f64 },
    Named(String, u8),
    Empty,
}

mod inner {
    pub struct Pair<A, B> {
        pub first: A,
        pub second: B,
    }
}

trait Draw {
    fn draw(&self) -> u64;
}

impl Draw for Node {
    fn draw(&self) -> u64 {
        self.key
    }
}

fn node(key: u64) -> Node {
    Node {
        key,
        next: None,
        weight: 0.5,
    }
}

#[inline(never)]
fn boxed(key: u64) -> Box<Node> {
    Box::new(node(key))
}

#[inline(never)]
fn grown(len: u32) -> Vec<u32> {
    let mut grown = Vec::new();
    for i in 0..len {
        grown.push(black_box(i));
    }
    grown
}

fn main() {
    // The first call loads a library, which allocates.
    // SAFETY: no room is claimed.
    unsafe { backtrace(std::ptr::null_mut(), 0) };
    let mut first = [std::ptr::null_mut(); 1];
    // SAFETY: there is room for one address.
    unsafe { backtrace(first.as_mut_ptr(), 1) };
    println!("{:x}", (&raw const __executable_start).addr());
    let n = black_box(5_u32);
    record("box", || boxed(u64::from(n)));
    record("dyn", || -> Box<dyn Draw> { Box::new(node(u64::from(n))) });
    record("enum", || {
        let shapes = [
            Shape::Circle { radius: 1.0 },
            Shape::Named(String::new(), 3),
            Shape::Empty,
        ];
        shapes.map(Box::new)
    });
    record("vec", || grown(n));
    record("capacity", || Vec::<Node>::with_capacity(n as usize));
    record("macro", || vec![node(1); n as usize]);
    record("zeroed", || vec![0_u16; 100 * n as usize]);
    record("collect", || {
        (0..n).map(|i| (i, u64::from(i))).collect::<Vec<_>>()
    });
    record("slice", || vec![n; 4].into_boxed_slice());
    record("nested", || {
        let mut nested: Vec<Vec<u8>> = Vec::new();
        nested.push(Vec::new());
        nested
    });
    record("string", || {
        let mut text = String::new();
        text.push_str(black_box("hello"));
        text
    });
    record("format", || format!("{n} and {n}"));
    record("owned", || black_box("hello").to_owned());
    record("rc", || Rc::new(node(2)));
    record("arc", || Arc::new(node(3)));
    record("str", || -> Arc<str> { Arc::from(black_box("hello")) });
    record("map", || {
        let mut map = HashMap::new();
        map.insert(String::new(), u64::from(n));
        map
    });
    record("set", || {
        let mut set = HashSet::new();
        set.insert(n);
        set
    });
    record("btree", || {
        (0..n)
            .map(|i| (i, u64::from(i)))
            .collect::<BTreeMap<_, _>>()
    });
    record("bset", || {
        let mut set = BTreeSet::new();
        set.insert(n);
        set
    });
    record("deque", || {
        let mut deque = VecDeque::new();
        deque.push_back(n as u16);
        deque
    });
    record("heap", || {
        let mut heap = BinaryHeap::new();
        heap.push(i64::from(n));
        heap
    });
    record("list", || {
        let mut list = LinkedList::new();
        list.push_back(inner::Pair {
            first: n as u8,
            second: u64::from(n),
        });
        list
    });
    record("clone", || black_box(&vec![1.5_f32; 3]).clone());
}
