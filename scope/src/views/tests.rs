use ccmodel::Machine;
use serde_json::Value;

use super::terminal::{edges, regions, sites, source, summary, threads, types};
use super::{Filter, Options, Sort, json};
use crate::analyses::diff::diff;
use crate::analyses::growth::{Growth, growth};
use crate::analyses::test_profile::{self, access, group, profile, window};
use crate::profile::{Exceeded, Footprint, Leaks, Link, Profile, SiteCount};

/// The hand-made profile with windows, on a machine that does not depend on where tests run.
fn run() -> Profile {
    let mut run = profile();
    // The records are read with a stride, the vector in place.
    let at = |window: u64, i: u64| match i % 2 {
        0 => access(0x10_0000 + window * 0x1_0000 + i * 400, 0, 0),
        _ => access(0x80_0000 + i * 8, 1, 0),
    };
    let burst = |n: u64| (0..1000).map(|i| at(n, i)).collect();
    run.windows = (0..20).map(|n| window(n * 10_000, 0, burst(n))).collect();
    run
}

fn options(width: usize) -> Options {
    Options {
        width,
        machine: Machine::preset("zen4-desktop").ok(),
        ..Options::default()
    }
}

/// Holds a text against `views/tests/NAME.txt`; with `BLESS` in the environment, writes the file.
#[track_caller]
fn assert_golden(text: &str, name: &str) {
    let path = format!("{}/src/views/tests/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, text).expect("the folder is there");
    }
    let golden = std::fs::read_to_string(&path).expect("a text");
    assert_eq!(text, golden, "now:\n{text}");
}

#[test]
fn summary_at_80_columns() {
    assert_golden(&summary(&run(), &options(80)), "summary-80");
}

#[test]
fn summary_at_120_columns() {
    assert_golden(&summary(&run(), &options(120)), "summary-120");
}

#[test]
fn bytes_asked_for_and_copied_are_told() {
    let mut run = run();
    run.total.peak_requested = 900_000;
    (run.total.block_bytes, run.total.foreign_bytes) = (400, 100);
    let text = summary(&run, &options(120));
    assert!(text.contains("peak 1.00 MB (900 kB asked for) at 1.00 s"));
    run.total.peak_requested = 0;
    assert!(summary(&run, &options(120)).contains("peak 1.00 MB at 1.00 s"));
    let copied = "150,000 elsewhere; 25 % of copies in libc\n";
    assert!(text.contains(copied), "{text}");
}

#[test]
fn other_views() {
    let (run, options) = (run(), options(80));
    let views = [types, threads, edges]
        .map(|view| view(&run, &options))
        .join("\n");
    assert_golden(&views, "views-80");
}

/// Something of each verdict, as `ccscope diff` prints it.
#[test]
fn changes_in_words() {
    let old = run();
    let mut new = old.clone();
    // The records are worse, the strings better; the table is gone, and another site is new.
    new.sites[0].peak_usable += 100_000;
    new.sites[0].allocations += 250;
    new.sites[2].allocations /= 2;
    new.sites[2].usable /= 2;
    (new.sites[3].stack, new.sites[3].place) = (vec![1, 5], Some(1));
    new.total.peak_usable += 100_000;
    let options = options(100);
    let changes = diff(&old, &new, options.machine.as_ref().expect("a machine"));
    assert_golden(
        &super::diff::text(&old, &new, &changes, &options),
        "diff-100",
    );
}

