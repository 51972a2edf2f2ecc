//! Which site a call stack is.
//!
//! A stack is a path in a tree of frames. Recursion is folded: a frame that already is on the path
//! leads back to it, so that a recursive program has few stacks. A small cache in front, by the
//! hash of the whole stack, answers most lookups with one comparison.

use super::capture::{BASE, LOCK, at, give, header, node, site, take};
use super::local::Local;
use super::stack_cache::{Nodes, StackCache};
use super::unwind;
use crate::capture_format::{Node, Site, layout};

/// Where the tables are, as offsets into the capture; 0 before the first stack.
pub(crate) struct Stacks {
    /// Open addressing by (parent, pc): numbers of nodes, 0 for none.
    index: u64,
    index_bits: u32,
    /// Direct-mapped: pairs of a hash and a site.
    cache: u64,
}

const CACHE_BITS: u32 = 14;
/// The site of chunks whose stack could not be kept, or was not asked for.
pub(crate) const UNKNOWN: u32 = 1;

/// Hash of a stack, computed before the lock is taken.
pub(crate) fn hash(stack: &[u64]) -> u64 {
    let addresses = stack.iter().rev();
    addresses.fold(unwind::path::EMPTY, |hash, &pc| {
        unwind::path::add_to_hash(hash, pc)
    }) | 1
}

impl Stacks {
    pub(crate) const NEW: Self = Self {
        index: 0,
        index_bits: 0,
        cache: 0,
    };

    /// Number of the site with this stack, innermost frame first; made if there is none. `nodes`
    /// are those of the last stack of which as many frames as is said are the same.
    ///
    /// # Safety
    ///
    /// The caller holds the lock and the capture is mapped.
    pub(crate) unsafe fn site(
        &mut self,
        stack: &[u64],
        hash: u64,
        nodes: Option<(&Nodes, usize)>,
    ) -> u32 {
        let kept = nodes.map_or(0, |(nodes, kept)| nodes.keep(kept));
        // SAFETY: the lock is held (`# Safety`), so by the lock invariant tables are ours, and
        // nodes and sites in them were made. `index` is not 0 only if `cache` is not, and both have
        // the rooms that are taken here, or by `grow`.
        unsafe {
            if self.index == 0 {
                if self.cache == 0 {
                    self.cache = take(16 << CACHE_BITS);
                }
                self.index_bits = 12;
                // Not without the cache, which there is from then on.
                if self.cache != 0 {
                    self.index = take(4 << self.index_bits);
                }
                if self.index == 0 {
                    return UNKNOWN;
                }
            }
            let entry: *mut (u64, u32) =
                at(self.cache + 16 * ((hash >> 20) & ((1 << CACHE_BITS) - 1)));
            if (*entry).0 == hash {
                return (*entry).1;
            }
            let mut path = match (nodes, kept.checked_sub(1)) {
                (Some((nodes, _)), Some(last)) => nodes.at(last),
                _ => 0,
            };
            for (depth, &pc) in stack.iter().rev().enumerate().skip(kept) {
                path = self.step(path, pc);
                if path == 0 {
                    return UNKNOWN;
                }
                if let Some((nodes, _)) = nodes {
                    nodes.add(depth, path);
                }
            }
            if path == 0 {
                return UNKNOWN;
            }
            let known = (*node(path)).site;
            let id = if known == 0 { new_site(path) } else { known };
            *entry = (hash, id);
            id
        }
    }

    /// The node of `pc` called from `parent`; 0 if there is no more room.
    ///
    /// # Safety
    ///
    /// As for [`Stacks::site`].
    unsafe fn step(&mut self, parent: u32, pc: u64) -> u32 {
        // SAFETY: the lock is held (`# Safety`), so nodes below the count and what slots name were
        // made. A new one is below `MAX_NODES`.
        unsafe {
            let mut slot = self.slot(parent, pc);
            if *slot != 0 {
                return *slot;
            }
            let nodes = (*header()).nodes;
            if nodes + 2 >= layout::MAX_NODES {
                return 0;
            }
            if nodes * 2 >= 1 << self.index_bits {
                if !self.grow() {
                    return 0;
                }
                slot = self.slot(parent, pc);
            }
            let mut above = parent;
            while above != 0 && (*node(above)).pc != pc {
                above = (*node(above)).parent;
            }
            if above != 0 {
                return above;
            }
            let new = nodes as u32 + 1;
            *node(new) = Node {
                pc,
                parent,
                site: 0,
            };
            (*header()).nodes = u64::from(new);
            *slot = new;
            new
        }
    }

