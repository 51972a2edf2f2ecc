//! What measurements rest on: keys, random numbers, turns, chains of lookups.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use measure::keys;
use measure::queries::Chain;
use measure::rng::Rng;
use measure::timing::{median, turns};

/// `make` makes sets of different keys, as many as asked for, and the same again; `are_right`
/// checks 60,000 of them, more than there are names of characters.
fn check<K: Hash + Eq + Debug>(make: fn(usize, u64) -> Vec<K>, are_right: fn(Vec<K>) -> bool) {
    for count in [0, 1, 2, 1000, 5000] {
        let keys = make(count, 1);
        let distinct: HashSet<&K> = keys.iter().collect();
        assert_eq!((keys.len(), distinct.len()), (count, count));
        assert_eq!(keys, make(count, 1));
    }
    assert_ne!(make(100, 1), make(100, 2));
    assert!(are_right(make(60_000, 5)));
}

#[test]
fn sets_are_what_their_descriptions_say() {
    check(keys::random, |keys| keys::random(100, 5) == keys[..100]);
    check(keys::clustered, |mut keys| {
        keys.sort_unstable();
        let gaps = keys.windows(2).map(|pair| pair[1] - pair[0]);
        let gaps: Vec<u64> = gaps.filter(|&gap| gap > 1).collect();
        // Runs of 512 on average, and gaps of all sizes.
        (90..150).contains(&gaps.len())
            && gaps.iter().any(|&gap| gap < 1 << 14)
            && gaps.iter().any(|&gap| gap > 1 << 46)
    });
    check(keys::events, |keys| {
        let accounts: HashSet<u32> = keys.iter().map(|key| key.0).collect();
        (590..=600).contains(&accounts.len())
    });
    check(keys::words_and_paths, |keys| {
        let paths = keys.iter().filter(|key| key.contains('/')).count();
        keys.iter().all(|key| (8..=40).contains(&key.len()))
            && keys.iter().any(|key| key == "musical symbol quarter rest")
            && (10_000..50_000).contains(&paths)
    });
    check(keys::long_prefixes, |keys| {
        let folders: HashSet<&str> = keys.iter().map(|key| &key[..48]).collect();
        keys.iter().all(|key| key.len() == 64) && folders.len() == 8
    });
}

#[test]
fn the_stream_of_a_seed_never_changes() {
    let mut rng = Rng::new(7);
    let mut again = Rng::new(7);
    let stream: Vec<u64> = (0..8).map(|_| rng.next_u64()).collect();
    assert_eq!(stream[0], 0x63CB_E1E4_5932_0DD7);
    assert!(stream.iter().all(|&number| number == again.next_u64()));
    assert_ne!(stream[0], Rng::new(8).next_u64());
    let mut seen = [false; 7];
    (0..1000).for_each(|_| seen[rng.below(7)] = true);
    assert_eq!(seen, [true; 7]);
    let mut items: Vec<u32> = (0..100).collect();
    rng.shuffle(&mut items);
    assert!(!items.is_sorted());
    items.sort_unstable();
    assert!(items.into_iter().eq(0..100));
}

#[test]
fn every_subject_has_a_turn_a_round_in_changing_order() {
    assert!(turns(4, 3).eq([0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]));
    for (figures, middle) in [
        (&[5.0][..], 5.0),
        (&[9.0, 1.0, 5.0], 5.0),
        (&[9.0, 1.0, 5.0, 7.0], 7.0),
    ] {
        assert!((median(figures) - middle).abs() < 1e-9);
    }
}

#[test]
fn each_answer_chooses_the_next_query() {
    let mut queries = [10, 11, 20, 21, 30, 31].into_iter();
    let chain = Chain::draw(3, || queries.next().unwrap_or(0));
    let mut asked = Vec::new();
    let sum = chain.follow(|&query| {
        asked.push(query);
        u32::from(query == 10)
    });
    assert_eq!(asked, [10, 21, 30]);
    assert_ne!(sum, chain.follow(|&query| u32::from(query == 30)));
    let chain = Chain::sample(&[3, 5, 8], 50, 1);
    assert_eq!(chain.len(), 50);
    chain.follow(|query| {
        assert!([3, 5, 8].contains(query));
        0
    });
}
