//! A global allocator that takes a hint, and puts the new object into the hint's cache block.
//!
//! A processor waits some hundred nanoseconds for a node that `malloc` put anywhere, and nothing for one that lies in the cache
//! block it has just fetched. [`CcMalloc`] is an ordinary, thread-caching allocator for everything; and where a program knows
//! what a new object will be used together with, it says so: T. Chilimbi's `ccmalloc` (*Cache-Conscious Data Structures*, 1999,
//! section 4.2), for today's machines and for Rust.
//!
//! ```
//! use ccmalloc::{CcMalloc, near};
//!
//! #[global_allocator]
//! static GLOBAL: CcMalloc = CcMalloc::new();
//!
//! #[derive(Default)]
//! struct Tree { key: u64, left: Option<Box<Tree>>, right: Option<Box<Tree>> }
//!
//! fn insert(tree: &mut Tree, key: u64) {
//!     let next = if key < tree.key { &tree.left } else { &tree.right };
//!     match next {
//!         Some(_) if key < tree.key => insert(tree.left.as_mut().unwrap(), key),
//!         Some(_) => insert(tree.right.as_mut().unwrap(), key),
//!         None => {
//!             // The only change to the program: the new node is born beside its parent.
//!             let leaf = near(tree, || Box::new(Tree { key, ..Tree::default() }));
//!             if key < tree.key { tree.left = Some(leaf) } else { tree.right = Some(leaf) }
//!         }
//!     }
//! }
//!
//! let mut tree = Tree { key: 500, ..Tree::default() };
//! for i in 0..1000 {
//!     insert(&mut tree, i * 7919 % 1000);
//! }
//! println!("{:?}", ccmalloc::placement());
//! ```
//!
//! # Ways to give a hint
//!
//! - [`near`]`(&x, || ...)`: everything that the closure allocates, by whatever type.
//! - [`cc_alloc`], [`cc_realloc`], [`cc_dealloc`]: one object, for code that allocates by hand.
//! - [`Region`]: each object at an offset of the caller's choice, for whoever lays out a whole structure (`ccmorph` does).
//!
//! **Any hint is safe.** It is a number to the allocator, which never reads through it: a bad one costs placement, never
//! correctness. Objects are placed only beside objects of their own thread, so that no hint makes two threads share a block.
//!
//! # How it works
//!
//! One allocation without a hint: [`CcMalloc`]'s `alloc` → `thread::alloc` looks the size class up and takes the object that was freed
//! last, else the lowest set bit of one word of a free map (`Heap::pop`); every 64 objects `Own::refill` looks for the next word.
//! One free: the address, masked, gives the chunk's metadata; the slab's tag says that it is this thread's, the bit is set again, and the
//! object is kept at hand (`Heap::push`).
//! Neither uses an atomic read-modify-write, and neither touches the object. Another thread's object goes to `free_remote`.
//!
//! One allocation with a hint: `Own::alloc_near` asks the registry whether the hint lies in a co-location page of this heap, reads the page's free map (one
//! cache line), and takes the hint's block, else another on its page by the [`Policy`], else a tied page, else a new seat.
//!
//! The modules' own documentation draws the memory and argues the details: `geometry` (units), `chunk` (where metadata lies),
//! `heap` and `slabs` (unhinted), `colocate` (hinted), `remote` and `protocol` (frees from other threads, heaps that change hands), `registry`
//! (membership), `large`.
//!
//! # When it does not help
//!
//! Placement saves misses. A structure that fits the second-level cache, one that is built in the order in which it is walked,
//! or one whose nodes are larger than a few blocks has few to save. [`placement`] tells what became of the hints.
//!
//! # Known limits
//!
//! - Memory of an ended thread is taken over whole by the next thread that starts; what other threads free into it before that
//!   goes back to the OS when any thread needs a new chunk.
//! - Slots of 64 KiB that become empty are reused, but go back to the OS only with their whole chunk of 2 MiB.
//! - Freed pointers are checked against the free maps: double frees, pointers into objects, and wrong sizes of large and of co-located
//!   objects are found out, unless the memory has been handed out anew in between, and abort the process with one line on stderr. A
//!   wrong size of an object in a slab goes unnoticed; the free itself does not need the size there.
//!   The free of a small object looks at the start of the 2 MiB around it before anything else: for a pointer that never came from
//!   here, or whose chunk is gone, the process may end with a segmentation fault in place of the line.
//! - Like `malloc`, it is not async-signal-safe. A signal handler may ask [`contains`] at any time; it may allocate, free and use [`near`]
//!   only where it cannot have interrupted the allocator, and leaves the ambient hint of what it interrupted as it was.
//! - The child of a `fork` has the memory of the parent's other threads, and may free objects in it, but never hands that memory out again.
//! - Unix only for now; on other Unixes than Linux, large reallocations copy.
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod abandoned;
mod bits;
mod check;
mod chunk;
mod colocate;
mod geometry;
mod global;
mod heap;
mod large;
mod policy;
mod primitive;
mod protocol;
mod region;
mod registry;
mod remote;
mod size_class;
mod slabs;
mod slots;
mod stats;
mod sys;
mod thread;

pub use global::{
    CcMalloc, advise_huge_pages, cc_alloc, cc_alloc_with, cc_dealloc, cc_realloc, check, contains,
    near, near_with,
};
pub use policy::{Policy, default_policy, set_default_policy};
pub use region::Region;
pub use stats::{PlacementReport, Stats, placement, stats};
