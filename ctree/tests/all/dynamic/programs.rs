//! Random programs on every type of map: many short ones, shrunk when they fail, and a long one.

use std::borrow::Borrow;

use ctree::CTreeMap;
use quickcheck::{Arbitrary, Gen, QuickCheck};

use super::kinds::{Counted, Headed, Huge, Key, Plain, Value, Weightless};
use super::operation::{Choices, Op};
use super::program::World;
use crate::memory::held_bytes;
use crate::times;

impl Choices for Gen {
    fn number(&mut self) -> usize {
        usize::arbitrary(self)
    }

    fn byte(&mut self) -> u8 {
        u8::arbitrary(self)
    }
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Op {
        Op::any(g)
    }
}

/// Runs a program on a new map, and asserts that nothing is left of it afterwards. Gives the most
/// levels that the map has had.
fn run<K: Key, V: Value>(
    make: fn() -> CTreeMap<K, V>,
    ops: impl Iterator<Item = impl Borrow<Op>>,
) -> usize {
    // The texts that some keys point at are made now, not within.
    let _first = K::nth(0);
    let (alive, held) = (Counted::alive(), held_bytes());
    let mut world = World::new(make);
    for op in ops {
        world.run(op.borrow());
    }
    let levels = world.finish();
    assert_eq!(Counted::alive(), alive);
    assert_eq!(held_bytes(), held);
    levels
}

macro_rules! programs {
    ($($name:ident: $key:ty => $value:ty, $make:expr, levels $levels:literal;)*) => {$(
        #[test]
        fn $name() {
            fn holds(ops: Vec<Op>) -> bool {
                run::<$key, $value>($make, ops.iter());
                true
            }
            QuickCheck::new()
                .rng(Gen::new(if cfg!(miri) { 12 } else { 120 }))
                .tests(times(40) as u64)
                .quickcheck(holds as fn(Vec<Op>) -> bool);
            // The tests are about trees, not about single nodes. One in two hundred of the long
            // programs clears its map before that has grown.
            let mut g = Gen::new(100);
            let steps = times(2000);
            let grown = (0..10).any(|_| {
                let long = std::iter::repeat_with(|| Op::arbitrary(&mut g)).take(steps);
                run::<$key, $value>($make, long) >= $levels || steps < 2000
            });
            assert!(grown, "no map had {} levels", $levels);
        }
    )*};
}

// Those kinds of keys and values that nodes lay out differently, since each pair is compiled again.
// The sets and the fuzz target have other types.
programs! {
    integers_to_integers: u64 => u64, CTreeMap::new, levels 3;
    integers_to_integers_with_ranks: u64 => u64, CTreeMap::with_ranks, levels 3;
    integers_to_huge_values: u64 => Huge, CTreeMap::new, levels 4;
    integers_to_huge_values_with_ranks: u64 => Huge, CTreeMap::with_ranks, levels 4;
    signed_integers_to_weightless_values: i32 => Weightless, CTreeMap::new, levels 2;
    signed_integers_to_weightless_values_with_ranks:
        i32 => Weightless, CTreeMap::with_ranks, levels 2;
    texts_to_counted_values: String => Counted, CTreeMap::new, levels 3;
    texts_to_counted_values_with_ranks: String => Counted, CTreeMap::with_ranks, levels 3;
    borrowed_texts_to_integers: &'static str => u64, CTreeMap::new, levels 3;
    pairs_to_integers: (u32, u32) => u64, CTreeMap::new, levels 3;
    pairs_to_integers_with_ranks: (u32, u32) => u64, CTreeMap::with_ranks, levels 3;
    keys_without_heads_to_huge_values: Plain => Huge, CTreeMap::new, levels 4;
    keys_without_heads_to_huge_values_with_ranks: Plain => Huge, CTreeMap::with_ranks, levels 4;
    keys_with_heads_to_counted_values: Headed => Counted, CTreeMap::with_heads, levels 3;
    nothing_to_weightless_values: () => Weightless, CTreeMap::new, levels 1;
    nothing_to_weightless_values_with_ranks: () => Weightless, CTreeMap::with_ranks, levels 1;
}
