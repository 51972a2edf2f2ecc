//! What the report writes: spreads, JSON lines, pictures, the page, and tables in Markdown files.
//!
//! Run by name: `cargo test -p measure --test output`.

use std::time::Duration;

use measure::output::fill::fill;
use measure::output::pages::{html, markdown, markdown_table, pictures};
use measure::output::run::command;
use measure::output::{
    Record, Run, Table, Watch, charts, figure, file_name, json_line, table_line, write_files,
};
use measure::rounds::{Count, Rounds, Spread};
use measure::workload::{Comparison, best_first};

fn comparison(name: &str, ours: &[f64], theirs: &[f64]) -> Comparison {
    let [ours, theirs] = [ours, theirs].map(|rounds| Rounds::new(rounds.to_vec()));
    Comparison {
        suite: "ctree".to_owned(),
        ..Comparison::new(name, "std BTreeMap", "ns", &ours, &theirs)
    }
}

fn row(name: &str, ratio: f64) -> Comparison {
    comparison(name, &[10.0], &[10.0 * ratio])
}

fn record(rows: Vec<Comparison>) -> Record {
    let mut record = Record::default();
    record.runs.push(Run {
        date: "2026-11-21T04:00:00Z".to_owned(),
        command: "report --quick".to_owned(),
        commit: "0123456789ab".to_owned(),
        ..Run::default()
    });
    record.rows = rows;
    record
}

fn table(header: &[&str], rows: &[&[&str]]) -> Table {
    let owned = |cells: &[&str]| cells.iter().map(|&cell| cell.to_owned()).collect();
    Table {
        suite: "ctree".to_owned(),
        header: owned(header),
        rows: rows.iter().map(|row| owned(row)).collect(),
        ..Table::default()
    }
}

fn close(found: &[f64], expected: &[f64]) -> bool {
    let mut pairs = found.iter().zip(expected);
    found.len() == expected.len() && pairs.all(|(a, b)| (a - b).abs() < 1e-9)
}

#[test]
fn comparisons_have_medians_of_their_rounds() {
    // Ratios by round: 3, 2, 5, 4, 1.
    let (ours, theirs) = ([1.0, 2.0, 1.0, 2.0, 4.0], [3.0, 4.0, 5.0, 8.0, 4.0]);
    let five = comparison("get_vs_btreemap", &ours, &theirs);
    assert_eq!((five.ours, five.theirs, five.ratio), (2.0, 4.0, 2.0));
    assert_eq!(five.spread, Spread::of([1.0, 2.0, 3.0, 4.0, 5.0]));
    assert_eq!(five.runs, 5);
    let other_rounds = comparison("a", &[1.0; 3], &[2.0; 2]);
    assert_eq!(other_rounds.spread, None);

    let times = [4, 1, 3, 2].map(Duration::from_nanos);
    let rounds = Rounds::of_times(&times, 2);
    assert!(close(rounds.each(), &[2.0, 0.5, 1.5, 1.0]) && close(&[rounds.median()], &[1.5]));
    let figures = [vec![1.0, 2.0, 4.0], vec![9.0, 8.0, 1.0]].map(Rounds::new);
    let mean = Rounds::geometric_mean(&figures);
    assert!(close(mean.each(), &[3.0, 4.0, 2.0]) && close(&[mean.median()], &[4.0]));
    let rows = best_first("get", vec![row("get_vs_a", 2.0), row("get_vs_b", 0.5)]);
    let rows = rows.iter().map(|row| (row.name.as_str(), row.ratio));
    assert!(rows.eq([("get", 0.5), ("get_vs_a", 2.0), ("get_vs_b", 0.5)]));
}

#[test]
fn spreads_have_the_quartiles_of_ratios() {
    // The least, the quartiles and the most, and whether 1 lies between the quartiles.
    for (ratios, expected, straddles) in [
        (&[3.0, 2.0, 5.0, 4.0, 1.0][..], [1.0, 2.0, 4.0, 5.0], false),
        (&[1.0, 2.0, 3.0], [1.0, 1.5, 2.5, 3.0], false),
        (&[1.2, 0.8], [0.8, 0.9, 1.1, 1.2], true),
    ] {
        let spread = Spread::of(ratios.iter().copied()).expect("several ratios have a spread");
        let found = [spread.least, spread.lower, spread.upper, spread.most];
        assert!(close(&found, &expected), "{spread:?}");
        assert_eq!(spread.straddles_one(), straddles);
    }
    assert_eq!(Spread::of([1.0]), None);
    assert_eq!(Spread::of([1.0, f64::NAN]), None);
}

