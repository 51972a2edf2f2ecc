//! What two sets have to do with each other: difference, intersection, union; subsets.
//!
//! All four iterators are lazy. Two sets of similar length are walked side by side. Where one is
//! much shorter, its keys are looked up in the other one instead; where the ranges of the keys do
//! not overlap, or touch in one key, there is nothing to compare at all.

use core::cmp::Ordering;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::{BitAnd, BitOr, BitXor, Sub};

use allocator_api2::alloc::{Allocator, Global};

use super::CTreeSet;
use super::iter::Iter;
use crate::map::CTreeMap;

/// One set is this many times as long as the other when looking up the keys of the one in the other
/// beats walking both.
///
/// Keys of 8 B, half of them common, on an Emerald Rapids (2 MB of L2, busy): searched 3 and walked
/// 4 µs (2,000 keys, ratio 8), 1 and 3 µs (ratio 16); 17 and 12 ms (1 million, ratio 8), 10 and 11
/// ms (ratio 16).
const SEARCH_RATIO: usize = 16;

/// How the ranges of the keys of two sets lie, as far as it matters to their intersection.
enum Overlap<'a, K> {
    /// They have no key in common.
    Nothing,
    /// This key, the last of one and the first of the other.
    Touch(&'a K, End),
    /// There may be common keys anywhere.
    Ranges,
}

/// Which end of the left set it is that touches.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

/// How the ranges of two sets overlap. Three lookups of ends, two comparisons.
fn overlap<'a, K: Ord, A: Allocator>(
    left: &'a CTreeSet<K, A>,
    right: &'a CTreeSet<K, A>,
) -> Overlap<'a, K> {
    let (Some(left_first), Some(left_last)) = (left.first(), left.last()) else {
        return Overlap::Nothing;
    };
    let (Some(right_first), Some(right_last)) = (right.first(), right.last()) else {
        return Overlap::Nothing;
    };
    match (left_first.cmp(right_last), left_last.cmp(right_first)) {
        (Ordering::Greater, _) | (_, Ordering::Less) => Overlap::Nothing,
        (Ordering::Equal, _) => Overlap::Touch(left_first, End::First),
        (_, Ordering::Equal) => Overlap::Touch(left_last, End::Last),
        _ => Overlap::Ranges,
    }
}

/// The keys of one set that are not in the other, in order, from [`CTreeSet::difference`].
#[must_use = "this returns the difference as an iterator, without modifying either input set"]
pub struct Difference<'a, K, A: Allocator = Global> {
    way: DifferenceWay<'a, K, A>,
}

/// How a difference is computed.
enum DifferenceWay<'a, K, A: Allocator> {
    /// Both sets are walked.
    Stitch {
        left: Iter<'a, K>,
        right: Peeking<'a, K>,
    },
    /// The keys of the left set are looked up in the right one.
    Search {
        left: Iter<'a, K>,
        right: &'a CTreeSet<K, A>,
    },
    /// All of these keys.
    All(Iter<'a, K>),
}

/// A `Peekable` that is covariant in `K`.
struct Peeking<'a, K> {
    iter: Iter<'a, K>,
    peeked: Option<Option<&'a K>>,
}

impl<'a, K> Peeking<'a, K> {
    /// The next key, which stays.
    fn peek(&mut self) -> Option<&'a K> {
        *self.peeked.get_or_insert_with(|| self.iter.next())
    }

    /// Passes over the key that was peeked at.
    fn pass(&mut self) {
        self.peeked = None;
    }

    /// Number of keys left.
    fn len(&self) -> usize {
        self.iter.len() + usize::from(self.peeked.flatten().is_some())
    }
}

/// The keys that are in both of two sets, in order, from [`CTreeSet::intersection`].
#[must_use = "this returns the intersection as an iterator, without modifying either input set"]
pub struct Intersection<'a, K, A: Allocator = Global> {
    way: IntersectionWay<'a, K, A>,
}

