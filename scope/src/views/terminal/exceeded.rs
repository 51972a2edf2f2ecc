//! Measures that tests were not content with, and what has allocated there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::analyses::units::{bytes, plural};
use crate::profile::Exceeded;
use crate::views::terminal::{LABEL, View};
use crate::views::text::{escape, fit};

/// Measures, and lines of each, that the summary has room for.
const SHOWN: usize = 3;

/// What sites of one line have allocated.
#[derive(Default)]
struct Line {
    sites: Vec<usize>,
    allocations: u64,
    bytes: u64,
}

impl View<'_> {
    pub(super) fn exceeded(&mut self) {
        let all = &self.profile.exceeded;
        for it in all.iter().take(SHOWN) {
            self.labelled("over budget", &escape(&it.place));
            for line in self.lines_of(it).iter().take(SHOWN) {
                let count = plural(line.allocations, "allocation");
                let (size, number) = (bytes(line.bytes), Self::number(&line.sites));
                let head = format!("{count}, {size}, {number} ");
                let columns = self.width.saturating_sub(LABEL + head.len());
                let place = self.place(line.sites[0], columns);
                let text = format!("{:LABEL$}{head}{place}", "");
                self.line(&fit(&text, self.width));
            }
        }
        if all.len() > SHOWN {
            let others = all.len() - SHOWN;
            self.labelled("over budget", &format!("and {others} more in --json"));
        }
    }

    /// By line of the program, those with most allocations first.
    fn lines_of(&self, of: &Exceeded) -> Vec<Line> {
        let mut lines: BTreeMap<Option<u32>, Line> = BTreeMap::new();
        for it in &of.sites {
            let site = it.site as usize;
            let line = lines.entry(self.profile.sites[site].place).or_default();
            line.sites.push(site);
            line.allocations = line.allocations.saturating_add(it.allocations);
            line.bytes = line.bytes.saturating_add(it.bytes);
        }
        let mut lines: Vec<Line> = lines.into_values().collect();
        lines.sort_by_key(|line| Reverse((line.allocations, line.bytes)));
        lines
    }
}
