//! A global allocator that knows of no alignment beyond a page: large maps do without huge pages
//! then. A program of its own, since a program has one such allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use ctree::{CTreeMap, FrozenCTreeMap};

struct Pages;

static REFUSED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: `System`'s memory, or none.
unsafe impl GlobalAlloc for Pages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > 4096 {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            return ptr::null_mut();
        }
        // SAFETY: the caller promises a layout that is not empty.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, base: *mut u8, layout: Layout) {
        // SAFETY: the caller gives up an object of this layout; all are `System`'s.
        unsafe { System.dealloc(base, layout) }
    }
}

#[global_allocator]
static GLOBAL: Pages = Pages;

#[test]
fn large_maps_do_without_huge_pages() {
    const KEYS: u64 = 400_000;
    let map: CTreeMap<u64, u64> = (0..KEYS).map(|n| (3 * n, n)).collect();
    let by_trees = REFUSED.load(Ordering::Relaxed);
    assert!(by_trees > 0, "no chunk was refused");
    assert_eq!(map.check(), Ok(()));

    let frozen = FrozenCTreeMap::from(map);
    assert!(
        REFUSED.load(Ordering::Relaxed) > by_trees,
        "no block was refused"
    );
    for n in (0..KEYS).step_by(7) {
        assert_eq!(frozen.get(&(3 * n)), Some(&n));
        assert_eq!(frozen.get(&(3 * n + 1)), None);
    }
}
