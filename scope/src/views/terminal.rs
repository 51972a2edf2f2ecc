//! Text for a terminal.
//!
//! [`summary`] is one screen of at most [`SCREEN`] lines; the other views answer one question each.
//! No line is wider than [`Options::width`].

use std::fmt::Write as _;

use crate::analyses::curves::{Gap, StepFunction, end_ns, gap_at_peak, phases};
use crate::analyses::misses::{Interval, SiteMisses};
use crate::analyses::scores::{Scores, Spread, global};
use crate::analyses::types::{by_type, field_at, type_name};
use crate::analyses::units::{bytes, percent, plural, ratio, rounded, seconds, short_count, sum};
use crate::profile::{Exit, Frame, Profile, Site, Thread, Type};
use crate::views::text::{Table, bars, escape, fit, fit_middle, line, named_place, wrap};
use crate::views::{Results, site_place};

pub use crate::views::{Filter, Options, Sort};
pub use leaks::leaks;
pub use regions::regions;
pub(in crate::views) use regions::{region_finding, region_name};
pub use site::source;

mod exceeded;
mod leaks;
mod pages;
mod regions;
mod site;

/// Lines of the summary.
pub const SCREEN: usize = 40;
/// Rows of the summary's tables.
const SUMMARY_SITES: usize = 5;
const SUMMARY_REGIONS: usize = 16;
const SUMMARY_MAPPINGS: usize = 20;
const SUMMARY_TYPES: usize = 4;
const SUMMARY_MISSES: usize = 3;
/// A smaller part of the peak that is not touched needs no line.
const UNTOUCHED_PART: f64 = 0.1;
/// Waiting of a smaller part of the time needs no row.
const MIN_WAIT: f64 = 0.005;
/// Instead of an empty table.
const NO_SITE: &str = "no site passes the filters";
/// Columns of the labels before a line of the summary.
const LABEL: usize = 13;
/// Those by which programs crash or are ended.
const SIGNALS: [(i32, &str); 9] = [
    (2, "SIGINT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (15, "SIGTERM"),
];
/// From red over yellow and green to blue, as S. Byma and J. Larus (2018) have it (4.2.1).
const COLOURS: [u8; 12] = [196, 202, 208, 214, 220, 226, 190, 118, 46, 48, 39, 27];

/// What is printed, and what it is printed from.
struct View<'a> {
    profile: &'a Profile,
    options: &'a Options,
    results: Results,
    width: usize,
    out: String,
}

