//! Which types files can hold, how they become bytes, and what bytes become.
//!
//! A file may hold any bytes. So every type is read by a total function, which makes some value of
//! any bytes: a number that is no `char` becomes [`char::REPLACEMENT_CHARACTER`]; text ends before
//! its first byte that is not UTF-8. `verify` finds what was replaced.

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::cmp::Ordering;

use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::frozen::FrozenCTreeSet;
use crate::lane::{LaneKind, same_integers};
use crate::simd::BATCH;

/// Size of the reference to a heap entry, for a value of variable length.
pub(super) const HEAP_CELL_BYTES: usize = size_of::<u64>();

/// A fixed-width type that a file holds as its bytes, in the byte order of the machine.
///
/// Implemented for the integers of fixed width, `f32`, `f64`, `()`, and arrays of plain types.
/// (`bool` and `char` are not plain, but files hold them as well: see [`Stored`].)
///
/// The derives of the crate `zerocopy`, version 0.8 with its feature `derive`, check that a type of
/// your own has no padding and that every pattern of bytes is a value. It must be `repr(C)` or
/// `repr(transparent)`.
///
/// # Examples
/// ```
/// use ctree::{MappedCTreeMap, Plain};
///
/// use zerocopy::{FromBytes, Immutable, IntoBytes};
///
/// #[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
/// #[repr(C)]
/// struct Place {
///     latitude: f64,
///     longitude: f64,
/// }
///
/// impl Plain for Place {
///     fn type_name() -> String {
///         "example/Place/1".into()
///     }
/// }
///
/// let ulm = Place { latitude: 48.4, longitude: 10.0 };
/// let bytes = MappedCTreeMap::<str, Place>::to_bytes([("Ulm", ulm)])?;
/// let places = MappedCTreeMap::<str, Place>::from_bytes(&bytes)?;
/// assert_eq!(places.get("Ulm").map(|place| place.latitude), Some(48.4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Plain: FromBytes + IntoBytes + Immutable + Copy + Send + Sync + 'static {
    /// Names the type in files, in at most 95 bytes. A file with another name is refused.
    ///
    /// Two types may share a name only if one may be read as the other. The name of a type of your
    /// own should say whose it is, and change with its fields.
    fn type_name() -> String;
}

macro_rules! plain {
    ($($plain:ty)*) => {$(
        impl Plain for $plain {
            fn type_name() -> String {
                stringify!($plain).to_owned()
            }
        }
    )*};
}

plain!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

impl Plain for () {
    fn type_name() -> String {
        "()".to_owned()
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    fn type_name() -> String {
        format!("[{}; {N}]", T::type_name())
    }
}

/// Keeps [`Stored`] and [`StoredKey`] to the types below.
mod sealed {
    /// What only this crate implements.
    #[expect(unnameable_types, reason = "seals the traits")]
    pub trait Sealed {}
}
use sealed::Sealed;

/// A type that files hold: any [`Plain`] type, `bool`, `char`, `str`, and `[u8]`.
///
/// For types of your own implement [`Plain`].
pub trait Stored: Sealed + 'static {
    /// What a lookup gives: the value if it is of fixed width, else a reference into the file.
    type Ref<'a>: Copy;

    /// Bytes of a value, or `None` if values differ in length and lie in a heap.
    #[doc(hidden)]
    const FIXED_BYTES: Option<usize>;

    /// Names the type in files.
    #[doc(hidden)]
    fn stored_name() -> String;

    /// The bytes that a file holds for the value.
    #[doc(hidden)]
    fn stored_bytes(&self) -> &[u8];

    /// Whether the bytes are what [`stored_bytes`](Stored::stored_bytes) gives for some value.
    #[doc(hidden)]
    fn is_stored(bytes: &[u8]) -> bool;

    /// The value of the bytes, or some value if they are not those of any.
    ///
    /// # Panics
    /// When the type is of fixed width and the bytes are not as many.
    #[doc(hidden)]
    fn load(bytes: &[u8]) -> Self::Ref<'_>;
}

/// A type that files hold as keys: any [`Stored`] one that has an order.
pub trait StoredKey: Stored + Ord {
    /// Finds the leaf of a key: a copy of one key between every two leaves.
    #[doc(hidden)]
    type Index: Send + Sync;

