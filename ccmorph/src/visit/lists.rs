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
const NODES_MAX: usize = NO_NODE as usize - 1;

/// Links with the nodes that they own, and the parents of the nodes, by node number.
///
/// Both lists are equally long, and shorter than [`NO_NODE`].
#[derive(Debug, Default)]
pub(crate) struct Lists {
    shown: Vec<Shown>,
    parents: Vec<u32>,
}

impl Lists {
    /// Adds a node, or nothing when the lists cannot grow.
    pub(crate) fn push(&mut self, shown: Shown, parent: u32) -> Result<(), MorphError> {
        let nodes = self.shown.len();
        if nodes >= NODES_MAX {
            return Err(MorphError::TooManyNodes);
        }
        let entry_bytes = size_of::<Shown>() + size_of::<u32>();
        let bytes = ((nodes + 1) * entry_bytes) as u64;
        let reserved = try_reserve_one(&mut self.shown).and(try_reserve_one(&mut self.parents));
        reserved.map_err(|_| MorphError::OutOfMemory { bytes })?;
        self.shown.push(shown);
        self.parents.push(parent);
        Ok(())
    }

    /// Adds a node if there is room, and returns whether there was.
    #[inline]
    pub(crate) fn push_within(&mut self, shown: Shown, parent: u32) -> bool {
        let has_room = self.shown.len() < self.shown.capacity()
            && self.parents.len() < self.parents.capacity()
            && self.shown.len() < NODES_MAX;
        if has_room {
            self.shown.push(shown);
            self.parents.push(parent);
        }
        has_room
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
