//! Lookups in the nodes of std's B-trees: from a root through links, each to the next node.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::analyses::replay::trace::{NONE, Step, Trace, index_32};
use crate::profile::NEAR;

/// Where std keeps what in a node. An inner node is a leaf with links behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) keys: Range<u32>,
    pub(super) values: Range<u32>,
    /// Size of a leaf, and start of the links of an inner node.
    pub(super) leaf: u32,
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
    path: Vec<(u32, u32)>,
    /// Where it ended, and behind how many entries there.
    last: u32,
    pub(super) slot: u32,
    /// Its first step, and that behind its last one.
    pub(super) steps: Range<u32>,
    /// The first step on the last node.
    arrival: u32,
    pub(super) is_changing: bool,
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
        let is_search = !step.write && (is_key || !layout.values.contains(&step.offset));
        match is_search {
            true if is_key && self.searched.is_none() => {
                let size = (layout.keys.end - layout.keys.start) / CAPACITY;
                self.descent.slot = (step.offset - layout.keys.start) / size.max(1);
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
    fn follow(&mut self, at: u32, offset: u32, child: u32, layout: &Layout) {
        let link = (offset - layout.leaf) / POINTER;
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
                    Some(open)
                        if from.is_some_and(|load| {
                            let is_link = load.offset >= layout.leaf;
                            load.object == open.descent.last && is_link && !step.write
                        }) =>
                    {
                        let offset = from.map_or(layout.leaf, |load| load.offset);
                        parents.insert(step.object, open.descent.last);
                        open.follow(index_32(index), offset, step.object, layout);
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
        let fans = Fans::new(&closed, fan_out);
        for mut open in closed {
            open.descent.rank = fans.rank(&open.descent, is_inner(open.descent.last));
            // A map that grows gets a root above its root: it had a part of its entries before.
            for _ in 0..MAX_HEIGHT {
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

/// How many children nodes have.
struct Fans {
    /// Visits, and the last link that was followed.
    seen: HashMap<u32, (u32, u32)>,
    usual: f64,
}

impl Fans {
    fn new(descents: &[Open], usual: f64) -> Fans {
        let mut seen: HashMap<u32, (u32, u32)> = HashMap::new();
        for &(node, link) in descents.iter().flat_map(|open| &open.descent.path) {
            let (visits, last) = seen.entry(node).or_default();
            *visits += 1;
            *last = link.max(*last);
        }
        Fans { seen, usual }
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
        let (mut rank, mut width) = (0.0, 1.0);
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
