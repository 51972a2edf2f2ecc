//! Heads: fixed-width prefixes of keys that keep their order, so that most comparisons are of two
//! integers that lie in the node.
//!
//! A tree keeps the head of each key beside the others of its node, in lanes that are searched by
//! SIMD. Only keys whose head equals that of the query are compared in full. What the head is:
//!
//! - integers up to 64 bits and `char` need no head: the key itself is the lane;
//! - byte strings: eight bytes, big-endian, after the prefix that all keys of the node share;
//! - `u128`, `i128`, [`TotalF64`], [`TotalF32`], tuples of integers: the 64 most significant bits;
//! - a type that implements [`Head`], in a map made by `with_heads`: what that returns;
//! - any other `K: Ord` has no head: keys are compared by `Ord`.
//!
//! As in `lane`, types are recognised by identity, since specialisation is not stable and `K: Ord`
//! is the only bound that users see.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::TypeId;
use core::cmp::Ordering;
use core::hash::{Hash, Hasher};

/// Keys with a fixed-width prefix that keeps their order.
///
/// Integers, tuples that begin with integers, [`TotalF32`], [`TotalF64`] and byte strings have it.
/// Implement it for keys of your own and make the map by `with_heads`, and lookups compare heads
/// before they touch keys.
///
/// The more the heads of neighbouring keys differ, the better: use the most significant 64 bits of
/// what decides the order. Heads that are out of order cost answers (keys are not found), never
/// memory safety.
///
/// # Safety
/// A map may be used with keys of a shorter lifetime than those that it was made for, as `BTreeMap`
/// may (it is covariant), and calls the implementation that it was made with. So the implementation
/// must not depend on lifetimes: write it for all lifetimes of the type (`unsafe impl<'a> Head for
/// Key<'a>`), never for one of them (`unsafe impl Head for Key<'static>`). For types without
/// lifetimes there is nothing to observe.
pub unsafe trait Head: Ord {
    /// The head: `a <= b` implies `a.head() <= b.head()`.
    fn head(&self) -> u64;
}

/// Implements heads for integers: the integer in the most significant bits, in the order of
/// unsigned integers.
macro_rules! impl_integer_heads {
    ($($unsigned:ty, $signed:ty;)*) => {$(
        // SAFETY: the types have no lifetimes.
        unsafe impl Head for $unsigned {
            #[inline]
            fn head(&self) -> u64 {
                // Lossless: no integer here has more than 64 bits.
                (*self as u64) << (u64::BITS - <$unsigned>::BITS)
            }
        }

        // SAFETY: the types have no lifetimes.
        unsafe impl Head for $signed {
            #[inline]
            fn head(&self) -> u64 {
                // The flipped sign bit puts negative numbers first.
                self.cast_unsigned().head() ^ (1 << (u64::BITS - 1))
            }
        }
    )*};
}

impl_integer_heads! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
    usize, isize;
}

/// Implements heads for types without lifetimes.
macro_rules! impl_heads {
    ($($key:ty, |$value:ident| $head:expr;)*) => {$(
        // SAFETY: the type has no lifetimes.
        unsafe impl Head for $key {
            #[inline]
            fn head(&self) -> u64 {
                let $value = *self;
                $head
            }
        }
    )*};
}

impl_heads! {
    char, |char| u32::from(char).head();
    bool, |bool| u8::from(bool).head();
    u128, |number| (number >> 64) as u64;
    i128, |number| number.cast_unsigned().head() ^ (1 << (u64::BITS - 1));
    TotalF64, |float| ordered(float.0.to_bits());
    TotalF32, |float| ordered(u64::from(float.0.to_bits()) << 32);
}

