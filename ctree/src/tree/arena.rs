//! Where nodes come from: chunks of memory that are cut into nodes of one size.
//!
//! A chunk of [`CHUNK_BYTES_MAX`] lies on a huge page, so that a lookup in a large map does not
//! miss the TLB at every level. The first chunk holds one node. Further ones double the arena up to
//! [`DOUBLED_BYTES_MAX`], then add a quarter of it, up to whole huge pages. Where the allocator
//! does not give a huge page, a chunk has [`CHUNK_BYTES_REFUSED`].
//!
//! Nodes that are given back go to a free list. The chunks are a stack:
//! [`Tree::trim`](super::Tree::trim) moves nodes from its end to free places and returns the chunks
//! that become empty.

use core::alloc::Layout;
use core::mem;
use core::ptr::{self, NonNull};

use alloc::alloc::handle_alloc_error;
use allocator_api2::alloc::Allocator;

use super::node::{Header, NodePtr};
use crate::block::{HUGE_PAGE_BYTES, LINE_BYTES};
use crate::simd::prefetch_bytes;

/// Size of the chunks of a large map.
const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;
/// Size of the chunks of a large map whose allocator refuses huge pages.
const CHUNK_BYTES_REFUSED: usize = 64 << 10;
/// An arena of more than this grows by a quarter at a time instead of doubling: a map then holds a
/// fifth more than it needs at most.
const DOUBLED_BYTES_MAX: usize = 16 << 10;

/// Most bytes of a free node that are prefetched before another node moves there.
const PREFETCHED_MAX: usize = 16 * LINE_BYTES;

/// A chunk's record, right behind its nodes, so that these start on the chunk's boundary.
struct Chunk {
    previous: Option<NonNull<Chunk>>,
    /// What it was allocated with, and where.
    layout: Layout,
    base: NonNull<u8>,
    nodes_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeMemory {
    /// Size, a multiple of the alignment, and alignment, that of a line at least.
    pub(crate) layout: Layout,
    pub(crate) header_at: usize,
}

/// The neighbours of a free node in the list of free nodes.
struct Links {
    next: Option<NodePtr>,
    previous: Option<NodePtr>,
}

/// The level of a free node, which no node of a tree has.
const LEVEL_FREE: u8 = u8::MAX;

impl NodeMemory {
    /// Where a free node keeps its links: outside the header.
    ///
    /// # Safety
    /// `node` is memory for such a node.
    unsafe fn links(self, node: NodePtr) -> NonNull<Links> {
        let at = if self.header_at >= size_of::<Links>() {
            0
        } else {
            (self.header_at + size_of::<Header>()).next_multiple_of(align_of::<Links>())
        };
        debug_assert!(
            at + size_of::<Links>() <= self.layout.size(),
            "links at {at} of {:?}",
            self.layout
        );
        // SAFETY: a node has a line at least. The links lie before the header, or end within 40 B:
        // the header then starts below 16.
        unsafe { node.add(at).cast() }
    }

    /// # Safety
    /// `node` is memory for such a node.
    unsafe fn header(self, node: NodePtr) -> *mut Header {
        // SAFETY: the header lies inside the node.
        unsafe { node.add(self.header_at).cast().as_ptr() }
    }
}

/// What a chunk is allocated with. It has some bytes to align the nodes within, the nodes, the
/// record, and what the caller asked for.
struct ChunkPlan {
    layout: Layout,
    nodes_bytes: usize,
    /// How many bytes there are to align the first node within.
    slack: usize,
}

impl ChunkPlan {
    /// The fewest whole huge pages that hold a node, aligned to them.
    fn of_huge_pages(node: Layout, extra_bytes: usize) -> ChunkPlan {
        let behind = size_of::<Chunk>() + extra_bytes;
        let whole = (node.size() + behind).next_multiple_of(CHUNK_BYTES_MAX);
        let nodes_bytes = (whole - behind) / node.size() * node.size();
        ChunkPlan {
            layout: checked_layout(whole, node.align().max(CHUNK_BYTES_MAX)),
            nodes_bytes,
            slack: 0,
        }
    }

    /// Nodes of `wanted` bytes, one at least. They have room to be aligned within: many allocators
    /// are slow when they are asked for an alignment.
    fn small(node: Layout, wanted: usize, extra_bytes: usize) -> ChunkPlan {
        let align = align_of::<Chunk>();
        let nodes_bytes = (wanted / node.size()).max(1) * node.size();
        let slack = node.align() - align;
        let bytes = slack + nodes_bytes + size_of::<Chunk>() + extra_bytes;
        ChunkPlan {
            layout: checked_layout(bytes, align),
            nodes_bytes,
            slack,
        }
    }