    /// Compares the key of the bytes with `query`.
    #[doc(hidden)]
    fn compare_stored(bytes: &[u8], query: &Self) -> Ordering;

    /// Lends the key of the bytes, or some key if they are not those of any.
    #[doc(hidden)]
    fn with_stored<R>(bytes: &[u8], use_key: impl FnOnce(&Self) -> R) -> R;

    /// Bytes that separate leaves: at least `last`, the last key of one, and less than `first`, the
    /// first of the next; for `str` and `[u8]` greater than `last` and at most `first`.
    #[doc(hidden)]
    fn separator<'a>(last: &'a [u8], first: &'a [u8]) -> &'a [u8];

    /// Makes the index of separators in ascending order; `None` if they are not.
    #[doc(hidden)]
    fn build_index<'a>(separators: impl Iterator<Item = &'a [u8]>) -> Option<Self::Index>;

    /// Number of the leaf that a key belongs to.
    #[doc(hidden)]
    fn leaf_of(index: &Self::Index, query: &Self) -> usize;

    /// The same for many keys, as many as `leaves`.
    #[doc(hidden)]
    fn leaves_of<Q: Borrow<Self>>(index: &Self::Index, queries: &[Q], leaves: &mut [usize]);

    /// Bytes allocated for the index.
    #[doc(hidden)]
    fn index_bytes(index: &Self::Index) -> usize;
}

/// What can be written as a `T`: values, references to them, and what owns text or bytes.
pub trait AsStored<T: ?Sized> {
    /// The value to write.
    fn as_stored(&self) -> &T;
}

impl<T: Plain> AsStored<T> for T {
    #[inline(always)]
    fn as_stored(&self) -> &T {
        self
    }
}

impl<T: Plain> AsStored<T> for &T {
    #[inline(always)]
    fn as_stored(&self) -> &T {
        self
    }
}

macro_rules! as_stored {
    ($($owner:ty => $stored:ty;)*) => {$(
        impl AsStored<$stored> for $owner {
            #[inline]
            fn as_stored(&self) -> &$stored {
                self
            }
        }
    )*};
}

as_stored! {
    bool => bool;
    &bool => bool;
    char => char;
    &char => char;
    str => str;
    &str => str;
    String => str;
    &String => str;
    Box<str> => str;
    &Box<str> => str;
    Arc<str> => str;
    &Arc<str> => str;
    Cow<'_, str> => str;
    &Cow<'_, str> => str;
    [u8] => [u8];
    &[u8] => [u8];
    Vec<u8> => [u8];
    &Vec<u8> => [u8];
    Box<[u8]> => [u8];
    &Box<[u8]> => [u8];
    Arc<[u8]> => [u8];
    &Arc<[u8]> => [u8];
    Cow<'_, [u8]> => [u8];
    &Cow<'_, [u8]> => [u8];
}

impl<const N: usize> AsStored<[u8]> for [u8; N] {
    fn as_stored(&self) -> &[u8] {
        self
    }
}

impl<const N: usize> AsStored<[u8]> for &[u8; N] {
    fn as_stored(&self) -> &[u8] {
        *self
    }
}

impl<T: Plain> Sealed for T {}

impl<T: Plain> Stored for T {
    type Ref<'a> = T;
    const FIXED_BYTES: Option<usize> = Some(size_of::<T>());

    fn stored_name() -> String {
        T::type_name()
    }

    #[inline(always)]
    fn stored_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn is_stored(bytes: &[u8]) -> bool {
        bytes.len() == size_of::<T>()
    }

    #[inline(always)]
    fn load(bytes: &[u8]) -> T {
        T::read_from_bytes(bytes).expect("a value has as many bytes as its type")
    }
}

impl Sealed for bool {}

impl Stored for bool {
    type Ref<'a> = bool;
    const FIXED_BYTES: Option<usize> = Some(1);

    fn stored_name() -> String {
        "bool".to_owned()
    }

    fn stored_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn is_stored(bytes: &[u8]) -> bool {
        matches!(bytes, [0 | 1])
    }

    #[inline]
    fn load(bytes: &[u8]) -> bool {
        u8::load(bytes) != 0
    }
}

impl Sealed for char {}

