//! Advice as text and JSON.
//!
//! The JSON has `schema`, `"ccscope-advice-1"`, and all of [`Advice`]; in each piece of advice also
//! `where` and `type`, of its first site; `docs/inside/ccscope-format.md` has the keys. Keys are
//! added within a schema, and are never changed or removed.

use serde_json::{Value, json};

use crate::advice::{Advice, Confidence, Item, Kind, LevelMisses};
use crate::analyses::findings::{Finding, findings};
use crate::analyses::types::type_name;
use crate::analyses::units::{percent, plural, rounded, seconds, short_count};
use crate::profile::Profile;
use crate::views::text::{escape, fit, line, wrap};
use crate::views::{Options, site_place};

/// Changes when a key changes or goes.
pub const SCHEMA: &str = "ccscope-advice-1";
/// A level whose misses change by a smaller part is not shown.
const CHANGED: f64 = 0.01;
/// The findings repeated, and the least share of them.
const MAX_FOUND: usize = 5;
const MIN_FOUND: f64 = 0.03;
const INDENT: usize = 4;
/// If no machine was named.
const UNCALIBRATED: &str = "usual latencies: --machine of `ccscope calibrate` says more";
/// With fewer, chance decides.
const FEW_WINDOWS: usize = 16;
/// Code is there to be copied, so that the terminal's width does not cut it.
const CODE_COLUMNS: usize = 240;

/// What to change, what that gains, and what is not worth it.
#[must_use]
pub fn text(profile: &Profile, advice: &Advice, options: &Options) -> String {
    let width = options.width.clamp(60, 240);
    let mut out = String::new();
    let paragraph = |out: &mut String, text: &str, indent| paragraph(out, text, width, indent);
    let given = match advice.seconds_given {
        true => "as given",
        false => "estimated: give --seconds for a run without the profiler",
    };
    let head = format!(
        "{} on {} ({given}), {} of it waiting for memory",
        seconds(advice.seconds),
        escape(&advice.machine),
        percent(advice.waits)
    );
    paragraph(&mut out, &head, 0);
    if options.machine.is_none() {
        line(&mut out, UNCALIBRATED, None);
    }
    if advice.windows < FEW_WINDOWS {
        let few = format!(
            "recorded: only {} of accesses; a run with --rate {} says more",
            plural(advice.windows as u64, "window"),
            advice.better_rate
        );
        paragraph(&mut out, &few, 0);
    }
    let of_kind = |kind| advice.advice.iter().filter(move |item| item.kind == kind);
    for item in of_kind(Kind::Allocator) {
        line(&mut out, "", None);
        line(&mut out, "measure first:", None);
        briefly(&mut out, profile, item, options);
    }
    let worth: Vec<&Item> = advice.advice.iter().filter(|item| item.worth_it).collect();
    let found = larger_findings(profile, advice, options);
    if worth.is_empty() && found.is_empty() {
        line(&mut out, "", None);
        let bold = options.colour.then_some("1");
        line(&mut out, "No change is predicted to pay off.", bold);
    }
    let worth = worth
        .into_iter()
        .map(|it| (saved_part(it), Either::Advice(it)));
    let found = found.iter().map(|it| (it.weight(), Either::Finding(it)));
    let mut all: Vec<(f64, Either<'_>)> = worth.chain(found).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (rank, (_, either)) in (1..).zip(all) {
        line(&mut out, "", None);
        let item = match either {
            Either::Advice(item) => item,
            Either::Finding(it) => {
                let place = site_place(profile, it.site, options, usize::MAX);
                let head = format!("{rank}. finding  {place}");
                line(&mut out, &fit(&head, width), options.colour.then_some("1"));
                paragraph(&mut out, &escape(&it.sentence), INDENT);
                paragraph(&mut out, &format!("gain: up to {}", it.part()), INDENT);
                continue;
            }
        };
        let head = format!(
            "{rank}. {}  {}",
            kind(item.kind),
            place(profile, item, options)
        );
        line(&mut out, &fit(&head, width), options.colour.then_some("1"));
        paragraph(&mut out, &escape(&item.what), INDENT);
        code(&mut out, item);
        if item.kind == Kind::Hint {
            paragraph(&mut out, "or let `ccscope improve` do it", INDENT);
        }
        for fact in facts(item) {
            paragraph(&mut out, &fact, INDENT);
        }
    }
    let (ideas, others): (Vec<&Item>, Vec<&Item>) = { advice.advice.iter() }
        .filter(|item| !item.worth_it && item.kind != Kind::Allocator)
        .partition(|item| item.kind == Kind::Idea);
    for (heading, items) in [("ideas, not tried:", ideas), ("not worth it:", others)] {
        if !items.is_empty() {
            line(&mut out, "", None);
            line(&mut out, heading, None);
        }
        for item in items {
            briefly(&mut out, profile, item, options);
        }
    }
    out
}

