//! Ordered maps and sets for lookups that miss the cache.
//!
//! A lookup in a large `BTreeMap` waits for memory several times per level: for the header of a
//! node, its keys, its child pointers. In the trees here it waits once per level, and few levels
//! are not in a cache.
//!
//! - [`CTreeMap`] and [`CTreeSet`]: all methods of `BTreeMap` and `BTreeSet`, for keys of any type
//!   with `Ord`; and batches, cursors, ranks.
//! - [`FrozenCTreeMap`] and [`FrozenCTreeSet`]: built once, from sorted or unsorted entries, then
//!   looked up. There are no pointers, as in the C-trees of T. Chilimbi, *Cache-Conscious Data
//!   Structures* (1999), section 3.2: the address of a child is computed.
//! - `MappedCTreeMap` and `MappedCTreeSet` (feature `mmap`, on by default): the frozen form as a
//!   file, opened without being read.
//!
//! ```text
//! dynamic: entries and pointers in each node     frozen: child c of node k is node 17 k + c
//!
//!      | k0 .. k29  v0 .. v29  c0 .. c30 |                     | s0 .. s15 |
//!        /            |            \                            /         \
//!  | k .. v .. | | k .. v .. | | k .. v .. |     | k0 .. k15 v0 .. v15 | k16 .. k31 v16 .. v31 |
//! ```
//!
//! In the repository, `docs/use/ctree.md` says which one to take, `docs/inside/ctree.md` how they
//! work and what was measured.
//!
//! # Example
//! ```
//! use ctree::{CTreeMap, FrozenCTreeMap};
//!
//! let mut map: CTreeMap<u64, &str> = [(30, "thirty"), (10, "ten")].into();
//! map.insert(20, "twenty");
//! assert_eq!(map.get(&20), Some(&"twenty"));
//! assert_eq!(map.range(15..).next(), Some((&20, &"twenty")));
//!
//! let frozen = FrozenCTreeMap::from_sorted_iter(map)?;
//! assert_eq!(frozen.rank(&25), 2);
//! # Ok::<(), ctree::OrderError>(())
//! ```
//!
//! # Words
//! - **line**: a cache line of 64 B, the unit that moves between memory and cache.
//! - **node**, **leaf**: what one step of a search reads; their lines are requested together.
//! - **lane**: the place of one integer within a node: a key, or what stands for its order.
//! - **head**: an integer that stands for the order of a key, see [`Head`].
//! - **rank**: the number of keys less than a given one; the place of an entry, counted from 0.
//!
//! # When it will not help
//! In a map of a few hundred entries, which stays in the first-level cache; with large values,
//! which fill lines by themselves; and with keys that are expensive to compare and have no heads.
//!
//! # Threads
//! Any number of threads read a map at the same time without locks, if its keys and values are
//! `Sync`. A map that others read cannot be changed.
//!
//! # Without std
//! The crate needs `core` and `alloc`, on any target. Its feature `std`, on by default, adds huge
//! pages for large trees and the detection of vector instructions at run time. Without it the
//! search uses those that the program was compiled for.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), no_std)]
#![warn(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core
)]

extern crate alloc;
#[cfg(all(feature = "std", not(test)))]
extern crate std;

// Modules, lowest first; each uses only those before it: `error`, `block`, `narrow`, `lane`,
// `head`, `plan`, `simd`, `tree`, `rank_iter`, `algebra`, `traits`, `frozen`, `map`, `set`,
// `parallel`, `serde`, `mapped`.
mod algebra;
mod block;
mod error;
mod frozen;
mod head;
mod lane;
pub mod map;
#[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
mod mapped;
mod narrow;
#[cfg(feature = "rayon")]
mod parallel;
mod plan;
mod rank_iter;
#[cfg(feature = "serde")]
mod serde;
pub mod set;
mod simd;
mod traits;
mod tree;

pub use error::{CheckError, OrderError};
pub use frozen::{FrozenCTreeMap, FrozenCTreeSet, frozen_map, frozen_set};
pub use head::{Head, TotalF32, TotalF64};
pub use map::CTreeMap;
#[cfg(all(feature = "mmap", unix, target_pointer_width = "64"))]
pub use mapped::{
    AsStored, MappedCTreeMap, MappedCTreeSet, OpenError, OpenOptions, Plain, Stored, StoredKey,
    VerifyError, WriteError, mapped_map, mapped_set,
};
pub use set::CTreeSet;
