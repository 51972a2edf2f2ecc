//! A list of buffers of four KiB in random order, each of which is read whole.
//!
//! The wait for the first line of a buffer is little beside the time for the others, which the
//! processor fetches ahead. To have the link in the first line instead of the last saves nothing.

use super::mix;
use crate::{Kind, Program};
use ccmorph::field_order;

pub(super) const PROGRAM: Program = Program {
    name: "huge_nodes",
    kind: Kind::FieldOrder,
    worth_it: false,
    note: "list of large buffers that are read whole",
    size: 40_000,
    before: |size| {
        let new = |key| Box::new(Buffer { bytes: [key; 500], next: None });
        read(size, new, |buffer| (&buffer.bytes, &mut buffer.next))
    },
    after: |size| {
        let new = |key| Box::new(Turned { next: None, bytes: [key; 500] });
        read(size, new, |buffer| (&buffer.bytes, &mut buffer.next))
    },
};

#[repr(C)]
struct Buffer {
    bytes: [u64; 500],
    next: Option<Box<Buffer>>,
}

#[field_order(size = 4008, offsets(next = 0))]
struct Turned {
    next: Option<Box<Turned>>,
    bytes: [u64; 500],
}

fn read<B>(
    size: usize,
    new: impl Fn(u64) -> Box<B>,
    fields: impl Fn(&mut B) -> (&[u64; 500], &mut Option<Box<B>>),
) -> u64 {
    let mut buffers: Vec<Box<B>> = (0..size as u64).map(new).collect();
    fastrand::Rng::with_seed(24).shuffle(&mut buffers);
    let mut first = None;
    for mut buffer in buffers {
        *fields(&mut buffer).1 = first;
        first = Some(buffer);
    }
    let mut sum = 0;
    for _ in 0..20 {
        let mut link = &mut first;
        while let Some(buffer) = link {
            let (bytes, next) = fields(buffer);
            sum = mix(sum, bytes.iter().sum());
            link = next;
        }
    }
    while let Some(mut buffer) = first {
        first = fields(&mut buffer).1.take();
    }
    sum
}