#[test]
fn json_has_the_documented_fields_and_comes_back() {
    let mut comparison = comparison("get_vs_btreemap", &[1.0, 2.0], &[3.0, 4.0]);
    comparison.counts.push(Count {
        event: "LLC misses".to_owned(),
        ours: 1.5,
        theirs: 3.0,
    });
    let line = json_line(&comparison);
    assert_eq!(
        line,
        concat!(
            r#"{"suite":"ctree","name":"get_vs_btreemap","ours":2.0,"theirs":4.0,"ratio":2.0,"#,
            r#""unit":"ns","rival":"std BTreeMap","runs":2,"#,
            r#""spread":{"least":2.0,"lower":2.25,"upper":2.75,"most":3.0},"#,
            r#""counts":[{"event":"LLC misses","ours":1.5,"theirs":3.0}]}"#
        )
    );
    let back = Record::read(&line).expect("it comes back");
    assert_eq!(back.rows, [comparison]);

    let broken = Comparison {
        ours: f64::NAN,
        ..back.rows[0].clone()
    };
    let back = Record::read(&json_line(&broken)).expect("null is read as no number");
    assert!(back.rows[0].ours.is_nan() && close(&[back.rows[0].theirs], &[4.0]));

    // Lines of earlier versions are read, and written as they were.
    let old = concat!(
        r#"{"suite":"ctree","name":"a","ours":1.0,"theirs":2.0,"ratio":2.0,"#,
        r#""unit":"ns","rival":"b","runs":1}"#
    );
    let record = Record::read(old).expect("it is read");
    assert_eq!(json_line(&record.rows[0]), old);
}

#[test]
fn a_record_comes_back_and_later_rows_replace_earlier_ones() {
    let mut first = record(vec![row("a", 1.5), row("b", 2.0)]);
    first.tables.push(table(&[], &[&["1"]]));
    let text = first.json_lines() + &record(vec![row("a", 3.0)]).json_lines();
    let both = Record::read(&text).expect("it is a record");
    assert_eq!(both.runs, [first.runs[0].clone(), first.runs[0].clone()]);
    assert_eq!(both.tables, first.tables);
    assert_eq!(both.rows, [row("a", 3.0), row("b", 2.0)]);
    for (text, about) in [
        ("{\"suite\":1}", "expected a string"),
        ("{\"suite\":\"ctree\"}", "missing field `name`"),
        ("{\"report\":1}", "expected struct Run"),
        ("[]", ""),
    ] {
        let error = Record::read(text).expect_err("this is no line of a report");
        let is_clear = error.starts_with("line 1 ") && error.contains(about);
        assert!(is_clear, "{error}");
    }
}

#[test]
fn pages_load_nothing_and_text_does_not_break_out_of_them() {
    let mut evil = row("x<script>alert(1)</script>_vs_y", 2.0);
    evil.rival = "<img src=x onerror=\"boom\">|\u{1b}".to_owned();
    evil.unit = "<b>".to_owned();
    let record = record(vec![evil, row("get_vs_bbtree", 0.5)]);
    let page = html(&record);
    let picture = charts::bars("ctree", &record.rows_of("ctree"));
    for bad in "<script <img <b> \u{1b} @import url( <link".split(' ') {
        let found = page.contains(bad) || picture.contains(bad);
        assert!(!found, "{bad} in {page}");
    }
    assert!(page.contains("<meta name=\"viewport\" content=\"width=device-width"));
    let tags = ["<svg", "</svg>"].map(|tag| page.matches(tag).count());
    assert_eq!(tags, [1, 1]);
    let markdown = markdown(&record);
    assert!(!markdown.contains("<img") && markdown.contains("\\|"));
    let name = file_name("../Lookup <n> against size");
    assert_eq!(name, "lookup-n-against-size.svg");
}

