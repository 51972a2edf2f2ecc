//! Frees from other threads: no bit is missed, none is taken twice, and no thread looks at a chunk
//! that is gone.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::{Cell, UnsafeCell};
use loom::sync::Arc;

use crate::protocol::{Dirty, DirtyNode, DirtyStack, RemoteWord};
use crate::{explore, spawn};

/// Places of a chunk that the models use, and objects of each.
const PLACES: usize = 2;
const OBJECTS: usize = 2;

/// What may be unmapped: words and objects. Each chunk is kept until the model ends, so that a late
/// look is found by loom and does no harm.
#[derive(Default)]
struct Chunk {
    /// Read by the thread that finds the chunk's metadata through an object; written when the chunk
    /// is unmapped.
    mapped: UnsafeCell<()>,
    words: [RemoteWord; PLACES],
    /// Written by the thread that has the object.
    objects: [[UnsafeCell<()>; OBJECTS]; PLACES],
    /// The owner's: which objects are free.
    free: [UnsafeCell<u64>; PLACES],
}

/// What outlives its chunks.
struct Desc {
    dirty: Dirty<Desc>,
    /// The owner's: number of the chunk in [`Heap::chunks`], or `None`.
    chunk: Cell<Option<usize>>,
}

impl DirtyNode for Desc {
    fn dirty(&self) -> &Dirty<Self> {
        &self.dirty
    }
}

struct Heap {
    stack: DirtyStack<Desc>,
    descs: [Desc; 2],
    chunks: [Chunk; 2],
}

// SAFETY: other threads touch what the allocator's other threads touch: atomics, and cells that
// loom watches.
unsafe impl Send for Heap {}
// SAFETY: other threads touch atomics, and cells that loom watches.
unsafe impl Sync for Heap {}

impl Heap {
    fn new() -> Self {
        let desc = |chunk| Desc {
            dirty: Dirty::new(),
            chunk: Cell::new(Some(chunk)),
        };
        let heap = Self {
            stack: DirtyStack::new(),
            descs: [desc(0), desc(1)],
            chunks: Default::default(),
        };
        heap.warm_up();
        heap
    }

    /// Frees and takes every object once.
    fn warm_up(&self) {
        for chunk in 0..2 {
            for place in 0..PLACES {
                for object in 0..OBJECTS {
                    self.free(chunk, chunk, place, object);
                }
            }
        }
        assert!((self.descs.iter()).all(|desc| desc.dirty.announced() == (1 << PLACES) - 1));
        assert_eq!(self.collect(), 2 * PLACES * OBJECTS);
        assert!((self.descs.iter()).all(|desc| desc.dirty.announced() == 0));
        for free in self.chunks.iter().flat_map(|chunk| &chunk.free) {
            // SAFETY: loom watches for races.
            free.with_mut(|free| unsafe { *free = 0 });
        }
    }

    /// Another thread frees an object: `ccmalloc`'s `free_remote`.
    fn free(&self, desc: usize, chunk: usize, place: usize, object: usize) {
        let chunk = &self.chunks[chunk];
        // The last use of the object, and the look at the chunk's metadata.
        chunk.objects[place][object].with_mut(|_| ());
        chunk.mapped.with(|_| ());
        assert!(chunk.words[place].set(1 << object), "no double free");
        // SAFETY: this stack only, and both live as long as the heap.
        unsafe { self.stack.announce(&self.descs[desc], place) };
    }

    /// The owner takes what there is: `ccmalloc`'s `collect_remote`. Returns how many objects that
    /// were.
    fn collect(&self) -> usize {
        let mut found = 0;
        self.stack.collect(|desc, place| {
            let Some(chunk) = desc.chunk.get() else {
                return ControlFlow::Break(());
            };
            let chunk = &self.chunks[chunk];
            let freed = chunk.words[place].take();
            for (object, cell) in chunk.objects[place].iter().enumerate() {
                if freed >> object & 1 == 1 {
                    // The first use after the free.
                    cell.with_mut(|_| ());
                }
            }
            chunk.free[place].with_mut(|free| {
                // SAFETY: loom watches for races.
                let free = unsafe { &mut *free };
                assert_eq!(*free & freed, 0, "a bit was taken twice");
                *free |= freed;
            });
            found += freed.count_ones() as usize;
            ControlFlow::Continue(())
        });
        found
    }

    fn is_free(&self, chunk: usize, place: usize, object: usize) -> bool {
        // SAFETY: loom watches for races.
        self.chunks[chunk].free[place].with(|free| unsafe { *free } >> object & 1 == 1)
    }
}

