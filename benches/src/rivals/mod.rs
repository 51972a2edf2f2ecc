//! What ours is compared with.
//!
//! To add an allocator, add a line in [`ALLOCATORS`], or in [`ARENAS`] if it does not take memory
//! back. To add an ordered map, add an adapter in [`mod@maps`] and a line in [`maps()`]. Another
//! crate needs a feature.

use std::alloc::{GlobalAlloc, Layout, System};

use ccmalloc::CcMalloc;

use crate::ordered_map::{Key, Kind};

#[cfg(feature = "bumpalo")]
mod bumpalo;
pub mod maps;
#[cfg(target_arch = "x86_64")]
pub mod static_tree;

/// An allocator: ours, or one to compare it with.
///
/// Invariants: the functions are the methods of one [`GlobalAlloc`], with their contracts; one that
/// `owns` memory is in [`all`]. No other module copies one, and only [`crate::dispatch`] makes one.
#[derive(Debug)]
pub struct Allocator {
    /// Its name in names of comparisons within one process.
    pub slug: &'static str,
    pub name: &'static str,
    /// The name by which the environment chooses it for a process.
    pub process: &'static str,
    /// Whether an address lies in its memory, where it can tell; see [`crate::source`].
    pub owns: Option<fn(*const u8) -> bool>,
    pub(crate) alloc: unsafe fn(Layout) -> *mut u8,
    pub(crate) alloc_zeroed: unsafe fn(Layout) -> *mut u8,
    pub(crate) dealloc: unsafe fn(*mut u8, Layout),
    pub(crate) realloc: unsafe fn(*mut u8, Layout, usize) -> *mut u8,
}

/// The [`Allocator`] called `$name` whose functions are the methods of `$global`, a constant.
macro_rules! allocator {
    ($name:literal, $global:path) => {
        $crate::rivals::Allocator {
            slug: $name,
            name: $name,
            process: $name,
            owns: None,
            // SAFETY: the caller keeps the contract of `alloc`.
            alloc: |layout| unsafe { GlobalAlloc::alloc(&$global, layout) },
            // SAFETY: the caller keeps the contract of `alloc_zeroed`.
            alloc_zeroed: |layout| unsafe { GlobalAlloc::alloc_zeroed(&$global, layout) },
            // SAFETY: the caller keeps the contract of `dealloc`.
            dealloc: |object, layout| unsafe { GlobalAlloc::dealloc(&$global, object, layout) },
            // SAFETY: the caller keeps the contract of `realloc`.
            realloc: |object, layout, size| unsafe {
                GlobalAlloc::realloc(&$global, object, layout, size)
            },
        }
    };
}
pub(crate) use allocator;

const CCMALLOC: CcMalloc = CcMalloc::new();

/// Ours, without hints.
pub static OURS: Allocator = Allocator {
    owns: Some(ccmalloc::contains),
    ..allocator!("ccmalloc", CCMALLOC)
};

/// The system's malloc, whatever the global allocator is.
pub const SYSTEM: Allocator = Allocator {
    slug: "malloc",
    name: "system malloc",
    ..allocator!("glibc", System)
};

/// The rivals of this build, in their default modes; the system's malloc first.
pub const ALLOCATORS: &[Allocator] = &[
    SYSTEM,
    #[cfg(feature = "mimalloc")]
    Allocator {
        owns: Some(mimalloc_owns),
        ..allocator!("mimalloc", mimalloc::MiMalloc)
    },
    #[cfg(feature = "jemalloc")]
    allocator!("jemalloc", tikv_jemallocator::Jemalloc),
    #[cfg(feature = "snmalloc")]
    allocator!("snmalloc", snmalloc_rs::SnMalloc),
];

/// Allocators that do not take memory back, for programs that build once and end.
pub const ARENAS: &[Allocator] = &[
    #[cfg(feature = "bumpalo")]
    allocator!("bumpalo", bumpalo::ThreadArenas),
];

/// Ours, and then the rivals in their order.
pub fn all() -> impl Iterator<Item = &'static Allocator> {
    std::iter::once(&OURS).chain(ALLOCATORS)
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
