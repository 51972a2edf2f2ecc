//! Which site keeps how much alive: its own bytes, and those of sites to which all ways lead
//! through it (dominators; K. Cooper, T. Harvey, K. Kennedy, *A Simple, Fast Dominance Algorithm*,
//! 2001).
//!
//! Ways are the pointers that were seen: in windows, and in memory at the end if leaks were looked
//! for. They begin in variables, on stacks, and at sites that nothing leads to. Chunks of a site
//! count as one, so a site may keep more alive than is said here, and not less.

use std::collections::BTreeSet;

use crate::profile::Profile;

/// The node of what is no site; sites have their index and one.
const ROOT: usize = 0;
/// What has no place in an order, or no dominator yet.
const NONE: usize = usize::MAX;

/// What a site keeps alive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retained {
    /// Usable bytes at the peak of the process.
    pub bytes: u64,
    /// The sites, itself left out, that are alive because of it alone; in order.
    pub sites: Vec<usize>,
}

/// By site; `None` if no pointer was seen. O(pointers × depth).
#[must_use]
pub fn retained(profile: &Profile) -> Option<Vec<Retained>> {
    let ways = ways(profile)?;
    let order = Order::new(&ways);
    let dominators = order.dominators(&ways);
    let mut found = vec![Retained::default(); profile.sites.len()];
    // Those that are dominated come later in the order.
    for &node in order.nodes.iter().rev().filter(|&&node| node != ROOT) {
        let site = node - 1;
        found[site].sites.sort_unstable();
        let own = profile.sites[site].at_peak_usable;
        found[site].bytes = found[site].bytes.saturating_add(own);
        if let Some(by) = dominators[node].checked_sub(1) {
            let mut kept = found[site].sites.clone();
            kept.push(site);
            let bytes = found[site].bytes;
            found[by].bytes = found[by].bytes.saturating_add(bytes);
            found[by].sites.append(&mut kept);
        }
    }
    Some(found)
}

/// By node, where its pointers lead. All can be reached from the root.
fn ways(profile: &Profile) -> Option<Vec<BTreeSet<usize>>> {
    let node = |site: u32| site as usize + 1;
    let edges = profile.edges.iter().map(|it| (node(it.from), node(it.to)));
    let links = profile.links.iter();
    let links = links.map(|it| (it.from.map_or(ROOT, node), node(it.to)));
    let mut ways = vec![BTreeSet::new(); profile.sites.len() + 1];
    let mut is_led_to = vec![false; ways.len()];
    for (from, to) in edges.chain(links) {
        let is_there = from.max(to) < is_led_to.len();
        if is_there && from != to {
            ways[from].insert(to);
            is_led_to[to] = true;
        }
    }
    if ways.iter().all(BTreeSet::is_empty) {
        return None;
    }
    let accesses = profile.windows.iter().flat_map(|window| &window.accesses);
    let outside = accesses.filter(|it| it.site == u32::MAX && it.target != u32::MAX);
    let led_to = outside.map(|it| node(it.target));
    ways[ROOT].extend(led_to.filter(|&it| it < is_led_to.len()));
    ways[ROOT].extend((1..is_led_to.len()).filter(|&it| !is_led_to[it]));
    // Circles that nothing leads to.
    let mut is_reached = vec![false; ways.len()];
    reach(&ways, ROOT, &mut is_reached);
    for at in 1..ways.len() {
        if !is_reached[at] {
            ways[ROOT].insert(at);
            reach(&ways, at, &mut is_reached);
        }
    }
    Some(ways)
}

fn reach(ways: &[BTreeSet<usize>], start: usize, is_reached: &mut [bool]) {
    is_reached[start] = true;
    let mut todo = vec![start];
    while let Some(at) = todo.pop() {
        for &to in &ways[at] {
            if !std::mem::replace(&mut is_reached[to], true) {
                todo.push(to);
            }
        }
    }
}

/// Nodes, each before those that a depth-first search leaves before it.
struct Order {
    nodes: Vec<usize>,
    /// By node, its place in `nodes`.
    place: Vec<usize>,
}