impl<'a> View<'a> {
    fn new(profile: &'a Profile, options: &'a Options) -> View<'a> {
        View {
            profile,
            options,
            results: Results::new(profile, options),
            width: options.width.clamp(60, 240),
            out: String::new(),
        }
    }

    fn head(&mut self, text: &str) {
        line(
            &mut self.out,
            &fit(text, self.width),
            self.options.colour.then_some("1"),
        );
    }

    fn line(&mut self, text: &str) {
        line(&mut self.out, &fit(text, self.width), None);
    }

    /// A text with a label before it.
    fn labelled(&mut self, label: &str, text: &str) {
        for wrapped in wrap(&format!("{label:LABEL$}{text}"), self.width, LABEL) {
            self.line(&wrapped);
        }
    }

    fn table(&mut self, table: &Table) {
        table.print(&mut self.out, self.width, self.options.colour);
    }

    fn colour(&self, site: usize) -> Option<u8> {
        self.results.scores[site].colour().map(|step| COLOURS[step])
    }

    fn place(&self, index: usize, columns: usize) -> String {
        site_place(self.profile, index, self.options, columns)
    }

    fn frame(&self, frame: &Frame, function: &str, max_path: usize) -> String {
        named_place(frame, function, self.options.root.as_deref(), max_path)
    }

    /// `#12`, or `#12+3` if three others are in the row.
    fn number(row: &[usize]) -> String {
        match row {
            [index] => format!("#{index}"),
            [first, others @ ..] => format!("#{first}+{}", others.len()),
            [] => String::new(),
        }
    }

    /// A table of these rows of sites, each with its first finding.
    fn sites_table(&self, rows: &[Vec<usize>]) -> Table {
        let heads = [
            "site", ">at peak", ">allocs", ">life", ">use", ">useful", "where",
        ];
        let mut table = Table::new(&heads);
        for row in rows {
            let Some(&first) = row.first() else {
                continue;
            };
            let finding = self.results.of_site(first).next();
            let total =
                |of: fn(&Site) -> u64| sum(row.iter().map(|&site| of(&self.profile.sites[site])));
            let mean = |score: fn(&Scores) -> Option<f64>, weight: fn(&Site) -> u64| {
                let known = row.iter().filter_map(|&site| {
                    let weight = weight(&self.profile.sites[site]) as f64;
                    Some((score(&self.results.scores[site])? * weight, weight))
                });
                let all = known.reduce(|a, b| (a.0 + b.0, a.1 + b.1));
                all.map(|(scores, weights)| scores / weights)
            };
            let mut cells = vec![
                Self::number(row),
                bytes(total(|site| site.at_peak_usable)),
                short_count(total(|site| site.allocations)),
                score(mean(|it| it.lifetime, |site| site.allocations)),
                score(mean(|it| it.usage, |site| site.requested)),
                score(mean(|it| it.useful_lifetime, |site| site.allocations)),
            ];
            let taken: usize = cells.iter().map(|cell| cell.len().max(4) + 2).sum();
            cells.push(self.place(first, self.width.saturating_sub(taken + 6)));
            let sentence = finding.map(|it| format!("{}: {}", it.part(), it.sentence));
            table.row(cells, sentence, self.colour(first));
        }
        table
    }

    fn types_table(&self, rows: usize) -> Table {
        let heads = [
            ">at peak", ">chunks", ">allocs", ">in all", ">touched", "type",
        ];
        let mut table = Table::new(&heads);
        for sums in by_type(self.profile, &self.results.shown)
            .into_iter()
            .take(rows)
        {
            let touched = match self.profile.run.accesses {
                true => percent(ratio(sums.touched, sums.requested).min(1.0)),
                false => "-".to_owned(),
            };
            let cells = vec![
                bytes(sums.at_peak_usable),
                short_count(sums.at_peak_chunks),
                short_count(sums.allocations),
                bytes(sums.usable),
                touched,
                escape(&sums.name),
            ];
            table.row(cells, None, None);
        }
        table
    }

    /// The structures that wait for memory, as far as they are shown.
    fn misses_table(&self, rows: usize) -> Table {
        let caches = self.caches();
        let [first, last] = [caches.first(), caches.last()]
            .map(|name| format!(">{}/1000", name.map_or("", |name| name)));
        let heads = ["site", ">of time", &first, &last, ">accesses", "where"];
        let mut table = Table::new(&heads);
        let all = self.results.waits.structures.iter();
        let shown = all.filter(|it| self.results.admitted[it.sites[0]] && it.share >= MIN_WAIT);
        for waiting in shown.take(rows) {
            let sites = waiting.sites.iter().map(|&site| &self.profile.sites[site]);
            let accesses = sum(sites.map(|site| site.reads.saturating_add(site.writes)));
            let per_1000 = self.misses_of(&waiting.sites);
            let mut cells = vec![
                Self::number(&waiting.sites),
                percent(waiting.share),
                per_1000.first().map_or_else(String::new, range),
                per_1000.last().map_or_else(String::new, range),
                short_count(accesses),
            ];
            let taken: usize = cells.iter().map(|cell| cell.len().max(7) + 2).sum();
            cells.push(self.place(waiting.sites[0], self.width.saturating_sub(taken)));
            table.row(cells, None, self.colour(waiting.sites[0]));
        }
        table
    }

    /// Misses of a thousand accesses to these sites, by cache.
    fn misses_of(&self, sites: &[usize]) -> Vec<Interval> {
        let all = self.results.misses.iter().flat_map(|misses| &misses.sites);
        let own: Vec<&SiteMisses> = all.filter(|it| sites.contains(&it.site)).collect();
        // What the rates of each are of.
        let accesses = |it: &SiteMisses| {
            let level = it
                .misses
                .iter()
                .zip(&it.per_1000)
                .find(|(_, rate)| rate.high > 0.0);
            level.map_or(it.recorded as f64, |(misses, rate)| {
                misses.high * 1000.0 / rate.high
            })
        };
        let all: f64 = own.iter().map(|it| accesses(it)).sum();
        let level = |level: usize| {
            let mean = |end: fn(&Interval) -> f64| {
                let misses = own.iter().filter_map(|it| it.misses.get(level)).map(end);
                misses.sum::<f64>() * 1000.0 / all.max(1.0)
            };
            Interval {
                low: mean(|it| it.low),
                estimate: mean(|it| it.estimate),
                high: mean(|it| it.high),
            }
        };
        (0..self.caches().len()).map(level).collect()
    }

    /// Names of caches, without translation buffers.
    fn caches(&self) -> Vec<String> {
        let levels = self.results.misses.iter().flat_map(|misses| &misses.levels);
        let caches = levels.take_while(|name| !name.to_uppercase().contains("TLB"));
        caches.map(|name| escape(name)).collect()
    }

    fn machine_line(&self) -> Option<String> {
        let misses = self.results.misses.as_ref()?;
        let recorded = short_count(misses.recorded);
        let from = if misses.is_complete {
            "all accesses".to_owned()
        } else if self.profile.windows.iter().all(|window| window.from_start) {
            format!("the run's first {recorded} accesses (--rate 100 has more)")
        } else {
            format!(
                "{} ({recorded} accesses)",
                plural(misses.windows as u64, "window")
            )
        };
        Some(format!(
            "simulated from {from} on {}",
            escape(&misses.machine)
        ))
    }

    /// What ran, and how it ended.
    fn title(&self) -> String {
        let run = &self.profile.run;
        let exit = match run.exit {
            Exit::Code(code) => format!("exit {code}"),
            Exit::Signal(signal) => match SIGNALS.iter().find(|it| it.0 == signal) {
                Some((_, name)) => format!("ended by signal {signal} ({name})"),
                None => format!("ended by signal {signal}"),
            },
            Exit::Unknown => "end not seen".to_owned(),
            Exit::Ended => "ended".to_owned(),
        };
        let command: Vec<String> = run.command.iter().map(|word| escape(word)).collect();
        let mut tail = format!(": {exit} after {}", seconds(run.seconds));
        // A trace has none.
        if self.profile.mappings.is_empty() {
            let threads = plural(self.profile.threads.len() as u64, "thread");
            let _infallible = write!(tail, ", {threads}");
        }
        let room = self.width.saturating_sub(tail.len());
        format!("{}{tail}", fit_middle(&command.join(" "), room))
    }

    fn totals(&mut self) {
        let (run, total) = (&self.profile.run, &self.profile.total);
        let title = self.title();

        let peak_at = self.profile.seconds(total.peak_time.max(1));
        let mut memory = format!("peak {}", bytes(total.peak_usable));
        if total.peak_requested > 0 {
            let _infallible = write!(memory, " ({} asked for)", bytes(total.peak_requested));
        }
        let _infallible = write!(memory, " at {}", seconds(peak_at));
        if run.accesses && self.profile.regions.is_empty() {
            let touched = self.touched_at_peak();
            let _infallible = write!(memory, ", {} touched", bytes(touched));
            let unseen = self.profile.sites.iter().filter(|site| site.unseen);
            let unseen = sum(unseen.map(|site| site.at_peak_usable));
            if ratio(unseen, total.peak_usable) >= UNTOUCHED_PART {
                let _infallible = write!(memory, ", {} of it not seen", bytes(unseen));
            }
        }
        let resident = StepFunction::resident(&self.profile.resident).max(0, u64::MAX);
        if resident > 0 {
            let _infallible = write!(memory, ", {} resident", bytes(resident));
        }
        let _infallible = write!(memory, ", {} at the end", bytes(total.end_usable));

        let chunks = plural(total.allocations, "chunk");
        let mut allocations = format!("{chunks}, {} in all", bytes(total.usable));
        if !self.profile.sites.is_empty() {
            let temporary = sum(self.profile.sites.iter().map(|site| site.temporary));
            let _infallible = write!(
                allocations,
                ", {} temporary, from {}",
                percent(ratio(temporary, total.allocations)),
                plural(self.profile.sites.len() as u64, "site"),
            );
        }
        self.head(&title);
        self.labelled("memory", &memory);
        self.labelled("allocations", &allocations);
        if run.accesses {
            let mut accesses = format!(
                "{} reads, {} writes in the heap; {} elsewhere",
                short_count(total.heap_reads),
                short_count(total.heap_writes),
                short_count(total.other_reads.saturating_add(total.other_writes)),
            );
            if total.foreign_bytes > 0 {
                let part = percent(ratio(total.foreign_bytes, total.block_bytes));
                let _infallible = write!(accesses, "; {part} of copies in libc");
            }
            self.labelled("accesses", &accesses);
        }
        let global = global(&self.results.scores);
        let named = [
            ("lifetime", "at 0", global.lifetime),
            ("usage", "unused", global.usage),
            ("useful lifetime", "unused", global.useful_lifetime),
        ];
        let scores: Vec<String> = named
            .iter()
            .filter_map(|(name, zeros_are, it)| spread(name, zeros_are, *it))
            .collect();
        if !scores.is_empty() {
            self.labelled(
                "scores",
                &format!("{} (means; 1 is best)", scores.join(", ")),
            );
        }
    }

    /// What is missing from the profile, as far as the screen has room; a line at least.
    /// `after`: lines that come behind them.
    fn notes(&mut self, caveats: &[String], after: usize) {
        for (i, caveat) in caveats.iter().enumerate() {
            let others = caveats.len() - i - 1;
            let text = format!("{:LABEL$}{}", "note", escape(caveat));
            let lines = wrap(&text, self.width, LABEL);
            let room = SCREEN.saturating_sub(self.out.lines().count() + after);
            // Those that come after need a line.
            if lines.len() + usize::from(others > 0) <= room {
                lines.iter().for_each(|text| self.line(text));
                continue;
            }
            let more = match others {
                0 => String::new(),
                others => format!(" (and {others} more in --json)"),
            };
            let columns = self.width.saturating_sub(more.len());
            self.line(&format!("{}{more}", fit(&text, columns)));
            return;
        }
    }

    /// Touched bytes of the process's heap at its peak.
    fn touched_at_peak(&self) -> u64 {
        let touched = |site: &Site| site.at_peak_touched;
        sum(self.profile.sites.iter().map(touched)).min(self.profile.total.peak_usable)
    }

    /// The sites that have the bytes which are not touched at the peak.
    fn untouched(&mut self) {
        let peak = self.profile.total.peak_usable;
        let gaps = gap_at_peak(self.profile);
        let all = sum(gaps.iter().map(|gap| gap.allocated - gap.touched));
        let all = all.min(peak.saturating_sub(self.touched_at_peak()));
        if gaps.is_empty() || ratio(all, peak) < UNTOUCHED_PART {
            return;
        }
        let one = |gap: &Gap| format!("#{} {}", gap.site, bytes(gap.allocated - gap.touched));
        let sites: Vec<String> = gaps.iter().take(3).map(one).collect();
        let text = format!("{} at the peak: {}", bytes(all), sites.join(", "));
        self.line(&format!("{:LABEL$}{text}", "untouched"));
    }

    /// Allocated and touched bytes over time, of the same height.
    fn curves(&mut self) {
        let end = end_ns(self.profile);
        let columns = (self.width - LABEL) as u64;
        let full = self.profile.total.peak_usable;
        if self.profile.curve.len() < 2 || end == 0 {
            return;
        }
        let allocated = StepFunction::allocated(&self.profile.curve);
        let touched = StepFunction::touched(&self.profile.curve);
        for (label, curve) in [("allocated", allocated), ("touched", touched)] {
            let at = |column: u64| {
                let edge = |column: u64| u128::from(end) * u128::from(column) / u128::from(columns);
                let [from, to] = [edge(column), edge(column + 1)];
                let ns = |at: u128| u64::try_from(at).unwrap_or(u64::MAX);
                curve.max(ns(from), ns(to).saturating_sub(1))
            };
            let values: Vec<u64> = (0..columns).map(at).collect();
            if values.iter().any(|&value| value > 0) {
                self.line(&format!("{label:LABEL$}{}", bars(&values, full)));
            }
        }
    }
}

