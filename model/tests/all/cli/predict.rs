//! `model predict`: structures, operations, keys, layouts, output, refusals.

use std::fs;

use ccmodel::Machine;
use serde_json::Value;

use super::{TempFile, answer, by_any_tier, json, refusal, small};

#[test]
fn the_documented_prediction_prints_misses_and_ns_for_each_layout() {
    let object = json(&[
        "predict",
        "--structure",
        "bst",
        "--nodes",
        "30001",
        "--node-bytes",
        "32",
        "--layout",
        "random,dfs,cluster,veb",
        "--json",
    ]);
    let rows = object["rows"].as_array().unwrap();
    assert_eq!(object["baseline"], "random");
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["layout"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["random", "dfs", "cluster", "veb"]);
    for row in rows {
        assert!(row["ns"].as_f64().unwrap() > 0.0);
        assert!(row["misses"]["L1"].as_f64().unwrap() > 0.0);
    }
    let speedup = |i: usize| rows[i]["speedup"].as_f64().unwrap();
    assert!((speedup(0) - 1.0).abs() < 1e-9);
    assert!(speedup(3) > 1.0);
    assert_eq!(object["structure"]["nodes"], 30_001);
}

#[test]
fn speedups_are_relative_to_random_even_when_it_is_not_asked_for() {
    let with = json(&small(&[
        "--machine",
        "thesis",
        "--layout",
        "random,veb",
        "--json",
    ]));
    let without = json(&small(&[
        "--machine",
        "thesis",
        "--layout",
        "veb",
        "--json",
    ]));
    assert_eq!(with["rows"][1], without["rows"][0]);
    assert!(without["rows"][0]["speedup"].as_f64().unwrap() > 1.0);
}

#[test]
fn thesis_formulas_stand_beside_ours() {
    let object = json(&[
        "predict",
        "--nodes",
        "16_383",
        "--node-bytes",
        "20",
        "--layout",
        "dfs,cluster,veb",
        "--machine",
        "thesis",
        "--tier",
        "footprint",
        "--thesis",
        "--json",
    ]);
    let rows = object["thesis"]["rows"].as_array().unwrap();
    assert_eq!(
        rows.len(),
        4,
        "veb is not in the thesis, coloured trees are: {rows:?}"
    );
    let rate = |i: usize| rows[i]["levels"][1]["miss_rate"].as_f64().unwrap();
    assert!((rate(0) - 0.571).abs() < 5e-4);
    assert!((rate(1) - 0.5).abs() < 1e-9);
    let text = answer(&by_any_tier(&["--thesis"]));
    assert!(text.contains("formulas of the thesis"), "{text}");
    let line = refusal(&by_any_tier(&["--structure", "array", "--thesis"]));
    assert!(line.contains("trees and lists"), "{line}");
}

#[test]
fn tables_have_a_line_for_each_layout() {
    let text = answer(&small(&[
        "--shape",
        "random",
        "--pages",
        "2m",
        "--machine",
        "thesis",
    ]));
    for name in [
        "random",
        "bfs",
        "dfs",
        "cluster",
        "veb",
        "cluster-veb",
        "hierarchical",
    ] {
        assert!(
            text.lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}: {text}"
        );
    }
}

#[test]
fn depth_first_aliasing_is_pointed_out() {
    let text = |layout| {
        answer(&[
            "predict",
            "--nodes",
            "65535",
            "--node-bytes",
            "32",
            "--layout",
            layout,
            "--machine",
            "zen4-desktop",
            "--frames",
            "identity",
        ])
    };
    let aliased = text("dfs");
    assert!(aliased.contains("powers of two"), "{aliased}");
    let usual = text("veb");
    assert!(!usual.contains("powers of two"), "{usual}");
}

