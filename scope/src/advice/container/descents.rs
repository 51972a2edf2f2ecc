//! Lookups in the nodes of search trees: from a root through links, each to the next node.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::analyses::replay::trace::{NONE, Step, Trace, index_32};
use crate::profile::NEAR;

/// Where a node has what. Keys of std's nodes are those of several entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) keys: Range<u32>,
    /// Bytes of a key.
    pub(super) key: u32,
    pub(super) values: Range<u32>,
    pub(super) links: Links,
}

/// Where a node has its links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// In nodes of std: behind so many bytes, the size of a leaf.
    Behind(u32),
    /// In nodes of the program's own, of one entry each: to what is less and to what is greater.
    /// What is no key and no link there is a value.
    At([u32; 2]),
}

impl Layout {
    /// The number of the link at an offset.
    fn link(&self, offset: u32) -> Option<u32> {
        match self.links {
            Links::Behind(leaf) => Some(offset.checked_sub(leaf)? / POINTER),
            Links::At(links) => index_of(links, offset),
        }
    }

    pub(super) fn is_value(&self, offset: u32) -> bool {
        match self.links {
            Links::Behind(_) => self.values.contains(&offset),
            Links::At(links) => !self.keys.contains(&offset) && index_of(links, offset).is_none(),
        }
    }

    fn is_own(&self) -> bool {
        matches!(self.links, Links::At(_))
    }
}

fn index_of(links: [u32; 2], offset: u32) -> Option<u32> {
    (0..)
        .zip(links)
        .find(|&(_, link)| link == offset)
        .map(|(at, _)| at)
}

/// Entries that a node of std has room for.
pub(super) const CAPACITY: u32 = 11;
const POINTER: u32 = 8;

/// A lookup.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Descent {
    /// The object that it began with.
    pub(super) root: u32,
    /// Inner nodes, and which of their links was followed.
    pub(super) path: Vec<(u32, u32)>,
    /// Where it ended, and behind how many entries there.
    last: u32,
    pub(super) slot: u32,
    /// Its first step, and that behind its last one.
    pub(super) steps: Range<u32>,
    /// The first step on the last node.
    arrival: u32,
    pub(super) is_changing: bool,
    /// Whether nothing but keys and links was read on the way.
    pub(super) is_search: bool,
    /// In the order of keys, from 0 to 1.
    pub(super) rank: f64,
}

impl Descent {
    /// One whose way is not known.
    pub(super) fn unseen(root: u32, steps: Range<u32>, is_changing: bool, rank: f64) -> Descent {
        Descent {
            root,
            path: Vec::new(),
            last: root,
            slot: 0,
            arrival: steps.start,
            steps,
            is_changing,
            is_search: true,
            rank,
        }
    }
}

/// What a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Another thing.
    Other,
    /// A search in a node.
    Search,
    /// The first one in the node where the lookup ends: index of the lookup.
    Arrival(u32),
    /// The node where the lookup ended, after the search.
    End(u32),
    /// What the last key leads to.
    Key,
    /// What would not happen any more, nor what the program does for it.
    Gone,
    /// A walk: number of the entry that it is at.
    Walk(u32),
}

/// The lookups of a trace.
#[derive(Debug, Default)]
pub(super) struct Descents {
    /// In the order of time.
    pub(super) list: Vec<Descent>,
    /// By step.
    pub(super) parts: Vec<Part>,
    /// Distinct roots.
    pub(super) roots: Vec<u32>,
    /// Of them, so many search for the ends of ranges.
    pub(super) ranges: usize,
    /// The last step that writes to a node.
    pub(super) last_write: Option<usize>,
}

/// One that is under way.
struct Open {
    root: u32,
    /// The search, and in a range a second one for its other end.
    branches: Vec<Branch>,
    /// Steps on nodes, each with the index of its branch.
    steps: Vec<(u32, usize)>,
    /// The first step, and that behind the last one.
    range: Range<u32>,
    is_changing: bool,
    is_search: bool,
    /// Steps on what keys lead to, and the loads of these keys.
    behind: Vec<(u32, u32)>,
}

