//! Where the nodes of a [`SearchTree`] really lie.
//!
//! The model predicts from a shape (who is whose child) and a placement (who lies where). For a
//! tree that stands in memory both can be read off, so a prediction needs no guess about what an
//! allocator does.

use ccmodel::{
    Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction, Predictor, SearchStyle, Shape,
};

use crate::search_tree::{Node, SearchTree};

/// Bytes of the smallest page, the unit in which [`Survey::page_bytes`] counts.
pub const PAGE_BYTES: u64 = 4096;

/// The shape of a tree and the address of each node, in preorder.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Who is whose child.
    pub shape: Shape,
    /// The address of each node as an offset from 0.
    pub placement: Placement,
}

impl Survey {
    /// Walks `tree` once; O(n) time and about 20 B a node.
    ///
    /// # Panics
    /// When the tree has `u32::MAX` nodes or more.
    pub fn of(tree: &SearchTree) -> Self {
        let mut parents = Vec::with_capacity(tree.len());
        let mut addresses = Vec::with_capacity(tree.len());
        let mut pending: Vec<(&Node, u32)> = tree
            .root()
            .into_iter()
            .map(|root| (root, NO_NODE))
            .collect();
        while let Some((node, parent)) = pending.pop() {
            let number = u32::try_from(parents.len()).expect("a survey counts nodes in 32 bits");
            parents.push(parent);
            addresses.push(std::ptr::from_ref(node).addr() as u64);
            pending.extend(node.right.as_deref().map(|child| (child, number)));
            pending.extend(node.left.as_deref().map(|child| (child, number)));
        }
        let shape = Shape::from_parents(&parents)
            .expect("a preorder walk numbers parents before their children");
        Survey {
            shape,
            placement: Placement::from_offsets(addresses),
        }
    }

    /// What one node takes.
    ///
    /// # Panics
    /// Never: the size of a type is positive and its alignment a power of two.
    pub fn extent() -> NodeExtent {
        let bytes = u32::try_from(size_of::<Node>()).expect("a node is small");
        let align = u32::try_from(align_of::<Node>()).expect("an alignment is small");
        NodeExtent::new(bytes, align).expect("the extent of a type is valid")
    }

    /// What a search for a key of the tree costs on `machine`, with the nodes where they lie, in
    /// pages of this size. O(n log n).
    ///
    /// rustc makes [`SearchTree::lower_bound`] a loop that selects one of two links without a
    /// branch; the prediction says so.
    pub fn predict(&self, pages: PageSize, machine: &Machine) -> Prediction {
        Predictor::new(&self.shape)
            .style(SearchStyle::BranchFree)
            .predict(&self.placement, Self::extent(), pages, machine)
    }

    /// Bytes of the 4 KiB pages that hold a node, whole pages counted: what the tree keeps from
    /// everybody else, headers, gaps and reserved room included. O(n log n).
    pub fn page_bytes(&self) -> u64 {
        let addresses = self.placement.offsets().iter().copied();
        page_bytes(addresses, u64::from(Self::extent().bytes))
    }

    /// Share of the nodes but the root that lie in the same block of `block_bytes` as their parent.
    /// O(n).
    pub fn share_with_parent(&self, block_bytes: u64) -> f64 {
        let offsets = self.placement.offsets();
        let mut children = 0_u32;
        let mut together = 0_u32;
        for (child, offset) in (0..).zip(offsets) {
            let parent = self.shape.parent(child);
            if parent != NO_NODE {
                children += 1;
                together +=
                    u32::from(offsets[parent as usize] / block_bytes == offset / block_bytes);
            }
        }
        f64::from(together) / f64::from(children.max(1))
    }
}

/// Bytes of the pages that hold an object of `object_bytes` (at least 1) at one of `addresses`,
/// whole pages counted. O(n log n).
pub fn page_bytes(addresses: impl Iterator<Item = u64>, object_bytes: u64) -> u64 {
    let last_byte = object_bytes.saturating_sub(1);
    let mut pages: Vec<u64> = addresses
        .flat_map(|address| [address / PAGE_BYTES, (address + last_byte) / PAGE_BYTES])
        .collect();
    pages.sort_unstable();
    pages.dedup();
    pages.len() as u64 * PAGE_BYTES
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, Survey};
    use crate::search_tree::SearchTree;
    use ccmodel::NO_NODE;

    fn tree_of(keys: &[u64]) -> SearchTree {
        let mut tree = SearchTree::new();
        for &key in keys {
            tree.insert(key);
        }
        tree
    }

    #[test]
    fn shape_and_addresses_are_those_of_the_tree() {
        let tree = tree_of(&[50, 20, 70, 10, 30]);
        let survey = Survey::of(&tree);
        // Preorder: 50, 20, 10, 30, 70.
        assert_eq!(survey.shape.len(), 5);
        assert_eq!(survey.shape.parent(0), NO_NODE);
        assert_eq!(survey.shape.children(0), [1, 4]);
        assert_eq!(survey.shape.children(1), [2, 3]);
        let root = tree.root().unwrap();
        assert_eq!(
            survey.placement.offset(0),
            std::ptr::from_ref(root).addr() as u64
        );
        assert_eq!(
            survey.placement.offset(4),
            std::ptr::from_ref(root.right.as_deref().unwrap()).addr() as u64
        );
    }

    #[test]
    fn pages_and_shares_are_bounded() {
        let survey = Survey::of(&tree_of(
            &(0..500).map(|i| i * 7919 % 500).collect::<Vec<_>>(),
        ));
        assert_eq!(survey.shape.len(), 500);
        assert!(survey.page_bytes() >= 500 * 24);
        assert_eq!(survey.page_bytes() % PAGE_BYTES, 0);
        let same_block = survey.share_with_parent(64);
        let same_page = survey.share_with_parent(PAGE_BYTES);
        assert!((0.0..=1.0).contains(&same_block) && same_block <= same_page);
    }

    #[test]
    fn an_empty_tree_has_an_empty_survey() {
        let survey = Survey::of(&SearchTree::new());
        assert!(survey.shape.is_empty());
        assert_eq!(survey.page_bytes(), 0);
        assert!(survey.share_with_parent(64).abs() < f64::EPSILON);
    }
}