/// How an intersection is computed.
enum IntersectionWay<'a, K, A: Allocator> {
    /// Both sets are walked.
    Stitch {
        left: Iter<'a, K>,
        right: Iter<'a, K>,
    },
    /// The keys of the shorter set are looked up in the longer one.
    Search {
        short: Iter<'a, K>,
        long: &'a CTreeSet<K, A>,
    },
    /// This key, or none.
    One(Option<&'a K>),
}

/// The keys that are in one of two sets and not in both, in order, from
/// [`CTreeSet::symmetric_difference`].
#[must_use = "this returns the difference as an iterator, without modifying either input set"]
pub struct SymmetricDifference<'a, K> {
    merge: Merge<'a, K>,
}

/// The keys that are in at least one of two sets, in order, from [`CTreeSet::union`].
#[must_use = "this returns the union as an iterator, without modifying either input set"]
pub struct Union<'a, K> {
    merge: Merge<'a, K>,
}

/// Two sets being walked side by side.
struct Merge<'a, K> {
    left: Iter<'a, K>,
    right: Iter<'a, K>,
    /// A key that one side gave and that was greater than the other side's.
    held: Option<Held<&'a K>>,
}

/// A key of the left side (`A`) or of the right one (`B`). `Debug` prints the names that std has.
#[derive(Clone, Copy, Debug)]
enum Held<T> {
    A(T),
    B(T),
}

impl<'a, K> Merge<'a, K> {
    /// Walks both.
    fn new(left: Iter<'a, K>, right: Iter<'a, K>) -> Self {
        Merge {
            left,
            right,
            held: None,
        }
    }

    /// The next smallest key: from the left side, the right side, or both.
    fn next(&mut self) -> (Option<&'a K>, Option<&'a K>)
    where
        K: Ord,
    {
        let (left, right) = match self.held.take() {
            Some(Held::A(key)) => (Some(key), self.right.next()),
            Some(Held::B(key)) => (self.left.next(), Some(key)),
            None => (self.left.next(), self.right.next()),
        };
        if let (Some(left_key), Some(right_key)) = (left, right) {
            match left_key.cmp(right_key) {
                Ordering::Less => {
                    self.held = Some(Held::B(right_key));
                    return (left, None);
                }
                Ordering::Greater => {
                    self.held = Some(Held::A(left_key));
                    return (None, right);
                }
                Ordering::Equal => {}
            }
        }
        (left, right)
    }

    /// Keys left on either side.
    fn lens(&self) -> (usize, usize) {
        let (left, right) = (self.left.len(), self.right.len());
        match self.held {
            Some(Held::A(_)) => (left + 1, right),
            Some(Held::B(_)) => (left, right + 1),
            None => (left, right),
        }
    }
}

impl<K> Clone for Merge<'_, K> {
    fn clone(&self) -> Self {
        Merge {
            left: self.left.clone(),
            right: self.right.clone(),
            held: self.held,
        }
    }
}

impl<'a, K: Ord, A: Allocator> Iterator for Difference<'a, K, A> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        match &mut self.way {
            DifferenceWay::Stitch { left, right } => {
                let mut key = left.next()?;
                while let Some(other) = right.peek() {
                    match key.cmp(other) {
                        Ordering::Less => break,
                        Ordering::Equal => {
                            key = left.next()?;
                            right.pass();
                        }
                        Ordering::Greater => right.pass(),
                    }
                }
                Some(key)
            }
            DifferenceWay::Search { left, right } => left.find(|key| !right.contains(*key)),
            DifferenceWay::All(keys) => keys.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (left_len, right_len) = match &self.way {
            DifferenceWay::Stitch { left, right } => (left.len(), right.len()),
            DifferenceWay::Search { left, right } => (left.len(), right.len()),
            DifferenceWay::All(keys) => (keys.len(), 0),
        };
        (left_len.saturating_sub(right_len), Some(left_len))
    }

    fn min(mut self) -> Option<&'a K> {
        self.next()
    }
}

