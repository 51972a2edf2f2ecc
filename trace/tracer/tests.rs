//! The tracer's tables, lock and memory within a process that is not traced: no fault is handled.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::arguments::{ARRAYS, BLOCKS, Len, NUMBERS};
use super::context::{Context, Info};
use super::lock::{LOCK, Lock};
use super::sys::{self, PAGE};
use super::zone_table::{self, Zone};
use super::{arena, events, file, memory, used_pages, wire, zones};

/// The tracer's tables are the process's: tests that use them take turns, and find no zones.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static INIT: Once = Once::new();
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    INIT.call_once(|| {
        // Of the file of events, the header alone: no event has room.
        events::MAP.store(sys::memory(PAGE), Relaxed);
        assert!(zones::init());
        arena::init();
    });
    while zone_table::count() > 0 {
        zone_table::remove(0);
    }
    turn
}

/// A context of zeros.
pub(crate) fn context() -> Context {
    // SAFETY: all of its fields are words.
    unsafe { core::mem::zeroed() }
}

fn bytes_at(address: u64, len: u64) -> Vec<u8> {
    let first = core::ptr::with_exposed_provenance(address as usize);
    // SAFETY: tests pass ranges that they have mapped.
    unsafe { core::slice::from_raw_parts(first, len as usize) }.to_vec()
}

/// Whole pages whose bytes differ from page to page.
fn pattern(pages: u64) -> (u64, Vec<u8>) {
    let start = sys::memory(pages * PAGE);
    for at in 0..pages * PAGE {
        // SAFETY: within the pages just mapped.
        unsafe { sys::fill(start + at, (at / 7 + at / PAGE) as u8, 1) };
    }
    (start, bytes_at(start, pages * PAGE))
}

const BOTH: u64 = sys::PROT_READ | sys::PROT_WRITE;

#[test]
fn entries_of_the_table_are_found_by_address() {
    fn property(places: Vec<(u8, bool)>) -> bool {
        let _turn = turn();
        let mut model = BTreeMap::new();
        for (place, is_new) in places {
            let start = u64::from(place) * 4 * PAGE;
            match (zone_table::search(start), is_new) {
                (Err(at), true) => {
                    let zone = Zone {
                        start,
                        end: start + PAGE,
                        delta: i64::from(place),
                        file: start,
                        protection: BOTH,
                    };
                    zone_table::insert(at, zone);
                    model.insert(start, i64::from(place));
                }
                (Ok(at), false) => {
                    zone_table::remove(at);
                    model.remove(&start);
                }
                (found, _) => assert_eq!(found.is_ok(), model.contains_key(&start)),
            }
        }
        let all: Vec<_> = zone_table::all()
            .map(|zone| (zone.start, zone.delta))
            .collect();
        (0..256 * 4).all(|page| {
            let first = page / 4 * 4 * PAGE;
            let expected = model.get(&first).filter(|_| page % 4 == 0).copied();
            zone_table::find(page * PAGE + 9).map(|zone| zone.delta) == expected
        }) && all.into_iter().eq(model)
    }
    quickcheck::quickcheck(property as fn(Vec<(u8, bool)>) -> bool);
}

#[test]
fn a_zone_is_mapped_twice_and_keeps_its_content() {
    let _turn = turn();
    let (start, content) = pattern(8);
    let end = start + 8 * PAGE;
    zones::take_data(start, end);
    let delta = zone_table::find(start)
        .expect("there is room for a zone")
        .delta;
    let alias = start.wrapping_add_signed(delta);
    assert_eq!(bytes_at(start, 8 * PAGE), content);
    assert_eq!(bytes_at(alias, 8 * PAGE), content);
    // SAFETY: a byte of the alias.
    unsafe { sys::fill(alias + 5, 0xee, 1) };
    assert_eq!(bytes_at(start + 5, 1), [0xee]);
    assert_eq!(zones::usable(start + 5), alias + 5);
    assert_eq!(zones::usable(end), end);
    assert!(zones::is_one_piece(start, 8 * PAGE) && !zones::is_one_piece(start, 8 * PAGE + 1));

    zones::set_protection(start + PAGE, start + 2 * PAGE, sys::PROT_READ);
    assert_eq!(zone_table::count(), 3);
    assert!(zones::may_store(start, PAGE) && !zones::may_store(start, PAGE + 1));

    // What is released is plain memory with the same content.
    zones::release(start + 4 * PAGE, end);
    assert!(!zones::touches(start + 4 * PAGE, end));
    assert_eq!(
        bytes_at(start + 4 * PAGE, 4 * PAGE),
        content[4 * PAGE as usize..]
    );

    zones::clear(start + 2 * PAGE, start + 3 * PAGE);
    assert_eq!(bytes_at(start + 2 * PAGE, PAGE), vec![0; PAGE as usize]);
    assert_eq!(
        bytes_at(start + 3 * PAGE, PAGE),
        content[3 * PAGE as usize..][..PAGE as usize]
    );

    let before = zones::forgotten();
    zones::free(start, start + 4 * PAGE, false);
    assert!(!zones::touches(start, end) && zones::forgotten() > before);
}

#[test]
fn a_child_of_fork_gets_a_copy_of_the_file() {
    let _turn = turn();
    let (start, content) = pattern(4);
    zones::take_data(start, start + 4 * PAGE);
    let copy = file::copy().expect("there is a file");
    // SAFETY: a byte of the zone.
    unsafe { sys::fill(start, 0x77, 1) };
    let old = zones::use_file(copy);
    assert_eq!(bytes_at(start, 4 * PAGE), content);
    // SAFETY: nobody has the descriptor any more.
    unsafe { sys::call(sys::CLOSE, [old, 0, 0, 0, 0, 0]) };
    zones::free(start, start + 4 * PAGE, false);
}

