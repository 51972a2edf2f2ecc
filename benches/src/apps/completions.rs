//! Completions: what word comes next, by the sequences of four words that a text holds.
//!
//! Half of the sources are learnt: each four words in a row are a key of 64 bits in an ordered map,
//! with how often they were met. Then the most frequent key that begins with three words of the
//! other half tells the fourth.
//!
//! The map is the red-black tree of `intrusive-collections`, whose nodes the program allocates in
//! the order of the text. The crate's own links are private, but a program may bring its own
//! (`RBTreeOps`), which can be shown to `Morph::run_raw`. They take 8 bytes more, since the crate
//! hides the colour in the parent's address.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ptr::{NonNull, null_mut};

use ccmorph::Morph;
use intrusive_collections::rbtree::{Color, Entry, RBTreeOps};
use intrusive_collections::{
    Bound, DefaultLinkOps, KeyAdapter, LinkOps, RBTree, RBTreeLink, intrusive_adapter,
};

use super::corpus::{number, sources, words};
use crate::programs::{Checksum, Outcome, Scale, collect};
use crate::rng::Rng;

pub(super) fn plain(scale: Scale) -> Outcome {
    run::<RBTreeLink>(scale, |_| ())
}

pub(super) fn morphed(scale: Scale) -> Outcome {
    run::<OpenLink>(scale, morph)
}

/// New boxes in the order of the keys.
pub(super) fn in_key_order(scale: Scale) -> Outcome {
    run::<RBTreeLink>(scale, move_in_key_order)
}

/// Four words, and how often they have been met. A node's address is its link's.
#[repr(C)]
struct Gram<L> {
    link: L,
    key: u64,
    count: Cell<u32>,
}

trait TreeLink: Default + DefaultLinkOps<Ops: Copy + RBTreeOps<LinkPtr = NonNull<Self>>> {}

impl<L: Default + DefaultLinkOps<Ops: Copy + RBTreeOps<LinkPtr = NonNull<Self>>>> TreeLink for L {}

impl<L: TreeLink> Gram<L> {
    fn new(key: u64, count: u32) -> Box<Self> {
        let (link, count) = (L::default(), Cell::new(count));
        Box::new(Gram { link, key, count })
    }
}

intrusive_adapter!(Grams<L> = Box<Gram<L>>: Gram<L> { link => L } where L: TreeLink);

impl<'g, L: TreeLink> KeyAdapter<'g> for Grams<L> {
    type Key = u64;

    fn get_key(&self, gram: &'g Gram<L>) -> u64 {
        gram.key
    }
}

/// The change, first part: links that the program can show.
#[derive(Default)]
struct OpenLink {
    left: Cell<Option<NonNull<OpenLink>>>,
    right: Cell<Option<NonNull<OpenLink>>>,
    parent: Cell<Option<NonNull<OpenLink>>>,
    /// `None` outside of trees.
    color: Cell<Option<Color>>,
}

#[derive(Clone, Copy, Default)]
struct OpenOps;

impl DefaultLinkOps for OpenLink {
    type Ops = OpenOps;
    const NEW: OpenOps = OpenOps;
}

// SAFETY: a link is acquired once until it is released, which its colour tells.
unsafe impl LinkOps for OpenOps {
    type LinkPtr = NonNull<OpenLink>;

    unsafe fn acquire_link(&mut self, link: NonNull<OpenLink>) -> bool {
        // SAFETY: a live node's link, by the trait's contract.
        let color = unsafe { &link.as_ref().color };
        color.replace(color.get().or(Some(Color::Black))).is_none()
    }

    unsafe fn release_link(&mut self, link: NonNull<OpenLink>) {
        // SAFETY: a live node's link.
        unsafe { link.as_ref().color.set(None) };
    }
}

/// What reads and writes a pointer of a link.
macro_rules! pointer {
    ($field:ident, $set:ident) => {
        unsafe fn $field(&self, link: NonNull<OpenLink>) -> Option<NonNull<OpenLink>> {
            // SAFETY: a live node's link.
            unsafe { link.as_ref().$field.get() }
        }

        unsafe fn $set(&mut self, link: NonNull<OpenLink>, to: Option<NonNull<OpenLink>>) {
            // SAFETY: a live node's link.
            unsafe { link.as_ref().$field.set(to) };
        }
    };
}

// SAFETY: what was set is what is got.
unsafe impl RBTreeOps for OpenOps {
    pointer!(left, set_left);
    pointer!(right, set_right);
    pointer!(parent, set_parent);

    unsafe fn color(&self, link: NonNull<OpenLink>) -> Color {
        // SAFETY: a live node's link.
        unsafe { link.as_ref().color.get() }.unwrap_or(Color::Black)
    }

    unsafe fn set_color(&mut self, link: NonNull<OpenLink>, color: Color) {
        // SAFETY: a live node's link.
        unsafe { link.as_ref().color.set(Some(color)) };
    }
}

