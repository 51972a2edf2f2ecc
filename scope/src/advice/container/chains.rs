//! Lists of the program's own in which it searches for a key: from one head, from element to
//! element, by pointers or by numbers in a table. Lists in order, skip lists and trees in tables.
//!
//! Whether the program compares keys is not seen in accesses. It is taken to, where it reads one
//! field of a whole number first, then what leads on, hardly anything else of the elements on the
//! way, and ends at ever other elements.

use std::collections::{HashMap, HashSet};

use super::descents::{Descent, Descents, Layout, Links, Part};
use super::nodes::{Entries, Keys};
use super::walks::{Walks, anywhere};
use super::{MAX_BYTES, MIN_LOOKUPS, Used, keys_of};
use crate::advice::code::{Language, Object};
use crate::advice::{Context, site_type};
use crate::analyses::replay::trace::{NONE, Step, index_32};
use crate::analyses::types::field_at;
use crate::analyses::units::{count, ratio, sum};
use crate::profile::{Field, Type};

/// Shorter numbers are labels.
const MIN_KEY: u64 = 4;
/// Shorter searches gain little.
const MIN_LENGTH: f64 = 6.0;
/// Of its reads, a field has so many in the way that makes it a key, or a link.
const MOSTLY: f64 = 0.9;
/// A key is read in so many of the visits: a skip list goes back in between.
const COMPARED: f64 = 0.4;
/// Values are read where a search ends: of so many of the elements on the way at most.
const FEW: f64 = 0.15;
/// Of the searches, so many end at different elements.
const DIFFERENT: f64 = 0.2;
/// Smaller tables are no structures.
const MIN_TABLE: u64 = 4096;

/// An object, and which of its elements.
type Element = (u32, u32);

/// The accesses to one element, one after the other.
struct Visit {
    element: Element,
    /// Steps of the element itself and of what it leads to.
    steps: Vec<u32>,
    /// Offsets in the element that are read: in this order.
    reads: Vec<u32>,
    is_writing: bool,
    window: usize,
}

/// Elements of one type.
struct Elements<'p> {
    sites: Vec<u32>,
    of: &'p Type,
    /// Bytes of an element; as many as there are in a node that stands alone.
    size: u32,
    is_table: bool,
    /// Sites of what only elements lead to.
    buffers: Vec<u32>,
}

/// What is read of elements on the way.
struct Fields<'p> {
    key: &'p Field,
    links: Vec<u64>,
}

/// The lists in whose place a map could be. `known`: sites of trees that are known by their links.
pub(super) fn lists(context: &Context<'_>, known: &[u32]) -> Vec<Used> {
    let tables = super::accessed_sites(context.trace).into_iter();
    let tables = tables.map(|site| vec![site]);
    let all = tables.chain(context.own_types()).filter(|sites| {
        Language::of(context.profile, sites) == Language::Rust
            && !sites.iter().any(|site| known.contains(site))
    });
    all.filter_map(|sites| list(context, sites)).collect()
}

fn list(context: &Context<'_>, sites: Vec<u32>) -> Option<Used> {
    let elements = Elements::new(context, sites)?;
    let visits = elements.visits(context);
    let fields = Fields::new(context, &elements, &visits)?;
    let searches = searches(&visits, elements.is_table);
    let ends: HashSet<Element> = { searches.iter() }
        .filter_map(|search| Some(search.last()?.element))
        .collect();
    let all = searches.len();
    let length = searches.iter().map(|it| it.len()).sum::<usize>() as f64 / all.max(1) as f64;
    let covered = ratio(
        sum(searches.iter().map(|it| it.len() as u64)),
        visits.len() as u64,
    );
    if all < MIN_LOOKUPS
        || length < MIN_LENGTH
        || covered < MOSTLY
        || (ends.len() as f64) < DIFFERENT * all as f64
    {
        return None;
    }
    let of_fields = { elements.of.fields.iter() }
        .filter(|field| field.offset != fields.key.offset && !fields.links.contains(&field.offset));
    let entries = Entries {
        keys: keys_of(&fields.key.type_name),
        key: fields.key.size,
        value: sum(of_fields.map(|field| field.size)),
    };
    if entries.key.max(entries.value) > MAX_BYTES {
        return None;
    }
    let name = Object::new(context, &elements.sites).name();
    let nodes = elements.count(context);
    Some(Used {
        is_set: entries.value == 0,
        whole: format!("list of {} `{name}`s", count(nodes)),
        instead_of: format!("the list of `{name}`, by `{}`", fields.key.name),
        entries,
        layout: Layout {
            keys: 0..0,
            key: 0,
            values: 0..0,
            links: Links::At([NONE; 2]),
        },
        descents: descents(context, &elements, &fields, &searches),
        count: nodes.max(1) as f64,
        sites: elements.sites,
        is_exact: false,
        walks: Walks::default(),
    })
}

