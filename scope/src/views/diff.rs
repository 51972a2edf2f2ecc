//! What has changed between two profiles, as text and JSON.
//!
//! The JSON has `schema`, `"ccscope-diff-1"`; `total`, `waits_ns` and `sites` of
//! [`Diff`]; and in each site `where` and `type`, those of the new profile where it is there.
//! Keys are added within a schema, and are never changed or removed.

use serde_json::{Value, json};

use crate::analyses::diff::{Change, Diff, Matched, Metric, SiteChange, Verdict};
use crate::analyses::growth::is_one_run;
use crate::analyses::scores::Scores;
use crate::analyses::types::type_name;
use crate::analyses::units;
use crate::profile::{Profile, Site};
use crate::views::text::{Table, line};
use crate::views::{Options, site_place};

/// Changes when a key changes or goes.
pub const SCHEMA: &str = "ccscope-diff-1";

/// Tables of the totals, and of sites that are worse, new, better and gone.
#[must_use]
pub fn text(old: &Profile, new: &Profile, diff: &Diff, options: &Options) -> String {
    let width = options.width.clamp(60, 240);
    let mut out = String::new();
    let mut table = Table::new(&["total", ">old", ">new", ">change"]);
    for row in totals(diff) {
        table.row(row.into(), None, None);
    }
    table.print(&mut out, width, options.colour);
    print_grown(&mut out, old, new, diff, options);
    for (title, sites) in by_verdict(diff) {
        if sites.is_empty() {
            continue;
        }
        line(&mut out, "", None);
        // Places have lines of their own: they are long.
        let mut table = Table::new(&[
            title, ">peak", ">allocs", ">bytes", ">drag", ">score", ">waits",
        ]);
        for site in sites.iter().take(options.rows) {
            let mut cells: Vec<String> = row(old, new, site, options).into();
            let place = cells.pop();
            table.row(cells, place, None);
        }
        table.print(&mut out, width, options.colour);
        if sites.len() > options.rows {
            let more = format!(
                "{} of {} shown",
                options.rows,
                units::count(sites.len() as u64)
            );
            line(&mut out, &more, None);
        }
    }
    line(&mut out, "", None);
    line(&mut out, &as_before(diff), None);
    out
}

/// Of two snapshots of one run: the sites with more bytes alive than before, and how many chunks
/// these are.
fn print_grown(out: &mut String, old: &Profile, new: &Profile, diff: &Diff, options: &Options) {
    let grown = grown(old, new, diff);
    if grown.is_empty() {
        return;
    }
    line(out, "", None);
    let mut table = Table::new(&[
        "grown",
        ">bytes alive",
        ">before",
        ">chunks alive",
        ">before",
    ]);
    for &(before, site) in grown.iter().take(options.rows) {
        let index = site.new.unwrap_or_default();
        let now = &new.sites[index];
        let (bytes, chunks) = before.map_or((0, 0), |site| (site.end_usable, site.end_chunks));
        let cells = [
            format!("#{index}"),
            units::bytes(now.end_usable),
            units::bytes(bytes),
            units::count(now.end_chunks),
            units::count(chunks),
        ];
        table.row(cells.into(), Some(place(old, new, site, options)), None);
    }
    table.print(out, options.width.clamp(60, 240), options.colour);
    if grown.len() > options.rows {
        let (shown, all) = (options.rows, units::count(grown.len() as u64));
        line(out, &format!("{shown} of {all} shown"), None);
    }
}

/// Sites of one run that have more bytes alive than before, those that have grown most first, each
/// with what it was.
fn grown<'p>(
    old: &'p Profile,
    new: &'p Profile,
    diff: &'p Diff,
) -> Vec<(Option<&'p Site>, &'p SiteChange)> {
    if !is_one_run(old, new) || old.run.end == new.run.end {
        return Vec::new();
    }
    let more = |site: &'p SiteChange| {
        let before = site.old.map(|index| &old.sites[index]);
        let bytes = before.map_or(0, |site| site.end_usable);
        let more = new.sites[site.new?].end_usable.checked_sub(bytes)?;
        (more > 0).then_some((more, before, site))
    };
    let mut grown: Vec<_> = diff.sites.iter().filter_map(more).collect();
    grown.sort_by_key(|(more, ..)| u64::MAX - more);
    { grown.into_iter() }
        .map(|(_, before, site)| (before, site))
        .collect()
}

/// Name, old value, new value and change of what both profiles know.
pub(super) fn totals(diff: &Diff) -> Vec<[String; 4]> {
    let known = diff.total.iter().filter_map(|it| {
        let (before, after) = (it.old?, it.new?);
        let [old, new] = [before, after].map(|value| it.metric.text(value));
        Some([it.metric.name().to_owned(), old, new, part(before, after)])
    });
    let mut rows: Vec<[String; 4]> = known.collect();
    if let [Some(before), Some(after)] = diff.waits_ns {
        let [old, new] = [before, after].map(|ns| units::seconds(ns / 1e9));
        rows.push(["waits".to_owned(), old, new, part(before, after)]);
    }
    rows
}

