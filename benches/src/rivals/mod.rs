//! What we are held against, a file each.
//!
//! Adding an allocator is one file, one line in [`ALLOCATORS`] (in [`ARENAS`], when it does not
//! take memory back), and a feature when it is another crate; adding an ordered map is one file,
//! one line in [`integer_maps`] or [`maps`], and a feature. A rival that this build leaves out is
//! named by [`left_out`], so that a report never passes for complete when it is not.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::NonNull;

use crate::install::Methods;
use crate::ordered_map::{Key, Kind};
use crate::raw_tree::NodeAllocator;

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

/// An allocator to hold ours against.
#[derive(Clone, Copy)]
pub struct AllocatorRival {
    /// Its name in names of comparisons within one process.
    pub slug: &'static str,
    /// Its name in words.
    pub name: &'static str,
    /// The allocator.
    pub allocator: Unhinted,
    /// The allocator, where it serves a whole process; it has a slug of its own there, because the
    /// system's malloc is then called what it is.
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

/// What programs that build once and end can be served by as well: allocators that do not take
/// memory back, which no other program could do with.
pub const ARENAS: &[AllocatorRival] = &[
    #[cfg(feature = "bumpalo")]
    bumpalo::RIVAL,
];

/// The rivals, and the suite of applications, that this build leaves out, each with the feature
/// that adds it.
pub fn left_out() -> Vec<&'static str> {
    let known = [
        ("mimalloc", cfg!(feature = "mimalloc")),
        ("jemalloc", cfg!(feature = "jemalloc")),
        ("snmalloc", cfg!(feature = "snmalloc")),
        ("bumpalo", cfg!(feature = "bumpalo")),
        ("bbtree", cfg!(feature = "bbtree")),
        ("brie-tree", cfg!(feature = "brie-tree")),
        ("indexset", cfg!(feature = "indexset")),
        ("apps", cfg!(feature = "apps")),
    ];
    known
        .into_iter()
        .filter(|&(_, built)| !built)
        .map(|(name, _)| name)
        .collect()
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

// SAFETY: a `GlobalAlloc` returns null or a block of memory for `layout` that is its caller's until
// freed.
unsafe impl NodeAllocator for Unhinted {
    fn allocate(&self, layout: Layout, _hint: Option<NonNull<u8>>) -> Option<NonNull<u8>> {
        assert!(
            layout.size() > 0,
            "a global allocator need not serve empty objects"
        );
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { self.0.alloc(layout) })
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that `ptr` came from `allocate`, so from this allocator, with
        // `layout`.
        unsafe { self.0.dealloc(ptr.as_ptr(), layout) }
    }
}
