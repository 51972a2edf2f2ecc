//! Pages with their accesses, for the picture in the page of `ccscope report` (MadT, figure 1).

use std::collections::{BTreeMap, HashMap};

use super::names::Names;
use super::reader::{Event, Row};
use super::wire;
use ccscope::profile::{Mapping, PAGE, PARTS, PageUse};

/// Pages of one event that are counted: those of the largest mapping that is traced.
const MOST_PAGES: u64 = (1 << 30) / PAGE;

/// Counts the accesses of each page in each part of a run, and finds what memory there was.
///
/// It takes memory for each page in each part of the run in which it is accessed.
#[derive(Debug)]
pub struct Pages {
    /// Of the whole run.
    events: u64,
    part: u8,
    /// Loads, stores and blocks of the current part, by page.
    now: HashMap<u64, [u64; 3]>,
    done: Vec<PageUse>,
    /// Memory that there was besides the mappings of the start: pages, and behind the last.
    made: BTreeMap<u64, u64>,
}

impl Pages {
    /// For a run of so many events.
    #[must_use]
    pub fn new(events: u64) -> Pages {
        Pages {
            events,
            part: 0,
            now: HashMap::new(),
            done: Vec::new(),
            made: BTreeMap::new(),
        }
    }

    /// Counts an event. They come in order.
    pub fn add(&mut self, event: &Event) {
        let part = part_of(event.order, self.events);
        if part > self.part {
            self.close();
            self.part = part;
        }
        match event.kind {
            wire::LOAD => self.count(event.address, event.len, 0),
            wire::STORE => self.count(event.address, event.len, 1),
            wire::FILL | wire::FETCH => self.count(event.address, event.len, 2),
            wire::COPY => {
                self.count(event.address, event.len, 2);
                self.count(event.from, event.len, 2);
            }
            wire::MALLOC | wire::CALLOC | wire::REALLOC | wire::MMAP | wire::MREMAP
                if event.address != 0 =>
            {
                let (first, last) = pages(event.address, event.len);
                put(&mut self.made, first, last + 1);
            }
            _ => {}
        }
    }

    fn count(&mut self, address: u64, len: u64, kind: usize) {
        if len == 0 {
            return;
        }
        let (first, last) = pages(address, len);
        for page in first..=last.min(first.saturating_add(MOST_PAGES)) {
            self.now.entry(page).or_default()[kind] += 1;
        }
    }

    /// The current part is over.
    fn close(&mut self) {
        let part = self.part;
        for (page, [loads, stores, blocks]) in self.now.drain() {
            self.done.push(PageUse {
                page,
                part,
                loads,
                stores,
                blocks,
            });
        }
    }

    /// The memory of the process by address, and its pages that were accessed. `is_traced` says
    /// whether accesses of a mapping are seen; what it answers `None` for is left out.
    #[must_use]
    pub fn finish(
        mut self,
        names: &Names,
        is_traced: impl Fn(&Row) -> Option<bool>,
    ) -> (Vec<Mapping>, Vec<PageUse>) {
        self.close();
        self.done.sort_unstable_by_key(|it| (it.page, it.part));
        for it in &self.done {
            put(&mut self.made, it.page, it.page + 1);
        }
        let mut mappings: Vec<Mapping> = Vec::new();
        for row in names.rows() {
            let end = row.end / PAGE * PAGE;
            // Libraries that came later may lie where others were.
            let start = mappings.last().map_or(0, |it| it.end).max(row.start);
            if let Some(is_traced) = is_traced(row).filter(|_| start < end) {
                mappings.push(Mapping {
                    start,
                    end,
                    name: names.region(row.start),
                    rights: row.rights.clone(),
                    is_traced,
                });
            }
        }
        for (first, end) in outside(&self.made, &mappings) {
            let row = Row {
                start: first * PAGE,
                end: end * PAGE,
                rights: String::new(),
                name: names.region(first * PAGE),
            };
            mappings.push(Mapping {
                is_traced: is_traced(&row).unwrap_or_default(),
                start: row.start,
                end: row.end,
                name: row.name,
                rights: row.rights,
            });
        }
        mappings.sort_by_key(|it| it.start);
        // The heap grows.
        mappings.dedup_by(|next, it| {
            let grows = (it.end, &it.name, it.is_traced)
                == (next.start, &next.name, next.is_traced)
                && next.rights.is_empty();
            if grows {
                it.end = next.end;
            }
            grows
        });
        (mappings, self.done)
    }
}

/// The part of the run in which the event number `order` of `events` is.
fn part_of(order: u64, events: u64) -> u8 {
    let part = u128::from(order) * u128::from(PARTS) / u128::from(events.max(1));
    u8::try_from(part).unwrap_or(PARTS).min(PARTS - 1)
}

/// The first and the last page of some bytes.
fn pages(address: u64, len: u64) -> (u64, u64) {
    let last = address.saturating_add(len.saturating_sub(1));
    (address / PAGE, last / PAGE)
}