/// The bits of a float in the order of floats: of negative ones all are flipped, since these are
/// ordered by magnitude backwards, of the others the sign only.
#[inline]
fn ordered(bits: u64) -> u64 {
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

/// Implements heads for pairs and triples: the first integer, then as much of the rest as there is
/// room for.
macro_rules! impl_pair_heads {
    ($($first:ty)*) => {$(
        // SAFETY: which function is called does not depend on lifetimes: the first component has
        // none, and `B` keeps the same contract.
        unsafe impl<B: Head> Head for ($first, B) {
            #[inline]
            fn head(&self) -> u64 {
                self.0.head() | self.1.head().checked_shr(<$first>::BITS).unwrap_or(0)
            }
        }

        // SAFETY: the type has no lifetimes.
        unsafe impl Head for ($first, $first, $first) {
            #[inline]
            fn head(&self) -> u64 {
                (self.0, (self.1, self.2)).head()
            }
        }
    )*};
}

impl_pair_heads!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

macro_rules! impl_byte_string_heads {
    ($($string:ty, $bytes:ident => $as_bytes:expr;)*) => {$(
        // SAFETY: the implementation holds for all lifetimes of the type.
        unsafe impl Head for $string {
            #[inline]
            fn head(&self) -> u64 {
                let $bytes = self;
                head_of_bytes($as_bytes, 0)
            }
        }
    )*};
}

impl_byte_string_heads! {
    str, bytes => bytes.as_bytes();
    [u8], bytes => bytes;
    String, bytes => bytes.as_bytes();
    Vec<u8>, bytes => bytes;
    Box<str>, bytes => bytes.as_bytes();
    Box<[u8]>, bytes => bytes;
    &str, bytes => bytes.as_bytes();
    &[u8], bytes => bytes;
}

/// A float with a total order, that of [`f64::total_cmp`]: −NaN, −∞, …, −0, +0, …, +∞, +NaN. It can
/// be a key.
///
/// # Examples
/// ```
/// use ctree::{CTreeMap, TotalF64};
///
/// let map: CTreeMap<TotalF64, &str> = [(TotalF64(1.5), "more"), (TotalF64(-2.0), "less")].into();
/// assert_eq!(map.range(TotalF64(0.0)..).next(), Some((&TotalF64(1.5), &"more")));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TotalF64(
    /// The number.
    pub f64,
);

/// A float with a total order, that of [`f32::total_cmp`]. See [`TotalF64`].
#[derive(Clone, Copy, Debug, Default)]
pub struct TotalF32(
    /// The number.
    pub f32,
);

macro_rules! impl_total {
    ($($total:ident, $float:ty;)*) => {$(
        impl Ord for $total {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        impl PartialOrd for $total {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        /// Equal bits: `-0.0` and `0.0` are two keys, and a NaN equals itself.
        impl PartialEq for $total {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.0.to_bits() == other.0.to_bits()
            }
        }

        impl Eq for $total {}

        impl Hash for $total {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.to_bits().hash(state);
            }
        }

        impl From<$float> for $total {
            fn from(float: $float) -> Self {
                $total(float)
            }
        }
    )*};
}

impl_total! {
    TotalF64, f64;
    TotalF32, f32;
}

/// The eight bytes after the first `skip`, big-endian, with zeroes where the string ends.
#[inline]
pub(crate) fn head_of_bytes(bytes: &[u8], skip: usize) -> u64 {
    let rest = bytes.get(skip..).unwrap_or(&[]);
    if let Some(head) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(head)
}

/// Number of leading bytes that two strings share.
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(l, r)| l == r).count()
}

#[inline(always)]
pub(crate) fn is_byte_string<K: ?Sized>() -> bool {
    let id = typeid::of::<K>();
    id == TypeId::of::<str>()
        || id == TypeId::of::<String>()
        || id == TypeId::of::<&str>()
        || id == TypeId::of::<[u8]>()
        || id == TypeId::of::<Vec<u8>>()
        || id == TypeId::of::<&[u8]>()
        || id == TypeId::of::<Box<str>>()
        || id == TypeId::of::<Box<[u8]>>()
}

