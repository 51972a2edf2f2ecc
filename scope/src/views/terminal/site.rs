//! One site on a terminal: everything that is known of it, and its lines of source.

use std::path::Path;

use super::{View, range, score};
use crate::analyses::curves::gap_at_peak;
use crate::analyses::findings::seconds_per_event;
use crate::analyses::leaks::of_site;
use crate::analyses::misses::Interval;
use crate::analyses::scores::Pattern;
use crate::analyses::units::{
    byte_seconds, bytes, count, plural, ratio, rounded, seconds, short_count,
};
use crate::profile::{Profile, Site};
use crate::views::text::{Table, escape};
use crate::views::{Options, stack};

/// Sites that are named of those that another keeps alive.
const KEPT_SITES: usize = 8;
/// Lines of source before and after the place of a site.
const AROUND: usize = 3;
/// A file of source that is larger is none.
const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// Everything about a site, and the lines of source around it, if the file is there. One line if
/// there is no such site.
#[must_use]
pub fn source(profile: &Profile, options: &Options, site: usize) -> String {
    // All its findings, whatever the filters say.
    let all = Options {
        filters: Vec::new(),
        ..options.clone()
    };
    let mut view = View::new(profile, &all);
    let Some(it) = profile.sites.get(site) else {
        let last = plural(profile.sites.len() as u64, "site");
        return format!("no site #{site}: the profile has {last}, from #0 on\n");
    };
    let columns = view.width.saturating_sub(8);
    view.head(&format!("#{site} {}", view.place(site, columns)));
    view.numbers(site, it);
    view.bytes(site);
    view.fields(site);
    view.line("");
    for frame in stack(profile, it) {
        let text = format!("  {}", view.frame(frame, &frame.function, usize::MAX));
        view.line(&text);
    }
    view.lines_around(it);
    view.out
}

