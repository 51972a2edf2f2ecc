//! The orders in which walks go.

use crate::Shape;
use crate::accesses::Points;

/// All points of a forest in preorder; where a walk `returns`, each also after each of its
/// children.
pub(super) fn depth_first(shape: &Shape, returns: bool) -> Vec<u32> {
    let mut order = Vec::with_capacity(shape.len());
    // Points on the path, each with the number of its children that were visited.
    let mut path: Vec<(u32, usize)> = Vec::new();
    for root in shape.roots() {
        order.push(root);
        path.push((root, 0));
        while let Some((v, visited)) = path.last_mut() {
            if returns && *visited > 0 {
                order.push(*v);
            }
            match shape.children(*v).get(*visited) {
                Some(&child) => {
                    *visited += 1;
                    order.push(child);
                    path.push((child, 0));
                }
                None => {
                    path.pop();
                }
            }
        }
    }
    order
}

/// All points that hold a key or lie on the path to one, in the order of the keys.
pub(super) fn in_key_order(points: &Points) -> Vec<u32> {
    let mut order = Vec::with_capacity(points.len());
    for key in (0..).take(points.found().len()) {
        points.push_successor(key, &mut order);
    }
    order
}