/// The way down to one leaf.
#[derive(Clone)]
struct Branch {
    /// See [`Descent`].
    path: Vec<(u32, u32)>,
    last: u32,
    slot: u32,
    arrival: u32,
    /// At which of the steps it has come to its last node, and accessed something else than keys
    /// there.
    at_last: usize,
    searched: Option<usize>,
    /// Keys that were read of the last node: an end without a bound reads none.
    keys: usize,
}

impl Open {
    fn new(index: usize, object: u32) -> Open {
        let index = index_32(index);
        let branch = Branch {
            path: Vec::new(),
            last: object,
            slot: 0,
            arrival: index,
            at_last: 0,
            searched: None,
            keys: 0,
        };
        Open {
            root: object,
            branches: vec![branch],
            steps: Vec::new(),
            range: index..index,
            is_changing: false,
            is_search: true,
            behind: Vec::new(),
        }
    }

    /// The branch that is at a node.
    fn at(&self, object: u32) -> Option<usize> {
        self.branches.iter().position(|it| it.last == object)
    }

    /// A step on the last node of a branch.
    fn step(&mut self, index: usize, step: &Step, branch: usize, layout: &Layout) {
        let is_key = layout.keys.contains(&step.offset);
        let is_search = !step.write && !layout.is_value(step.offset);
        let at = self.steps.len();
        let it = &mut self.branches[branch];
        it.keys += usize::from(is_key);
        match is_search {
            true if is_key && it.searched.is_none() => {
                it.slot = (step.offset - layout.keys.start) / layout.key.max(1);
            }
            true => {}
            false => {
                it.searched.get_or_insert(at);
            }
        }
        self.is_changing |= step.write;
        self.steps.push((index_32(index), branch));
        self.range.end = index_32(index) + 1;
    }

    /// Goes on to a child by the link of `load`, if it is one of a branch: which one goes on?
    fn follow(&mut self, at: usize, load: &Step, child: u32, layout: &Layout) -> Option<usize> {
        let link = layout.link(load.offset)?;
        let branch = match self.at(load.object) {
            Some(branch) => branch,
            None => self.fork(load.object, link, layout)?,
        };
        let steps = self.steps.len();
        let it = &mut self.branches[branch];
        self.is_search &= it.searched.is_none();
        it.path.push((it.last, link));
        (it.last, it.slot, it.arrival) = (child, 0, index_32(at));
        (it.at_last, it.searched, it.keys) = (steps, None, 0);
        Some(branch)
    }

    /// Whether the way to the other end of a range would begin by a link of this node.
    fn forks(&self, node: u32, link: u32, layout: &Layout) -> bool {
        let of_path = self.branches[0].path.iter().find(|it| it.0 == node);
        self.branches.len() == 1 && !layout.is_own() && of_path.is_some_and(|it| it.1 != link)
    }

    /// Another branch, which is at a node that the first one has left.
    fn fork(&mut self, node: u32, link: u32, layout: &Layout) -> Option<usize> {
        if !self.forks(node, link, layout) {
            return None;
        }
        let mut branch = self.branches[0].clone();
        let at = branch.path.iter().position(|it| it.0 == node)?;
        branch.path.truncate(at);
        branch.last = node;
        (branch.searched, branch.keys) = (None, 0);
        self.branches.push(branch);
        Some(1)
    }

    /// The branch whose end was searched for.
    fn main(&self) -> usize {
        let keys = |at: usize| self.branches.get(at).map_or(0, |it| it.keys);
        usize::from(keys(1) > keys(0))
    }

    fn path(&self) -> &[(u32, u32)] {
        &self.branches[self.main()].path
    }

    fn descent(&self, rank: f64) -> Descent {
        let it = &self.branches[self.main()];
        Descent {
            root: self.root,
            path: it.path.clone(),
            last: it.last,
            slot: it.slot,
            steps: self.range.clone(),
            arrival: it.arrival,
            is_changing: self.is_changing,
            is_search: self.is_search,
            rank,
        }
    }
}

