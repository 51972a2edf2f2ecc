//! A global allocator that is written in C: by the last digit of a size, its functions have the
//! names of mimalloc or of jemalloc.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;

unsafe extern "C" {
    fn mi_malloc_aligned(size: usize, alignment: usize) -> *mut u8;
    fn mi_zalloc_aligned(size: usize, alignment: usize) -> *mut u8;
    fn mi_realloc_aligned(old: *mut u8, size: usize, alignment: usize) -> *mut u8;
    fn mi_free(old: *mut u8);
    fn _rjem_malloc(size: usize) -> *mut u8;
    fn _rjem_calloc(count: usize, size: usize) -> *mut u8;
    fn _rjem_realloc(old: *mut u8, size: usize) -> *mut u8;
    fn _rjem_sdallocx(old: *mut u8, size: usize, flags: i32);
}

struct Both;

#[global_allocator]
static GLOBAL: Both = Both;

// SAFETY: each function does what its name says, and sizes of `realloc` keep their last digit.
unsafe impl GlobalAlloc for Both {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout that is not empty.
        unsafe {
            match layout.size() % 10 {
                1 => mi_malloc_aligned(layout.size(), layout.align()),
                2 => _rjem_malloc(layout.size()),
                _ => System.alloc(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises a layout that is not empty.
        unsafe {
            match layout.size() % 10 {
                1 => mi_zalloc_aligned(layout.size(), layout.align()),
                2 => _rjem_calloc(1, layout.size()),
                _ => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by its size `old` came from the allocator that is called, and stays there.
        unsafe {
            match layout.size() % 10 {
                1 => mi_realloc_aligned(old, size, layout.align()),
                2 => _rjem_realloc(old, size),
                _ => System.realloc(old, layout, size),
            }
        }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: by its size `old` came from the allocator that is called.
        unsafe {
            match layout.size() % 10 {
                1 => mi_free(old),
                2 => _rjem_sdallocx(old, layout.size(), 0),
                _ => System.dealloc(old, layout),
            }
        }
    }
}

fn main() {
    for digit in [1, 2] {
        let mut list: Vec<u8> = black_box(Vec::with_capacity(4320 + digit));
        list.push(1);
        list.reserve_exact(6320 + digit - list.len());
        black_box(&list);
        let zeros = vec![0_u8; 3330 + digit];
        black_box(&zeros);
    }
}
