//! Maps and sets that are built once: no pointers, no free room, children computed.
//!
//! There are two trees below one interface, chosen by the type of the keys:
//!
//! - `lane_tree`: machine integers. Separators are copies, searched by SIMD; keys and small values share leaves.
//! - `key_tree`: everything else. Each key lies in one place, the separators among them; two or three plain vectors, no unsafe code.
//!
//! Both number their entries in order, so that ranks, ranges and iterators are written once, in terms of ranks.
//!
//! Misuse that must not compile: a map of values that are bound to a thread does not leave it, and no entry outlives its map.
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! send(ctree::FrozenCTreeMap::from([(1u64, std::rc::Rc::new(1))]));
//! ```
//! ```compile_fail,E0505
//! let mut map = ctree::FrozenCTreeMap::from([(1u64, 1)]);
//! let value = map.values_mut().next();
//! drop(map);
//! println!("{value:?}");
//! ```

mod entries;
mod error;
mod key_tree;
mod lane_block;
mod lane_tree;
mod map;
mod map_build;
mod map_iter;
mod map_traits;
mod set;
mod set_iter;
mod strided;

#[cfg(test)]
mod tests;

pub use error::{CheckError, OrderError};
pub use map::FrozenCTreeMap;
pub use set::FrozenCTreeSet;

/// Iterators over [`FrozenCTreeMap`].
pub mod frozen_map {
    pub use super::map_iter::{
        IntoIter, IntoKeys, IntoValues, Iter, IterMut, Keys, Range, RangeMut, Values, ValuesMut,
    };
}

/// Iterators over [`FrozenCTreeSet`].
pub mod frozen_set {
    pub use super::set_iter::{IntoIter, Iter, Range};
}

#[cfg(test)]
pub(crate) use lane_tree::LaneTree;
