//! Allocation and frees without layouts, as C does it: against a shadow, and the edges.

use std::ptr::{NonNull, null_mut};

use ccmalloc::{Policy, check, raw};
use quickcheck::{Arbitrary, Gen, quickcheck};

#[derive(Clone, Debug)]
enum Op {
    Allocate {
        bytes: usize,
        hint: usize,
    },
    AllocateWith {
        bytes: usize,
        hint: usize,
    },
    AllocateAligned {
        bytes: usize,
        align_log2: u8,
    },
    Zeroed {
        bytes: usize,
    },
    Reallocate {
        object: usize,
        bytes: usize,
        hint: usize,
    },
    Free {
        object: usize,
    },
    FreeElsewhere {
        object: usize,
    },
    Check,
}

fn any_bytes(g: &mut Gen) -> usize {
    let bits = match u8::arbitrary(g) {
        0 => 22,
        1..5 => 17,
        8..24 => 13,
        _ => *g.choose(&[3, 4, 5, 6, 7, 8, 10]).unwrap(),
    };
    // Miri fills and checks a few thousand bytes a second.
    let bits = if cfg!(miri) { bits.min(9) } else { bits };
    usize::arbitrary(g) % (1 << bits)
}

impl Arbitrary for Op {
    fn arbitrary(g: &mut Gen) -> Self {
        let object = usize::arbitrary(g);
        let hint = usize::arbitrary(g);
        let bytes = any_bytes(g);
        match u8::arbitrary(g) % 64 {
            0..=20 => Op::Allocate { bytes, hint },
            21..=26 => Op::AllocateWith { bytes, hint },
            27..=28 => Op::AllocateAligned {
                bytes,
                align_log2: *g.choose(&[0, 3, 4, 5, 6, 9, 12, 16, 21]).unwrap(),
            },
            29..=32 => Op::Zeroed { bytes },
            33..=44 => Op::Reallocate {
                object,
                bytes,
                hint,
            },
            45..=61 => Op::Free { object },
            62 => Op::FreeElsewhere { object },
            _ => Op::Check,
        }
    }
}

/// A live object: address, bytes asked for, and the byte that they are filled with.
#[derive(Clone, Copy)]
struct Live {
    start: *mut u8,
    bytes: usize,
    fill: u8,
}

// SAFETY: an object is owned by the holder of the value; the allocator takes frees from any thread.
unsafe impl Send for Live {}

impl Live {
    /// Takes charge of a fresh object, and fills all of it that may be used.
    fn adopt(start: *mut u8, bytes: usize, align: usize, fill: u8) -> Self {
        assert!(!start.is_null());
        assert!(
            start.addr().is_multiple_of(align),
            "{start:?} {bytes} {align}"
        );
        // SAFETY: live.
        let usable = unsafe { raw::usable_bytes(start) };
        assert!(usable >= bytes, "{usable} < {bytes}");
        // SAFETY: all of the usable bytes may be written.
        unsafe { start.write_bytes(fill, usable) };
        Self { start, bytes, fill }
    }

    fn check(&self, bytes: usize) {
        // SAFETY: live, filled, and at least this large.
        let contents = unsafe { std::slice::from_raw_parts(self.start, bytes) };
        assert!(contents.iter().all(|&byte| byte == self.fill));
    }

    fn free(self) {
        self.check(self.bytes);
        if self.fill.is_multiple_of(2) {
            // SAFETY: live, and given up here.
            unsafe { raw::deallocate(self.start) };
        } else {
            // SAFETY: as above, with the size that it was allocated or resized with.
            unsafe { raw::deallocate_sized(self.start, self.bytes) };
        }
    }
}

#[derive(Default)]
struct World {
    live: Vec<Live>,
    step: u8,
}

impl World {
    fn hint(&self, hint: usize) -> Option<NonNull<u8>> {
        match hint % 4 {
            0 => None,
            1 => NonNull::new(std::ptr::without_provenance_mut(hint)),
            _ => self
                .live
                .get(hint / 4 % self.live.len().max(1))
                .and_then(|live| NonNull::new(live.start)),
        }
    }

    fn take(&mut self, object: usize) -> Option<Live> {
        (!self.live.is_empty()).then(|| self.live.swap_remove(object % self.live.len()))
    }

    fn run(&mut self, op: &Op) {
        self.step = self.step.wrapping_add(1);
        let fill = self.step;
        match *op {
            Op::Allocate { bytes, hint } => {
                let align = raw::natural_align(bytes);
                let start = raw::allocate(bytes, align, self.hint(hint));
                self.live.push(Live::adopt(start, bytes, align, fill));
            }
            Op::AllocateWith { bytes, hint } => {
                let policy = [Policy::Closest, Policy::FirstFit, Policy::NewBlock][hint % 3];
                let align = raw::natural_align(bytes);
                let near = self.hint(hint).unwrap_or(NonNull::dangling());
                let start = raw::allocate_with(bytes, align, near, policy);
                self.live.push(Live::adopt(start, bytes, align, fill));
            }
            Op::AllocateAligned { bytes, align_log2 } => {
                let start = raw::allocate(bytes, 1 << align_log2, None);
                self.live
                    .push(Live::adopt(start, bytes, 1 << align_log2, fill));
            }
            Op::Zeroed { bytes } => {
                let align = raw::natural_align(bytes);
                let start = raw::allocate_zeroed(bytes, align);
                assert!(!start.is_null());
                let live = Live {
                    start,
                    bytes,
                    fill: 0,
                };
                live.check(bytes);
                self.live.push(Live::adopt(start, bytes, align, fill));
            }
            Op::Reallocate {
                object,
                bytes,
                hint,
            } => {
                let hint = self.hint(hint);
                let old = self.take(object);
                let (start, kept) =
                    old.map_or((null_mut(), 0), |old| (old.start, old.bytes.min(bytes)));
                // SAFETY: null or live, and replaced by the result.
                let start = unsafe { raw::reallocate(start, bytes, hint) };
                if let Some(old) = old {
                    Live { start, ..old }.check(kept);
                }
                self.live
                    .push(Live::adopt(start, bytes, raw::natural_align(bytes), fill));
            }
            Op::Free { object } => {
                if let Some(live) = self.take(object) {
                    live.free();
                }
            }
            Op::FreeElsewhere { object } => {
                let batch: Vec<Live> = (0..4).filter_map(|_| self.take(object)).collect();
                std::thread::spawn(move || batch.into_iter().for_each(Live::free))
                    .join()
                    .unwrap();
            }
            Op::Check => check().unwrap(),
        }
    }
}

