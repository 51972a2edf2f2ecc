//! What the page knows of a traced process's memory.
//!
//! A picture has a dot for each page. Where that would be too many, a dot stands for several.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::columns::Columns;
use crate::analyses::pages::{Counts, MappingUse, bands, by_mapping};
use crate::analyses::units::sum;
use crate::profile::{PAGE, PARTS, Profile};
use crate::views::text::escape;

/// Room of the picture, in dots.
const ROOM: u64 = 24_000;
/// Room that pages take between two that are accessed, at most: `GAP` of `memory_pages.js`.
const GAP: u64 = 12;
/// Mappings that are drawn by themselves.
const MAPPINGS: usize = 120;
/// Accesses of a dot in a part of the run that the page has.
const CELLS: usize = 400_000;
/// Names of mappings that are put together.
const NAMES: usize = 8;

/// Accesses of dots by part of the run.
type Cells = BTreeMap<(u64, u8), Counts>;

/// The picture, for the header; `null` without.
pub(super) fn pages(profile: &Profile, columns: &mut Columns) -> Value {
    if profile.mappings.is_empty() {
        return Value::Null;
    }
    let all = by_mapping(profile);
    let mut order: Vec<usize> = (0..all.len()).filter(|&it| all[it].touched > 0).collect();
    order.sort_by_key(|&it| (Reverse(all[it].counts.all()), it));
    let few = order.split_off(order.len().min(MAPPINGS)).len();
    let mut is_drawn = vec![false; all.len()];
    order.iter().for_each(|&it| is_drawn[it] = true);
    let drawn = || all.iter().zip(&is_drawn).filter(|it| *it.1).map(|it| it.0);
    let room = |bits: u32| sum(drawn().map(|it| room_of(it, bits)));
    let bits = (0..u64::BITS).find(|&it| room(it) <= ROOM).unwrap_or(0);
    let mut lists: Vec<Cells>;
    let mut shift = 0;
    loop {
        lists = drawn().map(|it| cells(it, bits, shift)).collect();
        let number: usize = lists.iter().map(BTreeMap::len).sum();
        if number <= CELLS || PARTS >> shift <= 1 {
            break;
        }
        shift += 1;
    }
    let lists: Vec<Vec<[u64; 5]>> = lists.iter().map(items).collect();
    let parts = ["dot", "part", "loads", "stores", "blocks"];
    columns.lists("pages", parts, &lists);
    let counts = all.iter().map(|it| it.counts);
    let bands: Vec<Value> = { bands(&is_drawn).into_iter() }
        .map(|band| match is_drawn[band.start] {
            true => used(&all[band.start], bits),
            false => quiet(&all, band),
        })
        .collect();
    json!({
        "unit": 1_u64 << bits,
        "parts": PARTS >> shift,
        "events": profile.run.end,
        "mappings": all.len(),
        "few": few,
        "touched": sum(all.iter().map(|it| it.touched)),
        "traced": sum(all.iter().map(MappingUse::traced_pages)),
        "counts": numbers(counts.fold(Counts::default(), Counts::and)),
        "bands": bands,
    })
}

fn numbers(counts: Counts) -> [u64; 3] {
    [counts.loads, counts.stores, counts.blocks]
}

/// The dot of a page.
fn dot_of(mapping: &MappingUse<'_>, page: u64, bits: u32) -> u64 {
    page.saturating_sub(mapping.mapping.start / PAGE) >> bits
}

/// What a mapping takes of the picture if a dot stands for `1 << bits` pages.
fn room_of(mapping: &MappingUse<'_>, bits: u32) -> u64 {
    let (mut room, mut next) = (0_u64, 0);
    for it in mapping.uses {
        let dot = dot_of(mapping, it.page, bits);
        if dot >= next {
            room += 1 + (dot - next).min(GAP);
            next = dot + 1;
        }
    }
    room
}

fn cells(mapping: &MappingUse<'_>, bits: u32, shift: u32) -> Cells {
    let mut cells = Cells::new();
    for it in mapping.uses {
        let key = (dot_of(mapping, it.page, bits), it.part >> shift);
        let cell = cells.entry(key).or_default();
        *cell = cell.and(Counts::of(it));
    }
    cells
}

/// Dots are stored as distances.
fn items(cells: &Cells) -> Vec<[u64; 5]> {
    let mut before = 0;
    let item = |(&(dot, part), &counts): (&(u64, u8), &Counts)| {
        let step = dot - before;
        before = dot;
        let [loads, stores, blocks] = numbers(counts);
        [step, part.into(), loads, stores, blocks]
    };
    cells.iter().map(item).collect()
}

fn used(it: &MappingUse<'_>, bits: u32) -> Value {
    json!({
        "name": escape(&it.mapping.name),
        "kind": it.kind(),
        "traced": it.mapping.is_traced,
        "rights": escape(&it.mapping.rights),
        "first": it.mapping.start / PAGE,
        "pages": it.pages(),
        "dots": ((it.pages() - 1) >> bits) + 1,
        "touched": it.touched,
        "counts": numbers(it.counts),
    })
}

