//! Panics through code whose memory is traced: one line a case.

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// Counts drops in memory that is traced.
struct Noted(Arc<Mutex<Vec<u32>>>, u32);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0
            .lock()
            .unwrap_or_else(|it| it.into_inner())
            .push(self.1);
    }
}

trait Deeper {
    fn deeper(&self, depth: u32, dropped: &Arc<Mutex<Vec<u32>>>, seen: &mut HashMap<u32, String>);
}

struct Deep(u32);

impl Deeper for Deep {
    #[inline(never)]
    fn deeper(&self, depth: u32, dropped: &Arc<Mutex<Vec<u32>>>, seen: &mut HashMap<u32, String>) {
        let _noted = Noted(dropped.clone(), depth);
        seen.insert(depth, format!("at {depth}"));
        if depth == self.0 {
            panic!("{} seen", seen.len());
        }
        let next: Box<dyn Deeper> = Box::new(Deep(self.0));
        next.deeper(depth + 1, dropped, seen);
    }
}

fn message(why: &(dyn std::any::Any + Send)) -> String {
    let text = why.downcast_ref::<String>().cloned();
    text.or_else(|| why.downcast_ref::<&str>().map(|&it| it.to_owned()))
        .unwrap_or_default()
}

fn caught(depth: u32) -> String {
    let (dropped, mut seen) = (Arc::default(), HashMap::new());
    let body = || Deep(depth).deeper(0, &dropped, &mut seen);
    let why = panic::catch_unwind(AssertUnwindSafe(body)).unwrap_err();
    let dropped = dropped.lock().unwrap();
    format!(
        "{}, dropped {} from {:?}",
        message(&*why),
        dropped.len(),
        dropped.first()
    )
}

thread_local! {
    static NESTED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

struct Catches;

impl Drop for Catches {
    fn drop(&mut self) {
        let inner = panic::catch_unwind(|| panic!("inner"));
        NESTED.with_borrow_mut(|all| all.push(message(&*inner.unwrap_err())));
    }
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    println!("caught {}", caught(40));
    let outer = panic::catch_unwind(|| {
        let _catches = Catches;
        panic!("outer");
    });
    let inner = NESTED.with_borrow(|all| all.join(","));
    println!("nested {} {inner}", message(&*outer.unwrap_err()));
    let list = vec![1_u8; 9];
    let at = std::hint::black_box(list.len());
    let why = panic::catch_unwind(|| list[at]).unwrap_err();
    println!("bounds {}", message(&*why));
    let why = panic::catch_unwind(|| {
        RefCell::new(Some(3))
            .take()
            .filter(|it| it % 2 == 0)
            .unwrap()
    });
    println!("option {}", message(&*why.unwrap_err()));
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..4)
        .map(|at| {
            let send = send.clone();
            thread::spawn(move || {
                for turn in 0..10 {
                    send.send(caught(turn + at).len()).unwrap();
                }
                assert!(at < 2, "thread {at}");
                at
            })
        })
        .collect();
    drop(send);
    println!("sum {}", receive.iter().sum::<usize>());
    for one in threads {
        match one.join() {
            Ok(at) => println!("joined {at}"),
            Err(why) => println!("failed {}", message(&*why)),
        }
    }
    let lock = Arc::new(Mutex::new(vec![1]));
    let other = lock.clone();
    let result = thread::spawn(move || {
        let mut held = other.lock().unwrap();
        held.push(2);
        panic::resume_unwind(Box::new("resumed"));
    });
    println!("poisoned {}", message(&*result.join().unwrap_err()));
    println!(
        "poisoned {} {:?}",
        lock.is_poisoned(),
        lock.lock().unwrap_err().into_inner()
    );
}
