//! Two sets at once: union, intersection, difference, symmetric difference, as iterators and as
//! operators.
//!
//! All of them walk both sets in step, in O(n + m), and give their keys in order. An intersection
//! with a much larger set would be quicker by lookups: `small.iter().filter(|key|
//! large.contains(key))`.

use core::cmp::Ordering;
use core::fmt;
use core::iter::{FusedIterator, Peekable};
use core::ops::{BitAnd, BitOr, BitXor, Sub};

use super::set::FrozenCTreeSet;
use super::set_iter::Iter;

/// Two sets in step: which keys of either come next.
struct Steps<'a, K> {
    left: Peekable<Iter<'a, K>>,
    right: Peekable<Iter<'a, K>>,
}

/// The next key in order, of one set or of both.
enum Step<'a, K> {
    Left(&'a K),
    Right(&'a K),
    /// An equal key of each; the left one.
    Both(&'a K),
}

impl<'a, K: Ord> Steps<'a, K> {
    fn new(left: &'a FrozenCTreeSet<K>, right: &'a FrozenCTreeSet<K>) -> Self {
        Steps {
            left: left.iter().peekable(),
            right: right.iter().peekable(),
        }
    }

    fn next(&mut self) -> Option<Step<'a, K>> {
        let order = match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) => left.cmp(right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        match order {
            Ordering::Less => self.left.next().map(Step::Left),
            Ordering::Greater => self.right.next().map(Step::Right),
            Ordering::Equal => {
                let _equal = self.right.next();
                self.left.next().map(Step::Both)
            }
        }
    }
}

impl<K> Clone for Steps<'_, K> {
    fn clone(&self) -> Self {
        Steps {
            left: self.left.clone(),
            right: self.right.clone(),
        }
    }
}

/// An iterator, an operator, and the method that makes the iterator.
macro_rules! set_operation {
    (
        $(#[$doc:meta])*
        $name:ident, $method:ident, $operator:ident::$apply:ident,
        |$step:ident| $keep:expr, |$left:ident, $right:ident| $most:expr
    ) => {
        $(#[$doc])*
        pub struct $name<'a, K> {
            steps: Steps<'a, K>,
        }

        impl<'a, K: Ord> Iterator for $name<'a, K> {
            type Item = &'a K;

            fn next(&mut self) -> Option<&'a K> {
                loop {
                    let $step = self.steps.next()?;
                    if let Some(key) = $keep {
                        return Some(key);
                    }
                }
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                let ($left, $right) = (self.steps.left.len(), self.steps.right.len());
                (0, $most)
            }
        }

        impl<K: Ord> FusedIterator for $name<'_, K> {}

        impl<K> Clone for $name<'_, K> {
            fn clone(&self) -> Self {
                $name { steps: self.steps.clone() }
            }
        }

        impl<K: fmt::Debug + Ord> fmt::Debug for $name<'_, K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.clone()).finish()
            }
        }

        impl<K: Ord> FrozenCTreeSet<K> {
            $(#[$doc])*
            pub fn $method<'a>(&'a self, other: &'a FrozenCTreeSet<K>) -> $name<'a, K> {
                $name { steps: Steps::new(self, other) }
            }
        }

        impl<K: Ord + Clone> $operator<&FrozenCTreeSet<K>> for &FrozenCTreeSet<K> {
            type Output = FrozenCTreeSet<K>;

            $(#[$doc])*
            fn $apply(self, other: &FrozenCTreeSet<K>) -> FrozenCTreeSet<K> {
                FrozenCTreeSet::from_ascending(self.$method(other).cloned())
            }
        }
    };
}

set_operation! {
    /// The keys that are in one set or the other, in order; of equal ones, that of the left set.
    Union, union, BitOr::bitor,
    |step| match step { Step::Left(key) | Step::Right(key) | Step::Both(key) => Some(key) },
    |left, right| left.checked_add(right)
}

set_operation! {
    /// The keys of the left set that are in the right one too, in order.
    Intersection, intersection, BitAnd::bitand,
    |step| match step { Step::Both(key) => Some(key), Step::Left(_) | Step::Right(_) => None },
    |left, right| Some(left.min(right))
}

set_operation! {
    /// The keys of the left set that are not in the right one, in order.
    Difference, difference, Sub::sub,
    |step| match step { Step::Left(key) => Some(key), Step::Right(_) | Step::Both(_) => None },
    |left, _right| Some(left)
}

set_operation! {
    /// The keys that are in one of the sets and not in both, in order.
    SymmetricDifference, symmetric_difference, BitXor::bitxor,
    |step| match step { Step::Left(key) | Step::Right(key) => Some(key), Step::Both(_) => None },
    |left, right| left.checked_add(right)
}
