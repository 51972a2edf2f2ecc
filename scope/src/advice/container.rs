//! Maps of `ctree` in the place of std's and of search trees of the program's own.
//!
//! A lookup in a `BTreeMap` goes through nodes of at most eleven entries. [`descents`] finds
//! lookups in the trace; the links that they follow say where in the order of keys they end.
//! [`nodes`] says which lines the same lookup reads in another map.
//!
//! [`walks`] finds what goes from entry to entry. Other accesses stay where they are. Whether the
//! next key depends on what was found cannot be seen in accesses: lookups are taken to be
//! independent.

mod boxes;
mod chains;
mod descents;
mod nodes;
mod others;
mod own;
mod walks;

use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use descents::{CAPACITY, Descents, Layout, Links, Part};
use nodes::{Entries, Keys, Kind as Tree, Tree as Map};
pub(super) use others::ideas;
use walks::Walks;

use super::code::text;
use super::dense::NEW_MEMORY;
use super::{Candidate, Context, Kind, site_type};
use crate::analyses::replay::trace::{Step, Trace};
use crate::analyses::replay::{PlacedAccess, Rewrite, Work, narrow};
use crate::analyses::units::{self, ratio, rounded};
use crate::types::parts;

/// Fewer lookups in the windows show nothing.
const MIN_LOOKUPS: usize = 16;
/// Fewer entries that walks read show nothing.
const MIN_WALKED: u32 = 1024;
/// Lookups follow each other at once in this part at least, if a batch could make them.
const CONSECUTIVE: f64 = 0.5;
/// A map is finished if so many of the lookups come after the last change.
const FINISHED: f64 = 0.5;
/// With so many of them, what it is built from can be collected into a frozen map at once.
const AT_ONCE: f64 = 0.95;
/// Nanoseconds for an entry that goes from a `BTreeMap` into a frozen map: 19 for 2^14 entries, 72
/// from 2^20 on (a virtual Zen 5, 23 November 2026).
const FREEZE_NS: f64 = 72.0;
/// Larger keys, values and maps are not believed.
const MAX_BYTES: u64 = 1 << 16;
const MAX_COUNT: f64 = (1u64 << 36) as f64;
/// From the memory of one map to that of the next.
const MAP_BYTES: u64 = 1 << 36;
const LINE: u8 = 64;
/// Lines that a search compares, or asks for, in the time of a node of a branch-free search: a
/// lookup in a `CTreeMap` of 2^14 entries took 15.3 ns for 24 lines where a node took 2.53.
const LINES_A_NODE: f64 = 4.0;
/// The same in a `FrozenCTreeMap`: 9.2 ns for 8 lines.
const FROZEN_LINES_A_NODE: f64 = 2.2;
/// A node of a branch-free search takes some ten cycles. On a loud machine calibration once said 15
/// ns, and 2.8 an hour later.
const MAX_NODE_NS: f64 = 3.0;
/// Such a line takes some ten instructions, an access of other code four.
const ROOM: u8 = 2;

/// Nobody changes a map with a smaller part of the accesses.
const MIN_PART: f64 = 0.05;

/// For std's B-trees that the program uses much.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let mut names: Vec<&str> = Vec::new();
    for site in accessed_sites(context.trace) {
        let name = site_type(context.profile, site).filter(|name| !names.contains(name));
        names.extend(name);
    }
    let used = names
        .into_iter()
        .filter_map(|name| Used::new(context, name));
    let trees = own::trees(context);
    let known: Vec<u32> = trees.iter().flat_map(|it| it.sites.clone()).collect();
    let lists = chains::lists(context, &known);
    let used = used.chain(trees).chain(lists);
    let maps = used.flat_map(|used| used.candidates(context));
    maps.chain(boxes::candidates(context)).collect()
}

/// Sites with at least [`MIN_PART`] of the accesses. A search in caches waits for branches, not for
/// memory.
fn accessed_sites(trace: &Trace) -> Vec<u32> {
    let mut accesses: BTreeMap<u32, u64> = BTreeMap::new();
    for object in &trace.objects {
        *accesses.entry(object.site).or_default() += u64::from(object.accesses);
    }
    let least = MIN_PART * trace.steps.len() as f64;
    let sites = accesses
        .into_iter()
        .filter(|&(_, of_site)| of_site as f64 >= least);
    sites.map(|(site, _)| site).collect()
}