#[test]
fn a_machine_on_which_all_is_free_gives_speedups_of_one() {
    let mut machine = Machine::thesis();
    machine.search = ccmodel::SearchCosts {
        operation_ns: 0.0,
        node_ns: 0.0,
        misprediction_ns: 0.0,
        branch_free_node_ns: 0.0,
    };
    for level in &mut machine.levels {
        level.steps[0].step_ns = 0.0;
    }
    let free = TempFile::new("free.json", &machine.to_json());
    let object = json(&small(&["--machine", free.path(), "--json"]));
    for row in object["rows"].as_array().unwrap() {
        assert_eq!(row["ns"].as_f64(), Some(0.0));
        assert_eq!(row["speedup"].as_f64(), Some(1.0), "{row}");
    }
}

#[test]
fn operations_as_long_as_a_cache_are_pointed_out() {
    let predict = |nodes, bytes| {
        answer(&[
            "predict",
            "--nodes",
            nodes,
            "--node-bytes",
            bytes,
            "--machine",
            "thesis",
            "--tier",
            "footprint",
        ])
    };
    let long = predict("1", "20_000");
    assert!(long.contains("of what L1 can hold"), "{long}");
    assert!(long.contains(" 1250 "), "all lines are missed: {long}");
    let usual = predict("20000", "32");
    assert!(!usual.contains("can hold"), "{usual}");
}

#[test]
fn formulas_need_no_nodes() {
    // More than any machine holds: one that is asked about need not be this one.
    let closed = ["--machine", "zen4-server", "--tier", "closed", "--json"];
    let large = |layout, nodes| {
        let question = [
            "predict",
            "--nodes",
            nodes,
            "--layout",
            layout,
            "--baseline",
            layout,
        ];
        json(&[&question[..], &closed].concat())
    };
    for layout in ["random", "bfs"] {
        let object = large(layout, "4e9");
        assert_eq!(object["structure"]["nodes"], 4_000_000_000u64);
        let row = &object["rows"][0];
        assert_eq!(row["levels"][0]["tier"], "closed");
        assert!(row["span_bytes"].as_u64().unwrap() >= 128_000_000_000);
        assert!(
            (30.0..31.0).contains(&row["nodes_visited"].as_f64().unwrap()),
            "{row}"
        );
        // As from all nodes, where there are few.
        let ns = |tier| {
            let few = [
                "predict", "--nodes", "500000", "--layout", layout, "--tier", tier,
            ];
            let other = json(&[&few[..], &["--machine", "zen4-server", "--json"]].concat());
            other["rows"][0]["ns"].as_f64().unwrap()
        };
        let (formula, all) = (ns("closed"), ns("poisson"));
        assert!(
            (formula / all - 1.0).abs() < 0.05,
            "{layout}: {formula} {all}"
        );
    }
    let line = refusal(&[
        "predict",
        "--nodes",
        "6e8",
        "--tier",
        "closed",
        "--layout",
        "dfs,bfs",
        "--machine",
        "zen4-server",
    ]);
    assert!(line.contains("dfs") && line.contains("closed"), "{line}");
}

#[test]
fn impossible_structures_are_refused() {
    let predict = |nodes, bytes| refusal(&["predict", "--nodes", nodes, "--node-bytes", bytes]);
    assert!(predict("0", "32").contains("at least one node"));
    assert!(predict("100", "0").contains("at least one byte"));
    assert!(predict("4000000000", "4000000000").contains("this machine has"));
    for command in ["advise", "simulate"] {
        let line = refusal(&[command, "--nodes", "4e9", "--machine", "zen4-server"]);
        assert!(
            line.contains("of memory") && line.contains("free"),
            "{line}"
        );
    }
    assert!(predict("1", "99999999999").contains("more than can be predicted"));
    assert!(predict("18446744073709551615", "2").contains("more than can be predicted"));
    // The number says it, whatever the memory: the last one means "no node".
    let line = predict("4294967295", "1");
    assert!(line.contains("at most 4294967294 nodes"), "{line}");
    assert!(predict("-5", "32").contains("-5"));
    assert!(predict("many", "32").contains("whole number"));
}

