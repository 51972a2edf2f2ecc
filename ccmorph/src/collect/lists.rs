//! Lists that grow with a structure whose size nobody knows.

use std::collections::TryReserveError;

/// How many entries a list gets room for at first.
const FIRST: usize = 64;
/// By how much a list grows, in turn, until it has room for [`LARGE`] entries.
const STEP: usize = 32;
/// From so many entries on, lists grow to twice their size.
///
/// An allocator moves lists of that length by changing the mapping of their pages. Smaller ones it copies: grown by doubling, each entry of a small
/// structure would be copied once more than it is written, which was a twentieth of a morph's instructions, and half of its misses in a direct-mapped
/// cache, where both places fall into the same sets. Memory that is only reserved costs next to nothing.
const LARGE: usize = FIRST * STEP * STEP;

/// Adds an entry.
#[inline]
pub(crate) fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() {
        grow(list);
    }
    list.push(entry);
}

#[cold]
#[inline(never)]
fn grow<T>(list: &mut Vec<T>) {
    list.reserve_exact(more(list.capacity()));
}

/// Makes room for one more entry.
///
/// # Errors
///
/// Where there is no memory for it.
#[inline]
pub(crate) fn try_reserve_one<T>(list: &mut Vec<T>) -> Result<(), TryReserveError> {
    if list.len() < list.capacity() {
        return Ok(());
    }
    try_grow(list)
}

#[cold]
#[inline(never)]
fn try_grow<T>(list: &mut Vec<T>) -> Result<(), TryReserveError> {
    list.try_reserve_exact(more(list.capacity()))
        .or_else(|_| list.try_reserve_exact(1))
}

/// How many entries more than `capacity`, all in use, to make room for.
fn more(capacity: usize) -> usize {
    match capacity {
        0 => FIRST,
        1..LARGE => capacity * (STEP - 1),
        _ => capacity,
    }
}