    /// With memory for it, if there is some.
    fn allocate<A: Allocator>(self, alloc: &A) -> Option<(ChunkPlan, NonNull<u8>)> {
        let memory = alloc.allocate(self.layout).ok()?;
        Some((self, memory.cast()))
    }
}

fn checked_layout(bytes: usize, align: usize) -> Layout {
    match Layout::from_size_align(bytes, align) {
        Ok(layout) => layout,
        Err(_) => panic!("capacity overflow: {bytes} bytes"),
    }
}

/// Nodes of one size, all from one allocator, which the caller keeps.
///
/// Invariants:
/// - `chunks` is the list of all chunks, the newest first, each allocated with its layout by the
///   one allocator that all calls are given;
/// - `unused` is the start of the part of the newest chunk that is not cut into nodes, of
///   `unused_bytes`, a multiple of the node's size; older chunks are cut into nodes as a whole;
/// - `free` is the list of the `free_count` nodes that are not in use, linked by their [`Links`];
///   their level is [`LEVEL_FREE`];
/// - `in_use` nodes are; they and free ones lie in the chunks, or in `inherited_bytes` of chunks of
///   other arenas.
#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Option<NonNull<Chunk>>,
    free: Option<NodePtr>,
    free_count: usize,
    in_use: usize,
    unused: *mut u8,
    unused_bytes: usize,
    bytes: usize,
    inherited_bytes: usize,
}

impl Arena {
    /// An arena without chunks.
    pub(crate) const fn new() -> Arena {
        Arena {
            chunks: None,
            free: None,
            free_count: 0,
            in_use: 0,
            unused: ptr::null_mut(),
            unused_bytes: 0,
            bytes: 0,
            inherited_bytes: 0,
        }
    }

    /// Size of the arena's own chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Size of the chunks of other arenas where nodes of this one may lie.
    pub(crate) fn inherited_bytes(&self) -> usize {
        self.inherited_bytes
    }

    /// Number of nodes that were taken, and not given back.
    pub(crate) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Number of nodes that are not in use.
    pub(crate) fn free_count(&self) -> usize {
        self.free_count
    }

    /// Memory for a node; it is in use until [`give_back`](Self::give_back).
    ///
    /// Nothing has changed if the allocator panics. Calls [`handle_alloc_error`] when it gives
    /// nothing.
    ///
    /// # Safety
    /// All calls on an arena are made with the same allocator and the same `node`.
    #[inline]
    pub(crate) unsafe fn take<A: Allocator>(&mut self, alloc: &A, node: NodeMemory) -> NodePtr {
        if let Some(free) = self.free {
            // SAFETY: a node of the list.
            unsafe { self.unlink(free, node) };
            self.in_use += 1;
            return free;
        }
        if self.unused_bytes < node.layout.size() {
            // SAFETY: passed on; nothing is asked for behind the record.
            unsafe { self.add_chunk(alloc, node, 0) };
        }
        // SAFETY: `unused` points to `unused_bytes` bytes of a live chunk, and is thus not null.
        let taken = unsafe { NonNull::new_unchecked(self.unused) };
        self.unused = self.unused.wrapping_add(node.layout.size());
        self.unused_bytes -= node.layout.size();
        self.in_use += 1;
        taken
    }

    /// Keeps a node that is no longer in use.
    ///
    /// # Safety
    /// As for [`take`](Self::take); `memory` was taken from this arena, has a header, and is used
    /// no more.
    pub(crate) unsafe fn give_back(&mut self, memory: NodePtr, node: NodeMemory) {
        // SAFETY: the node's memory is ours again, and so is that of the first node of the list.
        unsafe {
            (*node.header(memory)).level = LEVEL_FREE;
            node.links(memory).write(Links {
                next: self.free,
                previous: None,
            });
            if let Some(next) = self.free {
                (*node.links(next).as_ptr()).previous = Some(memory);
            }
        }
        self.free = Some(memory);
        self.free_count += 1;
        self.in_use -= 1;
    }

    /// Takes over all nodes of an arena, and the list of free ones. Its chunks stay where they are:
    /// from now on nothing is taken from them.
    pub(crate) fn inherit(&mut self, from: &mut Arena) {
        self.free = from.free.take();
        self.free_count = mem::take(&mut from.free_count);
        self.in_use = mem::take(&mut from.in_use);
        self.inherited_bytes = from.bytes + from.inherited_bytes;
    }

    /// Gives nodes that lie in inherited chunks to an arena that inherits the same.
    pub(crate) fn pass_on(&mut self, nodes: usize, to: &mut Arena) {
        self.in_use -= nodes;
        to.in_use += nodes;
        to.inherited_bytes = self.inherited_bytes;
    }