fn paragraph(out: &mut String, text: &str, width: usize, indent: usize) {
    for text in wrap(text, width - indent, 0) {
        line(out, &format!("{:indent$}{text}", ""), None);
    }
}

/// Code below a piece of advice.
fn code(out: &mut String, item: &Item) {
    for code in item.code.iter().flat_map(|code| code.lines()) {
        let code = fit(&escape(code), CODE_COLUMNS);
        line(out, &format!("        {code}"), None);
    }
}

/// What is not worth it, or not known to be.
fn briefly(out: &mut String, profile: &Profile, item: &Item, options: &Options) {
    let width = options.width.clamp(60, 240);
    let place = place(profile, item, options);
    let (name, is_replayed) = match item.kind {
        Kind::Allocator => (kind(item.kind).to_owned(), false),
        other => (
            format!("{}  {place}", kind(other)),
            !matches!(other, Kind::Idea | Kind::None),
        ),
    };
    line(out, &fit(&format!("- {name}"), width), None);
    let mut what = escape(&item.what);
    if is_replayed {
        what += &format!(" ({})", speedup(item));
    }
    paragraph(out, &what, width, INDENT);
    if !is_replayed {
        code(out, item);
    }
}

/// What is worth it.
enum Either<'a> {
    Advice(&'a Item),
    Finding(&'a Finding),
}

/// The part of the run's time that a change saves.
fn saved_part(item: &Item) -> f64 {
    1.0 - 1.0 / item.speedup.estimate.max(f64::MIN_POSITIVE)
}

/// The findings that gain more than the advice, or at least [`MIN_FOUND`]; the most saving first.
fn larger_findings(profile: &Profile, advice: &Advice, options: &Options) -> Vec<Finding> {
    let worth = advice.advice.iter().filter(|item| item.worth_it);
    let least = worth.map(saved_part).fold(MIN_FOUND, f64::min);
    let mut found = findings(profile, &options.findings);
    found.retain(|it| it.weight() >= least);
    found.truncate(MAX_FOUND);
    found
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Hint => "hint",
        Kind::Morph => "morph",
        Kind::Container => "other container",
        Kind::FieldOrder => "field order",
        Kind::Split => "hot/cold split",
        Kind::Group => "heap of its own",
        Kind::Smaller => "smaller",
        Kind::Allocator => "other allocator",
        Kind::Idea => "idea",
        Kind::None => "nothing",
    }
}

/// Place and type of the first site.
fn first_site<'p>(
    profile: &'p Profile,
    item: &Item,
    options: &Options,
) -> (Option<String>, Option<&'p str>) {
    let first = { item.sites.first() }.and_then(|&site| usize::try_from(site).ok());
    let first = first.filter(|&site| site < profile.sites.len());
    let place = first.map(|site| site_place(profile, site, options, usize::MAX));
    let of = first.and_then(|site| type_name(profile, profile.sites[site].type_id));
    (place, of)
}

