//! A search tree whose nodes hold more than a search reads.
//!
//! A node takes two cache lines, and the upper levels that stay in the cache are few. With the
//! contents in a table, nodes are a third as large.

use super::{mix, shuffled};
use crate::{Kind, Program};
use ccmorph::{ColdTable, split};

pub(super) const PROGRAM: Program = Program {
    name: "tree_split",
    kind: Kind::Split,
    worth_it: true,
    note: "search tree of wide nodes",
    size: 600_000,
    before: |size| {
        let mut new = |key| Box::new(Wide { key, links: [None, None], notes: [key; 14] });
        let root = link(&mut nodes(size, &mut new), |node| &mut node.links);
        search(size, &root, |node| (node.key, &node.links), |node| node.notes[3])
    },
    after: |size| {
        let mut cold = ColdTable::new();
        let mut new = |key| {
            let fields = SlimFields { key, links: [None, None], notes: [key; 14] };
            Box::new(fields.split_into(&mut cold))
        };
        let root = link(&mut nodes(size, &mut new), |node| &mut node.links);
        search(size, &root, |node| (node.key, &node.links), |node| node.notes(&cold)[3])
    },
};

struct Wide {
    key: u64,
    links: [Link<Wide>; 2],
    notes: [u64; 14],
}

#[split(cold(notes), cold = "table")]
struct Slim {
    key: u64,
    links: [Link<Slim>; 2],
    notes: [u64; 14],
}

type Link<N> = Option<Box<N>>;

fn nodes<N>(size: usize, new: &mut dyn FnMut(u64) -> Box<N>) -> Vec<(u64, Link<N>)> {
    let mut nodes: Vec<_> = shuffled(size).iter().map(|&key| (key, Some(new(key)))).collect();
    nodes.sort_unstable_by_key(|node| node.0);
    nodes
}

fn link<N>(nodes: &mut [(u64, Link<N>)], links: fn(&mut N) -> &mut [Link<N>; 2]) -> Link<N> {
    let (left, rest) = nodes.split_at_mut(nodes.len() / 2);
    let ((_, root), right) = rest.split_first_mut()?;
    *links(root.as_mut()?) = [link(left, links), link(right, links)];
    root.take()
}

fn search<N>(
    size: usize,
    root: &Link<N>,
    hot: impl Fn(&N) -> (u64, &[Link<N>; 2]),
    cold: impl Fn(&N) -> u64,
) -> u64 {
    let keys = shuffled(size);
    keys.iter().cycle().take(3 * size).fold(0, |sum, &wanted| {
        let (mut at, mut depth) = (root, 0);
        while let Some(node) = at {
            let (key, links) = hot(node);
            if key == wanted {
                // One in sixteen reads the contents.
                depth += if key % 16 == 0 { cold(node) } else { 0 };
                break;
            }
            at = &links[usize::from(key < wanted)];
            depth += 1;
        }
        mix(sum, depth)
    })
}
