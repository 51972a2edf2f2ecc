//! A k-d tree of points, built once, whose points in small windows are then summed.
//!
//! The boxes lie in the order in which the points came, so every node of a subtree is a miss. After
//! a morph a subtree shares lines and pages.

use super::mix;
use ccmorph::TreeNode;

morphed!(Node::children; |size| build(size), |root| queries(size, root));

#[derive(TreeNode)]
struct Node {
    at: [u32; 2],
    #[child]
    below: Link,
    #[child]
    above: Link,
}

type Link = Option<Box<Node>>;

fn build(size: usize) -> Link {
    let mut random = fastrand::Rng::with_seed(18);
    let node = |_| {
        let at = [random.u32(..), random.u32(..)];
        (
            at,
            Some(Box::new(Node {
                at,
                below: None,
                above: None,
            })),
        )
    };
    let mut nodes: Vec<([u32; 2], Link)> = (0..size).map(node).collect();
    link(&mut nodes, 0)
}

fn link(nodes: &mut [([u32; 2], Link)], axis: usize) -> Link {
    let half = nodes.len() / 2;
    if nodes.is_empty() {
        return None;
    }
    let (below, (_, root), above) = nodes.select_nth_unstable_by_key(half, |node| node.0[axis]);
    let node = root.as_mut()?;
    (node.below, node.above) = (link(below, 1 - axis), link(above, 1 - axis));
    root.take()
}

fn queries(size: usize, root: &Link) -> u64 {
    let mut random = fastrand::Rng::with_seed(19);
    (0..size / 4).fold(0, |sum, _| {
        let low = [(); 2].map(|()| random.u32(..u32::MAX - WINDOW));
        mix(sum, within(root, low, 0))
    })
}

/// Side of a window.
const WINDOW: u32 = 1 << 22;

/// The sum of the points in the window that begins at `low`.
fn within(link: &Link, low: [u32; 2], axis: usize) -> u64 {
    let Some(node) = link else { return 0 };
    let (at, start, end) = (node.at, low[axis], low[axis] + WINDOW);
    let inside = (0..2).all(|axis| low[axis] <= at[axis] && at[axis] < low[axis] + WINDOW);
    let own = if inside { u64::from(at[0] ^ at[1]) } else { 1 };
    let below = if start <= at[axis] {
        within(&node.below, low, 1 - axis)
    } else {
        0
    };
    let above = if at[axis] < end {
        within(&node.above, low, 1 - axis)
    } else {
        0
    };
    own + below + above
}
