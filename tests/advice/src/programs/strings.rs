//! Text, word by word, each as a temporary string.
//!
//! The allocator hands out the place that was just freed, which is in the nearest cache. A heap of
//! their own for the temporary strings does the same.

use super::mix;
use allocator_api2::vec::Vec as VecIn;
use ccmalloc::Heap;

pub(super) fn before(size: usize) -> u64 {
    words(size, |word| {
        let upper: String = word.to_uppercase();
        let turned: String = upper.chars().rev().collect();
        turned.bytes().fold(0, |sum, byte| mix(sum, byte.into()))
    })
}

pub(super) fn after(size: usize) -> u64 {
    let heap = Heap::new().expect("memory");
    words(size, |word| {
        let mut upper: VecIn<char, &Heap> = VecIn::new_in(&heap);
        upper.extend(word.chars().flat_map(char::to_uppercase));
        let mut turned: VecIn<u8, &Heap> = VecIn::new_in(&heap);
        let mut bytes = [0; 4];
        for letter in upper.iter().rev() {
            turned.extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
        }
        turned.iter().fold(0, |sum, &byte| mix(sum, byte.into()))
    })
}

fn words(size: usize, hash: impl Fn(&str) -> u64) -> u64 {
    let mut random = fastrand::Rng::with_seed(23);
    let text: String = (0..20_000)
        .map(|_| {
            if random.u8(..6) == 0 {
                ' '
            } else {
                random.lowercase()
            }
        })
        .collect();
    let words = text.split(' ').cycle().take(size);
    words.fold(0, |sum, word| mix(sum, hash(word)))
}
