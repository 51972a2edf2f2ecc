//! `ccscope show --regions`

use super::{View, percent};
use crate::analyses::regions::{Cache, Finding, Tree, caches, findings, fits};
use crate::analyses::units::{bytes, plural, ratio, rounded, short_count};
use crate::profile::{Profile, Region, RegionKind};
use crate::views::Options;
use crate::views::text::{Table, bars, escape, short_function, wrap};

/// Columns of the bars of growth.
const BARS: usize = 16;
/// Heads of the table, each with the least width of a terminal that shows its column.
const HEADS: [(usize, &str); 12] = [
    (0, ">mean"),
    (100, ">largest"),
    (0, ">lines"),
    (100, ">pages"),
    (0, "fits"),
    (0, ">calls"),
    (0, ">known"),
    (0, ">new"),
    (120, ">reads"),
    (120, ">writes"),
    (140, "growth"),
    (0, "region"),
];
/// Names are indented by at most this part of the terminal's columns.
const INDENT_PART: usize = 8;
/// Findings that are told.
const FINDINGS: usize = 3;

/// The tree of regions with their footprints, and what they tell.
#[must_use]
pub fn regions(profile: &Profile, options: &Options) -> String {
    let mut view = View::new(profile, options);
    if profile.regions.is_empty() {
        view.line("no regions were recorded: run with `--regions`");
    } else {
        view.regions(options.rows);
    }
    view.out
}

/// Which regions have a row, and how many could have one. Those that bring the most lines into a
/// cache come first; those that touch nothing, nor does what they call, have none.
fn largest(profile: &Profile, tree: &Tree, rows: usize) -> (Vec<bool>, usize) {
    let regions = &profile.regions;
    let mut touches: Vec<bool> = regions.iter().map(|it| it.bytes.total > 0).collect();
    for (index, region) in regions.iter().enumerate().rev() {
        if let (true, Some(parent)) = (touches[index], region.parent) {
            touches[parent as usize] = true;
        }
    }
    let mut order: Vec<usize> = (0..regions.len())
        .filter(|&index| touches[index] && tree.without_wrappers(profile, index) == index)
        .collect();
    order.sort_by_key(|&index| {
        let blocks = regions[index].blocks;
        (std::cmp::Reverse(blocks.max.max(blocks.total / 16)), index)
    });
    let mut shown = vec![false; regions.len()];
    for &index in order.iter().take(rows) {
        shown[index] = true;
    }
    (shown, order.len())
}