/// A type of maps, and how the program uses it.
struct Used {
    is_set: bool,
    /// What it is called, with its size.
    whole: String,
    /// What another map takes the place of, as a comment of code says it.
    instead_of: String,
    sites: Vec<u32>,
    entries: Entries,
    layout: Layout,
    descents: Descents,
    /// Entries of each map.
    count: f64,
    /// Whether lookups are known to be of one key, not of the next one.
    is_exact: bool,
    walks: Walks,
}

impl Used {
    fn new(context: &Context<'_>, name: &str) -> Option<Used> {
        let profile = context.profile;
        let (path, args) = parts(name)?;
        let is_set = match path.rsplit("::").next()? {
            "BTreeMap" => false,
            "BTreeSet" => true,
            _ => return None,
        };
        let of_type = |&site: &u32| site_type(profile, site) == Some(name);
        let all = 0..u32::try_from(profile.sites.len()).ok()?;
        let sites: Vec<u32> = all.filter(of_type).collect();
        let known = |site: u32| profile.sites.get(site as usize);
        let of = profile
            .types
            .get(known(*sites.first()?)?.type_id? as usize)?;
        let field = |wanted: &str| {
            let found = of.fields.iter().find(|field| field.name == wanted)?;
            let start = u32::try_from(found.offset).ok()?;
            Some(start..start.checked_add(u32::try_from(found.size).ok()?)?)
        };
        let each = |bytes: &Range<u32>| (bytes.end - bytes.start) / CAPACITY;
        let keys = field("keys")?;
        let leaf = u32::try_from(of.size?).ok()?;
        let layout = Layout {
            key: each(&keys),
            keys,
            values: field("vals").unwrap_or(0..0),
            links: Links::Behind(leaf),
        };
        let entries = Entries {
            keys: keys_of(args.first()?),
            key: u64::from(layout.key),
            value: u64::from(each(&layout.values)),
        };
        let is_inner = |&site: &u32| known(site).is_some_and(|it| it.largest > u64::from(leaf));
        let inner: Vec<u32> = sites.iter().copied().filter(is_inner).collect();
        let chunks = |sites: &[u32]| -> f64 {
            let sites = sites.iter().filter_map(|&site| known(site));
            sites.map(|site| site.peak_chunks as f64).sum()
        };
        let (nodes, inners) = (chunks(&sites), chunks(&inner));
        let fan_out = (nodes - 1.0) / inners.max(1.0);
        let is_sane = entries.key.max(entries.value) <= MAX_BYTES && fan_out > 1.0;
        if entries.key == 0 || !is_sane {
            return None;
        }
        let mut descents = Descents::find(context.trace, &layout, [&sites, &inner], fan_out);
        let walks = Walks::find(context.trace, &layout, &sites, &mut descents);
        let maps = descents.roots.len().max(1) as f64;
        let count = (nodes * (fan_out - 1.0) / maps).clamp(1.0, MAX_COUNT);
        let noun = if is_set { "Set" } else { "Map" };
        let is_used = descents.list.len() >= MIN_LOOKUPS || walks.entries >= MIN_WALKED;
        is_used.then(|| Used {
            is_set,
            whole: format!("`{name}` of {} entries", units::count(rounded(count))),
            instead_of: format!("std::collections::BTree{noun}"),
            sites,
            entries,
            layout,
            is_exact: 2 * descents.ranges < descents.list.len(),
            descents,
            count,
            walks,
        })
    }

