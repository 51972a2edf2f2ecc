//! The fuzzer's bytes as a program of the property tests' operations, run against their shadow.
//!
//! Every choice takes as few bytes as hold it, so that a byte changed changes one thing; a program
//! ends with its bytes.
#![no_main]

#[path = "../../tests/all/operation.rs"]
mod operation;
#[path = "../../tests/all/shadow.rs"]
mod shadow;

use libfuzzer_sys::fuzz_target;
use operation::{Choices, Op, World};

#[global_allocator]
static GLOBAL: ccmalloc::CcMalloc = ccmalloc::CcMalloc::new();

/// More live objects than this are thinned out: long inputs should reach new states, not fill
/// memory.
const LIVE_MAX: usize = 2000;

/// What is left of the input.
struct Bytes<'a>(&'a [u8]);

impl Choices for Bytes<'_> {
    fn number(&mut self) -> usize {
        // How many bytes follow: numbers of objects and sizes are small, addresses are not.
        let len = match self.byte() {
            small @ 0..128 => return usize::from(small),
            128..192 => 2,
            192..248 => 3,
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

fuzz_target!(|input: &[u8]| {
    let mut bytes = Bytes(input);
    let mut world = World::default();
    let mut large = 0;
    while !bytes.0.is_empty() {
        let op = Op::any(&mut bytes);
        // Megabytes that are filled and compared tell little more the tenth time.
        if op.is_large() {
            large += 1;
            if large > 10 {
                continue;
            }
        }
        world.run(&op);
        if world.len() > LIVE_MAX {
            world.run(&Op::Thin(2));
        }
    }
    world.finish();
});
