//! The arena: address space from which `mmap` gets memory, in stripes, each with a stripe of
//! aliases behind it. Under the tracer's [lock](super::lock::LOCK).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{sys, used_pages};

/// Between two ranges of program memory in the arena and their aliases.
pub(crate) const STRIPE: u64 = 1 << 30;
/// Pairs of stripes.
const PAIRS: u64 = 16;

/// Where it lies, and what was given of it last.
static START: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Before all else.
pub(crate) fn init() {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let len = 2 * PAIRS * STRIPE + STRIPE;
    // SAFETY: it is put where nothing is.
    let arena = unsafe { sys::map(sys::far(len), len, sys::PROT_NONE, flags, -1, 0) };
    if !sys::failed(arena) {
        let arena = arena.cast_unsigned().next_multiple_of(STRIPE);
        START.store(arena, Relaxed);
        NEXT.store(arena, Relaxed);
        used_pages::init(arena, arena + 2 * PAIRS * STRIPE);
    }
}

/// Takes a place for memory: its address, or `None` if there is no room.
pub(crate) fn place(len: u64) -> Option<u64> {
    let arena = START.load(Relaxed);
    if arena == 0 || len > STRIPE {
        return None;
    }
    let mut next = NEXT.load(Relaxed);
    // Places that are free again are found in a second round.
    for _ in 0..2 {
        while next + len <= arena + 2 * PAIRS * STRIPE {
            let stripe = (next - arena) / STRIPE;
            if stripe % 2 == 1 || (next + len - 1 - arena) / STRIPE != stripe {
                next = arena + (stripe + 1) * STRIPE;
                continue;
            }
            if let Some(behind) = used_pages::find(next, next + len) {
                next = behind;
                continue;
            }
            if !place_at(next, next + len) {
                return None;
            }
            NEXT.store(next + len, Relaxed);
            return Some(next);
        }
        next = arena;
    }
    None
}

/// Takes a place where nothing is, for memory; false if that cannot be there.
pub(crate) fn place_at(start: u64, end: u64) -> bool {
    let arena = START.load(Relaxed);
    let stripe = (start - arena) / STRIPE;
    if stripe % 2 == 1 || (end - 1 - arena) / STRIPE != stripe {
        return false;
    }
    used_pages::add(start, end);
    true
}

/// Takes a place of the arena, among program memory or aliases, for something else; false if it is
/// not free.
pub(crate) fn take(start: u64, end: u64) -> bool {
    let arena = START.load(Relaxed);
    let stripe = start.wrapping_sub(arena) / STRIPE;
    if !is_in(start) || (end - 1 - arena) / STRIPE != stripe {
        return false;
    }
    // Of an alias, what it would be the alias of.
    let own = (stripe % 2) * STRIPE;
    let is_free = used_pages::find(start - own, end - own).is_none()
        && used_pages::find(start, end).is_none();
    if is_free {
        used_pages::add(start - own, end - own);
        used_pages::add(start, end);
    }
    is_free
}

/// Whether a place is in the arena, where the kernel has nothing of the program.
pub(crate) fn is_in(address: u64) -> bool {
    let arena = START.load(Relaxed);
    arena != 0 && (arena..arena + 2 * PAIRS * STRIPE).contains(&address)
}

/// The end of what `address` lies in: a stripe, or what is below the arena, or behind it.
pub(crate) fn next_border(address: u64) -> u64 {
    let arena = START.load(Relaxed);
    if is_in(address) {
        arena + ((address - arena) / STRIPE + 1) * STRIPE
    } else if address < arena {
        arena
    } else {
        u64::MAX
    }
}

/// Which memory of the program `address` is, or was, the alias of: in the arena, that can be said.
pub(crate) fn aliased(address: u64) -> Option<u64> {
    (is_in(address) && has_aliases(address)).then(|| address - STRIPE)
}

/// Whether a place of the arena is for aliases.
pub(crate) fn has_aliases(address: u64) -> bool {
    (address - START.load(Relaxed)) / STRIPE % 2 == 1
}
