//! Random programs of allocations from threads, heaps and C, with every kind of hint, compared with
//! a shadow.
//!
//! One enum of operations serves the property tests and the fuzz target (`ccmalloc/fuzz`): both
//! make operations from [`Choices`], the one from random numbers, the other from the fuzzer's
//! bytes.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use ccmalloc::{Heap, Policy, Region, cc_alloc, cc_alloc_with, check, near, raw};

use crate::shadow::{CLAIMS, Home, Object};

const POLICIES: [Policy; 3] = [Policy::Closest, Policy::FirstFit, Policy::NewBlock];

/// Addresses of objects, for hints from other threads.
static PUBLISHED: [AtomicUsize; 64] = [const { AtomicUsize::new(0) }; 64];

/// The source of an operation's numbers.
pub(crate) trait Choices {
    /// Any number.
    fn number(&mut self) -> usize;
    /// A number from 0 to 255.
    fn byte(&mut self) -> u8;

    /// One of a list of at most 256.
    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }
}

/// What a new object is to lie near.
#[derive(Clone, Debug)]
pub(crate) enum Hint {
    None,
    /// A live object, by number.
    Live(usize),
    /// Some bytes into or past a live object.
    Near(usize, usize),
    /// An address freed some time ago.
    Stale(usize),
    /// An object of another thread, which may have freed it.
    Theirs(usize),
    /// Any number.
    Wild(usize),
    /// A local variable.
    Stack,
}

impl Hint {
    pub(crate) fn any(choices: &mut impl Choices) -> Self {
        match choices.byte() % 12 {
            0 => Hint::None,
            1..=6 => Hint::Live(choices.number()),
            7 => Hint::Near(choices.number(), choices.number() % 8192),
            8 => Hint::Stale(choices.number()),
            9 => Hint::Theirs(choices.number()),
            10 => Hint::Wild(choices.number()),
            _ => Hint::Stack,
        }
    }
}

/// One step of a program. Numbers of objects and heaps are taken modulo how many there are.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// An object of the thread, of C or of a heap, as `door` says.
    Alloc {
        bytes: usize,
        align_log2: u8,
        hint: Hint,
        door: u8,
        heap: usize,
    },
    Free(usize),
    Resize {
        object: usize,
        bytes: usize,
        hint: Hint,
    },
    /// Makes a heap, unless there are six.
    Make(u8),
    Drop(usize),
    Clear(usize),
    /// Boxes and a vector of the standard library, under an ambient hint.
    Ambient {
        hint: Hint,
        count: u8,
    },
    /// An object at a place of the current region, which is reserved first if there is none.
    Place {
        offset: usize,
        bytes: usize,
    },
    /// The end of the current region.
    Settle,
    /// Frees every n-th object: leaves holes all over.
    Thin(usize),
    /// Frees every n-th object in another thread, which ends then.
    ThinElsewhere(usize),
    Check,
}

pub(crate) fn any_bytes(choices: &mut impl Choices) -> usize {
    // Mostly small, now and then past each boundary; the largest are rare, since they are filled
    // and checked byte by byte.
    let bits = match choices.byte() {
        0 => 21,
        1..4 => 17,
        4..12 => choices.one_of(&[12, 14, 15]),
        _ => choices.one_of(&[3, 4, 5, 6, 6, 7, 8, 9, 10]),
    };
    choices.number() % (1 << bits)
}

impl Op {
    pub(crate) fn any(choices: &mut impl Choices) -> Self {
        match choices.byte() % 64 {
            0..=27 => Op::Alloc {
                bytes: any_bytes(choices),
                align_log2: choices
                    .one_of(&[0, 0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7, 9, 12, 14, 16, 21]),
                hint: Hint::any(choices),
                door: choices.byte(),
                heap: choices.number(),
            },
            28..=48 => Op::Free(choices.number()),
            49..=54 => Op::Resize {
                object: choices.number(),
                bytes: any_bytes(choices),
                hint: Hint::any(choices),
            },
            55 => Op::Make(choices.byte()),
            56 => match choices.byte() % 2 {
                0 => Op::Drop(choices.number()),
                _ => Op::Clear(choices.number()),
            },
            57 => Op::Ambient {
                hint: Hint::any(choices),
                count: choices.byte() % 16,
            },
            58 | 59 => Op::Place {
                offset: choices.number() % (2 * Region::SEGMENT_BYTES + 64),
                bytes: choices.number() % (Region::OBJECT_BYTES_MAX + 64),
            },
            60 => Op::Settle,
            61 => Op::Thin(choices.number() % 4 + 2),
            62 => Op::ThinElsewhere(choices.number() % 4 + 2),
            _ => Op::Check,
        }
    }

    /// Whether it makes an object that takes long to fill.
    pub(crate) fn is_large(&self) -> bool {
        matches!(self, Op::Alloc { bytes, align_log2, .. } if *bytes > 1 << 14 || *align_log2 > 14)
    }
}

