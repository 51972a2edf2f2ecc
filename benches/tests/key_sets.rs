//! Sets of keys are what their descriptions say.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use measure::keys;

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
