//! The in-core B-tree of the thesis's comparison (section 2.2.3).
//!
//! ```text
//! words of a node:   count | leaf | child 0 | key 0 | child 1 | key 1 | ... | key 2d-1 | child 2d
//! ```
//!
//! All nodes but the root have d to 2d keys, which a search compares one by one. With words of 4
//! bytes, as on the thesis's machine, a node of 64 B has 3 to 6 keys and one of 96 B has 5 to 10.

use std::fmt::Debug;

use ccmalloc::advise_huge_pages;
use ccmodel::{ColourError, Colouring, Layout, NO_NODE, NodeExtent, Shape};

/// The type of keys and links. Link 0 leads nowhere; a node at word w has link w + 1.
pub trait Word: Copy + Ord + Debug + Default + 'static
where
    Self: TryFrom<usize, Error: Debug> + TryInto<usize, Error: Debug>,
{
}

impl Word for u32 {}
impl Word for u64 {}

fn word<W: Word>(number: usize) -> W {
    W::try_from(number).expect("keys and trees are small enough for their words")
}

#[inline]
fn number<W: Word>(word: W) -> usize {
    word.try_into().expect("a word fits usize")
}

const COUNT: usize = 0;
const IS_LEAF: usize = 1;
const FIRST_CHILD: usize = 2;
const FIRST_KEY: usize = 3;
const PAIR: usize = 2;

const HUGE_PAGE_BYTES: usize = 2 << 20;

fn half_of_keys(node_words: usize) -> usize {
    (node_words - FIRST_KEY) / (2 * PAIR)
}

/// A set of keys in a B-tree with nodes of a given size.
#[derive(Debug)]
pub struct InCoreBTree<W> {
    words: Vec<W>,
    /// The first word of the nodes; huge pages can lie below them.
    start: usize,
    pub(super) node_bytes: usize,
    root: usize,
}

#[derive(Default)]
struct Node {
    keys: Vec<usize>,
    children: Vec<usize>,
}

impl<W: Word> InCoreBTree<W> {
    /// The smallest node: one or two keys.
    pub const NODE_BYTES_MIN: usize = (FIRST_KEY + 2 * PAIR) * size_of::<W>();

    /// Inserts `keys` in their order. Nodes lie in the order in which they were made; with a
    /// colouring, depth-first, and the top of the tree has its part of a cache to itself.
    pub fn new(
        node_bytes: usize,
        keys: impl Iterator<Item = usize>,
        colouring: Option<Colouring>,
    ) -> Result<InCoreBTree<W>, ColourError> {
        assert!(
            node_bytes >= Self::NODE_BYTES_MIN && node_bytes.is_multiple_of(size_of::<W>()),
            "no node has {node_bytes} bytes"
        );
        let node_words = node_bytes / size_of::<W>();
        let (nodes, root) = grow(half_of_keys(node_words), keys);
        let places = match colouring {
            None => (0..nodes.len()).map(|node| node * node_words).collect(),
            Some(colouring) => coloured_places::<W>(&nodes, root, node_bytes, colouring)?,
        };

        let len = places.iter().max().map_or(0, |last| last + node_words);
        let mut words = vec![W::default(); len + HUGE_PAGE_BYTES / size_of::<W>()];
        let address = words.as_ptr().addr();
        let start = (address.next_multiple_of(HUGE_PAGE_BYTES) - address) / size_of::<W>();
        words.truncate(start + len);
        advise_huge_pages(words[start..].as_ptr().cast(), len * size_of::<W>());
        for (node, place) in nodes.iter().zip(&places) {
            let words = &mut words[start + place..][..node_words];
            words[COUNT] = word(node.keys.len());
            words[IS_LEAF] = word(usize::from(node.children.is_empty()));
            for (index, &child) in node.children.iter().enumerate() {
                words[FIRST_CHILD + PAIR * index] = word(places[child] + 1);
            }
            for (index, &key) in node.keys.iter().enumerate() {
                words[FIRST_KEY + PAIR * index] = word(key);
            }
        }
        let root = places[root];
        Ok(InCoreBTree {
            words,
            start,
            node_bytes,
            root,
        })
    }

