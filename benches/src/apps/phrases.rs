//! Phrase search by a positional index: a list of positions for each word, and for each phrase a
//! walk along two lists, whose postings lie far apart in the order of the text.
//!
//! `intrusive-collections` keeps the postings in doubly linked lists of boxes. The change is one
//! line: a posting is allocated near the last one of its list. The queries are pairs of adjacent
//! words at random positions, so frequent phrases come often.

use std::collections::HashMap;

use ccmalloc::near;
use intrusive_collections::{LinkedList, LinkedListLink, intrusive_adapter};

use super::corpus::{number, sources, words};
use crate::programs::{Outcome, Scale, collect};
use crate::rng::Rng;

struct Posting {
    link: LinkedListLink,
    place: u32,
}

intrusive_adapter!(Places = Box<Posting>: Posting { link => LinkedListLink });

type Postings = LinkedList<Places>;

pub(super) fn plain(scale: Scale) -> Outcome {
    run(scale, |_, posting| Box::new(posting))
}

/// The change: near the posting before it; the first of a list has room beside it.
pub(super) fn hinted(scale: Scale) -> Outcome {
    run(scale, |postings, posting| match postings.back().get() {
        Some(last) => near(last, || Box::new(posting)),
        None => near(&(), || Box::new(posting)),
    })
}

const PHRASES: usize = 1200;

fn run(scale: Scale, allocate: impl Fn(&Postings, Posting) -> Box<Posting>) -> Outcome {
    let sources = sources();
    let mut numbers = HashMap::new();
    let all = sources.iter().flat_map(|source| words(source));
    let text: Vec<u32> = all.map(|word| number(&mut numbers, word)).collect();
    let kinds = numbers.len();
    drop(numbers);
    drop(sources);
    let mut rng = Rng::new(41);
    let phrases = collect(scale.of(PHRASES), |_| {
        let place = rng.below(text.len() - 1);
        [text[place], text[place + 1]]
    });
    Outcome::of(|sum| {
        let mut index: Vec<Postings> = Vec::new();
        index.resize_with(kinds, Postings::default);
        for (place, &word) in (0..).zip(&text) {
            let postings = &mut index[word as usize];
            let link = LinkedListLink::new();
            let posting = allocate(postings, Posting { link, place });
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
