//! Where nodes come from: chunks of memory that are cut into nodes of one size.
//!
//! A node by itself would be an allocation like any other, on small pages and wherever the allocator likes. Chunks of [`CHUNK_BYTES_MAX`] lie on
//! huge pages, so that a lookup in a large map does not miss the TLB at every level. The first chunk holds one node, and each further one as much as all before it,
//! until chunks are full-size: a map of one leaf costs one leaf, and a map holds no more than twice what it needs, or, of nodes as large as a chunk, whole huge pages for each.
//! An allocator that refuses to align so far is asked for chunks of [`CHUNK_BYTES_REFUSED`] instead, each time after it was asked for a large one: it may only have been short of memory.
//!
//! Nodes that are given back are kept for the next one. Chunks are freed together, with the map or when it is cleared or compacted.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use alloc::alloc::handle_alloc_error;
use allocator_api2::alloc::Allocator;

use super::node::NodePtr;
use crate::block::HUGE_PAGE_BYTES;

/// Size of the chunks of a large map.
const CHUNK_BYTES_MAX: usize = HUGE_PAGE_BYTES;
/// Size of the chunks of a large map whose allocator has no huge pages to give: it may know of no such alignment, or have little memory left.
const CHUNK_BYTES_REFUSED: usize = 64 << 10;

/// A chunk's record, at its end, so that its nodes start on the chunk's boundary.
struct Chunk {
    /// The chunk before it.
    previous: Option<NonNull<Chunk>>,
    /// What it was allocated with, and where.
    layout: Layout,
    base: NonNull<u8>,
}

/// What a chunk is allocated with, and how it is divided: some bytes to align the nodes within, the nodes, the record.
struct ChunkPlan {
    layout: Layout,
    nodes_bytes: usize,
    /// Where the record lies, from the first node.
    record_at: usize,
    /// How many bytes there are to align the first node within.
    slack: usize,
}

impl ChunkPlan {
    /// The fewest whole huge pages that hold a node, aligned to them.
    fn of_huge_pages(node: Layout) -> ChunkPlan {
        let record = Layout::new::<Chunk>();
        let whole = (node.size() + record.size()).next_multiple_of(CHUNK_BYTES_MAX);
        let nodes_bytes = (whole - record.size()) / node.size() * node.size();
        let record_at = nodes_bytes.next_multiple_of(record.align());
        let bytes = (record_at + record.size()).next_multiple_of(CHUNK_BYTES_MAX);
        ChunkPlan {
            layout: checked_layout(bytes, node.align().max(CHUNK_BYTES_MAX)),
            nodes_bytes,
            record_at,
            slack: 0,
        }
    }