impl<'p> Elements<'p> {
    fn new(context: &Context<'p>, sites: Vec<u32>) -> Option<Elements<'p>> {
        let (profile, trace) = (context.profile, context.trace);
        let first = profile.sites.get(*sites.first()? as usize)?;
        let of = profile.types.get(first.type_id? as usize)?;
        let is_table = site_type(profile, sites[0])?.starts_with("Vec<");
        let size = of.size?;
        let is_fit = match is_table {
            true => first.largest >= MIN_TABLE.max(size.saturating_mul(2)),
            false => first.largest >= size,
        };
        if !is_fit || size < 2 * MIN_KEY || of.fields.len() < 2 {
            return None;
        }
        // Who leads to what: elements alone lead to their buffers.
        let mut leads: HashMap<u32, [u64; 2]> = HashMap::new();
        for load in &trace.steps {
            let [to, from] = [load.target, load.object].map(|it| trace.object(it));
            if let Some(to) = to.filter(|to| !sites.contains(&to.site)) {
                let is_ours = from.is_some_and(|from| sites.contains(&from.site));
                leads.entry(to.site).or_default()[usize::from(is_ours)] += 1;
            }
        }
        let is_buffer = |[others, ours]: [u64; 2]| ratio(ours, ours + others) >= MOSTLY;
        let buffers = { leads.into_iter() }.filter(|&(_, counts)| is_buffer(counts));
        Some(Elements {
            buffers: buffers.map(|(site, _)| site).collect(),
            size: u32::try_from(size).ok()?,
            sites,
            of,
            is_table,
        })
    }

    fn element(&self, step: &Step) -> Element {
        let number = if self.is_table {
            step.offset / self.size
        } else {
            0
        };
        (step.object, number)
    }

    fn offset(&self, step: &Step) -> u32 {
        if self.is_table {
            step.offset % self.size
        } else {
            step.offset
        }
    }

    /// O(steps).
    fn visits(&self, context: &Context<'_>) -> Vec<Visit> {
        let trace = context.trace;
        let mut visits: Vec<Visit> = Vec::new();
        for (window, steps) in trace.windows().enumerate() {
            for index in steps {
                let step = &trace.steps[index];
                let site = trace.site(step);
                let last = visits.last_mut().filter(|it| it.window == window);
                if self.sites.contains(&site) {
                    let (element, offset) = (self.element(step), self.offset(step));
                    let is_new = last.is_none_or(|it| it.element != element);
                    if is_new {
                        visits.push(Visit {
                            element,
                            steps: Vec::new(),
                            reads: Vec::new(),
                            is_writing: false,
                            window,
                        });
                    }
                    let Some(visit) = visits.last_mut() else {
                        continue;
                    };
                    visit.steps.push(index_32(index));
                    visit.is_writing |= step.write;
                    if !step.write {
                        visit.reads.push(offset);
                    }
                } else if let Some(visit) = last.filter(|_| self.buffers.contains(&site)) {
                    visit.steps.push(index_32(index));
                    visit.is_writing |= step.write;
                }
            }
        }
        visits
    }

    /// How many there are.
    fn count(&self, context: &Context<'_>) -> u64 {
        let sites =
            || { self.sites.iter() }.filter_map(|&it| context.profile.sites.get(it as usize));
        match self.is_table {
            true => sum(sites().map(|site| site.largest / u64::from(self.size).max(1))),
            false => sum(sites().map(|site| site.peak_chunks)),
        }
    }
}

impl<'p> Fields<'p> {
    /// `None` if the program does not search by one key.
    fn new(context: &Context<'_>, elements: &Elements<'p>, visits: &[Visit]) -> Option<Fields<'p>> {
        let trace = context.trace;
        // By field: in how many visits it is read, the first or the last of all, as a pointer.
        let mut reads: HashMap<u64, [u64; 4]> = HashMap::new();
        let reading = || visits.iter().filter(|it| !it.is_writing);
        for visit in reading() {
            let of_offset = |&offset: &u32| field_at(elements.of, u64::from(offset));
            let mut read: Vec<u64> = Vec::new();
            for offset in { visit.reads.iter() }
                .filter_map(of_offset)
                .map(|it| it.offset)
            {
                if !read.contains(&offset) {
                    read.push(offset);
                }
            }
            for offset in &read {
                let [all, first, last, _] = reads.entry(*offset).or_default();
                *all += 1;
                *first += u64::from(read.first() == Some(offset));
                *last += u64::from(read.last() == Some(offset));
            }
            for &index in &visit.steps {
                let step = &trace.steps[index as usize];
                let is_own = elements.sites.contains(&trace.site(step));
                if is_own && trace.object(step.target).is_some() {
                    let field = field_at(elements.of, u64::from(elements.offset(step)))?;
                    reads.entry(field.offset).or_default()[3] += 1;
                }
            }
        }
        let leads_on = |&[all, _, last, pointers]: &[u64; 4]| {
            ratio(pointers, all) >= MOSTLY || ratio(last, all) >= MOSTLY
        };
        let first = { reads.iter() }
            .filter(|(_, [all, first, _, pointers])| {
                ratio(*first, *all) >= MOSTLY && *pointers == 0
            })
            .max_by_key(|&(offset, [all, ..])| (*all, *offset))?;
        let key = field_at(elements.of, *first.0)?;
        let is_number = matches!(keys_of(&key.type_name), Keys::Integers | Keys::Heads);
        let links: Vec<u64> = { reads.iter() }
            .filter(|(offset, counts)| **offset != key.offset && leads_on(counts))
            .filter(|(_, [all, ..])| ratio(*all, reading().count() as u64) >= FEW)
            .map(|(offset, _)| *offset)
            .collect();
        let values = { reads.iter() }
            .filter(|(offset, _)| **offset != key.offset && !links.contains(offset))
            .map(|(_, counts)| counts[0]);
        let is_read = ratio(first.1[0], reading().count() as u64) >= COMPARED;
        let few = ratio(sum(values), reading().count() as u64) <= FEW;
        let is_key = is_number && key.size >= MIN_KEY && is_read && few;
        (is_key && !links.is_empty()).then_some(Fields { key, links })
    }
}

