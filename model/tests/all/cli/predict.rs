//! `model predict` and `model advise`.

use std::fs;

use ccmodel::Machine;
use serde_json::Value;

use super::{ANY_TIER, SMALL, TempFile, answer, json, number, refusal, refused};

/// The rows of a prediction.
fn rows(line: &str) -> Vec<Value> {
    json(line)["rows"].as_array().unwrap().clone()
}

/// Nanoseconds of the first row of a small prediction on the thesis's machine.
fn ns(more: &str) -> f64 {
    number(
        &rows(&format!("{SMALL} --machine thesis --layout random {more}"))[0],
        "ns",
    )
}

#[test]
fn a_prediction_has_misses_and_ns_for_each_layout() {
    let object = json("predict --nodes 30001 --node-bytes 32 --layout random,dfs,cluster,veb");
    assert_eq!(object["baseline"], "random");
    assert_eq!(object["structure"]["nodes"], 30_001);
    for (i, layout) in ["random", "dfs", "cluster", "veb"].into_iter().enumerate() {
        let row = &object["rows"][i];
        assert_eq!(row["layout"], layout);
        assert!(number(row, "misses.L1") > 0.0);
        assert!(number(row, "ns_low") < number(row, "ns"));
        assert!(number(row, "ns") < number(row, "ns_high"));
    }
    assert!((number(&object, "rows.0.speedup") - 1.0).abs() < 1e-9);
    assert!(number(&object, "rows.3.speedup") > 1.0);
}

#[test]
fn speedups_are_relative_to_the_baseline() {
    let small = format!("{SMALL} --machine thesis");
    let with = rows(&format!("{small} --layout random,veb"));
    let without = rows(&format!("{small} --layout veb"));
    assert_eq!(with[1], without[0], "random, asked for or not");
    let other = rows(&format!("{small} --layout dfs,veb --baseline dfs"));
    let ratio = number(&other[0], "ns") / number(&other[1], "ns");
    assert!((number(&other[1], "speedup") - ratio).abs() < 1e-12);
    // Where all is free, they are 1.
    let mut machine = Machine::thesis();
    let search = &mut machine.search;
    (search.operation_ns, search.node_ns) = (0.0, 0.0);
    (search.misprediction_ns, search.branch_free_node_ns) = (0.0, 0.0);
    for level in &mut machine.levels {
        level.steps[0].step_ns = 0.0;
    }
    let free = TempFile::new("free.json", &machine.to_json());
    for row in rows(&format!("{SMALL} --machine {}", free.path())) {
        assert_eq!(
            (row["ns"].as_f64(), row["speedup"].as_f64()),
            (Some(0.0), Some(1.0))
        );
    }
}

#[test]
fn texts_say_what_matters() {
    for (line, fragments) in [
        (
            format!("{SMALL} --shape random --pages 2m --machine thesis"),
            vec![
                "\nrandom ",
                "\nbfs ",
                "\ncluster-veb ",
                "\nhierarchical ",
                "L1: footprint",
            ],
        ),
        (
            "predict --nodes 65535 --node-bytes 32 --layout dfs --machine zen4-desktop \
             --frames identity"
                .to_owned(),
            vec!["powers of two"],
        ),
        (
            "predict --nodes 1 --node-bytes 20_000 --machine thesis --tier footprint".to_owned(),
            // All lines are missed.
            vec!["of what L1 can hold", " 1250 "],
        ),
    ] {
        let text = answer(&line);
        for fragment in fragments {
            assert!(text.contains(fragment), "{line}, {fragment}: {text}");
        }
    }
    let usual = "predict --nodes 65535 --node-bytes 32 --layout veb --machine zen4-desktop \
                 --frames identity";
    let text = answer(usual);
    assert!(
        !text.contains("powers of two") && !text.contains("can hold"),
        "{text}"
    );
}

