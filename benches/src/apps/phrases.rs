//! Phrase search by a positional index: a list of positions for each word, and for each phrase a
//! walk along two lists.
//!
//! ```text
//! text       let  self  let  x  self  x  ...       postings are allocated in this order
//!             1    2    3   4   5    6
//! index      let  -> 1 -> 3                        each list's postings lie far apart,
//!            self -> 2 -> 5                        and the walk goes along the lists
//!            x    -> 4 -> 6
//! ```
//!
//! `intrusive-collections` keeps the postings in doubly linked lists of boxes, which the program
//! allocates. The change is one line: a posting is allocated near the last one of its list. The
//! queries are pairs of neighbouring words at random positions, so frequent phrases come often.

use std::collections::HashMap;

use crate::rng::Rng;
use ccmalloc::near;
use intrusive_collections::{LinkedList, LinkedListLink, intrusive_adapter};

use super::corpus::{number, sources, words};
use crate::programs::{Outcome, Scale};

/// A place in the text.
struct Posting {
    link: LinkedListLink,
    place: u32,
}

intrusive_adapter!(Places = Box<Posting>: Posting { link => LinkedListLink });

type Postings = LinkedList<Places>;

/// As the crate's users write it.
pub(super) fn plain(scale: Scale) -> Outcome {
    run(scale, |_, posting| Box::new(posting))
}

/// The change: a posting lies beside the one before it, and the first of a list has room beside it.
pub(super) fn hinted(scale: Scale) -> Outcome {
    run(scale, |postings, posting| match postings.back().get() {
        Some(last) => near(last, || Box::new(posting)),
        None => near(&(), || Box::new(posting)),
    })
}

/// Phrases that are searched for.
const PHRASES: usize = 1200;

fn run(scale: Scale, allocate: impl Fn(&Postings, Posting) -> Box<Posting>) -> Outcome {
    let sources = sources();
    let (text, kinds) = numbered(&sources);
    drop(sources);
    let mut rng = Rng::new(41);
    let phrases: Vec<[u32; 2]> = (0..scale.of(PHRASES))
        .map(|_| {
            let place = rng.below(text.len() - 1);
            [text[place], text[place + 1]]
        })
        .collect();
    Outcome::of(|sum| {
        let mut index: Vec<Postings> = Vec::new();
        index.resize_with(kinds, Postings::default);
        for (place, &word) in (0..).zip(&text) {
            let postings = &mut index[word as usize];
            let posting = Posting {
                link: LinkedListLink::new(),
                place,
            };
            let posting = allocate(postings, posting);
            postings.push_back(posting);
        }
        for [first, second] in phrases {
            let count = occurrences(&index[first as usize], &index[second as usize]);
            assert!(count > 0, "the phrase was taken from the text");
            sum.add(count);
        }
        index
    })
}

/// Each word of the text as a number, and how many different ones there are.
fn numbered(sources: &[String]) -> (Vec<u32>, usize) {
    let mut numbers = HashMap::new();
    let mut text = Vec::new();
    for word in sources.iter().flat_map(|source| words(source)) {
        text.push(number(&mut numbers, word));
    }
    (text, numbers.len())
}

/// How often a place of `second` follows one of `first`.
fn occurrences(first: &Postings, second: &Postings) -> u64 {
    let (mut left, mut right) = (first.front(), second.front());
    let mut count = 0;
    while let (Some(a), Some(b)) = (left.get(), right.get()) {
        match (a.place + 1).cmp(&b.place) {
            std::cmp::Ordering::Less => left.move_next(),
            std::cmp::Ordering::Greater => right.move_next(),
            std::cmp::Ordering::Equal => {
                count += 1;
                left.move_next();
                right.move_next();
            }
        }
    }
    count
}
