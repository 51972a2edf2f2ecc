//! Allocators that count, refuse, panic or give more than they were asked for.

use std::alloc::Layout;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator, Global};
use ctree::{CTreeMap, CTreeSet};

use super::kinds::{Counted, Value};

/// What an allocator does amiss.
#[derive(Clone, Copy)]
enum Fault {
    None,
    /// Refuses its n-th call, counted from 0.
    Refuse(usize),
    /// Panics at its n-th call.
    Panic(usize),
    /// Takes memory back at the n-th call for that, and panics.
    PanicFreeing(usize),
    /// Knows of no larger alignment than this.
    Align(usize),
}

/// Asserts that each piece of memory is given back once, and as what it was taken.
struct Strict {
    fault: Cell<Fault>,
    calls: Cell<usize>,
    freed: Cell<usize>,
    refused: Cell<usize>,
    live: RefCell<HashMap<usize, Layout>>,
}

impl Strict {
    fn new(fault: Fault) -> Strict {
        Strict {
            fault: Cell::new(fault),
            calls: Cell::new(0),
            freed: Cell::new(0),
            refused: Cell::new(0),
            live: RefCell::default(),
        }
    }

    fn live_bytes(&self) -> usize {
        self.live.borrow().values().map(Layout::size).sum()
    }
}

// SAFETY: memory comes from `Global` and stays valid until it is given back; copies of a `&Strict`,
// which is what maps are given, are all the same allocator.
unsafe impl Allocator for Strict {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let call = self.calls.replace(self.calls.get() + 1);
        match self.fault.get() {
            Fault::Refuse(at) if call == at => return Err(AllocError),
            Fault::Align(most) if layout.align() > most => {
                self.refused.update(|refused| refused + 1);
                return Err(AllocError);
            }
            Fault::Panic(at) if call == at => resume_unwind(Box::new("the allocator gives up")),
            _ => {}
        }
        let memory = Global.allocate(layout)?;
        let before = self
            .live
            .borrow_mut()
            .insert(memory.cast::<u8>().addr().get(), layout);
        assert_eq!(before, None);
        Ok(memory)
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        assert_eq!(
            self.live.borrow_mut().remove(&ptr.addr().get()),
            Some(layout)
        );
        // SAFETY: it was allocated by `Global` with this layout, as was just asserted.
        unsafe { Global.deallocate(ptr, layout) }
        let call = self.freed.replace(self.freed.get() + 1);
        if matches!(self.fault.get(), Fault::PanicFreeing(at) if call == at) {
            resume_unwind(Box::new("the allocator gives up"));
        }
    }
}

/// Gives more than it is asked for, and zeroes nothing.
#[derive(Clone, Copy)]
struct Generous;

fn with_room(layout: Layout) -> Layout {
    let bytes = layout.size() + 2 * layout.align();
    Layout::from_size_align(bytes, layout.align()).expect("a small layout")
}

// SAFETY: memory comes from `Global`, longer than was asked for; each length between may be given
// back, and all mean the same piece.
unsafe impl Allocator for Generous {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        let memory = Global.allocate(with_room(layout))?;
        // SAFETY: fresh, that long, and nobody else's.
        unsafe { memory.cast::<u8>().write_bytes(0xA5, memory.len()) };
        Ok(memory)
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // What was given may be given back with any size between what was asked for and what was
        // given.
        let _asked = layout;
        // SAFETY: `ctree` gives back what it asked for, of which the real layout follows.
        unsafe { Global.deallocate(ptr, with_room(layout)) }
    }
}

type Wide = [u64; 200];

/// Everything that takes nodes, in small nodes, with values that are counted.
fn work<A: Allocator + Clone>(map: &mut CTreeMap<u32, (Counted, Wide), A>) {
    let entry = |n: u32| (n, (Counted::numbered(n), [0; 200]));
    map.insert_many((0..60).map(|n| entry(n * 7 % 60)));
    let mut upper = map.split_off(&30);
    upper.extend((100..120).map(entry));
    let copy = upper.clone();
    map.append(&mut upper);
    map.retain(|key, _| key % 3 != 0);
    map.compact();
    drop(copy);
    for n in (0..120).rev() {
        map.entry(n).or_insert_with(|| entry(n).1);
    }
    while map.len() > 20 {
        map.pop_first();
    }
}

#[test]
fn every_piece_of_memory_is_given_back_as_it_was_taken() {
    let alive = Counted::alive();
    let strict = Strict::new(Fault::None);
    let mut map = CTreeMap::new_in(&strict);
    assert_eq!(strict.calls.get(), 0, "an empty map allocates");
    work(&mut map);
    assert!(strict.calls.get() > 3);
    assert_eq!(map.memory_usage(), strict.live_bytes());
    assert_eq!(map.check(), Ok(()));
    let mut entries = map.into_iter();
    assert_eq!(entries.by_ref().take(7).count(), 7);
    drop(entries);
    assert_eq!((strict.live_bytes(), Counted::alive()), (0, alive));

    let mut set = CTreeSet::with_ranks_in(&strict);
    set.extend(0..1000u16);
    assert_eq!(set.memory_usage(), strict.live_bytes());
    assert_eq!(set.get_index(500), Some(&500));
    set.clear();
    assert!(set.memory_usage() == strict.live_bytes());
    drop(set);
    assert_eq!(strict.live_bytes(), 0);
}