impl<'a, K: Ord, A: Allocator> Iterator for Intersection<'a, K, A> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        match &mut self.way {
            IntersectionWay::Stitch { left, right } => {
                let (mut left_key, mut right_key) = (left.next()?, right.next()?);
                loop {
                    match left_key.cmp(right_key) {
                        Ordering::Less => left_key = left.next()?,
                        Ordering::Greater => right_key = right.next()?,
                        Ordering::Equal => return Some(left_key),
                    }
                }
            }
            IntersectionWay::Search { short, long } => short.find(|key| long.contains(*key)),
            IntersectionWay::One(key) => key.take(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.way {
            IntersectionWay::Stitch { left, right } => (0, Some(left.len().min(right.len()))),
            IntersectionWay::Search { short, .. } => (0, Some(short.len())),
            IntersectionWay::One(key) => {
                (usize::from(key.is_some()), Some(usize::from(key.is_some())))
            }
        }
    }

    fn min(mut self) -> Option<&'a K> {
        self.next()
    }
}

impl<'a, K: Ord> Iterator for SymmetricDifference<'a, K> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        loop {
            match self.merge.next() {
                (Some(_), Some(_)) => {}
                (left, right) => return left.or(right),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (left_len, right_len) = self.merge.lens();
        (0, left_len.checked_add(right_len))
    }

    fn min(mut self) -> Option<&'a K> {
        self.next()
    }
}

impl<'a, K: Ord> Iterator for Union<'a, K> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        let (left, right) = self.merge.next();
        left.or(right)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (left_len, right_len) = self.merge.lens();
        (left_len.max(right_len), left_len.checked_add(right_len))
    }

    fn min(mut self) -> Option<&'a K> {
        self.next()
    }
}

impl<K: Ord, A: Allocator> FusedIterator for Difference<'_, K, A> {}
impl<K: Ord, A: Allocator> FusedIterator for Intersection<'_, K, A> {}
impl<K: Ord> FusedIterator for SymmetricDifference<'_, K> {}
impl<K: Ord> FusedIterator for Union<'_, K> {}

impl<K, A: Allocator> Clone for Difference<'_, K, A> {
    fn clone(&self) -> Self {
        let way = match &self.way {
            DifferenceWay::Stitch { left, right } => DifferenceWay::Stitch {
                left: left.clone(),
                right: Peeking {
                    iter: right.iter.clone(),
                    peeked: right.peeked,
                },
            },
            DifferenceWay::Search { left, right } => DifferenceWay::Search {
                left: left.clone(),
                right,
            },
            DifferenceWay::All(keys) => DifferenceWay::All(keys.clone()),
        };
        Difference { way }
    }
}

impl<K, A: Allocator> Clone for Intersection<'_, K, A> {
    fn clone(&self) -> Self {
        let way = match &self.way {
            IntersectionWay::Stitch { left, right } => IntersectionWay::Stitch {
                left: left.clone(),
                right: right.clone(),
            },
            IntersectionWay::Search { short, long } => IntersectionWay::Search {
                short: short.clone(),
                long,
            },
            IntersectionWay::One(key) => IntersectionWay::One(*key),
        };
        Intersection { way }
    }
}

impl<K> Clone for SymmetricDifference<'_, K> {
    fn clone(&self) -> Self {
        SymmetricDifference {
            merge: self.merge.clone(),
        }
    }
}

impl<K> Clone for Union<'_, K> {
    fn clone(&self) -> Self {
        Union {
            merge: self.merge.clone(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Peeking<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peekable")
            .field("iter", &self.iter)
            .field("peeked", &self.peeked)
            .finish()
    }
}

impl<K: fmt::Debug, A: Allocator> fmt::Debug for DifferenceWay<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut way, left, right): (_, _, &dyn fmt::Debug) = match self {
            DifferenceWay::Stitch { left, right } => (f.debug_struct("Stitch"), left, right),
            DifferenceWay::Search { left, right } => (f.debug_struct("Search"), left, right),
            DifferenceWay::All(keys) => return f.debug_tuple("Iterate").field(keys).finish(),
        };
        way.field("self_iter", left)
            .field("other_iter", right)
            .finish()
    }
}

