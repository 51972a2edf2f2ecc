//! The shape of a [`Tree`] in memory and the addresses of its nodes, from which the model
//! predicts.

use ccmodel::{
    Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction, Predictor, SearchStyle, Shape,
};

use crate::search_tree::{Node, Tree};

/// The shape of a tree and the address of each node, in preorder.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The parent of each node.
    pub shape: Shape,
    /// The address of each node as an offset from 0.
    pub placement: Placement,
    /// The size of a node.
    pub extent: NodeExtent,
}

impl Survey {
    /// Walks `tree` once. O(n) time and about 20 B a node.
    ///
    /// # Panics
    /// When the tree has `u32::MAX` nodes or more.
    pub fn of<V>(tree: &Tree<V>) -> Self {
        let (mut parents, mut addresses) = (Vec::new(), Vec::new());
        let root = tree.root.as_deref().map(|root| (root, NO_NODE));
        let mut pending: Vec<(&Node<V>, u32)> = root.into_iter().collect();
        while let Some((node, parent)) = pending.pop() {
            let number = u32::try_from(parents.len()).expect("a survey counts nodes in 32 bits");
            parents.push(parent);
            addresses.push(std::ptr::from_ref(node).addr() as u64);
            let both = [&node.right, &node.left].into_iter().flatten();
            pending.extend(both.map(|child| (&**child, number)));
        }
        let [bytes, align] = [size_of::<Node<V>>(), align_of::<Node<V>>()]
            .map(|bytes| u32::try_from(bytes).expect("a node is small"));
        Survey {
            shape: Shape::from_parents(&parents).expect("parents come before their children"),
            placement: Placement::from_offsets(addresses),
            extent: NodeExtent::new(bytes, align).expect("the extent of a type is valid"),
        }
    }

    /// Predicts a search for a key of the tree. O(n log n).
    ///
    /// rustc makes [`Tree::lower_bound`] select one of two links without a branch.
    pub fn predict(&self, pages: PageSize, machine: &Machine) -> Prediction {
        Predictor::new(&self.shape)
            .style(SearchStyle::BranchFree)
            .predict(&self.placement, self.extent, pages, machine)
    }

    /// The share of children that lie in the same block of `block_bytes` as their parent. O(n).
    pub fn share_with_parent(&self, block_bytes: u64) -> f64 {
        let block = |node: u32| self.placement.offset(node) / block_bytes;
        let nodes = 0..u32::try_from(self.shape.len()).expect("a shape counts nodes in 32 bits");
        let pairs = nodes.map(|child| (child, self.shape.parent(child)));
        let pairs = pairs.filter(|&(_, parent)| parent != NO_NODE);
        let together = pairs
            .clone()
            .filter(|&(child, parent)| block(child) == block(parent));
        together.count() as f64 / pairs.count().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::Survey;
    use crate::search_tree::SearchTree;
    use ccmodel::NO_NODE;

    #[test]
    fn shape_and_addresses_are_those_of_the_tree() {
        let mut tree = SearchTree::default();
        let empty = Survey::of(&tree);
        assert!(empty.shape.is_empty() && empty.share_with_parent(64).abs() < f64::EPSILON);
        for key in [50, 20, 70, 10, 30] {
            tree.insert(key, ());
        }
        let survey = Survey::of(&tree);
        // Preorder: 50, 20, 10, 30, 70.
        assert_eq!(survey.shape.len(), 5);
        assert_eq!(survey.shape.parent(0), NO_NODE);
        assert_eq!(survey.shape.children(0), [1, 4]);
        assert_eq!(survey.shape.children(1), [2, 3]);
        let root = tree.root.as_deref().unwrap();
        for (number, node) in [(0, root), (4, root.right.as_deref().unwrap())] {
            let address = std::ptr::from_ref(node).addr() as u64;
            assert_eq!(survey.placement.offset(number), address);
        }
        assert!((survey.share_with_parent(u64::MAX) - 1.0).abs() < f64::EPSILON);
    }
}
