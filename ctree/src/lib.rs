//! Ordered maps and sets for lookups that miss the cache.
//!
//! A lookup in a large `BTreeMap` spends its time waiting for memory, several times in a row: for the header of a node, for its keys,
//! for its child pointers. The trees here are laid out so that a lookup waits once a level, and has few levels that are not in a cache.
//!
//! - [`FrozenCTreeMap`] and [`FrozenCTreeSet`]: built once, from sorted or unsorted entries, then looked up. Pointers are eliminated, as
//!   in the C-trees of T. Chilimbi, *Cache-Conscious Data Structures* (1999), section 3.2: where a child lies is computed.
//! - [`MappedCTreeMap`] and [`MappedCTreeSet`] (feature `mmap`): the same as a file, written once and looked up where it lies.
//!
//! ```text
//! level 0                  | s0 ... s15 |                      two cache lines of separators, 17 children a node
//!                         /      |       \
//! level 1      | s0 .. s15 | s0 .. s15 | ...                   a level is an array: child c of node k is node 17 k + c
//!                /      |
//! leaves   | k0 .. k15 v0 .. v15 | k16 .. k31 v16 .. v31 | ... entry r is slot r % 16 of leaf r / 16
//! ```
//!
//! # Example
//! ```
//! use ctree::FrozenCTreeMap;
//!
//! let map: FrozenCTreeMap<u64, &str> = [(30, "thirty"), (10, "ten"), (20, "twenty")].into();
//! assert_eq!(map.get(&20), Some(&"twenty"));
//! assert_eq!(map.range(15..).next(), Some((&20, &"twenty")));
//! ```
//!
//! # Words
//! - **line**: a cache line of 64 B, the unit that moves between memory and cache.
//! - **node**, **leaf**: what one step of a search reads; their lines are requested together.
//! - **lane**: the place of one integer key within a node.
//! - **rank**: the number of keys less than a given one; the place of an entry, counted from 0.
//!
//! # When it will not help
//! A map of a few hundred entries lives in the nearest cache, where a `BTreeMap` is good enough. Keys that own memory elsewhere, such as
//! `String`, cost a miss for each comparison wherever the keys lie. And a map that changes all the time is not frozen.

extern crate alloc;

mod block;
mod frozen;
mod lane;
#[cfg(feature = "mmap")]
mod mapped;
mod plan;
mod simd;

pub use frozen::{CheckError, FrozenCTreeMap, FrozenCTreeSet, OrderError, frozen_map, frozen_set};
#[cfg(feature = "mmap")]
pub use mapped::{
    AsStored, MappedCTreeMap, MappedCTreeSet, OpenError, OpenOptions, Plain, Stored, StoredKey,
    VerifyError, WriteError, mapped_map, mapped_set,
};
