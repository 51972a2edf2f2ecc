//! One piece of aligned raw memory, from the program's global allocator.
//!
//! Nodes are read whole, so that they start on a line boundary. A large tree is read at random, so
//! that it should lie on huge pages: a [`Block`] of [`HUGE_PAGE_BYTES`] or more starts on a huge
//! page boundary, if the allocator can align so far, and requests huge pages before its first byte
//! is written.

use alloc::alloc::{alloc, dealloc, handle_alloc_error};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;

/// Size of a cache line, the unit that moves between memory and cache.
pub(crate) const LINE_BYTES: usize = 64;
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Owner of one allocation of raw bytes.
///
/// Invariants:
/// - `layout.size() > 0` and `layout.align() >= LINE_BYTES`;
/// - `base` was returned by `alloc::alloc::alloc(layout)` and is freed by `drop` alone.
///
/// A block knows nothing of its contents: it neither initialises nor drops them.
#[derive(Debug)]
pub(crate) struct Block {
    base: NonNull<u8>,
    layout: Layout,
}

impl Block {
    /// Allocates `bytes` uninitialised bytes that start on a line boundary, on a huge page boundary
    /// when a huge page fits in and the allocator aligns so far.
    ///
    /// # Panics
    /// When `bytes` is zero or exceeds `isize::MAX`. Calls [`handle_alloc_error`] when the
    /// allocator gives nothing.
    pub(crate) fn new(bytes: usize) -> Block {
        let block = if bytes >= HUGE_PAGE_BYTES {
            Block::aligned(bytes, HUGE_PAGE_BYTES).or_else(|_| Block::aligned(bytes, LINE_BYTES))
        } else {
            Block::aligned(bytes, LINE_BYTES)
        };
        let block = block.unwrap_or_else(|layout| handle_alloc_error(layout));
        if bytes >= HUGE_PAGE_BYTES {
            advise_huge_pages(block.base.as_ptr(), bytes);
        }
        block
    }

    /// Allocates, or says what could not be allocated.
    fn aligned(bytes: usize, align: usize) -> Result<Block, Layout> {
        assert!(bytes > 0, "a block must not be empty");
        let Ok(layout) = Layout::from_size_align(bytes, align) else {
            panic!("capacity overflow: {bytes} bytes");
        };
        // SAFETY: the layout's size is not zero, checked above.
        let base = NonNull::new(unsafe { alloc(layout) });
        base.map(|base| Block { base, layout }).ok_or(layout)
    }

    /// The first byte. It and the [`bytes`](Block::bytes) - 1 after it may be read and written as
    /// long as the block lives.
    #[inline(always)]
    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Size of the allocation in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: by the invariants `base` is a live allocation of `layout` that only this frees.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

// SAFETY: a block owns its memory and gives out nothing but a raw pointer, every use of which is
// `unsafe` and has to argue about the contents itself. The memory is not tied to a thread: the
// global allocator frees from any.
unsafe impl Send for Block {}
// SAFETY: a shared block gives out its pointer and its size, which never change; every use of the
// pointer is `unsafe`.
unsafe impl Sync for Block {}

/// Asks for huge pages behind the spare capacity of a vector that is about to be filled.
pub(crate) fn advise_vec<T>(vec: &Vec<T>) {
    let bytes = vec.capacity().saturating_mul(size_of::<T>());
    if bytes >= HUGE_PAGE_BYTES && size_of::<T>() > 0 {
        advise_huge_pages(vec.as_ptr().cast::<u8>(), bytes);
    }
}

/// Asks for huge pages behind the whole huge pages of a range. Without an operating system to ask,
/// nothing happens.
pub(crate) fn advise_huge_pages(start: *const u8, bytes: usize) {
    #[cfg(all(feature = "std", unix, target_pointer_width = "64"))]
    ccmalloc::advise_huge_pages(start, bytes);
    #[cfg(not(all(feature = "std", unix, target_pointer_width = "64")))]
    let _unused = (start, bytes);
}

#[cfg(test)]
mod tests {
    use super::{Block, HUGE_PAGE_BYTES, LINE_BYTES};

    #[test]
    fn blocks_are_aligned_and_writable_to_their_last_byte() {
        for bytes in [
            1,
            63,
            64,
            4096,
            HUGE_PAGE_BYTES - 1,
            HUGE_PAGE_BYTES,
            2 * HUGE_PAGE_BYTES + 1,
        ] {
            let block = Block::new(bytes);
            let align = if bytes >= HUGE_PAGE_BYTES {
                HUGE_PAGE_BYTES
            } else {
                LINE_BYTES
            };
            assert_eq!(block.base().addr().get() % align, 0);
            assert_eq!(block.bytes(), bytes);
            // SAFETY: `bytes - 1` lies within the block.
            let last = unsafe { block.base().add(bytes - 1) };
            // SAFETY: `last` is the block's last byte, and nothing else refers to the block.
            unsafe { last.write(7) };
            // SAFETY: `last` lies within the block, and has just been written.
            assert_eq!(unsafe { last.read() }, 7);
        }
    }

    #[test]
    #[should_panic(expected = "capacity overflow")]
    fn too_large_a_block_is_refused() {
        let _block = Block::new(usize::MAX);
    }
}