    fn candidates<'c>(self, context: &'c Context<'c>) -> Vec<Candidate<'c>> {
        let used = Rc::new(self);
        let noun = if used.is_set { "Set" } else { "Map" };
        let whole = &used.whole;
        let candidate = |what: String, code: String, wrong_if: &str, new: New| Candidate {
            kind: Kind::Container,
            sites: used.waiting_first(context),
            what,
            code: Some(code),
            cost_ns: 0.0,
            break_even: None,
            wrong_if: wrong_if.to_owned(),
            rewrite: Box::new(Elsewhere::new(Rc::clone(&used), new, context)),
        };
        let package = text("ctree", &[]);
        let import = format!(
            "{package}use ctree::CTree{noun}; // for {}",
            used.instead_of
        );
        let mut found = vec![candidate(
            format!(
                "make the {whole} a `CTree{noun}`: larger nodes, of which a lookup waits for fewer"
            ),
            import.clone(),
            "each key depends on what was found before, so that lookups cannot overlap, or keys \
             are expensive to compare",
            New::default(),
        )];
        if used.is_exact && used.descents.consecutive() >= CONSECUTIVE {
            let call = match used.is_set {
                true => "let mut found = [false; 64];\nset.contains_many(&keys, &mut found);",
                false => "let mut found = [None; 64];\nmap.get_many(&keys, &mut found);",
            };
            let batch = New {
                is_batch: true,
                ..New::default()
            };
            found.push(candidate(
                format!(
                    "make the {whole} a `CTree{noun}` and look up 64 keys at a time: lookups \
                     follow each other at once, and a batch waits for all of them together"
                ),
                format!("{import}\n{call}"),
                "each key depends on what was found before: the keys of a batch have to be known",
                batch,
            ));
        }
        let from = used.descents.last_write.map_or(0, |last| last + 1);
        let lookups = used.descents.reading().count();
        let later = { used.descents.reading() }.filter(|it| it.steps.start as usize >= from);
        let later = ratio(later.count() as u64, lookups as u64);
        let is_std = matches!(used.layout.links, Links::Behind(_));
        if is_std && later >= FINISHED {
            let frozen = New {
                kind: Tree::Frozen,
                from,
                ..New::default()
            };
            let maps = used.descents.roots.len() as f64;
            let name = if used.is_set { "set" } else { "map" };
            found.push(Candidate {
                // What builds the one may as well build the other.
                cost_ns: if later < AT_ONCE {
                    FREEZE_NS * used.count * maps
                } else {
                    0.0
                },
                break_even: Some(format!(
                    "once for each {name} that is built; see that it is looked up as often as it \
                     has entries"
                )),
                ..candidate(
                    format!("freeze the {whole} once it is built: nothing changes it afterwards"),
                    format!(
                        "{package}let {name}: ctree::FrozenCTree{noun}<{}> = \
                         {name}.into_iter().collect();",
                        if used.is_set { "_" } else { "_, _" }
                    ),
                    "the map changes at times that the windows do not show",
                    frozen,
                )
            });
        }
        found
    }

    /// The sites, and first the one that the program waits for longest.
    fn waiting_first(&self, context: &Context<'_>) -> Vec<u32> {
        let mut sites = context.waiting_sites();
        sites.retain(|site| self.sites.contains(site));
        let rest = self.sites.iter().filter(|site| !sites.contains(site));
        let rest: Vec<u32> = rest.copied().collect();
        sites.extend(rest);
        sites
    }
}

/// How `ctree` compares keys of this type.
fn keys_of(name: &str) -> Keys {
    const INTEGERS: [&str; 11] = [
        "u8", "u16", "u32", "u64", "usize", "i8", "i16", "i32", "i64", "isize", "char",
    ];
    const HEADED: [&str; 10] = [
        "String",
        "&str",
        "Box<str>",
        "Vec<u8>",
        "&[u8]",
        "Box<[u8]>",
        "u128",
        "i128",
        "TotalF64",
        "TotalF32",
    ];
    let members = name.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let is_tuple = members.is_some_and(|members| {
        let mut members = members.split(',');
        members.all(|member| INTEGERS.contains(&member.trim()))
    });
    match crate::types::shorten(name) {
        name if INTEGERS.contains(&&*name) => Keys::Integers,
        name if is_tuple || HEADED.contains(&&*name) => Keys::Heads,
        _ => Keys::Others,
    }
}

/// What takes the place of a map.
#[derive(Clone, Copy, Debug)]
struct New {
    kind: Tree,
    is_batch: bool,
    /// The first step after the change.
    from: usize,
}

impl Default for New {
    fn default() -> New {
        New {
            kind: Tree::Changing,
            is_batch: false,
            from: 0,
        }
    }
}

/// Lookups in another map.
struct Elsewhere {
    used: Rc<Used>,
    new: New,
    tree: Map,
    /// Nanoseconds of a node of a branch-free search.
    node_ns: f64,
    /// Nanoseconds of an access of the program.
    access_ns: f64,
    /// The leaf that a walk is at.
    walked: u64,
}

impl Elsewhere {
    fn new(used: Rc<Used>, new: New, context: &Context<'_>) -> Elsewhere {
        let is_mixed = new.kind == Tree::Changing && !used.walks.are_in_row();
        let tree = Map::new(used.entries, new.kind, used.count, is_mixed);
        Elsewhere {
            used,
            new,
            tree,
            node_ns: { context.machine.search.branch_free_node_ns }.min(MAX_NODE_NS),
            access_ns: context.models[0].access_ns,
            walked: 0,
        }
    }

