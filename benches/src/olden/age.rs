//! An aged heap, as in a program that has run for a while.
//!
//! Before the program builds anything, and untimed, twice as many objects of its layouts as it will
//! need are allocated in random order, and one object of another small size for each four. A random
//! half of all is freed in random order; the rest stays until the process ends. All allocators get
//! the same calls, without hints.

use std::alloc::Layout;

use crate::rng::Rng;

/// Sizes of the other objects, in words of 8 bytes.
const OTHER_WORDS: [usize; 5] = [2, 4, 6, 8, 12];

/// Ages the heap of this process for a program that will allocate `nodes`, aligned to words.
pub fn age(nodes: &[(Layout, usize)]) {
    let needed: usize = nodes.iter().map(|(_, count)| count).sum();
    let of_nodes = nodes.iter().map(|&(layout, count)| {
        assert!(layout.align() <= align_of::<u64>(), "objects are words");
        (layout.size().div_ceil(size_of::<u64>()), 2 * count)
    });
    let others = 2 * needed / 4 / OTHER_WORDS.len();
    // For each size in words, how many objects are still to be made.
    let others = OTHER_WORDS.map(|words| (words, others));
    let mut kinds: Vec<(usize, usize)> = of_nodes.chain(others).collect();
    let all: usize = kinds.iter().map(|(_, left)| left).sum();

    let mut rng = Rng::new(0xA6E);
    let mut going = Vec::with_capacity(all);
    for left in (1..=all).rev() {
        let mut pick = rng.below(left);
        let mut is_picked = |left: usize| {
            let rest = pick.checked_sub(left);
            pick = rest.unwrap_or(pick);
            rest.is_none()
        };
        let kind = kinds.iter_mut().find(|(_, left)| is_picked(*left));
        let (words, left) = kind.expect("`left` objects are left");
        *left -= 1;
        // Written to, as a program would.
        let mut object = Vec::with_capacity(*words);
        object.extend(std::iter::repeat_n(*words as u64, *words));
        let object = object.into_boxed_slice();
        if rng.below(2) == 0 {
            going.push(object);
        } else {
            Box::leak(object);
        }
    }
    rng.shuffle(&mut going);
}
