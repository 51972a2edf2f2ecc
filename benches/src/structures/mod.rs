//! Pointer structures as programs write them: safe code, one `Box` a node, no knowledge of layouts
//! or allocators.
//!
//! The same machine code walks over a structure in a rival's memory and over a morphed one.
//!
//! | module | structure | node | an operation |
//! |---|---|---|---|
//! | [`tree`] | binary search tree, random or complete, by plan | 32 B | finds a key |
//! | [`lists`] | doubly linked lists, after random inserts and deletes | 24 B | walks one list |
//! | [`table`] | hash table with chains | 24 B | walks a chain to a key |
//! | [`octree`] | octree over points in space | 72 B | adds up the points of a box |

pub mod lists;
pub mod octree;
pub mod table;
pub mod tree;

use crate::queries::Chain;
use ccmorph::{Morph, MorphError, Report};

/// A structure to be laid out and asked.
pub trait Structure: Clone {
    /// Lays its nodes out as `morph` says.
    ///
    /// # Errors
    /// Those of [`Morph::run`].
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError>;

    /// What one operation finds. It is read from the structure's nodes and cannot be told from
    /// `query` alone.
    fn answer(&self, query: u64) -> u32;

    /// Operations of which each waits for the answer before; a sum over the answers. One function
    /// for all memory and all layouts.
    #[inline(never)]
    fn follow(&self, chain: &Chain) -> u64 {
        chain.follow(|&query| self.answer(query))
    }
}