impl<K: fmt::Debug, A: Allocator> fmt::Debug for IntersectionWay<'_, K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntersectionWay::Stitch { left, right } => f
                .debug_struct("Stitch")
                .field("a", left)
                .field("b", right)
                .finish(),
            IntersectionWay::Search { short, long } => f
                .debug_struct("Search")
                .field("small_iter", short)
                .field("large_set", long)
                .finish(),
            IntersectionWay::One(key) => f.debug_tuple("Answer").field(key).finish(),
        }
    }
}

impl<K: fmt::Debug> fmt::Debug for Merge<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MergeIterInner")
            .field(&self.left)
            .field(&self.right)
            .field(&self.held)
            .finish()
    }
}

/// `Debug`: the way that the keys are computed, and what is left of both sets, as std prints it.
macro_rules! impl_debug {
    ($($name:ident<K $(, $alloc:ident)?>, $field:ident;)*) => {$(
        impl<K: fmt::Debug $(, $alloc: Allocator)?> fmt::Debug for $name<'_, K $(, $alloc)?> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.$field).finish()
            }
        }
    )*};
}

impl_debug! {
    Difference<K, A>, way;
    Intersection<K, A>, way;
    SymmetricDifference<K>, merge;
    Union<K>, merge;
}

impl<K, A: Allocator> CTreeSet<K, A> {
    /// The keys of this set that are not in `other`, in order.
    ///
    /// # Examples
    /// ```
    /// let a = ctree::CTreeSet::from([1, 2]);
    /// let b = ctree::CTreeSet::from([2, 3]);
    /// assert_eq!(a.difference(&b).collect::<Vec<_>>(), [&1]);
    /// assert_eq!(a.intersection(&b).collect::<Vec<_>>(), [&2]);
    /// assert_eq!(a.union(&b).collect::<Vec<_>>(), [&1, &2, &3]);
    /// assert_eq!(a.symmetric_difference(&b).collect::<Vec<_>>(), [&1, &3]);
    /// ```
    pub fn difference<'a>(&'a self, other: &'a CTreeSet<K, A>) -> Difference<'a, K, A>
    where
        K: Ord,
    {
        let mut left = self.iter();
        let way = match overlap(self, other) {
            Overlap::Nothing => DifferenceWay::All(left),
            Overlap::Touch(_, end) => {
                let _common = match end {
                    End::First => left.next(),
                    End::Last => left.next_back(),
                };
                DifferenceWay::All(left)
            }
            Overlap::Ranges if self.len() <= other.len() / SEARCH_RATIO => {
                DifferenceWay::Search { left, right: other }
            }
            Overlap::Ranges => DifferenceWay::Stitch {
                left,
                right: Peeking {
                    iter: other.iter(),
                    peeked: None,
                },
            },
        };
        Difference { way }
    }

