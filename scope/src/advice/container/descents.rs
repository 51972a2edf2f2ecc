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
    /// The last step that writes to a node.
    pub(super) last_write: Option<usize>,
}

/// One that is under way.
struct Open {
    descent: Descent,
    /// Steps on nodes, and of those the first on the last node.
    steps: Vec<u32>,
    at_last: usize,
    /// Whether something else than keys was accessed in the last node, at which of `steps`.
    searched: Option<usize>,
    /// Steps on what keys lead to, and the loads of these keys.
    behind: Vec<(u32, u32)>,
}

impl Open {
    fn new(index: usize, object: u32) -> Open {
        let index = index_32(index);
        Open {
            descent: Descent {
                root: object,
                path: Vec::new(),
                last: object,
                slot: 0,
                steps: index..index,
                arrival: index,
                is_changing: false,
                is_search: true,
                rank: 0.0,
            },
            steps: Vec::new(),
            at_last: 0,
            searched: None,
            behind: Vec::new(),
        }
    }

    /// A step on the last node.
    fn step(&mut self, index: usize, step: &Step, layout: &Layout) {
        let is_key = layout.keys.contains(&step.offset);
        let is_search = !step.write && !layout.is_value(step.offset);
        match is_search {
            true if is_key && self.searched.is_none() => {
                self.descent.slot = (step.offset - layout.keys.start) / layout.key.max(1);
            }
            true => {}
            false => {
                self.searched.get_or_insert(self.steps.len());
            }
        }
        self.descent.is_changing |= step.write;
        self.steps.push(index_32(index));
        self.descent.steps.end = index_32(index) + 1;
    }

    /// Goes on to a child.
    fn follow(&mut self, at: u32, link: u32, child: u32) {
        self.descent.is_search &= self.searched.is_none();
        self.descent.path.push((self.descent.last, link));
        (self.descent.last, self.descent.slot, self.descent.arrival) = (child, 0, at);
        (self.at_last, self.searched) = (self.steps.len(), None);
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
                match &mut open {
                    Some(open) if open.descent.last == step.object => {}
                    Some(open) if followed(open, from, layout).is_some() && !step.write => {
                        let link = followed(open, from, layout).unwrap_or_default();
                        parents.insert(step.object, open.descent.last);
                        open.follow(index_32(index), link, step.object);
                    }
                    _ => {
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
                }
                if let Some(open) = &mut open {
                    open.step(index, step, layout);
                }
            }
            closed.extend(open.take());
        }
        // One that a window begins within does not begin with a root, nor one after a way up.
        closed.retain(|open| roots.contains(&open.descent.root));
        let fans = Fans::new(&closed, fan_out, layout.is_own());
        for mut open in closed {
            open.descent.rank = fans.rank(&open.descent, is_inner(open.descent.last));
            // A map that grows gets a root above its root: it had a part of its entries before.
            let higher = if layout.is_own() { 0 } else { MAX_HEIGHT };
            for _ in 0..higher {
                if let Some(&above) = parents.get(&open.descent.root) {
                    open.descent.root = above;
                    open.descent.rank /= fan_out;
                }
            }
            found.add(open);
        }
        let roots: HashSet<u32> = found.list.iter().map(|it| it.root).collect();
        found.roots = roots.into_iter().collect();
        found.roots.sort_unstable();
        found
    }

    fn add(&mut self, open: Open) {
        let number = index_32(self.list.len());
        let searched = open.searched.unwrap_or(open.steps.len());
        for (at, &step) in open.steps.iter().enumerate() {
            self.parts[step as usize] = match at >= open.at_last.max(searched) {
                true => Part::End(number),
                false => Part::Search,
            };
        }
        self.parts[open.descent.arrival as usize] = Part::Arrival(number);
        let last_key = open.behind.last().map(|&(_, key)| key);
        for &(step, key) in &open.behind {
            self.parts[step as usize] = match Some(key) == last_key {
                true => Part::Key,
                false => Part::Search,
            };
        }
        self.list.push(open.descent);
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

/// The link of its last node that a lookup follows.
fn followed(open: &Open, from: Option<&Step>, layout: &Layout) -> Option<u32> {
    let load = from.filter(|load| load.object == open.descent.last)?;
    layout.link(load.offset)
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
        for &(node, link) in descents.iter().flat_map(|open| &open.descent.path) {
            let (visits, last) = seen.entry(node).or_default();
            *visits += 1;
            *last = link.max(*last);
        }
        let below = is_own.then(|| {
            let mut below: HashMap<u32, [u32; 2]> = HashMap::new();
            let mut ends = HashSet::new();
            let new = { descents.iter() }.filter(|open| ends.insert(open.descent.last));
            for &(node, link) in new.flat_map(|open| &open.descent.path) {
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
