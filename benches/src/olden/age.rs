//! An aged heap, as in a program that has run for a while.
//!
//! Before the program builds anything, and outside of its time:
//!
//! ```text
//! allocate   objects of the program's layouts, twice as many as it will need, in random order,
//!            and among them, one for four of these, objects of other small sizes
//! free       a random half of all, in random order
//! keep       the rest until the process ends
//! ```
//!
//! The calls are the same under every allocator, without hints. What they leave behind differs:
//! with one free list, nodes lie in random order; with a list for each page, pages fill one by one;
//! a bump allocator loses what is freed, so its heap is always fresh.

use std::alloc::Layout;

use crate::rng::Rng;

/// Sizes of the other objects, in words of 8 bytes.
const OTHER_WORDS: [usize; 5] = [2, 4, 6, 8, 12];

/// Objects of the program's layouts for each other object.
const EACH_OTHER: usize = 4;

const SEED: u64 = 0xA6E;

/// Ages the heap of this process for a program that will allocate `nodes`. Objects that stay are
/// never freed.
///
/// # Panics
/// When a node has an alignment of more than 8 bytes: the objects here are words.
pub fn age(nodes: &[(Layout, usize)]) {
    let needed: usize = nodes.iter().map(|(_, count)| count).sum();
    let of_nodes = nodes.iter().map(|&(layout, count)| {
        assert!(layout.align() <= align_of::<u64>(), "objects are words");
        (layout.size().div_ceil(size_of::<u64>()), 2 * count)
    });
    let others = 2 * needed / EACH_OTHER / OTHER_WORDS.len();
    // For each size in words, how many objects are still to be made.
    let mut kinds: Vec<(usize, usize)> = of_nodes
        .chain(OTHER_WORDS.map(|words| (words, others)))
        .collect();
    let all: usize = kinds.iter().map(|(_, left)| left).sum();

    let mut rng = Rng::new(SEED);
    let mut going = Vec::with_capacity(all);
    for left in (1..=all).rev() {
        let mut pick = rng.below(left);
        let mut of_kinds = kinds.iter_mut();
        let (words, left) = loop {
            let (words, left) = of_kinds
                .next()
                .expect("the kinds have `left` left together");
            if pick < *left {
                break (*words, left);
            }
            pick -= *left;
        };
        *left -= 1;
        // Written to, as a program would.
        let mut object = Vec::with_capacity(words);
        object.extend(std::iter::repeat_n(words as u64, words));
        let object = object.into_boxed_slice();
        if rng.below(2) == 0 {
            going.push(object);
        } else {
            Box::leak(object);
        }
    }
    rng.shuffle(&mut going);
}