/// The bytes of a key or query that is a byte string, which is ordered as these bytes are.
#[inline(always)]
pub(crate) fn bytes_of<Q: ?Sized>(query: &Q) -> Option<&[u8]> {
    /// `query` as a `T` of the same size class, if it is one.
    macro_rules! sized {
        ($string:ty, $bytes:ident => $as_bytes:expr) => {
            if typeid::of::<Q>() == TypeId::of::<$string>() {
                let query = core::ptr::from_ref(query).cast::<$string>();
                // SAFETY: equal type ids mean that `Q` is this type, but perhaps for lifetimes
                // inside it. The reference is to live for as long as `query` is borrowed; a `Q` is
                // valid for all that time, and so is what it borrows.
                let $bytes = unsafe { &*query };
                return Some($as_bytes);
            }
        };
    }
    sized!(String, string => string.as_bytes());
    sized!(&str, string => string.as_bytes());
    sized!(Vec<u8>, bytes => bytes);
    sized!(&[u8], bytes => bytes);
    sized!(Box<str>, string => string.as_bytes());
    sized!(Box<[u8]>, bytes => bytes);
    let id = typeid::of::<Q>();
    if id == TypeId::of::<str>() || id == TypeId::of::<[u8]>() {
        let len = size_of_val(query);
        // SAFETY: `Q` is `str` or `[u8]`, which are their `size_of_val` bytes, borrowed for as long
        // as the result is.
        return Some(unsafe {
            core::slice::from_raw_parts(core::ptr::from_ref(query).cast::<u8>(), len)
        });
    }
    None
}

/// The function that gives the heads of `K`, if it is one of the types of fixed size that are
/// recognised: see the list below.
#[inline(always)]
#[expect(
    clippy::disallowed_methods,
    reason = "a function pointer has no `cast`, and the types are checked to be the same"
)]
pub(crate) fn recognised<K>() -> Option<fn(&K) -> u64> {
    if const { core::mem::needs_drop::<K>() || size_of::<K>() == 0 || size_of::<K>() > 24 } {
        return None;
    }
    macro_rules! any_of {
        ($($known:ty)*) => {$(
            if typeid::of::<K>() == TypeId::of::<$known>() {
                let head: fn(&$known) -> u64 = <$known as Head>::head;
                // SAFETY: none of these types has lifetimes, so that equal ids mean that `K` is
                // this very type, and the two function types are one.
                return Some(unsafe {
                    core::mem::transmute::<fn(&$known) -> u64, fn(&K) -> u64>(head)
                });
            }
        )*};
    }
    any_of! {
        (u64, u64) (u32, u32) (i64, i64) (i32, i32) (usize, usize)
        (u16, u16) (u8, u8) (i16, i16) (i8, i8) (isize, isize)
        (u32, u64) (u64, u32) (usize, u32) (u32, usize) (usize, u64) (u64, usize)
        (u8, u8, u8) (u16, u16, u16) (u32, u32, u32) (u64, u64, u64)
        (i32, i32, i32) (i64, i64, i64)
        u128 i128 TotalF64 TotalF32
    }
    None
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "any integers will do, the lower halves of others among them"
)]
mod tests {
    use alloc::boxed::Box;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use core::fmt::Debug;

    use quickcheck::quickcheck;

    use super::{Head, TotalF32, TotalF64, bytes_of, common_prefix, head_of_bytes, recognised};

    /// Whether heads keep the order of two keys, and the recognised function is the same.
    fn keeps_order<K: Head + Debug>(left: &K, right: &K) -> bool {
        let agrees = recognised::<K>().is_none_or(|head| head(left) == left.head());
        agrees
            && match left.cmp(right) {
                core::cmp::Ordering::Less => left.head() <= right.head(),
                core::cmp::Ordering::Equal => left.head() == right.head(),
                core::cmp::Ordering::Greater => left.head() >= right.head(),
            }
    }