impl Order {
    fn new(ways: &[BTreeSet<usize>]) -> Order {
        let mut is_seen = vec![false; ways.len()];
        is_seen[ROOT] = true;
        let (mut nodes, mut path) = (Vec::new(), vec![(ROOT, ways[ROOT].iter())]);
        while let Some((node, rest)) = path.last_mut() {
            match rest.next() {
                Some(&to) if !std::mem::replace(&mut is_seen[to], true) => {
                    path.push((to, ways[to].iter()));
                }
                Some(_) => {}
                None => {
                    nodes.push(*node);
                    path.pop();
                }
            }
        }
        nodes.reverse();
        let mut place = vec![NONE; ways.len()];
        for (at, &node) in nodes.iter().enumerate() {
            place[node] = at;
        }
        Order { nodes, place }
    }

    /// By node, the last one through which all ways lead; that of the root is itself.
    fn dominators(&self, ways: &[BTreeSet<usize>]) -> Vec<usize> {
        let mut before = vec![Vec::new(); ways.len()];
        for (from, to) in ways.iter().enumerate() {
            to.iter().for_each(|&to| before[to].push(from));
        }
        let mut dominator = vec![NONE; ways.len()];
        dominator[ROOT] = ROOT;
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for &node in self.nodes.iter().filter(|&&node| node != ROOT) {
                let known = before[node]
                    .iter()
                    .copied()
                    .filter(|&it| dominator[it] != NONE);
                let meet = known
                    .reduce(|a, b| self.meet(&dominator, a, b))
                    .unwrap_or(ROOT);
                is_changed |= std::mem::replace(&mut dominator[node], meet) != meet;
            }
        }
        dominator
    }

    /// The last node that dominates both.
    fn meet(&self, dominator: &[usize], mut a: usize, mut b: usize) -> usize {
        while a != b {
            if self.place[a] < self.place[b] {
                b = dominator[b];
            } else {
                a = dominator[a];
            }
        }
        a
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;
    use crate::profile::{Link, Site};

    /// Bytes and other sites that each site keeps, of sites of 1, 2, 4 and so on bytes.
    fn kept(sites: usize, links: &[(Option<u32>, u32)]) -> Vec<(u64, Vec<usize>)> {
        let mut run = profile();
        let site = |at: usize| Site {
            at_peak_usable: 1 << at,
            ..Site::default()
        };
        run.sites = (0..sites).map(site).collect();
        (run.edges, run.windows) = (Vec::new(), Vec::new());
        let link = |&(from, to)| Link {
            from,
            to,
            pointers: 1,
        };
        run.links = links.iter().map(link).collect();
        let found = retained(&run).unwrap();
        found.into_iter().map(|it| (it.bytes, it.sites)).collect()
    }

    #[test]
    fn a_site_keeps_what_only_it_leads_to() {
        // A chain; two ways to 3; a circle of 4 and 5 that 0 leads to, and 5 leads to 3.
        let links = [
            (None, 0),
            (Some(0), 1),
            (Some(0), 2),
            (Some(1), 3),
            (Some(2), 3),
            (Some(0), 4),
            (Some(4), 5),
            (Some(5), 4),
            (Some(5), 3),
        ];
        let found = kept(6, &links);
        assert_eq!(found[0], (63, vec![1, 2, 3, 4, 5]));
        assert_eq!(found[1], (2, vec![]));
        assert_eq!(found[3], (8, vec![]));
        assert_eq!(found[4], (16 + 32, vec![5]));
        // Now the root leads to 5 as well.
        let more: Vec<_> = links.into_iter().chain([(None, 5)]).collect();
        let found = kept(6, &more);
        assert_eq!(found[0], (1 + 2 + 4, vec![1, 2]));
        assert_eq!(found[4], (16, vec![]));
    }

    #[test]
    fn what_nothing_leads_to_is_a_beginning() {
        let found = kept(5, &[(Some(1), 2), (Some(3), 4), (Some(4), 3), (Some(0), 0)]);
        let bytes: Vec<u64> = found.iter().map(|it| it.0).collect();
        assert_eq!(bytes, [1, 2 + 4, 4, 8 + 16, 16]);
        let mut none = profile();
        (none.edges, none.links) = (Vec::new(), Vec::new());
        assert_eq!(retained(&none), None);
    }
}