/// Adds the pages from `first` to before `end` to ranges that neither overlap nor touch.
fn put(ranges: &mut BTreeMap<u64, u64>, mut first: u64, mut end: u64) {
    while let Some((&from, &to)) = ranges.range(..=end).next_back()
        && to >= first
    {
        if from <= first && end <= to {
            return;
        }
        ranges.remove(&from);
        (first, end) = (first.min(from), end.max(to));
    }
    ranges.insert(first, end);
}

/// What of the ranges is in no mapping.
fn outside(ranges: &BTreeMap<u64, u64>, mappings: &[Mapping]) -> Vec<(u64, u64)> {
    let mut left = mappings.iter().peekable();
    let mut found = Vec::new();
    for (&first, &end) in ranges {
        let mut at = first;
        while at < end {
            while left.next_if(|it| it.end / PAGE <= at).is_some() {}
            let next = left.peek().map_or(end, |it| (it.start / PAGE).min(end));
            if at < next {
                found.push((at, next));
            }
            at = left.peek().map_or(end, |it| it.end / PAGE).max(next);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::names::Known;
    use super::super::reader::Maps;
    use super::*;

    fn event(order: u64, kind: u8, address: u64, len: u64) -> Event {
        Event {
            order,
            kind,
            address,
            len,
            ..Event::default()
        }
    }

    fn row(start: u64, end: u64, rights: &str, name: &str) -> Row {
        Row {
            start,
            end,
            rights: rights.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn pages_are_counted_by_part_and_found_in_mappings() {
        let maps = Maps {
            rows: vec![
                row(0x1000, 0x3000, "r-xp", "/bin/demo"),
                row(0x3000, 0x4000, "rw-p", "/bin/demo"),
                row(0x9000, 0xa000, "rw-p", "[heap]"),
                row(0x6000_0000, 0x9000_0000, "---p", ""),
            ],
            modules: Vec::new(),
        };
        let names = Names::new(maps, std::iter::empty(), Known::default());
        let mut pages = Pages::new(640);
        let copy = Event {
            from: 0x9010,
            ..event(12, wire::COPY, 0x3010, 16)
        };
        for event in [
            event(0, wire::LOAD, 0x3ffc, 4),
            event(1, wire::LOAD, 0x3000, 4),
            event(9, wire::STORE, 0x9ffc, 8),
            event(10, wire::FILL, 0xb000, 0x2000),
            copy,
            event(13, wire::FETCH, 0x9000, 0),
            event(14, wire::MMAP, 0x7000_0000, 0x3000),
            event(15, wire::MMAP, 0x7000_3000, 0x1000),
            event(16, wire::FREE, 0x7000_3000, 0),
            event(639, wire::LOAD, 0x7000_1000, 1),
        ] {
            pages.add(&event);
        }
        let (mappings, uses) = pages.finish(&names, |row| {
            (row.rights != "---p").then_some(row.rights != "r-xp")
        });
        let of = |it: &Mapping| (it.start, it.end, it.name.clone(), it.is_traced);
        let all: Vec<_> = mappings.iter().map(of).collect();
        assert_eq!(
            all,
            [
                (0x1000, 0x3000, "demo".to_owned(), false),
                (0x3000, 0x4000, "demo".to_owned(), true),
                (0x9000, 0xd000, "[heap]".to_owned(), true),
                (0x7000_0000, 0x7000_4000, "[mapped]".to_owned(), true),
            ]
        );
        let of = |it: &PageUse| (it.page, it.part, it.loads, it.stores, it.blocks);
        let all: Vec<_> = uses.iter().map(of).collect();
        assert_eq!(
            all,
            [
                (3, 0, 2, 0, 0),
                (3, 1, 0, 0, 1),
                (9, 0, 0, 1, 0),
                (9, 1, 0, 0, 1),
                (10, 0, 0, 1, 0),
                (11, 1, 0, 0, 1),
                (12, 1, 0, 0, 1),
                (0x7_0001, 63, 1, 0, 0),
            ]
        );
    }

    #[test]
    fn ranges_grow_together() {
        let mut ranges = BTreeMap::new();
        for (first, end) in [
            (10, 12),
            (20, 22),
            (12, 13),
            (5, 6),
            (11, 21),
            (6, 7),
            (30, 31),
        ] {
            put(&mut ranges, first, end);
        }
        let all: Vec<_> = ranges.clone().into_iter().collect();
        assert_eq!(all, [(5, 7), (10, 22), (30, 31)]);
        let mapping = |first: u64, end: u64| Mapping {
            start: first * PAGE,
            end: end * PAGE,
            ..Mapping::default()
        };
        let mappings = [mapping(0, 6), mapping(12, 14), mapping(21, 40)];
        assert_eq!(outside(&ranges, &mappings), [(6, 7), (10, 12), (14, 21)]);
        assert_eq!(outside(&ranges, &[]), [(5, 7), (10, 22), (30, 31)]);
    }

    #[test]
    fn parts_are_equal() {
        assert_eq!(
            (part_of(0, 0), part_of(9, 9), part_of(u64::MAX, 1)),
            (0, 63, 63)
        );
        let counts = (0..6400).map(|it| part_of(it, 6400));
        let counts: Vec<u8> = counts.collect();
        assert!(counts.chunk_by(|a, b| a == b).all(|part| part.len() == 100));
    }
}
