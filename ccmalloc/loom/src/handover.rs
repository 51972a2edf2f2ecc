//! Heaps that change owners: one owner at a time, which sees all that earlier owners wrote, and
//! finds what was freed meanwhile.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::cell::UnsafeCell;
use loom::sync::Arc;

use crate::primitive::AtomicPtr;
use crate::protocol::{Dirty, DirtyNode, DirtyStack, Linked, RemoteWord, TaggedStack};
use crate::{explore, spawn};

/// A heap, aligned as the stack's heads want it.
#[repr(align(32768))]
struct Heap {
    link: AtomicPtr<Heap>,
    /// All that an owner may write.
    state: UnsafeCell<usize>,
    stack: DirtyStack<Desc>,
    desc: Desc,
    word: RemoteWord,
}

struct Desc(Dirty<Desc>);

impl DirtyNode for Desc {
    fn dirty(&self) -> &Dirty<Self> {
        &self.0
    }
}

impl Linked for Heap {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

struct World {
    abandoned: TaggedStack<Heap>,
    heaps: Vec<Heap>,
}

// SAFETY: threads share atomics, and cells that loom watches.
unsafe impl Send for World {}
// SAFETY: threads share atomics, and cells that loom watches.
unsafe impl Sync for World {}

impl World {
    /// With `count` heaps, all of them abandoned, the first on top.
    fn new(count: usize) -> Arc<Self> {
        let world = Self {
            abandoned: TaggedStack::new(),
            heaps: (0..count)
                .map(|_| Heap {
                    link: AtomicPtr::new(std::ptr::null_mut()),
                    state: UnsafeCell::new(0),
                    stack: DirtyStack::new(),
                    desc: Desc(Dirty::new()),
                    word: RemoteWord::default(),
                })
                .collect(),
        };
        for heap in world.heaps.iter().rev() {
            world.free(heap);
            assert_eq!(heap.collect(), 1);
            world.abandon(heap);
        }
        Arc::new(world)
    }

    fn abandon(&self, heap: &Heap) {
        // SAFETY: aligned by its type, in a vector that does not change; each caller has popped the
        // heap, or is the first.
        unsafe { self.abandoned.push(heap) };
    }

    /// Another thread frees an object of the heap.
    fn free(&self, heap: &Heap) {
        assert!(heap.word.set(1));
        // SAFETY: the heap's own, and it lives as long as the stack.
        unsafe { heap.stack.announce(&heap.desc, 0) };
    }
}

impl Heap {
    /// Writes the state: a second owner at the same time would be a data race.
    fn work(&self) -> usize {
        self.state.with_mut(|state| {
            // SAFETY: loom watches for races.
            let state = unsafe { &mut *state };
            *state += 1;
            *state
        })
    }

