//! Links, nodes and pointers of a structure of raw pointers, as they are shown.

use super::seen::Seen;
use crate::error::MorphError;
use crate::visit::{Addresses, Collector, Found, Shown};
use std::alloc::Layout;

/// Tells whether a node was shown before.
pub(super) trait Known {
    /// The least memory that a node takes.
    const NODE_BYTES: usize;

    /// Makes room for one more node. Returns whether there is memory for it.
    fn try_reserve(&mut self) -> bool;

    /// Takes a node in, for which room was made. Returns whether its address is new.
    fn insert(&mut self, node: *const u8, number: u32) -> bool;

    /// The numbers of all nodes by address, if known.
    fn into_addresses(self) -> Option<Addresses>;
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

    fn into_addresses(self) -> Option<Addresses> {
        None
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

    fn into_addresses(self) -> Option<Addresses> {
        Some(self)
    }
}

/// A collector that finds nodes that are shown twice.
#[derive(Debug)]
pub(super) struct RawCollector<K> {
    pub(super) collector: Collector<'static>,
    pub(super) known: K,
}

impl<K: Known> RawCollector<K> {
    pub(super) fn new(known: K) -> RawCollector<K> {
        RawCollector {
            collector: Collector::new(),
            known,
        }
    }

    /// Notes a link to a node of this layout, which the node being visited shows.
    #[inline]
    pub(super) fn push(&mut self, link: *mut (), node: *mut u8, layout: Layout) {
        let nodes = self.collector.lists().len();
        if !self.known.try_reserve() {
            return self.fail_of_memory();
        }
        // Too large a number is an error of `Lists::push`.
        if self
            .known
            .insert(node, u32::try_from(nodes).unwrap_or(u32::MAX))
        {
            let inside = self
                .collector
                .lies_in_visited::<*mut u8>(link.addr(), layout);
            self.collector.push_shown(Shown { link, node }, inside);
        } else {
            self.collector.fail(MorphError::SharedNode);
        }
    }

    #[cold]
    pub(super) fn fail_of_memory(&mut self) {
        let node_bytes = size_of::<Shown>() + size_of::<u32>() + K::NODE_BYTES;
        let bytes = ((self.collector.lists().len() + 1) * node_bytes) as u64;
        self.collector.fail(MorphError::OutOfMemory { bytes });
    }

    /// What was shown, less the pointers that point to no node.
    pub(super) fn finish(self, layout: Layout) -> Result<Found<'static>, MorphError> {
        self.collector.check()?;
        self.collector.finish(layout, self.known.into_addresses())
    }
}