/// Two digits; a dash where it is not known.
fn score(score: Option<f64>) -> String {
    score.map_or_else(|| "-".to_owned(), |score| format!("{score:.2}"))
}

/// A score of the whole program: the mean of the sites that do not score 0, and how many do.
fn spread(name: &str, zeros_are: &str, spread: Option<Spread>) -> Option<String> {
    let spread = spread?;
    Some(match spread.zeros {
        0 => format!("{name} {:.2}", spread.geometric_mean),
        zeros if zeros == spread.sites => format!("{name} 0"),
        zeros => {
            let sites = plural(zeros as u64, "site");
            format!(
                "{name} {:.2} ({sites} {zeros_are})",
                spread.geometric_mean_of_others
            )
        }
    })
}

/// `3-12`, or `7` if both are the same.
pub(super) fn range(interval: &Interval) -> String {
    let [low, high] = [interval.low, interval.high].map(|misses| format!("{misses:.0}"));
    if low == high {
        low
    } else {
        format!("{low}-{high}")
    }
}

/// One screen: where the memory went, the worst sites and why, types, the sites that wait for
/// memory, and what to do first.
#[must_use]
pub fn summary(profile: &Profile, options: &Options) -> String {
    let mut view = View::new(profile, options);
    if !profile.mappings.is_empty() {
        view.head(&view.title());
        view.pages(options.rows.min(SUMMARY_MAPPINGS));
        view.notes(&profile.run.caveats, 0);
        return view.out;
    }
    view.totals();
    view.exceeded();
    view.untouched();
    view.curves();
    if !profile.regions.is_empty() {
        view.regions(options.rows.min(SUMMARY_REGIONS));
        view.notes(&profile.run.caveats, 0);
        return view.out;
    }

    let rows = options.rows.min(SUMMARY_SITES);
    let worst = view.results.rows(&view.results.shown, rows);
    if !worst.is_empty() {
        view.line("");
        let table = view.sites_table(&worst);
        view.table(&table);
    }
    let types = view.types_table(options.rows.min(SUMMARY_TYPES));
    if !types.is_empty() {
        view.line("");
        view.table(&types);
    }
    let misses = view.misses_table(options.rows.min(SUMMARY_MISSES));
    let waits = &view.results.waits;
    let (share, is_typical) = (percent(waits.share), waits.is_typical);
    if let Some(machine) = view.machine_line() {
        view.line("");
        let what = if is_typical { "the time" } else { "the start" };
        view.line(&format!("waits for memory: {share} of {what}, {machine}"));
        if is_typical && !misses.is_empty() {
            view.table(&misses);
        }
    }
    view.line("");
    let Some(it) = view.results.findings.first() else {
        // What was not seen may stand out.
        view.notes(&profile.run.caveats, 2);
        let none = match view.results.shown.is_empty() && !options.filters.is_empty() {
            true => NO_SITE.to_owned(),
            false => format!(
                "nothing stands out: no site wastes {} of memory or time",
                percent(options.findings.min_share)
            ),
        };
        view.labelled("try first", &none);
        return view.out;
    };
    // A line, so that there are three at most.
    let columns = view.width - LABEL - 8;
    let place = fit(&view.place(it.site, columns), columns);
    let first = format!("#{} {place}: {}: {}", it.site, it.part(), it.sentence);
    view.labelled("try first", &first);
    view.notes(&profile.run.caveats, 0);
    view.out
}

