// Modules, lowest first. A module uses only those of earlier rows, or before it in its row.
//
// | modules | what they do |
// |---|---|
// | `geometry`, `list`, `primitive`, `outcome` | units, lists, atomics |
// | `policy`, `options` | what a program may choose |
// | `size_class`, `bits`, `protocol` | size classes, free runs, words between threads |
// | `sys`, `debug_assert`, `extents`, `huge`, `owner` | the operating system, memory kept from it |
// | `bin`, `slot_tags`, `chunk`, `mapping`, `pages` | metadata of objects |
// | `arena` | all metadata of one arena |
// | `registry`, `sweep`, `slabs`, `target`, `abandoned`, `check` | what belongs to an arena |
// | `large`, `remote`, `colocate`, `locate`, `slots` | large objects, remote frees, hints, slots |
// | `thread` | from a thread to its arena; every request |
// | `global`, `raw`, `stats`, `first_class`, `hint`, `region`, `thin` | the interface |
// | `adapters`, `configure` | and more of it |

//! A global allocator that takes a hint, and puts the new object into the hint's cache block.
//!
//! A processor waits a hundred nanoseconds for a node in memory, and hardly at all for one in the
//! cache block that it has just fetched. [`CcMalloc`] is a thread-caching allocator for everything;
//! a hint names an object that the new one will be used together with. The idea is T. Chilimbi's
//! (*Cache-Conscious Data Structures*, 1999, section 4.2).
//!
//! ```
//! use ccmalloc::{CcMalloc, near};
//!
//! #[global_allocator]
//! static GLOBAL: CcMalloc = CcMalloc::new();
//!
//! struct Tree { key: u64, left: Option<Box<Tree>>, right: Option<Box<Tree>> }
//!
//! fn insert(mut link: &mut Option<Box<Tree>>, key: u64) {
//!     while let Some(tree) = link {
//!         link = if key < tree.key { &mut tree.left } else { &mut tree.right };
//!     }
//!     // The only change to the program. `link` lies in the parent: the new node goes beside it.
//!     *link = Some(near(link, || Box::new(Tree { key, left: None, right: None })));
//! }
//!
//! let watch = ccmalloc::watch();
//! let mut root = None;
//! (0..1000).for_each(|i| insert(&mut root, i * 7919 % 1000));
//! let report = watch.report();
//! println!("{report}");
//! assert!(report.same_block > 300);
//! ```
//!
//! [`near`] says what can be a hint, and which objects can get neighbours.
//!
//! # Ways to give a hint
//!
//! | in code that | way | kept in the object |
//! |---|---|---|
//! | uses `std`'s types | [`near`]`(&x, \|\| ...)`: all that the closure allocates | nothing |
//! | owns its nodes by boxes | [`NewNear`]: `Box::new_near(node, &x)`, a thin box | nothing |
//! | takes an allocator | [`CcMalloc::near`]; [`IntoThin`] drops the hint | one word |
//! | is generic over allocators | [`HintAllocator::allocate_near`] | nothing |
//! | allocates by hand | [`cc_alloc`], [`cc_realloc`], [`cc_dealloc`] | nothing |
//! | lays out a whole structure | [`Region`]: each object at a chosen offset | nothing |
//!
//! Any of them may free and resize what another allocated, except objects of size 0, which have
//! memory only from the functions for code that allocates by hand. **Any hint is safe.** The
//! allocator never reads through it: a bad hint costs placement, never correctness. No hint makes
//! two threads share a block.
//!
//! A structure can also have a [`Heap`] of its own, with its own policy, which takes hints
//! ([`Heap::near`], [`Heap::alloc`], `&Heap` as a `HintAllocator`) and is dropped as a whole.
//!
//! ```
//! # #[cfg(feature = "allocator-api2")] {
//! use allocator_api2::{boxed::Box, vec::Vec};
//! use ccmalloc::{CcMalloc, Heap, IntoThin, NewNear};
//!
//! let parent = Box::new_near(1u64, &()); // near nothing, with room for what follows
//! let child: Box<u64, CcMalloc> = Box::new_near(2u64, &parent);
//! let mut children = Vec::new_in(CcMalloc.near(&parent));
//! children.push(3u64);
//! let children: Vec<u64, CcMalloc> = children.into_thin();
//! // All in one cache block:
//! assert_eq!((&raw const *parent).addr() / 64, (&raw const *child).addr() / 64);
//! assert_eq!((&raw const *parent).addr() / 64, children.as_ptr().addr() / 64);
//!
//! let heap = Heap::new().expect("memory");
//! let mut scores = hashbrown::HashMap::new_in(&heap);
//! scores.insert("anna", 7);
//! # assert_eq!((scores["anna"], *child, children[0]), (7, 2, 3));
//! # }
//! ```
//!
//! # Features
//!
//! - `allocator-api2` (default): [`CcMalloc`], [`Near`], `&`[`Heap`] and [`NearHeap`] implement
//!   `Allocator` of the crate `allocator-api2` 0.2, which hashbrown and bumpalo use.
//! - `allocator-api2-04`: the same for version 0.4.
//! - `nightly`: the same for `core::alloc::Allocator`, on a nightly compiler.
//!
//! They can all be on at once, unless another crate turns on the feature `nightly` of
//! `allocator-api2` 0.2: `allocator-api2` and `nightly` then exclude each other.
//!
//! # How it works
//!
//! | word | meaning |
//! |---|---|
//! | arena | all memory and metadata of one thread or one [`Heap`] |
//! | chunk | 2 MiB from the OS: metadata, and 31 *slots* of 64 KiB |
//! | slab | a slot with objects of one size class |
//! | span | 1 to 15 slots with one large object |
//! | extent | a run of unused chunks, kept for later requests |
//! | bin | what an arena has for one size class, with its free list |
//! | free list | pointers to free objects of a slab, taken and put back at one end |
//! | remote free | a free by a thread that does not own the object's arena |
//! | word | 512 B of a co-location page: 8 blocks, one word of its map |
//! | opening | an empty block for a hinted object that has no neighbour to join |
//!
//! An allocation without a hint: `thread::alloc` looks the size class up, takes an object off the
//! bin's free list, and sets its bit in the map of live objects (`Arena::pop`); if the list is
//! empty, `Own::refill` fills it from a slab's map. A free: the masked address gives the chunk's
//! metadata, and the slab's tag its owner. If that is this thread, `Arena::push` clears the bit and
//! puts the object on the free list, else `free_remote` leaves it to the owner. Allocations and
//! local frees use no atomic read-modify-write and do not touch the object.
//!
//! An allocation with a hint: `Own::alloc_near` finds the hint's co-location page by the registry
//! and the slot's tag, reads the page's free map (one cache line), and takes the hint's block, else
//! another on the page by the [`Policy`], else a new block.
//!
//! `docs/use/ccmalloc.md` in the repository explains each abort message.
//!
//! # When it does not help
//!
//! Placement saves misses. There are few to save if a structure fits the second-level cache, is
//! built in the order of its traversal, or has nodes of several blocks. [`placement`] counts where
//! hinted objects lie.
//!
//! # Known limits
//!
//! - The next thread that starts takes over the memory of an ended thread. Memory that others free
//!   there before that goes back to the OS when any thread needs a new chunk.
//! - An object of a [`Heap`] that unsafe code passes to [`cc_dealloc`] or another thread's
//!   allocator is freed when the heap next runs out of room.
//! - Empty slots of 64 KiB are reused. They go back to the OS with their chunk of 2 MiB, or, if a
//!   chunk has eight or more, after half a second. Unused chunks and large mappings are kept as
//!   long, at most 16 to 128 MiB. The first is checked when the thread frees, the second when any
//!   does. [`set_options`] changes both.
//! - Double frees, pointers into objects and wrong sizes abort the process with one line on stderr,
//!   unless the memory has been allocated again or the size class is the same. A free of a foreign
//!   pointer with a layout may end in a segmentation fault; [`raw`] asks the registry first.
//! - Like `malloc`, it is not async-signal-safe. A signal handler may call [`contains`] at any
//!   time, the other functions only if it cannot have interrupted the allocator.
//! - The hint of [`near`] belongs to the thread. If a stackful coroutine switches threads inside
//!   `near`, objects lie near the wrong hints.
//! - Valgrind's memcheck may report a branch on uninitialised padding of a hint, which [`near`]
//!   searches for a pointer.
//! - The child of a `fork` may free objects of the parent's other threads, but does not allocate
//!   their memory again.
//! - After `dlclose` of a shared library with this allocator, its heaps stay mapped.
//! - 64-bit Unix only for now. On Unixes other than Linux, large reallocations copy.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(feature = "nightly", feature(allocator_api))]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

