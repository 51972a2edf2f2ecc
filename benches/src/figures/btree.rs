//! The in-core B-tree of the thesis's comparison (section 2.2.3): nodes of any size, the keys of a
//! node in one piece with the pointers between them.
//!
//! ```text
//! words of a node:   count | leaf | child 0 | key 0 | child 1 | key 1 | ... | key 2d-1 | child 2d
//! ```
//!
//! All nodes but the root have d to 2d keys. With words of 4 bytes, as on the thesis's machine,
//! this is the node of its text: one of 64 B has 3 to 6 keys, one of 96 B has 5 to 10. A search
//! goes through the keys of a node from the first to the first that is not smaller.
//!
//! The tree holds keys alone. It is built by insertion, which leaves nodes two thirds full in
//! random order; the thesis criticises that room.

use std::fmt::Debug;

use ccmodel::{ColourError, Colouring, Layout, NO_NODE, NodeExtent, Placement, Shape};

use super::cold;

/// What keys and pointers are made of.
pub trait Word: Copy + Ord + Debug + Default + 'static {
    /// No pointer.
    const NONE: Self;

    /// The word of this value.
    ///
    /// # Panics
    /// When it does not fit.
    fn new(value: usize) -> Self;

    /// Its value.
    fn value(self) -> usize;
}

macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            const NONE: $word = <$word>::MAX;

            #[inline]
            fn new(value: usize) -> $word {
                <$word>::try_from(value).expect("keys and trees are small enough for their words")
            }

            #[inline]
            fn value(self) -> usize {
                usize::try_from(self).unwrap_or(usize::MAX)
            }
        }
    };
}

word!(u32);
word!(u64);

/// Places of the words of a node.
const COUNT: usize = 0;
const IS_LEAF: usize = 1;
const FIRST_CHILD: usize = 2;
const FIRST_KEY: usize = 3;
/// From one key to the next.
const PAIR: usize = 2;

/// A set of keys in a B-tree whose nodes have a size of choice.
///
/// Invariants: `root` and all children are multiples of words at which a node begins, within
/// `words[start..]`; a node's count is at most `2 d`.
#[derive(Debug)]
pub struct InCoreBTree<W> {
    words: Vec<W>,
    /// Where the nodes begin, so that they begin at a page.
    start: usize,
    node_words: usize,
    /// Half of the keys that a node has room for.
    d: usize,
    root: usize,
    nodes: usize,
}

impl<W: Word> InCoreBTree<W> {
    /// The smallest node: one or two keys.
    pub const NODE_BYTES_MIN: usize = (FIRST_KEY + 2 * PAIR) * size_of::<W>();

    /// A tree of `keys`, inserted in their order, in nodes of `node_bytes` bytes, one behind the
    /// other as they came to be.
    ///
    /// # Panics
    /// When `node_bytes` is less than [`NODE_BYTES_MIN`](Self::NODE_BYTES_MIN) or no multiple of a
    /// word, or a key is too large for a word.
    pub fn new(node_bytes: usize, keys: impl ExactSizeIterator<Item = usize>) -> InCoreBTree<W> {
        assert!(
            node_bytes >= Self::NODE_BYTES_MIN && node_bytes.is_multiple_of(size_of::<W>()),
            "no node has {node_bytes} bytes"
        );
        let node_words = node_bytes / size_of::<W>();
        let d = (node_words - FIRST_KEY) / (2 * PAIR);
        // Each node but the root has d keys at least.
        let nodes_max = keys.len() / d + 2;
        let (words, start) = cold::paged_words(nodes_max * node_words);
        let mut tree = InCoreBTree {
            words,
            start,
            node_words,
            d,
            root: 0,
            nodes: 0,
        };
        tree.root = tree.new_node(true);
        for key in keys {
            tree.insert(W::new(key));
        }
        tree
    }

    /// Bytes of a node.
    pub fn node_bytes(&self) -> usize {
        self.node_words * size_of::<W>()
    }

    /// Keys that a node has room for.
    pub fn node_keys_max(&self) -> usize {
        2 * self.d
    }

    /// The key that equals `query`, where it lies.
    #[inline]
    pub fn get(&self, query: W) -> Option<&W> {
        self.get_watched(query, |_| ())
    }

    /// As [`get`](Self::get), telling `read` the address of each word that is read, in bytes from
    /// where the nodes begin.
    #[inline]
    pub fn get_watched(&self, query: W, mut read: impl FnMut(usize)) -> Option<&W> {
        let words = &self.words[self.start..];
        let mut word_at = |at: usize| {
            read(at * size_of::<W>());
            &words[at]
        };
        let mut node = self.root;
        loop {
            let end = node + FIRST_KEY + PAIR * word_at(node + COUNT).value();
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
            let child = *word_at(at - 1);
            if child == W::NONE {
                return None;
            }
            node = child.value();
        }
    }

    /// All words that are in use, of all nodes.
    pub fn used_words(&self) -> &[W] {
        &self.words[self.start..]
    }

