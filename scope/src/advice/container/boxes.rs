//! Boxes that a table leads to: their contents in the table itself, and keys beside those of heaps.
//!
//! A table is known by its loads, not by the name of its type: compilers make one function of those
//! that do the same for vectors of different pointers.

use std::collections::{HashMap, HashSet};

use crate::advice::code::{Language, Object};
use crate::advice::dense::{NEW_MEMORY, chunk, ranks};
use crate::advice::ideas::idea;
use crate::advice::{Candidate, Context, Item, Kind, site_type};
use crate::analyses::replay::trace::{NONE, Step};
use crate::analyses::replay::{PlacedAccess, Rewrite};
use crate::analyses::units::{bytes, ratio};

/// A pointer is one place of a table.
const PLACE: u32 = 8;
/// Larger contents are not moved from place to place.
const MAX_CONTENTS: u64 = 256;
/// Of the pointers to boxes that lie in the heap, so many have to lie in tables.
const MOSTLY: f64 = 0.9;
/// Fewer loads show nothing.
const MIN_LOADS: u64 = 64;
/// Larger tables are apart from each other.
const SMALL_TABLE: u64 = 1 << 12;
const LARGE_APART: u64 = 1 << 34;
/// Where contents begin among what changes place in new memory.
const TABLES: u64 = NEW_MEMORY + (1 << 57);
const LARGE_TABLES: u64 = NEW_MEMORY + (1 << 58);
/// Nobody changes a table that the program waits less for.
const MIN_SHARE: f64 = 0.05;
/// Of the ways from place to place, so many go between a parent and its children in a heap.
const HEAP: f64 = 0.25;
/// The first places are near each other in any order.
const FIRST_PLACES: u32 = 8;

/// A table and a place in it.
type Place = (u32, u32);

/// Boxes of one type, and the tables that lead to them.
struct Boxes {
    sites: Vec<u32>,
    tables: Vec<u32>,
    /// Bytes of what is in a box.
    contents: u64,
    /// The first place of each box that is known.
    places: HashMap<u32, Place>,
}

impl Boxes {
    /// Those that the program waits for.
    fn all(context: &Context<'_>) -> Vec<Boxes> {
        let types = context.own_types().into_iter();
        let types = types.filter(|sites| context.share(sites) >= MIN_SHARE);
        types
            .filter_map(|sites| Boxes::new(context, sites))
            .collect()
    }

    fn new(context: &Context<'_>, sites: Vec<u32>) -> Option<Boxes> {
        let (profile, trace) = (context.profile, context.trace);
        let first = *sites.first()?;
        let known = |&site: &u32| profile.sites.get(site as usize);
        let contents = known(&first)?.largest;
        let is_one_size = |it: &u32| {
            known(it).is_some_and(|it| (it.smallest, it.largest) == (contents, contents))
        };
        let is_box = site_type(profile, first)?.starts_with("Box<");
        if !is_box || contents > MAX_CONTENTS || !sites.iter().all(is_one_size) {
            return None;
        }
        if Language::of(profile, &sites) != Language::Rust {
            return None;
        }
        let (mut tables, mut places) = (Vec::new(), HashMap::new());
        let [mut all, mut from_tables] = [0u64; 2];
        let of_boxes = |object: u32| {
            trace
                .object(object)
                .is_some_and(|it| sites.contains(&it.site))
        };
        for load in trace.steps.iter().filter(|step| of_boxes(step.target)) {
            let Some(holder) = trace.object(load.object).filter(|_| !load.write) else {
                continue;
            };
            all += 1;
            let name = site_type(profile, holder.site).unwrap_or_default();
            if !name.starts_with("Vec<") || load.offset % PLACE != 0 {
                continue;
            }
            from_tables += 1;
            if !tables.contains(&holder.site) {
                tables.push(holder.site);
            }
            let place = (load.object, load.offset / PLACE);
            places.entry(load.target).or_insert(place);
        }
        (all >= MIN_LOADS && ratio(from_tables, all) >= MOSTLY).then_some(Boxes {
            sites,
            tables,
            contents,
            places,
        })
    }

    fn is_table(&self, context: &Context<'_>, step: &Step) -> bool {
        self.tables.contains(&context.trace.site(step))
    }

