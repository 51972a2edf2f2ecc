//! Block operations and atomic ones on zeroed vectors, each of a size of its own.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn main() {
    let mut from = black_box(vec![0_u8; 301]);
    let mut to = black_box(vec![0_u8; 302]);
    let len = black_box(256);
    for _ in 0..100 {
        // SAFETY: both have 301 bytes at least.
        unsafe {
            ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), len);
            ptr::copy(from.as_ptr(), from.as_mut_ptr().add(8), len);
            ptr::write_bytes(to.as_mut_ptr(), 7, len);
        }
        black_box((&from, &to));
    }
    let mut words = black_box(vec![0_u64; 50]);
    // SAFETY: the word is this thread's, which uses it as an atomic one only.
    let word = unsafe { AtomicU64::from_ptr(words.as_mut_ptr()) };
    for n in 0..1000 {
        black_box(word.load(Relaxed));
        word.store(n, Relaxed);
        black_box(word.fetch_add(1, Relaxed));
        black_box(word.compare_exchange(n + 1, n, Relaxed, Relaxed).is_ok());
    }
    let text = black_box(vec![0_u8; 303]);
    let mut nowhere = File::create("/dev/null").expect("it is always there");
    nowhere.write_all(&text).expect("it takes everything");
}
