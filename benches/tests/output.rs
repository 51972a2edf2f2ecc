//! What the report writes: spreads, JSON lines, pictures, the page, and tables in Markdown files.
//!
//! Run by name: `cargo test -p measure --test output`.

use std::collections::BTreeMap;
use std::time::Duration;

use measure::output::curves::{CurvePoint, Curves};
use measure::output::fill::{FillError, fill};
use measure::output::run::command;
use measure::output::table::{escape, html_table, markdown_table};
use measure::output::{
    Record, Run, Table, Watch, charts, figure, file_name, html, markdown, table_line, write_files,
};
use measure::rounds::{Count, Rounds, Spread};
use measure::workload::{Comparison, point_name};

fn comparison(name: &str, ours: &[f64], theirs: &[f64]) -> Comparison {
    let [ours, theirs] = [ours, theirs].map(|rounds| Rounds::new(rounds.to_vec()));
    Comparison::new(
        "ctree",
        name.to_owned(),
        "std BTreeMap",
        "ns",
        &ours,
        &theirs,
    )
}

fn row(name: &str, ratio: f64) -> Comparison {
    comparison(name, &[10.0], &[10.0 * ratio])
}

fn record(rows: Vec<Comparison>) -> Record {
    let run = Run {
        date: "2026-11-21T04:00:00Z".to_owned(),
        command: "report --quick".to_owned(),
        commit: "0123456789ab".to_owned(),
        processors: 2,
        workloads: 3,
        finished: 3,
        ..Run::default()
    };
    Record {
        runs: vec![run],
        rows,
        tables: Vec::new(),
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn a_comparison_has_medians_and_the_quartiles_of_its_rounds() {
    // Ratios by round: 3, 2, 5, 4, 1.
    let comparison = comparison(
        "get_vs_btreemap",
        &[1.0, 2.0, 1.0, 2.0, 4.0],
        &[3.0, 4.0, 5.0, 8.0, 4.0],
    );
    assert!(close(comparison.ours, 2.0) && close(comparison.theirs, 4.0));
    assert!(close(comparison.ratio, 2.0));
    assert_eq!(comparison.runs, 5);
    let spread = comparison.spread.expect("five rounds have a spread");
    let expected = [1.0, 2.0, 4.0, 5.0];
    let found = [spread.least, spread.lower, spread.upper, spread.most];
    assert!(
        expected.iter().zip(found).all(|(a, b)| close(*a, b)),
        "{spread:?}"
    );
    assert!(!spread.straddles_one());
}

#[test]
fn quartiles_lie_between_rounds_and_even_medians_are_the_upper_one() {
    let spread = Spread::of([1.0, 2.0, 3.0]).expect("three ratios have a spread");
    assert!(close(spread.lower, 1.5) && close(spread.upper, 2.5));
    let spread = Spread::of([1.2, 0.8]).expect("two ratios have a spread");
    assert!(close(spread.lower, 0.9) && close(spread.upper, 1.1));
    assert!(spread.straddles_one());
    assert!(close(Rounds::new(vec![4.0, 1.0, 3.0, 2.0]).median(), 3.0));
    let times = [4, 1, 3, 2].map(Duration::from_nanos).to_vec();
    let rounds = Rounds::of_times(times).per_operation(2);
    assert!(close(rounds.median(), 1.5));
    assert!(
        rounds
            .each()
            .iter()
            .zip([2.0, 0.5, 1.5, 1.0])
            .all(|(a, b)| close(*a, b))
    );
}

#[test]
fn there_is_no_spread_where_rounds_do_not_belong_together() {
    assert_eq!(Spread::of([1.0]), None);
    assert_eq!(Spread::of([1.0, f64::NAN]), None);
    let (three, two) = (Rounds::new(vec![1.0; 3]), Rounds::new(vec![2.0; 2]));
    assert_eq!(Spread::of_rounds(&three, &two), None);
    assert_eq!(
        Spread::of_rounds(&Rounds::once(1.0), &Rounds::once(2.0)),
        None
    );
}

#[test]
fn a_geometric_mean_is_that_of_the_medians_and_of_each_round() {
    let mean = Rounds::geometric_mean(&[
        Rounds::new(vec![1.0, 2.0, 4.0]),
        Rounds::new(vec![9.0, 8.0, 1.0]),
    ]);
    assert!(close(mean.median(), 4.0));
    assert!(
        mean.each()
            .iter()
            .zip([3.0, 4.0, 2.0])
            .all(|(a, b)| close(*a, b))
    );
}

#[test]
fn json_has_the_documented_fields_and_comes_back() {
    let mut comparison = comparison("get_vs_btreemap", &[1.0, 2.0], &[3.0, 4.0]);
    comparison.counts.push(Count {
        event: "LLC misses".to_owned(),
        ours: 1.5,
        theirs: 3.0,
        simulated: true,
    });
    let line = comparison.json_line();
    let value: serde_json::Value = serde_json::from_str(&line).expect("a line is JSON");
    for field in ["suite", "name", "unit", "rival"] {
        assert!(value[field].is_string(), "{field} in {line}");
    }
    for field in ["ours", "theirs", "ratio", "runs"] {
        assert!(value[field].is_number(), "{field} in {line}");
    }
    for field in ["least", "lower", "upper", "most"] {
        assert!(value["spread"][field].is_number(), "{field} in {line}");
    }
    assert!(
        value["counts"][0]["simulated"]
            .as_bool()
            .is_some_and(|it| it)
    );
    let back = Record::read(&line).expect("it comes back");
    assert_eq!(back.rows, [comparison]);

    let broken = Comparison {
        ours: f64::NAN,
        theirs: 1.0,
        ..back.rows[0].clone()
    };
    let back = Record::read(&broken.json_line()).expect("what is not a number comes back, too");
    assert!(back.rows[0].ours.is_nan() && close(back.rows[0].theirs, 1.0));

    let old = concat!(
        r#"{"suite":"ctree","name":"a","ours":1.0,"theirs":2.0,"ratio":2.0,"#,
        r#""unit":"ns","rival":"b","runs":1}"#
    );
    let record = Record::read(old).expect("lines of earlier versions are read");
    assert_eq!(record.rows[0].spread, None);
    assert_eq!(
        record.rows[0].json_line(),
        old,
        "nothing is added to what has nothing"
    );
}

#[test]
fn a_record_comes_back_and_later_rows_replace_earlier_ones() {
    let mut first = record(vec![row("a", 1.5), row("b", 2.0)]);
    first
        .tables
        .push(Table::new("ctree", "T", "words", ["x"], [["1"]]));
    let text = first.json_lines() + &record(vec![row("a", 3.0)]).json_lines();
    let both = Record::read(&text).expect("it is a record");
    assert_eq!(both.runs.len(), 2);
    assert_eq!(both.runs[0], first.runs[0]);
    assert_eq!(both.tables, first.tables);
    let names: Vec<(&str, String)> = both
        .rows
        .iter()
        .map(|row| (row.name.as_str(), format!("{:.1}", row.ratio)))
        .collect();
    assert_eq!(names, [("a", "3.0".to_owned()), ("b", "2.0".to_owned())]);
    for (text, about) in [
        ("{\"suite\":1}", "expected a string"),
        ("{\"suite\":\"ctree\"}", "missing field `name`"),
        ("{\"report\":1}", "expected struct Run"),
        ("[]", "line 1 "),
    ] {
        let error = Record::read(text).expect_err("this is no line of a report");
        assert!(
            error.starts_with("line 1 ") && error.contains(about),
            "{error}"
        );
    }
}

#[test]
fn text_does_not_break_out_of_pictures_and_pages() {
    assert_eq!(escape("a<b>&\"'\u{7}"), "a&lt;b&gt;&amp;&quot;&#39; ");
    assert_eq!(
        file_name("../Lookup <n> against size"),
        "lookup-n-against-size.svg"
    );
    let mut evil = row("x<script>alert(1)</script>_vs_y", 2.0);
    evil.rival = "<img src=x onerror=\"boom\">|\u{1b}".to_owned();
    evil.unit = "<b>".to_owned();
    let record = record(vec![evil]);
    let page = html::page(&record);
    let picture = charts::bars("ctree", &record.rows_of("ctree"));
    for text in [&page, &picture] {
        for bad in ["<script", "<img", "<b>", "onerror=\"", "\u{1b}"] {
            assert!(!text.contains(bad), "{bad} in {text}");
        }
    }
    let markdown = markdown::report(&record);
    assert!(!markdown.contains("<img") && markdown.contains("\\|"));
}

#[test]
fn the_page_is_for_phones_and_loads_nothing() {
    let record = record(vec![row("get_vs_btreemap", 2.0), row("get_vs_bbtree", 0.5)]);
    let page = html::page(&record);
    assert!(page.contains("<meta name=\"viewport\" content=\"width=device-width"));
    for loads in ["<script", "src=", "@import", "url(", "<link"] {
        assert!(!page.contains(loads), "{loads}");
    }
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
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
    let point = |family, log2_n, line, predicted: f64, measured: f64| {
        comparison(&point_name(family, log2_n, line), &[predicted], &[measured])
    };
    let rows = vec![
        point("lookup", 21, "btreemap", 300.0, 310.0),
        row("lookup_n21_ctreemap_vs_btreemap", 2.0),
        point("lookup", 21, "ctreemap", 150.0, 140.0),
        point("lookup", 10, "btreemap", f64::NAN, 20.0),
        point("walk", 10, "list", 1.0, 2.0),
        row("predict_bst_2m_veb_vs_measured", 2.0),
        row("lookup_nine_btreemap_vs_measured", 2.0),
        row("lookup_n99_btreemap_vs_measured", 2.0),
    ];
    let record = record(rows);
    let curves = record.curves_of("ctree");
    let names: Vec<_> = curves.iter().map(|curves| curves.name.as_str()).collect();
    assert_eq!(names, ["lookup", "walk"]);
    let lines = curves[0].lines.iter();
    let lines: Vec<_> = lines
        .map(|line| (line.name.as_str(), line.points.len()))
        .collect();
    assert_eq!(lines, [("btreemap", 2), ("ctreemap", 1)]);
    let point = |n, measured, predicted| CurvePoint {
        n,
        measured,
        predicted,
    };
    let [small, large] = [
        point(1 << 10, 20.0, None),
        point(1 << 21, 310.0, Some(300.0)),
    ];
    assert_eq!(curves[0].lines[0].points, [small, large]);
    assert!(Curves::of(&[]).is_empty());
    assert_eq!(record.bars_of("ctree").len(), 4, "points are no bars");

    let picture = charts::curves(&curves[0]);
    assert_eq!(picture.matches("<circle").count(), 3, "{picture}");
    assert!(picture.contains("btreemap (thin: predicted)"), "{picture}");
    assert!(html::page(&record).contains("lookup against size"));
}

#[test]
fn an_unfinished_run_says_so() {
    let mut watch = Watch::start(
        ["/some/where/report", "--quick", "--out", "/some/folder"]
            .map(String::from)
            .into_iter(),
        2,
    );
    watch.fail_workload("get: answers differ".to_owned());
    let run = watch.run();
    assert_eq!((run.finished, run.workloads), (1, 2));
    assert!(!run.is_complete());
    let unfinished = Record {
        runs: vec![run],
        ..Record::default()
    };
    assert!(html::page(&unfinished).contains("did not finish"));
    let text = markdown::report(&unfinished);
    assert!(text.contains("NOT complete: 1 of 2") && text.contains("get: answers differ"));
    assert!(!text.contains("/some/"), "folders are this machine's");
}

#[test]
fn machine_and_quietness_are_told() {
    let run = Watch::start(std::iter::once("report".to_owned()), 1).run();
    assert!(!run.processor.is_empty() && run.processors >= 1 && run.memory_bytes > 0);
    assert!(run.date.ends_with('Z') && run.compiler.starts_with("rustc "));
    if cfg!(target_os = "linux") {
        assert!(run.system.starts_with("Linux ") && run.load_before.is_some());
    }
    let quiet = |others, stolen| {
        let run = Run {
            others_share: Some(others),
            stolen_share: Some(stolen),
            ..Run::default()
        };
        run.quietness()
    };
    assert!(quiet(0.01, 0.005).starts_with("quiet: other processes took 1.0%"));
    assert!(quiet(0.0, 0.2).starts_with("not quiet"));
    assert_eq!(
        command(
            ["x/report", "--out", "a", "--json", "--out=b", "--only", "c"]
                .map(String::from)
                .into_iter()
        ),
        "report --json --only c"
    );
}

#[test]
fn figures_have_three_digits_that_count() {
    let figures = [0.934, 9.996, 23.44, 420.8, 4210.4];
    assert_eq!(
        figures.map(figure),
        ["0.93", "10.00", "23.4", "420.8", "4210"]
    );
    let line = table_line(&comparison("get_vs_btreemap", &[1.0, 2.0], &[3.0, 4.0]));
    assert!(
        line.starts_with("ctree/get_vs_btreemap ") && line.contains("2.25-2.75"),
        "{line}"
    );
}

#[test]
fn tables_align_figures_and_keep_bars_in_cells() {
    let header = ["what", "one"].map(String::from);
    let rows = [["a|b", "**1.5**"], ["c", ""]].map(|row| row.map(String::from).to_vec());
    assert_eq!(
        markdown_table(&header, &rows),
        "| what | one |\n|---|---:|\n| a\\|b | **1.5** |\n| c |  |\n"
    );
    let html = html_table(&header, &rows);
    assert!(
        html.contains("<td class=\"n\"><strong>1.5</strong></td>") && html.contains("<td>a|b</td>")
    );
}

/// Records by path.
fn records() -> BTreeMap<&'static str, String> {
    let text = record(vec![
        row("get_vs_btreemap", 2.0),
        row("get_vs_brie", 1.25),
        row("put", 0.5),
    ]);
    [
        ("record/a.jsonl", text.json_lines()),
        ("bad", "no JSON".to_owned()),
    ]
    .into()
}

fn filled(text: &str) -> Result<String, FillError> {
    let records = records();
    fill(text, |path| {
        records
            .get(path)
            .cloned()
            .ok_or_else(|| "no such file".to_owned())
    })
}

#[test]
fn tables_between_marks_come_from_the_record() {
    let text = "# Title\n\n<!-- report: record/a.jsonl\nput = slow | puts\nget_*\n-->\n\
                old 9.99x\n<!-- /report -->\nend\n";
    let first = filled(text).expect("the record has all rows");
    assert!(first.starts_with("# Title\n\n<!-- report: record/a.jsonl\nput = slow | puts\n"));
    assert!(first.ends_with("<!-- /report -->\nend\n"));
    assert!(!first.contains("9.99x"));
    let lines: Vec<&str> = first.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), 5, "{first}");
    assert!(
        lines[2].starts_with("| slow \\| puts | 10.0 ns | 5.00 ns | 0.50x |"),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].starts_with("| `get_vs_btreemap` |") && lines[4].starts_with("| `get_vs_brie` |")
    );
    assert!(first.contains("Measured on 2026-11-21 by `report --quick`; commit 0123456789ab"));
    assert_eq!(
        filled(&first),
        Ok(first.clone()),
        "a second time changes nothing"
    );

    let all = filled("<!-- report: record/a.jsonl -->\n<!-- /report -->\n").expect("all rows");
    assert_eq!(
        all.lines().filter(|line| line.starts_with("| `")).count(),
        3
    );
}

