//! [`CTreeSet`] and what its methods give: iterators, set operations, cursors.
//!
//! A set is a [`CTreeMap`](crate::CTreeMap) without values. The names are those of
//! `std::collections::btree_set`. What must not compile is shown in
//! [`map`](crate::map#misuse-that-must-not-compile).

mod algebra;
mod base;
mod cursor;
mod entry;
mod iter;
mod traits;

pub use algebra::{Difference, Intersection, SymmetricDifference, Union};
pub use base::CTreeSet;
pub use cursor::{Cursor, CursorMut};
pub use entry::{Entry, OccupiedEntry, VacantEntry};
pub use iter::{ExtractIf, IntoIter, Iter, Range};

pub use crate::map::UnorderedKeyError;