#[test]
fn bars_are_better_worse_or_undecided() {
    let better = comparison("get_vs_btreemap", &[1.0, 1.0], &[2.0, 3.0]);
    let worse = row("get_vs_worse", 0.5);
    let even = comparison("get_vs_other", &[1.0, 1.0], &[0.8, 1.4]);
    let picture = charts::bars("ctree", &[&better, &worse, &even]);
    for colour in ["#3D8F66", "#C06A4E", "#A9B1BA"] {
        assert_eq!(picture.matches(colour).count(), 1, "{colour} in {picture}");
    }
    assert!(picture.contains("get, std BTreeMap: 1.00 : 3.00 ns, 3.00×"));
    // A ratio that is not a number has a place all the same.
    let broken = [f64::NAN, f64::INFINITY].map(|ratio| Comparison {
        ratio,
        ..worse.clone()
    });
    let picture = charts::bars("ctree", &broken.each_ref());
    assert!(!picture.contains("=\"NaN") && !picture.contains("=\"inf"));
}

#[test]
fn points_are_sorted_into_curves_and_lines() {
    let rows = [
        ("lookup_n21_btreemap_vs_measured", 300.0, 310.0),
        ("lookup_n21_ctreemap_vs_btreemap", 1.0, 2.0),
        ("lookup_n21_ctreemap_vs_measured", 150.0, 140.0),
        ("lookup_n10_btreemap_vs_measured", f64::NAN, 20.0),
        ("walk_n10_list_vs_measured", 1.0, 2.0),
        ("predict_bst_2m_veb_vs_measured", 1.0, 2.0),
        ("lookup_nine_btreemap_vs_measured", 1.0, 2.0),
        ("lookup_n99_btreemap_vs_measured", 1.0, 2.0),
    ];
    let rows = rows.map(|(name, ours, theirs)| comparison(name, &[ours], &[theirs]));
    let record = record(rows.into());
    let curves = charts::curves(&record.rows_of("ctree"));
    let lines = curves.iter().flat_map(|curves| {
        let title = curves.title.as_str();
        let lines = curves.lines.iter();
        lines.map(move |line| (title, line.name.as_str(), line.points.clone()))
    });
    let (lookup, small, large) = ("lookup against size", 1024.0, f64::from(1 << 21));
    let expected = [
        (lookup, "btreemap", vec![(small, 20.0), (large, 310.0)]),
        (lookup, "ctreemap", vec![(large, 140.0)]),
        ("walk against size", "list", vec![(small, 2.0)]),
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    assert_eq!(curves[0].lines[0].predicted, [(large, 300.0)]);

    let pictures = pictures(&record, "ctree");
    let files: Vec<&str> = pictures.iter().map(|(file, _)| file.as_str()).collect();
    let expected = "ctree.svg lookup-against-size.svg walk-against-size.svg";
    assert_eq!(files.join(" "), expected);
    let [bars, picture] = [&pictures[0].1, &pictures[1].1];
    assert_eq!(picture.matches("<circle").count(), 3, "{picture}");
    assert!(picture.contains("btreemap (thin: predicted)"), "{picture}");
    assert!(!bars.contains("lookup_n10"), "points are no bars");
    assert_eq!(html(&record).matches("<svg").count(), 3);
}

#[test]
fn a_run_names_the_machine_how_quiet_it_was_and_what_is_missing() {
    let arguments = "/some/where/report --quick --out /some/folder --out=b --json";
    let arguments = || arguments.split(' ').map(str::to_owned);
    assert_eq!(command(arguments()), "report --quick --json");
    let mut watch = Watch::start(arguments(), 2);
    watch.run.failures.push("get: answers differ".to_owned());
    watch.run.finished += 1;
    let run = watch.now();
    assert!(!run.processor.is_empty() && run.processors >= 1 && run.memory_bytes > 0);
    assert!(run.date.ends_with('Z') && run.compiler.starts_with("rustc "));
    if cfg!(target_os = "linux") {
        assert!(run.system.starts_with("Linux ") && run.load_before.is_some());
    }
    let unfinished = Record {
        runs: vec![run],
        ..Record::default()
    };
    for text in [html(&unfinished), markdown(&unfinished)] {
        assert!(text.contains("NOT complete: 1 of 2") && text.contains("get: answers differ"));
        assert!(!text.contains("/some/"), "folders stay on this machine");
    }
    for (others, stolen, words) in [
        (0.01, 0.005, "quiet: other processes took 1.0%"),
        (0.0, 0.2, "not quiet"),
    ] {
        let run = Run {
            others_share: Some(others),
            stolen_share: Some(stolen),
            ..Run::default()
        };
        assert!(run.quietness().starts_with(words));
    }
}

#[test]
fn tables_align_figures_and_keep_bars_in_cells() {
    let figures = [0.934, 9.996, 23.44, 420.8, 4210.4];
    assert_eq!(figures.map(figure).join(" "), "0.93 10.00 23.4 420.8 4210");
    let line = table_line(&comparison("get_vs_btreemap", &[1.0, 2.0], &[3.0, 4.0]));
    let is_whole = line.starts_with("ctree/get_vs_btreemap ") && line.contains("2.25-2.75");
    assert!(is_whole, "{line}");
    let table = table(&["what", "one"], &[&["a|b", "**1.5**"], &["c", ""]]);
    assert_eq!(
        markdown_table(&table.header, &table.rows),
        "| what | one |\n|---|---:|\n| a\\|b | **1.5** |\n| c |  |\n"
    );
    let mut with_table = record(vec![row("a", 1.0)]);
    with_table.tables.push(table);
    let html = html(&with_table);
    let right = "<td style=\"text-align: right\"><strong>1.5</strong></td>";
    assert!(html.contains(right) && html.contains("<td>a|b</td>"));
}

#[test]
fn tables_between_marks_come_from_the_record() {
    let names = ["get_vs_btreemap", "get_vs_brie", "put"];
    let record = record(names.map(|name| row(name, 0.5)).into());
    let filled = |text: &str| {
        fill(text, |path| match path {
            "record/a.jsonl" => Ok(record.json_lines()),
            "bad" => Ok("no JSON".to_owned()),
            _ => Err("no such file".to_owned()),
        })
    };
    let mark = "# Title\n\n<!-- report: record/a.jsonl\nput = slow | puts\nget_*\n-->\n";
    let end = "<!-- /report -->\nend\n";
    let first = filled(&format!("{mark}old 9.99x\n{end}")).expect("the record has all rows");
    assert!(first.starts_with(mark) && first.ends_with(end) && !first.contains("9.99x"));
    let lines: Vec<&str> = first.lines().filter(|line| line.starts_with('|')).collect();
    let [_, _, puts, get, brie] = lines[..] else {
        panic!("{first}");
    };
    assert!(puts.starts_with("| slow \\| puts | 10.0 ns | 5.00 ns | 0.50x |"));
    assert!(get.starts_with("| `get_vs_btreemap` |") && brie.starts_with("| `get_vs_brie` |"));
    assert!(first.contains("Measured on 2026-11-21 by `report --quick`; commit 0123456789ab"));
    let again = filled(&first).expect("the record has all rows");
    assert_eq!(again, first, "a second time changes nothing");
    let all = filled("<!-- report: record/a.jsonl -->\n<!-- /report -->\n").expect("all rows");
    assert_eq!(all.matches("\n| `").count(), 3);

    for (begin, mark, about) in [
        ("nothing", "", "no line begins with"),
        ("\n<!-- report: bad", "", "line 2 lacks its"),
        ("<!-- report: record/a.jsonl\nx", end, "called \"x\""),
        ("<!-- report: missing", end, "missing: no such file"),
        ("<!-- report: bad", end, "bad: line 1 "),
    ] {
        let error = filled(&format!("{begin} -->\n{mark}")).expect_err("no record");
        assert!(error.contains(about), "{error}");
    }
}

#[test]
fn files_are_written_whole_and_again() {
    let out = std::env::temp_dir().join(format!("benches-output-{}", std::process::id()));
    let mut growing = record(Vec::new());
    for name in ["get_vs_btreemap", "lookup_n10_btreemap_vs_measured"] {
        growing.add(row(name, 2.0));
        write_files(&out, &growing).expect("the folder for temporary files takes them");
    }
    let entries = std::fs::read_dir(&out).expect("it is there");
    let names = entries.map(|entry| entry.expect("it can be read").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let text = std::fs::read_to_string(out.join("report.jsonl")).expect("it is there");
    std::fs::remove_dir_all(&out).expect("it goes again");
    let expected = "ctree.svg lookup-against-size.svg report.html report.jsonl report.md";
    assert_eq!(names.join(" ".as_ref()), expected);
    let back = Record::read(&text).expect("it is a record");
    assert_eq!(back.rows, growing.rows);
}
