//! A singly linked list of plain `Box`es.

/// An item: 24 bytes, as the objects of the other structures.
#[derive(Debug)]
pub(super) struct Item {
    value: u64,
    weight: u64,
    next: Option<Box<Item>>,
}

const _: () = assert!(size_of::<Item>() == 24);

/// A list that was built from its front to its end.
#[derive(Debug)]
pub(super) struct List {
    first: Option<Box<Item>>,
}

impl List {
    /// The numbers `0..len`, as a plain program makes them.
    pub(super) fn with_len(len: u64) -> Self {
        Self::build(len, |_end, item| Box::new(item))
    }

    /// The same, with each item allocated near the one before.
    pub(super) fn with_len_near_last(len: u64) -> Self {
        Self::build(len, |end, item| ccmalloc::near(end, || Box::new(item)))
    }

    fn build(len: u64, allocate: impl Fn(&Option<Box<Item>>, Item) -> Box<Item>) -> Self {
        let mut list = List { first: None };
        let mut end = &mut list.first;
        for value in 0..len {
            let item = Item {
                value,
                weight: value ^ len,
                next: None,
            };
            let item = allocate(end, item);
            end = &mut end.insert(item).next;
        }
        list
    }

    /// A sum over values, weights and their order. Walks the list.
    pub(super) fn walk(&self) -> u64 {
        self.items().fold(0, |sum: u64, item| {
            sum.wrapping_mul(31)
                .wrapping_add(item.value)
                .wrapping_add(item.weight)
        })
    }

    /// The items, from the front.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> {
        std::iter::successors(self.first.as_deref(), |item| item.next.as_deref())
    }
}

impl Drop for List {
    /// Item by item: not by one stack frame an item.
    fn drop(&mut self) {
        let mut rest = self.first.take();
        while let Some(mut item) = rest {
            rest = item.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::List;

    #[test]
    fn lists_hold_their_numbers_in_order() {
        for len in [0, 1, 2, 1000] {
            let (plain, hinted) = (List::with_len(len), List::with_len_near_last(len));
            assert!(plain.items().map(|item| item.value).eq(0..len));
            assert!(hinted.items().map(|item| item.value).eq(0..len));
            assert_eq!(plain.walk(), hinted.walk());
        }
        assert_ne!(List::with_len(3).walk(), List::with_len(4).walk());
    }
}
