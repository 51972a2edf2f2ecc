//! What was alive at the end, and what of it was leaked.

use std::cmp::Reverse;

use super::{NO_SITE, Options, View};
use crate::analyses::leaks::{of_site, total};
use crate::analyses::units::{bytes, plural, short_count};
use crate::profile::Profile;
use crate::views::text::Table;

/// Sites by leaked bytes, then by those alive at the end, with sums before.
#[must_use]
pub fn leaks(profile: &Profile, options: &Options) -> String {
    let mut view = View::new(profile, options);
    view.leak_sums();
    let key = |&site: &usize| {
        let leaked = of_site(profile, site).map_or(0, |it| it.all_bytes());
        Reverse((leaked, profile.sites[site].end_usable))
    };
    let is_there = |&site: &usize| profile.sites[site].end_chunks > 0;
    let mut shown = view.results.shown.clone();
    shown.retain(is_there);
    shown.sort_by_key(key);
    if shown.is_empty() {
        view.line(match options.filters.is_empty() {
            true => "no chunk was alive at the end",
            false => NO_SITE,
        });
        return view.out;
    }
    let heads = [
        "site",
        ">leaked",
        ">chunks",
        ">indirect",
        ">chunks",
        ">at end",
        ">chunks",
        "where",
    ];
    let mut table = Table::new(&heads);
    for &site in shown.iter().take(options.rows) {
        let (it, leaked) = (&profile.sites[site], of_site(profile, site));
        let number = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let mut cells = vec![
            format!("#{site}"),
            number(leaked.map(|it| bytes(it.bytes))),
            number(leaked.map(|it| short_count(it.chunks))),
            number(leaked.map(|it| bytes(it.indirect_bytes))),
            number(leaked.map(|it| short_count(it.indirect_chunks))),
            bytes(it.end_usable),
            short_count(it.end_chunks),
        ];
        let taken: usize = cells.iter().map(|cell| cell.len().max(8) + 2).sum();
        cells.push(view.place(site, view.width.saturating_sub(taken)));
        table.row(cells, None, None);
    }
    view.line("");
    view.table(&table);
    view.out
}

impl View<'_> {
    /// All that is leaked and alive.
    fn leak_sums(&mut self) {
        let end = &self.profile.total;
        let alive = format!(
            "{} in {}",
            bytes(end.end_usable),
            plural(end.end_chunks, "chunk")
        );
        let Some(all) = total(self.profile) else {
            self.labelled("at the end", &alive);
            self.labelled("leaked", "not known: `ccscope run --leaks` looks for them");
            return;
        };
        let mut leaked = format!("{} in {}", bytes(all.bytes), plural(all.chunks, "chunk"));
        if all.indirect_chunks > 0 {
            let more = plural(all.indirect_chunks, "other chunk");
            let part = format!(
                ", {} in {more} that only these lead to",
                bytes(all.indirect_bytes)
            );
            leaked.push_str(&part);
        }
        self.labelled("leaked", &leaked);
        self.labelled("at the end", &alive);
    }
}
