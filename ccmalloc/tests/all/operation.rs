//! Random programs of allocations with every kind of hint, against the shadow.
//!
//! One enum of operations serves the property tests and the fuzz target (`ccmalloc/fuzz`): both
//! make operations from [`Choices`], the one from random numbers, the other from the fuzzer's
//! bytes.

use std::alloc::Layout;
use std::ptr::NonNull;

use ccmalloc::{Policy, Region, cc_alloc, cc_alloc_with, check, near};

use crate::shadow::{Object, Ranges};

/// Where an operation's numbers come from.
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
            9 | 10 => Hint::Wild(choices.number()),
            _ => Hint::Stack,
        }
    }
}

/// One step of a program. Numbers of objects are taken modulo how many there are.
#[derive(Clone, Debug)]
pub(crate) enum Op {
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
    /// Boxes and a vector of the standard library, under an ambient hint: they come and go, some
    /// within, some after.
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
            0..=29 => Op::Alloc {
                bytes: any_bytes(choices),
                align_log2: choices
                    .one_of(&[0, 0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7, 9, 12, 14, 16, 21]),
                hint: Hint::any(choices),
                policy: choices.byte(),
            },
            30..=51 => Op::Free(choices.number()),
            52..=56 => Op::Resize {
                object: choices.number(),
                bytes: any_bytes(choices),
                hint: Hint::any(choices),
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

/// A thread's objects, and what it knows of them.
#[derive(Default)]
pub(crate) struct World {
    live: Vec<Object>,
    ranges: Ranges,
    freed: Vec<NonNull<u8>>,
    region: Option<Region>,
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

    /// How many objects are alive.
    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    fn adopt(&mut self, start: NonNull<u8>, layout: Layout) {
        // SAFETY: the callers have just got it from ccmalloc with this layout.
        let object = unsafe { Object::adopt(start, layout, self.step * 37) };
        self.ranges.insert(&object);
        self.live.push(object);
    }

    /// Takes object number `n` out, to be freed by the caller.
    pub(crate) fn give_away(&mut self, n: usize) -> Option<Object> {
        if self.live.is_empty() {
            return None;
        }
        let object = self.live.swap_remove(n % self.live.len());
        self.ranges.remove(&object);
        self.freed.push(object.start);
        Some(object)
    }

    fn give_every(&mut self, n: usize) -> Vec<Object> {
        let mut given = Vec::new();
        let mut index = 0;
        while index < self.live.len() {
            given.extend(self.give_away(index));
            index += n - 1;
        }
        given
    }

    pub(crate) fn run(&mut self, op: &Op) {
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
                self.adopt(start, layout);
            }
            Op::Free(n) => {
                if let Some(object) = self.give_away(*n) {
                    object.free();
                }
            }
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
            Op::Resize { .. } => {}
            Op::Ambient { hint, count } => {
                let hint = self.hint(hint);
                // A reference is good for no byte at all: `near` only takes its address.
                let unit = hint.map_or(&(), |hint| {
                    // SAFETY: not null, aligned to 1, and nothing lies behind a `()`.
                    unsafe { hint.cast::<()>().as_ref() }
                });
                let (boxes, sums) = near(unit, || {
                    let boxes: Vec<Box<usize>> = (0..usize::from(*count)).map(Box::new).collect();
                    let sums: Vec<String> = boxes.iter().map(|n| "x".repeat(9 * **n)).collect();
                    (boxes, sums)
                });
                assert!(
                    boxes
                        .iter()
                        .zip(&sums)
                        .all(|(n, text)| text.len() == 9 * **n)
                );
            }
            Op::Place { offset, bytes } => {
                let region = self.region.get_or_insert_with(|| {
                    Region::reserve(2 * Region::SEGMENT_BYTES).expect("memory")
                });
                let layout = Layout::from_size_align(bytes + 1, 8).unwrap();
                let start = NonNull::new(region.alloc_at(offset & !7, layout)).expect("memory");
                self.adopt(start, layout);
            }
            Op::Settle => self.region = None,
            Op::Thin(n) => self.give_every(*n).into_iter().for_each(Object::free),
            Op::ThinElsewhere(n) => {
                let given = self.give_every(*n);
                std::thread::spawn(|| {
                    given.into_iter().for_each(Object::free);
                    check().unwrap();
                })
                .join()
                .unwrap();
            }
            Op::Check => check().unwrap(),
        }
    }

    pub(crate) fn finish(mut self) {
        self.give_every(1).into_iter().for_each(Object::free);
        drop(self.region);
        check().unwrap();
    }
}