impl Stored for char {
    type Ref<'a> = char;
    const FIXED_BYTES: Option<usize> = Some(size_of::<char>());

    fn stored_name() -> String {
        "char".to_owned()
    }

    fn stored_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn is_stored(bytes: &[u8]) -> bool {
        u32::is_stored(bytes) && char::from_u32(u32::load(bytes)).is_some()
    }

    #[inline]
    fn load(bytes: &[u8]) -> char {
        char::from_u32(u32::load(bytes)).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

impl Sealed for [u8] {}

impl Stored for [u8] {
    type Ref<'a> = &'a [u8];
    const FIXED_BYTES: Option<usize> = None;

    fn stored_name() -> String {
        "[u8]".to_owned()
    }

    #[inline]
    fn stored_bytes(&self) -> &[u8] {
        self
    }

    fn is_stored(_bytes: &[u8]) -> bool {
        true
    }

    #[inline]
    fn load(bytes: &[u8]) -> &[u8] {
        bytes
    }
}

impl Sealed for str {}

impl Stored for str {
    type Ref<'a> = &'a str;
    const FIXED_BYTES: Option<usize> = None;

    fn stored_name() -> String {
        "str".to_owned()
    }

    #[inline]
    fn stored_bytes(&self) -> &[u8] {
        self.as_bytes()
    }

    fn is_stored(bytes: &[u8]) -> bool {
        core::str::from_utf8(bytes).is_ok()
    }

    #[inline]
    fn load(bytes: &[u8]) -> &str {
        core::str::from_utf8(bytes).unwrap_or_else(|error| {
            let (valid, _) = bytes.split_at(error.valid_up_to());
            core::str::from_utf8(valid).unwrap_or_default()
        })
    }
}

/// Keys of fixed width: the separators are the last keys of all leaves but the last. The number of
/// separators less than a key is the number of its leaf.
macro_rules! fixed_key {
    ([$($generics:tt)*] $key:ty) => {
        impl<$($generics)*> StoredKey for $key {
            type Index = FrozenCTreeSet<$key>;

            #[inline(always)]
            fn compare_stored(bytes: &[u8], query: &$key) -> Ordering {
                <$key>::load(bytes).cmp(query)
            }

            #[inline]
            fn with_stored<R>(bytes: &[u8], use_key: impl FnOnce(&$key) -> R) -> R {
                use_key(&<$key>::load(bytes))
            }

            fn separator<'a>(last: &'a [u8], _first: &'a [u8]) -> &'a [u8] {
                last
            }

            fn build_index<'a>(separators: impl Iterator<Item = &'a [u8]>) -> Option<Self::Index> {
                FrozenCTreeSet::from_sorted_iter(separators.map(<$key>::load)).ok()
            }

            #[inline]
            fn leaf_of(index: &Self::Index, query: &$key) -> usize {
                index.rank(query)
            }

            #[inline]
            fn leaves_of<Q>(index: &Self::Index, queries: &[Q], leaves: &mut [usize])
            where
                Q: Borrow<$key>,
            {
                if LaneKind::of::<$key>().is_some() {
                    return leaves_of_integers(index, queries, leaves);
                }
                for (leaf, query) in leaves.iter_mut().zip(queries) {
                    *leaf = Self::leaf_of(index, query.borrow());
                }
            }

            fn index_bytes(index: &Self::Index) -> usize {
                index.memory_usage()
            }
        }
    };
}

/// Number of separators less than each query: as many queries as leaves, searched for together.
///
/// The index needs queries side by side: references to keys are copied, a batch at a time.
#[inline(always)]
fn leaves_of_integers<K: Ord + Copy, Q: Borrow<K>>(
    index: &FrozenCTreeSet<K>,
    queries: &[Q],
    leaves: &mut [usize],
) {
    if let Some(keys) = same_integers::<K, Q>(queries) {
        return index.rank_many(keys, leaves);
    }
    let Some(first) = queries.first() else {
        return;
    };
    let mut keys = [*first.borrow(); BATCH];
    for (queries, leaves) in queries.chunks(BATCH).zip(leaves.chunks_mut(BATCH)) {
        let keys = &mut keys[..queries.len()];
        for (key, query) in keys.iter_mut().zip(queries) {
            *key = *query.borrow();
        }
        index.rank_many(keys, leaves);
    }
}

fixed_key!([T: Plain + Ord] T);
fixed_key!([] bool);
fixed_key!([] char);

/// The shortest prefix of `first` that is greater than `last`, which should be less than `first`.
fn shortest_separator<'a>(last: &[u8], first: &'a [u8]) -> &'a [u8] {
    let common = last
        .iter()
        .zip(first)
        .take_while(|(left, right)| left == right)
        .count();
    &first[..first.len().min(common + 1)]
}

