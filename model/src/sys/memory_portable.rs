//! Plain allocations where the page size cannot be asked for.

use std::io;

use crate::geometry::PageSize;

/// A zeroed array of `u64`, in pages of whatever size the system gives.
#[derive(Debug)]
pub struct PagedMemory {
    words: Vec<u64>,
}

impl PagedMemory {
    /// Allocates `len` zeroed words and writes each of them; the page size is ignored.
    ///
    /// # Errors
    /// `OutOfMemory` when the allocation is refused.
    pub fn new(len: usize, _pages: PageSize) -> io::Result<PagedMemory> {
        let mut words = Vec::new();
        words
            .try_reserve_exact(len)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        words.resize(len, 0);
        Ok(PagedMemory { words })
    }

    /// The words.
    pub fn as_slice(&self) -> &[u64] {
        &self.words
    }

    /// The words, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [u64] {
        &mut self.words
    }
}
