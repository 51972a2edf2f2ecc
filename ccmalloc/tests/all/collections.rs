//! Collections of other crates over our allocators, through each version of the allocator traits
//! that is on.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use ccmalloc::{CcMalloc, Heap, IntoThin, NewNear};

use crate::times;

/// The tests for one version of the traits.
macro_rules! suite {
    ($module:ident, $api:ident) => {
        mod $module {
            use super::*;
            use $api::alloc::Allocator;
            use $api::boxed::Box;
            use $api::vec::Vec;

            fn keeps_the_contract<A: Allocator>(allocator: A) {
                let layouts = [
                    (0, 1),
                    (0, 4096),
                    (1, 1),
                    (24, 8),
                    (24, 64),
                    (100, 16),
                    (100, 32 << 10),
                    (5000, 8),
                    (100_000, 8),
                    (100_000, 4096),
                    (3 << 20, 8),
                    (3 << 20, 4 << 20),
                ]
                .map(|(bytes, align)| Layout::from_size_align(bytes, align).unwrap());
                // Every pair takes Miri a second.
                let few = |layout: &Layout| !cfg!(miri) || [1, 16, 64].contains(&layout.align());
                for old in layouts.into_iter().filter(few) {
                    for new in layouts.into_iter().filter(few) {
                        let object = allocator.allocate_zeroed(old).unwrap();
                        assert_eq!(object.len(), old.size());
                        assert_eq!(object.cast::<u8>().addr().get() % old.align(), 0);
                        let bytes = |object: NonNull<[u8]>| {
                            // SAFETY: live, initialised, and this large.
                            unsafe {
                                std::slice::from_raw_parts(
                                    object.cast::<u8>().as_ptr(),
                                    object.len(),
                                )
                            }
                        };
                        assert!(bytes(object).iter().all(|&byte| byte == 0));
                        let grows = new.size() >= old.size();
                        // SAFETY: allocated above with `old`; grown or shrunk as the layouts say,
                        // then given up with `new`.
                        unsafe {
                            object.cast::<u8>().write_bytes(9, old.size());
                            let resized = if grows {
                                allocator.grow_zeroed(object.cast(), old, new).unwrap()
                            } else {
                                allocator.shrink(object.cast(), old, new).unwrap()
                            };
                            assert_eq!(resized.len(), new.size());
                            assert_eq!(resized.cast::<u8>().addr().get() % new.align(), 0);
                            let (kept, rest) = bytes(resized).split_at(old.size().min(new.size()));
                            assert!(kept.iter().all(|&byte| byte == 9), "{old:?} {new:?}");
                            assert!(rest.iter().all(|&byte| byte == 0), "{old:?} {new:?}");
                            let resized = if grows {
                                allocator.shrink(resized.cast(), new, old).unwrap()
                            } else {
                                allocator.grow(resized.cast(), new, old).unwrap()
                            };
                            allocator.deallocate(resized.cast(), old);
                        }
                    }
                }
            }

            #[test]
            fn every_allocator_keeps_the_contract() {
                let heap = Heap::new().unwrap();
                keeps_the_contract(CcMalloc);
                keeps_the_contract(CcMalloc.near(&heap));
                keeps_the_contract(&heap);
                keeps_the_contract(heap.near(&0));
                heap.check().unwrap();
                assert_eq!(heap.stats().large_bytes, 0);
                let too_large = Layout::from_size_align(isize::MAX as usize - 4096, 8).unwrap();
                assert!(CcMalloc.allocate(too_large).is_err());
                assert!((&heap).allocate(too_large).is_err());
            }

            #[test]
            fn boxes_are_allocated_near_and_become_thin() {
                let block = |address: *const u64| address.addr() / 64;
                let first = Box::new_near(1u64, &());
                let second = Box::new_near(2u64, &*first);
                assert_eq!(block(&*first), block(&*second));
                let third = Box::try_new_near(3u64, &*first).unwrap();
                assert_eq!(block(&*first), block(&*third));
                let near = Box::new_in(4u64, CcMalloc.near(&*first));
                assert_eq!(size_of_val(&near), 2 * size_of::<usize>());
                let thin: Box<u64, CcMalloc> = near.into_thin();
                assert_eq!(block(&*first), block(&*thin));
                assert_eq!((*first, *second, *third, *thin), (1, 2, 3, 4));

                let heap = Heap::new().unwrap();
                let opening = Box::new_in(5u64, heap.near(&())).into_thin();
                let mate: Box<u64, &Heap> = Box::new_in(6u64, heap.near(&*opening)).into_thin();
                assert_eq!(block(&*opening), block(&*mate));
                let mut numbers = Vec::with_capacity_in(3, heap.near(&*opening));
                numbers.extend([7u64, 8, 9]);
                let numbers: Vec<u64, &Heap> = numbers.into_thin();
                assert_eq!(block(&*opening), block(numbers.as_ptr()));
                assert_eq!(numbers.into_boxed_slice()[..], [7, 8, 9]);
                let letters = Vec::from_iter_in("abc".chars(), CcMalloc.near(&*first));
                let letters: Box<[char], CcMalloc> = letters.into_boxed_slice().into_thin();
                assert_eq!(letters[..], ['a', 'b', 'c']);
                drop((opening, mate));
                heap.check().unwrap();
            }

            struct Bomb<'a>(u32, &'a AtomicU32);

            impl Drop for Bomb<'_> {
                fn drop(&mut self) {
                    self.1.fetch_add(1, Ordering::Relaxed);
                    assert_ne!(self.0, 3, "a destructor that panics");
                }
            }

            #[test]
            fn destructors_may_panic_and_not_run() {
                let dropped = AtomicU32::new(0);
                let mut heap = Heap::new().unwrap();
                for round in 0..3 {
                    let mut bombs = Vec::new_in(&heap);
                    bombs.extend((0..6).map(|i| Box::new_in(Bomb(i, &dropped), &heap)));
                    // No `AssertUnwindSafe`: a reference to a heap may cross.
                    let unwound = catch_unwind(|| drop(bombs));
                    assert!(unwound.is_err());
                    heap.check().unwrap();
                    // Forgotten and leaked: their memory goes with the heap, and their destructors
                    // do not run.
                    let _ =
                        std::mem::ManuallyDrop::new(Vec::from_iter_in([Bomb(9, &dropped)], &heap));
                    let leaked = Box::leak(Box::new_in(Bomb(9, &dropped), &heap));
                    assert_eq!(leaked.0, 9);
                    assert_eq!(dropped.swap(0, Ordering::Relaxed), 6, "{round}");
                    heap.clear();
                    assert_eq!(heap.stats().chunk_bytes, 0);
                }
                drop(heap);
                assert_eq!(dropped.into_inner(), 0);
            }

            trait FromIterIn<T, A> {
                fn from_iter_in(items: impl IntoIterator<Item = T>, allocator: A) -> Self;
            }

            impl<T, A: Allocator> FromIterIn<T, A> for Vec<T, A> {
                fn from_iter_in(items: impl IntoIterator<Item = T>, allocator: A) -> Self {
                    let mut vector = Vec::new_in(allocator);
                    vector.extend(items);
                    vector
                }
            }
        }
    };
}

