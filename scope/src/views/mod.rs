//! What people and programs read of a profile: text for a terminal, and JSON.
//!
//! Names in a profile come from the profiled program. Views show them as data: control characters
//! are escaped, long ones cut.

pub mod advice;
pub mod diff;
pub mod growth;
pub mod json;
pub mod page;
pub mod terminal;
pub(crate) mod text;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::str::FromStr;

use ccmodel::Machine;
use unicode_width::UnicodeWidthStr;

use crate::analyses::findings::{Amount, Finding, Kind, findings};
use crate::analyses::misses::{Misses, misses};
use crate::analyses::replay::ReplayedWindows;
use crate::analyses::retained::{Retained, retained};
use crate::analyses::scores::{Inferences, Scores, inferences, scores};
use crate::analyses::structures::together;
use crate::analyses::types::type_name;
use crate::analyses::units::rounded;
use crate::analyses::waits::{Waiting, Waits, waits};
use crate::analyses::{findings as finding, scores as score};
use crate::profile::{Frame, Group, Leaks, Profile, Site};
use crate::symbols::library_frame;

/// Columns of the line of one's own beside that of a package.
const MIN_OWN: usize = 16;
/// Longer names of types leave no room for what to run next.
const LONG_NAME: usize = 24;

/// What is shown, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// Columns of the terminal; no less than 60 and no more than 240 are used.
    pub width: usize,
    /// Whether escape sequences for colours may be printed.
    pub colour: bool,
    /// Rows of a table; the summary has a screen and takes at most five.
    pub rows: usize,
    /// A site is shown if it passes all of these. Totals are always those of the whole run.
    pub filters: Vec<Filter>,
    /// The order of sites.
    pub sort: Sort,
    /// Paths of source files are shown from here on, and those that are relative are read here.
    pub root: Option<PathBuf>,
    /// The profile's file, as it is named in commands to run next.
    pub file: Option<PathBuf>,
    /// Where misses are simulated; the machine that the tool runs on if none is given.
    pub machine: Option<Machine>,
    /// What a file of placement rules says of sites, by their index.
    pub rules: HashMap<usize, String>,
    /// Parameters of the scores.
    pub scores: score::Options,
    /// What is reported.
    pub findings: finding::Options,
}

impl Options {
    /// The machine on which misses are simulated.
    pub(crate) fn machine(&self) -> &Machine {
        self.machine.as_ref().unwrap_or_else(|| Machine::this())
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            width: 80,
            colour: false,
            rows: 20,
            filters: Vec::new(),
            sort: Sort::default(),
            root: None,
            file: None,
            machine: None,
            rules: HashMap::new(),
            scores: score::Options::default(),
            findings: finding::Options::default(),
        }
    }
}

/// The order of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// What the largest finding saves.
    #[default]
    Saving,
    /// Usable bytes at the peak of the process.
    Peak,
    /// Usable bytes in the whole run.
    Bytes,
    /// Usable bytes alive at the end.
    End,
    /// Bytes that were leaked.
    Leaked,
    /// Bytes at the peak that the site keeps alive.
    Retained,
    /// Chunks.
    Allocations,
    /// The geometric mean of the scores, the worst first.
    Severity,
    /// The lifetime score, the worst first.
    Lifetime,
    /// The usage score, the worst first.
    Usage,
    /// The useful-lifetime score, the worst first.
    UsefulLifetime,
    /// Bytes times the time after the last use.
    Drag,
    /// Reads and writes.
    Accesses,
    /// What waiting for memory takes.
    Misses,
}

impl Sort {
    const NAMES: [(&'static str, Sort); 14] = [
        ("saving", Sort::Saving),
        ("peak", Sort::Peak),
        ("bytes", Sort::Bytes),
        ("end", Sort::End),
        ("leaked", Sort::Leaked),
        ("retained", Sort::Retained),
        ("allocations", Sort::Allocations),
        ("severity", Sort::Severity),
        ("lifetime", Sort::Lifetime),
        ("usage", Sort::Usage),
        ("useful-lifetime", Sort::UsefulLifetime),
        ("drag", Sort::Drag),
        ("accesses", Sort::Accesses),
        ("misses", Sort::Misses),
    ];
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(text: &str) -> Result<Sort, String> {
        let found = Sort::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|&(_, sort)| sort).ok_or_else(|| {
            let names: Vec<&str> = Sort::NAMES.iter().map(|&(name, _)| name).collect();
            format!(
                "no order is called {text:?}; there are {}",
                names.join(", ")
            )
        })
    }
}