    quickcheck! {
        fn integers(a: i64, b: i64) -> bool {
            keeps_order(&a, &b)
                && keeps_order(&(a as i32), &(b as i32))
                && keeps_order(&(a as u16), &(b as u16))
                && keeps_order(&(a as i8), &(b as i8))
        }
        fn wide_integers(a: u128, b: u128) -> bool {
            keeps_order(&a, &b) && keeps_order(&a.cast_signed(), &b.cast_signed())
        }
        fn tuples(a: (u32, u32), b: (u32, u32)) -> bool {
            let narrow = |pair: (u32, u32)| (pair.0 as u8, pair.1);
            let signed = |pair: (u32, u32)| (pair.0 as i16, (pair.1 as i32, pair.0 as i8));
            keeps_order(&a, &b)
                && keeps_order(&narrow(a), &narrow(b))
                && keeps_order(&signed(a), &signed(b))
                && keeps_order(&(a.0, a.0, a.1), &(b.0, b.0, b.1))
        }
        fn wide_tuples(a: (u64, u64), b: (u64, u64)) -> bool {
            keeps_order(&a, &b)
                && keeps_order(&(a.0, a.1 as u32), &(b.0, b.1 as u32))
                && keeps_order(&(a.0, 1u64, a.1), &(b.0, 1u64, b.1))
        }
        fn floats(a: f64, b: f64) -> bool {
            keeps_order(&TotalF64(a), &TotalF64(b))
                && keeps_order(&TotalF32(a as f32), &TotalF32(b as f32))
        }
        fn strings(a: String, b: String) -> bool {
            keeps_order(&a, &b) && keeps_order(&a.as_bytes(), &b.as_bytes())
        }
        fn heads_behind_a_shared_prefix(prefix: Vec<u8>, a: Vec<u8>, b: Vec<u8>) -> bool {
            let (a, b) = ([prefix.clone(), a].concat(), [prefix.clone(), b].concat());
            let head = |bytes: &[u8]| head_of_bytes(bytes, prefix.len());
            common_prefix(&a, &b) >= prefix.len()
                && (head(&a).cmp(&head(&b)) == a.cmp(&b) || head(&a) == head(&b))
        }
    }

    #[test]
    fn floats_have_a_total_order() {
        let ascending = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -1.0,
            -f64::MIN_POSITIVE,
            -0.0,
            0.0,
            f64::MIN_POSITIVE,
            1.0,
            f64::INFINITY,
            f64::NAN,
        ];
        for pair in ascending.windows(2) {
            let (low, high) = (TotalF64(pair[0]), TotalF64(pair[1]));
            assert!(low < high && low.head() < high.head(), "{low:?} {high:?}");
            assert_eq!(low, TotalF64::from(pair[0]));
        }
        assert!(
            keeps_order(&TotalF32(-0.0), &TotalF32(0.0))
                && TotalF32(-1.0).head() < TotalF32(0.0).head()
        );
    }

    #[test]
    fn byte_strings_are_recognised() {
        let text = "ash".to_string();
        assert_eq!(bytes_of::<str>("ash"), Some(&b"ash"[..]));
        assert_eq!(bytes_of(&text), Some(&b"ash"[..]));
        assert_eq!(bytes_of(&text.as_str()), Some(&b"ash"[..]));
        assert_eq!(bytes_of(&text.clone().into_bytes()), Some(&b"ash"[..]));
        assert_eq!(bytes_of(&text.clone().into_boxed_str()), Some(&b"ash"[..]));
        assert_eq!(
            bytes_of::<Box<[u8]>>(&text.into_bytes().into()),
            Some(&b"ash"[..])
        );
        assert_eq!(bytes_of::<[u8]>(&[1, 2]), Some(&[1, 2][..]));
        assert_eq!(bytes_of::<&[u8]>(&&[1u8, 2][..]), Some(&[1, 2][..]));
        assert_eq!(bytes_of::<[u16]>(&[1, 2]), None);
        assert_eq!(bytes_of(&7u64), None);
        assert!(recognised::<String>().is_none() && recognised::<u64>().is_none());
        assert!(recognised::<(u32, u32)>().is_some() && recognised::<(u32, i32)>().is_none());
    }

    #[test]
    fn heads_of_short_strings_are_padded() {
        assert_eq!(head_of_bytes(b"", 0), 0);
        assert_eq!(head_of_bytes(b"a", 0), u64::from(b'a') << 56);
        assert_eq!(
            head_of_bytes(b"prefix/abcdefghij", 7),
            u64::from_be_bytes(*b"abcdefgh")
        );
        assert_eq!(head_of_bytes(b"abc", 5), 0);
        assert_eq!(common_prefix(b"abcd", b"abxd"), 2);
        assert_eq!(common_prefix(b"ab", b"abxd"), 2);
    }
}
