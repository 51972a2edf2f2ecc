//! [`CTreeMap`] and what its methods give: entries, iterators, cursors.
//!
//! The names are those of `std::collections::btree_map`.
//!
//! # Misuse that must not compile
//! A map, or an iterator that gives `&mut V`, does not live longer than its keys and values. What
//! can put keys or values into a map is invariant in their types.
//! ```
//! use ctree::map::{CursorMut, IterMut, OccupiedEntry, RangeMut, ValuesMut};
//! fn same<'a, 'b: 'a>(x: ctree::CTreeMap<&'b str, u8>) -> ctree::CTreeMap<&'a str, u8> { x }
//! fn same_mut<'a>(x: IterMut<'a, u8, &'static str>) -> IterMut<'a, u8, &'static str> { x }
//! ```
//! ```compile_fail
//! use ctree::CTreeMap as M;
//! fn longer<'a, 'b: 'a>(x: M<&'a str, u8>) -> M<&'b str, u8> { x }
//! ```
//! ```compile_fail
//! use ctree::map::IterMut as M;
//! fn shorter<'a, 'b>(x: M<'a, u8, &'static str>) -> M<'a, u8, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::RangeMut as M;
//! fn shorter<'a, 'b>(x: M<'a, u8, &'static str>) -> M<'a, u8, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::ValuesMut as M;
//! fn shorter<'a, 'b>(x: M<'a, u8, &'static str>) -> M<'a, u8, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::CursorMut as M;
//! fn shorter<'a, 'b>(x: M<'a, u8, &'static str>) -> M<'a, u8, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::OccupiedEntry as M;
//! fn shorter<'a, 'b>(x: M<'a, &'static str, u8>) -> M<'a, &'b str, u8> { x }
//! ```
//!
//! Values whose drop uses what they borrow are dropped first. (Others need not be.)
//! ```compile_fail,E0597
//! struct Shout<'a>(&'a str);
//! impl Drop for Shout<'_> {
//!     fn drop(&mut self) { println!("{}!", self.0) }
//! }
//! let (map, text);
//! text = String::from("value");
//! map = ctree::CTreeMap::from([(1u64, Shout(&text))]);
//! assert_eq!(map.len(), 1);
//! ```
//!
//! Results of lookups and items of iterators do not outlive the map; what a mutable cursor gives
//! does not outlive the cursor's next step.
//! ```
//! let mut map = ctree::CTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! assert_eq!(results, [Some(&10)]);
//! assert_eq!(map.values_mut().next(), Some(&mut 10));
//! let mut cursor = map.lower_bound_mut(std::ops::Bound::Included(&1));
//! assert_eq!(cursor.peek_next(), Some((&1, &mut 10)));
//! cursor.remove_next();
//! drop(map);
//! ```
//! ```compile_fail,E0505
//! let map = ctree::CTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! drop(map);
//! assert_eq!(results, [Some(&10)]);
//! ```
//! ```compile_fail,E0505
//! let mut map = ctree::CTreeMap::from([(1u64, 10)]);
//! let value = map.values_mut().next();
//! drop(map);
//! assert_eq!(value, Some(&mut 10));
//! ```
//! ```compile_fail,E0499
//! let mut map = ctree::CTreeMap::from([(1u64, 10)]);
//! let mut cursor = map.lower_bound_mut(std::ops::Bound::Included(&1));
//! let next = cursor.peek_next();
//! cursor.remove_next();
//! assert_eq!(next, Some((&1, &mut 10)));
//! ```

mod base;
mod bulk;
mod cursor;
mod entry;
mod extract_if;
mod into_iter;
mod iter;
mod many;
mod traits;
mod walk;

pub use base::CTreeMap;
pub use cursor::{Cursor, CursorMut, UnorderedKeyError};
pub use entry::{Entry, OccupiedEntry, OccupiedError, VacantEntry};
pub use extract_if::ExtractIf;
pub use into_iter::{IntoIter, IntoKeys, IntoValues};
pub use iter::{Iter, IterMut, Keys, Range, RangeMut, Values, ValuesMut};

pub(crate) use extract_if::Extraction;
