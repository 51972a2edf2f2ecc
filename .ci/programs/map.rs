//! Counts words in a map, and looks each up.

use std::collections::BTreeMap;

fn main() {
    let mut counts: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for i in 0..20_000u32 {
        counts.entry((i * 7919 % 4001).to_string()).or_default().push(i);
    }
    let sum: u32 = (0..4001u32).map(|key| counts[&key.to_string()][0]).sum();
    println!("{} words, {sum}", counts.len());
}