/// A thread's objects and heaps.
#[derive(Default)]
pub(crate) struct World {
    live: Vec<Object>,
    freed: Vec<NonNull<u8>>,
    /// Heaps with their numbers, which are not used again.
    heaps: Vec<(usize, Heap)>,
    region: Option<Region>,
    step: usize,
}

impl World {
    fn hint(&self, hint: &Hint) -> Option<NonNull<u8>> {
        let live = |n: usize| {
            let object = self.live.get(n % self.live.len().max(1));
            object.map(|object| object.start)
        };
        match *hint {
            Hint::None => None,
            Hint::Live(n) => live(n),
            Hint::Near(n, offset) => {
                live(n).and_then(|start| NonNull::new(start.as_ptr().wrapping_add(offset)))
            }
            Hint::Stale(n) => self.freed.get(n % self.freed.len().max(1)).copied(),
            Hint::Theirs(n) => {
                let address = PUBLISHED[n % PUBLISHED.len()].load(Ordering::Relaxed);
                NonNull::new(std::ptr::without_provenance_mut(address))
            }
            Hint::Wild(address) => NonNull::new(std::ptr::without_provenance_mut(address)),
            Hint::Stack => Some(NonNull::from(&self.step).cast()),
        }
    }

    /// How many objects are alive.
    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    fn adopt(&mut self, start: NonNull<u8>, layout: Layout, home: Home) {
        // SAFETY: the callers have just allocated it there with this layout.
        let object = unsafe { Object::adopt(start, layout, home, self.step * 37) };
        self.enter(object);
    }

    /// Adds a live object, for whose frees no heap is needed.
    pub(crate) fn enter(&mut self, object: Object) {
        if self.step.is_multiple_of(32) {
            PUBLISHED[self.step / 32 % PUBLISHED.len()]
                .store(object.start.addr().get(), Ordering::Relaxed);
        }
        if object.has_memory() {
            CLAIMS.insert(&object);
        }
        self.live.push(object);
    }

    /// Takes object number `n` out, to be freed by the caller.
    fn take(&mut self, n: usize) -> Option<Object> {
        if self.live.is_empty() {
            return None;
        }
        let object = self.live.swap_remove(n % self.live.len());
        if object.has_memory() {
            CLAIMS.remove(&object);
            self.freed.push(object.start);
        }
        Some(object)
    }

    fn take_every(&mut self, n: usize) -> Vec<Object> {
        let mut taken = Vec::new();
        let mut index = 0;
        while index < self.live.len() {
            taken.extend(self.take(index));
            index += n - 1;
        }
        taken
    }

    /// As [`take`](World::take), for a caller that may outlive the heaps; frees objects of these.
    pub(crate) fn give_away(&mut self, n: usize) -> Option<Object> {
        let object = self.take(n)?;
        if !matches!(object.home, Home::Heap(_)) {
            return Some(object);
        }
        self.free(object);
        None
    }

    fn heap(&self, home: Home) -> Option<&Heap> {
        let heap = self
            .heaps
            .iter()
            .find(|(number, _)| home == Home::Heap(*number));
        heap.map(|(_, heap)| heap)
    }

    fn free(&mut self, object: Object) {
        match self.heap(object.home) {
            Some(heap) => {
                let (start, layout) = object.release();
                // SAFETY: allocated in this heap with this layout, and given up here.
                unsafe { heap.dealloc(start, layout) };
            }
            None => object.free(),
        }
    }

    /// Checks the contents of all objects of a heap, whose memory goes with it.
    fn release_all_of(&mut self, heap: usize) {
        let home = Home::Heap(self.heaps[heap].0);
        for n in (0..self.live.len()).rev() {
            if self.live[n].home == home
                && let Some(object) = self.take(n)
            {
                object.release();
            }
        }
    }

    fn alloc(&mut self, layout: Layout, hint: Option<NonNull<u8>>, door: u8, heap: usize) {
        let (bytes, align) = (layout.size(), layout.align());
        let policy = POLICIES[usize::from(door) / 8 % 3];
        let mut home = if door % 8 < 3 { Home::Thread } else { Home::C };
        let start = match door % 8 {
            0 => cc_alloc_with(layout, hint, policy),
            1 | 2 => cc_alloc(layout, hint),
            3 => NonNull::new(raw::allocate(bytes, align, hint)),
            4 => NonNull::new(raw::allocate_zeroed(bytes, align)),
            5 => {
                let near = hint.unwrap_or(NonNull::dangling());
                NonNull::new(raw::allocate_with(bytes, align, near, policy))
            }
            _ if self.heaps.is_empty() => return,
            last => {
                let (number, heap) = &self.heaps[heap % self.heaps.len()];
                home = Home::Heap(*number);
                if last == 7 {
                    heap.alloc_zeroed(layout, hint)
                } else {
                    heap.alloc(layout, hint)
                }
            }
        };
        let start = start.expect("memory");
        if matches!(door % 8, 4 | 7) {
            // SAFETY: fresh, zeroed, and this large.
            let contents = unsafe { std::slice::from_raw_parts(start.as_ptr(), bytes) };
            assert!(contents.iter().all(|&byte| byte == 0));
        }
        for (number, heap) in &self.heaps {
            let is_its = home == Home::Heap(*number) && bytes > 0;
            assert_eq!(heap.contains(start.as_ptr()), is_its, "{layout:?}");
        }
        self.adopt(start, layout, home);
    }