    /// Whether the program goes through the tables as through heaps: between places and those of
    /// their children.
    fn are_heaps(&self, context: &Context<'_>) -> bool {
        let (mut last, mut ways, mut of_heaps) = (None::<Place>, 0u64, 0u64);
        for step in { context.trace.steps.iter() }.filter(|step| self.is_table(context, step)) {
            let (table, place) = (step.object, step.offset / PLACE);
            let before = last.replace((table, place));
            let Some((_, before)) = before.filter(|&it| it.0 == table && it.1 != place) else {
                continue;
            };
            let (less, greater) = (before.min(place), before.max(place));
            ways += 1;
            let is_child = less >= FIRST_PLACES && (greater - 1) / 2 == less;
            of_heaps += u64::from(is_child);
        }
        ways >= MIN_LOADS && ratio(of_heaps, ways) >= HEAP
    }

    fn name<'c>(&self, context: &'c Context<'_>) -> &'c str {
        Object::new(context, &self.sites).name()
    }
}

/// Contents in the tables, in the place of pointers to boxes.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let all = Boxes::all(context).into_iter();
    let candidate = |boxes: Boxes| Candidate {
        kind: Kind::Smaller,
        sites: boxes.sites.clone(),
        what: format!(
            "keep each {0} in the vector itself, not in a box: {1} in the place of a pointer, \
             and no box to wait for",
            boxes.name(context),
            bytes(boxes.contents)
        ),
        code: Some(format!(
            "contents: Vec<{0}>, // in the place of `Vec<Box<{0}>>`",
            boxes.name(context)
        )),
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "something else holds addresses of what is in the boxes".to_owned(),
        rewrite: Box::new(Inline::new(context, &boxes)),
    };
    all.map(candidate).collect()
}

/// Heaps that compare what is in boxes.
pub(super) fn ideas(context: &Context<'_>) -> Vec<Item> {
    let heaps = Boxes::all(context).into_iter();
    let heaps = heaps.filter(|boxes| boxes.are_heaps(context));
    let of_heap = |boxes: Boxes| {
        let what = format!(
            "a heap compares what is in boxes of {}, and waits for them: keep the key beside the \
             box",
            boxes.name(context)
        );
        let code = "heap.push((node.key, node)); // the box second: keys are compared first";
        Item {
            code: Some(code.to_owned()),
            wrong_if: "keys are large, or change while the heap holds them".to_owned(),
            ..idea(context, Kind::Idea, boxes.sites, what)
        }
    };
    heaps.map(of_heap).collect()
}

/// What becomes of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    None,
    /// An access of contents, or of a pointer that leads to them.
    At(u64),
    /// A pointer that goes from place to place, and with it contents.
    Copy(u64),
}

/// Contents in tables.
struct Inline {
    /// By step.
    changes: Vec<Change>,
    contents: u8,
}

impl Inline {
    /// O(steps).
    fn new(context: &Context<'_>, boxes: &Boxes) -> Inline {
        let (trace, contents) = (context.trace, boxes.contents);
        let bases = bases(context, boxes);
        let address = |(table, place): Place| {
            let base = bases.get(&table)?;
            Some(base + u64::from(place) * contents)
        };
        let led: HashSet<u32> = trace.steps.iter().map(|step| step.via).collect();
        let mut places = boxes.places.clone();
        let changes = (0..NONE).zip(&trace.steps).map(|(index, step)| {
            let site = trace.site(step);
            let place = (step.object, step.offset / PLACE);
            if boxes.tables.contains(&site) {
                let is_pointer =
                    { trace.object(step.target) }.is_some_and(|it| boxes.sites.contains(&it.site));
                if is_pointer {
                    places.insert(step.target, place);
                }
                return match address(place) {
                    Some(at) if is_pointer && !step.write && led.contains(&index) => Change::At(at),
                    Some(at) if is_pointer || step.write => Change::Copy(at),
                    _ => Change::None,
                };
            }
            let of_box = boxes.sites.contains(&site).then_some(step.object);
            let place = of_box.and_then(|it| address(*places.get(&it)?));
            place.map_or(Change::None, |at| Change::At(at + u64::from(step.offset)))
        });
        Inline {
            changes: changes.collect(),
            contents: u8::try_from(contents).unwrap_or(u8::MAX),
        }
    }
}

/// Where the new tables begin: small ones one behind the other, large ones apart.
fn bases(context: &Context<'_>, boxes: &Boxes) -> HashMap<u32, u64> {
    let room = |table: u32| {
        let places = context.chunks.bytes(table) / PLACE;
        chunk(u64::from(places) * boxes.contents)
    };
    let ranks = ranks(context, &boxes.tables);
    let is_small = |&table: &u32| room(table) <= SMALL_TABLE;
    let small: Vec<u64> = { ranks.keys() }
        .copied()
        .filter(is_small)
        .map(room)
        .collect();
    let mean = small
        .iter()
        .sum::<u64>()
        .div_ceil(small.len().max(1) as u64);
    let base = |(&table, &rank): (&u32, &u64)| match is_small(&table) {
        true => (table, TABLES + rank * mean),
        false => (table, LARGE_TABLES + u64::from(table) * LARGE_APART),
    };
    ranks.iter().map(base).collect()
}