/// Which sites are shown; as text, `function=TEXT`, `type=TEXT`, `thread=ID` or `time=FROM..TO`.
/// The first thread is 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// A function of the stack contains the text.
    Function(String),
    /// The type's name contains the text.
    Type(String),
    /// The thread has allocated there, or a window shows an access by it. From the 63rd thread on,
    /// all are taken for one.
    Thread(u64),
    /// A chunk was alive between these seconds after the start.
    Time(f64, f64),
}

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Filter, String> {
        let wrong = || {
            format!(
                "{text:?} is no filter: function=TEXT, type=TEXT, thread=ID or time=FROM..TO in \
                 seconds"
            )
        };
        let (kind, value) = { text.split_once('=') }
            .filter(|(_, value)| !value.is_empty())
            .ok_or_else(wrong)?;
        let bound = |text: &str, open: f64| match text.trim() {
            "" => Ok(open),
            number => number
                .parse()
                .ok()
                .filter(|at: &f64| *at >= 0.0)
                .ok_or_else(wrong),
        };
        match kind {
            "function" => Ok(Filter::Function(value.to_owned())),
            "type" => Ok(Filter::Type(value.to_owned())),
            "thread" => value.parse().map(Filter::Thread).map_err(|_| wrong()),
            "time" => {
                let (from, to) = value.split_once("..").ok_or_else(wrong)?;
                let [from, to] = [bound(from, 0.0)?, bound(to, f64::INFINITY)?];
                if from <= to {
                    Ok(Filter::Time(from, to))
                } else {
                    Err(wrong())
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl Filter {
    /// Whether it admits each site.
    fn admits(&self, profile: &Profile) -> Vec<bool> {
        let sites = profile.sites.iter();
        match self {
            Filter::Function(text) => sites
                .map(|site| stack(profile, site).any(|it| it.function.contains(text)))
                .collect(),
            Filter::Type(text) => sites
                .map(|site| type_name(profile, site.type_id).is_some_and(|it| it.contains(text)))
                .collect(),
            Filter::Thread(id) => {
                let thread = profile.threads.iter().position(|thread| thread.id == *id);
                let is_it = |index: u64| thread.is_some_and(|it| it as u64 == index);
                let windows = profile.windows.iter().filter(|it| is_it(it.thread.into()));
                let accesses = windows.flat_map(|window| &window.accesses);
                let bit = 1 << (*id).min(63);
                let mut admitted: Vec<bool> = sites.map(|site| site.threads & bit != 0).collect();
                for site in accesses.map(|it| it.site) {
                    let found = usize::try_from(site)
                        .ok()
                        .and_then(|it| admitted.get_mut(it));
                    found.into_iter().for_each(|it| *it = true);
                }
                admitted
            }
            Filter::Time(from, to) => {
                let is_alive = |group: &Group| {
                    let [first, last] = [group.first_allocated, group.last_freed]
                        .map(|time| profile.seconds(time.max(1)));
                    first <= *to && last >= *from
                };
                sites.map(|site| site.groups.iter().any(is_alive)).collect()
            }
        }
    }
}

type Set = fn(&mut Options, f64);

/// A parameter of [`Options::scores`] or [`Options::findings`]; as text, `NAME=NUMBER`.
#[derive(Clone, Copy, Debug)]
pub struct Threshold {
    set: Set,
    number: f64,
}

impl Threshold {
    const NAMES: [(&'static str, Set); 7] = [
        ("group", |options, part| {
            options.scores.group_threshold = part;
        }),
        ("short", |options, part| options.scores.short = Some(part)),
        ("share", |options, part| options.findings.min_share = part),
        ("bytes", |options, n| {
            options.findings.min_bytes = rounded(n);
        }),
        ("calls", |options, n| {
            options.findings.min_calls = rounded(n);
        }),
        ("used", |options, part| options.findings.used_part = part),
        ("idle", |options, part| options.findings.idle_part = part),
    ];

    /// Changes the options.
    pub fn apply(self, options: &mut Options) {
        (self.set)(options, self.number);
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Threshold, String> {
        let (name, number) = text.split_once('=').unwrap_or((text, ""));
        let number = number.parse().ok().filter(|number: &f64| *number >= 0.0);
        let found = Threshold::NAMES.iter().find(|it| it.0 == name);
        let both = found.map(|it| it.1).zip(number);
        both.map(|(set, number)| Threshold { set, number })
            .ok_or_else(|| {
                let names = Threshold::NAMES.map(|it| it.0).join("=, ");
                format!("{text:?} is no threshold: {names}= and a number from 0 on")
            })
    }
}

/// Where a site is: its own line and function, and before it the line of the package that
/// allocates, if that is another. Both lines are kept at the cost of folders and functions if they
/// take more than `columns`.
pub(crate) fn site_place(
    profile: &Profile,
    site: usize,
    options: &Options,
    columns: usize,
) -> String {
    let site = &profile.sites[site];
    let frame = { site.place }.and_then(|place| profile.frames.get(usize::try_from(place).ok()?));
    let Some(own) = frame.or_else(|| stack(profile, site).next()) else {
        return "unknown".to_owned();
    };
    let root = options.root.as_deref();
    let Some(library) = library_frame(&site.stack, site.place, &profile.frames) else {
        return text::place(own, root, columns / 3 * 2);
    };
    let long = [library, own]
        .map(|frame| text::place(frame, root, usize::MAX))
        .join(" < ");
    if long.width() <= columns {
        return long;
    }
    let mut package = text::short_line(library, root);
    if package.width() + MIN_OWN > columns
        && let Some((_, file)) = package.rsplit_once(' ')
    {
        package = file.to_owned();
    }
    let rest = columns.saturating_sub(package.width() + 3);
    format!("{package} < {}", text::place(own, root, rest / 2))
}

/// The frames of a site, innermost first.
pub(crate) fn stack<'a>(profile: &'a Profile, site: &'a Site) -> impl Iterator<Item = &'a Frame> {
    let frames = site.stack.iter();
    frames.filter_map(|&frame| profile.frames.get(usize::try_from(frame).ok()?))
}

/// What the analyses say, and which sites are shown.
pub(crate) struct Results {
    pub(crate) scores: Vec<Scores>,
    pub(crate) inferences: Vec<Inferences>,
    /// Findings on the sites shown, the most saving first.
    pub(crate) findings: Vec<Finding>,
    pub(crate) misses: Option<Misses>,
    pub(crate) waits: Waits,
    /// By site, if pointers were seen.
    pub(crate) retained: Option<Vec<Retained>>,
    /// Indices of the sites that the filters admit, in order.
    pub(crate) shown: Vec<usize>,
    /// Whether the filters admit a site.
    pub(crate) admitted: Vec<bool>,
    /// By site, the first site of its structure.
    together: Vec<usize>,
}

/// That the program waits for a structure, and what to run next.
fn waiting_finding(of: &Waiting, options: &Options) -> Finding {
    let name = of.name.as_deref().unwrap_or_default();
    let collection = name.split('<').next().unwrap_or_default();
    let name = match collection {
        "" => "these chunks".to_owned(),
        "Box" | "Rc" | "Arc" | "Vec" if name.len() <= LONG_NAME => format!("this {name}"),
        _ => format!("this {collection}"),
    };
    let file = { options.file.as_deref() }.map_or("FILE".into(), |it| it.display().to_string());
    Finding {
        site: of.sites[0],
        kind: Kind::Waits,
        sentence: text::escape(&format!("waits for {name}: `ccscope advise {file}`")),
        amount: Amount::Sites(of.sites.len() as u64),
        share: of.share.min(1.0),
    }
}

impl Results {
    pub(crate) fn new(profile: &Profile, options: &Options) -> Results {
        let scores = scores(profile, &options.scores);
        let machine = options.machine();
        let mut admitted = vec![true; profile.sites.len()];
        for filter in &options.filters {
            let by_filter = filter.admits(profile);
            admitted
                .iter_mut()
                .zip(by_filter)
                .for_each(|(all, one)| *all &= one);
        }
        let windows = ReplayedWindows::new(profile, machine);
        let waits = windows.as_ref().map(|it| waits(profile, it));
        let waits = waits.unwrap_or_default();
        let mut findings = findings(profile, &options.findings);
        let waiting = waits.structures.iter().filter(|it| it.is_finding);
        findings.extend(waiting.map(|it| waiting_finding(it, options)));
        finding::sort(&mut findings);
        findings.retain(|finding| admitted[finding.site]);
        let mut results = Results {
            inferences: inferences(profile, &scores),
            misses: windows.and_then(|it| misses(profile, &it)),
            waits,
            retained: retained(profile),
            scores,
            findings,
            together: together(profile),
            shown: (0..admitted.len()).filter(|&site| admitted[site]).collect(),
            admitted,
        };
        results.sort(profile, options.sort);
        results
    }

    /// Equal sites are in order of their bytes at the peak, then of their index.
    fn sort(&mut self, profile: &Profile, sort: Sort) {
        let keys = self.keys(profile, sort);
        self.shown.sort_by(|&a, &b| {
            let bytes = |index: usize| {
                let site = &profile.sites[index];
                Reverse((site.at_peak_usable, site.usable))
            };
            let by_key = keys[b].total_cmp(&keys[a]);
            by_key.then(bytes(a).cmp(&bytes(b))).then(a.cmp(&b))
        });
    }

    /// By site, the largest first.
    fn keys(&self, profile: &Profile, sort: Sort) -> Vec<f64> {
        // Unknown scores come last.
        let worst = |score: fn(&Scores) -> Option<f64>| {
            self.scores
                .iter()
                .map(|it| score(it).map_or(-2.0, |score| -score))
                .collect()
        };
        let sites = |key: fn(&Site) -> f64| profile.sites.iter().map(key).collect();
        let largest = |of_sites: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut keys = vec![0.0f64; profile.sites.len()];
            of_sites.for_each(|(site, key)| keys[site] = keys[site].max(key));
            keys
        };
        match sort {
            Sort::Saving => largest(&mut self.findings.iter().map(|it| (it.site, it.weight()))),
            Sort::Misses => {
                let all = self.misses.iter().flat_map(|misses| &misses.sites);
                largest(&mut all.map(|it| (it.site, it.wait_ns)))
            }
            Sort::Peak => sites(|site| site.at_peak_usable as f64),
            Sort::Bytes => sites(|site| site.usable as f64),
            Sort::End => sites(|site| site.end_usable as f64),
            Sort::Leaked => {
                let leaks = profile.leaks.iter();
                let of = |it: &Leaks| Some((it.site? as usize, it.all_bytes() as f64));
                largest(&mut leaks.filter_map(of))
            }
            Sort::Retained => {
                let retained = self.retained.iter().flatten().enumerate();
                largest(&mut retained.map(|(site, it)| (site, it.bytes as f64)))
            }
            Sort::Allocations => sites(|site| site.allocations as f64),
            Sort::Drag => sites(|site| site.drag),
            Sort::Accesses => sites(|site| site.reads as f64 + site.writes as f64),
            Sort::Severity => worst(Scores::severity),
            Sort::Lifetime => worst(|scores| scores.lifetime),
            Sort::Usage => worst(|scores| scores.usage),
            Sort::UsefulLifetime => worst(|scores| scores.useful_lifetime),
        }
    }

    /// At most `most` rows of these sites, in their order: sites of one structure are one row, if
    /// they have no finding of their own.
    pub(crate) fn rows(&self, sites: &[usize], most: usize) -> Vec<Vec<usize>> {
        let mut is_alone = vec![false; self.together.len()];
        for it in self.findings.iter().filter(|it| it.kind != Kind::Waits) {
            is_alone[it.site] = true;
        }
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut row_of: HashMap<usize, usize> = HashMap::new();
        for &site in sites {
            match row_of.get(&self.together[site]) {
                Some(&row) if !is_alone[site] => rows[row].push(site),
                _ => {
                    if !is_alone[site] {
                        row_of.insert(self.together[site], rows.len());
                    }
                    rows.push(vec![site]);
                }
            }
        }
        rows.truncate(most);
        rows
    }

    /// The findings of a site, the most saving first.
    pub(crate) fn of_site(&self, site: usize) -> impl Iterator<Item = &Finding> {
        self.findings
            .iter()
            .filter(move |finding| finding.site == site)
    }
}

#[cfg(test)]
mod tests;