#[test]
fn unknown_words_are_refused_with_a_suggestion() {
    assert!(refusal(&by_any_tier(&["--layout", "vebb"])).contains("`veb`"));
    assert!(refusal(&by_any_tier(&["--layout", "dfs,cluster:48"])).contains("power of two"));
    assert!(refusal(&by_any_tier(&["--jsn"])).contains("--json"));
    assert!(refusal(&by_any_tier(&["--pages", "1g"])).contains("1g"));
    assert!(refusal(&by_any_tier(&["--structure", "rope"])).contains("rope"));
    assert!(refusal(&["predikt"]).contains("predict"));
    assert!(refusal(&["predict", "--node-bytes", "8"]).contains("--nodes"));
    assert!(refusal(&by_any_tier(&["--baseline", "vebb"])).contains("`veb`"));
    assert!(refusal(&by_any_tier(&["--structure", "bts"])).contains("`bst`"));
    assert!(refusal(&by_any_tier(&["--tier", "per_set"])).contains("`per-set`"));
    assert!(refusal(&by_any_tier(&["--operation", "serch"])).contains("search"));
    assert!(refusal(&by_any_tier(&["--keys", "zipf"])).contains("zipf:S"));
    refusal(&[]);
    // What is like no name gets no suggestion, and no hidden name is one.
    assert!(!refusal(&by_any_tier(&["--machine", "nope"])).contains("did you mean"));
    assert!(!refusal(&by_any_tier(&["--layout", "nope"])).contains("did you mean"));
    let half = refusal(&["pre"]);
    assert!(
        half.contains("'predict'") && !half.contains("probe-layout"),
        "{half}"
    );
}

/// The only row of a prediction of one layout.
fn row(args: &[&str]) -> Value {
    let object = json(args);
    let rows = object["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{args:?}");
    rows[0].clone()
}

#[test]
fn every_structure_can_be_asked_about() {
    for (structure, layout) in [
        ("bst", "veb"),
        ("nary:5", "bfs"),
        ("quadtree", "hierarchical"),
        ("octree", "cluster"),
        ("btree", "random"),
        ("list", "allocated"),
        ("dlist", "random"),
        ("hash", "hinted"),
        ("hash:0.5", "dfs"),
        ("array", "random"),
        ("eytzinger", "random"),
    ] {
        for shape in ["complete", "random"] {
            let row = row(&[
                "predict",
                "--structure",
                structure,
                "--shape",
                shape,
                "--nodes",
                "400",
                "--node-bytes",
                "48",
                "--layout",
                layout,
                "--machine",
                "thesis",
                "--tier",
                "footprint",
                "--json",
            ]);
            assert!(row["ns"].as_f64().unwrap() > 0.0, "{structure}");
            let (low, high) = (row["ns_low"].as_f64(), row["ns_high"].as_f64());
            assert!(low < row["ns"].as_f64() && row["ns"].as_f64() < high);
        }
    }
}

#[test]
fn every_operation_can_be_asked_about() {
    let touched = |operation: &str| {
        let row = row(&small(&[
            "--operation",
            operation,
            "--layout",
            "dfs",
            "--machine",
            "thesis",
            "--json",
        ]));
        row["nodes_visited"].as_f64().unwrap()
    };
    let search = touched("search");
    assert!(search < touched("miss"));
    assert!(search < touched("range:50"));
    assert!(touched("range:50") < touched("walk"));
    assert!((touched("insert") - touched("miss")).abs() < 1e-9);
    assert!((touched("walk") - 5000.0).abs() < 1e-6);
}

