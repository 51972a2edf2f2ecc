//! `ccscope show --regions`

use ccmodel::Machine;

use super::{View, percent};
use crate::analyses::regions::{Cache, Finding, Tree, caches, findings, fits};
use crate::analyses::units::{bytes, plural, ratio, rounded, short_count};
use crate::profile::{Profile, Region, RegionKind};
use crate::views::Options;
use crate::views::text::{Table, bars, escape, short_function};

/// Columns of the bars of growth.
const BARS: usize = 16;
/// Terminals with fewer columns show none.
const BARS_WIDTH: usize = 110;
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

/// Which regions have a row: those that bring the most lines into a cache.
fn largest(profile: &Profile, tree: &Tree, rows: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..profile.regions.len())
        .filter(|&index| tree.without_wrappers(profile, index) == index)
        .collect();
    order.sort_by_key(|&index| {
        let blocks = profile.regions[index].blocks;
        (std::cmp::Reverse(blocks.max.max(blocks.total / 16)), index)
    });
    let mut shown = vec![false; profile.regions.len()];
    for index in order.into_iter().take(rows) {
        shown[index] = true;
    }
    shown
}

impl View<'_> {
    pub(super) fn regions(&mut self, rows: usize) {
        let profile = self.profile;
        let machine = self
            .options
            .machine
            .as_ref()
            .unwrap_or_else(|| Machine::this());
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
        let mut heads = vec![
            ">mean", ">largest", ">lines", ">pages", "fits", ">calls", ">known", ">new", ">reads",
            ">writes", "growth", "region",
        ];
        if self.width < BARS_WIDTH {
            heads.retain(|head| *head != "growth");
        }
        let mut table = Table::new(&heads);
        let shown = largest(profile, &tree, rows);
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
        let all = plural(profile.regions.len() as u64, "region");
        self.labelled(
            "",
            &format!(
                "{all}, the largest are shown. Per call: bytes, lines of 64 B, pages of 4 KiB. \
                 Known: touched by the caller before; new: by nobody in the thread"
            ),
        );
    }

    fn cells(&self, region: &Region, depth: usize, caches: &[Cache]) -> Vec<String> {
        let fit = fits(caches, region.mean_in_lines());
        let mean = |sum: u64| short_count(rounded(ratio(sum, region.invocations)));
        let step = region.growth.len().div_ceil(BARS).max(1);
        let growth: Vec<u64> = { region.growth.chunks(step) }
            .map(|part| part.iter().copied().fold(0, u64::saturating_add))
            .collect();
        let most = growth.iter().copied().max().unwrap_or(0);
        let mut cells = vec![
            bytes(rounded(region.mean_bytes())),
            bytes(region.bytes.max),
            mean(region.blocks.total),
            mean(region.pages.total),
            fit.map_or_else(|| "none".to_owned(), |cache| escape(&cache.name)),
            short_count(region.invocations),
            percent(ratio(region.reused, region.bytes.total)),
            percent(ratio(region.fresh, region.bytes.total)),
            short_count(region.reads),
            short_count(region.writes),
        ];
        if self.width >= BARS_WIDTH {
            cells.push(bars(&growth, most));
        }
        cells.push(format!("{}{}", "  ".repeat(depth), region_name(region)));
        cells
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
            let text = format!(
                "{name} takes {whole} of cache a call, more than {cache} ({size}), and \
                 accesses each word of that {times:.0} times: in blocks it could find it in \
                 {cache}"
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
