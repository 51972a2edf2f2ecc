//! The search tree that most tests morph, and the checks that hold for any structure.

use ccmodel::{NO_NODE, NodeExtent, Shape};
use ccmorph::{Layout, Morph, Report, TreeNode};
use std::collections::HashMap;
use std::rc::Rc;

pub(crate) const LAYOUTS: [Layout; 11] = [
    Layout::Hierarchical,
    Layout::Weighted,
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::VanEmdeBoas,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::SubtreeCluster { block_bytes: 256 },
    Layout::SubtreeCluster { block_bytes: 4096 },
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
    Layout::Random { seed: 11 },
];

/// Every layout, and `None` for the model's choice.
pub(crate) fn choices() -> Vec<Option<Layout>> {
    LAYOUTS.into_iter().map(Some).chain([None]).collect()
}

/// A node of a search tree. The token counts nodes that are alive, the payload gives them a size
/// and an alignment.
#[derive(Debug, TreeNode)]
pub(crate) struct Node<P> {
    pub(crate) key: u32,
    pub(crate) payload: P,
    #[expect(dead_code, reason = "counted, not read")]
    pub(crate) token: Rc<()>,
    #[child]
    pub(crate) left: Link<P>,
    #[child]
    pub(crate) right: Link<P>,
}

pub(crate) type Link<P> = Option<Box<Node<P>>>;

/// The place where `key` is or would be.
pub(crate) fn find<P>(mut at: &mut Link<P>, key: u32) -> &mut Link<P> {
    while at.as_ref().is_some_and(|node| node.key != key) {
        let node = at.as_mut().unwrap();
        at = if key < node.key {
            &mut node.left
        } else {
            &mut node.right
        };
    }
    at
}

/// This many keys in a scattered order.
pub(crate) fn keys_up_to(count: u32) -> Vec<u32> {
    (0..count).map(|i| i.wrapping_mul(0x9e37_79b9)).collect()
}

/// Inserts a key unless it is there.
pub(crate) fn insert<P>(
    root: &mut Link<P>,
    key: u32,
    token: &Rc<()>,
    payload: impl FnOnce(u32) -> P,
) {
    let place = find(root, key);
    if place.is_none() {
        let node = Node {
            key,
            payload: payload(key),
            token: Rc::clone(token),
            left: None,
            right: None,
        };
        *place = Some(Box::new(node));
    }
}

pub(crate) fn build<P>(keys: &[u32], token: &Rc<()>, payload: impl Fn(u32) -> P) -> Link<P> {
    crate::begin();
    let mut root = None;
    for &key in keys {
        insert(&mut root, key, token, &payload);
    }
    root
}

/// What a morph must keep: the tree in breadth-first order, each node with its parent's number,
/// whether it is a right child, its key and its payload; and the addresses, which it must change.
#[derive(Debug)]
pub(crate) struct Picture<P> {
    pub(crate) nodes: Vec<(u32, bool, u32, P)>,
    pub(crate) addresses: Vec<usize>,
}

impl<P: Clone> Picture<P> {
    pub(crate) fn of(root: &Link<P>) -> Picture<P> {
        let mut queue: Vec<(u32, bool, &Node<P>)> =
            root.iter().map(|node| (NO_NODE, false, &**node)).collect();
        let mut at = 0;
        while let Some(&(_, _, node)) = queue.get(at) {
            let number = u32::try_from(at).unwrap();
            queue.extend(node.left.as_deref().map(|left| (number, false, left)));
            queue.extend(node.right.as_deref().map(|right| (number, true, right)));
            at += 1;
        }
        let addresses = queue
            .iter()
            .map(|&(_, _, node)| std::ptr::from_ref(node).addr());
        Picture {
            addresses: addresses.collect(),
            nodes: (queue.iter())
                .map(|&(up, right, node)| (up, right, node.key, node.payload.clone()))
                .collect(),
        }
    }
}

/// Morphs, and checks all that a morph promises.
pub(crate) fn morph_checked<P>(root: &mut Link<P>, morph: Morph<'_>) -> Report
where
    P: Clone + PartialEq + std::fmt::Debug + Unpin,
{
    let before = Picture::of(root);
    let report = morph
        .run(root, Node::children)
        .expect("the global allocator is CcMalloc");
    let after = Picture::of(root);
    assert_eq!(before.nodes, after.nodes);
    let nodes = after.nodes.len();
    let edges = nodes.saturating_sub(1);
    assert_eq!((report.nodes, report.edges), (nodes, edges));
    for (&old, &new) in before.addresses.iter().zip(&after.addresses) {
        assert_ne!(old, new, "a node did not move");
        assert!(new.is_multiple_of(align_of::<Node<P>>()));
        assert!(ccmalloc::contains(std::ptr::without_provenance(new)));
    }
    if nodes == 0 {
        return report;
    }

    // The addresses are those of the layout, within each segment.
    let parents: Vec<u32> = after.nodes.iter().map(|node| node.0).collect();
    let shape = Shape::from_parents(&parents).unwrap();
    let bytes = u32::try_from(size_of::<Node<P>>().next_multiple_of(8)).unwrap();
    let align = u32::try_from(align_of::<Node<P>>().max(8)).unwrap();
    let node = NodeExtent::new(bytes, align).unwrap();
    let placement = report.layout.place(&shape, node);
    assert_eq!(report.span_bytes, placement.span_bytes(node));
    let mut segment_at: HashMap<u64, u64> = HashMap::new();
    for (&offset, &address) in placement.offsets().iter().zip(&after.addresses) {
        let begin = (address as u64).wrapping_sub(offset % Layout::SEGMENT_BYTES);
        let segment = segment_at
            .entry(offset / Layout::SEGMENT_BYTES)
            .or_insert(begin);
        assert_eq!(begin, *segment, "node at offset {offset} is elsewhere");
    }
    for (counts, addresses) in [
        (report.near_before, &before.addresses),
        (report.near_after, &after.addresses),
    ] {
        let is_near = |up: u32, at: usize, bytes| {
            up != NO_NODE && addresses[up as usize] / bytes == at / bytes
        };
        let near = |bytes: usize| {
            let edges = parents.iter().zip(addresses);
            edges.filter(|&(&up, &at)| is_near(up, at, bytes)).count()
        };
        let found = [counts.same_64, counts.same_256, counts.same_page];
        assert_eq!(found, [64, 256, 4096].map(near));
    }
    report
}

/// How many nodes carry the token.
pub(crate) fn alive(token: &Rc<()>) -> usize {
    Rc::strong_count(token) - 1
}