    /// Nodes of `wanted` bytes, one at least. They have room to be aligned within: many allocators are slow when they are asked for an alignment.
    fn small(node: Layout, wanted: usize) -> ChunkPlan {
        let record = Layout::new::<Chunk>();
        let nodes_bytes = (wanted / node.size()).max(1) * node.size();
        let record_at = nodes_bytes.next_multiple_of(record.align());
        let slack = node.align().saturating_sub(record.align());
        ChunkPlan {
            layout: checked_layout(slack + record_at + record.size(), record.align()),
            nodes_bytes,
            record_at,
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
/// - `chunks` is the list of all chunks, each allocated with its layout by the one allocator that all calls are given;
/// - `free` is the list of nodes that are not in use, linked by their first word;
/// - `unused..end` is the part of the newest chunk that was never used, a multiple of the node's size.
#[derive(Debug)]
pub(crate) struct Arena {
    chunks: Option<NonNull<Chunk>>,
    free: Option<NodePtr>,
    unused: *mut u8,
    unused_bytes: usize,
    bytes: usize,
}

impl Arena {
    /// An arena without chunks.
    pub(crate) const fn new() -> Arena {
        Arena {
            chunks: None,
            free: None,
            unused: ptr::null_mut(),
            unused_bytes: 0,
            bytes: 0,
        }
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Memory for a node of `node` bytes and alignment; it is in use until [`give_back`](Self::give_back).
    ///
    /// Nothing has changed if the allocator panics. Calls [`handle_alloc_error`] when it gives nothing.
    ///
    /// # Safety
    /// All calls on an arena are made with the same allocator and the same `node`, whose size is a multiple of its alignment and holds a pointer.
    #[inline]
    pub(crate) unsafe fn take<A: Allocator>(&mut self, alloc: &A, node: Layout) -> NodePtr {
        if let Some(free) = self.free {
            // SAFETY: the first word of a node in the list is its link.
            self.free = unsafe { free.cast::<Option<NodePtr>>().read() };
            return free;
        }
        if self.unused_bytes < node.size() {
            // SAFETY: passed on.
            unsafe { self.add_chunk(alloc, node) };
        }
        // SAFETY: `unused` points to `unused_bytes` bytes of a live chunk, and is thus not null.
        let taken = unsafe { NonNull::new_unchecked(self.unused) };
        self.unused = self.unused.wrapping_add(node.size());
        self.unused_bytes -= node.size();
        taken
    }

    /// Keeps a node that is no longer in use.
    ///
    /// # Safety
    /// `node` was taken from this arena, and is used no more.
    pub(crate) unsafe fn give_back(&mut self, node: NodePtr) {
        // SAFETY: the node's memory is ours again, and large and aligned enough for a pointer.
        unsafe { node.cast::<Option<NodePtr>>().write(self.free) };
        self.free = Some(node);
    }

    /// Adds a chunk, for as many nodes as there are already, one at least.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    #[cold]
    #[inline(never)]
    unsafe fn add_chunk<A: Allocator>(&mut self, alloc: &A, node: Layout) {
        let wanted = self.bytes.min(CHUNK_BYTES_MAX);
        let is_large = wanted >= CHUNK_BYTES_MAX / 2;
        let of_huge_pages = (is_large.then(|| ChunkPlan::of_huge_pages(node)))
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
                let plan = ChunkPlan::small(node, wanted);
                let layout = plan.layout;
                plan.allocate(alloc)
                    .unwrap_or_else(|| handle_alloc_error(layout))
            }
        };
        let ChunkPlan {
            layout,
            nodes_bytes,
            record_at,
            slack,
        } = plan;
        // The allocator aligned the base to the nodes' alignment, or to the record's, and then the slack makes up for what is missing.
        let padding = base.as_ptr().addr().wrapping_neg() & (node.align() - 1);
        debug_assert!(
            padding <= slack,
            "{padding} B of {slack} B to align a chunk"
        );
        // SAFETY: the padding lies within the slack.
        let nodes = unsafe { base.add(padding) };
        // SAFETY: the record fits behind the nodes, aligned: `record_at` is, and the nodes are aligned to as much at least.
        let chunk = unsafe { nodes.add(record_at) }.cast::<Chunk>();
        // SAFETY: as above.
        unsafe {
            chunk.write(Chunk {
                previous: self.chunks,
                layout,
                base,
            });
        }
        self.chunks = Some(chunk);
        self.unused = nodes.as_ptr();
        self.unused_bytes = nodes_bytes;
        self.bytes += layout.size();
    }

    /// Frees all chunks.
    ///
    /// # Safety
    /// `alloc` is the allocator of all calls of [`take`](Self::take); no node is in use.
    pub(crate) unsafe fn free_all<A: Allocator>(&mut self, alloc: &A) {
        let mut next = self.chunks;
        // Whatever `deallocate` does, nothing is freed twice.
        *self = Arena::new();
        while let Some(chunk) = next {
            // SAFETY: the record of a chunk that is not yet freed.
            let Chunk {
                previous,
                layout,
                base,
            } = unsafe { chunk.read() };
            next = previous;
            // SAFETY: the chunk was allocated there with this layout by this allocator.
            unsafe { alloc.deallocate(base, layout) };
        }
    }
}
