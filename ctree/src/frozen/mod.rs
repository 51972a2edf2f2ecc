//! Maps and sets that are built once: no pointers, no free room, computed children.
//!
//! Two trees lie below one interface, chosen by the type of the keys:
//!
//! - `lane_tree` for machine integers. Separators are copies, searched by SIMD; keys and small
//!   values share leaves.
//! - `key_tree` for everything else. Each key lies in one place, separators included; two or three
//!   vectors, no unsafe code. If the type of the keys has heads, `head_nodes` leads the search.
//!
//! Both number their entries in order. Ranks, ranges and iterators are written once, in terms of
//! ranks.
//!
//! # Misuse that must not compile
//! Each case follows a twin that compiles and differs in the one thing that is wrong.
//!
//! Iterators that give `&mut V` are invariant in `V`: through a shortened one, a short-lived value
//! could be put into the map.
//! ```
//! use ctree::frozen_map::{Iter, Values};
//! fn shorter<'a, 'b>(x: Iter<'a, u64, &'static str>) -> Iter<'a, u64, &'b str> { x }
//! fn shorter_values<'a, 'b>(x: Values<'a, u64, &'static str>) -> Values<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::frozen_map::IterMut;
//! fn shorter<'a, 'b>(x: IterMut<'a, u64, &'static str>) -> IterMut<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::frozen_map::ValuesMut;
//! fn shorter<'a, 'b>(x: ValuesMut<'a, u64, &'static str>) -> ValuesMut<'a, u64, &'b str> { x }
//! ```
//!
//! A map of values that are bound to a thread stays there, and so do iterators that change or own
//! them.
//! ```
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, std::sync::Arc::new(1))]);
//! send(map.iter_mut());
//! send(map.clone().into_iter());
//! send(map);
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map);
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.iter_mut());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.into_iter());
//! ```
//!
//! Other threads do not read values that change through a shared reference.
//! ```
//! fn send<T: Send>(_: T) {}
//! fn share<T: Sync>(_: &T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::sync::atomic::AtomicU32::new(1))]);
//! send(map.iter());
//! share(&map);
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! send(map.iter());
//! ```
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: &T) {}
//! let map = ctree::FrozenCTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! share(&map);
//! ```
//!
//! A value whose drop uses what it borrows is dropped first.
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
//! Results of lookups and items of iterators do not outlive the map.
//! ```
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! assert_eq!(results, [Some(&10)]);
//! assert_eq!(map.values_mut().next(), Some(&mut 10));
//! drop(map);
//! ```
//! ```compile_fail,E0505
//! let map = ctree::FrozenCTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! drop(map);
//! assert_eq!(results, [Some(&10)]);
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
