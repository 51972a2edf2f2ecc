//! Random programs of allocations with every kind of hint, against the shadow, with and without threads.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::mpsc;

use ccmalloc::{Policy, cc_alloc, cc_alloc_with, check};
use quickcheck::{Arbitrary, Gen, quickcheck};

use crate::shadow::{Object, Ranges};

#[derive(Clone, Debug)]
enum Hint {
    None,
    /// A live object, by number.
    Live(usize),
    /// Some bytes into or past a live object.
    Near(usize, usize),
    /// An address freed some time ago.
    Stale(usize),
    /// Any number.
    Wild(usize),
    /// A local variable.
    Stack,
}

#[derive(Clone, Debug)]
enum Op {
    Alloc {
        bytes: usize,
        align_log2: u8,
        hint: Hint,
        policy: u8,
    },
    Free(usize),
    Resize {
        object: usize,
        bytes: usize,
        hint: Hint,
    },
    /// Frees every n-th object: leaves holes all over.
    Thin(usize),
    Check,
}

pub(crate) fn any_bytes(g: &mut Gen) -> usize {
    // Mostly small, now and then past each boundary; the largest are rare, since they are filled and checked byte by byte.
    let bits = match u8::arbitrary(g) {
        0 => 21,
        1..4 => 17,
        4..12 => *g.choose(&[12, 14, 15]).unwrap(),
        _ => *g.choose(&[3, 4, 5, 6, 6, 7, 8, 9, 10]).unwrap(),
    };
    usize::arbitrary(g) % (1 << bits)
}

impl Arbitrary for Hint {
    fn arbitrary(g: &mut Gen) -> Self {
        match u8::arbitrary(g) % 12 {
            0 => Hint::None,
            1..=6 => Hint::Live(usize::arbitrary(g)),
            7 => Hint::Near(usize::arbitrary(g), usize::arbitrary(g) % 8192),
            8 => Hint::Stale(usize::arbitrary(g)),
            9 | 10 => Hint::Wild(usize::arbitrary(g)),
            _ => Hint::Stack,
        }
    }
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        match u8::arbitrary(g) % 32 {
            0..=15 => Op::Alloc {
                bytes: any_bytes(g),
                align_log2: *g
                    .choose(&[0, 0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7, 9, 12, 14, 16, 21])
                    .unwrap(),
                hint: Hint::arbitrary(g),
                policy: u8::arbitrary(g),
            },
            16..=26 => Op::Free(usize::arbitrary(g)),
            27..=29 => Op::Resize {
                object: usize::arbitrary(g),
                bytes: any_bytes(g),
                hint: Hint::arbitrary(g),
            },
            30 => Op::Thin(usize::arbitrary(g) % 4 + 2),
            _ => Op::Check,
        }
    }
}

#[derive(Default)]
struct World {
    live: Vec<Object>,
    ranges: Ranges,
    freed: Vec<NonNull<u8>>,
    step: usize,
}

impl World {
    fn hint(&self, hint: &Hint) -> Option<NonNull<u8>> {
        let live = |n: usize| {
            self.live
                .get(n % self.live.len().max(1))
                .map(|object| object.start)
        };
        match *hint {
            Hint::None => None,
            Hint::Live(n) => live(n),
            Hint::Near(n, offset) => {
                live(n).and_then(|start| NonNull::new(start.as_ptr().wrapping_add(offset)))
            }
            Hint::Stale(n) => self.freed.get(n % self.freed.len().max(1)).copied(),
            Hint::Wild(address) => NonNull::new(std::ptr::without_provenance_mut(address)),
            Hint::Stack => Some(NonNull::from(&self.step).cast()),
        }
    }

    fn free(&mut self, index: usize) {
        let object = self.live.swap_remove(index);
        self.ranges.remove(&object);
        self.freed.push(object.start);
        object.free();
    }

    fn run(&mut self, op: &Op) {
        self.step += 1;
        match op {
            Op::Alloc {
                bytes,
                align_log2,
                hint,
                policy,
            } => {
                let layout = Layout::from_size_align(*bytes, 1 << align_log2).unwrap();
                let hint = self.hint(hint);
                let start = match policy % 4 {
                    0 => cc_alloc_with(layout, hint, Policy::Closest),
                    1 => cc_alloc_with(layout, hint, Policy::FirstFit),
                    2 => cc_alloc_with(layout, hint, Policy::NewBlock),
                    _ => cc_alloc(layout, hint),
                }
                .expect("memory");
                // SAFETY: fresh from ccmalloc with this layout.
                let object = unsafe { Object::adopt(start, layout, self.step * 37) };
                self.ranges.insert(&object);
                self.live.push(object);
            }
            Op::Free(n) if !self.live.is_empty() => self.free(n % self.live.len()),
            Op::Resize {
                object,
                bytes,
                hint,
            } if !self.live.is_empty() => {
                let hint = self.hint(hint);
                let index = object % self.live.len();
                self.ranges.remove(&self.live[index]);
                self.live[index].resize(*bytes, hint);
                self.ranges.insert(&self.live[index]);
            }
            Op::Thin(n) => {
                let mut index = 0;
                while index < self.live.len() {
                    self.free(index);
                    index += n - 1;
                }
            }
            Op::Check => check().unwrap(),
            Op::Free(_) | Op::Resize { .. } => {}
        }
    }

    fn finish(mut self) {
        while let Some(object) = self.live.pop() {
            self.ranges.remove(&object);
            object.free();
        }
        check().unwrap();
    }
}

quickcheck! {
    fn any_program_keeps_contents_apart(programs: Vec<Vec<Op>>) -> bool {
        let mut world = World::default();
        for op in programs.iter().flatten() {
            world.run(op);
        }
        world.finish();
        true
    }

    fn objects_may_be_freed_by_any_thread(programs: Vec<Vec<Op>>) -> bool {
        const THREADS: usize = 3;
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Object>()).unzip();
        std::thread::scope(|scope| {
            for (number, receiver) in receivers.into_iter().enumerate() {
                let programs = &programs;
                let next = senders[(number + 1) % THREADS].clone();
                scope.spawn(move || {
                    let mut world = World::default();
                    for op in programs.iter().flatten() {
                        // Half of the frees are left to the neighbour, who may end before it gets to them.
                        match op {
                            Op::Free(n) if n % 2 == 0 && !world.live.is_empty() => {
                                let object = world.live.swap_remove(n % world.live.len());
                                world.ranges.remove(&object);
                                world.freed.push(object.start);
                                if let Err(back) = next.send(object) {
                                    back.0.free();
                                }
                            }
                            op => world.run(op),
                        }
                        while let Ok(object) = receiver.try_recv() {
                            object.free();
                        }
                    }
                    drop(next);
                    world.finish();
                    for object in receiver.try_iter() {
                        object.free();
                    }
                });
            }
            drop(senders);
        });
        check().is_ok()
    }
}

#[test]
fn a_long_program() {
    let mut g = Gen::new(64);
    let mut world = World::default();
    for step in 0..crate::times(40_000) {
        let op = Op::arbitrary(&mut g);
        // Large objects are rare and short-lived, so that the program stays small.
        if matches!(op, Op::Alloc { bytes, align_log2, .. } if step % 16 != 0 && (bytes > 1 << 14 || align_log2 > 14))
        {
            continue;
        }
        world.run(&op);
        if world.live.len() > 3000 {
            world.run(&Op::Thin(2));
        }
    }
    world.finish();
}
