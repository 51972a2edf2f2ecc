//! What holds the number of a node.
//!
//! The lifetimes are those of [`Links`](crate::Links): all indices are borrowed until the end of
//! the morph, and rewritten after the last call of user code. An index that was shown cannot be
//! shown again, nor changed.

use crate::macros::collections;
use std::num::NonZero;

/// An integer that numbers a node, or an optional one: `u8` to `u64`, `usize`, the signed ones,
/// [`NonZero`] of them, and `Option` of all these.
///
/// A number that no node of the slice has, such as `u32::MAX`, -1 or `None`, means "no node" and
/// stays as it is. The trait is sealed, so that reading and writing an index cannot panic. A type
/// of your own that wraps an index implements [`Indices`] instead.
pub trait NodeIndex: Slot {}

/// Access to the integer.
#[expect(unnameable_types, reason = "sealed: no other crate may implement it")]
pub trait Slot {
    /// The number held; `None` when it cannot be that of a node.
    fn get(&self) -> Option<usize>;
    /// Whether [`set`](Slot::set) can write this number.
    fn can_hold(&self, index: usize) -> bool;
    /// Writes a number that fits; leaves the place as it is for another one.
    fn set(&mut self, index: usize);
}

/// One or more [`NodeIndex`]es: an integer, an optional one, or a collection of them.
///
/// Implement it for a type of your own that wraps an index, by `visit(&mut self.0)`; no
/// implementation can be wrong. Show an index in a `Cell` or an atomic as `node.next.get_mut()`.
pub trait Indices {
    /// Calls `visit` for each index, in the order in which the nodes count as siblings.
    fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn NodeIndex));
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl Slot for $integer {
            fn get(&self) -> Option<usize> {
                usize::try_from(*self).ok()
            }

            fn can_hold(&self, index: usize) -> bool {
                <$integer>::try_from(index).is_ok()
            }

            fn set(&mut self, index: usize) {
                *self = <$integer>::try_from(index).unwrap_or(*self);
            }
        }

        impl Slot for NonZero<$integer> {
            fn get(&self) -> Option<usize> {
                usize::try_from((*self).get()).ok()
            }

            fn can_hold(&self, index: usize) -> bool {
                index != 0 && <$integer>::try_from(index).is_ok()
            }

            fn set(&mut self, index: usize) {
                if let Some(index) = index.try_into().ok().and_then(NonZero::new) {
                    *self = index;
                }
            }
        }

        leaf!([] $integer);
        leaf!([] NonZero<$integer>);
    )*};
}

macro_rules! leaf {
    ([$($parameters:tt)*] $index:ty) => {
        impl<$($parameters)*> NodeIndex for $index {}

        impl<$($parameters)*> Indices for $index {
            fn show<'a>(&'a mut self, visit: &mut dyn FnMut(&'a mut dyn NodeIndex)) {
                visit(self);
            }
        }
    };
}

integers! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }
leaf!([I: NodeIndex] Option<I>);

impl<I: Slot> Slot for Option<I> {
    fn get(&self) -> Option<usize> {
        self.as_ref()?.get()
    }

    fn can_hold(&self, index: usize) -> bool {
        self.as_ref().is_some_and(|slot| slot.can_hold(index))
    }

    fn set(&mut self, index: usize) {
        if let Some(slot) = self {
            slot.set(index);
        }
    }
}

collections! {
    show(&mut dyn FnMut(&'a mut dyn NodeIndex))
    [I: Indices] Indices, [I]: iter_mut;
    [I: Indices, const N: usize] Indices, [I; N]: iter_mut;
    [I: Indices] Indices, Vec<I>: iter_mut;
    [I: Indices] Indices, Box<[I]>: iter_mut;
}