/// The change, second part. The tree keeps the address of its root to itself, so the root stays.
fn morph(tree: &mut RBTree<Grams<OpenLink>>) {
    let Some(first) = tree.front().get() else {
        return;
    };
    let mut root = &first.link;
    while let Some(parent) = root.parent.get() {
        // SAFETY: a live node of the tree, whose links are read and written through cells. The
        // morph neither moves nor touches the root, the only one that is used after it.
        root = unsafe { parent.as_ref() };
    }
    let stays = Some(NonNull::from(root));
    let node = |link: &Cell<Option<NonNull<OpenLink>>>| {
        let link = link.get().map_or(null_mut(), NonNull::as_ptr);
        link.cast::<Gram<OpenLink>>()
    };
    let mut below = [node(&root.left), node(&root.right)];
    // SAFETY: the nodes below the root come from boxes, and a link's address is its node's. All
    // pointers to them are shown: the root's two as roots, which the root itself gets below and
    // which nothing reads before, and those of each other's links; the tree has no more while no
    // cursor lives. In memory, a cell of an optional `NonNull` is a raw pointer.
    let report = unsafe {
        Morph::new().run_raw(&mut below, |node, visit| {
            let link = &raw mut (*node).link;
            visit.link((&raw mut (*link).left).cast());
            visit.link((&raw mut (*link).right).cast());
            if (*link).parent.get() != stays {
                visit.pointer((&raw mut (*link).parent).cast());
            }
        })
    };
    report.expect("there is memory, and no node is reached twice");
    let [left, right] = below.map(|node| NonNull::new(node.cast::<OpenLink>()));
    root.left.set(left);
    root.right.set(right);
}

/// Bits of a word's number, which words that are not among the most frequent ones share.
const WORD_BITS: u32 = 16;

/// Words of a key.
const WORDS: usize = 4;
const QUESTIONS: usize = 6_000_000;

fn run<L: TreeLink>(scale: Scale, lay_out: impl Fn(&mut RBTree<Grams<L>>)) -> Outcome {
    let [learnt, questions] = input(scale);
    Outcome::of(|sum| {
        let mut tree = RBTree::new(Grams::<L>::new());
        for key in learnt {
            match tree.entry(&key) {
                Entry::Occupied(place) => {
                    let gram = place.get().expect("it is occupied");
                    gram.count.set(gram.count.get() + 1);
                }
                Entry::Vacant(place) => {
                    place.insert(Gram::new(key, 1));
                }
            }
        }
        lay_out(&mut tree);
        answer_all(&questions, sum, |context| most_frequent(&tree, context));
        tree
    })
}

/// Moves all nodes into new boxes, in the order of the keys, before it frees the old ones.
fn move_in_key_order(tree: &mut RBTree<Grams<RBTreeLink>>) {
    let old: Vec<Box<Gram<RBTreeLink>>> = tree.take().into_iter().collect();
    for gram in &old {
        let gram = Gram::new(gram.key, gram.count.get());
        tree.cursor_mut().insert_before(gram);
    }
}

pub(super) fn btree_map(scale: Scale) -> Outcome {
    let [learnt, questions] = input(scale);
    Outcome::of(|sum| {
        let mut map: BTreeMap<u64, u32> = BTreeMap::new();
        for key in learnt {
            *map.entry(key).or_default() += 1;
        }
        answer_all(&questions, sum, |context| {
            (map.range(context << WORD_BITS..))
                .take_while(|(key, _)| *key >> WORD_BITS == context)
                .max_by_key(|&(key, count)| (count, Reverse(key)))
                .map(|(&key, _)| key)
        });
        map
    })
}

fn answer_all(questions: &[u64], sum: &mut Checksum, complete: impl Fn(u64) -> Option<u64>) {
    let mut right = 0;
    for &question in questions {
        let answer = complete(question >> WORD_BITS);
        right += usize::from(answer == Some(question));
        sum.add(answer.unwrap_or(0));
    }
    // Much of a program's text was written before, in the same package.
    let all = questions.len();
    assert!(right > all / 4, "{right} of {all} words were told");
}

/// The most frequent of the keys that begin with `context`, of several the least.
fn most_frequent<L: TreeLink>(tree: &RBTree<Grams<L>>, context: u64) -> Option<u64> {
    let mut most = (0, None);
    let mut grams = tree.lower_bound(Bound::Included(&(context << WORD_BITS)));
    while let Some(gram) = grams.get()
        && gram.key >> WORD_BITS == context
    {
        if gram.count.get() > most.0 {
            most = (gram.count.get(), Some(gram.key));
        }
        grams.move_next();
    }
    most.1
}

/// What is learnt, the keys of every other file, and the questions with their answers, of the rest.
fn input(scale: Scale) -> [Vec<u64>; 2] {
    let sources = sources();
    let mut numbers = HashMap::new();
    let texts = sources.iter().map(|source| {
        let numbers = words(source).map(|word| number(&mut numbers, word));
        numbers.collect()
    });
    let texts: Vec<Vec<u32>> = texts.collect();
    let mut uses = vec![0_u32; numbers.len()];
    for &number in texts.iter().flatten() {
        uses[number as usize] += 1;
    }
    let mut by_use: Vec<usize> = (0..uses.len()).collect();
    by_use.sort_by_key(|&number| Reverse(uses[number]));
    let mut known = vec![0_u64; uses.len()];
    for (rank, number) in (1..1 << WORD_BITS).zip(by_use) {
        known[number] = rank;
    }
    let mut halves = [Vec::new(), Vec::new()];
    for (text, half) in texts.iter().zip([0, 1].into_iter().cycle()) {
        let append = |key, &word: &u32| key << WORD_BITS | known[word as usize];
        let keys = text.windows(WORDS);
        halves[half].extend(keys.map(|words| words.iter().fold(0, append)));
    }
    let [learnt, held_out] = halves;
    let mut rng = Rng::new(43);
    let questions = collect(scale.of(QUESTIONS), |_| held_out[rng.below(held_out.len())]);
    [learnt, questions]
}