/// The visits from head to head. A skip list comes back to its head until its first step on.
fn searches(visits: &[Visit], is_table: bool) -> Vec<&[Visit]> {
    let mut times: HashMap<Element, u64> = HashMap::new();
    for visit in visits {
        *times.entry(visit.element).or_default() += 1;
    }
    // A table that grows is another object then, with the same head.
    let mut most: HashMap<u32, (u64, u32)> = HashMap::new();
    for (&(object, number), &times) in &times {
        let of_object = most.entry(if is_table { object } else { NONE });
        let of_object = of_object.or_default();
        *of_object = (*of_object).max((times, if is_table { number } else { object }));
    }
    let is_head = |(object, number): Element| match is_table {
        true => most.get(&object).is_some_and(|it| it.1 == number),
        false => most.get(&NONE).is_some_and(|it| it.1 == object),
    };
    let heads: Vec<usize> = { visits.iter().enumerate() }
        .filter(|(_, visit)| is_head(visit.element))
        .map(|(at, _)| at)
        .collect();
    let is_start = |at: usize| {
        let before = at.checked_sub(1).map(|at| heads[at]);
        before.is_none_or(|before| {
            heads[at] - before > 2 || visits[heads[at]].window != visits[before].window
        })
    };
    let starts: Vec<usize> = (0..heads.len())
        .filter(|&at| is_start(at))
        .map(|at| heads[at])
        .collect();
    let ends = starts.iter().skip(1).copied().chain([visits.len()]);
    let of_window = |(start, end): (usize, usize)| {
        let window = visits[start].window;
        let len = visits[start..end]
            .iter()
            .take_while(|it| it.window == window)
            .count();
        &visits[start..start + len]
    };
    starts.iter().copied().zip(ends).map(of_window).collect()
}

