//! Random programs, with and without threads; what they are made of is in `operation`.

use std::sync::Mutex;

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

    fn objects_outlive_threads_and_are_freed_by_any(programs: Vec<Vec<Op>>) -> bool {
        const LANES: usize = 3;
        let mail: [Mailbox; LANES] = Default::default();
        let left = Mailbox::default();
        std::thread::scope(|scope| {
            for lane in 0..LANES {
                let (mail, left, programs) = (&mail, &left, &programs);
                scope.spawn(move || {
                    for lives in programs.chunks(20) {
                        std::thread::scope(|scope| {
                            let next = &mail[(lane + 1) % LANES];
                            scope.spawn(|| live(lives, &mail[lane], next, left));
                        });
                    }
                });
            }
        });
        for object in mail.iter().chain([&left]).flat_map(Mailbox::take) {
            object.free();
        }
        check().is_ok()
    }
}

/// Objects that one thread leaves to another.
#[derive(Default)]
struct Mailbox(Mutex<Vec<Object>>);

impl Mailbox {
    fn put(&self, objects: impl IntoIterator<Item = Object>) {
        self.0.lock().unwrap().extend(objects);
    }

    fn take(&self) -> Vec<Object> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Runs programs in a thread that sends half of what it frees to `next`, frees what it is sent, and
/// begins with what threads before it have `left`, as it leaves half of what it has.
fn live(programs: &[Vec<Op>], mail: &Mailbox, next: &Mailbox, left: &Mailbox) {
    let mut world = World::default();
    left.take()
        .into_iter()
        .for_each(|object| world.enter(object));
    for op in programs.iter().flatten() {
        match op {
            Op::Free(n) if n % 2 == 0 => next.put(world.give_away(*n)),
            op => world.run(op),
        }
        mail.take().into_iter().for_each(Object::free);
    }
    for n in 0..world.len() / 2 {
        left.put(world.give_away(n));
    }
    world.finish();
    check().unwrap();
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
        if step % 500 == 0 {
            // What hints, bins and regions know of must still hold.
            ccmalloc::purge();
            check().unwrap();
        }
        if world.len() > 3000 {
            world.run(&Op::Thin(2));
        }
    }
    world.finish();
}