#[cfg(not(all(unix, target_pointer_width = "64")))]
compile_error!("ccmalloc runs on 64-bit Unix only");

// First, because the others use its macro.
#[macro_use]
mod debug_assert;

mod abandoned;
#[cfg(any(
    feature = "allocator-api2",
    feature = "allocator-api2-04",
    feature = "nightly"
))]
mod adapters;
mod arena;
mod bin;
mod bits;
mod check;
mod chunk;
mod colocate;
mod configure;
mod extents;
mod first_class;
mod geometry;
mod global;
mod hint;
mod huge;
mod large;
mod list;
mod locate;
mod mapping;
mod options;
mod outcome;
mod owner;
mod pages;
mod policy;
mod primitive;
mod protocol;
pub mod raw;
mod region;
mod registry;
mod remote;
mod size_class;
mod slabs;
mod slot_tags;
mod slots;
mod stats;
mod sweep;
mod sys;
mod target;
mod thin;
mod thread;

pub use configure::{OptionsError, set_options};
pub use first_class::{Heap, HeapStats};
pub use global::{
    CcMalloc, advise_huge_pages, cc_alloc, cc_alloc_with, cc_dealloc, cc_dealloc_each, cc_realloc,
    check, contains, decay, declare_global, is_declared_global, near, near_with, purge, unhinted,
};
pub use hint::{AllocError, AllocResult, HintAllocator, Near, NearHeap, WithHint};
pub use policy::{
    Policy, default_policy, reserved_blocks, set_default_policy, set_reserved_blocks,
};
pub use region::{HeapRegion, Region};
pub use stats::{PlacementReport, Stats, Watch, placement, stats, watch};
pub use target::set_hint_warnings;
pub use thin::{IntoThin, NewNear};
