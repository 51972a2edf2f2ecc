//! Which key types are machine integers, decided without a bound on the key type.
//!
//! The public methods ask for `K: Ord` alone, and specialisation is not stable. [`typeid::of`]
//! gives the [`TypeId`] of any type, `'static` or not; two types that differ only in lifetimes may
//! share one. Integers have no lifetimes, so that an equal id means the very same type. All of it
//! folds to a constant in optimised code.

use core::any::TypeId;
use core::ptr;

use crate::narrow::Lane;

/// A machine integer that is compared in SIMD lanes: how wide it is, and whether its top bit is a
/// sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneKind {
    U8,
    U16,
    /// `u32`, `char` (whose order is that of its code point), `usize` on 32-bit machines
    U32,
    /// `u64`, `usize` on 64-bit machines
    U64,
    I8,
    I16,
    /// `i32`, `isize` on 32-bit machines
    I32,
    /// `i64`, `isize` on 64-bit machines
    I64,
}

impl LaneKind {
    /// The kind of `K`, or `None` when its keys have to be compared through `Ord`.
    ///
    /// `Some` guarantees that `K` is exactly one of the types that [`LaneKind`] names: `Copy`,
    /// without padding or interior mutability, of the size that [`LaneKind::bytes`] gives, and
    /// ordered as that integer is.
    #[inline(always)]
    pub(crate) fn of<K>() -> Option<LaneKind> {
        // Spares the compiler the comparisons for most other types.
        if const { size_of::<K>() == 0 || size_of::<K>() > 8 || core::mem::needs_drop::<K>() } {
            return None;
        }
        LaneKind::of_id(typeid::of::<K>())
    }

    /// The same for the type that an id of [`typeid::of`] stands for, which may be one without a
    /// size.
    #[inline(always)]
    pub(crate) fn of_id(id: TypeId) -> Option<LaneKind> {
        if id == TypeId::of::<u64>() {
            Some(LaneKind::U64)
        } else if id == TypeId::of::<u32>() || id == TypeId::of::<char>() {
            Some(LaneKind::U32)
        } else if id == TypeId::of::<i64>() {
            Some(LaneKind::I64)
        } else if id == TypeId::of::<i32>() {
            Some(LaneKind::I32)
        } else if id == TypeId::of::<u16>() {
            Some(LaneKind::U16)
        } else if id == TypeId::of::<i16>() {
            Some(LaneKind::I16)
        } else if id == TypeId::of::<u8>() {
            Some(LaneKind::U8)
        } else if id == TypeId::of::<i8>() {
            Some(LaneKind::I8)
        } else if id == TypeId::of::<usize>() {
            match size_of::<usize>() {
                8 => Some(LaneKind::U64),
                4 => Some(LaneKind::U32),
                _ => None,
            }
        } else if id == TypeId::of::<isize>() {
            match size_of::<isize>() {
                8 => Some(LaneKind::I64),
                4 => Some(LaneKind::I32),
                _ => None,
            }
        } else {
            None
        }
    }

    /// Size of one lane in bytes.
    #[inline(always)]
    pub(crate) const fn bytes(self) -> usize {
        match self {
            LaneKind::U8 | LaneKind::I8 => 1,
            LaneKind::U16 | LaneKind::I16 => 2,
            LaneKind::U32 | LaneKind::I32 => 4,
            LaneKind::U64 | LaneKind::I64 => 8,
        }
    }
}

/// Runs an expression with a type name bound to the integer that a [`LaneKind`] stands for.
macro_rules! by_lane {
    ($kind:expr, $lane:ident => $body:expr) => {
        $crate::lane::by_lane!($kind, $lane => $body;
            U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64)
    };
    ($kind:expr, $lane:ident => $body:expr; $($name:ident $integer:ident),*) => {
        match $kind {$(
            $crate::lane::LaneKind::$name => {
                type $lane = $integer;
                $body
            }
        )*}
    };
}
pub(crate) use by_lane;