/// Sites that have changed, those that have changed most first.
pub(super) fn by_verdict(diff: &Diff) -> [(&'static str, Vec<&SiteChange>); 4] {
    let verdicts = [
        (Verdict::Worse, "worse"),
        (Verdict::New, "new"),
        (Verdict::Better, "better"),
        (Verdict::Gone, "gone"),
    ];
    verdicts.map(|(verdict, title)| {
        let sites = diff.sites.iter().filter(|it| it.verdict == verdict);
        let mut sites: Vec<&SiteChange> = sites.collect();
        sites.sort_by(|a, b| b.cost.abs().total_cmp(&a.cost.abs()));
        (title, sites)
    })
}

/// Number of a site, its changes of peak, allocations, bytes, drag, mean score and waits, and its
/// place.
pub(super) fn row(
    old: &Profile,
    new: &Profile,
    site: &SiteChange,
    options: &Options,
) -> [String; 8] {
    let number = |site: Option<usize>| site.map_or("-".to_owned(), |it| format!("#{it}"));
    let name = match (site.old, site.new) {
        (Some(_), Some(_)) => format!("{}>{}", number(site.old), number(site.new)),
        _ => number(site.old.or(site.new)),
    };
    let mut place = place(old, new, site, options);
    if matches!(site.matched, Matched::Similar | Matched::OwnFunctions) {
        place.push_str(" (by likeness)");
    }
    let [peak, allocations, bytes, drag] = [
        Metric::Peak,
        Metric::Allocations,
        Metric::Bytes,
        Metric::Drag,
    ]
    .map(|metric| by(site, metric));
    let score = score(site);
    let waits = difference(site, site.waits_ns, |ns| units::seconds(ns / 1e9));
    [name, peak, allocations, bytes, drag, score, waits, place]
}

/// How many sites have not changed.
pub(super) fn as_before(diff: &Diff) -> String {
    let same = diff.sites.iter().filter(|it| it.verdict == Verdict::Same);
    format!("{} as before", units::plural(same.count() as u64, "site"))
}

/// The JSON, in one line.
#[must_use]
pub fn json(old: &Profile, new: &Profile, diff: &Diff) -> String {
    let options = Options::default();
    let site = |site: &SiteChange| {
        let mut object = json!(site);
        if let Value::Object(object) = &mut object {
            let (profile, index) = side(old, new, site);
            let type_id = index.and_then(|index| profile.sites[index].type_id);
            object.insert("where".to_owned(), place(old, new, site, &options).into());
            object.insert("type".to_owned(), type_name(profile, type_id).into());
        }
        object
    };
    let sites: Vec<Value> = diff.sites.iter().map(site).collect();
    let all = json!({
        "schema": SCHEMA, "total": diff.total, "waits_ns": diff.waits_ns, "sites": sites,
    });
    format!("{all}\n")
}

/// The new profile, or the old one where a site is gone, and its index there.
fn side<'p>(old: &'p Profile, new: &'p Profile, site: &SiteChange) -> (&'p Profile, Option<usize>) {
    match site.new {
        Some(_) => (new, site.new),
        None => (old, site.old),
    }
}

fn place(old: &Profile, new: &Profile, site: &SiteChange, options: &Options) -> String {
    let (profile, index) = side(old, new, site);
    index.map_or(String::new(), |index| {
        site_place(profile, index, options, usize::MAX)
    })
}

fn by(site: &SiteChange, metric: Metric) -> String {
    let change = site.changes.iter().find(|it| it.metric == metric);
    let values = change.map_or([None; 2], |it| [it.old, it.new]);
    difference(site, values, |it| metric.text(it))
}

/// A change with its sign; nothing where there is none. What is not there has 0.
fn difference(site: &SiteChange, values: [Option<f64>; 2], text: impl Fn(f64) -> String) -> String {
    let value = |side: usize, index: Option<usize>| index.map_or(Some(0.0), |_| values[side]);
    match (value(0, site.old), value(1, site.new)) {
        (Some(old), Some(new)) if new > old => format!("+{}", text(new - old)),
        (Some(old), Some(new)) if new < old => format!("-{}", text(old - new)),
        (Some(_), Some(_)) => "0".to_owned(),
        _ => "-".to_owned(),
    }
}

/// The change of the mean of the scores of a site that is in both profiles.
fn score(site: &SiteChange) -> String {
    let mean = |side: fn(&Change) -> Option<f64>| {
        let of = |metric| {
            site.changes
                .iter()
                .find(|it| it.metric == metric)
                .and_then(side)
        };
        let scores = Scores {
            lifetime: of(Metric::Lifetime),
            usage: of(Metric::Usage),
            useful_lifetime: of(Metric::UsefulLifetime),
        };
        scores.severity()
    };
    let [Some(old), Some(new)] = [mean(|it| it.old), mean(|it| it.new)] else {
        return "-".to_owned();
    };
    let change = format!("{:+.2}", new - old);
    if change.ends_with("0.00") {
        "0".to_owned()
    } else {
        change
    }
}

fn part(before: f64, after: f64) -> String {
    let part = 100.0 * (after - before) / before;
    match part {
        _ if after.to_bits() == before.to_bits() => "0".to_owned(),
        _ if !part.is_finite() => "new".to_owned(),
        _ => format!("{part:+.2} %"),
    }
}
