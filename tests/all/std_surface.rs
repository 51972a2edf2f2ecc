//! That every stable method and trait of `BTreeMap`, `BTreeSet`, their entries and their iterators
//! is there, with the same signature.
//!
//! [`map!`] and [`set!`] list them. Each list is compiled against the standard library's types,
//! against ours, and against ours in another allocator: a method becomes a function of the listed
//! signature that calls it, an implemented trait a function that returns it. Where a compiler has
//! the standard library's source (`rustup component add rust-src`), a test looks there for what the
//! lists lack. `docs/use/ctree-std.md` is the lists as a page:
//!
//! ```text
//! STD_SURFACE=write cargo test -p tests --test all std_surface
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skipped::skipped;

/// The page.
const PAGE: &str = "docs/use/ctree-std.md";

/// The newest version of the standard library whose methods are all listed.
const VERSION: u32 = 95;

/// The lists' syntax, one block for each kind of subject: its generic parameters, the type, and
/// methods in braces or traits behind a colon. Bounds of a method stand behind it, lifetimes that
/// cannot be elided in a function are called `'s`, and a function without `self` is `const`. Behind
/// `global` stands what needs the global allocator, or one of which more is known.
macro_rules! map {
    ($use:ident) => {
        $use! {
any {
    [K, V] BTreeMap<K, V> {
        fn clear(&mut self);
        fn get<Q>(&'s self, key: &Q) -> Option<&'s V>
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn get_key_value<Q>(&'s self, k: &Q) -> Option<(&'s K, &'s V)>
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn first_key_value(&self) -> Option<(&K, &V)> where [K: Ord];
        fn first_entry(&mut self) -> Option<OccupiedEntry<'_, K, V>> where [K: Ord];
        fn pop_first(&mut self) -> Option<(K, V)> where [K: Ord];
        fn last_key_value(&self) -> Option<(&K, &V)> where [K: Ord];
        fn last_entry(&mut self) -> Option<OccupiedEntry<'_, K, V>> where [K: Ord];
        fn pop_last(&mut self) -> Option<(K, V)> where [K: Ord];
        fn contains_key<Q>(&self, key: &Q) -> bool
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn get_mut<Q>(&'s mut self, key: &Q) -> Option<&'s mut V>
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn insert(&mut self, key: K, value: V) -> Option<V> where [K: Ord];
        fn remove<Q>(&mut self, key: &Q) -> Option<V>
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn remove_entry<Q>(&mut self, key: &Q) -> Option<(K, V)>
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn retain<F>(&mut self, f: F) where [K: Ord, F: FnMut(&K, &mut V) -> bool];
        fn append(&mut self, other: &mut BTreeMap<K, V>) where [K: Ord];
        fn range<T, R>(&self, range: R) -> Range<'_, K, V>
            where [T: ?Sized + Ord, K: Borrow<T> + Ord, R: RangeBounds<T>];
        fn range_mut<T, R>(&mut self, range: R) -> RangeMut<'_, K, V>
            where [T: ?Sized + Ord, K: Borrow<T> + Ord, R: RangeBounds<T>];
        fn entry(&mut self, key: K) -> Entry<'_, K, V> where [K: Ord];
        fn split_off<Q>(&mut self, key: &Q) -> BTreeMap<K, V>
            where [K: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn extract_if<F, R>(&mut self, range: R, pred: F) -> ExtractIf<'_, K, V, R, F>
            where [K: Ord, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool];
        fn into_keys(self) -> IntoKeys<K, V>;
        fn into_values(self) -> IntoValues<K, V>;
        fn iter(&self) -> Iter<'_, K, V>;
        fn iter_mut(&mut self) -> IterMut<'_, K, V>;
        fn keys(&self) -> Keys<'_, K, V>;
        fn values(&self) -> Values<'_, K, V>;
        fn values_mut(&mut self) -> ValuesMut<'_, K, V>;
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
    };
    [K: RefUnwindSafe, V: RefUnwindSafe] BTreeMap<K, V>: UnwindSafe;
    [K: Clone, V: Clone] BTreeMap<K, V>: Clone;
    ['a, K, V] &'a BTreeMap<K, V>: IntoIterator<Item = (&'a K, &'a V), IntoIter = Iter<'a, K, V>>;
    ['a, K, V] &'a mut BTreeMap<K, V>:
        IntoIterator<Item = (&'a K, &'a mut V), IntoIter = IterMut<'a, K, V>>;
    [K, V] BTreeMap<K, V>: IntoIterator<Item = (K, V), IntoIter = IntoIter<K, V>>;
    [K: Ord, V] BTreeMap<K, V>: Extend<(K, V)>;
    ['a, K: Ord + Copy, V: Copy] BTreeMap<K, V>: Extend<(&'a K, &'a V)>;
    [K: Hash, V: Hash] BTreeMap<K, V>: Hash;
    [K: PartialEq, V: PartialEq] BTreeMap<K, V>: PartialEq;
    [K: Eq, V: Eq] BTreeMap<K, V>: Eq;
    [K: PartialOrd, V: PartialOrd] BTreeMap<K, V>: PartialOrd;
    [K: Ord, V: Ord] BTreeMap<K, V>: Ord;
    [K: Debug, V: Debug] BTreeMap<K, V>: Debug;
    ['a, K: Borrow<Q> + Ord, Q: ?Sized + Ord, V] BTreeMap<K, V>: Index<&'a Q, Output = V>;
    [K: Debug, V: Debug] Iter<'_, K, V>: Debug;
    ['a, K, V] Iter<'a, K, V>: Default, Iterator<Item = (&'a K, &'a V)>, FusedIterator,
        DoubleEndedIterator, ExactSizeIterator, Clone;
    [K: Debug, V: Debug] IterMut<'_, K, V>: Debug;
    ['a, K, V] IterMut<'a, K, V>: Default, Iterator<Item = (&'a K, &'a mut V)>,
        DoubleEndedIterator, ExactSizeIterator, FusedIterator;
    [K: Debug, V: Debug] IntoIter<K, V>: Debug;
    [K, V] IntoIter<K, V>: Iterator<Item = (K, V)>, DoubleEndedIterator, ExactSizeIterator,
        FusedIterator;
    [K: Debug, V] Keys<'_, K, V>: Debug;
    ['a, K, V] Keys<'a, K, V>: Iterator<Item = &'a K>, DoubleEndedIterator, ExactSizeIterator,
        FusedIterator, Clone, Default;
    [K, V: Debug] Values<'_, K, V>: Debug;
    ['a, K, V] Values<'a, K, V>: Iterator<Item = &'a V>, DoubleEndedIterator, ExactSizeIterator,
        FusedIterator, Clone, Default;
    [K, V: Debug] ValuesMut<'_, K, V>: Debug;
    ['a, K, V] ValuesMut<'a, K, V>: Iterator<Item = &'a mut V>, DoubleEndedIterator,
        ExactSizeIterator, FusedIterator, Default;
    [K: Debug, V] IntoKeys<K, V>: Debug;
    [K, V] IntoKeys<K, V>: Iterator<Item = K>, DoubleEndedIterator, ExactSizeIterator,
        FusedIterator;
    [K, V: Debug] IntoValues<K, V>: Debug;
    [K, V] IntoValues<K, V>: Iterator<Item = V>, DoubleEndedIterator, ExactSizeIterator,
        FusedIterator;
    [K: Debug, V: Debug] Range<'_, K, V>: Debug;
    ['a, K, V] Range<'a, K, V>: Iterator<Item = (&'a K, &'a V)>, Default, DoubleEndedIterator,
        FusedIterator, Clone;
    [K: Debug, V: Debug] RangeMut<'_, K, V>: Debug;
    ['a, K, V] RangeMut<'a, K, V>: Default, Iterator<Item = (&'a K, &'a mut V)>,
        DoubleEndedIterator, FusedIterator;
    [K: Debug, V: Debug, R, F] ExtractIf<'_, K, V, R, F>: Debug;
    [K: PartialOrd, V, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool] ExtractIf<'_, K, V, R, F>:
        Iterator<Item = (K, V)>;
    ['a, K: Ord, V] Entry<'a, K, V> {
        fn or_insert(self, default: V) -> &'a mut V;
        fn or_insert_with<F>(self, default: F) -> &'a mut V where [F: FnOnce() -> V];
        fn or_insert_with_key<F>(self, default: F) -> &'a mut V
            where [F: FnOnce(&K) -> V];
        fn key(&'s self) -> &'s K;
        fn and_modify<F>(self, f: F) -> Entry<'a, K, V> where [F: FnOnce(&mut V)];
        fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V>;
        fn or_default(self) -> &'a mut V where [V: Default];
    };
    [K: Debug + Ord, V: Debug] Entry<'_, K, V>: Debug;
    ['a, K: Ord, V] VacantEntry<'a, K, V> {
        fn key(&'s self) -> &'s K;
        fn into_key(self) -> K;
        fn insert(self, value: V) -> &'a mut V;
        fn insert_entry(self, value: V) -> OccupiedEntry<'a, K, V>;
    };
    [K: Debug + Ord, V] VacantEntry<'_, K, V>: Debug;
    ['a, K: Ord, V] OccupiedEntry<'a, K, V> {
        fn key(&'s self) -> &'s K;
        fn remove_entry(self) -> (K, V);
        fn get(&'s self) -> &'s V;
        fn get_mut(&'s mut self) -> &'s mut V;
        fn into_mut(self) -> &'a mut V;
        fn insert(&mut self, value: V) -> V;
        fn remove(self) -> V;
    };
    [K: Debug + Ord, V: Debug] OccupiedEntry<'_, K, V>: Debug;
}
global {
    [K, V] BTreeMap<K, V> {
        fn new() -> BTreeMap<K, V>;
    };
    [K: Ord, V] BTreeMap<K, V>: FromIterator<(K, V)>;
    [K, V] BTreeMap<K, V>: Default;
    [K: Ord, V, const N: usize] BTreeMap<K, V>: From<[(K, V); N]>;
    [K, V] IntoIter<K, V>: Default;
    [K, V] IntoKeys<K, V>: Default;
    [K, V] IntoValues<K, V>: Default;
    [K: PartialOrd, V, R: RangeBounds<K>, F: FnMut(&K, &mut V) -> bool] ExtractIf<'_, K, V, R, F>:
        FusedIterator;
}
        }
    };
}

macro_rules! set {
    ($use:ident) => {
        $use! {
any {
    [T] BTreeSet<T> {
        fn range<K, R>(&self, range: R) -> Range<'_, T>
            where [K: ?Sized + Ord, T: Borrow<K> + Ord, R: RangeBounds<K>];
        fn difference(&'s self, other: &'s BTreeSet<T>) -> Difference<'s, T>
            where [T: Ord];
        fn symmetric_difference(&'s self, other: &'s BTreeSet<T>) -> SymmetricDifference<'s, T>
            where [T: Ord];
        fn intersection(&'s self, other: &'s BTreeSet<T>) -> Intersection<'s, T>
            where [T: Ord];
        fn union(&'s self, other: &'s BTreeSet<T>) -> Union<'s, T> where [T: Ord];
        fn clear(&mut self);
        fn contains<Q>(&self, value: &Q) -> bool
            where [T: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn get<Q>(&'s self, value: &Q) -> Option<&'s T>
            where [T: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn is_disjoint(&self, other: &BTreeSet<T>) -> bool where [T: Ord];
        fn is_subset(&self, other: &BTreeSet<T>) -> bool where [T: Ord];
        fn is_superset(&self, other: &BTreeSet<T>) -> bool where [T: Ord];
        fn first(&self) -> Option<&T> where [T: Ord];
        fn last(&self) -> Option<&T> where [T: Ord];
        fn pop_first(&mut self) -> Option<T> where [T: Ord];
        fn pop_last(&mut self) -> Option<T> where [T: Ord];
        fn insert(&mut self, value: T) -> bool where [T: Ord];
        fn replace(&mut self, value: T) -> Option<T> where [T: Ord];
        fn remove<Q>(&mut self, value: &Q) -> bool
            where [T: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn take<Q>(&mut self, value: &Q) -> Option<T>
            where [T: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn retain<F>(&mut self, f: F) where [T: Ord, F: FnMut(&T) -> bool];
        fn append(&mut self, other: &mut BTreeSet<T>) where [T: Ord];
        fn split_off<Q>(&mut self, value: &Q) -> BTreeSet<T>
            where [T: Borrow<Q> + Ord, Q: ?Sized + Ord];
        fn extract_if<F, R>(&mut self, range: R, pred: F) -> ExtractIf<'_, T, R, F>
            where [T: Ord, R: RangeBounds<T>, F: FnMut(&T) -> bool];
        fn iter(&self) -> Iter<'_, T>;
        fn len(&self) -> usize;
        fn is_empty(&self) -> bool;
    };
    [T: Hash] BTreeSet<T>: Hash;
    [T: PartialEq] BTreeSet<T>: PartialEq;
    [T: Eq] BTreeSet<T>: Eq;
    [T: PartialOrd] BTreeSet<T>: PartialOrd;
    [T: Ord] BTreeSet<T>: Ord;
    [T: Clone] BTreeSet<T>: Clone;
    [T] BTreeSet<T>: IntoIterator<Item = T, IntoIter = IntoIter<T>>;
    ['a, T] &'a BTreeSet<T>: IntoIterator<Item = &'a T, IntoIter = Iter<'a, T>>;
    [T: Ord] BTreeSet<T>: Extend<T>;
    ['a, T: 'a + Ord + Copy] BTreeSet<T>: Extend<&'a T>;
    ['a, 'b, T: Ord + Clone] &'b BTreeSet<T>: Sub<&'a BTreeSet<T>, Output = BTreeSet<T>>,
        BitXor<&'a BTreeSet<T>, Output = BTreeSet<T>>,
        BitAnd<&'a BTreeSet<T>, Output = BTreeSet<T>>,
        BitOr<&'a BTreeSet<T>, Output = BTreeSet<T>>;
    [T: Debug] BTreeSet<T>: Debug;
    [T: Debug] Iter<'_, T>: Debug;
    ['a, T] Iter<'a, T>: Clone, Iterator<Item = &'a T>, DoubleEndedIterator, ExactSizeIterator,
        FusedIterator, Default;
    [T] IntoIter<T>: Iterator<Item = T>, DoubleEndedIterator, ExactSizeIterator, FusedIterator;
    [T: Debug] Range<'_, T>: Debug;
    ['a, T] Range<'a, T>: Clone, Iterator<Item = &'a T>, DoubleEndedIterator, FusedIterator,
        Default;
    [T: Debug] Difference<'_, T>: Debug;
    [T] Difference<'_, T>: Clone;
    ['a, T: Ord] Difference<'a, T>: Iterator<Item = &'a T>, FusedIterator;
    [T: Debug] SymmetricDifference<'_, T>: Debug;
    [T] SymmetricDifference<'_, T>: Clone;
    ['a, T: Ord] SymmetricDifference<'a, T>: Iterator<Item = &'a T>, FusedIterator;
    [T: Debug] Intersection<'_, T>: Debug;
    [T] Intersection<'_, T>: Clone;
    ['a, T: Ord] Intersection<'a, T>: Iterator<Item = &'a T>, FusedIterator;
    [T: Debug] Union<'_, T>: Debug;
    [T] Union<'_, T>: Clone;
    ['a, T: Ord] Union<'a, T>: Iterator<Item = &'a T>, FusedIterator;
    [T: Debug, R, F] ExtractIf<'_, T, R, F>: Debug;
    [T: PartialOrd, R: RangeBounds<T>, F: FnMut(&T) -> bool] ExtractIf<'_, T, R, F>:
        Iterator<Item = T>, FusedIterator;
}
global {
    [T] BTreeSet<T> {
        fn new() -> BTreeSet<T>;
    };
    [T: Ord] BTreeSet<T>: FromIterator<T>;
    [T: Ord, const N: usize] BTreeSet<T>: From<[T; N]>;
    [T] BTreeSet<T>: Default;
    [T: Debug] IntoIter<T>: Debug;
    [T] IntoIter<T>: Default;
}
        }
    };
}

/// Needs what a list has of the types that have these names where this stands.
macro_rules! needs {
    ($($generic:tt $subject:ty $({ $(
        fn $name:ident$(<$($own:ident),+>)?($($argument:tt)*) $(-> $output:ty)? $(where $bound:tt)?;
    )* })? $(: $($implemented:path),+)?;)*) => { $(
        $($(call! {
            $generic $subject, $name [$($($own),+)?] ($($argument)*) [$(-> $output)?] [$($bound)?]
        })*)?
        $($(implements! { $generic $subject: $implemented })+)?
    )* };
}

/// Calls one method.
macro_rules! call {
    (@ [$($const:tt)?] [$($generic:tt)*] $subject:ty, $name:ident [$($own:ident),*]
        ($($argument:ident: $type:ty),*) [$($output:tt)*] [$([$($bound:tt)*])?]) => {
        const _: () = {
            $($const)? fn $name<'s, $($generic)*, $($own),*>($($argument: $type),*) $($output)*
            where $($($bound)*)?
            {
                <$subject>::$name::<$($own),*>($($argument),*)
            }
        };
    };
    ($generic:tt $subject:ty, $name:ident $own:tt
        (self $(, $argument:ident: $type:ty)*) $($rest:tt)*) => {
        call! { @ [] $generic $subject, $name $own
            (this: $subject $(, $argument: $type)*) $($rest)* }
    };
    ($generic:tt $subject:ty, $name:ident $own:tt
        (&$($s:lifetime)? self $(, $argument:ident: $type:ty)*) $($rest:tt)*) => {
        call! { @ [] $generic $subject, $name $own
            (this: &$($s)? $subject $(, $argument: $type)*) $($rest)* }
    };
    ($generic:tt $subject:ty, $name:ident $own:tt
        (&$($s:lifetime)? mut self $(, $argument:ident: $type:ty)*) $($rest:tt)*) => {
        call! { @ [] $generic $subject, $name $own
            (this: &$($s)? mut $subject $(, $argument: $type)*) $($rest)* }
    };
    ($generic:tt $subject:ty, $name:ident $own:tt () $($rest:tt)*) => {
        call! { @ [const] $generic $subject, $name $own () $($rest)* }
    };
}

/// Needs one trait.
macro_rules! implements {
    ([$($generic:tt)*] $subject:ty: $implemented:path) => {
        const _: () = {
            fn has<$($generic)*>(subject: $subject) -> impl $implemented {
                subject
            }
        };
    };
}

macro_rules! needs_all {
    (any { $($any:tt)* } global { $($global:tt)* }) => { needs! { $($any)* $($global)* } };
}

macro_rules! needs_any {
    (any { $($any:tt)* } global { $($global:tt)* }) => { needs! { $($any)* } };
}

#[expect(
    dead_code,
    clippy::all,
    reason = "only the type checker reads it, and the signatures are the standard library's"
)]
mod checked {
    mod prelude {
        pub(super) use std::borrow::Borrow;
        pub(super) use std::fmt::Debug;
        pub(super) use std::hash::Hash;
        pub(super) use std::iter::FusedIterator;
        pub(super) use std::ops::{BitAnd, BitOr, BitXor, Index, RangeBounds, Sub};
        pub(super) use std::panic::{RefUnwindSafe, UnwindSafe};
    }

    mod std_map {
        use super::prelude::*;
        use std::collections::btree_map::*;
        map!(needs_all);
    }

    mod std_set {
        use super::prelude::*;
        use std::collections::btree_set::*;
        set!(needs_all);
    }

    mod map {
        use super::prelude::*;
        use ctree::CTreeMap as BTreeMap;
        use ctree::map::*;
        map!(needs_all);
    }

    mod set {
        use super::prelude::*;
        use ctree::CTreeSet as BTreeSet;
        use ctree::set::*;
        set!(needs_all);
    }

    /// Any allocator but the global one.
    type Other = &'static ccmalloc::Heap;

    mod map_elsewhere {
        use super::prelude::*;
        use ctree::map::{self, Iter, IterMut, Keys, Range, RangeMut, Values, ValuesMut};
        type BTreeMap<K, V> = ctree::CTreeMap<K, V, super::Other>;
        type IntoIter<K, V> = map::IntoIter<K, V, super::Other>;
        type IntoKeys<K, V> = map::IntoKeys<K, V, super::Other>;
        type IntoValues<K, V> = map::IntoValues<K, V, super::Other>;
        type ExtractIf<'a, K, V, R, F> = map::ExtractIf<'a, K, V, R, F, super::Other>;
        type Entry<'a, K, V> = map::Entry<'a, K, V, super::Other>;
        type OccupiedEntry<'a, K, V> = map::OccupiedEntry<'a, K, V, super::Other>;
        type VacantEntry<'a, K, V> = map::VacantEntry<'a, K, V, super::Other>;
        map!(needs_any);
    }

    mod set_elsewhere {
        use super::prelude::*;
        use ctree::set::{self, Iter, Range, SymmetricDifference, Union};
        type BTreeSet<T> = ctree::CTreeSet<T, super::Other>;
        type IntoIter<T> = set::IntoIter<T, super::Other>;
        type Difference<'a, T> = set::Difference<'a, T, super::Other>;
        type Intersection<'a, T> = set::Intersection<'a, T, super::Other>;
        type ExtractIf<'a, T, R, F> = set::ExtractIf<'a, T, R, F, super::Other>;
        set!(needs_any);
    }
}

/// A method or an implemented trait.
#[derive(Clone, PartialEq, Debug)]
struct Item {
    /// The type that has it, without parameters.
    owner: String,
    is_method: bool,
    /// A trait's, with its parameters.
    name: String,
}

impl Item {
    /// Of source text, or tokens with blanks between them.
    fn new(subject: &str, is_method: bool, name: &str) -> Item {
        let tidy = |text: &str| {
            let words = [
                (" <", "<"),
                ("< ", "<"),
                (" >", ">"),
                ("& ", "&"),
                ("'a ", ""),
                ("'b ", ""),
            ];
            (words.iter()).fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
        };
        let subject = tidy(subject);
        let owner = subject.split('<').next().unwrap_or_default();
        let owner = owner
            .rsplit([' ', '&'])
            .next()
            .unwrap_or_default()
            .to_owned();
        let mut name = tidy(name);
        // Without associated types, which come last.
        if let Some(start) = name.find("Item =").or_else(|| name.find("Output =")) {
            name.truncate(start);
            match name.strip_suffix(", ") {
                Some(open) => name = format!("{}>", open.trim_end()),
                None => name.truncate(start - 1),
            }
        }
        Item {
            owner,
            is_method,
            name,
        }
    }
}

/// What a list has, in its order.
macro_rules! names {
    (any { $($any:tt)* } global { $($global:tt)* }) => { names! { $($any)* $($global)* } };
    ($($generic:tt $subject:ty $({ $(
        fn $name:ident$(<$($own:ident),+>)?($($argument:tt)*) $(-> $output:ty)? $(where $bound:tt)?;
    )* })? $(: $($implemented:path),+)?;)*) => {
        vec![$(
            $($(Item::new(stringify!($subject), true, stringify!($name)),)*)?
            $($(Item::new(stringify!($subject), false, stringify!($implemented)),)+)?
        )*]
    };
}

/// The folder of the collections' source, where this compiler has it.
fn std_source() -> Option<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let sysroot = String::from_utf8(output.stdout).ok()?;
    let folder = "lib/rustlib/src/rust/library/alloc/src/collections/btree";
    let source = Path::new(sysroot.trim()).join(folder);
    source.is_dir().then_some(source)
}

/// The stable methods and traits in a file of the standard library, traits without parameters, each
/// with the minor version that has it first.
fn std_items(text: &str) -> Vec<(Item, u32)> {
    // Of a type or method; what is not released yet has no number.
    let since = |text: &str| {
        let (_, version) = text.split_once("#[stable(")?.1.split_once("since = \"")?;
        let minor = version
            .strip_prefix("1.")
            .and_then(|it| it.split(['.', '"']).next());
        Some(minor.and_then(|it| it.parse().ok()).unwrap_or(u32::MAX))
    };
    let code: Vec<String> = (text.lines())
        .filter(|line| !line.trim_start().starts_with("//"))
        .map(|line| match line.strip_suffix("{}") {
            Some(head) if !head.starts_with(' ') => format!("{head}{{\n}}"),
            _ => line.to_owned(),
        })
        .collect();
    let code = code.join("\n");
    let blocks: Vec<&str> = code.split("\n}\n").collect();
    // A block with the attributes before it, and its first words.
    let first = |block: &str, word: &str| {
        let start = block.find(&format!("\n{word}"))?;
        Some((
            block[..start].to_owned(),
            block[start + 1 + word.len()..].to_owned(),
        ))
    };
    let mut types: Vec<(String, u32)> = Vec::new();
    let mut items = Vec::new();
    for block in &blocks {
        let found = ["pub struct ", "pub enum "].map(|word| first(block, word));
        let Some((before, after)) = found.into_iter().flatten().next() else {
            continue;
        };
        let Some(since) = since(&before) else {
            continue;
        };
        let owner = after.split(['<', ' ', '{']).next().unwrap_or_default();
        types.push((owner.to_owned(), since));
        let derived = before
            .split_once("#[derive(")
            .and_then(|(_, it)| it.split(')').next());
        for name in derived.into_iter().flat_map(|names| names.split(", ")) {
            items.push((Item::new(owner, false, name), since));
        }
    }
    for block in &blocks {
        let Some((before, after)) = first(block, "impl") else {
            continue;
        };
        let (head, body) = after.split_once("{\n").unwrap_or((&after, ""));
        let (mut depth, mut last) = (0, ' ');
        let end = head.find(|letter: char| {
            depth += i32::from(letter == '<') - i32::from(letter == '>' && last != '-');
            last = letter;
            depth == 0
        });
        let head = head[end.map_or(0, |end| end + 1)..].trim();
        let (implemented, subject) = match head.split_once(" for ") {
            Some((implemented, subject)) => (Some(implemented), subject),
            None => (None, head),
        };
        let owner = Item::new(subject, false, "").owner;
        let known = types.iter().find(|(name, _)| *name == owner);
        let Some((_, of_type)) = known.filter(|_| !before.contains("#[unstable(")) else {
            continue;
        };
        if let Some(path) = implemented {
            let path = path.split('<').next().unwrap_or(path);
            let name = path.rsplit("::").next().unwrap_or(path);
            if name == "Drop" {
                // No bound can ask for its contract with the borrow checker (`may_dangle`).
                continue;
            }
            items.push((
                Item::new(&owner, false, name),
                since(&before).unwrap_or(*of_type),
            ));
            continue;
        }
        for method in body.split("\n    }\n") {
            let Some((before, name)) = method.split_once("    pub ") else {
                continue;
            };
            let name = name.trim_start_matches("const ").trim_start_matches("fn ");
            let name = name.split(['(', '<']).next().unwrap_or(name);
            if let Some(since) = since(before) {
                items.push((Item::new(&owner, true, name), since));
            }
        }
    }
    items
}

/// What is only in the first list, traits without parameters, and what only in the second.
fn differ(listed: &[Item], found: &[(Item, u32)]) -> (Vec<Item>, Vec<(Item, u32)>) {
    let mut found = found.to_vec();
    let mut rest = listed.to_vec();
    rest.retain_mut(|item| {
        item.name
            .truncate(item.name.find('<').unwrap_or(item.name.len()));
        let place = found.iter().position(|(found, _)| found == item);
        place.map(|place| found.remove(place)).is_none()
    });
    (rest, found)
}

#[test]
fn all_that_std_has_is_listed() {
    let Some(source) = std_source() else {
        return skipped("no source of std (`rustup component add rust-src`)");
    };
    for (module, listed) in [("map", map!(names)), ("set", set!(names))] {
        let files = [format!("{module}.rs"), format!("{module}/entry.rs")];
        let found = files.map(|file| std_items(&fs::read_to_string(source.join(file)).unwrap()));
        let found = found.concat();
        let (beyond, lacking) = differ(&listed, &found);
        assert!(beyond.is_empty(), "std has no {beyond:#?}");
        let (old, new): (Vec<_>, Vec<_>) = lacking.into_iter().partition(|it| it.1 <= VERSION);
        assert!(old.is_empty(), "{module}! lacks {old:#?}");
        if !new.is_empty() {
            skipped(&format!(
                "{new:?}, newer than Rust 1.{VERSION}, in {module}!"
            ));
        }
        for place in 0..listed.len() {
            let mut less = listed.clone();
            let item = less.remove(place);
            let is_missed = differ(&less, &found).1.len() > new.len();
            assert!(is_missed, "nobody would miss {item:?}");
        }
    }
}

/// `names` as a paragraph of at most 100 columns, or nothing.
fn paragraph(head: &str, names: BTreeSet<&str>) -> String {
    let mut lines = vec![format!("{head}:")];
    for name in &names {
        let end = if Some(name) == names.last() { '.' } else { ',' };
        match lines.last_mut() {
            Some(line) if line.len() + name.len() < 97 => *line += &format!(" `{name}`{end}"),
            _ => lines.push(format!("`{name}`{end}")),
        }
    }
    match names.is_empty() {
        true => String::new(),
        false => format!("\n{}\n", lines.join("\n")),
    }
}

fn page() -> String {
    let lists = [
        ("map", "CTreeMap", map!(names)),
        ("set", "CTreeSet", set!(names)),
    ];
    let of_kind = |is_method| {
        let all = lists.iter().flat_map(|(_, _, items)| items);
        all.filter(|item| item.is_method == is_method).count()
    };
    let mut text = format!(
        "# `ctree` compared with the standard library

`CTreeMap` and `CTreeSet`, their entries and their iterators have every stable method and trait of
Rust 1.{VERSION}'s `BTreeMap` and `BTreeSet`: {} methods and {} implemented traits, with the same
signatures. `tests/all/std_surface.rs` lists them, compiles each against std's types and against
ours, and writes this page:

```text
cargo test -p tests --test all std_surface
```

Random programs in `ctree/tests/all/dynamic` compare what the methods do, and the auto traits and
variance of all types. For the standard library's `A: Allocator`, read the trait of
`allocator-api2`. The crate's documentation says what `ctree` has beyond this list:
`cargo doc -p cctree --open`.
",
        of_kind(true),
        of_kind(false),
    );
    for (module, collection, items) in &lists {
        let mut owners: Vec<&str> = items.iter().map(|item| item.owner.as_str()).collect();
        let mut seen = BTreeSet::new();
        owners.retain(|owner| seen.insert(*owner));
        for owner in owners {
            let ours = match owner.starts_with("BTree") {
                true => format!("ctree::{collection}"),
                false => format!("ctree::{module}::{owner}"),
            };
            text += &format!("\n## `{ours}`\n");
            for (head, is_method) in [("Methods", true), ("Traits", false)] {
                let it = items.iter().filter(|item| item.owner == owner);
                let it = it.filter(|item| item.is_method == is_method);
                text += &paragraph(head, it.map(|item| item.name.as_str()).collect());
            }
        }
    }
    text
}

#[test]
fn the_page_is_the_lists() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PAGE);
    if std::env::var("STD_SURFACE").is_ok_and(|what| what == "write") {
        fs::write(&path, page()).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap();
    assert!(
        found == page(),
        "{PAGE} is written again by STD_SURFACE=write cargo test -p tests --test all std_surface",
    );
    // So many there are in Rust 1.95, and the standard library takes nothing away.
    let all = [map!(names), set!(names)].concat();
    let methods = all.iter().filter(|item| item.is_method).count();
    assert!(methods >= 76 && all.len() - methods >= 141);
}