/// What was not traced or not accessed, and what has few accesses, put together.
fn quiet(all: &[MappingUse<'_>], band: Range<usize>) -> Value {
    let all = &all[band];
    let pages =
        |of: fn(&&MappingUse<'_>) -> bool| sum(all.iter().filter(of).map(MappingUse::pages));
    let of_one = all.chunk_by(|a, b| a.mapping.name == b.mapping.name);
    let name = |all: &[MappingUse<'_>]| {
        let mut kinds: Vec<&str> = all.iter().map(MappingUse::kind).collect();
        kinds.sort_unstable_by(|a, b| b.cmp(a));
        kinds.dedup();
        let name = format!("{} {}", escape(&all[0].mapping.name), kinds.join(", "));
        name.trim_end().to_owned()
    };
    let mut names: Vec<String> = of_one.map(name).collect();
    let others = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    json!({
        "names": names,
        "others": others,
        "few": all.iter().filter(|it| it.touched > 0).count(),
        "untraced": pages(|it| it.touched == 0 && !it.mapping.is_traced),
        "untouched": pages(|it| it.touched > 0 || it.mapping.is_traced),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{self, profile};
    use crate::profile::{Mapping, PageUse};

    fn with(mappings: Vec<Mapping>, pages: Vec<PageUse>) -> Profile {
        Profile {
            mappings,
            pages,
            ..profile()
        }
    }

    fn used_page(page: u64, part: u8) -> PageUse {
        PageUse {
            page,
            part,
            loads: 1,
            stores: 0,
            blocks: 0,
        }
    }

    #[test]
    fn a_picture_has_bands_with_and_without_accesses() {
        let (mappings, uses) = test_profile::pages();
        let head = pages(&with(mappings, uses), &mut Columns::default());
        assert_eq!((&head["unit"], &head["parts"]), (&json!(1), &json!(64)));
        assert_eq!(head["counts"], json!([1137, 21, 2]));
        assert_eq!((&head["touched"], &head["traced"]), (&json!(4), &json!(36)));
        let bands = head["bands"].as_array().expect("a list");
        assert_eq!(bands.len(), 5);
        assert_eq!(
            (&bands[1]["kind"], &bands[1]["dots"]),
            (&json!("data"), &json!(1))
        );
        assert_eq!(
            (&bands[3]["first"], &bands[3]["touched"]),
            (&json!(0x500), &json!(3))
        );
        let last = &bands[4];
        assert_eq!(
            last["names"],
            json!(["lib\\u{1b}[31mc.so.6 text", "[stack]"])
        );
        assert_eq!(
            (&last["untraced"], &last["untouched"]),
            (&json!(289), &json!(0))
        );
        assert_eq!(pages(&profile(), &mut Columns::default()), Value::Null);
    }

    #[test]
    fn a_large_picture_has_fewer_dots_and_parts() {
        let mapping = |first: u64, pages: u64| Mapping {
            start: first * PAGE,
            end: (first + pages) * PAGE,
            is_traced: true,
            ..Mapping::default()
        };
        // All in each part: 64 * 16,000 cells.
        let dense = (0..16_000).flat_map(|page| (0..PARTS).map(move |part| used_page(page, part)));
        let head = pages(
            &with(vec![mapping(0, 16_000)], dense.collect()),
            &mut Columns::default(),
        );
        assert_eq!((&head["unit"], &head["parts"]), (&json!(1), &json!(16)));
        // Far from each other: each takes 13 dots of room.
        let far = (0..1 << 20).map(|it| used_page(it << 20, 0)).collect();
        let head = pages(
            &with(vec![mapping(0, 1 << 40)], far),
            &mut Columns::default(),
        );
        let unit = head["unit"].as_u64().expect("a number");
        assert!(unit > 1 << 20, "{unit}");
        assert_eq!(head["bands"][0]["touched"], 1 << 20);
        // More mappings than are drawn: those with the fewest accesses are put together.
        let mappings = (0..1000).map(|it| mapping(2 * it, 1)).collect();
        let uses = (0..1000).flat_map(|it| {
            (0..if it < 500 { 1 } else { 2 }).map(move |part| used_page(2 * it, part))
        });
        let head = pages(&with(mappings, uses.collect()), &mut Columns::default());
        assert_eq!(
            (&head["few"], &head["mappings"]),
            (&json!(880), &json!(1000))
        );
        let bands = head["bands"].as_array().expect("a list");
        assert_eq!(bands.len(), MAPPINGS + 2);
        assert_eq!(
            (&bands[0]["few"], &bands[1]["touched"]),
            (&json!(500), &json!(1))
        );
    }

    #[test]
    fn the_whole_of_memory_has_a_picture() {
        let end = u64::MAX / PAGE;
        let mapping = Mapping {
            start: 0,
            end: end * PAGE,
            ..Mapping::default()
        };
        let uses = vec![used_page(0, 0), used_page(end - 1, 63)];
        let head = pages(&with(vec![mapping], uses), &mut Columns::default());
        assert_eq!(
            (&head["unit"], &head["bands"][0]["dots"]),
            (&json!(1), &json!(end))
        );
    }
}