fn place(profile: &Profile, item: &Item, options: &Options) -> String {
    let (place, of) = first_site(profile, item, options);
    let of = of.map(|name| format!(" {}", escape(name)));
    format!("{}{}", place.unwrap_or_default(), of.unwrap_or_default())
}

fn speedup(item: &Item) -> String {
    let range = item.speedup;
    let text = |it: f64| format!("{it:.2}");
    let [low, estimate, high] = [range.low, range.estimate, range.high].map(text);
    let than = match item.beyond_allocator {
        true => " as with `CcMalloc` alone",
        false => "",
    };
    format!("{estimate} times as fast{than}, {low} to {high}")
}

/// What an item says, with its place and what it would gain, in one line.
#[cfg(feature = "cli")]
pub(crate) fn idea(profile: &Profile, item: &Item, options: &Options) -> String {
    let (kind, place) = (kind(item.kind), place(profile, item, options));
    format!(
        "{kind}, {place}: {} ({})",
        escape(&item.what),
        speedup(item)
    )
}

/// Lines below a piece of advice.
fn facts(item: &Item) -> Vec<String> {
    let sure = match item.confidence {
        Confidence::High => "sure",
        Confidence::Medium => "probable",
        Confidence::Low => "unsure",
    };
    let ns = |ns: f64| match ns < 0.0 {
        true => format!("-{}", seconds(-ns / 1e9)),
        false => seconds(ns / 1e9),
    };
    let mut facts = vec![format!(
        "gain: the program is {} ({sure}); saves {}, of {} of its time that it waits for this",
        speedup(item),
        ns(item.saved_ns.estimate),
        percent(item.share)
    )];
    let is_changed =
        |it: &&LevelMisses| (it.after - it.before).abs() > CHANGED * it.before.max(it.after);
    let misses: Vec<String> = { item.misses.iter().filter(is_changed) }
        .map(|it| {
            let [before, after] = [it.before, it.after].map(|it| short_count(rounded(it)));
            format!("{} {before} -> {after}", escape(&it.level))
        })
        .collect();
    if !misses.is_empty() {
        facts.push(format!("misses: {}", misses.join(", ")));
    }
    if item.cost_ns > 0.0 || item.break_even.is_some() {
        let pays = item.break_even.iter().map(|it| format!("; {}", escape(it)));
        let pays: String = pays.collect();
        facts.push(format!("costs {}{pays}", ns(item.cost_ns)));
    }
    facts.push(format!("wrong if {}", escape(&item.wrong_if)));
    facts
}