#[test]
fn favourite_keys_are_cached() {
    let ns = |keys: &str| {
        let row = row(&small(&[
            "--keys",
            keys,
            "--layout",
            "random",
            "--machine",
            "thesis",
            "--json",
        ]));
        row["ns"].as_f64().unwrap()
    };
    let uniform = ns("uniform");
    assert!(ns("zipf:1.2") < ns("zipf:0.8") && ns("zipf:0.8") < uniform);
    assert!(ns("hot:0.01:0.9") < uniform);
    assert!((ns("zipf:0") / uniform - 1.0).abs() < 1e-6);
    let trace = TempFile::new("keys.txt", "# a trace\n7\n7\n7\n4999\n");
    let keys = format!("trace:{}", trace.path());
    assert!(ns(&keys) < 0.5 * uniform);
    for (text, expected) in [("1\nx\n", "line 2"), ("5000\n", "line 1"), ("", "no key")] {
        let trace = TempFile::new("bad-keys.txt", text);
        let keys = format!("trace:{}", trace.path());
        let line = refusal(&small(&["--keys", &keys]));
        assert!(line.contains(expected), "{text:?}: {line}");
    }
    for bad in [
        "zipf:-1",
        "zipf:nan",
        "hot:2:0.5",
        "hot:0.5",
        "trace:no/such/file",
    ] {
        let line = refusal(&small(&["--keys", bad]));
        assert!(
            line.contains("keys") || line.contains("Zipf") || line.contains("share"),
            "{line}"
        );
    }
}

#[test]
fn layouts_of_allocators_and_without_links_are_known() {
    let object = json(&small(&[
        "--shape",
        "random",
        "--machine",
        "thesis",
        "--layout",
        "random,allocated,hinted,hinted:closest,hinted:first-fit,coloured:cluster,eliminated",
        "--json",
    ]));
    let rows = object["rows"].as_array().unwrap();
    let names: Vec<&str> = rows
        .iter()
        .map(|row| row["layout"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "random",
            "allocated",
            "hinted",
            "hinted:closest",
            "hinted:first-fit",
            "coloured:cluster",
            "eliminated"
        ]
    );
    let ns = |i: usize| rows[i]["ns"].as_f64().unwrap();
    assert!(ns(2) < ns(0), "hints help");
    assert!(ns(6) < ns(0), "so does doing without links");
    let span = |i: usize| rows[i]["span_bytes"].as_u64().unwrap();
    // Segments of 64 KiB end with what is left of them.
    assert!((5000 * 24..5000 * 24 + 64).contains(&span(1)));
    assert_eq!(span(6), 5000 * 8);
    for (args, expected) in [
        (vec!["--layout", "coloured:vebb"], "`veb`"),
        (vec!["--layout", "given"], "edges:FILE"),
        (
            vec![
                "--layout",
                "coloured:dfs",
                "--machine",
                "thesis",
                "--colour-cache",
                "L9",
            ],
            "no cache called `L9`",
        ),
        (
            vec![
                "--layout",
                "coloured:dfs",
                "--machine",
                "thesis",
                "--colour-share",
                "1.5",
            ],
            "between 0 and 1",
        ),
        (
            vec!["--structure", "hash", "--layout", "eliminated"],
            "without its links",
        ),
        (
            vec!["--structure", "octree", "--layout", "eliminated"],
            "8 links",
        ),
    ] {
        let line = refusal(&small(&args));
        assert!(line.contains(expected), "{args:?}: {line}");
    }
}

#[test]
fn edges_of_a_file_are_a_structure() {
    let mut text = String::from("parent,child\n");
    for v in 1..2000 {
        text += &format!("n{},n{v}\n", (v - 1) / 2);
    }
    let file = TempFile::new("edges.csv", &text);
    let structure = format!("edges:{}", file.path());
    let own = row(&[
        "predict",
        "--structure",
        &structure,
        "--node-bytes",
        "24",
        "--layout",
        "veb",
        "--machine",
        "thesis",
        "--json",
    ]);
    let bst = row(&[
        "predict",
        "--nodes",
        "2000",
        "--node-bytes",
        "24",
        "--layout",
        "veb",
        "--machine",
        "thesis",
        "--json",
    ]);
    let l1 = |row: &Value| row["misses"]["L1"].as_f64().unwrap();
    assert!((l1(&own) - l1(&bst)).abs() < 1e-9, "the same tree");
    let line = refusal(&small(&["--structure", &structure]));
    assert!(line.contains("--nodes cannot"), "{line}");
    let placed = TempFile::new("placed.csv", "a,b,0x1000\n,a,0x2000\na,c,0x3000\n");
    let structure = format!("edges:{}", placed.path());
    let given = row(&[
        "predict",
        "--structure",
        &structure,
        "--node-bytes",
        "24",
        "--layout",
        "given",
        "--machine",
        "thesis",
        "--json",
    ]);
    assert_eq!(given["span_bytes"], 0x2000 + 24);
    for (text, expected) in [
        ("a,b\nb,a\n", "line 2"),
        ("a,c\nb,c\n", "line 2"),
        ("a\n", "line 1"),
        ("", "no edge"),
        ("parent,child\n", "no edge"),
    ] {
        let file = TempFile::new("bad-edges.csv", text);
        let structure = format!("edges:{}", file.path());
        let line = refusal(&["predict", "--structure", &structure]);
        assert!(line.contains(expected), "{text:?}: {line}");
    }
    assert!(refusal(&["predict", "--structure", "edges:no/such/file"]).contains("no/such/file"));
    assert!(refusal(&["predict", "--structure", "edges"]).contains("name of a file"));
}