    /// # Safety
    ///
    /// As for [`Stacks::site`].
    unsafe fn slot(&self, parent: u32, pc: u64) -> *mut u32 {
        let mut position = hash(&[u64::from(parent), pc]) >> 7;
        loop {
            let slot: *mut u32 = at(self.index + 4 * (position & ((1 << self.index_bits) - 1)));
            // SAFETY: the lock is held (`# Safety`), so the slot lies in the table and names a node
            // or none. The table is at most half full, so the loop ends.
            unsafe {
                let entry = node(*slot);
                if *slot == 0 || ((*entry).pc == pc && (*entry).parent == parent) {
                    return slot;
                }
            }
            position += 1;
        }
    }

    /// # Safety
    ///
    /// As for [`Stacks::site`].
    unsafe fn grow(&mut self) -> bool {
        // SAFETY: the lock is held (`# Safety`), so the old table is nobody else's; the new one is
        // zero, and twice as long as there are nodes.
        unsafe {
            let new = take(8 << self.index_bits);
            if new == 0 {
                return false;
            }
            give(self.index, 4 << self.index_bits);
            self.index = new;
            self.index_bits += 1;
            for id in 1..=(*header()).nodes as u32 {
                let entry = node(id);
                *self.slot((*entry).parent, (*entry).pc) = id;
            }
        }
        true
    }
}

/// Makes a site whose innermost frame is `node`; 0 for the unknown one.
///
/// # Safety
///
/// As for [`Stacks::site`].
pub(crate) unsafe fn new_site(path: u32) -> u32 {
    // SAFETY: the lock is held (`# Safety`); entries beyond the count are zero and nobody's, and
    // the new one is below `MAX_SITES`. `path` is 0 or a node.
    unsafe {
        let sites = (*header()).sites + 1;
        if sites >= layout::MAX_SITES {
            return UNKNOWN;
        }
        let id = sites as u32;
        let new: *mut Site = site(id);
        (*new).node = u64::from(path);
        (*new).smallest = u64::MAX;
        (*new).shortest_life = u64::MAX;
        if path != 0 {
            (*node(path)).site = id;
        }
        (*header()).sites = sites;
        id
    }
}

// The heap of a capture gives powers of two.
const _: () = assert!(size_of::<StackCache>() <= 1 << 18);

/// The calling thread's cache, if there is memory for it and the thread does not end.
///
/// # Safety
///
/// `local` is the calling thread's, marked as busy; the capture is mapped. What an earlier call
/// returned is not used any more.
#[inline(always)]
pub(crate) unsafe fn cache<'a>(local: *mut Local) -> Option<&'a mut StackCache> {
    // SAFETY: `local` is valid and this thread's (`# Safety`). The cache that it names is the
    // thread's own until `give_cache`, which resets the pointer; no other reference to it is left.
    unsafe {
        if (*local).stacks.is_null() && (*local).endings == 0 {
            first_room(local);
        }
        (*local).stacks.as_mut()
    }
}

/// # Safety
///
/// As for [`cache`].
#[cold]
unsafe fn first_room(local: *mut Local) {
    // SAFETY: `take` needs the lock, which is held here; what it gives is nobody else's and zero,
    // and zeros are a `StackCache`. `local` is this thread's (`# Safety`).
    LOCK.with(|| unsafe {
        let place = take(size_of::<StackCache>() as u64);
        if place != 0 {
            (*local).stacks = at(place);
        }
    });
}

/// The thread ends, and its stacks need no cache any more. What its own destructors allocate is
/// walked in full.
///
/// # Safety
///
/// As for [`cache`].
pub(crate) unsafe fn give_cache(local: *mut Local) {
    // SAFETY: `give` needs the lock, which is held here; the place is one that `first_room` took,
    // of this size, and with the pointer reset nobody uses it any more.
    LOCK.with(|| unsafe {
        let cache = core::mem::replace(&mut (*local).stacks, core::ptr::null_mut());
        if !cache.is_null() {
            let place = cache.expose_provenance() as u64 - BASE;
            give(place, size_of::<StackCache>() as u64);
        }
    });
}
