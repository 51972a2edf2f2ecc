//! The program that the guide is about: prices of articles, in a search tree of plain `Box`es.
//!
//! Articles come in no order, so the tree is as deep as random insertion leaves it, some `1.39 log2
//! n` levels on average (Knuth, TAOCP 3, 6.2.2). All that the cures change is marked in the guide:
//! the line that makes a node, and one call on the finished tree.

use ccmorph::TreeNode;

/// An article and its price: 32 bytes, so that two of them fit a block of 64.
#[derive(Debug, TreeNode)]
pub(super) struct Node {
    article: u64,
    price: u64,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 32);

/// Prices by article.
#[derive(Debug, Default)]
pub(super) struct PriceList {
    root: Option<Box<Node>>,
}

impl PriceList {
    /// Sets a price, as a plain program does. Walks one path.
    pub(super) fn set(&mut self, article: u64, price: u64) {
        self.set_with(article, price, |_link, node| Box::new(node));
    }

    /// The same, with a new node allocated near its parent, in which the empty link lies. Walks one
    /// path.
    pub(super) fn set_near_parent(&mut self, article: u64, price: u64) {
        self.set_with(article, price, |link, node| {
            ccmalloc::near(link, || Box::new(node))
        });
    }

    #[inline]
    fn set_with(
        &mut self,
        article: u64,
        price: u64,
        allocate: impl FnOnce(&Option<Box<Node>>, Node) -> Box<Node>,
    ) {
        let mut link = &mut self.root;
        while let Some(node) = link {
            if article == node.article {
                node.price = price;
                return;
            }
            link = if article < node.article {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        let node = Node {
            article,
            price,
            left: None,
            right: None,
        };
        *link = Some(allocate(link, node));
    }

    /// The price of an article, if it is on the list. Walks one path.
    #[inline]
    pub(super) fn price(&self, article: u64) -> Option<u64> {
        let mut link = &self.root;
        while let Some(node) = link {
            if article == node.article {
                return Some(node.price);
            }
            link = if article < node.article {
                &node.left
            } else {
                &node.right
            };
        }
        None
    }

    /// The link that owns the root, for `ccmorph`. Whoever changes articles or their order through
    /// it gets other answers, nothing worse.
    pub(super) fn root_mut(&mut self) -> &mut Option<Box<Node>> {
        &mut self.root
    }
}

impl Drop for PriceList {
    /// Node by node, with the pending subtrees on the heap: articles in ascending order make a
    /// list, and a list must not end the program by one stack frame a node.
    fn drop(&mut self) {
        let mut pending: Vec<Box<Node>> = self.root.take().into_iter().collect();
        while let Some(mut node) = pending.pop() {
            pending.extend(node.right.take());
            pending.extend(node.left.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PriceList;
    use quickcheck::quickcheck;
    use std::collections::BTreeMap;

    quickcheck! {
        fn answers_like_a_btree_map(sets: Vec<(u8, u64)>) -> bool {
            let mut model = BTreeMap::new();
            let (mut plain, mut hinted) = (PriceList::default(), PriceList::default());
            for (article, price) in sets {
                model.insert(u64::from(article), price);
                plain.set(u64::from(article), price);
                hinted.set_near_parent(u64::from(article), price);
            }
            (0..=256).all(|article| {
                let expected = model.get(&article).copied();
                plain.price(article) == expected && hinted.price(article) == expected
            })
        }
    }
}