#[test]
fn tiers_can_be_asked_for_and_say_why_they_were_taken() {
    let levels = |tier: &str| {
        let row = row(&by_any_tier(&[
            "--layout",
            "bfs",
            "--machine",
            "thesis",
            "--tier",
            tier,
            "--json",
        ]));
        row["levels"].as_array().unwrap().clone()
    };
    for tier in ["auto", "closed", "footprint", "poisson", "per-set"] {
        for level in levels(tier) {
            assert!(level["misses"].as_f64().unwrap().is_finite(), "{tier}");
            assert!(!level["reason"].as_str().unwrap().is_empty(), "{tier}");
            if tier != "auto" {
                assert_eq!(level["tier"], tier);
            }
        }
    }
    for args in [
        ["--tier", "closed", "--layout", "dfs"],
        ["--tier", "closed", "--shape", "random"],
        ["--tier", "closed", "--keys", "zipf:1"],
        ["--tier", "closed", "--searches", "10"],
    ] {
        let line = refusal(&by_any_tier(
            &[&args[..], &["--machine", "thesis"]].concat(),
        ));
        assert!(
            line.contains("closed") && line.contains("form"),
            "{args:?}: {line}"
        );
    }
}

#[test]
fn first_operations_miss_more_than_later_ones() {
    let misses = |more: &[&str]| {
        let args = [&["--layout", "veb", "--machine", "thesis", "--json"], more].concat();
        row(&small(&args))["misses"]["L2"].as_f64().unwrap()
    };
    let few = misses(&["--searches", "10"]);
    let many = misses(&["--searches", "10_000"]);
    let steady = misses(&["--steady"]);
    assert!(few > many && many >= steady, "{few} {many} {steady}");
    assert!(refusal(&small(&["--searches", "10", "--steady"])).contains("--steady"));
    assert!(refusal(&small(&["--searches", "0"])).contains("at least one"));
}

#[test]
fn independent_operations_overlap() {
    let ns = |more: &[&str]| {
        let args = [&["--layout", "random", "--nodes", "200000", "--json"], more].concat();
        row(&[&["predict", "--node-bytes", "32"], &args[..]].concat())["ns"]
            .as_f64()
            .unwrap()
    };
    // With branches, what was begun on a wrong guess is thrown away: it may gain nothing.
    assert!(ns(&["--independent"]) <= ns(&[]));
    assert!(ns(&["--independent", "--style", "branch-free"]) < ns(&["--style", "branch-free"]));
}

#[test]
fn speedups_are_relative_to_the_named_baseline() {
    let object = json(&small(&[
        "--layout",
        "dfs,veb",
        "--baseline",
        "dfs",
        "--machine",
        "thesis",
        "--json",
    ]));
    assert_eq!(object["baseline"], "dfs");
    let rows = object["rows"].as_array().unwrap();
    assert_eq!(rows[0]["speedup"].as_f64(), Some(1.0));
    let ratio = rows[0]["ns"].as_f64().unwrap() / rows[1]["ns"].as_f64().unwrap();
    assert!((rows[1]["speedup"].as_f64().unwrap() - ratio).abs() < 1e-12);
}

