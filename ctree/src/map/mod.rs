//! [`CTreeMap`] and what its methods give: entries, iterators, cursors.
//!
//! The names are those of `std::collections::btree_map`, so that a program changes maps by changing
//! an import.
//!
//! # Misuse that must not compile
//! Each case stands after a twin that differs in the one thing that is wrong, and compiles.
//!
//! A map may be used where one of a shorter life is expected,
//! ```
//! use ctree::CTreeMap;
//! fn shorter<'a, 'b: 'a>(x: CTreeMap<&'b str, &'b str>) -> CTreeMap<&'a str, &'a str> { x }
//! fn shorter_keys<'a, 'b: 'a>(x: ctree::map::Keys<'b, &'b str, u8>) -> ctree::map::Keys<'a, &'a str, u8> { x }
//! fn shorter_owned<'a, 'b: 'a>(x: ctree::map::IntoIter<&'b str, u8>) -> ctree::map::IntoIter<&'a str, u8> { x }
//! ```
//! but not one of a longer life.
//! ```compile_fail
//! use ctree::CTreeMap;
//! fn longer<'a, 'b: 'a>(x: CTreeMap<&'a str, &'a str>) -> CTreeMap<&'b str, &'b str> { x }
//! ```
//!
//! An iterator that gives `&mut V` is invariant in `V`: through a shortened one, a short-lived
//! value could be put into the map.
//! ```
//! use ctree::map::Iter;
//! fn shorter<'a, 'b>(x: Iter<'a, u64, &'static str>) -> Iter<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::IterMut;
//! fn shorter<'a, 'b>(x: IterMut<'a, u64, &'static str>) -> IterMut<'a, u64, &'b str> { x }
//! ```
//!
//! The same for ranges,
//! ```
//! use ctree::map::Range;
//! fn shorter<'a, 'b>(x: Range<'a, u64, &'static str>) -> Range<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::RangeMut;
//! fn shorter<'a, 'b>(x: RangeMut<'a, u64, &'static str>) -> RangeMut<'a, u64, &'b str> { x }
//! ```
//!
//! for values alone,
//! ```
//! use ctree::map::Values;
//! fn shorter<'a, 'b>(x: Values<'a, u64, &'static str>) -> Values<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::ValuesMut;
//! fn shorter<'a, 'b>(x: ValuesMut<'a, u64, &'static str>) -> ValuesMut<'a, u64, &'b str> { x }
//! ```
//!
//! for cursors,
//! ```
//! use ctree::map::Cursor;
//! fn shorter<'a, 'b>(x: Cursor<'a, u64, &'static str>) -> Cursor<'a, u64, &'b str> { x }
//! ```
//! ```compile_fail
//! use ctree::map::CursorMut;
//! fn shorter<'a, 'b>(x: CursorMut<'a, u64, &'static str>) -> CursorMut<'a, u64, &'b str> { x }
//! ```
//!
//! and for entries, through which keys get into the map, too.
//! ```
//! use ctree::map::OccupiedEntry;
//! fn same<'a>(x: OccupiedEntry<'a, &'static str, u64>) -> OccupiedEntry<'a, &'static str, u64> { x }
//! ```
//! ```compile_fail
//! use ctree::map::OccupiedEntry;
//! fn shorter<'a, 'b>(x: OccupiedEntry<'a, &'static str, u64>) -> OccupiedEntry<'a, &'b str, u64> { x }
//! ```
//!
//! A map of values that are bound to a thread does not leave it,
//! ```
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::sync::Arc::new(1))]);
//! send(map);
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map);
//! ```
//!
//! nor does what could change or remove them.
//! ```
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::CTreeMap::from([(1u64, std::sync::Arc::new(1))]);
//! send(map.iter_mut());
//! send(map.entry(1));
//! send(map.lower_bound_mut(std::ops::Bound::Included(&1)));
//! send(map.extract_if(.., |_, _| true));
//! send(map.into_iter());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::CTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.iter_mut());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::CTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.entry(1));
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::CTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.lower_bound_mut(std::ops::Bound::Included(&1)));
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let mut map = ctree::CTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.extract_if(.., |_, _| true));
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::rc::Rc::new(1))]);
//! send(map.into_iter());
//! ```
//!
//! Values that change through a shared reference are not read from another thread: by an iterator,
//! ```
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::sync::atomic::AtomicU32::new(1))]);
//! send(map.iter());
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! send(map.iter());
//! ```
//!
//! a cursor,
//! ```
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::sync::atomic::AtomicU32::new(1))]);
//! send(map.lower_bound(std::ops::Bound::Included(&1)));
//! ```
//! ```compile_fail,E0277
//! fn send<T: Send>(_: T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! send(map.lower_bound(std::ops::Bound::Included(&1)));
//! ```
//!
//! or through a shared map.
//! ```
//! fn share<T: Sync>(_: &T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::sync::atomic::AtomicU32::new(1))]);
//! share(&map);
//! ```
//! ```compile_fail,E0277
//! fn share<T: Sync>(_: &T) {}
//! let map = ctree::CTreeMap::from([(1u64, std::cell::Cell::new(1))]);
//! share(&map);
//! ```
//!
//! A map of references may be declared before what it borrows, since it does not look at them when
//! it is dropped. A map of values whose drop looks at what they borrow may not.
//! ```
//! struct Whisper<'a>(&'a str);
//! let (mut map, text);
//! text = String::from("value");
//! map = ctree::CTreeMap::new();
//! map.insert(1u64, Whisper(&text));
//! assert_eq!(map[&1].0, "value");
//! ```
//! ```compile_fail,E0597
//! struct Shout<'a>(&'a str);
//! impl Drop for Shout<'_> {
//!     fn drop(&mut self) { println!("{}!", self.0) }
//! }
//! let (mut map, text);
//! text = String::from("value");
//! map = ctree::CTreeMap::new();
//! map.insert(1u64, Shout(&text));
//! assert_eq!(map[&1].0, "value");
//! ```
//!
//! No result of a lookup outlives the map,
//! ```
//! let map = ctree::CTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! assert_eq!(results, [Some(&10)]);
//! drop(map);
//! ```
//! ```compile_fail,E0505
//! let map = ctree::CTreeMap::from([(1u64, 10)]);
//! let mut results = [None];
//! map.get_many(&[1], &mut results);
//! drop(map);
//! assert_eq!(results, [Some(&10)]);
//! ```
//!
//! nor does what an iterator or a cursor gave; and what a mutable cursor gave does not outlive the
//! cursor's next step.
//! ```
//! let mut map = ctree::CTreeMap::from([(1u64, 10)]);
//! let value = map.values_mut().next();
//! assert_eq!(value, Some(&mut 10));
//! let mut cursor = map.lower_bound_mut(std::ops::Bound::Included(&1));
//! assert_eq!(cursor.peek_next(), Some((&1, &mut 10)));
//! assert_eq!(cursor.remove_next(), Some((1, 10)));
//! drop(map);
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
#[cfg(feature = "rayon")]
pub mod parallel;
mod range;
mod traits;
mod walk;

#[cfg(test)]
mod tests;

pub use base::CTreeMap;
pub use cursor::{Cursor, CursorMut, UnorderedKeyError};
pub use entry::{Entry, OccupiedEntry, OccupiedError, VacantEntry};
pub use extract_if::ExtractIf;
pub use into_iter::{IntoIter, IntoKeys, IntoValues};
pub use iter::{Iter, IterMut, Keys, Values, ValuesMut};
pub use range::{Range, RangeMut};

pub(crate) use extract_if::Extraction;