impl View<'_> {
    /// Which bytes of a chunk are read and written: neighbours with the same counts are one row.
    fn bytes(&mut self, index: usize) {
        let Some(histogram) = &self.profile.sites[index].histogram else {
            return;
        };
        let counts: Vec<(u64, u64)> = histogram
            .reads
            .iter()
            .copied()
            .zip(histogram.writes.iter().copied())
            .collect();
        let mut table = Table::new(&[">bytes", ">reads", ">writes", "field"]);
        let mut first = 0;
        for run in counts.chunk_by(|a, b| a == b).take(self.options.rows) {
            let [from, to] = [first, first + run.len() - 1];
            let last = if from == to {
                String::new()
            } else {
                format!("-{to}")
            };
            let cells = vec![
                format!("{from}{last}"),
                short_count(run[0].0),
                short_count(run[0].1),
                self.field(index, from as u64),
            ];
            table.row(cells, None, None);
            first += run.len();
        }
        if !table.is_empty() {
            self.line("");
            self.table(&table);
        }
    }

    /// What of the site is leaked, and what it keeps alive besides.
    fn kept(&mut self, index: usize) {
        if let Some(it) = of_site(self.profile, index).filter(|it| it.all_chunks() > 0) {
            let leaked = plural(it.all_chunks(), "chunk");
            let text = format!("{} in {leaked}", bytes(it.all_bytes()));
            self.labelled("leaked", &text);
        }
        let Some(all) = &self.results.retained else {
            return;
        };
        let it = &all[index];
        if it.sites.is_empty() {
            return;
        }
        let named: Vec<String> = { it.sites.iter().take(KEPT_SITES) }
            .map(|site| format!("#{site}"))
            .collect();
        let more = match it.sites.len().saturating_sub(KEPT_SITES) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let text = format!(
            "{} at the program's peak, with {}{more}, to which only it leads",
            bytes(it.bytes),
            named.join(", ")
        );
        self.labelled("keeps alive", &text);
    }

    fn numbers(&mut self, index: usize, site: &Site) {
        let scores = self.results.scores[index];
        let sizes = match site.smallest == site.largest {
            true => bytes(site.largest),
            false => format!("{} to {}", bytes(site.smallest), bytes(site.largest)),
        };
        let at_peak = self.profile.seconds(site.peak_time.max(1));
        let mean_life = rounded(ratio(site.lifetime, site.allocations));
        let lives = [site.shortest_life, mean_life, site.longest_life];
        let [shortest, mean, longest] = lives.map(short_count);
        let lives = match () {
            // Files of other tools have sums alone.
            () if mean_life > site.longest_life => format!("{mean} events on average"),
            () if shortest == longest => format!("{mean} events"),
            () => format!("{shortest} to {longest} events, {mean} on average"),
        };
        let lines = [
            ("type", self.name(index)),
            (
                "chunks",
                format!(
                    "{} of {sizes}, {} at most at a time, {} at the end",
                    count(site.allocations),
                    count(site.peak_chunks),
                    count(site.end_chunks)
                ),
            ),
            (
                "bytes",
                format!(
                    "{} in all ({} asked for), peak {} at {}, {} at the program's peak",
                    bytes(site.usable),
                    bytes(site.requested),
                    bytes(site.peak_usable),
                    seconds(at_peak),
                    bytes(site.at_peak_usable)
                ),
            ),
            (
                "life",
                format!("{lives}; {} temporary", count(site.temporary)),
            ),
            (
                "scores",
                format!(
                    "lifetime {}, usage {}, useful lifetime {}; severity {}",
                    score(scores.lifetime),
                    score(scores.usage),
                    score(scores.useful_lifetime),
                    score(scores.severity())
                ),
            ),
        ];
        for (label, text) in lines {
            self.labelled(label, &text);
        }
        if self.profile.run.accesses {
            let text = format!(
                "{} reads, {} writes; {} of {} touched",
                short_count(site.reads),
                short_count(site.writes),
                bytes(site.touched_bytes),
                bytes(site.chunk_bytes())
            );
            self.labelled("accesses", &text);
            if site.unseen {
                let text = "the chunks are of precompiled code, whose accesses are not seen";
                self.labelled("not seen", text);
            }
        }
        self.kept(index);
        if let Some(rule) = self.options.rules.get(&index) {
            self.labelled("rule", &escape(rule));
        }
        let inferred = &self.results.inferences[index];
        let pattern = |pattern: &Pattern| match pattern {
            Pattern::Loop => "allocated in a loop".to_owned(),
            Pattern::Growth => "grows".to_owned(),
            Pattern::ShortUse => "short use in a long life".to_owned(),
        };
        let mut marks: Vec<String> = inferred.patterns.iter().map(pattern).collect();
        let told = [
            (inferred.most_bytes, "in the top tenth of sites by bytes"),
            (inferred.most_chunks, "in the top tenth of sites by chunks"),
        ];
        marks.extend(
            told.iter()
                .filter(|(is, _)| *is)
                .map(|(_, text)| (*text).to_owned()),
        );
        let counted = [
            (inferred.read_only_chunks, "only read"),
            (inferred.write_only_chunks, "only written"),
        ];
        for (chunks, what) in counted.into_iter().filter(|(chunks, _)| *chunks > 0) {
            marks.push(format!("{} {what}", plural(chunks, "chunk")));
        }
        if inferred.is_growing {
            marks.push(format!(
                "{} sizes in a row grow",
                count(inferred.longest_run)
            ));
        }
        if !marks.is_empty() {
            self.labelled("seen", &marks.join(", "));
        }
        let gaps = gap_at_peak(self.profile);
        if let Some(gap) = gaps.iter().find(|gap| gap.site == index) {
            let untouched = bytes(gap.allocated - gap.touched);
            self.labelled(
                "gap",
                &format!("{untouched} not touched at the program's peak"),
            );
        }
        let drag = site.drag * seconds_per_event(self.profile, site);
        if drag >= 1.0 {
            self.labelled("drag", &byte_seconds(drag));
        }
        let found: Vec<String> = self
            .results
            .of_site(index)
            .map(|finding| finding.sentence.clone())
            .collect();
        for sentence in found {
            self.labelled("try", &sentence);
        }
    }

    /// Misses by field, where there are windows and fields.
    fn fields(&mut self, site: usize) {
        let Some(misses) = &self.results.misses else {
            return;
        };
        let Some(own) = misses.sites.iter().find(|it| it.site == site) else {
            return;
        };
        let mut table = Table::new(&[">offset", ">accesses", ">misses", "field"]);
        // One field is the site itself.
        for field in own
            .fields
            .iter()
            .take(self.options.rows)
            .filter(|_| own.fields.len() > 1)
        {
            let [certain, possible] = [&field.certain, &field.possible]
                .map(|levels| levels.first().copied().unwrap_or(0) as f64);
            let interval = Interval {
                low: certain,
                estimate: certain,
                high: possible,
            };
            let name = field.field.as_deref().map_or_else(String::new, escape);
            let cells = vec![
                field.offset.to_string(),
                short_count(field.recorded),
                range(&interval),
                name,
            ];
            table.row(cells, None, None);
        }
        if let Some(machine) = self.machine_line().filter(|_| !table.is_empty()) {
            self.line("");
            self.line(&format!("first-level misses: {machine}"));
            self.table(&table);
        }
    }

    fn lines_around(&mut self, site: &Site) {
        let place = site
            .place
            .and_then(|it| self.profile.frames.get(usize::try_from(it).ok()?));
        let Some(frame) = place.filter(|frame| frame.line > 0) else {
            return;
        };
        let path = match &self.options.root {
            Some(root) => root.join(&frame.file),
            None => Path::new(&frame.file).to_owned(),
        };
        // A profile may name a device or a pipe.
        let is_file = std::fs::metadata(&path)
            .is_ok_and(|data| data.is_file() && data.len() <= MAX_SOURCE_BYTES);
        let Some(text) = is_file.then(|| std::fs::read(&path).ok()).flatten() else {
            return;
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let at = usize::try_from(frame.line).unwrap_or(usize::MAX);
        let first = at.saturating_sub(AROUND).max(1);
        self.line("");
        for (number, source) in (1..)
            .zip(text.lines())
            .skip(first - 1)
            .take(at - first + AROUND + 1)
        {
            let mark = if number == at { ">" } else { " " };
            let source = escape(&source.replace('\t', "    "));
            self.line(&format!("{mark} {number:>5}  {source}"));
        }
    }
}