#[test]
fn no_bit_is_missed_while_the_owner_looks() {
    static WHILE: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freers = [0, 1].map(|object| spawn(&heap, move |heap| heap.free(0, 0, 0, object)));
        let early = heap.collect();
        WHILE.fetch_add(usize::from(early == 1), Ordering::Relaxed);
        for freer in freers {
            freer.join().unwrap();
        }
        let flag = heap.descs[0].dirty.announced() & 1;
        assert!(early == 2 || flag == 1, "what is there has its flag");
        assert_eq!(early + heap.collect(), 2);
        assert!(heap.is_free(0, 0, 0) && heap.is_free(0, 0, 1));
        assert!(heap.stack.is_empty());
    });
    assert!(WHILE.load(Ordering::Relaxed) > 0, "no look came in between");
}

#[test]
fn a_thread_that_frees_again_is_heard_again() {
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freer = spawn(&heap, move |heap| {
            heap.free(0, 0, 0, 0);
            heap.free(0, 0, 0, 1);
            heap.free(0, 0, 1, 0);
        });
        let early = heap.collect() + heap.collect();
        freer.join().unwrap();
        assert_eq!(early + heap.collect(), 3);
    });
}

#[test]
fn several_places_and_chunks_are_announced_at_once() {
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freers = [0, 1].map(|number| {
            spawn(&heap, move |heap| {
                // One chunk for both, and one more for the second.
                heap.free(0, 0, number, 0);
                if number == 1 {
                    heap.free(1, 1, 0, 0);
                }
            })
        });
        let early = heap.collect();
        for freer in freers {
            freer.join().unwrap();
        }
        assert_eq!(early + heap.collect(), 3);
    });
}

#[test]
fn a_node_that_is_pushed_again_does_not_cut_the_rest_off() {
    explore(|| {
        let heap = Arc::new(Heap::new());
        // Both chunks are on the stack, the first one on top, when the owner begins.
        heap.free(1, 1, 0, 0);
        heap.free(0, 0, 0, 0);
        let freer = spawn(&heap, move |heap| heap.free(0, 0, 0, 1));
        let early = heap.collect();
        freer.join().unwrap();
        assert_eq!(early + heap.collect(), 3);
    });
}

/// Unmaps the chunk once both objects of place 0 are free.
fn unmap_if_empty(heap: &Heap) -> bool {
    if heap.descs[0].chunk.get() != Some(0)
        || !(0..OBJECTS).all(|object| heap.is_free(0, 0, object))
    {
        return false;
    }
    heap.descs[0].chunk.set(None);
    heap.chunks[0].mapped.with_mut(|_| ());
    true
}

#[test]
fn a_chunk_is_not_looked_at_after_its_last_bit() {
    static EARLY: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freers = [0, 1].map(|object| spawn(&heap, move |heap| heap.free(0, 0, 0, object)));
        heap.collect();
        let mut unmapped = usize::from(unmap_if_empty(&heap));
        EARLY.fetch_add(unmapped, Ordering::Relaxed);
        for freer in freers {
            freer.join().unwrap();
        }
        heap.collect();
        unmapped += usize::from(unmap_if_empty(&heap));
        assert_eq!(unmapped, 1);
    });
    assert!(
        EARLY.load(Ordering::Relaxed) > 0,
        "the chunk never went while others were still freeing"
    );
}

/// The proof that the test above would notice: a thread that looks at the chunk once more.
#[test]
#[should_panic(expected = "Causality violation")]
fn a_late_look_at_a_chunk_is_noticed() {
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freers = [0, 1].map(|object| {
            spawn(&heap, move |heap| {
                heap.free(0, 0, 0, object);
                heap.chunks[0].mapped.with(|_| ());
            })
        });
        heap.collect();
        unmap_if_empty(&heap);
        for freer in freers {
            freer.join().unwrap();
        }
    });
}

#[test]
fn a_descriptor_serves_its_next_chunk_while_the_last_is_still_announced() {
    static REUSED: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freers = [0, 1].map(|object| spawn(&heap, move |heap| heap.free(0, 0, 0, object)));
        heap.collect();
        if unmap_if_empty(&heap) {
            // The first chunk's frees may still be on their way to the stack.
            REUSED.fetch_add(1, Ordering::Relaxed);
            heap.descs[0].chunk.set(Some(1));
            let late = spawn(&heap, move |heap| heap.free(0, 1, 0, 0));
            let early = heap.collect();
            late.join().unwrap();
            for freer in freers {
                freer.join().unwrap();
            }
            assert_eq!(early + heap.collect(), 1);
            assert!(heap.is_free(1, 0, 0));
        } else {
            for freer in freers {
                freer.join().unwrap();
            }
        }
    });
    assert!(
        REUSED.load(Ordering::Relaxed) > 0,
        "the descriptor was never reused"
    );
}

#[test]
fn of_two_frees_of_one_object_one_is_told() {
    explore(|| {
        let heap = Arc::new(Heap::new());
        let freers = [0, 1].map(|_| spawn(&heap, move |heap| heap.chunks[0].words[0].set(1)));
        let first = freers.map(|freer| freer.join().unwrap());
        assert_eq!(first.iter().filter(|&&first| first).count(), 1);
    });
}
