//! Objects one behind the other, in the order of their addresses.
//!
//! The windows show a sample of a site's objects. Between two of them, as many others are assumed
//! as the site has on so many bytes in the mean.

use std::collections::HashMap;

use super::Context;
use crate::analyses::replay::trace::{NONE, Step};
use crate::analyses::replay::{PlacedAccess, Rewrite};

/// Where new memory begins that a change allocates: no program has anything there.
pub(crate) const NEW_MEMORY: u64 = 1 << 60;
/// What two kinds of new memory are apart.
pub(crate) const APART: u64 = 1 << 44;
/// A larger gap is no part of the heap's row of objects.
const MAX_GAP: u64 = 1 << 20;

/// What an ordinary allocator rounds sizes up to, and what it keeps beside an object.
const GRANULE: u64 = 16;
const HEADER: u64 = 8;

/// What an object of so many bytes takes in an ordinary heap.
pub(crate) fn chunk(bytes: u64) -> u64 {
    let whole = bytes
        .saturating_add(HEADER)
        .checked_next_multiple_of(GRANULE);
    // A damaged profile must not end the tool.
    whole.unwrap_or(u64::MAX).max(2 * GRANULE)
}

/// Moves accesses to the addresses that `to` gives, and leaves the others.
pub(crate) fn moving<'c>(to: impl Fn(&Step) -> Option<u64> + 'c) -> Box<dyn Rewrite + 'c> {
    Box::new(move |_: usize, step: &Step, into: &mut Vec<PlacedAccess>| {
        into.push(to(step).map_or(PlacedAccess::unchanged(step), |address| {
            PlacedAccess::at(address, step)
        }));
    })
}

/// Moves each step to the address that `to` has for it, and leaves those with 0.
pub(crate) fn moved(to: Vec<u64>) -> Box<dyn Rewrite> {
    Box::new(
        move |index: usize, step: &Step, into: &mut Vec<PlacedAccess>| {
            into.push(match to.get(index) {
                Some(&address) if address > 0 => PlacedAccess::at(address, step),
                _ => PlacedAccess::unchanged(step),
            });
        },
    )
}

/// A rank for each object that is accessed, such that neighbours differ by the number of objects
/// of these sites between them, at least 1. O(n log n).
pub(crate) fn ranks(context: &Context<'_>, sites: &[u32]) -> HashMap<u32, u64> {
    let objects = &context.trace.objects;
    let seen: Vec<(u64, u32)> = (0..NONE)
        .zip(objects)
        .filter(|(_, object)| object.accesses > 0 && sites.contains(&object.site))
        .map(|(index, object)| (object.base, index))
        .collect();
    // At their peak; of a structure that is built and then used, that is at any time.
    let alive: u64 = { sites.iter() }
        .filter_map(|&site| context.profile.sites.get(site as usize))
        .fold(0, |sum, site| sum.saturating_add(site.peak_chunks));
    let sizes = { sites.iter() }.filter_map(|&site| context.profile.sites.get(site as usize));
    let least = sizes.map(|site| site.smallest).min();
    spread(seen, alive as f64, least.unwrap_or(0))
}

/// The same for objects of these addresses and indices, of which so many are alive, each of `least`
/// bytes or more.
pub(crate) fn spread(mut seen: Vec<(u64, u32)>, alive: f64, least: u64) -> HashMap<u32, u64> {
    seen.sort_unstable();
    seen.dedup_by_key(|&mut (base, _)| base);
    let gap = |pair: &[(u64, u32)]| pair[1].0 - pair[0].0;
    let span: u64 = { seen.windows(2).map(gap) }
        .filter(|&gap| gap <= MAX_GAP)
        .fold(0, u64::saturating_add);
    let each = span as f64 / alive.max(seen.len() as f64).max(1.0);
    // Some of those that are alive lie in the large gaps.
    let each = each.max(chunk(least) as f64);
    let mut rank = 0u64;
    let mut ranks = HashMap::with_capacity(seen.len());
    for (at, &(_, index)) in seen.iter().enumerate() {
        if at > 0 {
            let gap = gap(&seen[at - 1..=at]);
            let between = if gap > MAX_GAP {
                1.0
            } else {
                gap as f64 / each
            };
            rank += crate::analyses::units::rounded(between).max(1);
        }
        ranks.insert(index, rank);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_a_header() {
        let chunks = [(0, 32), (24, 32), (25, 48), (u64::MAX, u64::MAX)];
        for (bytes, expected) in chunks {
            assert_eq!(chunk(bytes), expected);
        }
    }

    /// A thousand objects of 56 bytes lie one behind the other, of which two windows show ten each.
    #[test]
    fn neighbours_stay_neighbours() {
        let at = |number: u64| number * 64;
        let near = |first: u64| (0..10).map(move |it| first + it);
        let seen = near(0).chain(near(1 << 20)).zip(0..);
        let ranks = spread(seen.map(|(it, id)| (at(it), id)).collect(), 1000.0, 56);
        assert_eq!(
            (0..10).map(|id| ranks[&id]).collect::<Vec<_>>(),
            Vec::from_iter(0..10)
        );
        assert_eq!(ranks[&19] - ranks[&10], 9);
        // Of objects that lie apart, those between them count.
        let seen = [(0, 0), (1 << 19, 1), (1 << 20, 2)];
        assert_eq!(spread(seen.to_vec(), 1025.0, 56)[&2], 1026);
    }
}