    fn resize(&mut self, n: usize, bytes: usize, hint: Option<NonNull<u8>>) {
        let Some(mut object) = self.take(n) else {
            return;
        };
        if let Some(heap) = self.heap(object.home).filter(|_| !n.is_multiple_of(4)) {
            let layout = Layout::from_size_align(bytes, object.layout.align()).unwrap();
            object.resize_by(layout, |start, old| {
                // SAFETY: allocated in this heap with this layout; replaced by the result.
                unsafe { heap.realloc(start, old, layout, hint) }.expect("memory")
            });
            return self.enter(object);
        }
        let is_of_heap = matches!(object.home, Home::Heap(_));
        if is_of_heap && !object.has_memory() {
            return;
        }
        // Unsafe code may resize an object of a heap as any other. It may then stay where it was,
        // or become the thread's.
        object.resize(bytes, hint);
        if is_of_heap {
            object.free();
        } else {
            self.enter(object);
        }
    }

    pub(crate) fn run(&mut self, op: &Op) {
        self.step += 1;
        match *op {
            Op::Alloc {
                bytes,
                align_log2,
                ref hint,
                door,
                heap,
            } => {
                let layout = Layout::from_size_align(bytes, 1 << align_log2).unwrap();
                self.alloc(layout, self.hint(hint), door, heap);
            }
            Op::Free(n) => {
                if let Some(object) = self.take(n) {
                    self.free(object);
                }
            }
            Op::Resize {
                object,
                bytes,
                ref hint,
            } => self.resize(object, bytes, self.hint(hint)),
            Op::Make(policy) if self.heaps.len() < 6 => {
                let heap = match POLICIES.get(usize::from(policy) % 4) {
                    Some(&policy) => Heap::with_policy(policy),
                    None => Heap::new(),
                };
                self.heaps.push((self.step, heap.expect("memory")));
            }
            Op::Drop(heap) if !self.heaps.is_empty() => {
                let heap = heap % self.heaps.len();
                self.release_all_of(heap);
                drop(self.heaps.swap_remove(heap));
            }
            Op::Clear(heap) if !self.heaps.is_empty() => {
                let heap = heap % self.heaps.len();
                self.release_all_of(heap);
                let heap = &mut self.heaps[heap].1;
                heap.clear();
                assert_eq!(heap.stats(), Default::default());
                heap.check().unwrap();
            }
            Op::Make(_) | Op::Drop(_) | Op::Clear(_) => {}
            Op::Ambient { ref hint, count } => {
                let hint = self.hint(hint);
                // `near` takes only the address of a reference, which is good for no byte.
                let unit = hint.map_or(&(), |hint| {
                    // SAFETY: not null, aligned to 1, and nothing lies behind a `()`.
                    unsafe { hint.cast::<()>().as_ref() }
                });
                let (boxes, texts) = near(unit, || {
                    let boxes: Vec<Box<usize>> = (0..usize::from(count)).map(Box::new).collect();
                    let texts: Vec<String> = boxes.iter().map(|n| "x".repeat(9 * **n)).collect();
                    (boxes, texts)
                });
                let mut pairs = boxes.iter().zip(&texts);
                assert!(pairs.all(|(n, text)| text.len() == 9 * **n));
            }
            Op::Place { offset, bytes } => {
                let region = self.region.get_or_insert_with(|| {
                    Region::reserve(2 * Region::SEGMENT_BYTES).expect("memory")
                });
                let layout = Layout::from_size_align(bytes + 1, 8).unwrap();
                let start = NonNull::new(region.alloc_at(offset & !7, layout)).expect("memory");
                self.adopt(start, layout, Home::Thread);
            }
            Op::Settle => self.region = None,
            Op::Thin(n) => {
                for object in self.take_every(n) {
                    self.free(object);
                }
            }
            Op::ThinElsewhere(n) => {
                let taken = self.take_every(n);
                std::thread::spawn(|| {
                    taken.into_iter().for_each(Object::free);
                    check().unwrap();
                })
                .join()
                .unwrap();
            }
            Op::Check => {
                for (_, heap) in &self.heaps {
                    heap.check().unwrap();
                }
                check().unwrap();
            }
        }
    }

    pub(crate) fn finish(mut self) {
        // Half of the heaps as they are, the rest object by object.
        for heap in (0..self.heaps.len()).filter(|heap| heap % 2 == 0) {
            self.release_all_of(heap);
        }
        self.run(&Op::Settle);
        self.run(&Op::Thin(1));
        self.run(&Op::Check);
        drop(self);
        check().unwrap();
    }
}
