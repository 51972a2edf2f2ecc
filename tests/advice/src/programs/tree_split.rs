//! A search tree whose nodes hold more than a search reads.
//!
//! A node takes two cache lines, and the upper levels that stay in the cache are few. With the
//! contents in a table, a node takes half a line.

use super::{Link, arrive, balance, mix, order};
use ccmorph::{ColdTable, split};

pub(super) fn before(size: usize) -> u64 {
    let new = |key| {
        Box::new(Wide {
            key,
            links: [None, None],
            notes: [key; 14],
        })
    };
    let root = balance(&mut arrive(size, new), |node| &mut node.links);
    search(
        size,
        &root,
        |node| (node.key, &node.links),
        |node| node.notes[3],
    )
}

pub(super) fn after(size: usize) -> u64 {
    let mut cold = ColdTable::new();
    let new = |key| {
        let fields = SlimFields {
            key,
            links: [None, None],
            notes: [key; 14],
        };
        Box::new(fields.split_into(&mut cold))
    };
    let root = balance(&mut arrive(size, new), |node| &mut node.links);
    search(
        size,
        &root,
        |node| (node.key, &node.links),
        |node| node.notes(&cold)[3],
    )
}

struct Wide {
    key: usize,
    links: [Link<Wide>; 2],
    notes: [usize; 14],
}

#[split(cold(notes), cold = "table")]
struct Slim {
    key: usize,
    links: [Link<Slim>; 2],
    notes: [usize; 14],
}

fn search<N>(
    size: usize,
    root: &Link<N>,
    hot: impl Fn(&N) -> (usize, &[Link<N>; 2]),
    cold: impl Fn(&N) -> usize,
) -> u64 {
    let keys = order(size);
    keys.iter().cycle().take(3 * size).fold(0, |sum, &wanted| {
        let (mut link, mut depth) = (root, 0);
        while let Some(node) = link {
            let (key, links) = hot(node);
            if key == wanted {
                // One in sixteen reads the contents.
                depth += if key % 16 == 0 { cold(node) } else { 0 };
                break;
            }
            link = &links[usize::from(wanted > key)];
            depth += 1;
        }
        mix(sum, depth as u64)
    })
}