impl View<'_> {
    pub(super) fn regions(&mut self, rows: usize) {
        let profile = self.profile;
        let machine = self.options.machine();
        let (tree, caches) = (Tree::new(profile), caches(machine));
        for finding in findings(profile, &tree, &caches).into_iter().take(FINDINGS) {
            let (label, text) = region_finding(profile, &finding);
            self.labelled(label, &text);
        }
        let sizes: Vec<String> = { caches.iter() }
            .map(|cache| format!("{} {}", escape(&cache.name), bytes(cache.bytes)))
            .collect();
        if !sizes.is_empty() {
            self.labelled("caches", &sizes.join(", "));
        }
        self.line("");
        let heads: Vec<&str> = self.columns(HEADS.map(|(_, head)| head)).collect();
        let mut table = Table::new(&heads);
        let (shown, all) = largest(profile, &tree, rows);
        let mut left: Vec<(usize, usize)> =
            tree.roots.iter().rev().map(|&root| (root, 0)).collect();
        while let Some((index, depth)) = left.pop() {
            let index = tree.without_wrappers(profile, index);
            if shown[index] {
                table.row(
                    self.cells(&profile.regions[index], depth, &caches),
                    None,
                    None,
                );
            }
            let depth = depth + usize::from(shown[index]);
            let children = tree.children[index].iter().rev();
            left.extend(children.map(|&child| (child, depth)));
        }
        self.table(&table);
        self.line("");
        let mut notes = match all <= rows {
            true => plural(all as u64, "region"),
            false => format!(
                "{rows} of {} shown, those that bring the most lines into a cache; `--rows {all}` \
                 for all",
                plural(all as u64, "region")
            ),
        };
        notes += ". Per call: bytes, lines of 64 B, pages of 4 KiB. Known: touched by the caller \
                  before; new: by nobody in the thread";
        // With `--all-memory`, there are none.
        let total = &profile.total;
        if total.other_reads > 0 || total.other_writes > 0 {
            notes += ". Only the heap is counted; `run --all-memory` adds the rest";
        }
        for line in wrap(&notes, self.width, 0) {
            self.line(&line);
        }
    }

    /// What a terminal of this width shows of a row.
    fn columns<T>(&self, row: [T; HEADS.len()]) -> impl Iterator<Item = T> {
        { HEADS.iter().zip(row) }
            .filter(|((least, _), _)| *least <= self.width)
            .map(|(_, cell)| cell)
    }

    fn cells(&self, region: &Region, depth: usize, caches: &[Cache]) -> Vec<String> {
        let fit = fits(caches, region.mean_in_lines());
        let mean = |sum: u64| short_count(rounded(ratio(sum, region.invocations)));
        let step = region.growth.len().div_ceil(BARS).max(1);
        let growth: Vec<u64> = { region.growth.chunks(step) }
            .map(|part| part.iter().copied().fold(0, u64::saturating_add))
            .collect();
        let most = growth.iter().copied().max().unwrap_or(0);
        let fits = match fit {
            _ if region.bytes.total == 0 => "-".to_owned(),
            Some(cache) => escape(&cache.name),
            None => "none".to_owned(),
        };
        let indent = (2 * depth).min(self.width / INDENT_PART);
        let cells = [
            bytes(rounded(region.mean_bytes())),
            bytes(region.bytes.max),
            mean(region.blocks.total),
            mean(region.pages.total),
            fits,
            short_count(region.invocations),
            percent(ratio(region.reused, region.bytes.total)),
            percent(ratio(region.fresh, region.bytes.total)),
            short_count(region.reads),
            short_count(region.writes),
            bars(&growth, most),
            format!("{:indent$}{}", "", region_name(region)),
        ];
        self.columns(cells).collect()
    }
}

/// What a region is called: escaped, and short.
pub(in crate::views) fn region_name(region: &Region) -> String {
    let mut name = match region.kind {
        RegionKind::Thread => plural(region.invocations, "thread"),
        RegionKind::Function => escape(&short_function(&region.name)),
        RegionKind::Span => format!("[{}]", escape(&region.name)),
    };
    if region.level > 1 {
        name = format!("{name}, level {}", region.level);
    }
    if region.recursive > 0 {
        name = format!("{name} (+{} within)", short_count(region.recursive));
    }
    name
}

/// A finding with its label.
pub(in crate::views) fn region_finding(
    profile: &Profile,
    finding: &Finding,
) -> (&'static str, String) {
    let of = |index: &usize| {
        let region = &profile.regions[*index];
        (region, region_name(region))
    };
    match finding {
        Finding::WorkingSet { region } => {
            let (region, name) = of(region);
            let size = bytes(rounded(region.mean_bytes()));
            (
                "working set",
                format!("{name} touches {size} a call, nearly all that is touched"),
            )
        }
        Finding::Again {
            region,
            cache,
            times,
        } => {
            let (region, name) = of(region);
            let whole = bytes(rounded(region.mean_in_lines()));
            let (cache, size) = (escape(&cache.name), bytes(cache.bytes));
            let word = match rounded(region.word()) {
                0 | 1 => "byte".to_owned(),
                some => format!("{some} bytes"),
            };
            let text = format!(
                "{name} takes {whole} of cache a call, more than {cache} ({size}), and makes \
                 {times:.0} accesses to each {word} that it touches: in blocks it could find \
                 them in {cache}"
            );
            ("block it", text)
        }
        Finding::Block {
            region,
            part,
            cache,
            reused,
        } => {
            let ((region, name), (part, parts)) = (of(region), of(part));
            let [whole, piece] =
                [region, part].map(|region| bytes(rounded(region.mean_in_lines())));
            let calls = short_count(rounded(ratio(part.invocations, region.invocations)));
            let (cache, size) = (escape(&cache.name), bytes(cache.bytes));
            let text = format!(
                "{name} takes {whole} of cache a call, more than {cache} ({size}); the {calls} \
                 calls of {parts} in it take {piece} each and find {} of it touched before: \
                 in another order they could find it in {cache}",
                percent(*reused)
            );
            ("block it", text)
        }
    }
}
