//! The tree laid out as a whole, or in a vector with the number of what to skip.

use super::before::{Bounds, Sphere, Tree, build, scene, shoot};
use ccmorph::Operation;

pub fn morph(size: usize) -> u64 {
    let mut tree = build(&mut scene(size));
    let morph = crate::morph().operation(Operation::Walk);
    let done = morph.run(&mut tree, |tree, visit| match tree {
        Tree::Leaf(_) => {}
        Tree::Inner(_, parts) => visit(parts),
    });
    done.expect("memory for the nodes");
    shoot(size / 20 + 10, |ray| tree.hits(ray))
}

enum Node {
    Leaf(Sphere),
    /// With the number of the first node that is not below it.
    Inner(Bounds, u32),
}

pub fn smaller(size: usize) -> u64 {
    let tree = build(&mut scene(size));
    let mut nodes = Vec::new();
    flatten(&tree, &mut nodes);
    drop(tree);
    shoot(size / 20 + 10, |ray| {
        let (mut at, mut hits) = (0, 0);
        while let Some(node) = nodes.get(at) {
            at += 1;
            match node {
                Node::Leaf(sphere) => hits += u64::from(sphere.is_hit(ray)),
                Node::Inner(bounds, end) if !bounds.is_hit(ray) => at = *end as usize,
                Node::Inner(..) => {}
            }
        }
        hits
    })
}

fn flatten(tree: &Tree, nodes: &mut Vec<Node>) {
    match tree {
        Tree::Leaf(sphere) => nodes.push(Node::Leaf(*sphere)),
        Tree::Inner(bounds, parts) => {
            let at = nodes.len();
            nodes.push(Node::Inner(*bounds, 0));
            parts.iter().for_each(|part| flatten(part, nodes));
            nodes[at] = Node::Inner(*bounds, nodes.len() as u32);
        }
    }
}