    /// Where the map begins that has this root today.
    fn base(&self, root: u32) -> u64 {
        let roots = &self.used.descents.roots;
        let number = roots.binary_search(&root).unwrap_or_default();
        NEW_MEMORY + number as u64 * MAP_BYTES
    }

    /// Where a step on the node goes that a lookup has ended at.
    fn end(&self, number: u32, step: &Step) -> PlacedAccess {
        let Layout { keys, values, .. } = &self.used.layout;
        let entries = self.used.entries;
        let lookup = &self.used.descents.list[number as usize];
        let within = |from: u32, each: u64| {
            let offset = u64::from(step.offset.saturating_sub(from));
            let more = match self.used.layout.links {
                Links::Behind(_) => i64::try_from(offset / each.max(1)).unwrap_or_default(),
                Links::At(_) => 0,
            };
            (more - i64::from(lookup.slot), offset % each.max(1))
        };
        let address = if self.used.layout.is_value(step.offset) {
            let (more, offset) = within(values.start, entries.value);
            self.tree.value(lookup.rank, more) + offset
        } else if keys.contains(&step.offset) {
            let (more, offset) = within(keys.start, entries.key);
            self.tree.key(lookup.rank, more) + offset
        } else {
            self.tree.header(lookup.rank)
        };
        // No branch of a batch depends on where a search ends.
        let work = match self.new.is_batch && !lookup.is_changing {
            true => Work::Own {
                ns: narrow(self.access_ns),
                accesses: 1,
            },
            false => Work::Usual,
        };
        PlacedAccess {
            after: true,
            work,
            ..PlacedAccess::at(self.base(lookup.root) + address, step)
        }
    }

    /// Where a walk's step goes. Only the first one in a leaf has to find the leaf.
    fn walk(&mut self, entry: u32, step: &Step) -> PlacedAccess {
        let Layout { keys, values, .. } = &self.used.layout;
        let entries = self.used.entries;
        let (rank, root) = self.used.walks.rank(entry, self.used.count);
        let leaf = self.base(root) + self.tree.leaf(rank);
        let is_next = std::mem::replace(&mut self.walked, leaf) != leaf;
        let within = |from: u32, each: u64| u64::from(step.offset - from) % each.max(1);
        let address = if values.contains(&step.offset) {
            self.tree.value(rank, 0) + within(values.start, entries.value)
        } else if keys.contains(&step.offset) {
            self.tree.key(rank, 0) + within(keys.start, entries.key)
        } else if is_next {
            self.tree.header(rank)
        } else {
            return PlacedAccess::nowhere();
        };
        PlacedAccess {
            after: is_next,
            ..PlacedAccess::at(self.base(root) + address, step)
        }
    }
}

impl Rewrite for Elsewhere {
    fn places(&mut self, index: usize, step: &Step, into: &mut Vec<PlacedAccess>) {
        let part = self.used.descents.parts[index];
        match part {
            _ if index < self.new.from => into.push(PlacedAccess::unchanged(step)),
            Part::Other => into.push(PlacedAccess::unchanged(step)),
            Part::Search => into.push(PlacedAccess::nowhere()),
            Part::Gone => {}
            Part::Key => into.push(PlacedAccess {
                after: true,
                ..PlacedAccess::unchanged(step)
            }),
            Part::End(number) => into.push(self.end(number, step)),
            Part::Walk(entry) => into.push(self.walk(entry, step)),
            Part::Arrival(number) => {
                let lookup = &self.used.descents.list[number as usize];
                let base = self.base(lookup.root);
                let is_batch = self.new.is_batch && !lookup.is_changing;
                let waits = self.tree.lookup(lookup.rank, is_batch);
                let (lines, accesses) = match (self.new.kind, is_batch) {
                    (_, true) => (LINES_A_NODE, 1),
                    (Tree::Changing, false) => (LINES_A_NODE, ROOM),
                    (Tree::Frozen, false) => (FROZEN_LINES_A_NODE, ROOM),
                };
                let work = Work::Own {
                    ns: narrow(self.node_ns / lines),
                    accesses,
                };
                for (depth, lines) in waits.into_iter().enumerate() {
                    for (at, line) in lines.into_iter().enumerate() {
                        into.push(PlacedAccess {
                            address: base + line,
                            size: LINE,
                            after: at == 0 && depth > 0 && !is_batch,
                            work,
                        });
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