    /// Takes over the nodes of an arena as one that inherits from it, and beside that
    /// `inherited_bytes`. The free ones are lost until their chunks go, unless this arena has none:
    /// those in its own chunks must stay in its list.
    pub(crate) fn adopt(&mut self, from: &Arena, inherited_bytes: usize) {
        if self.free_count == 0 {
            self.free = from.free;
            self.free_count = from.free_count;
        }
        self.in_use += from.in_use;
        self.inherited_bytes = inherited_bytes + from.bytes;
    }

    /// Forgets the free nodes, whose chunks are about to go.
    pub(crate) fn forget_free(&mut self) {
        self.free = None;
        self.free_count = 0;
    }

    /// Takes a node out of use, to whose memory nobody comes back.
    pub(crate) fn forget_node(&mut self) {
        self.in_use -= 1;
    }

    /// For an arena none of whose nodes lies in inherited chunks any more.
    pub(crate) fn forget_inherited(&mut self) {
        self.inherited_bytes = 0;
    }

    /// Whether the newest chunk is cut into nodes, at least a part of it.
    pub(crate) fn is_cut(&self) -> bool {
        self.chunks
            // SAFETY: the record of a live chunk.
            .is_some_and(|chunk| self.unused_bytes < unsafe { (*chunk.as_ptr()).nodes_bytes })
    }

    /// Takes a node out of the list of free nodes.
    ///
    /// # Safety
    /// As for [`take`](Self::take); `memory` is a node of the list.
    #[inline]
    unsafe fn unlink(&mut self, memory: NodePtr, node: NodeMemory) {
        // SAFETY: the links of a node of the list, and of its neighbours, are initialised.
        unsafe {
            let Links { next, previous } = node.links(memory).read();
            match previous {
                Some(previous) => (*node.links(previous).as_ptr()).next = next,
                None => self.free = next,
            }
            if let Some(next) = next {
                (*node.links(next).as_ptr()).previous = previous;
            }
        }
        self.free_count -= 1;
    }

    /// Prepares the last place of the last chunk for [`drop_last`](Self::drop_last). If a node
    /// there is in use, returns its place and a free one, which is in use from now on: the caller
    /// must move the node.
    ///
    /// # Safety
    /// As for [`take`](Self::take); there is a free node, the newest chunk [is
    /// cut](Self::is_cut), and the headers of all nodes in use are initialised.
    pub(crate) unsafe fn vacate_last(&mut self, node: NodeMemory) -> Option<(NodePtr, NodePtr)> {
        // SAFETY: the newest chunk has a node before its unused part.
        unsafe {
            let last = NonNull::new_unchecked(self.unused.wrapping_sub(node.layout.size()));
            if (*node.header(last)).level == LEVEL_FREE {
                self.unlink(last, node);
                return None;
            }
            let free = self.free.expect("there is a free node");
            self.unlink(free, node);
            // The next node that must move goes there.
            if let Some(next) = self.free {
                prefetch_bytes(next.as_ptr(), node.layout.size().min(PREFETCHED_MAX));
            }
            Some((last, free))
        }
    }

    /// Gives up the last place of the last chunk, and frees the chunk if that was all of it.
    ///
    /// # Safety
    /// As for [`take`](Self::take); [`vacate_last`](Self::vacate_last) was called right before, and
    /// the node was moved.
    pub(crate) unsafe fn drop_last<A: Allocator>(&mut self, alloc: &A, node: NodeMemory) {
        let Some(chunk) = self.chunks else {
            return;
        };
        self.unused = self.unused.wrapping_sub(node.layout.size());
        self.unused_bytes += node.layout.size();
        // SAFETY: the record of a live chunk.
        let record = unsafe { chunk.as_ref() };
        // (Where nodes lie in inherited chunks, the first of the arena's own may have none.)
        if self.unused_bytes < record.nodes_bytes
            || (self.inherited_bytes > 0 && record.previous.is_none())
        {
            return;
        }
        // SAFETY: `chunk` is the newest chunk, whose record is live; no node of it is left, since
        // all of it is unused. The caller passes the allocator that it came from. `deallocate`
        // comes last: the arena is whole if it panics.
        unsafe {
            let Chunk {
                previous,
                layout,
                base,
                ..
            } = chunk.read();
            self.chunks = previous;
            self.unused_bytes = 0;
            // The older chunk is cut into nodes as a whole, up to its record.
            self.unused = previous.map_or(ptr::null_mut(), |record| record.as_ptr().cast());
            self.bytes -= layout.size();
            alloc.deallocate(base, layout);
        }
    }

