//! Maps and sets that are built once: no pointers, no free room, children computed.
//!
//! There are two trees below one interface, chosen by the type of the keys:
//!
//! - `lane_tree`: machine integers. Separators are copies, searched by SIMD; keys and small values
//!   share leaves.
//! - `key_tree`: everything else. Each key lies in one place, the separators among them; two or
//!   three plain vectors, no unsafe code. Where the type of the keys has heads, `head_nodes` leads
//!   the search.
//!
//! Both number their entries in order, so that ranks, ranges and iterators are written once, in
//! terms of ranks.
//!
//! # Misuse that must not compile
//! Each case stands after a twin that differs in the one thing that is wrong, and compiles.
//!
//! An iterator that gives `&mut V` is invariant in `V`: through a shortened one, a short-lived
//! value could be put into the map.
//! ```
//! use ctree::frozen_map::Iter;
//! fn shorter<'a, 'b>(x: Iter<'a, u64, &'static str>) -> Iter<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::frozen_map::IterMut;
//! fn shorter<'a, 'b>(x: IterMut<'a, u64, &'static str>) -> IterMut<'a, u64, &'b str> { x }
//! ```
//!
//! The same for ranges,
//! ```
//! use ctree::frozen_map::Range;
//! fn shorter<'a, 'b>(x: Range<'a, u64, &'static str>) -> Range<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::frozen_map::RangeMut;
//! fn shorter<'a, 'b>(x: RangeMut<'a, u64, &'static str>) -> RangeMut<'a, u64, &'b str> { x }
//! ```
//!
//! and for values alone.
//! ```
//! use ctree::frozen_map::Values;
//! fn shorter<'a, 'b>(x: Values<'a, u64, &'static str>) -> Values<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::frozen_map::ValuesMut;
//! fn shorter<'a, 'b>(x: ValuesMut<'a, u64, &'static str>) -> ValuesMut<'a, u64, &'b str> { x }
//! ```
//!
//! A map of values that are bound to a thread does not leave it,
//! ```
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::sync::Arc::new(1))]);
//! send(map);
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map);
//! ```
//!
//! nor does an iterator that could change them,
//! ```
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, std::sync::Arc::new(1))]);
//! send(map.iter_mut());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.iter_mut());
//! ```
//!
//! or an iterator that owns them.
//! ```
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::sync::Arc::new(1))]);
//! send(map.into_iter());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.into_iter());
//! ```
//!
//! Values that change through a shared reference are not read from another thread, by an iterator
//! ```
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::sync::atomic::AtomicU32::new(1))]);
//! send(map.iter());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! send(map.iter());
//! ```
//!
//! or through a shared map.
//! ```
//! fn share<T: Sync>(_: &T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::sync::atomic::AtomicU32::new(1))]);
//! share(&map);
//! ```
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: &T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! share(&map);
//! ```
//!
//! A value whose drop uses what it borrows is dropped before that.
//! ```
//! struct Shout<'a>(&'a str);
//! impl Drop for Shout<'_> {
//!     fn drop(&mut self) { println!("{}!", self.0) }
//! }
//! let (text, map);
//! text = String::from("value");
//! map = ctree::FrozenCTreeMap::from([(1u64, Shout(&text))]);
//! assert_eq!(map.len(), 1);
//! ```
//! ```compile_fail,E0597
//! struct Shout<'a>(&'a str);
//! impl Drop for Shout<'_> {
//!     fn drop(&mut self) { println!("{}!", self.0) }
//! }
//! let (map, text);
//! text = String::from("value");
//! map = ctree::FrozenCTreeMap::from([(1u64, Shout(&text))]);
//! assert_eq!(map.len(), 1);
//! ```
//!
//! No result of a lookup outlives the map,
//! ```
//! let map = ctree::FrozenCTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! assert_eq!(results, [Some(&10)]);
//! drop(map);
//! ```
//! ```compile_fail,E0505
//! let map = ctree::FrozenCTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! drop(map);
//! assert_eq!(results, [Some(&10)]);
//! ```
//!
//! nor does an item of an iterator.
//! ```
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, 10)]);
//! let value = map.values_mut().next();
//! assert_eq!(value, Some(&mut 10));
//! drop(map);
//! ```
//! ```compile_fail,E0505
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, 10)]);
//! let value = map.values_mut().next();
//! drop(map);
//! assert_eq!(value, Some(&mut 10));
//! ```

mod entries;
mod head_nodes;
mod key_tree;
mod lane_block;
mod lane_tree;
mod map;
mod map_build;
mod map_iter;
mod map_traits;
#[cfg(feature = "rayon")]
mod parallel;
#[cfg(feature = "serde")]
mod serde;
mod set;
mod set_ops;
mod strided;

#[cfg(test)]
mod tests;

pub use map::FrozenCTreeMap;
#[cfg(feature = "rayon")]
pub(crate) use map_build::keep_last;
#[cfg(feature = "rayon")]
pub(crate) use parallel::sort_in_parallel;
pub use set::FrozenCTreeSet;

/// Iterators over [`FrozenCTreeMap`].
pub mod frozen_map {
    pub use super::map_iter::{
        IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Range, RangeMut, Values, ValuesMut,
    };
    #[cfg(feature = "rayon")]
    pub use super::parallel::ParIter;
}

/// Iterators over [`FrozenCTreeSet`], and over two of them.
pub mod frozen_set {
    pub use super::set::{IntoIter, Iter, Range};
    pub use super::set_ops::{Difference, Intersection, SymmetricDifference, Union};
}

#[cfg(test)]
pub(crate) use lane_tree::{LaneTree, Wanted};