quickcheck! {
    fn any_program_without_layouts(programs: Vec<Vec<Op>>) -> bool {
        let mut world = World::default();
        for op in programs.iter().flatten() {
            world.run(op);
        }
        world.live.drain(..).for_each(Live::free);
        check().is_ok()
    }
}

#[test]
fn what_cannot_be_allocated_is_null() {
    for bytes in [
        usize::MAX,
        isize::MAX as usize + 1,
        isize::MAX as usize,
        1 << 60,
    ] {
        assert!(raw::allocate(bytes, 16, None).is_null());
        assert!(raw::allocate(bytes, 16, Some(NonNull::dangling())).is_null());
        assert!(raw::allocate_zeroed(bytes, 16).is_null());
        assert!(raw::allocate_with(bytes, 16, NonNull::dangling(), Policy::Closest).is_null());
    }
    for align in [0, 3, 24, usize::MAX] {
        assert!(raw::allocate(8, align, None).is_null(), "{align}");
    }
    let object = raw::allocate(100, 16, None);
    // SAFETY: live; a failure leaves it as it is.
    assert!(unsafe { raw::reallocate(object, usize::MAX, None) }.is_null());
    // SAFETY: still live.
    unsafe { raw::deallocate(object) };
}

#[test]
fn null_is_fine() {
    // SAFETY: null is allowed.
    unsafe {
        raw::deallocate(null_mut());
        raw::deallocate_sized(null_mut(), 100);
        assert_eq!(raw::usable_bytes(null_mut()), 0);
        let object = raw::reallocate(null_mut(), 0, None);
        assert!(!object.is_null());
        raw::deallocate(object);
    }
}

#[test]
fn sizes_of_every_kind_of_memory() {
    let hint = Some(NonNull::dangling());
    for (bytes, hint, at_least, at_most) in [
        (0, None, 1, 8),
        (24, None, 24, 32),
        (24, hint, 24, 24),
        (20, hint, 24, 24),
        (512, hint, 512, 512),
        (16_384, None, 16_384, 16_384),
        (16_385, None, 16_385, 20_480),
        (900_000, None, 900_000, 983_040),
        (5 << 20, None, 5 << 20, 6 << 20),
    ] {
        let object = raw::allocate(bytes, raw::natural_align(bytes), hint);
        let size = |object: *const u8| {
            // SAFETY: live until this turn ends.
            unsafe { raw::usable_bytes(object) }
        };
        let usable = size(object);
        assert!((at_least..=at_most).contains(&usable), "{bytes}: {usable}");
        let address = object.addr();
        let elsewhere = std::thread::scope(|scope| {
            let there = scope.spawn(move || size(std::ptr::without_provenance(address)));
            there.join().unwrap()
        });
        assert_eq!(usable, elsewhere);
        // SAFETY: live, and given up here.
        unsafe { raw::deallocate(object) };
    }
}

#[test]
fn objects_stay_where_they_have_room() {
    if !crate::alone("raw::objects_stay_where_they_have_room") {
        return;
    }
    let object = raw::allocate(40, 16, None);
    // SAFETY: live throughout; each result replaces the pointer before.
    unsafe {
        assert_eq!(
            raw::reallocate(object, 48, None),
            object,
            "room of the slab's class"
        );
        assert_eq!(
            raw::reallocate(object, 1, None),
            object,
            "too little to be worth a copy"
        );
        raw::deallocate(object);
        let hinted = raw::allocate(24, 16, Some(NonNull::dangling()));
        assert_eq!(
            raw::reallocate(hinted, 512, None),
            hinted,
            "free granules behind it"
        );
        assert_eq!(raw::usable_bytes(hinted), 512);
        let neighbour = raw::allocate(16, 16, NonNull::new(hinted));
        let moved = raw::reallocate(hinted, 4000, None);
        assert_ne!(moved, hinted);
        raw::deallocate(neighbour);
        raw::deallocate(moved);
        let large = raw::allocate(3 << 20, 16, None);
        large.write(7);
        let larger = raw::reallocate(large, 64 << 20, None);
        assert_eq!(larger.read(), 7);
        let small = raw::reallocate(larger, 100, None);
        assert_eq!(small.read(), 7);
        assert!(raw::usable_bytes(small) < 200);
        raw::deallocate(small);
    }
    check().unwrap();
}

#[test]
fn hints_work_without_layouts() {
    if !crate::alone("raw::hints_work_without_layouts") {
        return;
    }
    let root = raw::allocate(24, 16, Some(NonNull::dangling()));
    let near = raw::allocate(24, 16, NonNull::new(root));
    assert_eq!(root.addr() / 64, near.addr() / 64);
    // SAFETY: both live, and given up here.
    unsafe {
        raw::deallocate(root);
        raw::deallocate(near);
    }
}