/// No map is higher: 6^24 nodes are more than memory.
const MAX_HEIGHT: usize = 24;
/// With fewer visits, a node may have more children than were seen.
const KNOWN: u32 = 64;

impl Descents {
    /// Finds the lookups in the nodes of these sites, of which `inner` are larger. `fan_out`:
    /// children of an inner node, on average. O(steps).
    pub(super) fn find(
        trace: &Trace,
        layout: &Layout,
        [sites, inner]: [&[u32]; 2],
        fan_out: f64,
    ) -> Descents {
        let is_node = |object: u32| {
            trace
                .object(object)
                .is_some_and(|it| sites.contains(&it.site))
        };
        let is_inner = |object: u32| {
            trace
                .object(object)
                .is_some_and(|it| inner.contains(&it.site))
        };
        let mut found = Descents {
            parts: vec![Part::Other; trace.steps.len()],
            ..Descents::default()
        };
        let mut closed: Vec<Open> = Vec::new();
        let mut roots = HashSet::new();
        let mut parents: HashMap<u32, u32> = HashMap::new();
        for window in trace.windows() {
            let mut open: Option<Open> = None;
            for index in window {
                let step = &trace.steps[index];
                let via = usize::try_from(step.via).ok();
                let via = via.filter(|&via| step.via != NONE && index - via <= NEAR);
                let from = via.map(|via| &trace.steps[via]);
                if !is_node(step.object) {
                    let by_key =
                        |load: &&Step| is_node(load.object) && layout.keys.contains(&load.offset);
                    if let (Some(open), Some(_)) = (&mut open, from.filter(by_key)) {
                        open.behind.push((index_32(index), step.via));
                    }
                    continue;
                }
                if step.write {
                    found.last_write = Some(index);
                }
                let from = from.filter(|load| is_node(load.object) && load.object != step.object);
                let reads = from.filter(|_| !step.write);
                let branch = open.as_mut().and_then(|open| {
                    let mut follow = |open: &mut Open| {
                        let load = reads?;
                        let branch = open.follow(index, load, step.object, layout)?;
                        parents.insert(step.object, load.object);
                        Some(branch)
                    };
                    let link = layout.link(step.offset).filter(|_| !step.write);
                    let is_fork = link.is_some_and(|it| open.forks(step.object, it, layout));
                    let at = open.at(step.object).or_else(|| is_fork.then_some(0));
                    at.or_else(|| follow(open))
                });
                if branch.is_none() {
                    // Else up, to the side, or to tell children who their parent is.
                    // What was a child is no root later on; the other way round, it may be.
                    let begins = from.is_none()
                        && is_inner(step.object)
                        && !step.write
                        && !parents.contains_key(&step.object);
                    if begins && open.is_some() {
                        roots.insert(step.object);
                    }
                    closed.extend(open.take());
                    open = begins.then(|| Open::new(index, step.object));
                }
                if let Some(open) = &mut open {
                    open.step(index, step, branch.unwrap_or(0), layout);
                }
            }
            closed.extend(open.take());
        }
        // One that a window begins within does not begin with a root, nor one after a way up.
        closed.retain(|open| roots.contains(&open.root));
        let fans = Fans::new(&closed, fan_out, layout.is_own());
        for open in closed {
            let mut descent = open.descent(0.0);
            descent.rank = fans.rank(&descent, is_inner(descent.last));
            // A map that grows gets a root above its root: it had a part of its entries before.
            let higher = if layout.is_own() { 0 } else { MAX_HEIGHT };
            for _ in 0..higher {
                if let Some(&above) = parents.get(&descent.root) {
                    descent.root = above;
                    descent.rank /= fan_out;
                }
            }
            found.add(&open, descent);
        }
        let roots: HashSet<u32> = found.list.iter().map(|it| it.root).collect();
        found.roots = roots.into_iter().collect();
        found.roots.sort_unstable();
        found
    }

