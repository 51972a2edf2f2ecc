//! The fuzzer's bytes as a program of the property tests' operations, run on a map of one of many
//! types and on a `BTreeMap`.
//!
//! The first byte says which types. Every choice takes as few bytes as hold it, so that a byte
//! changed changes one thing; a program ends with its bytes.
#![no_main]

#[path = "../../tests/all/dynamic/kinds.rs"]
mod kinds;
#[path = "../../tests/all/dynamic/operation.rs"]
mod operation;
#[path = "../../tests/all/dynamic/program.rs"]
mod program;

use std::cmp::Reverse;

use ctree::{CTreeMap, TotalF64};
use kinds::{Counted, Headed, Huge, Key, Plain, Value, Weightless};
use libfuzzer_sys::fuzz_target;
use operation::{Choices, Op};
use program::World;

/// What is left of the input.
struct Bytes<'a>(&'a [u8]);

impl Choices for Bytes<'_> {
    fn number(&mut self) -> usize {
        // Numbers of keys and counts take two bytes at most, patterns of ends eight.
        let len = match self.byte() {
            small @ 0..160 => return usize::from(small),
            160..248 => 2,
            _ => 8,
        };
        (0..len).fold(0, |number, _| number << 8 | usize::from(self.byte()))
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }
}

fn run<K: Key, V: Value>(make: fn() -> CTreeMap<K, V>, bytes: &mut Bytes<'_>) {
    let alive = Counted::alive();
    let mut world = World::new(make);
    while !bytes.0.is_empty() {
        world.run(&Op::any(bytes));
    }
    world.finish();
    assert_eq!(Counted::alive(), alive);
}

fuzz_target!(|input: &[u8]| {
    let bytes = &mut Bytes(input);
    match bytes.byte() % 14 {
        0 => run::<u8, Huge>(CTreeMap::new, bytes),
        1 => run::<u64, u64>(CTreeMap::new, bytes),
        2 => run::<u64, Huge>(CTreeMap::new, bytes),
        3 => run::<u64, Huge>(CTreeMap::with_ranks, bytes),
        4 => run::<i32, Weightless>(CTreeMap::with_ranks, bytes),
        5 => run::<char, ()>(CTreeMap::new, bytes),
        6 => run::<TotalF64, Counted>(CTreeMap::new, bytes),
        7 => run::<String, Huge>(CTreeMap::new, bytes),
        8 => run::<(u32, u32), u64>(CTreeMap::new, bytes),
        9 => run::<Plain, Huge>(CTreeMap::new, bytes),
        10 => run::<Headed, Huge>(CTreeMap::with_heads, bytes),
        11 => run::<Headed, ()>(CTreeMap::with_heads, bytes),
        12 => run::<Reverse<u64>, Counted>(CTreeMap::with_ranks, bytes),
        _ => run::<(), Counted>(CTreeMap::new, bytes),
    }
});
