//! Ordered maps and sets for lookups that miss the cache.
//!
//! A lookup in a large `BTreeMap` spends its time waiting for memory, several times in a row: for
//! the header of a node, for its keys, for its child pointers. The trees here are laid out so that
//! a lookup waits once a level, and has few levels that are not in a cache.
//!
//! - [`CTreeMap`] and [`CTreeSet`]: what `BTreeMap` and `BTreeSet` are, method for method, for keys
//!   of any type with `Ord`; and batches, cursors, ranks.
//! - [`FrozenCTreeMap`] and [`FrozenCTreeSet`]: built once, from sorted or unsorted entries, then
//!   looked up. Pointers are eliminated, as in the C-trees of T. Chilimbi, *Cache-Conscious Data
//!   Structures* (1999), section 3.2: where a child lies is computed.
//! - `MappedCTreeMap` and `MappedCTreeSet` (feature `mmap`, on by default): the frozen form as a
//!   file, opened without being read.
//!
//! ```text
//! dynamic: entries and pointers in each node             frozen: a level is an array, child c of node k is node 17 k + c
//!
//!        | k0 .. k29  v0 .. v29  c0 .. c30 |                           | s0 .. s15 |
//!          /            |            \                               /      |      \
//!  | k .. v .. |   | k .. v .. |   | k .. v .. |          | k0 .. k15 v0 .. v15 | k16 .. k31 v16 .. v31 | ...
//! ```
//!
//! The guide, `docs/ctree.md` in the repository, shows how they work, which one to take, and what
//! was measured.
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
//! assert_eq!(frozen.lower_bound(&25), 2);
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
//! A map of a few hundred entries lives in the nearest cache, where a `BTreeMap` is good enough.
//! Large values fill lines by themselves. And keys that are expensive to compare and have no heads
//! cost their comparisons, wherever they lie.
//!
//! # Threads
//! Maps of which keys and values are `Sync` are read by any number of threads at the same time,
//! without locks. Changing a map that others read is not offered.
//!
//! # Without std
//! The crate needs `core` and `alloc`, on any target. Its feature `std`, on by default, adds what
//! an operating system is asked for: huge pages behind large trees, and which vector instructions
//! the machine has. Without it the search uses those that the program was compiled for.

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
mod plan;
mod rank_iter;
pub mod set;
mod simd;
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