#[test]
fn the_arena_gives_places_that_have_aliases() {
    let _turn = turn();
    let [first, second] = [3 * PAGE, PAGE].map(|len| {
        let place = memory::allocate(len, BOTH).expect("the arena has room");
        assert!(arena::is_in(place) && !arena::has_aliases(place));
        assert!(used_pages::find(place, place + len).is_some());
        let zone = zones::find(place).expect("it is a zone");
        let alias = place.wrapping_add_signed(zone.delta);
        assert_eq!(arena::aliased(alias), Some(place));
        // SAFETY: a byte of the zone, mapped just now.
        unsafe { sys::fill(place, 9, 1) };
        assert_eq!(bytes_at(alias, 1), [9]);
        place
    });
    assert!(second >= first + 3 * PAGE);
    assert!(!arena::take(first, first + PAGE));
    for (start, len) in [(first, 3 * PAGE), (second, PAGE)] {
        zones::free(start, start + len, false);
        used_pages::remove(start, start + len);
        assert_eq!(used_pages::find(start, start + len), None);
    }
    assert!(arena::take(first, first + PAGE));
    used_pages::remove(first, first + PAGE);
}

#[test]
fn pages_in_use_are_bits() {
    let _turn = turn();
    // Behind what other tests are given.
    let base = memory::allocate(PAGE, BOTH).expect("the arena has room") + (64 << 20);
    let page = |number: u64| base + number * PAGE;
    used_pages::add(page(3), page(70));
    assert_eq!(used_pages::find(page(0), page(3)), None);
    assert_eq!(used_pages::find(page(70), page(200)), None);
    assert!(used_pages::find(page(0), page(4)) == Some(page(4)));
    used_pages::remove(page(10), page(20));
    assert_eq!(used_pages::find(page(10), page(20)), None);
    assert!(used_pages::find(page(19), page(21)).is_some());
    used_pages::remove(page(0), page(100));
    assert_eq!(used_pages::find(page(0), page(100)), None);
}

#[test]
fn the_lock_has_one_owner() {
    static COUNT: Mutex<u64> = Mutex::new(0);
    let lock = Lock::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    lock.take();
                    // Who else is here would find it locked.
                    let mut count = COUNT.try_lock().expect("the lock has one owner");
                    *count += 1;
                    drop(count);
                    lock.give();
                }
            });
        }
    });
    assert_eq!(*COUNT.lock().unwrap(), 8000);
}

#[test]
fn a_signal_for_the_owner_of_the_lock_waits() {
    let _turn = turn();
    // SAFETY: all of its fields are numbers.
    let mut info: [Info; 8] = unsafe { core::mem::zeroed() };
    let [info, ..] = &mut info;
    (info.signal, info.code) = (11, -1);
    assert!(!LOCK.keeps(info));
    LOCK.take();
    assert!(LOCK.keeps(info) && LOCK.is_mine());
    // It is not sent: as in the child of a fork.
    LOCK.forget_sent();
    LOCK.give();
    assert!(!LOCK.is_mine());
}

#[test]
fn arguments_with_memory_are_no_numbers() {
    for &(call, argument, kind, _) in BLOCKS {
        assert!(
            argument < 6 && [wire::FILL, wire::FETCH].contains(&kind),
            "{call}"
        );
        let numbers = NUMBERS.iter().find(|it| it.0 == call).map_or(0, |it| it.1);
        assert_eq!(
            numbers >> argument & 1,
            0,
            "argument {argument} of call {call}"
        );
    }
    for &(call, _) in &ARRAYS {
        let numbers = NUMBERS.iter().find(|it| it.0 == call).map_or(0, |it| it.1);
        assert_eq!(numbers >> 1 & 1, 0, "the array of call {call}");
    }
}

#[test]
fn lengths_of_arguments_are_known_before_and_after_a_call() {
    let text = c"a text";
    let arguments = [text.as_ptr() as u64, 7, 3, u64::MAX, 0, 0];
    for (len, argument, result, bytes) in [
        (Len::Argument(1, 8), 0, None, 56),
        (Len::Argument(3, 16), 0, None, ((1 << 47) - 1) * 16),
        (Len::Bits(1), 0, None, 8),
        (Len::Fixed(144), 0, Some(0), 144),
        (Len::Result(12), 1, None, 36),
        (Len::Result(12), 1, Some(2), 24),
        (Len::Text, 0, None, 7),
    ] {
        let _turn = turn();
        assert_eq!(len.bytes(&arguments, argument, result), bytes, "{argument}");
    }
}

/// Both sides compile the file, by different compilers if need be: no word is left to padding.
#[test]
fn what_is_sent_has_no_padding() {
    assert_eq!(size_of::<wire::Question>(), 5 * 8 + 16);
    assert_eq!(
        size_of::<wire::Answer>(),
        4 + 4 * wire::ACCESSES + 4 + wire::THUNK
    );
    assert_eq!(size_of::<wire::Body>(), 8 + wire::BODY);
    assert_eq!(size_of::<wire::Site>(), 4 * 8);
    assert_eq!(size_of::<wire::Elements>(), 16);
    assert_eq!(size_of::<wire::Event>(), 32);
    assert_eq!(size_of::<wire::Header>(), 16 * 8);
    assert!(size_of::<wire::Elements>() <= wire::THUNK);
}