/// The sites with their scores, each with its most saving finding, and how many there are.
#[must_use]
pub fn sites(profile: &Profile, options: &Options) -> String {
    let mut view = View::new(profile, options);
    if view.results.shown.is_empty() && !options.filters.is_empty() {
        view.line(NO_SITE);
        return view.out;
    }
    let shown = view.results.shown.iter().take(options.rows);
    let shown: Vec<Vec<usize>> = shown.map(|&site| vec![site]).collect();
    let table = view.sites_table(&shown);
    view.table(&table);
    let (all, rows) = (profile.sites.len(), shown.len());
    view.line("");
    let admitted = view.results.shown.len();
    view.line(&format!(
        "{rows} of {} shown, {} in all",
        admitted,
        plural(all as u64, "site")
    ));
    view.out
}

/// The types, by bytes at the peak.
#[must_use]
pub fn types(profile: &Profile, options: &Options) -> String {
    let mut view = View::new(profile, options);
    let table = view.types_table(options.rows);
    view.table(&table);
    view.out
}

/// The threads, those that allocated most first, and the rate of allocations over time.
#[must_use]
pub fn threads(profile: &Profile, options: &Options) -> String {
    /// Phases of the run.
    const PHASES: u32 = 10;
    let mut view = View::new(profile, options);
    let heads = [
        ">thread", ">from", ">to", ">allocs", ">peak", ">at end", ">events",
    ];
    let mut table = Table::new(&heads);
    let named = |thread: &&Thread| {
        let mut wanted = options.filters.iter().filter_map(|filter| match filter {
            Filter::Thread(id) => Some(*id),
            _ => None,
        });
        wanted.all(|id| id == thread.id)
    };
    let mut threads: Vec<&Thread> = profile.threads.iter().filter(named).collect();
    threads.sort_by_key(|thread| (std::cmp::Reverse(thread.allocations), thread.id));
    for thread in threads.into_iter().take(options.rows) {
        let at = |time: u64| seconds(profile.seconds(time.max(1)));
        let cells = vec![
            thread.id.to_string(),
            at(thread.started),
            at(thread.ended),
            short_count(thread.allocations),
            bytes(thread.peak),
            bytes(thread.end_live),
            short_count(thread.events),
        ];
        table.row(cells, None, None);
    }
    view.table(&table);
    view.line("");
    let mut rates = Table::new(&[">from", ">to", ">allocs", ">allocs/s", ">peak"]);
    for phase in phases(profile, PHASES) {
        let cells = vec![
            seconds(phase.from),
            seconds(phase.to),
            short_count(phase.allocations),
            short_count(rounded(phase.rate)),
            bytes(phase.peak),
        ];
        rates.row(cells, None, None);
    }
    view.table(&rates);
    view.out
}