    /// Adds a chunk: see the module's documentation for its size. Gives the address of the
    /// `extra_bytes` behind the record, which are aligned as the record is.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn add_chunk<A: Allocator>(
        &mut self,
        alloc: &A,
        node: NodeMemory,
        extra_bytes: usize,
    ) -> NonNull<u8> {
        let node = node.layout;
        let bytes = self.bytes.max(self.in_use * node.size());
        let wanted = (bytes / 4)
            .max(bytes.min(DOUBLED_BYTES_MAX))
            .min(CHUNK_BYTES_MAX);
        let is_large = wanted >= CHUNK_BYTES_MAX / 2;
        let of_huge_pages = (is_large.then(|| ChunkPlan::of_huge_pages(node, extra_bytes)))
            .and_then(|plan| plan.allocate(alloc));
        let (plan, base) = match of_huge_pages {
            Some((plan, base)) => {
                crate::block::advise_huge_pages(base.as_ptr(), plan.layout.size());
                (plan, base)
            }
            None => {
                let wanted = if is_large {
                    CHUNK_BYTES_REFUSED
                } else {
                    wanted
                };
                let plan = ChunkPlan::small(node, wanted, extra_bytes);
                let layout = plan.layout;
                plan.allocate(alloc)
                    .unwrap_or_else(|| handle_alloc_error(layout))
            }
        };
        let ChunkPlan {
            layout,
            nodes_bytes,
            slack,
        } = plan;
        // The allocator aligned the base to the nodes' alignment, or to the record's, and then the
        // slack makes up for what is missing.
        let padding = base.as_ptr().addr().wrapping_neg() & (node.align() - 1);
        debug_assert!(
            padding <= slack,
            "{padding} B of {slack} B to align a chunk"
        );
        // SAFETY: the padding lies within the slack.
        let nodes = unsafe { base.add(padding) };
        // SAFETY: the record fits behind the nodes, aligned, since nodes are aligned to a line at
        // least, and so is their size.
        let chunk = unsafe { nodes.add(nodes_bytes) }.cast::<Chunk>();
        // SAFETY: the record's place lies in the new chunk, aligned, and nothing else refers to it.
        unsafe {
            chunk.write(Chunk {
                previous: self.chunks,
                layout,
                base,
                nodes_bytes,
            });
        }
        self.chunks = Some(chunk);
        self.unused = nodes.as_ptr();
        self.unused_bytes = nodes_bytes;
        self.bytes += layout.size();
        // SAFETY: the plan has room for as many bytes behind the record.
        unsafe { chunk.add(1).cast() }
    }

    /// # Safety
    /// `alloc` is the allocator of all calls of [`take`](Self::take); no node is in use, and
    /// nothing behind a record.
    pub(crate) unsafe fn free_all<A: Allocator>(self, alloc: &A) {
        let mut next = self.chunks;
        while let Some(chunk) = next {
            // SAFETY: the record of a chunk that is not yet freed.
            let Chunk {
                previous,
                layout,
                base,
                ..
            } = unsafe { chunk.read() };
            next = previous;
            // SAFETY: the chunk was allocated there with this layout by this allocator.
            unsafe { alloc.deallocate(base, layout) };
        }
    }

    /// Checks the list of free nodes.
    ///
    /// # Errors
    /// What is wrong with it.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    pub(crate) unsafe fn check(&self, in_use: usize, node: NodeMemory) -> Result<(), &'static str> {
        let (mut next, mut previous, mut free_count) = (self.free, None, 0);
        // SAFETY: links and headers of the nodes of the list are initialised.
        unsafe {
            while let Some(free) = next {
                let links = node.links(free).read();
                if (*node.header(free)).level != LEVEL_FREE || links.previous != previous {
                    return Err("a free node is not marked, or linked the wrong way");
                }
                (next, previous) = (links.next, next);
                free_count += 1;
            }
        }
        if free_count != self.free_count {
            return Err("the number of free nodes is not what was counted");
        }
        let (mut chunk, mut nodes_bytes) = (self.chunks, 0);
        while let Some(this) = chunk {
            // SAFETY: the record of a live chunk.
            let record = unsafe { this.as_ref() };
            nodes_bytes += record.nodes_bytes;
            chunk = record.previous;
        }
        if in_use != self.in_use {
            return Err("the number of nodes is not what was counted");
        }
        let accounted = (in_use + free_count) * node.layout.size() + self.unused_bytes;
        if accounted < nodes_bytes || accounted > nodes_bytes + self.inherited_bytes {
            return Err(
                "the nodes in use, those that are free and the rest are not all of the memory",
            );
        }
        Ok(())
    }
}