/// The [ordered bits](crate::narrow::Lane::ordered_bits) of a key of 64 bits, `None` for other
/// keys.
#[inline]
pub(crate) fn ordered_bits<K>(key: &K) -> Option<u64> {
    let key = ptr::from_ref(key);
    match LaneKind::of::<K>() {
        // SAFETY: by the guarantee of `LaneKind` the key is a `u64`, or a `usize` of the same size:
        // any of its bits are.
        Some(LaneKind::U64) => Some(unsafe { key.cast::<u64>().read() }.ordered_bits()),
        // SAFETY: by the guarantee of `LaneKind` the key is an `i64`, or an `isize` of the same
        // size.
        Some(LaneKind::I64) => Some(unsafe { key.cast::<i64>().read() }.ordered_bits()),
        _ => None,
    }
}

/// `query` as a `K`, when `K` is an integer and `Q` the same one.
///
/// A borrowed form of an integer key may also be a user's own type (the compiler accepts `impl
/// Borrow<Mine> for u64`), whose order should be that of the integer but is code of its own; such a
/// query gives `None` and is answered by comparisons.
#[inline(always)]
pub(crate) fn same_integer<K, Q: ?Sized>(query: &Q) -> Option<&K> {
    if LaneKind::of::<K>().is_some() && typeid::of::<Q>() == typeid::of::<K>() {
        let query = ptr::from_ref(query).cast::<K>();
        // SAFETY: `K` is an integer, which has no lifetimes, so that equal type ids mean that `Q`
        // is `K`; the pointer comes from a reference of the same lifetime to that very type.
        Some(unsafe { &*query })
    } else {
        None
    }
}

#[inline(always)]
pub(crate) fn same_integers<K, Q>(queries: &[Q]) -> Option<&[K]> {
    if LaneKind::of::<K>().is_some() && typeid::of::<Q>() == typeid::of::<K>() {
        // SAFETY: `K` is an integer, and equal type ids mean that `Q` is `K`; pointer and length
        // are those of a live slice of the same lifetime.
        Some(unsafe { core::slice::from_raw_parts(queries.as_ptr().cast::<K>(), queries.len()) })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{LaneKind, same_integer, same_integers};

    #[test]
    fn kinds_have_the_size_of_their_types() {
        fn size_agrees<K>() -> bool {
            LaneKind::of::<K>().is_some_and(|kind| kind.bytes() == size_of::<K>())
        }
        assert!(
            size_agrees::<u8>()
                && size_agrees::<u16>()
                && size_agrees::<u32>()
                && size_agrees::<u64>()
        );
        assert!(
            size_agrees::<i8>()
                && size_agrees::<i16>()
                && size_agrees::<i32>()
                && size_agrees::<i64>()
        );
        assert!(size_agrees::<usize>() && size_agrees::<isize>() && size_agrees::<char>());
    }

    #[test]
    fn other_types_are_not_integers() {
        #[repr(transparent)]
        struct Newtype(u64);
        assert_eq!(LaneKind::of::<Newtype>(), None);
        assert_eq!(LaneKind::of::<&u64>(), None);
        assert_eq!(LaneKind::of::<(u64,)>(), None);
        assert_eq!(LaneKind::of::<bool>(), None);
        assert_eq!(LaneKind::of::<u128>(), None);
        assert_eq!(LaneKind::of::<core::num::NonZeroU64>(), None);
        assert_eq!(LaneKind::of::<()>(), None);
        assert_eq!(LaneKind::of::<core::cmp::Reverse<u64>>(), None);
    }

    #[test]
    fn queries_are_recognised_by_type_not_by_size() {
        assert_eq!(same_integer::<u64, u64>(&7), Some(&7));
        assert_eq!(same_integer::<u64, usize>(&7), None);
        assert_eq!(same_integer::<u64, i64>(&7), None);
        assert_eq!(same_integer::<String, String>(&String::new()), None);
        assert_eq!(same_integer::<String, str>("x"), None);
        assert_eq!(same_integers::<i32, i32>(&[1, 2]), Some(&[1, 2][..]));
        assert_eq!(same_integers::<i32, u32>(&[1, 2]), None);
    }
}