/// Pointers from chunks of one site to chunks of another, the most loaded first.
#[must_use]
pub fn edges(profile: &Profile, options: &Options) -> String {
    let mut view = View::new(profile, options);
    let mut table = Table::new(&[">loads", ">followed", "from", "field", "to"]);
    let mut shown: Vec<_> = { profile.edges.iter() }
        .filter_map(|edge| {
            let [from, to] = [edge.from, edge.to].map(|site| usize::try_from(site).ok());
            let is_shown = |site: Option<usize>| site.filter(|&it| view.results.admitted[it]);
            let known = |site: Option<usize>| site.filter(|it| *it < profile.sites.len());
            let both = known(from).zip(known(to))?;
            is_shown(Some(both.0))
                .or(is_shown(Some(both.1)))
                .map(|_| (edge, both))
        })
        .collect();
    shown.sort_by_key(|(edge, sites)| (std::cmp::Reverse(edge.loads), *sites, edge.offset));
    for (edge, (from, to)) in shown.into_iter().take(options.rows) {
        let cells = vec![
            short_count(edge.loads),
            percent(ratio(edge.followed, edge.loads)),
            format!("#{from} {}", view.name(from)),
            view.field(from, u64::from(edge.offset)),
            format!("#{to} {} {}", view.name(to), view.place(to, view.width / 2)),
        ];
        table.row(cells, None, None);
    }
    view.table(&table);
    view.out
}

impl View<'_> {
    fn name(&self, site: usize) -> String {
        let name = type_name(self.profile, self.profile.sites[site].type_id);
        escape(name.unwrap_or("unknown"))
    }

    /// The name of a field, or its offset.
    fn field(&self, site: usize, offset: u64) -> String {
        let found = self.element(site);
        let size = found.and_then(|it| it.size).filter(|&size| size > 0);
        let offset = size.map_or(offset, |size| offset % size);
        let field = found.and_then(|it| field_at(it, offset));
        field.map_or_else(|| format!("+{offset}"), |field| escape(&field.name))
    }

    /// The type of a site's elements.
    fn element(&self, site: usize) -> Option<&Type> {
        let id = self.profile.sites[site].type_id?;
        self.profile.types.get(usize::try_from(id).ok()?)
    }
}