    fn collect(&self) -> u32 {
        let mut found = 0;
        self.stack.collect(|_, _| {
            found += self.word.take().count_ones();
            ControlFlow::Continue(())
        });
        found
    }
}

/// Checks the heaps of `world` at the end of a model: each is on the stack once, and owners have
/// worked on them `turns` times in all.
fn check(world: &World, turns: usize) {
    let mut heaps: Vec<_> = std::iter::from_fn(|| world.abandoned.pop()).collect();
    heaps.sort_by_key(|heap| (&raw const **heap).addr());
    heaps.dedup_by_key(|heap| (&raw const **heap).addr());
    assert_eq!(
        heaps.len(),
        world.heaps.len(),
        "a heap was lost, or is there twice"
    );
    // `work` adds one itself.
    let worked: usize = heaps.iter().map(|heap| heap.work() - 1).sum();
    assert_eq!(worked, turns);
}

#[test]
fn a_heap_has_one_owner_at_a_time() {
    static TURNS_SEEN: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let world = World::new(2);
        let threads = [(); 2].map(|()| {
            spawn(&world, move |world| {
                let heap = world.abandoned.pop().expect("there is one for each");
                heap.work();
                world.abandon(heap);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        check(&world, 2);
        TURNS_SEEN.fetch_add(1, Ordering::Relaxed);
    });
    assert!(TURNS_SEEN.load(Ordering::Relaxed) > 10);
}

/// The ABA problem: the first thread reads the top heap and its link; the second takes that heap
/// and the next, and puts the first back.
#[test]
fn a_head_that_left_and_returned_is_noticed() {
    static BOTH_TAKEN: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let world = World::new(2);
        let slow = spawn(&world, move |world| {
            // The other may have both.
            let Some(heap) = world.abandoned.pop() else {
                BOTH_TAKEN.fetch_add(1, Ordering::Relaxed);
                return 0;
            };
            heap.work();
            world.abandon(heap);
            1
        });
        let mut turns = 0;
        let first = world.abandoned.pop();
        let second = world.abandoned.pop();
        for heap in [first, second].into_iter().flatten() {
            heap.work();
            turns += 1;
        }
        if let Some(heap) = first {
            world.abandon(heap);
        }
        if let Some(heap) = second {
            heap.work();
            turns += 1;
        }
        turns += slow.join().unwrap();
        if let Some(heap) = second {
            world.abandon(heap);
        }
        check(&world, turns);
    });
    assert!(BOTH_TAKEN.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_new_owner_sees_what_the_last_one_wrote() {
    static TAKEN_OVER: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let world = World::new(1);
        let heap = world.abandoned.pop().expect("it is there");
        let next = spawn(&world, move |world| {
            let Some(heap) = world.abandoned.pop() else {
                return 0;
            };
            assert_eq!(heap.work(), 2);
            TAKEN_OVER.fetch_add(1, Ordering::Relaxed);
            world.abandon(heap);
            1
        });
        assert_eq!(heap.work(), 1);
        world.abandon(heap);
        let turns = 1 + next.join().unwrap();
        check(&world, turns);
    });
    assert!(TAKEN_OVER.load(Ordering::Relaxed) > 0);
}

#[test]
fn looking_through_abandoned_heaps_loses_none() {
    static MET: AtomicUsize = AtomicUsize::new(0);
    explore(|| {
        let world = World::new(2);
        let visitor = spawn(&world, move |world| {
            let mut turns = 0;
            world.abandoned.visit_until(2, |heap| {
                heap.work();
                turns += 1;
                false
            });
            turns
        });
        let mut turns = 0;
        match world.abandoned.pop() {
            Some(heap) => {
                heap.work();
                turns += 1;
                world.abandon(heap);
            }
            // The visitor has both.
            None => {
                MET.fetch_add(1, Ordering::Relaxed);
            }
        }
        turns += visitor.join().unwrap();
        check(&world, turns);
    });
    assert!(MET.load(Ordering::Relaxed) > 0);
}

/// A thread ends while another frees an object of its heap, and a third takes the heap over.
#[test]
fn what_is_freed_during_a_handover_is_found() {
    static FOUND_BY: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
    explore(|| {
        let world = World::new(1);
        let heap = world.abandoned.pop().expect("it is there");
        let freer = spawn(&world, move |world| world.free(&world.heaps[0]));
        let adopter = spawn(&world, move |world| {
            let Some(heap) = world.abandoned.pop() else {
                return (0, 0);
            };
            heap.work();
            let found = heap.collect();
            world.abandon(heap);
            (1, found)
        });
        heap.work();
        let by_first = heap.collect();
        world.abandon(heap);
        freer.join().unwrap();
        let (turns, by_adopter) = adopter.join().unwrap();
        let last = world.abandoned.pop().expect("every thread has given it up");
        let by_last = last.collect();
        world.abandon(last);
        assert_eq!(by_first + by_adopter + by_last, 1);
        for (count, found) in FOUND_BY.iter().zip([by_first, by_adopter, by_last]) {
            count.fetch_add(found as usize, Ordering::Relaxed);
        }
        check(&world, 1 + turns);
    });
    assert!(
        FOUND_BY
            .iter()
            .all(|count| count.load(Ordering::Relaxed) > 0)
    );
}
