//! Links, nodes and pointers of a structure of raw pointers, as they are shown.

use super::seen::Seen;
use crate::MorphError;
use crate::collect::lists::{Lists, try_reserve_one};
use crate::collect::{Addresses, Outside, Pointer, Shown, lies_in};
use std::alloc::Layout;

/// What tells whether a node was shown before.
pub(super) trait Known {
    /// Memory for a node, at least.
    const NODE_BYTES: usize;

    /// Makes room for one more node; whether there is memory for it.
    fn try_reserve(&mut self) -> bool;

    /// Takes a node in, for which room was made. Returns whether its address is new.
    fn insert(&mut self, node: *const u8, number: u32) -> bool;

    /// The numbers by address of all nodes taken in, which are `shown`. `None` where there is no
    /// memory.
    fn into_addresses(self, shown: &[Shown]) -> Option<Addresses>;
}

impl Known for Seen {
    const NODE_BYTES: usize = Seen::ENTRY_BYTES;

    #[inline]
    fn try_reserve(&mut self) -> bool {
        Seen::try_reserve(self)
    }

    #[inline]
    fn insert(&mut self, node: *const u8, _: u32) -> bool {
        Seen::insert(self, node)
    }

    fn into_addresses(self, shown: &[Shown]) -> Option<Addresses> {
        drop(self);
        Addresses::of(shown)
    }
}

impl Known for Addresses {
    const NODE_BYTES: usize = Addresses::ENTRY_BYTES;

    fn try_reserve(&mut self) -> bool {
        Addresses::try_reserve(self, 1)
    }

    fn insert(&mut self, node: *const u8, number: u32) -> bool {
        Addresses::insert(self, node, number)
    }

    fn into_addresses(self, _: &[Shown]) -> Option<Addresses> {
        Some(self)
    }
}

/// Links, nodes and pointers as they are shown.
#[derive(Debug)]
pub(super) struct RawCollector<K> {
    pub(super) lists: Lists,
    /// Numbers of links that do not lie in the node that showed them.
    outside: Vec<u32>,
    /// Pointers to the parent of the node that showed them, and that they lie in.
    inside: Vec<Pointer>,
    /// Pointers to the parent of the node that showed them, anywhere.
    to_parents: Vec<Pointer>,
    /// Places with what they hold, which is not null.
    others: Vec<(*mut *mut u8, *mut u8)>,
    pub(super) known: K,
    error: Option<MorphError>,
}

/// Nodes with their links, their parents, and pointers to nodes: anywhere, and inside of the nodes
/// that showed them.
pub(super) type Finished = (
    (Vec<Shown>, Outside),
    Vec<u32>,
    (Vec<Pointer>, Vec<Pointer>),
);

impl<K: Known> RawCollector<K> {
    pub(super) fn new(known: K) -> RawCollector<K> {
        RawCollector {
            lists: Lists::default(),
            outside: Vec::new(),
            inside: Vec::new(),
            to_parents: Vec::new(),
            others: Vec::new(),
            known,
            error: None,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, link: *mut (), node: *mut u8, (parent, layout): (u32, Layout)) {
        // Too large a number is an error of `Lists::push`.
        let number = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        if !self.known.try_reserve() {
            return self.fail_of_memory();
        }
        if !self.known.insert(node, number) {
            return self.fail(MorphError::SharedNode);
        }
        let inside = (self.lists.shown().get(parent as usize))
            .is_some_and(|parent| lies_in(link.addr(), size_of::<*mut u8>(), parent.node, layout));
        if !inside {
            if try_reserve_one(&mut self.outside).is_err() {
                return self.fail_of_memory();
            }
            self.outside.push(number);
        }
        if let Err(error) = self.lists.push(Shown { link, node }, parent) {
            self.fail(error);
        }
    }

    /// Notes a place that holds `held`, unless that is null, and that a node of this layout showed,
    /// or nobody.
    #[inline]
    pub(super) fn push_pointer(
        &mut self,
        place: *mut *mut u8,
        held: *mut u8,
        (shown_by, layout): (u32, Layout),
    ) {
        if held.is_null() {
            return;
        }
        // Nearly all pointers back are to the parent, or to the predecessor, which in a list is the
        // parent.
        if let Some(&target) = self.lists.parents().get(shown_by as usize)
            && (self.lists.shown().get(target as usize))
                .is_some_and(|shown| shown.node.addr() == held.addr())
        {
            let node = self.lists.shown()[shown_by as usize].node;
            let list = if lies_in(place.addr(), size_of::<*mut u8>(), node, layout) {
                &mut self.inside
            } else {
                &mut self.to_parents
            };
            return match try_reserve_one(list) {
                Ok(()) => list.push(Pointer { place, target }),
                Err(_) => self.fail_of_memory(),
            };
        }
        match try_reserve_one(&mut self.others) {
            Ok(()) => self.others.push((place, held)),
            Err(_) => self.fail_of_memory(),
        }
    }

    /// The first error is the one that is told.
    #[cold]
    fn fail(&mut self, error: MorphError) {
        self.error.get_or_insert(error);
    }

    #[cold]
    pub(super) fn fail_of_memory(&mut self) {
        let node_bytes = size_of::<Shown>() + size_of::<u32>() + K::NODE_BYTES;
        let pointers = self.inside.len() + self.to_parents.len() + self.others.len();
        let bytes = (self.lists.len() + 1) * node_bytes + pointers * size_of::<Pointer>();
        self.fail(MorphError::OutOfMemory {
            bytes: bytes as u64,
        });
    }

    #[inline]
    pub(super) fn check(&self) -> Result<(), MorphError> {
        self.error.map_or(Ok(()), Err)
    }

    /// What was shown, less the pointers that point to no node. That nodes are in level order is
    /// for the caller to know.
    pub(super) fn finish(mut self) -> Result<Finished, MorphError> {
        self.check()?;
        if !self.others.is_empty() {
            let out_of_memory = MorphError::OutOfMemory {
                bytes: (self.lists.len() * Addresses::ENTRY_BYTES) as u64,
            };
            let addresses = (self.known.into_addresses(self.lists.shown())).ok_or(out_of_memory)?;
            self.to_parents =
                (addresses.add_targets(self.others, self.to_parents)).ok_or(out_of_memory)?;
        }
        let (shown, parents) = self.lists.into_parts();
        let links = (shown, Outside::Numbers(self.outside));
        Ok((links, parents, (self.to_parents, self.inside)))
    }
}