/// One object in one line.
#[must_use]
pub fn json(profile: &Profile, advice: &Advice, options: &Options) -> String {
    let mut all = serde_json::to_value(advice).unwrap_or(Value::Null);
    all["schema"] = json!(SCHEMA);
    let items = all["advice"].as_array_mut();
    for (json, item) in items.into_iter().flatten().zip(&advice.advice) {
        let (place, of) = first_site(profile, item, options);
        (json["where"], json["type"]) = (json!(place), json!(of));
    }
    let found = larger_findings(profile, advice, options);
    all["findings"] = serde_json::to_value(found).unwrap_or(Value::Null);
    format!("{all}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::misses::Interval;
    use crate::analyses::test_profile::profile;
    use crate::views::tests::assert_documented;

    fn item(kind: Kind, worth_it: bool) -> Item {
        Item {
            kind,
            sites: vec![0],
            what: "do\u{1b}[31m this".to_owned(),
            code: Some("let a = 1;\nlet b = 2;".to_owned()),
            worth_it,
            speedup: Interval {
                low: 1.25,
                estimate: 1.5,
                high: f64::INFINITY,
            },
            saved_ns: Interval {
                low: 1e6,
                estimate: 2e6,
                high: f64::NAN,
            },
            misses: ["L1", "L2"]
                .into_iter()
                .zip([1000.0, 5e6])
                .map(|(level, after)| LevelMisses {
                    level: level.to_owned(),
                    before: 1001.0,
                    after,
                })
                .collect(),
            share: 0.42,
            cost_ns: 5e3,
            break_even: Some("at once".to_owned()),
            confidence: Confidence::Medium,
            wrong_if: "not".to_owned(),
            beyond_allocator: false,
        }
    }

    fn advice(items: Vec<Item>) -> Advice {
        Advice {
            machine: "demo".to_owned(),
            seconds: 2.0,
            seconds_given: false,
            worth_it: items.iter().any(|item| item.worth_it),
            waits: 0.5,
            windows: 3,
            better_rate: 20,
            advice: items,
        }
    }

    #[test]
    fn advice_has_code_gain_and_doubt() {
        let advice = advice(vec![item(Kind::Hint, true), item(Kind::Morph, false)]);
        let mut run = profile();
        run.sites.truncate(1);
        (run.sites[0].histogram, run.sites[0].touched_bytes) = (None, 400_000);
        let text = text(&run, &advice, &Options::default());
        let expected = [
            "2.00 s on demo (estimated: give --seconds for a run without the profiler), 50 %",
            "of it waiting for memory",
            UNCALIBRATED,
            "recorded: only 3 windows of accesses; a run with --rate 20 says more",
            "",
            "1. hint  src/a.rs:10 demo::records Records",
            "    do\\u{1b}[31m this",
            "        let a = 1;",
            "        let b = 2;",
            "    or let `ccscope improve` do it",
            "    gain: the program is 1.50 times as fast, 1.25 to inf (probable); saves 2.00",
            "    ms, of 42 % of its time that it waits for this",
            "    misses: L2 1,001 -> 5.00 M",
            "    costs 5.00 us; at once",
            "    wrong if not",
            "",
            "not worth it:",
            "- morph  src/a.rs:10 demo::records Records",
            "    do\\u{1b}[31m this (1.50 times as fast, 1.25 to inf)",
        ];
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), expected.len(), "{text}");
        for (line, expected) in lines.iter().zip(expected) {
            let is_place = expected.contains("src/a.rs");
            assert!(is_place || *line == expected, "{line:?} for {expected:?}");
            assert!(line.len() <= 80, "{line}");
        }
    }

    /// 29.6 % of memory, 27.4 % of the time and 24.3 % of memory, below an advice of 1.5 times and
    /// so a third.
    #[test]
    fn findings_and_advice_are_one_list() {
        let advice = advice(vec![item(Kind::Hint, true)]);
        let text = text(&profile(), &advice, &Options::default());
        let heads = text.lines().filter(|line| line.get(1..3) == Some(". "));
        let heads: Vec<&str> = heads.collect();
        let starts = [
            "1. hint",
            "2. finding",
            "3. finding  src/main.rs:47",
            "4. finding",
        ];
        assert!(
            heads.len() == 4 && heads.iter().zip(starts).all(|(a, b)| a.starts_with(b)),
            "{text}"
        );
        let gain =
            "20,000 temporary allocations: reuse one buffer\n    gain: up to 27 % of the time\n";
        assert!(text.contains(gain), "{text}");
    }

    #[test]
    fn no_advice_says_so() {
        let kinds = [Kind::Allocator, Kind::Idea, Kind::None];
        let none = advice(kinds.map(|kind| item(kind, false)).to_vec());
        let mut run = profile();
        run.sites.truncate(1);
        (run.sites[0].histogram, run.sites[0].touched_bytes) = (None, 400_000);
        let text = text(&run, &none, &Options::default());
        assert!(
            text.contains("\nNo change is predicted to pay off.\n"),
            "{text}"
        );
        assert!(!text.contains("times as fast"), "{text}");
        let first = "\nmeasure first:\n- other allocator\n    do\\u{1b}[31m this\n        let a";
        assert!(text.contains(first), "{text}");
        assert!(text.contains("\nideas, not tried:\n- idea  "), "{text}");
    }

    /// Names, sentences and levels are a stranger's; numbers are none.
    #[test]
    fn names_are_data() {
        let evil = |name: &str| format!("{name}\u{1b}[2J\r\n\u{202e}{}", "long".repeat(100));
        let mut run = profile();
        for frame in &mut run.frames {
            (frame.function, frame.file) = (evil("function"), evil("file"));
            frame.module = evil("module");
        }
        run.types.iter_mut().for_each(|it| it.name = evil("type"));
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e300];
        let hostile = |(kind, number): (Kind, f64)| {
            let range = Interval {
                low: number,
                estimate: number,
                high: number,
            };
            let mut item = item(kind, kind != Kind::None);
            (item.speedup, item.saved_ns, item.share) = (range, range, number);
            (item.what, item.code) = (evil("what"), Some(evil("code")));
            (item.break_even, item.wrong_if) = (Some(evil("even")), evil("wrong"));
            for level in &mut item.misses {
                (level.level, level.before) = (evil("level"), number);
            }
            item.cost_ns = number;
            item
        };
        let kinds = [
            Kind::Hint,
            Kind::Container,
            Kind::None,
            Kind::Group,
            Kind::Smaller,
            Kind::Morph,
        ];
        let mut hostile = advice(kinds.into_iter().zip(numbers).map(hostile).collect());
        hostile.machine = evil("machine");
        (hostile.seconds, hostile.waits) = (f64::NAN, f64::INFINITY);
        for width in [0, 60, 100, 1000] {
            let options = Options {
                width,
                ..Options::default()
            };
            for line in text(&run, &hostile, &options).lines() {
                let is_bad = |c: char| c.is_control() || c == '\u{202e}';
                assert!(!line.contains(is_bad), "{line:?}");
                // Code is cut later than other lines.
                let most = match line.starts_with("        ") {
                    true => CODE_COLUMNS + 8,
                    false => width.clamp(60, 240),
                };
                let columns = unicode_width::UnicodeWidthStr::width(line);
                assert!(columns <= most, "{columns} columns: {line}");
            }
        }
        let json = json(&run, &hostile, &Options::default());
        assert!(serde_json::from_str::<Value>(&json).is_ok());
        assert_eq!(json.lines().count(), 1);
    }

    #[test]
    fn colours_are_printed_when_asked() {
        let advice = advice(vec![item(Kind::Hint, true)]);
        let of = |colour| {
            let options = Options {
                colour,
                ..Options::default()
            };
            text(&profile(), &advice, &options)
        };
        assert!(!of(false).contains('\u{1b}'));
        assert!(of(true).contains("\u{1b}[1m1. hint"));
    }

    #[test]
    fn advice_of_nothing_has_a_head() {
        let options = Options {
            machine: ccmodel::Machine::preset("zen4-desktop").ok(),
            ..Options::default()
        };
        let mut run = profile();
        run.sites.clear();
        let text = text(&run, &advice(Vec::new()), &options);
        assert!(
            text.ends_with("\n\nNo change is predicted to pay off.\n"),
            "{text}"
        );
        assert!(!text.contains(UNCALIBRATED), "{text}");
    }

    #[test]
    fn json_has_the_documented_keys() {
        let advice = advice(vec![item(Kind::Hint, true)]);
        let json = json(&profile(), &advice, &Options::default());
        let json = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(assert_documented(&json, "JSON of advice"), 5);
    }

    #[test]
    fn json_has_places_and_no_infinity() {
        let mut last = item(Kind::Split, true);
        last.sites = vec![77];
        let advice = advice(vec![item(Kind::FieldOrder, true), last]);
        let json = json(&profile(), &advice, &Options::default());
        let json: Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["advice"][0]["kind"], "field-order");
        assert!(json["advice"][0]["where"].is_string() && json["advice"][1]["where"].is_null());
        assert!(json["advice"][0]["speedup"]["high"].is_null());
        assert_eq!(json["advice"][0]["speedup"]["low"], 1.25);
    }
}
