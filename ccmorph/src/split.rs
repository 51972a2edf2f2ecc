//! The table of `#[split]`, and what its generated code calls.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use slab::Slab;

/// The cold fields of nodes that are [split](crate::split) with `cold = "table"`.
///
/// Entries that were removed make room for new ones. All operations take constant time.
pub struct ColdTable<C> {
    entries: Slab<C>,
}

/// Where the cold fields of a node are in their table. There is one for each entry; removing the
/// entry takes it.
pub struct ColdIndex<C> {
    number: u32,
    /// A node has the auto traits that it would have with the fields in it.
    _of: PhantomData<C>,
}

impl<C> ColdTable<C> {
    /// An empty table. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        let entries = Slab::new();
        Self { entries }
    }

    /// Adds an entry.
    ///
    /// # Panics
    /// If the table has 2³² entries.
    #[must_use = "only the index leads to the entry"]
    pub fn insert(&mut self, cold: C) -> ColdIndex<C> {
        let number = u32::try_from(self.entries.vacant_key()).expect("fewer than 2^32 entries");
        self.entries.insert(cold);
        let _of = PhantomData;
        ColdIndex { number, _of }
    }

    /// Takes an entry out.
    ///
    /// # Panics
    /// If the index is of another table that has had more entries.
    pub fn remove(&mut self, index: ColdIndex<C>) -> C {
        self.entries.remove(index.number as usize)
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Panics or leads to another entry if the index is of another table.
impl<C> Index<&ColdIndex<C>> for ColdTable<C> {
    type Output = C;

    fn index(&self, index: &ColdIndex<C>) -> &C {
        &self.entries[index.number as usize]
    }
}

impl<C> IndexMut<&ColdIndex<C>> for ColdTable<C> {
    fn index_mut(&mut self, index: &ColdIndex<C>) -> &mut C {
        &mut self.entries[index.number as usize]
    }
}

impl<C> Default for ColdTable<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: fmt::Debug> fmt::Debug for ColdTable<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.entries).finish()
    }
}

impl<C> fmt::Debug for ColdIndex<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ColdIndex").field(&self.number).finish()
    }
}

/// Has the auto traits of what was split. The lifetime makes conditions on it generic.
#[doc(hidden)]
#[expect(missing_debug_implementations, reason = "nobody has one")]
pub struct Whole<'any, T>(PhantomData<(&'any (), T)>);

/// A box away from what is allocated around it.
#[doc(hidden)]
pub fn far_box<C>(cold: C) -> Box<C> {
    ccmalloc::unhinted(|| Box::new(cold))
}