    /// Lays the nodes out so that the top of the tree has its part of a cache for itself, the rest
    /// in depth-first order.
    ///
    /// # Errors
    /// Those of [`Colouring::place`].
    pub fn colour(&mut self, colouring: Colouring) -> Result<(), ColourError> {
        let (shape, places) = self.shape();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a node's and a word's bytes are small"
        )]
        let node = NodeExtent {
            bytes: self.node_bytes() as u32,
            align: size_of::<W>() as u32,
        };
        let coloured = colouring.place(&shape, node, Layout::DepthFirst, None)?;
        self.move_to(coloured.placement(), &places);
        Ok(())
    }

    /// The shape of the tree, breadth-first, and where the node of each number is.
    fn shape(&self) -> (Shape, Vec<usize>) {
        let mut places = vec![self.root];
        let mut parents = vec![NO_NODE];
        let mut number = 0;
        while let Some(&node) = places.get(number) {
            if !self.is_leaf(node) {
                for index in 0..=self.count(node) {
                    places.push(self.word(node + FIRST_CHILD + PAIR * index).value());
                    parents.push(u32::try_from(number).unwrap_or(NO_NODE));
                }
            }
            number += 1;
        }
        let shape = Shape::from_parent_vec(parents).expect("parents come before their children");
        (shape, places)
    }

    /// Moves the node at `places[v]` to the offset that `placement` gives `v`.
    fn move_to(&mut self, placement: &Placement, places: &[usize]) {
        let offset_of = |v: usize| {
            let bytes = placement.offsets()[v];
            usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<W>()
        };
        let end = (0..places.len()).map(offset_of).max().unwrap_or(0) + self.node_words;
        let mut new_place = vec![W::NONE; self.nodes];
        for (v, place) in places.iter().enumerate() {
            new_place[place / self.node_words] = W::new(offset_of(v));
        }
        let (mut words, start) = cold::paged_words::<W>(end);
        for (v, &place) in places.iter().enumerate() {
            let at = start + offset_of(v);
            let node = &mut words[at..at + self.node_words];
            node.copy_from_slice(&self.words[self.start + place..][..self.node_words]);
            if node[IS_LEAF] == W::default() {
                let children = node[COUNT].value() + 1;
                let links = node[FIRST_CHILD..].iter_mut().step_by(PAIR);
                for link in links.take(children) {
                    *link = new_place[link.value() / self.node_words];
                }
            }
        }
        self.root = new_place[self.root / self.node_words].value();
        (self.words, self.start) = (words, start);
    }

    fn word(&self, at: usize) -> W {
        self.words[self.start + at]
    }

    fn set(&mut self, at: usize, word: W) {
        self.words[self.start + at] = word;
    }

    fn count(&self, node: usize) -> usize {
        self.word(node + COUNT).value()
    }

    fn is_leaf(&self, node: usize) -> bool {
        self.word(node + IS_LEAF) != W::default()
    }

    fn new_node(&mut self, is_leaf: bool) -> usize {
        let node = self.nodes * self.node_words;
        self.nodes += 1;
        self.set(node + IS_LEAF, W::new(usize::from(is_leaf)));
        self.set(node + FIRST_CHILD, W::NONE);
        node
    }

    /// Inserts a key, unless it is there. For a tree that has not been moved.
    fn insert(&mut self, key: W) {
        let mut path = Vec::new();
        let mut node = self.root;
        loop {
            let count = self.count(node);
            let keys = (0..count).map(|index| self.word(node + FIRST_KEY + PAIR * index));
            let index = keys.take_while(|&other| other < key).count();
            if index < count && self.word(node + FIRST_KEY + PAIR * index) == key {
                return;
            }
            path.push((node, index));
            if self.is_leaf(node) {
                break;
            }
            node = self.word(node + FIRST_CHILD + PAIR * index).value();
        }
        // What goes into each node on the path up: a key, and the node to its right.
        let mut pair = [key, W::NONE];
        while let Some((node, index)) = path.pop() {
            match self.insert_pair(node, index, pair) {
                Some(above) => pair = above,
                None => return,
            }
        }
        let root = self.new_node(false);
        self.set(root + FIRST_CHILD, W::new(self.root));
        let split_no_more = self.insert_pair(root, 0, pair);
        debug_assert!(split_no_more.is_none(), "a new root has room");
        self.root = root;
    }

    /// Puts a key and the child to its right into a node; when that has no room, splits it and
    /// returns what belongs into its parent.
    fn insert_pair(&mut self, node: usize, index: usize, pair: [W; PAIR]) -> Option<[W; PAIR]> {
        let count = self.count(node);
        let first = self.start + node + FIRST_KEY;
        let (at, end) = (first + PAIR * index, first + PAIR * count);
        if count < 2 * self.d {
            self.words.copy_within(at..end, at + PAIR);
            self.words[at..at + PAIR].copy_from_slice(&pair);
            self.set(node + COUNT, W::new(count + 1));
            return None;
        }
        let mut pairs = self.words[first..end].to_vec();
        pairs.splice(PAIR * index..PAIR * index, pair);
        let (left, rest) = pairs.split_at(PAIR * self.d);
        let (middle, right) = rest.split_at(PAIR);
        let sibling = self.new_node(self.is_leaf(node));
        self.set(sibling + FIRST_CHILD, middle[1]);
        for (node, pairs) in [(node, left), (sibling, right)] {
            let first = self.start + node + FIRST_KEY;
            self.words[first..first + pairs.len()].copy_from_slice(pairs);
            self.set(node + COUNT, W::new(self.d));
        }
        Some([middle[0], W::new(sibling)])
    }

    /// The number of keys and the depth of each node, for tests.
    ///
    /// # Panics
    /// When the keys are not in order.
    pub fn outline(&self) -> Vec<(usize, usize)> {
        let mut nodes = Vec::new();
        let mut pending = vec![(self.root, 0, None, None)];
        while let Some((node, depth, low, high)) = pending.pop() {
            let count = self.count(node);
            nodes.push((count, depth));
            let mut low: Option<W> = low;
            for index in 0..=count {
                let key = (index < count).then(|| self.word(node + FIRST_KEY + PAIR * index));
                let above = key.or(high);
                assert!(
                    low.is_none_or(|low| above.is_none_or(|above| low < above)),
                    "keys are in order"
                );
                if !self.is_leaf(node) {
                    let child = self.word(node + FIRST_CHILD + PAIR * index).value();
                    pending.push((child, depth + 1, low, above));
                }
                low = key.or(low);
            }
        }
        nodes
    }
}
