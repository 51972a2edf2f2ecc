//! Loops that go through rows by columns: each step of the inner one is in another row.
//!
//! With the loops exchanged, the inner one stays within a row. To the caches that is as if each
//! column lay in one piece: so the replay places the cells, in the windows that go by columns.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use super::code::{self, Language};
use super::dense::{APART, NEW_MEMORY, moved, ranks};
use super::{Candidate, Context, Kind, site_type};
use crate::analyses::replay::trace::Step;
use crate::analyses::units::{bytes, count, ratio};

/// A window goes by columns if so many of the accesses to rows do.
const MOST: f64 = 0.5;
/// Fewer rows, or columns, are none.
const MIN_ROWS: u64 = 64;
const MIN_COLUMNS: usize = 16;
/// Larger cells have lines of their own.
const MAX_CELL: u64 = 32;
/// A jump within a few lines is no new row.
const MIN_ROW: u64 = 256;
/// The step before is one of so many: a loop reads other rows, too.
const RECENT: usize = 4;
const WORD: u64 = 8;

/// How the cells of a row follow each other.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    /// Each is a chunk.
    Chunks,
    /// One follows the other in a chunk, after so many bytes.
    Bytes(u64),
}

/// For the rows that the program waits for.
pub(super) fn candidates<'c>(context: &'c Context<'c>) -> Vec<Candidate<'c>> {
    let sites = context.waiting_sites().into_iter();
    sites.filter_map(|site| exchanged(context, site)).collect()
}

fn exchanged<'c>(context: &'c Context<'c>, site: u32) -> Option<Candidate<'c>> {
    let (profile, trace) = (context.profile, context.trace);
    let found = profile.sites.get(site as usize)?;
    let of = found.type_id.and_then(|id| profile.types.get(id as usize));
    let cell = of.and_then(|of| of.size).unwrap_or(WORD);
    let windows: Vec<(Range<usize>, Rows)> = { trace.windows() }
        .filter_map(|window| Some((window.clone(), rows(context, site, window)?)))
        .collect();
    let (_, rows) = windows.first()?;
    let (in_row, number) = match *rows {
        Rows::Chunks => (found.largest, found.peak_chunks),
        Rows::Bytes(jump) => (jump, found.largest / jump),
    };
    if !(1..=MAX_CELL).contains(&cell) || in_row / cell < MIN_COLUMNS as u64 || number < MIN_ROWS {
        return None;
    }
    let rank = match *rows {
        Rows::Chunks => ranks(context, &[site]),
        Rows::Bytes(_) => HashMap::new(),
    };
    let number = { rank.values() }.fold(number, |most, rank| most.max(rank + 1));
    // The row, and the offset in it.
    let place = |step: &Step| match *rows {
        Rows::Chunks => Some((*rank.get(&step.object)?, u64::from(step.offset))),
        Rows::Bytes(jump) => Some((u64::from(step.offset) / jump, u64::from(step.offset) % jump)),
    };
    let (mut to, mut columns) = (vec![0; trace.steps.len()], BTreeSet::new());
    for (window, _) in windows.iter().filter(|(_, other)| other == rows) {
        for at in window.clone() {
            let step = &trace.steps[at];
            let is_row = trace.site(step) == site;
            if let Some((row, offset)) = place(step).filter(|_| is_row) {
                columns.insert(offset / cell);
                let start = (offset / cell).wrapping_mul(number).wrapping_add(row);
                to[at] = start.wrapping_mul(cell).wrapping_add(offset % cell) % APART
                    + NEW_MEMORY
                    + APART;
            }
        }
    }
    if columns.len() < MIN_COLUMNS {
        return None;
    }
    let name = site_type(profile, site).unwrap_or("bytes");
    let is_rust = Language::of(profile, &[site]) == Language::Rust;
    Some(Candidate {
        kind: Kind::Idea,
        sites: vec![site],
        what: format!(
            "an inner loop goes from row to row of {} in {name}, {} rows of {} each: exchange the \
             loops, so that the inner one stays within a row; or keep each column in one piece",
            match rows {
                Rows::Chunks => "chunks",
                Rows::Bytes(_) => "a chunk",
            },
            count(number),
            bytes(in_row)
        ),
        code: is_rust.then(|| code::text("columns", &[])),
        cost_ns: 0.0,
        break_even: None,
        wrong_if: "what the loop computes in a cell depends on the row before, and on nothing in \
                   the columns beside"
            .to_owned(),
        rewrite: moved(to),
    })
}

/// How a window goes through the rows of a site, if it does so by columns.
fn rows(context: &Context<'_>, site: u32, window: Range<usize>) -> Option<Rows> {
    let trace = context.trace;
    let mut recent: VecDeque<&Step> = VecDeque::with_capacity(RECENT);
    let (mut all, mut chunks, mut jumps) = (0u64, 0u64, HashMap::<u64, u64>::new());
    for step in { trace.steps[window].iter() }.filter(|step| trace.site(step) == site) {
        if recent
            .back()
            .is_some_and(|last| last.address == step.address)
        {
            continue;
        }
        all += 1;
        let is_below = |last: &&Step| last.object != step.object && last.offset == step.offset;
        if recent.iter().copied().any(|last| is_below(&last)) {
            chunks += 1;
        } else if let Some(last) = recent.iter().rev().find(|last| last.object == step.object) {
            *jumps
                .entry(last.offset.abs_diff(step.offset).into())
                .or_default() += 1;
        }
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back(step);
    }
    if all >= MIN_COLUMNS as u64 && ratio(chunks, all) >= MOST {
        return Some(Rows::Chunks);
    }
    let most = jumps.into_iter().max_by_key(|&(jump, times)| (times, jump));
    let most = most.filter(|&(jump, times)| jump >= MIN_ROW && ratio(times, all) >= MOST);
    Some(Rows::Bytes(most?.0))
}