suite!(api2, allocator_api2);
#[cfg(feature = "allocator-api2-04")]
suite!(api2_04, allocator_api2_04);
#[cfg(feature = "nightly")]
suite!(nightly, std);

fn words_are_counted<A: allocator_api2::alloc::Allocator + Clone>(allocator: A) {
    let text = |i: usize| format!("word {}", i * i % 997);
    let mut counts = hashbrown::HashMap::new_in(allocator.clone());
    let mut model: BTreeMap<String, u32> = BTreeMap::new();
    for i in 0..times(20_000) {
        *counts.entry(text(i)).or_insert(0) += 1;
        *model.entry(text(i)).or_default() += 1;
        if i % 7 == 0 {
            assert_eq!(counts.remove(&text(i / 2)), model.remove(&text(i / 2)));
        }
    }
    assert_eq!(counts.len(), model.len());
    assert!(model.iter().all(|(word, count)| counts[word] == *count));
    let mut set = hashbrown::HashSet::new_in(allocator);
    set.extend(counts.keys().map(String::len));
    counts.shrink_to_fit();
    assert!(set.contains(&6) && !set.contains(&0));
}

#[test]
fn hashbrown_maps_live_in_every_allocator() {
    let heap = Heap::new().unwrap();
    words_are_counted(CcMalloc);
    words_are_counted(CcMalloc.near(&heap));
    words_are_counted(&heap);
    words_are_counted(heap.near(&heap));
    heap.check().unwrap();
}

#[test]
fn a_box_may_be_made_on_one_thread_and_freed_on_another() {
    use allocator_api2::boxed::Box;
    let boxes: Vec<Box<usize, ccmalloc::Near>> = (0..times(1000))
        .map(|i| Box::new_in(i, CcMalloc.near(&i)))
        .collect();
    let thin = crate::in_thread(move || {
        boxes
            .into_iter()
            .map(IntoThin::into_thin)
            .collect::<Vec<Box<usize, CcMalloc>>>()
    });
    assert!(thin.iter().enumerate().all(|(i, number)| **number == i));
    drop(thin);
    ccmalloc::check().unwrap();
}