#[test]
fn formulas_need_no_nodes() {
    let closed = "--machine zen4-server --tier closed";
    for layout in ["random", "bfs"] {
        let large = format!("predict --nodes 4e9 --layout {layout} --baseline {layout} {closed}");
        let object = json(&large);
        assert_eq!(object["structure"]["nodes"], 4_000_000_000u64);
        assert_eq!(object["rows"][0]["levels"][0]["tier"], "closed");
        assert!(number(&object, "rows.0.span_bytes") >= 128e9);
        assert!((30.0..31.0).contains(&number(&object, "rows.0.nodes_visited")));
        // As from all nodes, where there are few.
        let of = |tier: &str| {
            let few = format!("predict --nodes 500000 --layout {layout} --machine zen4-server");
            number(&rows(&format!("{few} --tier {tier}"))[0], "ns")
        };
        let (formula, all) = (of("closed"), of("per-set"));
        assert!(
            (formula / all - 1.0).abs() < 0.06,
            "{layout}: {formula} {all}"
        );
    }
    refused(
        "predict --nodes 6e8",
        &[(&format!("--layout dfs,bfs {closed}"), "dfs")],
    );
    let cases = [
        ("--layout dfs", "layout dfs"),
        ("--shape random", "complete trees"),
        ("--keys zipf:1", "uniform keys"),
        ("--searches 10", "steady state"),
    ];
    refused(&format!("{ANY_TIER} --tier closed"), &cases);
}

#[test]
fn impossible_sizes_are_refused() {
    let cases = [
        ("--nodes 0", "at least one"),
        ("--nodes 100 --node-bytes 0", "at least one"),
        (
            "--nodes 4000000000 --node-bytes 4000000000",
            "this machine has",
        ),
        (
            "--nodes 1 --node-bytes 99999999999",
            "more than can be predicted",
        ),
        ("--nodes 18446744073709551615", "at most 4294967294 nodes"),
        // The last number means "no node".
        (
            "--nodes 4294967295 --node-bytes 1",
            "at most 4294967294 nodes",
        ),
        ("--nodes -5", "-5"),
        ("--nodes many", "whole number"),
        ("--nodes 10 --searches 0", "at least one"),
        ("--nodes 10 --searches 10 --steady", "--steady"),
    ];
    refused("predict", &cases);
    for command in ["advise", "simulate"] {
        refused(
            command,
            &[("--nodes 4e9 --machine zen4-server", "of memory")],
        );
    }
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
            let line = format!("predict --structure {structure} --shape {shape} --layout {layout}");
            let of = "--nodes 400 --node-bytes 48 --machine thesis --tier footprint";
            assert!(
                number(&rows(&format!("{line} {of}"))[0], "ns") > 0.0,
                "{structure}"
            );
        }
    }
    let cases = [
        ("--structure nary:0", "links"),
        ("--structure nary:many", "number of children"),
        ("--structure nary", "number of children"),
        ("--structure hash:0", "load"),
        ("--structure hash:nan", "load"),
        ("--structure hash:-1", "load"),
        ("--structure bst:3", "takes nothing"),
        ("--structure btree --fanout 2", "fanout"),
        ("--structure btree --fill 0", "filled"),
        ("--structure btree --fill nan", "filled"),
        ("--structure btree --fill 1.5", "filled"),
        ("--structure btree --key-bytes 99999999999", "--key-bytes"),
        ("--structure hash --operation range:5", "no order"),
        ("--operation range:0", "at least 1"),
        ("--operation range:x", "range:M"),
    ];
    refused(SMALL, &cases);
}