#[test]
fn an_allocator_may_panic_at_every_call() {
    let alive = Counted::alive();
    for at in 0.. {
        let strict = Strict::new(Fault::Panic(at));
        let mut map = CTreeMap::new_in(&strict);
        let outcome = catch_unwind(AssertUnwindSafe(|| work(&mut map)));
        assert_eq!(map.check(), Ok(()), "{at}");
        assert_eq!(map.iter().count(), map.len(), "{at}");
        // And it works again.
        strict.fault.set(Fault::None);
        work(&mut map);
        assert_eq!(map.check(), Ok(()), "{at}");
        assert_eq!(map.memory_usage(), strict.live_bytes(), "{at}");
        drop(map);
        assert_eq!((strict.live_bytes(), Counted::alive()), (0, alive), "{at}");
        if outcome.is_ok() {
            assert!(at > 3);
            break;
        }
    }
}

/// Entries and memory may be lost then, but a map holds what it says, and nothing goes twice.
#[test]
fn an_allocator_may_panic_whenever_it_takes_memory_back() {
    for at in 0.. {
        let alive = Counted::alive();
        let strict = Strict::new(Fault::PanicFreeing(at));
        let mut map = CTreeMap::new_in(&strict);
        let mut outcome = catch_unwind(AssertUnwindSafe(|| work(&mut map)));
        strict.fault.set(Fault::None);
        assert_eq!(map.check(), Ok(()), "{at}");
        assert_eq!(map.iter().count(), map.len(), "{at}");
        work(&mut map);
        assert_eq!(map.check(), Ok(()), "{at}");
        if outcome.is_ok() {
            // Whatever has not failed yet fails when the entries leave.
            strict.fault.set(Fault::PanicFreeing(at));
            outcome = catch_unwind(AssertUnwindSafe(|| {
                let mut entries = map.into_iter();
                while entries.next().is_some() && entries.next_back().is_some() {}
            }));
        } else {
            drop(map);
        }
        assert!(Counted::alive() >= alive, "{at}");
        if outcome.is_ok() {
            assert!(at > 3);
            assert_eq!((strict.live_bytes(), Counted::alive()), (0, alive));
            break;
        }
    }
}

/// Chunks of a large map are asked for on huge pages; a map does without.
#[test]
fn an_allocator_need_not_align_to_huge_pages() {
    // Large values, so that some thousand entries are a large map.
    const ENTRIES: u32 = 12_000;
    let strict = Strict::new(Fault::Align(4096));
    let mut map = CTreeMap::new_in(&strict);
    for n in 0..ENTRIES {
        let key = n.wrapping_mul(0x9E37_79B1);
        assert_eq!(map.insert(key, [key; 100]), None);
    }
    assert!(strict.refused.get() > 0);
    assert!(map.memory_usage() > 400 * ENTRIES as usize);
    assert_eq!(map.memory_usage(), strict.live_bytes());
    assert_eq!(map.check(), Ok(()));
    assert_eq!(map.len(), ENTRIES as usize);
    assert!(map.iter().all(|(&key, value)| *value == [key; 100]));
    map.compact();
    assert_eq!(map.check(), Ok(()));
    drop(map);
    assert_eq!(strict.live_bytes(), 0);
}

#[test]
fn memory_beyond_what_was_asked_for_is_not_used() {
    let alive = Counted::alive();
    let mut map = CTreeMap::new_in(Generous);
    work(&mut map);
    assert_eq!((map.len(), map.check()), (20, Ok(())));
    let theirs: BTreeMap<u32, (Counted, Wide)> = map.clone().into_iter().collect();
    assert!(map.iter().eq(&theirs));
    drop((map, theirs));
    assert_eq!(Counted::alive(), alive);
}

/// A failed allocation ends the process, as everywhere in the standard library: in a process of its
/// own.
#[test]
#[cfg(not(miri))]
fn a_refused_allocation_ends_the_process() {
    const CHILD: &str = "CTREE_TEST_REFUSE";
    if let Ok(at) = std::env::var(CHILD) {
        let strict = Strict::new(Fault::Refuse(at.parse().expect("the number of a call")));
        let mut map = CTreeMap::new_in(&strict);
        work(&mut map);
        return;
    }
    for (at, survives) in [("0", false), ("1", false), ("5", false), ("1000000", true)] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "dynamic::allocators::a_refused_allocation_ends_the_process",
            ])
            .arg("--nocapture")
            .env(CHILD, at)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), survives, "call {at}: {said}");
        assert_eq!(
            said.contains("memory allocation of"),
            !survives,
            "call {at}: {said}"
        );
    }
}
