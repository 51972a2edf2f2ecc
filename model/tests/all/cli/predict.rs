//! `model predict` and `model advise`.

use std::fs;

use ccmodel::Machine;
use serde_json::Value;

use super::{ANY_TIER, SMALL, TempFile, answer, json, number, refusal};

/// The rows of a prediction.
fn rows(line: &str) -> Vec<Value> {
    json(line)["rows"].as_array().unwrap().clone()
}

/// A number of the first row of a prediction.
fn first(line: &str, path: &str) -> f64 {
    number(&rows(line)[0], path)
}

/// A number of a small prediction on the thesis's machine.
fn small(more: &str, path: &str) -> f64 {
    first(&format!("{SMALL} --machine thesis {more}"), path)
}

/// The file of the thesis's machine with free misses.
fn free_misses(change: impl Fn(&mut Machine)) -> TempFile {
    let mut machine = Machine::thesis();
    for level in &mut machine.levels {
        level.steps[0].step_ns = 0.0;
    }
    change(&mut machine);
    TempFile::new(&machine.to_json())
}

/// Whether two numbers differ by no more than a share.
fn close(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() <= share
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
    let free = free_misses(|machine| {
        let search = &mut machine.search;
        (search.operation_ns, search.node_ns) = (0.0, 0.0);
        (search.misprediction_ns, search.branch_free_node_ns) = (0.0, 0.0);
    });
    for row in rows(&format!("{SMALL} --machine {}", free.path())) {
        assert!(number(&row, "ns").abs() < 1e-12 && close(number(&row, "speedup"), 1.0, 1e-12));
    }
}

#[test]
fn texts_say_what_matters() {
    let text = answer(&format!(
        "{SMALL} --shape random --pages 2m --machine thesis"
    ));
    for line in ["random ", "bfs ", "hierarchical ", "L1: footprint"] {
        assert!(text.contains(&format!("\n{line}")), "{line}: {text}");
    }
    let usual = "predict --nodes 65535 --node-bytes 32 --machine zen4-desktop --frames identity";
    assert!(answer(&format!("{usual} --layout dfs")).contains("powers of two"));
    let text = answer(&format!("{usual} --layout veb"));
    assert!(!text.contains("powers of two"), "{text}");
    assert!(!text.contains("can hold"), "{text}");
    // All lines are missed.
    let text = answer("predict --nodes 1 --node-bytes 20_000 --machine thesis --tier footprint");
    assert!(text.contains("of what L1 can hold"), "{text}");
    assert!(text.contains(" 1250 "), "{text}");
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
        let few = format!("predict --nodes 500000 --layout {layout} --machine zen4-server --tier");
        let ns = |tier: &str| first(&format!("{few} {tier}"), "ns");
        assert!(close(ns("closed"), ns("per-set"), 0.06), "{layout}");
    }
}

#[test]
fn every_structure_can_be_asked_about() {
    let structures = "bst veb, nary:5 bfs, quadtree hierarchical, octree cluster, btree random, \
                      list allocated, dlist random, hash hinted, hash:0.5 dfs, array random, \
                      eytzinger random";
    for structure in structures.split(", ") {
        for shape in ["complete", "random"] {
            let structure = structure.replace(' ', " --layout ");
            let line = format!("predict --structure {structure} --shape {shape} --nodes 400");
            let line = format!("{line} --node-bytes 48 --machine thesis --tier footprint");
            assert!(first(&line, "ns") > 0.0, "{line}");
        }
    }
}