    fn add(&mut self, open: &Open, descent: Descent) {
        let number = index_32(self.list.len());
        let number_of_main = open.main();
        let main = &open.branches[number_of_main];
        let end = main.at_last.max(main.searched.unwrap_or(open.steps.len()));
        for (at, &(step, branch)) in open.steps.iter().enumerate() {
            self.parts[step as usize] = match at >= end && branch == number_of_main {
                true => Part::End(number),
                false => Part::Search,
            };
        }
        self.parts[descent.arrival as usize] = Part::Arrival(number);
        let last_key = open.behind.last().map(|&(_, key)| key);
        for &(step, key) in &open.behind {
            self.parts[step as usize] = match Some(key) == last_key {
                true => Part::Key,
                false => Part::Search,
            };
        }
        self.ranges += usize::from(open.branches.len() > 1);
        self.list.push(descent);
    }

    /// Those that change nothing.
    pub(super) fn reading(&self) -> impl Iterator<Item = &Descent> {
        self.list.iter().filter(|it| !it.is_changing)
    }

    /// The part of the descents that change nothing after which another one follows at once.
    pub(super) fn consecutive(&self) -> f64 {
        let follows = |pair: &&[Descent]| {
            let gap = pair[1].steps.start.saturating_sub(pair[0].steps.end);
            gap as usize <= NEAR && !pair[0].is_changing && !pair[1].is_changing
        };
        let count = self.list.windows(2).filter(follows).count();
        count as f64 / self.reading().count().max(1) as f64
    }
}

/// How many children nodes have.
struct Fans {
    /// In trees of the program's own, by node: how many nodes lookups have ended at below each
    /// link. Such trees are not balanced.
    below: Option<HashMap<u32, [u32; 2]>>,
    /// Visits, and the last link that was followed.
    seen: HashMap<u32, (u32, u32)>,
    usual: f64,
}

impl Fans {
    fn new(descents: &[Open], usual: f64, is_own: bool) -> Fans {
        let mut seen: HashMap<u32, (u32, u32)> = HashMap::new();
        for &(node, link) in descents.iter().flat_map(Open::path) {
            let (visits, last) = seen.entry(node).or_default();
            *visits += 1;
            *last = link.max(*last);
        }
        let below = is_own.then(|| {
            let mut below: HashMap<u32, [u32; 2]> = HashMap::new();
            let mut ends = HashSet::new();
            let new =
                { descents.iter() }.filter(|open| ends.insert(open.branches[open.main()].last));
            for &(node, link) in new.flat_map(Open::path) {
                below.entry(node).or_default()[(link as usize).min(1)] += 1;
            }
            below
        });
        Fans { below, seen, usual }
    }

    /// The part of the nodes below a node of the program's own that are less.
    fn less(below: &HashMap<u32, [u32; 2]>, node: u32) -> f64 {
        let [less, greater] = below.get(&node).copied().unwrap_or_default().map(f64::from);
        (less + 0.5) / (less + greater + 1.0)
    }

    fn of(&self, node: u32) -> f64 {
        match self.seen.get(&node) {
            Some(&(KNOWN.., last)) => f64::from(last + 1),
            Some(&(_, last)) => self.usual.max(f64::from(last + 1)),
            None => self.usual,
        }
    }

    /// Where in the order of keys a lookup has ended.
    fn rank(&self, descent: &Descent, is_inner: bool) -> f64 {
        let (mut rank, mut width) = (0.0f64, 1.0);
        if let Some(below) = &self.below {
            for &(node, link) in &descent.path {
                let less = Fans::less(below, node);
                rank += if link == 0 { 0.0 } else { width * less };
                width *= if link == 0 { less } else { 1.0 - less };
            }
            rank += width * Fans::less(below, descent.last);
            return rank.clamp(0.0, 1.0 - 1e-9);
        }
        for &(node, link) in &descent.path {
            width /= self.of(node);
            rank += width * f64::from(link);
        }
        let slot = f64::from(descent.slot);
        rank += width
            * match is_inner {
                // Between two children.
                true => (slot + 1.0) / self.of(descent.last).max(slot + 1.0),
                false => (slot + 0.5) / (self.usual - 1.0).max(slot + 1.0),
            };
        rank.clamp(0.0, 1.0 - 1e-9)
    }
}
