//! Pointer structures as programs write them: safe code, one `Box` a node, no knowledge of layouts
//! or allocators.

pub mod lists;
pub mod octree;
pub mod table;
pub mod tree;

use crate::queries::Chain;
use ccmorph::{Morph, MorphError, Report};

/// A structure to be laid out and asked.
pub trait Structure: Clone {
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError>;

    /// What one operation finds: read from the structure's nodes, and not told by `query` alone.
    fn answer(&self, query: u64) -> u32;

    /// Operations each of which waits for the answer before; a sum over the answers. One function
    /// for all memory and all layouts.
    #[inline(never)]
    fn follow(&self, chain: &Chain) -> u64 {
        chain.follow(|&query| self.answer(query))
    }
}