#[test]
fn every_operation_and_distribution_can_be_asked_about() {
    let visited = |operation: &str| {
        let line = format!("{SMALL} --operation {operation} --layout dfs --machine thesis");
        number(&rows(&line)[0], "nodes_visited")
    };
    let search = visited("search");
    assert!(search < visited("miss") && search < visited("range:50"));
    assert!(visited("range:50") < visited("walk"));
    assert!((visited("insert") - visited("miss")).abs() < 1e-9);
    assert!((visited("walk") - 5000.0).abs() < 1e-6);
    let (uniform, zipf) = (ns(""), |exponent: &str| {
        ns(&format!("--keys zipf:{exponent}"))
    });
    assert!(zipf("1.2") < zipf("0.8") && zipf("0.8") < uniform);
    assert!(ns("--keys hot:0.01:0.9") < uniform);
    assert!((zipf("0") / uniform - 1.0).abs() < 1e-6);
    let trace = TempFile::new("keys.txt", "# a trace\n7\n7\n7\n4999\n");
    assert!(ns(&format!("--keys trace:{}", trace.path())) < 0.5 * uniform);
    for (text, fragment) in [("1\nx\n", "line 2"), ("5000\n", "line 1"), ("", "no key")] {
        let trace = TempFile::new("bad-keys.txt", text);
        refused(
            SMALL,
            &[(&format!("--keys trace:{}", trace.path()), fragment)],
        );
    }
    let cases = [
        ("--keys zipf:-1", "Zipf"),
        ("--keys zipf:nan", "Zipf"),
        ("--keys hot:2:0.5", "share"),
        ("--keys hot:0.5", "keys"),
        ("--keys trace:no/such/file", "keys"),
    ];
    refused(SMALL, &cases);
    // With branches, what was begun on a wrong guess is thrown away: it may gain nothing.
    let ns = |more: &str| {
        let line = "predict --nodes 200000 --node-bytes 32 --layout random --tier footprint";
        number(&rows(&format!("{line} {more}"))[0], "ns")
    };
    assert!(ns("--independent") <= ns(""));
    assert!(ns("--style branch-free --independent") < ns("--style branch-free"));
}

#[test]
fn layouts_of_allocators_and_without_links_are_known() {
    let names = "random,allocated,hinted,hinted:closest,hinted:first-fit,coloured:cluster,\
                 eliminated";
    let line = format!("{SMALL} --shape random --machine thesis --layout {names}");
    let rows = rows(&line);
    for (row, name) in rows.iter().zip(names.split(',')) {
        assert_eq!(row["layout"], name);
    }
    assert!(
        number(&rows[2], "ns") < number(&rows[0], "ns"),
        "hints help"
    );
    assert!(
        number(&rows[6], "ns") < number(&rows[0], "ns"),
        "so does doing without links"
    );
    // Segments of 64 KiB end with what is left of them.
    assert!((120_000.0..120_064.0).contains(&number(&rows[1], "span_bytes")));
    assert_eq!(rows[6]["span_bytes"], 5000 * 8);
    let cases = [
        ("--layout coloured:vebb", "`veb`"),
        ("--layout given", "edges:FILE"),
        (
            "--layout coloured:dfs --machine thesis --colour-cache L9",
            "no cache called `L9`",
        ),
        (
            "--layout coloured:dfs --colour-share 1.5",
            "between 0 and 1",
        ),
        ("--structure hash --layout eliminated", "without its links"),
        ("--structure octree --layout eliminated", "8 links"),
    ];
    refused(SMALL, &cases);
}

#[test]
fn edges_of_a_file_are_a_structure() {
    let edges: String = (1..2000)
        .map(|v| format!("n{},n{v}\n", (v - 1) / 2))
        .collect();
    let file = TempFile::new("edges.csv", &format!("parent,child\n{edges}"));
    let rest = "--node-bytes 24 --layout veb --machine thesis --tier footprint";
    let own = rows(&format!("predict --structure edges:{} {rest}", file.path()));
    let bst = rows(&format!("predict --nodes 2000 {rest}"));
    let l1 = |rows: &[Value]| number(&rows[0], "misses.L1");
    assert!((l1(&own) - l1(&bst)).abs() < 1e-9, "the same tree");
    refused(
        SMALL,
        &[(
            &format!("--structure edges:{}", file.path()),
            "--nodes cannot",
        )],
    );
    let placed = TempFile::new("placed.csv", "a,b,0x1000\n,a,0x2000\na,c,0x3000\n");
    let line = format!(
        "predict --structure edges:{} --node-bytes 24",
        placed.path()
    );
    let given = rows(&format!("{line} --layout given --machine thesis"));
    assert_eq!(given[0]["span_bytes"], 0x2000 + 24);
    for (text, fragment) in [
        ("a,b\nb,a\n", "line 2"),
        ("a,c\nb,c\n", "line 2"),
        ("a\n", "line 1"),
        ("", "no edge"),
        ("parent,child\n", "no edge"),
    ] {
        let file = TempFile::new("bad-edges.csv", text);
        refused(
            "predict",
            &[(&format!("--structure edges:{}", file.path()), fragment)],
        );
    }
    let cases = [
        ("--structure edges:no/such/file", "no/such/file"),
        ("--structure edges", "name of a file"),
    ];
    refused("predict", &cases);
}