impl Rewrite for Inline {
    fn places(&mut self, index: usize, step: &Step, into: &mut Vec<PlacedAccess>) {
        into.push(match self.changes[index] {
            Change::None => PlacedAccess::unchanged(step),
            Change::At(address) => PlacedAccess::at(address, step),
            Change::Copy(address) => PlacedAccess {
                size: self.contents,
                ..PlacedAccess::at(address, step)
            },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{read, run, with_candidates};
    use super::*;
    use crate::advice::code::tests::assert_compiled;
    use crate::profile::{Access, Profile};

    const TABLE: u32 = 0;
    const BOX: u32 = 1;
    const BOXES: u64 = 4000;
    const CONTENTS: u64 = 48;
    const AT: u64 = 1 << 32;

    /// Where the contents of a place are: anywhere.
    fn contents(place: u64) -> u64 {
        AT + (1 << 30) + place * 1237 % BOXES * 4096
    }

    /// A pointer in the table, and what it leads to.
    fn visit(place: u64) -> [Access; 2] {
        let pointer = read(AT, TABLE, u32::try_from(8 * place).unwrap());
        let pointer = Access {
            pointer: contents(place),
            target: BOX,
            ..pointer
        };
        [pointer, read(contents(place), BOX, 16)]
    }

    fn boxes(places: impl Iterator<Item = u64>) -> Profile {
        let mut run = run(vec![places.flat_map(visit).collect()]);
        // The compiler has made one function of several, which has another's name.
        run.types[0].name = "Vec<Rc<Other>>".to_owned();
        run.types[0].fields.clear();
        run.types.push(run.types[0].clone());
        run.types[1].name = "Box<Child>".to_owned();
        for (site, (size, chunks)) in
            { run.sites.iter_mut() }.zip([(8 * BOXES, 1), (CONTENTS, BOXES)])
        {
            (site.smallest, site.largest, site.peak_chunks) = (size, size, chunks);
        }
        run.sites[1].type_id = Some(1);
        run
    }

    #[test]
    fn contents_go_to_the_places_of_their_boxes() {
        let places = || (0..BOXES / 2).map(|it| it * 7 % BOXES);
        with_candidates(&boxes(places()), |context, candidates| {
            let [candidate] = <[Candidate<'_>; 1]>::try_from(candidates).ok().unwrap();
            assert!(candidate.what.contains("Child in the vector itself"));
            let code = candidate.code.as_ref().expect("a line");
            assert_compiled(Language::Rust, code);
            let mut rewrite = candidate.rewrite;
            for (index, step) in context.trace.steps.iter().enumerate() {
                let mut into = Vec::new();
                rewrite.places(index, step, &mut into);
                let place = places().nth(index / 2).unwrap();
                let within = if index % 2 == 0 { 0 } else { 16 };
                let first = into[0].address - within;
                assert_eq!((first - LARGE_TABLES) % LARGE_APART, place * CONTENTS);
            }
            assert_eq!(ideas(context), []);
        });
    }

    #[test]
    fn heaps_compare_parents_and_children() {
        let down = |leaf: u64| {
            let up = std::iter::successors(Some(leaf), |it| it.checked_sub(1).map(|it| it / 2));
            let mut way: Vec<u64> = up.collect();
            way.reverse();
            way
        };
        let run = boxes((0..400).flat_map(|it| down(it * 7 % BOXES)));
        with_candidates(&run, |context, _| {
            let [idea] = <[Item; 1]>::try_from(ideas(context)).unwrap();
            assert!(idea.what.contains("beside the box"), "{}", idea.what);
        });
    }

    #[test]
    fn boxes_that_others_lead_to_stay() {
        let mut run = boxes(0..BOXES / 2);
        // As children of each other.
        for access in run.windows[0].accesses.iter_mut().skip(1).step_by(2) {
            (access.pointer, access.target) = (contents(access.address % BOXES), BOX);
        }
        with_candidates(&run, |context, candidates| {
            assert_eq!(candidates.len(), 0);
            assert_eq!(ideas(context), []);
        });
    }
}
