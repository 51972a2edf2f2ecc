//! Slabs of every class: each object of a slab is found, at its place, once; also after some of
//! them have been freed.

use std::alloc::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::NonNull;

use ccmalloc::Heap;

const SLOT_BYTES: usize = 64 << 10;

/// Each size that has a class of its own.
fn class_sizes() -> impl Iterator<Item = usize> {
    let quarters = (6..15).flat_map(|log2| (1..=4).map(move |n| (1 << log2) + (n << (log2 - 2))));
    (8..=64).step_by(8).chain(quarters)
}

/// Numbers that look random, the same each time.
fn scattered(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below
    }
}

/// Allocates an object, and notes it under its slot.
fn take(heap: &Heap, layout: Layout, slots: &mut BTreeMap<usize, BTreeSet<usize>>) -> NonNull<u8> {
    let object = heap.alloc(layout, None).unwrap();
    let address = object.addr().get();
    let (slot, offset) = (address / SLOT_BYTES, address % SLOT_BYTES);
    assert!(
        offset.is_multiple_of(layout.size()) && offset + layout.size() <= SLOT_BYTES,
        "{layout:?} at {address:#x}"
    );
    assert!(
        slots.entry(slot).or_default().insert(offset),
        "{address:#x} twice"
    );
    object
}

#[test]
fn every_class_fills_its_slabs_and_fills_them_again() {
    assert_eq!(class_sizes().count(), 44);
    for bytes in class_sizes().step_by(if cfg!(miri) { 11 } else { 1 }) {
        let heap = Heap::new().unwrap();
        let layout = Layout::from_size_align(bytes, 8).unwrap();
        let in_slab = SLOT_BYTES / bytes;
        let mut slots = BTreeMap::new();
        let mut objects: Vec<_> = (0..3 * in_slab)
            .map(|_| take(&heap, layout, &mut slots))
            .collect();
        assert!(slots.values().all(|slot| slot.len() == in_slab), "{bytes}");
        let mut below = scattered(bytes as u64);
        for round in 0..6 {
            let freed = below(objects.len() - 1) + 1;
            for _ in 0..freed {
                let object = objects.swap_remove(below(objects.len()));
                let address = object.addr().get();
                let slot = slots.get_mut(&(address / SLOT_BYTES)).unwrap();
                assert!(slot.remove(&(address % SLOT_BYTES)));
                // SAFETY: allocated with this layout, and given up here.
                unsafe { heap.dealloc(object, layout) };
            }
            heap.check().unwrap();
            objects.extend((0..freed).map(|_| take(&heap, layout, &mut slots)));
            heap.check().unwrap();
            // A slab that had become empty may have moved to another slot.
            slots.retain(|_, slot| !slot.is_empty());
            assert!(
                slots.len() == 3 && slots.values().all(|slot| slot.len() == in_slab),
                "{bytes}, round {round}"
            );
        }
        for object in objects {
            // SAFETY: allocated with this layout, and given up here.
            unsafe { heap.dealloc(object, layout) };
        }
        heap.check().unwrap();
    }
}
