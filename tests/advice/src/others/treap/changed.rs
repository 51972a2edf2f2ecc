//! New nodes near their parents, or all laid out for searches.

use super::before::{self, Link, Node, filled, ranks, split};

pub fn hint(size: usize) -> u64 {
    ranks(size, &filled(size, insert))
}

fn insert(link: &mut Link, score: u64, priority: u32) {
    match link {
        Some(node) if node.priority >= priority => {
            node.count += 1;
            let is_above = node.score < score;
            let next = if is_above {
                &mut node.right
            } else {
                &mut node.left
            };
            insert(next, score, priority);
        }
        _ => {
            let mut node = ccmalloc::near(link, || Box::new(Node::new(score, priority)));
            (node.left, node.right) = split(link.take(), score);
            node.update();
            *link = Some(node);
        }
    }
}

pub fn morph(size: usize) -> u64 {
    let mut root = filled(size, before::insert);
    let done = crate::morph().run(&mut root, |node, visit| {
        visit(&mut node.left);
        visit(&mut node.right);
    });
    done.expect("memory for the nodes");
    ranks(size, &root)
}