/// Each search as a lookup, which ends anywhere in the order of keys: nothing says where.
fn descents(
    context: &Context<'_>,
    elements: &Elements<'_>,
    fields: &Fields<'_>,
    searches: &[&[Visit]],
) -> Descents {
    let trace = context.trace;
    let mut found = Descents {
        parts: vec![Part::Other; trace.steps.len()],
        ..Descents::default()
    };
    for (index, step) in trace.steps.iter().enumerate() {
        let site = trace.site(step);
        if elements.sites.contains(&site) || elements.buffers.contains(&site) {
            found.parts[index] = Part::Search;
            if step.write {
                found.last_write = Some(index);
            }
        }
    }
    for search in searches {
        let (Some(first), Some(last)) = (search.first(), search.last()) else {
            continue;
        };
        let number = index_32(found.list.len());
        // What an access takes is here mostly waiting for numbers of others, which is not seen.
        for &index in search.iter().skip(1).flat_map(|visit| &visit.steps) {
            found.parts[index as usize] = Part::Gone;
        }
        let steps = || search.iter().flat_map(|visit| &visit.steps);
        for &index in &last.steps {
            let step = &trace.steps[index as usize];
            let offset = u64::from(elements.offset(step));
            let field = field_at(elements.of, offset).map(|it| it.offset);
            let is_own = elements.sites.contains(&trace.site(step));
            let is_value = field
                .is_some_and(|field| field != fields.key.offset && !fields.links.contains(&field));
            if is_own && is_value {
                found.parts[index as usize] = Part::End(number);
            }
        }
        let (Some(&from), Some(&to)) = (steps().next(), steps().last()) else {
            continue;
        };
        found.parts[from as usize] = Part::Arrival(number);
        let is_changing = search.iter().any(|visit| visit.is_writing);
        let rank = anywhere(last.element.0, last.element.1);
        found.list.push(Descent::unseen(
            first.element.0,
            from..to + 1,
            is_changing,
            rank,
        ));
    }
    found.roots = found.list.iter().map(|it| it.root).collect();
    found.roots.sort_unstable();
    found.roots.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::super::ideas;
    use super::super::tests::{read, run, with_candidates};
    use crate::advice::code::{Language, tests::assert_compiled};
    use crate::advice::{Item, Kind};
    use crate::profile::{Access, Field, Profile};

    const TABLE: u32 = 0;
    const NODE: u64 = 32;
    const NODES: u64 = 4096;
    const AT: u64 = 1 << 32;

    fn field(node: u64, offset: u64) -> Access {
        read(
            AT,
            TABLE,
            u32::try_from(node % NODES * NODE + offset).unwrap(),
        )
    }

    /// A tree in a table, by numbers: key and link of each node on the way, and at last a value.
    fn search(number: u64, is_sum: bool) -> Vec<Access> {
        let mut accesses = Vec::new();
        let mut node = 0;
        for depth in 0..11 {
            let side = number >> depth & 1;
            accesses.push(field(node, 0));
            accesses.extend(is_sum.then(|| field(node, 8)));
            accesses.push(field(node, 16 + 4 * side));
            node = 2 * node + 1 + side;
        }
        accesses.extend([field(node, 0), field(node, 8)]);
        accesses
    }

    fn table(key: &str, searches: Vec<Vec<Access>>) -> Profile {
        let mut run = run(vec![searches.concat()]);
        let of = &mut run.types[0];
        let part = |(name, type_name, offset, size): (&str, &str, u64, u64)| Field {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            offset,
            size,
        };
        let fields = [
            ("key", key, 0, 8),
            ("value", "u64", 8, 8),
            ("left", "u32", 16, 4),
            ("right", "u32", 20, 4),
        ];
        (of.name, of.size) = ("Vec<Node>".to_owned(), Some(NODE));
        of.fields = fields.map(part).to_vec();
        run.sites.truncate(1);
        (run.sites[0].smallest, run.sites[0].largest) = (NODE * NODES, NODE * NODES);
        run.sites[0].peak_chunks = 1;
        run
    }

    fn searches(is_sum: bool) -> Vec<Vec<Access>> {
        let number = |it: u64| (it * 2_654_435_761) >> 7;
        (0..300).map(|it| search(number(it), is_sum)).collect()
    }

    #[test]
    fn a_tree_in_a_table_can_be_a_map() {
        with_candidates(&table("u64", searches(false)), |context, candidates| {
            let maps: Vec<_> = { candidates.into_iter() }
                .filter(|it| it.kind == Kind::Container)
                .collect();
            assert_eq!(maps.len(), 1);
            assert!(
                maps[0].what.contains("list of 4,096 `Node`s"),
                "{}",
                maps[0].what
            );
            let [idea] = <[Item; 1]>::try_from(ideas(context)).unwrap();
            for code in [&maps[0].code, &idea.code] {
                assert_compiled(Language::Rust, code.as_ref().expect("a line"));
            }
            let item = context.judge(maps.into_iter().next().unwrap());
            assert!(item.speedup.estimate > 1.0, "{item:?}");
        });
    }

    #[test]
    fn what_is_no_search_stays() {
        let is_silent = |run: &Profile| {
            with_candidates(run, |_, candidates| {
                assert!(candidates.iter().all(|it| it.kind != Kind::Container));
            });
        };
        // Keys that no map takes.
        is_silent(&table("f64", searches(false)));
        // A value of each node on the way.
        is_silent(&table("u64", searches(true)));
        // The same way each time.
        is_silent(&table("u64", vec![search(5, false); 300]));
    }
}
