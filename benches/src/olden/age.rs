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
//!
//! - Free lists (glibc, jemalloc, snmalloc): as many holes as the program has nodes, served in the
//!   order of the frees, so nodes lie in random order.
//! - A free list for each page (mimalloc): pages half full, served page by page.
//! - `ccmalloc` without hints: pages half full, holes by address, the emptiest page first. With
//!   hints, or a morph: blocks of their own, which take more memory.
//! - A bump allocator: freed memory is lost, so the heap is always fresh.
//!
//! Bias: a program that had hinted before would leave holes in `ccmalloc`'s blocks of hinted nodes.
//! Arrays of em3d have their mean length here, and mst's arrays of buckets are missing.

use std::alloc::Layout;

use crate::rng::Rng;

/// Sizes of the other objects, in words of 8 bytes.
const OTHER_WORDS: [usize; 5] = [2, 4, 6, 8, 12];

/// Objects of the program's layouts for each other object.
const EACH_OTHER: usize = 4;

const SEED: u64 = 0xA6E;

/// An object of the given number of words, written to as a program would.
fn object(words: usize) -> Box<[u64]> {
    let mut object = Vec::with_capacity(words);
    object.extend(std::iter::repeat_n(words as u64, words));
    object.into_boxed_slice()
}

/// How many objects of a size are still to be made.
struct Kind {
    words: usize,
    left: usize,
}

/// Ages the heap of this process for a program that will allocate `nodes`. Objects that stay are
/// never freed.
///
/// # Panics
/// When a node has an alignment of more than 8 bytes: the objects here are words.
pub fn age(nodes: &[(Layout, usize)]) {
    let needed: usize = nodes.iter().map(|(_, count)| count).sum();
    let of_nodes = nodes.iter().map(|&(layout, count)| {
        assert!(
            layout.align() <= align_of::<u64>(),
            "objects here are words"
        );
        Kind {
            words: layout.size().div_ceil(size_of::<u64>()),
            left: 2 * count,
        }
    });
    let others = OTHER_WORDS.map(|words| Kind {
        words,
        left: 2 * needed / EACH_OTHER / OTHER_WORDS.len(),
    });
    let mut kinds: Vec<Kind> = of_nodes.chain(others).collect();
    let all: usize = kinds.iter().map(|kind| kind.left).sum();

    let mut rng = Rng::new(SEED);
    let mut going = Vec::with_capacity(all);
    for left in (1..=all).rev() {
        let mut pick = rng.below(left);
        let kind = kinds.iter_mut().find(|kind| {
            let found = pick < kind.left;
            pick = if found { pick } else { pick - kind.left };
            found
        });
        let kind = kind.expect("the kinds have `left` objects left together");
        kind.left -= 1;
        let object = object(kind.words);
        if rng.below(2) == 0 {
            going.push(object);
        } else {
            // Stays to the end of the process.
            Box::leak(object);
        }
    }
    rng.shuffle(&mut going);
    going.into_iter().for_each(drop);
}
