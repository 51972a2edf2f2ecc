//! Random programs, with and without threads; what they are made of is in `operation`.

use std::sync::mpsc;

use ccmalloc::check;
use quickcheck::{Arbitrary, Gen, quickcheck};

use crate::operation::{Choices, Op, World};
use crate::shadow::Object;

impl Choices for Gen {
    fn number(&mut self) -> usize {
        usize::arbitrary(self)
    }

    fn byte(&mut self) -> u8 {
        u8::arbitrary(self)
    }
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        Op::any(g)
    }
}

quickcheck! {
    fn any_program_keeps_contents_apart(programs: Vec<Vec<Op>>) -> bool {
        let mut world = World::default();
        for op in programs.iter().flatten() {
            world.run(op);
            check().unwrap();
        }
        world.finish();
        true
    }

    fn objects_may_be_freed_by_any_thread(programs: Vec<Vec<Op>>) -> bool {
        const THREADS: usize = 3;
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..THREADS).map(|_| mpsc::channel::<Object>()).unzip();
        std::thread::scope(|scope| {
            for (number, receiver) in receivers.into_iter().enumerate() {
                let programs = &programs;
                let next = senders[(number + 1) % THREADS].clone();
                scope.spawn(move || {
                    let mut world = World::default();
                    for op in programs.iter().flatten() {
                        // Half of the frees are left to the neighbour, who may end before it gets
                        // to them.
                        match op {
                            Op::Free(n) if n % 2 == 0 => {
                                if let Some(object) = world.give_away(*n)
                                    && let Err(back) = next.send(object)
                                {
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
        if step % 16 != 0 && op.is_large() {
            continue;
        }
        world.run(&op);
        if step % 32 == 0 {
            check().unwrap();
        }
        if world.len() > 3000 {
            world.run(&Op::Thin(2));
        }
    }
    world.finish();
}
