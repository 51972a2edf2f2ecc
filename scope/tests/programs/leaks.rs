//! Programs in Rust with and without leaks, by number.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::rc::{Rc, Weak};
use std::sync::{Arc, Mutex, OnceLock};

struct Node {
    next: RefCell<Option<Rc<Node>>>,
    parent: RefCell<Weak<Node>>,
}

fn node() -> Rc<Node> {
    Rc::new(Node {
        next: RefCell::new(None),
        parent: RefCell::new(Weak::new()),
    })
}

/// Overwrites what calls before have left on the stack.
#[inline(never)]
fn clear() {
    black_box([0_u8; 16_384]);
}

#[inline(never)]
fn circle() {
    let (a, b) = (node(), node());
    *a.next.borrow_mut() = Some(Rc::clone(&b));
    *b.next.borrow_mut() = Some(a);
}

#[inline(never)]
fn weak_circle() {
    let (a, b) = (node(), node());
    *a.next.borrow_mut() = Some(Rc::clone(&b));
    *b.parent.borrow_mut() = Rc::downgrade(&a);
}

#[inline(never)]
fn forget() {
    std::mem::forget(black_box(vec![String::from("a text that is on the heap"); 5]));
}

#[inline(never)]
fn keep() {
    static KEPT: OnceLock<Mutex<HashMap<u32, Arc<str>>>> = OnceLock::new();
    let map = KEPT.get_or_init(Mutex::default);
    map.lock().unwrap().extend((0..100).map(|n| (n, Arc::from(n.to_string()))));
}

#[inline(never)]
fn leak_for_ever() {
    static KEPT: OnceLock<&'static [u64]> = OnceLock::new();
    KEPT.get_or_init(|| Box::leak(black_box(vec![1_u64; 50]).into_boxed_slice()));
}

#[inline(never)]
fn threads() {
    let map: BTreeMap<u32, String> = (0..50).map(|n| (n, n.to_string())).collect();
    let thread = std::thread::spawn(move || black_box(map).len());
    assert_eq!(thread.join().unwrap(), 50);
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("1") => circle(),
        Some("2") => weak_circle(),
        Some("3") => forget(),
        Some("4") => keep(),
        Some("5") => leak_for_ever(),
        Some("6") => threads(),
        _ => {}
    }
    clear();
}