#[test]
fn tiers_can_be_asked_for_and_say_why_they_were_taken() {
    for tier in ["auto", "closed", "footprint", "per-set"] {
        let rows = rows(&format!("{ANY_TIER} --layout bfs --tier {tier}"));
        for level in rows[0]["levels"].as_array().unwrap() {
            assert!(number(level, "misses").is_finite());
            assert!(!level["reason"].as_str().unwrap().is_empty(), "{tier}");
            assert!(tier == "auto" || level["tier"] == tier, "{level}");
        }
    }
}

#[test]
fn first_operations_miss_more_than_later_ones() {
    let misses = |tier: &str, more: &str| {
        let line = format!("{ANY_TIER} --layout veb --tier {tier} {more}");
        number(&rows(&line)[0], "misses.L2")
    };
    for tier in ["footprint", "auto"] {
        let few = misses(tier, "--searches 10");
        let many = misses(tier, "--searches 10_000");
        let steady = misses(tier, "--steady");
        assert!(
            few > many && many >= steady,
            "{tier}: {few} {many} {steady}"
        );
    }
}

#[test]
fn values_can_be_separated_by_commas() {
    let text = answer(&format!(
        "{SMALL} --layout random,veb --machine thesis --csv"
    ));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0][0] == "layout" && lines[0].contains(&"misses_L2"));
    for line in &lines[1..] {
        assert_eq!(line.len(), lines[0].len());
        assert!(
            line[1..].iter().all(|number| number.parse::<f64>().is_ok()),
            "{line:?}"
        );
    }
}

