//! A chained hash table of plain `Box`es.

/// A link: 24 bytes, as a node of [`SearchTree`](crate::search_tree::SearchTree).
#[derive(Debug)]
pub(super) struct Link {
    key: u64,
    value: u64,
    next: Option<Box<Link>>,
}

const _: () = assert!(size_of::<Link>() == 24);

/// Chains of `u64` keys with `u64` values, new ones at their ends. Keys may come twice.
#[derive(Debug)]
pub(super) struct HashChains {
    buckets: Vec<Option<Box<Link>>>,
    links: usize,
}

impl HashChains {
    /// A table of `buckets` empty chains, of at least one.
    pub(super) fn new(buckets: usize) -> Self {
        let buckets = buckets.max(1);
        HashChains {
            buckets: std::iter::repeat_with(|| None).take(buckets).collect(),
            links: 0,
        }
    }

    /// Number of links in all chains.
    pub(super) fn len(&self) -> usize {
        self.links
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

    /// Appends a link as a plain program does. Walks the chain.
    pub(super) fn append(&mut self, key: u64, value: u64) {
        self.append_with(key, value, |_end, link| Box::new(link));
    }

    /// Appends a link that is allocated near the last one. Walks the chain.
    ///
    /// The hint is the empty end of the chain, which lies in its last link; in an empty chain it
    /// lies in the table, where no neighbour can be placed, and the link begins a block of its own.
    pub(super) fn append_near_last(&mut self, key: u64, value: u64) {
        self.append_with(key, value, |end, link| {
            ccmalloc::near(end, || Box::new(link))
        });
    }

    fn append_with(
        &mut self,
        key: u64,
        value: u64,
        allocate: impl FnOnce(&Option<Box<Link>>, Link) -> Box<Link>,
    ) {
        let bucket = self.bucket(key);
        let mut end = &mut self.buckets[bucket];
        while let Some(link) = end {
            end = &mut link.next;
        }
        let link = Link {
            key,
            value,
            next: None,
        };
        *end = Some(allocate(end, link));
        self.links += 1;
    }

    /// Removes the first link with `key` and returns its value.
    pub(super) fn remove(&mut self, key: u64) -> Option<u64> {
        let bucket = self.bucket(key);
        let mut place = &mut self.buckets[bucket];
        while place.as_ref()?.key != key {
            place = &mut place.as_mut()?.next;
        }
        let removed = place.take()?;
        *place = removed.next;
        self.links -= 1;
        Some(removed.value)
    }

    /// The low half of the sum of all values in the chain of `key`. Walks the whole chain, as a
    /// table must that is asked for what it does not hold.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the low half is what is asked for"
    )]
    pub(super) fn walk(&self, key: u64) -> u32 {
        let mut sum = 0_u64;
        let mut rest = self.buckets[self.bucket(key)].as_deref();
        while let Some(link) = rest {
            sum = sum.wrapping_add(link.value);
            rest = link.next.as_deref();
        }
        sum as u32
    }

    /// The links of each chain, from its front.
    pub(super) fn chains(&self) -> impl Iterator<Item = impl Iterator<Item = &Link>> {
        self.buckets
            .iter()
            .map(|first| std::iter::successors(first.as_deref(), |link| link.next.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::HashChains;
    use quickcheck::quickcheck;

    quickcheck! {
        fn holds_what_a_list_of_pairs_holds(program: Vec<(u8, bool)>) -> bool {
            let mut model: Vec<(u64, u64)> = Vec::new();
            let mut plain = HashChains::new(5);
            let mut hinted = HashChains::new(5);
            for (value, (key, is_append)) in (0..).zip(program) {
                let key = u64::from(key % 32);
                if is_append {
                    model.push((key, value));
                    plain.append(key, value);
                    hinted.append_near_last(key, value);
                } else {
                    let found = model.iter().position(|&(other, _)| other == key);
                    let expected = found.map(|index| model.remove(index).1);
                    if plain.remove(key) != expected || hinted.remove(key) != expected {
                        return false;
                    }
                }
            }
            let count = |chains: &HashChains| chains.chains().map(Iterator::count).sum::<usize>();
            let sum = |chains: &HashChains, bucket| {
                let in_bucket = model.iter().filter(|&&(key, _)| chains.bucket(key) == bucket);
                in_bucket.fold(0_u64, |sum, &(_, value)| sum + value)
            };
            plain.len() == model.len()
                && hinted.len() == model.len()
                && count(&plain) == model.len()
                && (0..32).all(|key| {
                    let expected = sum(&plain, plain.bucket(key));
                    u64::from(plain.walk(key)) == expected && u64::from(hinted.walk(key)) == expected
                })
        }
    }

    #[test]
    fn a_table_has_a_chain() {
        let mut chains = HashChains::new(0);
        assert_eq!((chains.remove(1), chains.walk(1)), (None, 0));
        chains.append(1, 2);
        assert_eq!(
            (chains.walk(7), chains.remove(1), chains.len()),
            (2, Some(2), 0)
        );
    }
}