#[test]
fn values_can_be_separated_by_commas() {
    let text = answer(&small(&[
        "--layout",
        "random,veb",
        "--machine",
        "thesis",
        "--csv",
    ]));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0][0], "layout");
    assert!(lines[0].contains(&"misses_L2"));
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len());
        for number in &line[1..] {
            assert!(number.parse::<f64>().unwrap() >= 0.0, "{line:?}");
        }
    }
    assert!(refusal(&small(&["--csv", "--json"])).contains("--json"));
}

#[test]
fn sweeps_are_drawn() {
    let file = TempFile::new("sweep.svg", "");
    let object = json(&small(&[
        "--layout",
        "random,veb",
        "--machine",
        "thesis",
        "--plot",
        file.path(),
        "--json",
    ]));
    let rows = object["sweep"]["rows"].as_array().unwrap();
    // 1024 to 5000 nodes in steps of a factor of the root of two.
    assert_eq!(rows.len(), 2 * 6);
    assert_eq!(rows.last().unwrap()["at"].as_f64(), Some(5000.0));
    let svg = fs::read_to_string(&file.0).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
    assert!(svg.contains("L2 misses an operation"));
    let coloured = json(&small(&[
        "--layout",
        "cluster",
        "--machine",
        "thesis",
        "--plot",
        file.path(),
        "--sweep",
        "coloured",
        "--json",
    ]));
    assert_eq!(coloured["sweep"]["over"], "colour_share");
    assert!(fs::read_to_string(&file.0).unwrap().contains("speedup"));
    let csv = answer(&small(&[
        "--layout",
        "veb",
        "--machine",
        "thesis",
        "--plot",
        file.path(),
        "--csv",
    ]));
    assert_eq!(csv.lines().count(), 1 + 6);
    // A command that fails leaves no file behind, nor half of one.
    let folder = std::env::temp_dir().join(format!("ccmodel-plot-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let path = folder.join("plot.svg");
    refusal(&small(&[
        "--layout",
        "given",
        "--plot",
        path.to_str().unwrap(),
    ]));
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    answer(&small(&[
        "--layout",
        "dfs",
        "--plot",
        path.to_str().unwrap(),
    ]));
    assert_eq!(
        fs::read_dir(&folder).unwrap().count(),
        1,
        "no temporary file is left"
    );
    fs::remove_dir_all(&folder).unwrap();
    assert!(refusal(&small(&["--plot", "no/such/folder/file.svg"])).contains("no/such/folder"));
    assert!(refusal(&small(&["--sweep", "coloured"])).contains("--plot"));
}

#[test]
fn absurd_parameters_of_structures_are_refused() {
    for (args, expected) in [
        (vec!["--structure", "nary:0"], "links"),
        (vec!["--structure", "nary:many"], "number of children"),
        (vec!["--structure", "nary"], "number of children"),
        (vec!["--structure", "hash:0"], "load"),
        (vec!["--structure", "hash:nan"], "load"),
        (vec!["--structure", "hash:-1"], "load"),
        (vec!["--structure", "bst:3"], "takes nothing"),
        (vec!["--structure", "btree", "--fanout", "2"], "fanout"),
        (vec!["--structure", "btree", "--fill", "0"], "filled"),
        (vec!["--structure", "btree", "--fill", "nan"], "filled"),
        (vec!["--structure", "btree", "--fill", "1.5"], "filled"),
        (
            vec!["--structure", "btree", "--key-bytes", "99999999999"],
            "--key-bytes",
        ),
        (
            vec!["--structure", "hash", "--operation", "range:5"],
            "no order",
        ),
        (vec!["--operation", "range:0"], "at least 1"),
        (vec!["--operation", "range:x"], "range:M"),
    ] {
        let line = refusal(&small(&args));
        assert!(line.contains(expected), "{args:?}: {line}");
    }
}