#[test]
fn sweeps_are_drawn() {
    let file = TempFile::new("sweep.svg", "");
    let small = format!("{SMALL} --machine thesis --plot {}", file.path());
    let object = json(&format!("{small} --layout random,veb"));
    let rows = object["sweep"]["rows"].as_array().unwrap();
    // 1024 to 5000 nodes in steps of a factor of the root of two.
    assert_eq!(rows.len(), 2 * 6);
    assert_eq!(rows.last().unwrap()["at"].as_f64(), Some(5000.0));
    let svg = fs::read_to_string(&file.0).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
    assert!(svg.contains("L2 misses an operation"));
    let coloured = json(&format!("{small} --layout cluster --sweep coloured"));
    assert_eq!(coloured["sweep"]["over"], "colour_share");
    assert!(fs::read_to_string(&file.0).unwrap().contains("speedup"));
    assert_eq!(
        answer(&format!("{small} --layout veb --csv"))
            .lines()
            .count(),
        1 + 6
    );
    // A command that fails leaves no file behind, nor half of one.
    let folder = std::env::temp_dir().join(format!("ccmodel-plot-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let files = || fs::read_dir(&folder).unwrap().count();
    let plot = format!("{SMALL} --plot {}", folder.join("plot.svg").display());
    refusal(&format!("{plot} --layout given"));
    assert_eq!(files(), 0);
    answer(&format!("{plot} --layout dfs"));
    assert_eq!(files(), 1, "no temporary file is left");
    fs::remove_dir_all(&folder).unwrap();
}

/// Larger than the second cache of the thesis's machine.
const TREE: &str = "advise --shape random --nodes 100000 --node-bytes 32 --tier footprint \
                    --machine thesis";

#[test]
fn a_scattered_tree_is_worth_a_morph_if_enough_operations_follow() {
    let object = json(TREE);
    assert_eq!(object["worth_it"], true, "{object}");
    assert_eq!(object["now"]["layout"], "random");
    let saved = number(&object, "saved_ns");
    assert!((number(&object, "now.ns") - number(&object, "best.ns") - saved).abs() < 1e-6);
    let break_even = number(&object, "break_even_operations");
    assert!((break_even - number(&object, "morph_ns") / saved).abs() < 1e-6 * break_even);
    for other in object["others"].as_array().unwrap() {
        assert!(other["by"].is_string() || number(other, "ns") >= number(&object, "best.ns"));
    }
    let few = json(&format!(
        "{TREE} --operations {:.0}",
        (break_even / 2.0).floor()
    ));
    assert_eq!(few["worth_it"], false);
    assert!(few["verdict"].as_str().unwrap().contains("are to come"));
    let many = json(&format!(
        "{TREE} --operations {:.0}",
        (break_even * 3.0).ceil()
    ));
    assert_eq!(many["worth_it"], true);
    assert!(answer(TREE).contains("worth it if more than"));
}

#[test]
fn some_structures_are_left_alone() {
    let again = json(&format!("{TREE} --now cluster-veb"));
    assert_eq!(again["worth_it"], false, "{again}");
    let small = json("advise --nodes 300 --node-bytes 32 --machine zen4-desktop");
    assert_eq!(small["worth_it"], false, "{small}");
    assert!(small["reasons"].to_string().contains("L1 holds all of it"));
    // A list in the order of its links.
    let list = "advise --structure list --nodes 5000 --node-bytes 24 --operation walk";
    assert_eq!(
        json(&format!("{list} --now allocated --machine thesis"))["worth_it"],
        false
    );
    let array = json("advise --structure array --nodes 10000 --node-bytes 16 --machine thesis");
    assert_eq!(
        (&array["worth_it"], &array["best"]),
        (&false.into(), &Value::Null)
    );
    assert!(array["verdict"].as_str().unwrap().contains("no nodes"));
    let chains = answer("advise --structure hash:4 --nodes 50000");
    assert!(chains.contains("the only good order is that of the links"));
    assert!(
        chains.contains("dfs") && !chains.contains("hierarchical"),
        "{chains}"
    );
    // Misses are free.
    let mut machine = Machine::thesis();
    for level in &mut machine.levels {
        level.steps[0].step_ns = 0.0;
    }
    let file = TempFile::new("free-misses.json", &machine.to_json());
    let object =
        json(&format!("{TREE} --machine {}", file.path()).replace("--machine thesis ", ""));
    assert_eq!(object["worth_it"], false, "{object}");
    assert_eq!(object["break_even_operations"], Value::Null);
}

#[test]
fn walks_know_the_order_of_nodes() {
    // A machine that is known by its capacities alone.
    let mut flat = Machine::thesis();
    flat.hierarchy = None;
    let file = TempFile::new("capacities.json", &flat.to_json());
    let advise = format!(
        "advise --structure list --nodes 100000 --machine {}",
        file.path()
    );
    let object = json(&format!("{advise} --operation walk"));
    assert_eq!(object["worth_it"], true, "{object}");
    assert_eq!(object["best"]["layout"], "dfs");
    // Two nodes share a line, as `simulate` says of the same machine with its sets.
    let simulated = json(
        "simulate --structure list --nodes 100000 --operation walk --machine thesis \
         --layout random,dfs --operations 2",
    );
    for (row, layout) in [("now", 0), ("best", 1)] {
        let predicted = number(&object, &format!("{row}.misses.L2"));
        let counted = number(&simulated, &format!("rows.{layout}.misses.L2"));
        assert!(
            (predicted / counted - 1.0).abs() < 0.02,
            "{row}: {predicted} {counted}"
        );
    }
    // So do searches in one list, which end anywhere.
    assert_eq!(json(&advise)["worth_it"], true);
    // Where the model cannot know the order, it gives no verdict.
    let range = format!("{TREE} --operation range:5000");
    assert_eq!(json(&range)["worth_it"], Value::Null);
    let text = answer(&range);
    let verdict = text.lines().nth(1).unwrap();
    assert!(
        verdict.starts_with("cannot say: ") && verdict.contains("`model simulate`"),
        "{text}"
    );
}
