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
//! As for [`map`](crate::map#misuse-that-must-not-compile).
//! ```compile_fail
//! use ctree::frozen_map::IterMut as M;
//! fn shorter<'a, 'b>(x: M<'a, u8, &'static str>) -> M<'a, u8, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::frozen_map::ValuesMut as M;
//! fn shorter<'a, 'b>(x: M<'a, u8, &'static str>) -> M<'a, u8, &'b str> { x }
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
mod set;
mod strided;

#[cfg(test)]
mod tests;

pub use map::FrozenCTreeMap;
#[cfg(feature = "rayon")]
pub(crate) use map_build::keep_last;
pub use set::FrozenCTreeSet;

/// Iterators over [`FrozenCTreeMap`].
pub mod frozen_map {
    pub use super::map_iter::{
        IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Range, RangeMut, Values, ValuesMut,
    };
}

/// Iterators over [`FrozenCTreeSet`], and over two of them.
pub mod frozen_set {
    pub use super::set::{
        Difference, Intersection, IntoIter, Iter, Range, SymmetricDifference, Union,
    };
}

#[cfg(test)]
pub(crate) use lane_tree::{LaneTree, Wanted};