/// Five snapshots, of which three fit into 80 columns.
#[test]
fn growth_in_words() {
    let snapshot = |number: u64| {
        let mut run = run();
        (run.run.pid, run.run.seconds) = (4711, 60.0 * number as f64);
        (run.total.end_usable, run.total.end_chunks) = (9_000_000 - number, 90_000);
        (run.sites[0].end_usable, run.sites[0].end_chunks) = (400_000 * number, 1000 * number);
        (run.sites[2].end_usable, run.sites[2].end_chunks) = (30 * number * number, number);
        run
    };
    let snapshots: Vec<Profile> = (1..=5).map(snapshot).collect();
    let growth = growth(&snapshots.iter().collect::<Vec<_>>());
    let text = super::growth::text(&growth, &snapshots[4], &options(80));
    assert_golden(&text, "growth-80");
    let json: Value =
        serde_json::from_str(&super::growth::json(&growth, &snapshots[4])).expect("JSON");
    assert_eq!(json["schema"], super::growth::SCHEMA);
    assert_eq!(json["sites"][0]["growth"], 1_600_000);
    assert_eq!(json["sites"][1]["alive"][4]["bytes"], 750);
    // Nothing has grown in one moment, nor between none.
    let one = super::growth::text(&Growth::default(), &snapshots[0], &options(80));
    assert!(one.contains("no site has grown in each"), "{one}");
}

/// With a source file that is there.
#[test]
fn a_site_with_its_source() {
    let mut run = run();
    let folder = env!("CARGO_MANIFEST_DIR");
    run.frames[1].file = "src/lib.rs".to_owned();
    run.frames[1].line = 1;
    let options = Options {
        root: Some(folder.into()),
        ..options(100)
    };
    let text = source(&run, &options, 0);
    let (answer, lines) = text.split_once("\n>").expect("lines of source");
    assert_golden(&format!("{answer}\n"), "source-100");
    let first = include_str!("../lib.rs").lines().next().expect("a line");
    assert!(
        lines.starts_with(&format!("     1  {first}\n      2  //!\n")),
        "{lines}"
    );
    assert_eq!(lines.lines().count(), 4);
    // No such file, no such site.
    run.frames[1].file = "src/none.rs".to_owned();
    assert!(!source(&run, &options, 0).contains("\n>"));
    assert_eq!(
        source(&run, &options, 9),
        "no site #9: the profile has 4 sites, from #0 on\n"
    );
}

/// A profile in which every name is an attack, and every table is full.
fn hostile() -> Profile {
    let evil = |name: &str| {
        format!(
            "{name}\u{1b}]0;x\u{7}\r\n\u{202e}\u{9b}2J{}",
            "long".repeat(40)
        )
    };
    let mut run = run();
    for i in 0..40u8 {
        let mut site = run.sites[usize::from(i % 4)].clone();
        site.type_id = Some(3 + u32::from(i));
        run.sites.push(site);
        run.types.push(run.types[0].clone());
    }
    for (types, i) in run.types.iter_mut().zip(0..) {
        types.name = evil(&format!("type {i}"));
        types
            .fields
            .iter_mut()
            .for_each(|field| field.name = evil("field"));
    }
    for frame in &mut run.frames {
        (frame.function, frame.file) = (evil("function"), evil("file"));
        frame.module = evil("module");
    }
    run.run.command = vec![evil("command"), evil("argument")];
    run.run.caveats = vec![evil("caveat"), evil("another")];
    run.run.machine = evil("machine");
    let largest = run.total.clone();
    run.total.heap_reads = u64::MAX;
    run.total.allocations = u64::MAX;
    (run.total.block_bytes, run.total.foreign_bytes) = (2, 1);
    run.total.usable = u64::MAX;
    run.total.peak_usable = largest.peak_usable;
    run.sites
        .iter_mut()
        .for_each(|site| site.at_peak_usable = 300_000);
    run
}

#[test]
fn names_are_data() {
    let run = hostile();
    let mut machine = Machine::preset("zen4-desktop").expect("a preset");
    machine.name = "evil\u{1b}[2J".to_owned();
    for width in [60, 80, 100, 120] {
        let options = Options {
            machine: Some(machine.clone()),
            ..options(width)
        };
        let mut views: Vec<String> = [summary, sites, types, threads, edges]
            .iter()
            .map(|view| view(&run, &options))
            .collect();
        let lines = views[0].lines().count();
        assert!(
            lines <= super::terminal::SCREEN,
            "{lines} lines\n{}",
            views[0]
        );
        views.extend((0..5).map(|site| source(&run, &options, site)));
        for view in views {
            for line in view.lines() {
                assert!(
                    !line.contains(|c: char| c.is_control() || c == '\u{202e}'),
                    "{line:?}"
                );
                let columns = unicode_width::UnicodeWidthStr::width(line);
                assert!(columns <= width, "{columns} columns: {line}");
            }
        }
    }
}