#[test]
fn every_operation_and_distribution_can_be_asked_about() {
    let visited = |operation: &str| {
        let more = format!("--layout dfs --operation {operation}");
        small(&more, "nodes_visited")
    };
    assert!(visited("search") < visited("miss") && visited("search") < visited("range:50"));
    assert!(visited("range:50") < visited("walk"));
    assert!((visited("insert") - visited("miss")).abs() < 1e-9);
    assert!((visited("walk") - 5000.0).abs() < 1e-6);
    let ns = |keys: &str| small(&format!("--layout random --keys {keys}"), "ns");
    let uniform = ns("uniform");
    assert!(ns("zipf:1.2") < ns("zipf:0.8") && ns("zipf:0.8") < uniform);
    assert!(ns("hot:0.01:0.9") < uniform);
    assert!(close(ns("zipf:0"), uniform, 1e-6));
    let trace = TempFile::new("# a trace\n7\n7\n7\n4999\n");
    assert!(ns(&format!("trace:{}", trace.path())) < 0.5 * uniform);
    // With branches, what was begun on a wrong guess is thrown away: it may gain nothing.
    let ns = |more: &str| {
        let line = "predict --nodes 200000 --node-bytes 32 --layout random --tier footprint";
        first(&format!("{line} {more}"), "ns")
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
    let ns = |row: usize| number(&rows[row], "ns");
    // Hints help, and so does doing without links.
    assert!(ns(2) < ns(0) && ns(6) < ns(0));
    // Segments of 64 KiB end with what is left of them.
    assert!((120_000.0..120_064.0).contains(&number(&rows[1], "span_bytes")));
    assert_eq!(rows[6]["span_bytes"], 5000 * 8);
}

#[test]
fn edges_of_a_file_are_a_structure() {
    let edge = |v: u32| format!("n{},n{v}\n", (v - 1) / 2);
    let edges: String = (1..2000).map(edge).collect();
    let file = TempFile::new(&format!("parent,child\n{edges}"));
    let rest = "--node-bytes 24 --layout veb --machine thesis --tier footprint";
    let misses = |of: &str| first(&format!("predict {of} {rest}"), "misses.L1");
    let own = misses(&format!("--structure edges:{}", file.path()));
    assert!((own - misses("--nodes 2000")).abs() < 1e-9, "the same tree");
    let placed = TempFile::new("a,b,0x1000\n,a,0x2000\na,c,0x3000\n");
    let given = "--node-bytes 24 --layout given --machine thesis";
    let given = rows(&format!(
        "predict {given} --structure edges:{}",
        placed.path()
    ));
    assert_eq!(given[0]["span_bytes"], 0x2000 + 24);
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
    for tier in ["footprint", "auto"] {
        let line = format!("{ANY_TIER} --layout veb --tier {tier}");
        let misses = |more: &str| first(&format!("{line} {more}"), "misses.L2");
        let [few, many, steady] = ["--searches 10", "--searches 10_000", "--steady"].map(misses);
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
        let mut numbers = line[1..].iter().map(|number| number.parse::<f64>());
        assert!(numbers.all(|number| number.is_ok()), "{line:?}");
    }
}

#[test]
fn sweeps_are_drawn() {
    let file = TempFile::new("");
    let small = format!("{SMALL} --machine thesis --plot {}", file.path());
    let object = json(&format!("{small} --layout random,veb"));
    let rows = object["sweep"]["rows"].as_array().unwrap();
    // 1024 to 5000 nodes in steps of a factor of the root of two.
    assert_eq!(rows.len(), 2 * 6);
    assert_eq!(rows.last().unwrap()["at"].as_f64(), Some(5000.0));
    let svg = fs::read_to_string(file.path()).unwrap();
    assert!(svg.starts_with("<svg") && !svg.contains("NaN"));
    assert!(svg.contains("L2 misses an operation"));
    let coloured = json(&format!("{small} --layout cluster --sweep coloured"));
    assert_eq!(coloured["sweep"]["over"], "colour_share");
    assert!(fs::read_to_string(file.path()).unwrap().contains("speedup"));
    let csv = answer(&format!("{small} --layout veb --csv"));
    assert_eq!(csv.lines().count(), 1 + 6);
    // A command that fails leaves no file behind, nor half of one.
    let folder = tempfile::tempdir().unwrap();
    let files = || fs::read_dir(folder.path()).unwrap().count();
    let plot = format!("{SMALL} --plot {}/plot.svg", folder.path().display());
    refusal(&format!("{plot} --layout given"));
    assert_eq!(files(), 0);
    answer(&format!("{plot} --layout dfs"));
    assert_eq!(files(), 1, "no temporary file is left");
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
    for (operations, worth_it, text) in [
        ((break_even / 2.0).floor(), false, "are to come"),
        ((break_even * 3.0).ceil(), true, "`; saves"),
    ] {
        let object = json(&format!("{TREE} --operations {operations:.0}"));
        assert_eq!(object["worth_it"], worth_it);
        let verdict = object["verdict"].as_str().unwrap();
        assert!(verdict.contains(text), "{verdict}");
    }
    assert!(answer(TREE).contains("; pays off after "));
}

#[test]
fn some_structures_are_left_alone() {
    let free = free_misses(|_| ());
    // The list is in the order of its links.
    let cases = "
        TREE --now cluster-veb                                    | no layout is predicted
        TREE --now veb                                            | predictions err by
        FREE                                                      | no layout is predicted
        advise --structure array --nodes 10000 --machine thesis   | no nodes
        advise --nodes 300 --node-bytes 32 --machine zen4-desktop |
        advise --structure list --nodes 5000 --operation walk --now allocated --machine thesis |
    ";
    for case in cases.trim().lines() {
        let (line, text) = case.split_once('|').unwrap();
        let on_free = TREE.replace("thesis", free.path());
        let object = json(&line.replace("TREE", TREE).replace("FREE", &on_free));
        let verdict = object["verdict"].as_str().unwrap();
        assert_eq!(object["worth_it"], false, "{line}: {verdict}");
        assert!(verdict.contains(text.trim()), "{line}: {verdict}");
        if object["best"].is_null() || number(&object, "saved_ns") <= 0.0 {
            assert!(object["break_even_operations"].is_null(), "{line}");
        }
    }
    let small = answer("advise --nodes 300 --node-bytes 32 --machine zen4-desktop");
    assert!(small.contains("L1 holds all of it"), "{small}");
    let chains = answer("advise --structure hash:4 --nodes 50000");
    assert!(chains.contains("the only good order"), "{chains}");
    assert!(chains.contains("dfs"), "{chains}");
    assert!(!chains.contains("hierarchical"), "{chains}");
}

#[test]
fn walks_know_the_order_of_nodes() {
    // A machine that is known by its capacities alone.
    let mut flat = Machine::thesis();
    flat.hierarchy = None;
    let file = TempFile::new(&flat.to_json());
    let list = "--structure list --nodes 100000";
    let advise = format!("advise {list} --machine {}", file.path());
    let object = json(&format!("{advise} --operation walk"));
    assert_eq!(object["worth_it"], true, "{object}");
    assert_eq!(object["best"]["layout"], "dfs");
    // Two nodes share a line, as `simulate` says of the same machine with its sets.
    let walks = "--operation walk --machine thesis --layout random,dfs --operations 2";
    let simulated = json(&format!("simulate {list} {walks}"));
    for (row, layout) in [("now", 0), ("best", 1)] {
        let predicted = number(&object, &format!("{row}.misses.L2"));
        let counted = number(&simulated, &format!("rows.{layout}.misses.L2"));
        assert!(close(predicted, counted, 0.02), "{row}");
    }
    // So do searches in one list, which end anywhere.
    assert_eq!(json(&advise)["worth_it"], true);
    // Where the model cannot know the order, it gives no verdict.
    let range = format!("{TREE} --operation range:5000");
    assert_eq!(json(&range)["worth_it"], Value::Null);
    let text = answer(&range);
    let verdict = text.lines().nth(1).unwrap();
    assert!(verdict.starts_with("cannot say: "), "{text}");
    assert!(verdict.contains("`model simulate`"), "{text}");
}
