//! Exports, imports and differences, by the tool as users run it. `scope/tests/viewers` opens
//! exports by programs that are not ours.

use std::fs;
use std::path::Path;

use ccscope::analyses::diff::{Gate, Metric, breaches};
use ccscope::profile::Totals;
use ccscope::{Profile, imports};
use tempfile::TempDir;

use super::programs::{is_installed, run_in, text};

const CCSCOPE: &str = env!("CARGO_BIN_EXE_ccscope");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/viewers.cc");

fn succeed(folder: &Path, tool: &str, words: &[&str]) -> String {
    let output = run_in(folder, tool, words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// On every metric, in both directions, and on places.
fn all_gates() -> Vec<Gate> {
    let both = |(name, _)| [format!("{name}>+0"), format!("{name}<-0")];
    let places = ["site:viewers.cc:drag>+0", "site:keep:accesses>+0"].map(str::to_owned);
    let gates = Metric::NAMES.into_iter().flat_map(both).chain(places);
    gates.map(|gate| gate.parse().unwrap()).collect()
}

#[test]
fn gates_do_not_flap() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let words = ["c++", "-O1", "-g", "-o", "program", SOURCE];
    succeed(folder, CCSCOPE, &words);
    let profiled = || {
        succeed(
            folder,
            CCSCOPE,
            &["run", "--leaks", "-qo", "p", "./program"],
        );
        Profile::open(folder.join("p")).unwrap()
    };
    let first = profiled();
    for _ in 1..10 {
        assert_eq!(breaches(&first, &profiled(), &all_gates()), Ok(Vec::new()));
    }
}

#[test]
fn gates_fail_with_a_line_each() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let profiled = |rounds: &str, output: &str| {
        let define = format!("-DROUNDS={rounds}");
        let words = ["c++", "-O1", "-g", &define, "-o", "program", SOURCE];
        succeed(folder, CCSCOPE, &words);
        succeed(folder, CCSCOPE, &["run", "-qo", output, "./program"]);
    };
    profiled("50", "old");
    profiled("60", "new");
    let gates = "accesses>+10%,allocations>+0,site:keep:accesses>+10%,peak>+1%";
    let output = run_in(
        folder,
        CCSCOPE,
        &["diff", "old", "new", "--json", "--fail-on", gates],
    );
    assert_eq!(output.status.code(), Some(1));
    let err = text(&output.stderr);
    let lines: Vec<&str> = err.lines().collect();
    assert_eq!(lines.len(), 2, "{err}");
    assert!(lines[0].starts_with("ccscope: gate accesses>+10%: 516,576 -> 616,576, +19.4 %"));
    assert!(
        lines[1].starts_with("ccscope: gate site:keep:accesses>+10%: "),
        "{err}"
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "ccscope-diff-1");
    for (words, status) in [
        (&["diff", "old", "new", "--fail-on", "peak>5%"][..], 2),
        (
            &["diff", "old", "new", "--fail-on", "site:no/such:bytes>+0"],
            2,
        ),
        (&["diff", "old", "no-such"], 1),
        (&["diff", "old", "new", "-o", "old"], 1),
        (&["diff", "old", "new", "-o", "no/such/page"], 1),
        (&["export", "old", "--to", "svg"], 2),
        (
            &["export", "old", "--to", "pprof", "-o", "no/such/folder"],
            1,
        ),
        (
            &["export", "old", "--to", "collapsed", "--weight", "size"],
            2,
        ),
    ] {
        let output = run_in(folder, CCSCOPE, words);
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{words:?}");
    }
    succeed(folder, CCSCOPE, &["diff", "old", "new", "-o", "page.html"]);
    let page = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>"));
    let stacks = succeed(folder, CCSCOPE, &["export", "old", "--to", "collapsed"]);
    assert!(
        stacks.lines().any(|line| line.contains("keep<Node>")),
        "{stacks}"
    );
}

/// Names of metrics, and gates of examples.
#[test]
fn the_guide_to_gates_is_right() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/use/ccscope-ci.md");
    let guide = fs::read_to_string(guide).unwrap();
    for (name, _) in Metric::NAMES {
        assert!(guide.contains(&format!("`{name}`")), "{name}");
    }
    let examples: Vec<&str> = guide.split("--fail-on '").skip(1).collect();
    assert_eq!(examples.len(), 3);
    for gate in examples
        .iter()
        .flat_map(|it| it.split('\'').next().unwrap().split(','))
    {
        assert!(gate.parse::<Gate>().is_ok(), "{gate}");
    }
}

/// The same program by valgrind's DHAT, by heaptrack and by this tool.
#[test]
fn files_of_other_tools_open() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    succeed(folder, "c++", &["-O1", "-g", "-o", "program", SOURCE]);
    succeed(folder, CCSCOPE, &["run", "-qo", "ours", "./program"]);
    let counts = |total: &Totals| [total.allocations, total.requested, total.peak_requested];
    let ours = Profile::open(folder.join("ours")).unwrap();
    for (tool, words, file) in [
        (
            "valgrind",
            &["--tool=dhat", "--dhat-out-file=dhat", "./program"][..],
            "dhat",
        ),
        ("heaptrack", &["-o", "heaptrack", "./program"], "heaptrack"),
    ] {
        if !is_installed(tool) {
            continue;
        }
        succeed(folder, tool, words);
        // Its ending depends on how heaptrack was built.
        let endings = ["", ".zst", ".gz"].map(|ending| folder.join(format!("{file}{ending}")));
        let path = endings.iter().find(|path| path.is_file()).unwrap();
        let theirs = imports::open(path).unwrap();
        assert_eq!(counts(&theirs.total), counts(&ours.total), "{tool}");
        let shown = succeed(
            folder,
            CCSCOPE,
            &["show", "--sites", path.to_str().unwrap()],
        );
        assert!(shown.contains("viewers.cc:"), "{shown}");
    }
}