    /// The keys that are in this set or in `other` and not in both, in order.
    pub fn symmetric_difference<'a>(
        &'a self,
        other: &'a CTreeSet<K, A>,
    ) -> SymmetricDifference<'a, K>
    where
        K: Ord,
    {
        SymmetricDifference {
            merge: Merge::new(self.iter(), other.iter()),
        }
    }

    /// The keys that are in both sets, in order. (Keys of which set, is not promised where equal
    /// keys are not the same.)
    pub fn intersection<'a>(&'a self, other: &'a CTreeSet<K, A>) -> Intersection<'a, K, A>
    where
        K: Ord,
    {
        let way = match overlap(self, other) {
            Overlap::Nothing => IntersectionWay::One(None),
            Overlap::Touch(key, _) => IntersectionWay::One(Some(key)),
            Overlap::Ranges if self.len() <= other.len() / SEARCH_RATIO => {
                IntersectionWay::Search {
                    short: self.iter(),
                    long: other,
                }
            }
            Overlap::Ranges if other.len() <= self.len() / SEARCH_RATIO => {
                IntersectionWay::Search {
                    short: other.iter(),
                    long: self,
                }
            }
            Overlap::Ranges => IntersectionWay::Stitch {
                left: self.iter(),
                right: other.iter(),
            },
        };
        Intersection { way }
    }

    /// The keys that are in at least one of both sets, in order, each once.
    pub fn union<'a>(&'a self, other: &'a CTreeSet<K, A>) -> Union<'a, K>
    where
        K: Ord,
    {
        Union {
            merge: Merge::new(self.iter(), other.iter()),
        }
    }

    /// Whether the sets have no key in common.
    #[must_use]
    pub fn is_disjoint(&self, other: &CTreeSet<K, A>) -> bool
    where
        K: Ord,
    {
        self.intersection(other).next().is_none()
    }

    /// Whether all keys of this set are in `other`.
    ///
    /// # Examples
    /// ```
    /// let all = ctree::CTreeSet::from([1, 2, 3]);
    /// assert!(ctree::CTreeSet::from([3, 1]).is_subset(&all));
    /// assert!(!ctree::CTreeSet::from([3, 4]).is_subset(&all));
    /// ```
    #[must_use]
    pub fn is_subset(&self, other: &CTreeSet<K, A>) -> bool
    where
        K: Ord,
    {
        if self.len() > other.len() {
            return false;
        }
        let (Some(first), Some(last)) = (self.first(), self.last()) else {
            return true;
        };
        let (Some(other_first), Some(other_last)) = (other.first(), other.last()) else {
            return false;
        };
        if first < other_first || last > other_last {
            return false;
        }
        if self.len() <= other.len() / SEARCH_RATIO {
            return self.iter().all(|key| other.contains(key));
        }
        let mut others = other.iter();
        self.iter().all(|key| {
            for other_key in others.by_ref() {
                match other_key.cmp(key) {
                    Ordering::Less => {}
                    Ordering::Equal => return true,
                    Ordering::Greater => return false,
                }
            }
            false
        })
    }

    /// Whether all keys of `other` are in this set.
    #[must_use]
    pub fn is_superset(&self, other: &CTreeSet<K, A>) -> bool
    where
        K: Ord,
    {
        other.is_subset(self)
    }

    /// A set of clones of keys in order, like this one in its options and its allocator.
    fn collect_like<'a>(&'a self, keys: impl Iterator<Item = &'a K>) -> CTreeSet<K, A>
    where
        K: Clone,
        A: Clone,
    {
        let keys = keys.map(|key| (key.clone(), ()));
        CTreeSet {
            map: CTreeMap::from_ascending(keys, self.allocator().clone(), self.map.tree.options()),
        }
    }
}

/// Implements an operator for two borrowed sets.
macro_rules! set_operator {
    ($trait:ident, $operator:ident, $method:ident, $doc:literal) => {
        impl<K: Ord + Clone, A: Allocator + Clone> $trait<&CTreeSet<K, A>> for &CTreeSet<K, A> {
            type Output = CTreeSet<K, A>;

            #[doc = $doc]
            fn $operator(self, other: &CTreeSet<K, A>) -> CTreeSet<K, A> {
                self.collect_like(self.$method(other))
            }
        }
    };
}

set_operator!(
    Sub,
    sub,
    difference,
    "The keys of `self` that are not in `other`, cloned into a set like `self`."
);
set_operator!(
    BitAnd,
    bitand,
    intersection,
    "The keys that are in both sets, cloned into a set like `self`."
);
set_operator!(
    BitOr,
    bitor,
    union,
    "The keys that are in at least one of both sets, cloned into a set like `self`."
);
set_operator!(
    BitXor,
    bitxor,
    symmetric_difference,
    "The keys that are in one of both sets and not in both, cloned into a set like `self`."
);
