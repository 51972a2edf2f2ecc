//! Chained hash buckets whose links come from an allocator of choice.
//!
//! A bucket is a singly linked list with its two ends in the table; new links are appended, with
//! the bucket's last link as the hint. Walks go through whole chains, each link a dependent load,
//! which is what a hash table does that is asked for something it does not hold.

use std::alloc::Layout;
use std::ptr::NonNull;

use crate::raw_tree::NodeAllocator;

/// A link: 24 bytes, as a node of [`crate::raw_tree::RawTree`].
struct RawLink {
    key: u64,
    value: u64,
    next: Option<NonNull<RawLink>>,
}

const _: () = assert!(size_of::<RawLink>() == 24);

/// The two ends of a chain; both or neither are there.
#[derive(Clone, Copy, Debug)]
struct Ends {
    first: NonNull<RawLink>,
    last: NonNull<RawLink>,
}

/// A table of chains of `u64` keys with `u64` values. Keys may come twice.
///
/// Invariants:
/// - `first` leads over `next` through links from `allocator` that are initialised, to `last`,
///   whose `next` is `None`;
/// - a link is in one chain, once.
#[derive(Debug)]
pub struct RawChains<A: NodeAllocator> {
    buckets: Vec<Option<Ends>>,
    links: usize,
    allocator: A,
}

impl<A: NodeAllocator> RawChains<A> {
    /// A table of `buckets` empty chains on `allocator`.
    ///
    /// # Panics
    /// When `buckets` is 0.
    pub fn new(allocator: A, buckets: usize) -> Self {
        assert!(buckets > 0, "a table has buckets");
        RawChains {
            buckets: vec![None; buckets],
            links: 0,
            allocator,
        }
    }

    /// Number of links in all chains.
    pub fn len(&self) -> usize {
        self.links
    }

    /// Whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.links == 0
    }

    /// The chain of `key`, by multiplication and shift.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the high half of the product is below the number of buckets"
    )]
    fn bucket(&self, key: u64) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }

    /// Appends a link to the chain of `key`, with the chain's last link as the hint, or its place
    /// in the table when it has none.
    ///
    /// # Panics
    /// When memory runs out.
    pub fn append(&mut self, key: u64, value: u64) {
        let bucket = self.bucket(key);
        let ends = self.buckets[bucket];
        let layout = Layout::new::<RawLink>();
        // What an empty chain has in its neighbourhood is its place in the table: it says that more
        // is to come, which no hint would not.
        let hint = ends.map_or_else(
            || NonNull::from(&self.buckets[bucket]).cast(),
            |ends| ends.last.cast(),
        );
        let Some(link) = self
            .allocator
            .allocate(layout, Some(hint))
            .map(NonNull::cast::<RawLink>)
        else {
            std::alloc::handle_alloc_error(layout);
        };
        // SAFETY: `link` is fresh memory of a `RawLink`'s layout, by the allocator's contract.
        unsafe {
            link.write(RawLink {
                key,
                value,
                next: None,
            });
        }
        let first = ends.map_or(link, |ends| {
            // SAFETY: `last` is a live, initialised link, and `&mut self` makes this the only
            // access to it.
            unsafe { (*ends.last.as_ptr()).next = Some(link) };
            ends.first
        });
        self.buckets[bucket] = Some(Ends { first, last: link });
        self.links += 1;
    }

    /// Removes the first link with `key` and returns its value.
    pub fn remove(&mut self, key: u64) -> Option<u64> {
        let bucket = self.bucket(key);
        let ends = self.buckets[bucket]?;
        let mut before: Option<NonNull<RawLink>> = None;
        let mut link = ends.first;
        loop {
            // SAFETY: chains lead to live, initialised links, and `&mut self` makes this the only
            // access to them.
            let RawLink {
                key: found, next, ..
            } = *unsafe { link.as_ref() };
            if found == key {
                break;
            }
            before = Some(link);
            link = next?;
        }
        // SAFETY: a live, initialised link, as above; its content is copied out, and below nothing
        // leads to it any more.
        let RawLink { value, next, .. } = unsafe { link.read() };
        self.buckets[bucket] = match (before, next) {
            (None, None) => None,
            (None, Some(next)) => Some(Ends {
                first: next,
                ..ends
            }),
            (Some(before), next) => {
                // SAFETY: a live link of the same chain.
                unsafe { (*before.as_ptr()).next = next };
                let last = if next.is_some() { ends.last } else { before };
                Some(Ends { last, ..ends })
            }
        };
        self.links -= 1;
        // SAFETY: the link came from this allocator with this layout, and is in no chain any more.
        unsafe {
            self.allocator
                .deallocate(link.cast(), Layout::new::<RawLink>());
        }
        Some(value)
    }

    /// The low half of the sum of all values in the chain of `key`. Walks the whole chain.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
    pub fn walk(&self, key: u64) -> u32 {
        let mut sum = 0_u64;
        let mut rest = self.buckets[self.bucket(key)].map(|ends| ends.first);
        while let Some(link) = rest {
            // SAFETY: chains lead to live, initialised links, and `&self` keeps them unchanged.
            let link = unsafe { link.as_ref() };
            sum = sum.wrapping_add(link.value);
            rest = link.next;
        }
        sum as u32
    }
}

impl<A: NodeAllocator> Drop for RawChains<A> {
    fn drop(&mut self) {
        for ends in self.buckets.drain(..).flatten() {
            let mut rest = Some(ends.first);
            while let Some(link) = rest {
                // SAFETY: chains lead to live, initialised links; this one is freed below only,
                // once its content is copied out.
                rest = unsafe { link.read() }.next;
                // SAFETY: the link came from this allocator with this layout, and each is in one
                // chain, once.
                unsafe {
                    self.allocator
                        .deallocate(link.cast(), Layout::new::<RawLink>());
                }
            }
        }
    }
}
