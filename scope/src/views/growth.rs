//! What has grown over snapshots of one run, as text and JSON.
//!
//! The JSON has `schema`, `"ccscope-growth-1"`; `seconds`, `total` and `sites` of
//! [`Growth`]; and in each site `growth`, `per_second`, `where` and `type`. Keys are added within a
//! schema, and are never changed or removed.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::analyses::growth::{Alive, Grower, Growth};
use crate::analyses::types::type_name;
use crate::analyses::units::{bytes, plural, rounded, seconds, short_count, sum};
use crate::profile::Profile;
use crate::views::text::{Table, escape, line, wrap};
use crate::views::{Options, site_place};

/// Changes when a key changes or goes.
pub const SCHEMA: &str = "ccscope-growth-1";
/// Columns before those of snapshots.
const BEFORE: usize = 28;

/// Sums, and a table of the sites with the snapshots that fit. `last` is the last snapshot.
#[must_use]
pub fn text(growth: &Growth, last: &Profile, options: &Options) -> String {
    let width = options.width.clamp(60, 240);
    let mut out = String::new();
    let number = plural(growth.total.len() as u64, "snapshot");
    let span = { growth.span() }.map_or(String::new(), |span| format!(" in {}", seconds(span)));
    let heading = format!("{number} of process {}{span}", last.run.pid);
    line(&mut out, &heading, None);
    let grown = sum(growth.sites.iter().map(Grower::growth));
    let sites = plural(growth.sites.len() as u64, "site");
    let said = match growth.sites.is_empty() {
        true => "no site has grown in each".to_owned(),
        false => format!("grown in each: {sites}, {} in all", bytes(grown)),
    };
    line(&mut out, &said, None);
    line(&mut out, "", None);
    let rows: Vec<&Grower> = growth.sites.iter().take(options.rows).collect();
    let all = rows.iter().flat_map(|it| &it.alive).chain(&growth.total);
    let widest = all.map(|&it| of(it).width()).max().unwrap_or(0);
    let most = width.saturating_sub(BEFORE) / (widest + 2);
    let shown = columns(growth.total.len(), most);
    let mut heads = ["grown", ">bytes", ">a second"].map(str::to_owned).to_vec();
    heads.extend({ shown.iter() }.map(|&at| format!(">at {}", seconds(growth.seconds[at]))));
    let mut table = Table::new(&heads.iter().map(|it| &**it).collect::<Vec<&str>>());
    let cells = |name: String, alive: &[Alive]| -> Vec<String> {
        let mut cells = vec![name];
        cells.extend(change(alive, growth.span()));
        cells.extend(shown.iter().map(|&at| of(alive[at])));
        cells
    };
    for it in rows {
        let place = place(last, it.site, options);
        table.row(cells(format!("#{}", it.site), &it.alive), Some(place), None);
    }
    if !growth.total.is_empty() {
        table.row(cells("all".to_owned(), &growth.total), None, None);
    }
    table.print(&mut out, width, options.colour);
    if growth.sites.len() > options.rows {
        line(
            &mut out,
            &format!("{} of {sites} shown", options.rows),
            None,
        );
    }
    let older = last.total.unknown_frees;
    if older > 0 {
        let older = plural(older, "chunk");
        let note = format!(
            "{older} from before the recording freed since: what replaces them is told as growth"
        );
        line(&mut out, "", None);
        for text in wrap(&format!("note  {note}"), width, 6) {
            line(&mut out, &text, None);
        }
    }
    out
}

/// `1.20 MB/12,000`: bytes and chunks.
fn of(alive: Alive) -> String {
    format!("{}/{}", bytes(alive.bytes), short_count(alive.chunks))
}

/// What bytes have changed by, and that in a second.
fn change(alive: &[Alive], span: Option<f64>) -> [String; 2] {
    let [first, .., last] = alive else {
        return ["-", "-"].map(str::to_owned);
    };
    let signed = |number: u64| match last.bytes < first.bytes && number > 0 {
        true => format!("-{}", bytes(number)),
        false => bytes(number),
    };
    let more = last.bytes.abs_diff(first.bytes);
    let rate = span.map(|span| signed(rounded(more as f64 / span)));
    let rate = rate.map_or("-".to_owned(), |rate| format!("{rate}/s"));
    [signed(more), rate]
}

/// The first, the last, and those between that are nearest to even steps: at most `most`, and two
/// at least.
fn columns(number: usize, most: usize) -> Vec<usize> {
    let shown = number.min(most.max(2));
    let step = |at: usize| at * (number - 1) / (shown - 1).max(1);
    (0..shown).map(step).collect()
}

/// The line that allocates, and what.
fn place(last: &Profile, site: usize, options: &Options) -> String {
    let place = site_place(last, site, options, usize::MAX);
    match type_name(last, last.sites[site].type_id) {
        Some(name) => format!("{place}: {}", escape(name)),
        None => place,
    }
}

/// The JSON, in one line.
#[must_use]
pub fn json(growth: &Growth, last: &Profile) -> String {
    let options = Options::default();
    let site = |it: &Grower| {
        json!({
            "site": it.site,
            "growth": it.growth(),
            "per_second": growth.span().map(|span| it.growth() as f64 / span),
            "alive": it.alive,
            "where": site_place(last, it.site, &options, usize::MAX),
            "type": type_name(last, last.sites[it.site].type_id),
        })
    };
    let sites: Vec<Value> = growth.sites.iter().map(site).collect();
    let all = json!({
        "schema": SCHEMA, "seconds": growth.seconds, "total": growth.total, "sites": sites,
    });
    format!("{all}\n")
}
