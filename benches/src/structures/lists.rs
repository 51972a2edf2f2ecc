//! Many doubly linked lists whose links were inserted and deleted at random, so that neighbours lie
//! anywhere.

use std::ptr;

use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;
use crate::ordered_map::low_half;
use crate::rng::Rng;

/// A link of a list, which begins at an `Option<Box<Link>>`.
#[derive(Clone, Debug, TreeNode)]
pub(crate) struct Link<T> {
    pub(crate) value: T,
    /// The address of the link before it, or null. Never read through.
    #[parent]
    pub(crate) prev: *const Link<T>,
    #[child]
    pub(crate) next: List<T>,
}

pub(crate) type List<T> = Option<Box<Link<T>>>;

const _: () = assert!(size_of::<Link<u64>>() == 24);

pub(crate) fn values<T>(list: &List<T>) -> impl Iterator<Item = &T> {
    links(list).map(|link| &link.value)
}

fn links<T>(list: &List<T>) -> impl Iterator<Item = &Link<T>> {
    std::iter::successors(list.as_deref(), |link| link.next.as_deref())
}

/// Walks while there is a link for which `step` is true. Returns the place that owns the next link,
/// or the end, and the address of the link before it.
#[inline]
pub(crate) fn walk<T>(
    mut slot: &mut List<T>,
    mut step: impl FnMut(&Link<T>) -> bool,
) -> (&mut List<T>, *const Link<T>) {
    let mut prev = ptr::null();
    // In one step, the borrow checker would keep `slot` for the caller.
    while slot.as_deref().is_some_and(&mut step) {
        if let Some(link) = slot {
            prev = ptr::from_ref(&**link);
            slot = &mut link.next;
        }
    }
    (slot, prev)
}

/// Frees the link in `slot`, and returns its value.
#[inline]
pub(crate) fn unlink<T>(slot: &mut List<T>) -> Option<T> {
    let link = *slot.take()?;
    *slot = link.next;
    if let Some(next) = slot {
        next.prev = link.prev;
    }
    Some(link.value)
}

/// Lists of numbers.
#[derive(Debug)]
pub struct Lists {
    heads: Vec<List<u64>>,
    lengths: Vec<usize>,
}

/// Links of a list, on average.
pub const LINKS_EACH: usize = 32;

impl Lists {
    /// Lists of [`LINKS_EACH`] links on average, `links` in all. Each is put in front of a random
    /// list, and then `churn` times one at a random place is deleted and another inserted.
    pub fn churned(links: usize, churn: usize, seed: u64) -> Lists {
        let mut rng = Rng::new(seed);
        let count = links / LINKS_EACH;
        let mut lists = Lists::new(count);
        for _ in 0..links {
            let list = rng.below(count);
            lists.insert(list, 0, rng.next_u64());
        }
        for _ in 0..churn {
            let list = rng.below(count);
            if let Some(last) = lists.lengths[list].checked_sub(1) {
                lists.remove(list, rng.below(last + 1));
            }
            let list = rng.below(count);
            let at = rng.below(lists.lengths[list] + 1);
            lists.insert(list, at, rng.next_u64());
        }
        lists
    }

    pub fn new(lists: usize) -> Lists {
        Lists {
            heads: (0..lists).map(|_| None).collect(),
            lengths: vec![0; lists],
        }
    }

    /// Puts `value` in front of what is the `at`th of `list` now, or at its end.
    pub fn insert(&mut self, list: usize, at: usize, value: u64) {
        let mut steps = 0..at;
        let (slot, prev) = walk(&mut self.heads[list], |_| steps.next().is_some());
        let mut link = Box::new(Link {
            value,
            prev,
            next: slot.take(),
        });
        let here = ptr::from_ref(&*link);
        if let Some(next) = &mut link.next {
            next.prev = here;
        }
        *slot = Some(link);
        self.lengths[list] += 1;
    }

    /// Deletes the `at`th of `list` and returns its value, or `None` when the list is shorter.
    pub fn remove(&mut self, list: usize, at: usize) -> Option<u64> {
        let mut steps = 0..at;
        let (slot, _) = walk(&mut self.heads[list], |_| steps.next().is_some());
        let value = unlink(slot)?;
        self.lengths[list] -= 1;
        Some(value)
    }

    pub fn values(&self, list: usize) -> impl Iterator<Item = u64> {
        values(&self.heads[list]).copied()
    }

    /// Whether each link knows where the one before it lies.
    pub fn is_linked_both_ways(&self) -> bool {
        self.heads.iter().all(|head| {
            let mut before = ptr::null();
            links(head).all(|link| link.prev == std::mem::replace(&mut before, link))
        })
    }
}

impl Clone for Lists {
    fn clone(&self) -> Self {
        let mut copy = Lists {
            heads: self.heads.clone(),
            lengths: self.lengths.clone(),
        };
        // A copied link holds the address of the link before the original.
        for head in &mut copy.heads {
            let (mut before, mut rest) = (ptr::null(), head.as_deref_mut());
            while let Some(link) = rest {
                link.prev = before;
                before = ptr::from_ref(link);
                rest = link.next.as_deref_mut();
            }
        }
        copy
    }
}

impl Structure for Lists {
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.heads, Link::children)
    }

    /// The low half of the sum of all values in one list. Walks the whole list.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "lists are few")]
    fn answer(&self, query: u64) -> u32 {
        let sum = self.values(query as usize).fold(0, u64::wrapping_add);
        low_half(Some(&sum))
    }
}
