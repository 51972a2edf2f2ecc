//! What `ccscope trace` has recorded of the process's pages, in the summary.

use std::cmp::Reverse;

use super::View;
use crate::analyses::pages::{Counts, MappingUse, by_mapping};
use crate::analyses::units::{bytes, count, plural, short_count, sum};
use crate::profile::PAGE;
use crate::views::text::{Table, escape};

impl View<'_> {
    /// Mappings by address; where there are more than `rows`, those with the most accesses.
    pub(super) fn pages(&mut self, rows: usize) {
        let all = by_mapping(self.profile);
        let counts = all.iter().map(|it| it.counts);
        let total = counts.fold(Counts::default(), Counts::and);
        let number = |number, thing: &str| match number {
            1 => format!("1 {thing}"),
            _ => format!("{} {thing}s", short_count(number)),
        };
        self.labelled(
            "accesses",
            &format!(
                "{}, {}, {}",
                number(total.loads, "load"),
                number(total.stores, "store"),
                number(total.blocks, "block")
            ),
        );
        let touched = sum(all.iter().map(|it| it.touched));
        self.labelled(
            "pages",
            &format!(
                "{} of {} accessed ({}), in {}",
                count(touched),
                count(sum(all.iter().map(MappingUse::traced_pages))),
                bytes(touched.saturating_mul(PAGE)),
                plural(all.len() as u64, "mapping")
            ),
        );
        let mut shown: Vec<&MappingUse<'_>> = all.iter().filter(|it| it.touched > 0).collect();
        let used = shown.len();
        shown.sort_by_key(|it| Reverse(it.counts.all()));
        shown.truncate(rows);
        shown.sort_by_key(|it| it.mapping.start);
        if used > 0 {
            self.line("");
            let heads = [
                ">pages",
                ">accessed",
                ">loads",
                ">stores",
                ">blocks",
                "mapping",
            ];
            let mut table = Table::new(&heads);
            for it in &shown {
                let mut cells = Vec::from([
                    short_count(it.pages()),
                    short_count(it.touched),
                    short_count(it.counts.loads),
                    short_count(it.counts.stores),
                    short_count(it.counts.blocks),
                ]);
                let name = escape(&it.mapping.name);
                cells.push(format!("{name} {}", it.kind()).trim_end().to_owned());
                table.row(cells, None, None);
            }
            self.table(&table);
            self.line("");
        }
        if used > shown.len() {
            let text = format!(
                "{} of {used} mappings, those with the most accesses",
                shown.len()
            );
            self.labelled("shown", &text);
        }
        let quiet = |is_traced: bool| {
            let of =
                { all.iter() }.filter(|it| it.touched == 0 && it.mapping.is_traced == is_traced);
            let (mut mappings, mut pages) = (0, 0_u64);
            for it in of {
                mappings += 1;
                pages = pages.saturating_add(it.pages());
            }
            format!(
                "{} in {}",
                number(pages, "page"),
                plural(mappings, "mapping")
            )
        };
        self.labelled("not accessed", &quiet(true));
        self.labelled("not traced", &quiet(false));
    }
}