#[test]
fn marks_that_cannot_be_filled_are_errors() {
    assert_eq!(filled("nothing\n"), Err(FillError::NoMark));
    let no_end = filled("a\n\n<!-- report: record/a.jsonl -->\n");
    assert_eq!(
        no_end,
        Err(FillError::Unfinished {
            lacks: "<!-- /report -->",
            line: 3
        })
    );
    let no_row = filled("<!-- report: record/a.jsonl\nget_many\n-->\n<!-- /report -->\n");
    assert!(matches!(no_row, Err(FillError::NoRow { name, .. }) if name == "get_many"));
    for path in ["missing", "bad"] {
        let error = filled(&format!("<!-- report: {path} -->\n<!-- /report -->\n"));
        assert!(matches!(error, Err(FillError::Record { .. })), "{error:?}");
    }
}

#[test]
fn files_are_written_whole_and_again() {
    let out = std::env::temp_dir().join(format!("benches-output-{}", std::process::id()));
    let rows = vec![
        row("get_vs_btreemap", 2.0),
        row("lookup_n10_btreemap_vs_measured", 1.0),
    ];
    let mut growing = record(Vec::new());
    for row in rows {
        growing.add(row);
        write_files(&out, &growing).expect("the folder for temporary files takes them");
    }
    let mut names: Vec<String> = std::fs::read_dir(&out)
        .expect("it is there")
        .map(|entry| {
            entry
                .expect("it can be read")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    let text = std::fs::read_to_string(out.join("report.jsonl")).expect("it is there");
    std::fs::remove_dir_all(&out).expect("it goes again");
    assert_eq!(
        names,
        [
            "ctree.svg",
            "lookup-against-size.svg",
            "report.html",
            "report.jsonl",
            "report.md"
        ]
    );
    assert_eq!(
        Record::read(&text).expect("it is a record").rows,
        growing.rows
    );
}