#[test]
fn colours_are_printed_when_asked() {
    let coloured = Options {
        colour: true,
        ..options(80)
    };
    let text = summary(&run(), &coloured);
    assert!(text.starts_with("\u{1b}[1mdemo --all: exit 0"), "{text}");
    let plain = summary(&run(), &options(80));
    assert!(!plain.contains('\u{1b}'));
    // Colours are all that differs.
    let mut stripped = String::new();
    for part in text.split('\u{1b}') {
        stripped.push_str(
            part.strip_prefix('[')
                .and_then(|it| it.split_once('m'))
                .map_or(part, |it| it.1),
        );
    }
    assert_eq!(stripped, plain);
}

/// Sites in the order in which they are shown.
fn shown(run: &Profile, options: &Options) -> Vec<u64> {
    let all: Value = serde_json::from_str(&json::to_json(run, options)).expect("JSON");
    let sites = all["sites"].as_array().expect("an array");
    sites
        .iter()
        .map(|site| site["id"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn filters_choose_sites() {
    let mut run = run();
    let filtered = |run: &Profile, filters: &[&str]| {
        let filters = filters
            .iter()
            .map(|text| text.parse().expect("a filter"))
            .collect();
        shown(
            run,
            &Options {
                filters,
                sort: Sort::Peak,
                ..options(80)
            },
        )
    };
    assert_eq!(filtered(&run, &[]), [0, 1, 3, 2]);
    assert_eq!(filtered(&run, &["function=Record"]), [0]);
    assert_eq!(filtered(&run, &["function=demo::main", "type=Box"]), [0, 3]);
    assert_eq!(filtered(&run, &["type=Vec<"]), [1]);
    // Thread 42 is the first; its windows show sites 0 and 1.
    assert_eq!(filtered(&run, &["thread=42"]), [0, 1]);
    assert_eq!(filtered(&run, &["thread=43"]), [0u64; 0]);
    let nobody = Options {
        filters: vec![Filter::Thread(43)],
        ..options(80)
    };
    assert_eq!(sites(&run, &nobody), "no site passes the filters\n");
    assert!(summary(&run, &nobody).contains("try first    no site passes the filters\n"));
    run.sites[3].threads = 1 << 42;
    assert_eq!(filtered(&run, &["thread=42"]), [0, 1, 3]);
    // Site 2 lives from 0.6 s to 1.8 s, site 0 until 1.2 s.
    assert_eq!(filtered(&run, &["time=1.9..2"]), [3]);
    assert_eq!(filtered(&run, &["time=1.3..1.5"]), [1, 3, 2]);
    assert_eq!(filtered(&run, &["time=..0.01"]), [0]);
    run.sites[2].groups = vec![
        group(300_000, 310_000, 1, 1, 310_001),
        group(800_000, 900_000, 1, 1, 900_001),
    ];
    assert_eq!(filtered(&run, &["time=1.3..1.5"]), [1, 3]);
    let text = summary(
        &run,
        &Options {
            filters: vec![Filter::Type("Vec".to_owned())],
            ..options(80)
        },
    );
    assert!(text.contains("#1 ") && !text.contains("#3 300"), "{text}");
    assert!(
        text.contains("try first    #1 src/main.rs:31 demo::collect: 3 %"),
        "{text}"
    );
}

#[test]
fn bad_filters_and_orders_are_told() {
    for text in [
        "",
        "type",
        "type=",
        "size=3",
        "thread=x",
        "time=1",
        "time=2..1",
        "time=a..",
        "time=-1..2",
    ] {
        let error = text.parse::<Filter>().expect_err(text);
        assert!(error.contains("is no filter: function=TEXT"), "{error}");
    }
    assert_eq!("time=1.5..".parse(), Ok(Filter::Time(1.5, f64::INFINITY)));
    assert_eq!(
        "function=a=b".parse(),
        Ok(Filter::Function("a=b".to_owned()))
    );
    let error = "size".parse::<Sort>().expect_err("no order");
    assert!(
        error.starts_with("no order is called \"size\"; there are saving, peak"),
        "{error}"
    );
}

#[test]
fn orders_are_kept() {
    let run = run();
    let by = |text: &str| {
        let sort = text.parse().expect("an order");
        shown(
            &run,
            &Options {
                sort,
                ..options(80)
            },
        )
    };
    assert_eq!(by("saving"), [0, 2, 3, 1]);
    assert_eq!(by("bytes"), [1, 2, 0, 3]);
    assert_eq!(by("allocations"), [2, 0, 1, 3]);
    // 0, 0.07, 0.83, 1
    assert_eq!(by("lifetime"), [2, 1, 0, 3]);
    assert_eq!(by("useful-lifetime"), [3, 2, 0, 1]);
    assert_eq!(by("drag"), [3, 0, 1, 2]);
    assert_eq!(by("accesses"), [1, 2, 0, 3]);
    // Only two are in the windows.
    assert_eq!(by("misses"), [0, 1, 3, 2]);
    // 0.25, 0.967, 0.983, 1
    assert_eq!(by("usage"), [0, 3, 1, 2]);
    assert_eq!(by("severity"), [2, 1, 3, 0]);
}

/// Holds the keys of all objects against the tables of a chapter; how many objects it has.
#[track_caller]
pub(super) fn assert_documented(all: &Value, chapter: &str) -> usize {
    let page = include_str!("../../../docs/inside/ccscope-format.md");
    let (_, tables) = { page.split_once(&format!("\n## {chapter}\n")) }.expect("a chapter");
    let tables = tables.split("\n## ").next().unwrap_or(tables);
    let rows = tables.lines().filter_map(|line| {
        let (place, keys) = line.strip_prefix("| `")?.split_once("` | `")?;
        Some((
            place,
            keys.split('`')
                .step_by(2)
                .filter(|key| !key.is_empty())
                .collect::<Vec<_>>(),
        ))
    });
    let mut objects = 0;
    for (place, mut documented) in rows {
        let object = all
            .pointer(place.trim_end_matches('.'))
            .unwrap_or_else(|| panic!("{place}"));
        let keys: Vec<&String> = object.as_object().expect(place).keys().collect();
        documented.sort_unstable();
        assert_eq!(keys, documented, "{place}");
        objects += 1;
    }
    objects
}

#[test]
fn json_has_the_documented_keys() {
    let mut run = run();
    run.exceeded = vec![Exceeded {
        place: "tests/it.rs:3:5".to_owned(),
        sites: vec![SiteCount {
            site: 0,
            allocations: 1,
            bytes: 8,
        }],
    }];
    run.leaks = vec![Leaks::default()];
    run.links = vec![Link {
        from: None,
        to: 0,
        pointers: 1,
    }];
    run.regions = test_profile::regions();
    (run.mappings, run.pages) = test_profile::pages();
    let all: Value = serde_json::from_str(&json::to_json(&run, &options(80))).expect("JSON");
    assert_eq!(assert_documented(&all, "JSON"), 33);
    assert_eq!(all["mappings"][4]["loads"], 1130);
    assert_eq!(all["threads"][0]["curve"][1]["seconds"], 0.5);
    assert_eq!(all["schema"], "ccscope-1");
    assert_eq!(all["findings"][0]["kind"], "partly-used");
    assert_eq!(all["findings"][0]["amount"]["bytes"], 296_000);
    assert_eq!(all["findings"][0]["site"], 0);
    let site = &all["sites"][0];
    for key in [
        "id",
        "function",
        "file",
        "line",
        "type",
        "stack",
        "scores",
        "severity",
        "inferences",
    ] {
        assert!(!site[key].is_null(), "{key}");
    }
    assert_eq!(
        (&site["line"], &site["allocations"]),
        (&Value::from(12), &Value::from(1000))
    );
    assert_eq!(site["stack"][0]["function"], "alloc::alloc::alloc");
    assert_eq!(site["inferences"]["patterns"], Value::Array(Vec::new()));
    assert_eq!(all["misses"]["windows"], 20);
    assert_eq!(all["phases"].as_array().map(Vec::len), Some(10));
    // What is not known is null.
    let mut blind = run;
    blind.run.accesses = false;
    blind.windows.clear();
    let all: Value = serde_json::from_str(&json::to_json(&blind, &options(80))).expect("JSON");
    assert!(all["misses"].is_null() && all["scores"]["usage"].is_null());
    assert!(all["sites"][0]["scores"]["usage"].is_null());
}

#[test]
fn a_profile_of_nothing_has_a_summary() {
    let mut run = profile();
    run.sites.clear();
    (run.curve, run.resident, run.edges) = (Vec::new(), Vec::new(), Vec::new());
    run.total = crate::profile::Totals::default();
    let text = summary(&run, &options(80));
    assert!(
        text.contains("\ntry first    nothing stands out: no site wastes 1 %"),
        "{text}"
    );
    assert_eq!(
        sites(&run, &options(80)).lines().last(),
        Some("0 of 0 shown, 0 sites in all")
    );
    assert_eq!(edges(&run, &options(80)).lines().count(), 1);
    let all: Value = serde_json::from_str(&json::to_json(&run, &options(80))).expect("JSON");
    assert_eq!(all["sites"].as_array().map(Vec::len), Some(0));
}

/// Calls `change` with each number in a value, by its place.
fn numbers(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    match value {
        Value::Number(_) => change(value),
        Value::Array(all) => all.iter_mut().for_each(|it| numbers(it, change)),
        Value::Object(all) => all.values_mut().for_each(|it| numbers(it, change)),
        _ => {}
    }
}

/// Each number of a small profile in turn becomes one that no run has.
#[test]
fn no_number_stops_a_view() {
    let mut small = run();
    small.windows = vec![
        window(1, 0, vec![access(0x1000, 0, 0), access(u64::MAX, 1, 8)]),
        window(2, 0, vec![access(0x1000, 3, 300_000)]),
    ];
    small.sites[0].histogram = Some(crate::profile::Histogram {
        reads: vec![1, 0],
        writes: vec![1],
    });
    let options = Options {
        machine: Machine::preset("thesis").ok(),
        ..options(80)
    };
    let whole = serde_json::to_value(&small).expect("a value");
    let mut count = 0;
    numbers(&mut whole.clone(), &mut |_| count += 1);
    let mut tried = 0;
    for place in 0..count {
        for extreme in [0, u64::MAX, u64::from(u32::MAX)] {
            let (mut changed, mut at) = (whole.clone(), 0);
            numbers(&mut changed, &mut |number| {
                if at == place {
                    *number = extreme.into();
                }
                at += 1;
            });
            // Not all fit their field.
            let Ok(damaged) = serde_json::from_value::<Profile>(changed) else {
                continue;
            };
            tried += 1;
            for view in [summary, threads, edges] {
                assert!(view(&damaged, &options).contains('\n'));
            }
            assert!(source(&damaged, &options, 0).contains("type"));
            assert!(json::to_json(&damaged, &options).starts_with('{'));
        }
    }
    assert!(tried > count, "{tried} of {count}");
}

#[test]
fn regions_are_shown_as_a_tree_and_block_is_advised() {
    let mut run = run();
    let text = regions(&run, &options(100));
    assert_eq!(text, "no regions were recorded: run with `--regions`\n");
    run.regions = test_profile::regions();
    let text = regions(&run, &options(120));
    assert!(
        text.starts_with("working set  demo::product touches 3.00 MB a call"),
        "{text}"
    );
    assert!(
        text.contains("\nblock it     demo::product takes 3.00 MB of cache a call"),
        "{text}"
    );
    assert!(text.contains("the 1,000 calls of demo::row"), "{text}");
    assert!(text.contains("\n5 regions. Per call"), "{text}");
    let table = text.split("\n\n").nth(1).expect("a table");
    let rows: Vec<&str> = table.lines().skip(1).collect();
    let ends: Vec<&str> = rows
        .iter()
        .filter_map(|row| row.split("  ").last())
        .map(str::trim)
        .collect();
    assert_eq!(
        ends,
        [
            "demo::main",
            "demo::product",
            "demo::row",
            "demo::serve",
            "[re\\u{1b}[31mquest] (+3 within)"
        ]
    );
    assert!(
        rows.iter()
            .all(|row| row.contains(" 0 %") || row.contains(" 98 %")),
        "{text}"
    );
    // After a run, they stand in place of sites.
    let after = summary(&run, &options(120));
    assert!(
        after.contains("block it") && !after.contains("\nfirst "),
        "{after}"
    );
    assert!(after.lines().count() <= super::terminal::SCREEN, "{after}");
    let head = |width| {
        let text = regions(&run, &options(width));
        assert!(
            text.lines().all(|line| line.chars().count() <= width),
            "{text}"
        );
        let head = text.lines().find(|line| line.ends_with("region"));
        head.expect("a table").to_owned()
    };
    assert_eq!(head(60), head(80));
    let at = head(80).find("region");
    assert!(at.is_some_and(|at| at <= 50), "{at:?}");
    for (width, columns) in [(80, 7), (100, 9), (120, 11), (200, 12)] {
        assert_eq!(head(width).split_whitespace().count(), columns);
    }
}

#[test]
fn regions_that_touch_nothing_have_no_row() {
    let mut run = run();
    run.regions = test_profile::regions();
    // The caller of a span that touches something, and a function that touches nothing.
    for index in [3, 4] {
        run.regions[index].bytes = Footprint::default();
    }
    run.regions[5].invocations = 20;
    (run.total.other_reads, run.total.other_writes) = (0, 0);
    let text = regions(&run, &options(80));
    assert!(
        text.contains("  -        10    0 %  0 %    demo::serve\n"),
        "{text}"
    );
    assert!(!text.contains("demo::row") && text.contains("\n4 regions. "));
    assert!(!text.contains("--all-memory"));
    run.total.other_reads = 1;
    let few = Options {
        rows: 2,
        ..options(80)
    };
    let text = regions(&run, &few);
    assert!(text.contains("\n2 of 4 regions shown"), "{text}");
    assert!(
        text.contains("`--rows 4`") && text.contains("--all-memory"),
        "{text}"
    );
}

#[test]
fn a_trace_is_summed_up_by_mapping() {
    let mut run = run();
    (run.mappings, run.pages) = test_profile::pages();
    run.run.caveats = vec!["Of heap only.".to_owned()];
    let text = summary(&run, &options(80));
    let expected = "
accesses     1,137 loads, 21 stores, 2 blocks
pages        4 of 36 accessed (16.4 kB), in 7 mappings

pages  accessed  loads  stores  blocks  mapping
    1         1      7       0       0  demo data
   33         3  1,130      21       2  [heap]

not accessed 2 pages in 1 mapping
not traced   292 pages in 4 mappings
note         Of heap only.
";
    assert!(text.ends_with(expected), "{text}");
    let few = Options {
        rows: 1,
        ..options(60)
    };
    let text = summary(&run, &few);
    assert!(
        !text.contains("demo data") && text.contains("\nshown        1 of 2 mappings, those"),
        "{text}"
    );
    run.mappings[4].name = "\u{1b}[31m".repeat(100);
    let text = summary(&run, &options(60));
    assert!(
        text.lines()
            .all(|line| line.len() <= 62 && !line.contains('\u{1b}')),
        "{text}"
    );
}

/// A map of two sites, one row, whose waiting stands first.
#[test]
fn a_structure_that_is_waited_for_is_one_row() {
    let mut run = run();
    run.types[1].name = "BTreeMap<u64, u64>".to_owned();
    (run.sites[3].type_id, run.sites[3].drag) = (Some(1), 0.0);
    let vector = &mut run.sites[1];
    (vector.reallocs, vector.moved_bytes, vector.longest_chain) = (0, 0, 0);
    let node = |i: u64| 0x1000_0000 + i % 2000 * 4160;
    let load = |i: u64| crate::profile::Access {
        pointer: node(i + 1),
        target: 1,
        ..access(node(i), 1, 0)
    };
    run.windows = (0..8)
        .map(|n| window(n * 10_000, 0, (0..4000).map(load).collect()))
        .collect();
    (run.total.heap_reads, run.run.end) = (100_000_000, 100_000_000);
    let options = Options {
        file: Some("a.ccscope".into()),
        ..options(80)
    };
    let text = summary(&run, &options);
    let share = text.split("waits for memory: ").nth(1).expect("a table");
    let share = share.split(" of the time").next().expect("a share");
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("#1+1 "))
        .collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(rows[0].starts_with("#1+1   600 kB      16 "), "{text}");
    assert!(rows[1].contains(share), "{text}");
    let sentence = "waits for this BTreeMap: `ccscope advise a.ccscope`";
    assert!(
        text.contains(&format!("    {share} of the time: {sentence}\n")),
        "{text}"
    );
    assert!(text.contains("try first    #1 src/main.rs:31"), "{text}");
    let json: Value = serde_json::from_str(&json::to_json(&run, &options)).expect("JSON");
    assert_eq!(json["findings"][0]["kind"], "waits");
    assert_eq!(json["waits"][0]["sites"], serde_json::json!([1, 3]));
}

/// The line of a package, and that of its caller.
#[test]
fn places_of_packages_have_both_lines() {
    let mut run = run();
    let package = "/home/user/.cargo/registry/src/index-0f/pubgrub-0.2.0/src/internal/core.rs";
    run.frames.push(crate::profile::Frame {
        function: "pubgrub::internal::core::State::add".to_owned(),
        file: package.to_owned(),
        line: 88,
        module: "demo".to_owned(),
        ..Default::default()
    });
    let index = u32::try_from(run.frames.len() - 1).expect("few frames");
    run.sites[0].stack.insert(1, index);
    let text = summary(&run, &options(80));
    assert!(text.contains("0.90  pubgrub core.rs:88 < "), "{text}");
    let [narrow, wide] = [80, 160].map(|width| source(&run, &options(width), 0));
    let long =
        "#0 pubgrub-0.2.0/src/internal/core.rs:88 State::add < src/record.rs:12 Record::new\n";
    assert!(wide.starts_with(long), "{wide}");
    assert!(
        narrow.starts_with("#0 pubgrub core.rs:88 < src/record.rs:12 Record::new\n"),
        "{narrow}"
    );
    let json: Value = serde_json::from_str(&json::to_json(&run, &options(80))).expect("JSON");
    assert_eq!(json["sites"][0]["library"]["line"], 88);
    assert!(json["sites"][1]["library"].is_null());
}

/// What was not seen stands above a line that reassures.
#[test]
fn notes_stand_above_nothing() {
    let mut run = run();
    run.sites.truncate(1);
    (run.sites[0].histogram, run.sites[0].touched_bytes) = (None, 400_000);
    run.run.caveats = vec!["A library was not seen.".to_owned()];
    let text = summary(&run, &options(80));
    let end = "note         A library was not seen.\n\
               try first    nothing stands out: no site wastes 1 % of memory or time\n";
    assert!(text.ends_with(end), "{text}");
}
