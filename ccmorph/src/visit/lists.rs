//! Lists that grow with a structure of unknown size.

use super::Shown;
use crate::MorphError;
use ccmodel::NO_NODE;
use std::collections::TryReserveError;

/// How many entries a list gets room for at first.
const FIRST: usize = 64;
/// By what factor a list grows until it has room for [`LARGE`] entries, and doubles from then on.
///
/// Doubling from the start would copy each entry of a small structure once more: a twentieth of a
/// morph's instructions. An allocator moves larger lists by changing the mapping of their pages.
const STEP: usize = 32;
const LARGE: usize = FIRST * STEP * STEP;

/// Links with the nodes that they own, and the parents of the nodes, by node number.
///
/// Invariants: both lists are equally long; `room` is no more than the capacity of either, nor than
/// the number of nodes that can be numbered.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    shown: Vec<Shown>,
    parents: Vec<u32>,
    room: usize,
}

impl Lists {
    /// Adds a node, or nothing when the lists cannot grow.
    #[inline]
    pub(crate) fn push(&mut self, shown: Shown, parent: u32) -> Result<(), MorphError> {
        if !self.has_room() {
            self.make_room()?;
        }
        // SAFETY: there is room: there was, or it was made.
        unsafe { self.push_within(shown, parent) };
        Ok(())
    }

    /// Whether another node can be added as it is.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.shown.len() < self.room
    }

    /// Adds a node for which there is room.
    ///
    /// # Safety
    ///
    /// [`has_room`](Lists::has_room) is true.
    #[inline]
    pub(crate) unsafe fn push_within(&mut self, shown: Shown, parent: u32) {
        // SAFETY: the list is shorter than `room`, and that is no more than its capacity
        // (invariant).
        unsafe { push_within(&mut self.shown, shown) };
        // SAFETY: as above; both lists are equally long (invariant).
        unsafe { push_within(&mut self.parents, parent) };
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> Result<(), MorphError> {
        let nodes = self.shown.len();
        let nodes_max = NO_NODE as usize - 1;
        if nodes >= nodes_max {
            return Err(MorphError::TooManyNodes);
        }
        let entry_bytes = size_of::<Shown>() + size_of::<u32>();
        let out_of_memory = |_| MorphError::OutOfMemory {
            bytes: ((nodes + 1) * entry_bytes) as u64,
        };
        try_reserve_one(&mut self.shown).map_err(out_of_memory)?;
        try_reserve_one(&mut self.parents).map_err(out_of_memory)?;
        let capacity = self.shown.capacity().min(self.parents.capacity());
        self.room = capacity.min(nodes_max);
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.shown.len()
    }

    #[inline]
    pub(crate) fn shown(&self) -> &[Shown] {
        &self.shown
    }

    #[inline]
    pub(crate) fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// Changes the place of a link. Panics when there is no node of this number.
    pub(crate) fn set_link(&mut self, number: u32, link: *mut ()) {
        self.shown[number as usize].link = link;
    }

    pub(crate) fn into_parts(self) -> (Vec<Shown>, Vec<u32>) {
        (self.shown, self.parents)
    }
}

/// Adds an entry without a look at the capacity, which takes longer than all else.
///
/// # Safety
///
/// The list's capacity is more than its length.
#[inline]
unsafe fn push_within<T>(list: &mut Vec<T>, entry: T) {
    let len = list.len();
    debug_assert!(len < list.capacity(), "{len} of {}", list.capacity());
    // SAFETY: within the capacity, by the caller's promise.
    unsafe { list.as_mut_ptr().add(len).write(entry) };
    // SAFETY: no more than the capacity; the last entry was written just now, and the others were
    // there.
    unsafe { list.set_len(len + 1) };
}

/// Makes room for one more entry, or returns an error where there is no memory for it.
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
    let more = match list.capacity() {
        0 => FIRST,
        capacity @ 1..LARGE => capacity * (STEP - 1),
        capacity => capacity,
    };
    list.try_reserve_exact(more)
        .or_else(|_| list.try_reserve_exact(1))
}