    pub fn node_keys_max(&self) -> usize {
        2 * half_of_keys(self.node_bytes / size_of::<W>())
    }

    /// The words of all nodes, and of gaps that colours leave between them.
    pub fn words(&self) -> &[W] {
        &self.words[self.start..]
    }

    /// The key that equals `query`, where it lies.
    #[inline]
    pub fn get(&self, query: W) -> Option<&W> {
        self.get_watched(query, |_| ())
    }

    /// As [`get`](Self::get). Calls `read` with the address of each word that is read, in bytes
    /// from the first of [`words`](Self::words).
    #[inline]
    pub fn get_watched(&self, query: W, mut read: impl FnMut(usize)) -> Option<&W> {
        let words = self.words();
        let mut word_at = |at: usize| {
            read(at * size_of::<W>());
            &words[at]
        };
        let mut node = self.root;
        loop {
            let end = node + FIRST_KEY + PAIR * number(*word_at(node + COUNT));
            let mut at = node + FIRST_KEY;
            while at < end {
                let key = word_at(at);
                if *key >= query {
                    if *key == query {
                        return Some(key);
                    }
                    break;
                }
                at += PAIR;
            }
            node = number(*word_at(at - 1)).checked_sub(1)?;
        }
    }
}

/// The nodes of a tree of `keys` in the order in which they were made, and the index of the root.
fn grow(d: usize, keys: impl Iterator<Item = usize>) -> (Vec<Node>, usize) {
    let mut nodes = vec![Node::default()];
    let mut root = 0;
    for key in keys {
        if let Some((middle, right)) = insert(&mut nodes, root, key, d) {
            let (keys, children) = (vec![middle], vec![root, right]);
            nodes.push(Node { keys, children });
            root = nodes.len() - 1;
        }
    }
    (nodes, root)
}

/// Inserts `key` below `node`. When `node` splits, returns the key and the child for its parent.
fn insert(nodes: &mut Vec<Node>, node: usize, key: usize, d: usize) -> Option<(usize, usize)> {
    let index = nodes[node].keys.binary_search(&key).err()?;
    match nodes[node].children.get(index) {
        None => nodes[node].keys.insert(index, key),
        Some(&child) => {
            let (middle, right) = insert(nodes, child, key, d)?;
            nodes[node].keys.insert(index, middle);
            nodes[node].children.insert(index + 1, right);
        }
    }
    let left = &mut nodes[node];
    if left.keys.len() <= 2 * d {
        return None;
    }
    let keys = left.keys.split_off(d + 1);
    let children = left.children.split_off(left.children.len().min(d + 1));
    let middle = left.keys.pop()?;
    nodes.push(Node { keys, children });
    Some((middle, nodes.len() - 1))
}

fn coloured_places<W>(
    nodes: &[Node],
    root: usize,
    node_bytes: usize,
    colouring: Colouring,
) -> Result<Vec<usize>, ColourError> {
    let (mut order, mut parents) = (vec![root], vec![NO_NODE]);
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        order.extend(&nodes[node].children);
        parents.resize(order.len(), u32::try_from(next).unwrap_or(NO_NODE));
        next += 1;
    }
    let shape = Shape::from_parent_vec(parents).expect("parents come before their children");
    let [bytes, align] =
        [node_bytes, size_of::<W>()].map(|bytes| u32::try_from(bytes).expect("a node is small"));
    let extent = NodeExtent { bytes, align };
    let coloured = colouring.place(&shape, extent, Layout::DepthFirst, None)?;
    let mut places = vec![0; nodes.len()];
    for (&node, &offset) in order.iter().zip(coloured.placement.offsets()) {
        places[node] = usize::try_from(offset).expect("it is in memory") / size_of::<W>();
    }
    Ok(places)
}