/// Keys of variable length: a separator is the shortest prefix of a leaf's first key that is
/// greater than the last key before. The number of separators that are not greater than a key is
/// the number of its leaf.
macro_rules! bytes_key {
    ($key:ty) => {
        impl StoredKey for $key {
            type Index = FrozenCTreeSet<Vec<u8>>;

            #[inline(always)]
            fn compare_stored(bytes: &[u8], query: &$key) -> Ordering {
                bytes.cmp(query.stored_bytes())
            }

            #[inline]
            fn with_stored<R>(bytes: &[u8], use_key: impl FnOnce(&$key) -> R) -> R {
                use_key(<$key>::load(bytes))
            }

            fn separator<'a>(last: &'a [u8], first: &'a [u8]) -> &'a [u8] {
                shortest_separator(last, first)
            }

            fn build_index<'a>(separators: impl Iterator<Item = &'a [u8]>) -> Option<Self::Index> {
                FrozenCTreeSet::from_sorted_iter(separators.map(<[u8]>::to_vec)).ok()
            }

            #[inline]
            fn leaf_of(index: &Self::Index, query: &$key) -> usize {
                index.rank_after(query.stored_bytes())
            }

            fn leaves_of<Q: Borrow<$key>>(
                index: &Self::Index,
                queries: &[Q],
                leaves: &mut [usize],
            ) {
                for (leaf, query) in leaves.iter_mut().zip(queries) {
                    *leaf = Self::leaf_of(index, query.borrow());
                }
            }

            fn index_bytes(index: &Self::Index) -> usize {
                index.memory_usage() + index.iter().map(Vec::capacity).sum::<usize>()
            }
        }
    };
}

bytes_key!([u8]);
bytes_key!(str);

#[cfg(test)]
mod tests {
    use super::{Plain, Stored, shortest_separator};

    #[test]
    fn separators_are_short_and_lie_between() {
        for (last, first, expected) in [
            ("a", "b", "b"),
            ("", "anything", "a"),
            ("abc", "abcdef", "abcd"),
            ("abcde", "abd", "abd"),
            ("abcde", "abxyz", "abx"),
        ] {
            let separator = shortest_separator(last.as_bytes(), first.as_bytes());
            assert_eq!(separator, expected.as_bytes());
            assert!(last.as_bytes() < separator && separator <= first.as_bytes());
        }
        // Keys out of order, which only a lawless `Ord` or a broken file brings here.
        assert_eq!(shortest_separator(b"abc", b"ab"), b"ab");
    }

    #[test]
    fn any_bytes_give_some_value() {
        assert!(bool::load(&[2]) && !bool::is_stored(&[2]) && bool::is_stored(&[1]));
        assert_eq!(
            char::load(&0xD800u32.to_ne_bytes()),
            char::REPLACEMENT_CHARACTER
        );
        assert!(!char::is_stored(&0x11_0000u32.to_ne_bytes()));
        assert_eq!(char::load('ß'.stored_bytes()), 'ß');
        assert_eq!(<str>::load(b"gr\xC3\xBCn\xFF!"), "grün");
        assert_eq!(<str>::load(b"\xFF"), "");
        assert_eq!(
            <[u16; 2]>::load([1u16, 2].stored_bytes()),
            [1, 2],
            "arrays keep the order of their elements"
        );
    }

    #[test]
    fn names_tell_types_apart() {
        assert_eq!(<[[u8; 3]; 2]>::type_name(), "[[u8; 3]; 2]");
        assert_eq!(
            (
                bool::stored_name().as_str(),
                <()>::stored_name().as_str(),
                i128::stored_name().as_str()
            ),
            ("bool", "()", "i128")
        );
    }
}
