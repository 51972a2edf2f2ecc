//! Data that shares the heap, and a list that has seen many changes.

use crate::rng::Rng;
use ccmorph::TreeNode;

/// Objects of 24 bytes that a program makes and frees while its structures grow.
#[derive(Debug)]
pub(super) struct OtherData {
    #[expect(clippy::vec_box, reason = "each is to be an allocation of its own")]
    objects: Vec<Box<[u64; 3]>>,
}

impl OtherData {
    /// So many objects, which will be as many at any time.
    pub(super) fn of(objects: usize) -> Self {
        OtherData {
            objects: (0..objects as u64)
                .map(|value| Box::new([value; 3]))
                .collect(),
        }
    }

    /// Makes an object and frees another one, drawn at random; so many times.
    pub(super) fn turn_over(&mut self, objects: usize, rng: &mut Rng) {
        for _ in 0..objects {
            let at = rng.below(self.objects.len());
            let made = Box::new([rng.next_u64(); 3]);
            drop(std::mem::replace(&mut self.objects[at], made));
        }
    }
}

/// An item of a list: 24 bytes.
#[derive(Debug, TreeNode)]
pub(super) struct Item {
    data: [u64; 2],
    #[child]
    next: Option<Box<Item>>,
}

const _: () = assert!(size_of::<Item>() == 24);

/// A singly linked list.
#[derive(Debug, Default)]
pub(super) struct List {
    first: Option<Box<Item>>,
}

impl List {
    /// The link that owns the first item, for `ccmorph`.
    pub(super) fn first_mut(&mut self) -> &mut Option<Box<Item>> {
        &mut self.first
    }

    /// A sum over the items and their order.
    pub(super) fn checksum(&self) -> u64 {
        std::iter::successors(self.first.as_deref(), |item| item.next.as_deref())
            .flat_map(|item| item.data)
            .fold(0, |sum: u64, word| sum.wrapping_mul(31).wrapping_add(word))
    }

    /// The link behind so many items.
    fn link_behind(&mut self, items: usize) -> &mut Option<Box<Item>> {
        let mut link = &mut self.first;
        for _ in 0..items {
            match link {
                Some(item) => link = &mut item.next,
                None => break,
            }
        }
        link
    }

    fn insert(&mut self, items_before: usize, data: [u64; 2]) {
        let link = self.link_behind(items_before);
        let next = link.take();
        *link = Some(Box::new(Item { data, next }));
    }

    fn remove(&mut self, items_before: usize) {
        let link = self.link_behind(items_before);
        if let Some(item) = link.take() {
            *link = item.next;
        }
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

/// A list of `len` items that was filled at random places, and of which then as many were removed
/// and others inserted. `meanwhile` is called before each insert.
pub(super) fn churned_list(len: usize, rng: &mut Rng, mut meanwhile: impl FnMut(&mut Rng)) -> List {
    let mut list = List::default();
    let data = |rng: &mut Rng| [rng.next_u64(), rng.next_u64()];
    for length in 0..len {
        meanwhile(rng);
        list.insert(rng.below(length + 1), data(rng));
    }
    for _ in 0..len {
        list.remove(rng.below(len));
        meanwhile(rng);
        list.insert(rng.below(len), data(rng));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::{OtherData, churned_list};
    use crate::rng::Rng;

    #[test]
    fn a_churned_list_keeps_its_length() {
        let mut calls = 0;
        let mut list = churned_list(100, &mut Rng::new(1), |_| calls += 1);
        assert_eq!(calls, 200);
        let sum = list.checksum();
        assert_eq!(sum, churned_list(100, &mut Rng::new(1), |_| {}).checksum());
        assert_ne!(sum, churned_list(100, &mut Rng::new(2), |_| {}).checksum());
        let (mut at, mut items) = (list.first_mut(), 0);
        while let Some(item) = at {
            items += 1;
            at = &mut item.next;
        }
        assert_eq!(items, 100);
        let mut none = churned_list(0, &mut Rng::new(1), |_| unreachable!("nothing is inserted"));
        assert!(none.first_mut().is_none());
    }

    #[test]
    fn other_data_changes_and_stays_as_much() {
        let mut others = OtherData::of(10);
        let before = others.objects.clone();
        others.turn_over(5, &mut Rng::new(1));
        assert_eq!(others.objects.len(), 10);
        assert_ne!(others.objects, before);
    }
}
