//! The table of [zones](super::zones), under the tracer's [lock](super::lock::LOCK).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sys;

/// A part of the program's memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zone {
    /// First byte.
    pub(crate) start: u64,
    /// Behind the last.
    pub(crate) end: u64,
    /// How far above it lies the alias.
    pub(crate) delta: i64,
    /// Where it lies in the file.
    pub(crate) file: u64,
    /// What the program may do with it.
    pub(crate) protection: u64,
}

/// Most zones. Each takes two of the 65,530 mappings that a process may have; the other half is for
/// what is not traced.
pub(crate) const MOST: usize = 1 << 14;
/// Entries that only zones which are split may take.
pub(crate) const SPARE: usize = 2;
static ZONES: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Before all else.
pub(crate) fn init() {
    ZONES.store(sys::memory((MOST * size_of::<Zone>()) as u64), Relaxed);
}

/// Where entry `at` of the table lies. Entries are only copied in and out: no reference into the
/// table lives that another could meet.
fn slot(at: usize) -> *mut Zone {
    let first = core::ptr::with_exposed_provenance_mut::<Zone>(ZONES.load(Relaxed) as usize);
    first.wrapping_add(at)
}

/// How many there are.
pub(crate) fn count() -> usize {
    COUNT.load(Relaxed) as usize
}

/// Entry `at`; they are in order of addresses.
pub(crate) fn get(at: usize) -> Option<Zone> {
    // SAFETY: the table's first `COUNT` entries are whole, and only who holds the lock is here.
    (at < count()).then(|| unsafe { slot(at).read() })
}

/// Changes entry `at`.
pub(crate) fn set(at: usize, zone: Zone) {
    assert!(at < count());
    // SAFETY: within the table, which only who holds the lock accesses.
    unsafe { slot(at).write(zone) };
}

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = Zone> {
    (0..).map_while(get)
}

/// Index of the zone that contains `address`, or of the one behind it.
pub(crate) fn search(address: u64) -> Result<usize, usize> {
    let (mut low, mut high) = (0, count());
    while low < high {
        let middle = low.midpoint(high);
        match get(middle) {
            Some(zone) if zone.end <= address => low = middle + 1,
            _ => high = middle,
        }
    }
    match get(low) {
        Some(zone) if zone.start <= address => Ok(low),
        _ => Err(low),
    }
}

/// The zone that contains `address`.
pub(crate) fn find(address: u64) -> Option<Zone> {
    search(address).ok().and_then(get)
}

/// Where `address` may be accessed: in the alias if it is in a zone.
pub(crate) fn usable(address: u64) -> u64 {
    find(address).map_or(address, |zone| address.wrapping_add_signed(zone.delta))
}

/// Puts a zone before entry `at`.
pub(crate) fn insert(at: usize, zone: Zone) {
    let count = count();
    if count == MOST {
        sys::die(b"the program has too many mappings");
    }
    // SAFETY: both are within the table, which has room for one more.
    unsafe { slot(at).copy_to(slot(at + 1), count - at) };
    COUNT.store(count as u64 + 1, Relaxed);
    set(at, zone);
}

/// Takes entry `at` out.
pub(crate) fn remove(at: usize) {
    let count = count();
    // SAFETY: both are within the table.
    unsafe { slot(at + 1).copy_to(slot(at), count - at - 1) };
    COUNT.store(count as u64 - 1, Relaxed);
}

/// The part of a zone from `start` to `end`.
pub(crate) fn part(zone: &Zone, start: u64, end: u64) -> Zone {
    let file = zone.file + (start - zone.start);
    Zone {
        start,
        end,
        file,
        ..*zone
    }
}
