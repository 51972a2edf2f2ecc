//! What ours is compared with, a file each.
//!
//! To add an allocator, add a file, a line in [`ALLOCATORS`] (in [`ARENAS`] if it does not take
//! memory back), and a feature if it is another crate. To add an ordered map, add a file, a line in
//! [`integer_maps`] or [`maps`], and a feature.

use std::alloc::GlobalAlloc;

use crate::install::Methods;
use crate::ordered_map::{Key, Kind};

#[cfg(feature = "bbtree")]
pub mod bbtree;
#[cfg(feature = "brie-tree")]
mod brie;
pub mod btreemap;
#[cfg(feature = "bumpalo")]
mod bumpalo;
pub mod ctree;
#[cfg(feature = "indexset")]
mod indexset;
#[cfg(feature = "jemalloc")]
mod jemalloc;
#[cfg(feature = "mimalloc")]
mod mimalloc;
pub mod ours;
#[cfg(feature = "snmalloc")]
mod snmalloc;
pub(crate) mod system;

/// An allocator to compare ours with.
#[derive(Clone, Copy)]
pub struct AllocatorRival {
    /// Its name in names of comparisons within one process.
    pub slug: &'static str,
    /// Its name in words.
    pub name: &'static str,
    /// The allocator.
    pub allocator: Unhinted,
    /// The allocator, where it serves a whole process. The system's malloc has a name of its own
    /// there.
    pub methods: &'static Methods,
    /// Whether an address lies in its memory, where it can tell; see [`crate::source`].
    pub owns: Option<fn(*const u8) -> bool>,
}

impl std::fmt::Debug for AllocatorRival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AllocatorRival")
            .field("slug", &self.slug)
            .finish_non_exhaustive()
    }
}

/// The allocators that this build knows; the system's first.
pub const ALLOCATORS: &[AllocatorRival] = &[
    system::RIVAL,
    #[cfg(feature = "mimalloc")]
    mimalloc::RIVAL,
    #[cfg(feature = "jemalloc")]
    jemalloc::RIVAL,
    #[cfg(feature = "snmalloc")]
    snmalloc::RIVAL,
];

/// Allocators that do not take memory back, for programs that build once and end.
pub const ARENAS: &[AllocatorRival] = &[
    #[cfg(feature = "bumpalo")]
    bumpalo::RIVAL,
];

/// The features that this build leaves out: rivals, and the suite of applications.
pub fn left_out() -> impl Iterator<Item = &'static str> {
    let off = benches::FEATURES.iter().filter(|(_, is_on)| !is_on);
    off.map(|(name, _)| *name)
}

/// The ordered maps that this build knows, for any keys: ours first, then std's.
pub fn maps<K: Key>() -> Vec<Kind<K>> {
    vec![
        ctree::kind(),
        btreemap::kind(),
        #[cfg(feature = "bbtree")]
        bbtree::kind(),
        #[cfg(feature = "indexset")]
        indexset::kind(),
    ]
}

/// The same, and those whose keys are integers alone.
pub fn integer_maps() -> Vec<Kind<u64>> {
    let mut kinds = maps();
    kinds.extend([
        #[cfg(feature = "brie-tree")]
        brie::kind(),
    ]);
    kinds
}

/// A global allocator as a source of nodes; it knows no hints and is called through one indirect
/// call, which costs about a nanosecond.
#[derive(Clone, Copy)]
pub struct Unhinted(pub &'static (dyn GlobalAlloc + Sync));

impl std::fmt::Debug for Unhinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Unhinted")
    }
}
