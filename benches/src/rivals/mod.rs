//! What ours is compared with.
//!
//! To add an allocator, add an `Install` and a line in [`ALLOCATORS`] (in [`ARENAS`] if it does not
//! take memory back), and a feature if it is another crate. To add an ordered map, add an adapter
//! in [`mod@maps`] and a line in [`maps()`], and a feature.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::ordered_map::{Key, Kind};

#[cfg(feature = "bumpalo")]
mod bumpalo;
pub mod maps;
pub mod ours;

/// An allocator that can serve a whole process.
pub trait Install: GlobalAlloc + Sized + 'static {
    /// The allocator; it has no state of its own.
    const ALLOCATOR: Self;
    /// The name by which the environment chooses it.
    const NAME: &'static str;
    /// Its methods.
    const METHODS: &'static Methods = &Methods {
        name: Self::NAME,
        // SAFETY: the caller keeps the contract of `alloc`.
        alloc: |layout| unsafe { Self::ALLOCATOR.alloc(layout) },
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        alloc_zeroed: |layout| unsafe { Self::ALLOCATOR.alloc_zeroed(layout) },
        // SAFETY: the caller keeps the contract of `dealloc`.
        dealloc: |object, layout| unsafe { Self::ALLOCATOR.dealloc(object, layout) },
        // SAFETY: the caller keeps the contract of `realloc`.
        realloc: |object, layout, size| unsafe { Self::ALLOCATOR.realloc(object, layout, size) },
    };
}

/// The methods of an allocator, with the contracts of [`GlobalAlloc`]'s.
#[derive(Debug)]
pub struct Methods {
    /// The name by which the environment chooses it.
    pub name: &'static str,
    /// [`GlobalAlloc::alloc`].
    pub alloc: unsafe fn(Layout) -> *mut u8,
    /// [`GlobalAlloc::alloc_zeroed`].
    pub alloc_zeroed: unsafe fn(Layout) -> *mut u8,
    /// [`GlobalAlloc::dealloc`].
    pub dealloc: unsafe fn(*mut u8, Layout),
    /// [`GlobalAlloc::realloc`].
    pub realloc: unsafe fn(*mut u8, Layout, usize) -> *mut u8,
}

/// An allocator to compare ours with.
#[derive(Clone, Copy)]
pub struct AllocatorRival {
    /// Its name in names of comparisons within one process.
    pub slug: &'static str,
    /// Its name in words.
    pub name: &'static str,
    /// The allocator.
    pub allocator: Unhinted,
    /// Its methods, for a process that it serves, with its name there.
    pub methods: &'static Methods,
    /// Whether an address lies in its memory, where it can tell; see [`crate::source`].
    pub owns: Option<fn(*const u8) -> bool>,
}

impl std::fmt::Debug for AllocatorRival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.slug)
    }
}

const fn rival<A: Install + Sync>(slug: &'static str, allocator: &'static A) -> AllocatorRival {
    AllocatorRival {
        slug,
        name: slug,
        allocator: Unhinted(allocator),
        methods: A::METHODS,
        owns: None,
    }
}

/// The system's malloc, whatever the global allocator is.
pub const SYSTEM: AllocatorRival = AllocatorRival {
    name: "system malloc",
    ..rival("malloc", &System)
};

impl Install for System {
    const ALLOCATOR: Self = System;
    const NAME: &'static str = "glibc";
}

/// The allocators of this build, in their default modes; the system's first.
pub const ALLOCATORS: &[AllocatorRival] = &[
    SYSTEM,
    #[cfg(feature = "mimalloc")]
    AllocatorRival {
        owns: Some(mimalloc_owns),
        ..rival("mimalloc", &mimalloc::MiMalloc)
    },
    #[cfg(feature = "jemalloc")]
    rival("jemalloc", &tikv_jemallocator::Jemalloc),
    #[cfg(feature = "snmalloc")]
    rival("snmalloc", &snmalloc_rs::SnMalloc),
];

/// Allocators that do not take memory back, for programs that build once and end.
pub const ARENAS: &[AllocatorRival] = &[
    #[cfg(feature = "bumpalo")]
    rival("bumpalo", &bumpalo::ThreadArenas),
];

#[cfg(feature = "mimalloc")]
impl Install for mimalloc::MiMalloc {
    const ALLOCATOR: Self = mimalloc::MiMalloc;
    const NAME: &'static str = "mimalloc";
}

#[cfg(feature = "mimalloc")]
fn mimalloc_owns(object: *const u8) -> bool {
    unsafe extern "C" {
        /// Of the library that the crate links: whether it manages the page of `object`. It never
        /// reads through the pointer.
        safe fn mi_is_in_heap_region(object: *const std::ffi::c_void) -> bool;
    }
    mi_is_in_heap_region(object.cast())
}

#[cfg(feature = "jemalloc")]
impl Install for tikv_jemallocator::Jemalloc {
    const ALLOCATOR: Self = tikv_jemallocator::Jemalloc;
    const NAME: &'static str = "jemalloc";
}

#[cfg(feature = "snmalloc")]
impl Install for snmalloc_rs::SnMalloc {
    const ALLOCATOR: Self = snmalloc_rs::SnMalloc;
    const NAME: &'static str = "snmalloc";
}

/// The ordered maps of this build for any keys: ours first, then std's.
pub fn maps<K: Key>() -> Vec<Kind<K>> {
    vec![
        Kind::of::<ctree::CTreeMap<K, u64>>(maps::OURS, maps::OURS),
        Kind::of::<std::collections::BTreeMap<K, u64>>(maps::BTREEMAP, maps::BTREEMAP_NAME),
        #[cfg(feature = "bbtree")]
        Kind::of::<::bbtree::unsync::BBTreeMap<K, u64>>("bbtree", "bbtree"),
        #[cfg(feature = "indexset")]
        Kind::of::<indexset::BTreeMap<K, u64>>("indexset", "indexset"),
    ]
}

/// The same, and those whose keys are integers alone.
pub fn integer_maps() -> Vec<Kind<u64>> {
    let mut kinds = maps();
    kinds.extend([
        #[cfg(feature = "brie-tree")]
        Kind::of::<brie_tree::BTree<brie_tree::nonmax::NonMaxU64, u64>>("brie", "brie-tree"),
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
