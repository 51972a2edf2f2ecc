//! The shape of a [`Tree`] and the addresses of its nodes, from which the model predicts.

use ccmodel::{
    Machine, NO_NODE, NodeExtent, PageSize, Placement, Prediction, Predictor, SearchStyle, Shape,
};

use crate::search_tree::{Node, Tree};

#[derive(Clone, Debug)]
pub struct Survey {
    pub shape: Shape,
    /// As offsets from address 0, in preorder.
    pub placement: Placement,
    pub extent: NodeExtent,
}

impl Survey {
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

    /// Predicts a search for a key of the tree, in which rustc selects one of two links without a
    /// branch.
    pub fn predict(&self, pages: PageSize, machine: &Machine) -> Prediction {
        Predictor::new(&self.shape)
            .style(SearchStyle::BranchFree)
            .predict(&self.placement, self.extent, pages, machine)
    }

    /// The share of children that lie in the same block of `block_bytes` as their parent.
    pub fn share_with_parent(&self, block_bytes: u64) -> f64 {
        let block = |node: u32| self.placement.offset(node) / block_bytes;
        let nodes = 0..u32::try_from(self.shape.len()).expect("a shape counts nodes in 32 bits");
        let (mut together, mut all) = (0.0, 0.0_f64);
        for child in nodes {
            let parent = self.shape.parent(child);
            if parent != NO_NODE {
                all += 1.0;
                together += f64::from(block(child) == block(parent));
            }
        }
        together / all.max(1.0)
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
