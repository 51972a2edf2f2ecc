//! Sets of keys are what their descriptions say.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;

use measure::keys;

/// `make` makes sets of different keys, as many as asked for, and the same again.
fn is_a_set<K: Hash + Eq + Debug>(make: fn(usize, u64) -> Vec<K>) {
    for count in [0, 1, 2, 1000, 5000] {
        let keys = make(count, 1);
        let distinct: HashSet<&K> = keys.iter().collect();
        assert_eq!((keys.len(), distinct.len()), (count, count));
        assert_eq!(keys, make(count, 1));
    }
    assert_ne!(make(100, 1), make(100, 2));
}

#[test]
fn sets_have_as_many_different_keys_as_asked_for_and_are_always_the_same() {
    is_a_set(keys::random);
    is_a_set(keys::clustered);
    is_a_set(keys::events);
    is_a_set(keys::words_and_paths);
    is_a_set(keys::long_prefixes);
    assert_eq!(keys::random(100, 1), keys::random(200, 1)[..100]);
}

#[test]
fn clusters_are_runs_with_gaps_of_all_sizes() {
    let mut keys = keys::clustered(200_000, 3);
    keys.sort_unstable();
    let gaps: Vec<u64> = keys
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .filter(|&gap| gap > 1)
        .collect();
    // Runs of 512 on average.
    assert!((300..500).contains(&gaps.len()), "{} gaps", gaps.len());
    assert!(gaps.iter().any(|&gap| gap < 1 << 14));
    assert!(gaps.iter().any(|&gap| gap > 1 << 46));
}

#[test]
fn words_and_paths_have_the_lengths_that_were_promised() {
    // More than there are names, so that there are paths.
    let keys = keys::words_and_paths(60_000, 5);
    assert!(keys.iter().all(|key| (8..=40).contains(&key.len())));
    assert!(keys.iter().any(|key| key == "musical symbol quarter rest"));
    let paths = keys.iter().filter(|key| key.contains('/')).count();
    assert!((10_000..50_000).contains(&paths), "{paths} paths");
}

#[test]
fn long_prefixes_differ_late() {
    let keys = keys::long_prefixes(1000, 7);
    assert!(keys.iter().all(|key| key.len() == 64));
    let folders: HashSet<&str> = keys.iter().map(|key| &key[..48]).collect();
    assert_eq!(folders.len(), 8);
}

#[test]
fn accounts_have_many_events() {
    let keys = keys::events(50_000, 9);
    let accounts: HashSet<u32> = keys.iter().map(|key| key.0).collect();
    assert!((490..=500).contains(&accounts.len()), "{}", accounts.len());
}
