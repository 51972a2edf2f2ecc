//! `ccscope improve` with a library that says what each rule costs: what is kept, not how long it
//! takes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::{CCSCOPE, command, compile, text};

const COST: &[&str] = &["--metric", "cat cost"];

/// A folder with the program and the library.
struct Place {
    folder: TempDir,
    program: PathBuf,
    library: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        let program = compile(path, &["cc", "-O1"], "fake-program.c", &[]);
        let shared = ["-shared", "-fPIC"];
        let library = compile(path, &["cc", "-O1"], "fake-allocator.c", &shared);
        Place {
            program,
            library,
            folder,
        }
    }

    /// `ccscope improve` with these options, and the program with these words.
    fn improve(&self, options: &[&str], words: &[&str]) -> Command {
        let mut tool = command(CCSCOPE);
        tool.arg("improve").arg("--allocator").arg(&self.library);
        tool.args(options).arg(&self.program).args(words);
        tool.current_dir(self.folder.path()).stdin(Stdio::null());
        tool.env("XDG_DATA_HOME", self.folder.path().join("data"));
        tool
    }

    /// What it prints as JSON; it must succeed.
    fn json(&self, options: &[&str], words: &[&str]) -> Value {
        let options = [&["--json"], options].concat();
        parsed(&self.improve(&options, words).output().unwrap())
    }

    fn rules(&self) -> Option<String> {
        fs::read_to_string(self.folder.path().join("fake-program-c.ccrules")).ok()
    }

    fn runs(&self) -> usize {
        let runs = fs::read_to_string(self.folder.path().join("runs")).unwrap();
        runs.lines().count()
    }
}

fn parsed(output: &Output) -> Value {
    let err = text(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The first verdict on a rule alone, and why.
fn verdict(json: &Value, rule: &str) -> (String, String) {
    let tries = json["tries"].as_array().unwrap();
    let of =
        |it: &&Value| it["stage"] == "alone" && it["setup"][0].as_str().unwrap().starts_with(rule);
    let found = tries
        .iter()
        .find(of)
        .unwrap_or_else(|| panic!("{rule}: {json}"));
    let word = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (word("verdict"), word("why"))
}

fn kept(json: &Value) -> Vec<&str> {
    let rules = json["kept"]["rules"].as_array().unwrap();
    rules.iter().map(|rule| rule.as_str().unwrap()).collect()
}

#[test]
fn rules_that_gain_are_kept_and_others_refused() {
    let place = Place::new();
    let json = place.json(COST, &["a b", "it's"]);
    assert_eq!(json["schema"], "ccscope-improve-1");
    assert_eq!(kept(&json), ["+10 size 16 near rbx", "+70 size 16 last"]);
    assert_eq!(
        (&json["kept"]["confirmed"], &json["ended"]),
        (&true.into(), &Value::Null)
    );
    // 100 / (90 / 2 * 0.8)
    let gain = &json["kept"]["gain"]["estimate"].as_f64().unwrap();
    assert!((gain - 2.78).abs() < 0.01, "{gain}");
    for (rule, word, why) in [
        ("+10", "gains", ""),
        ("+20", "loses", ""),
        ("+30", "wrong", "ends with SIGSEGV instead of exit status 0"),
        ("+40", "wrong", "prints something else"),
        ("+50", "memory", ""),
        ("+60", "no gain", ""),
        ("+70", "gains", ""),
    ] {
        assert_eq!(
            verdict(&json, rule),
            (word.to_owned(), why.to_owned()),
            "{rule}"
        );
    }
    let rules = place.rules().unwrap();
    let lines: Vec<&str> = rules
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let module = "module fake-program build-id 0102 /no/such/fake-program";
    let expected = [
        "ccmalloc rules 1",
        module,
        "+10 size 16 near rbx",
        "+70 size 16 last",
    ];
    assert_eq!(lines, expected);
    assert!(rules.contains("# 2.00 times as"), "{rules}");
    // The command line that it gives runs the program with the rules.
    let line = json["kept"]["command_line"].as_str().unwrap();
    assert!(line.ends_with(" 'a b' 'it'\\''s'"), "{line}");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .current_dir(place.folder.path())
        .stdin(Stdio::null());
    assert!(shell.status().unwrap().success());
    let cost = fs::read_to_string(place.folder.path().join("cost")).unwrap();
    assert_eq!(cost, "36\n");
    // What was tried is kept.
    let log = fs::read_to_string(place.folder.path().join("data/ccscope/tries.jsonl")).unwrap();
    let entries: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries.len(), json["tries"].as_array().unwrap().len());
    assert_eq!(entries[1]["features"][0]["alive_bytes"], 7000);
    assert!(!log.contains("it's"), "arguments may be secrets");
}

#[test]
fn more_memory_may_be_allowed() {
    let place = Place::new();
    let json = place.json(&[COST, &["--memory", "500"]].concat(), &[]);
    assert_eq!(kept(&json)[0], "+50 size 16 near r15");
}

#[test]
fn the_table_fits_and_says_how_to_run() {
    let place = Place::new();
    let options = [
        COST,
        &["--width", "70", "-o", "kept here.rules", "--no-log"],
    ]
    .concat();
    let output = place.improve(&options, &[]).output().unwrap();
    let out = text(&output.stdout);
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        text(&output.stderr)
    );
    assert!(out.starts_with("gain"), "{out}");
    assert!(out.contains("rule 1: +10 size 16 near rbx"), "{out}");
    assert!(
        out.contains("2 of 7 rules are kept, in kept here.rules."),
        "{out}"
    );
    let (command, table): (Vec<&str>, _) = out.lines().partition(|line| line.starts_with("    CC"));
    assert!(
        command[0].contains("kept here.rules' LD_PRELOAD="),
        "{command:?}"
    );
    assert!(table.iter().all(|line| line.chars().count() <= 70), "{out}");
    assert!(place.folder.path().join("kept here.rules").exists());
    assert!(!place.folder.path().join("data").exists());
}

#[test]
fn the_allocator_alone_may_be_kept_or_nothing() {
    let place = Place::new();
    let file = place.folder.path().join("given");
    let rules = "ccmalloc rules 1\nmodule a build-id 01\n+20 size 16 near rbx # by hand\n";
    fs::write(&file, rules).unwrap();
    let options = [COST, &["--rules", "given"]].concat();
    let json = place.json(&options, &[]);
    assert_eq!(
        (kept(&json).len(), &json["kept"]["allocator"]),
        (0, &true.into())
    );
    let line = json["kept"]["command_line"].as_str().unwrap();
    assert!(line.starts_with("LD_PRELOAD="), "{line}");
    assert!(place.rules().is_none());
    // Where the allocator loses, nothing is left.
    let mut tool = place.improve(&options, &[]);
    let output = tool.env("FAKE_BASE", "110").output().unwrap();
    let out = text(&output.stdout);
    assert!(
        output.status.success() && out.contains("\nNo change pays off.\n"),
        "{out}"
    );
    assert!(out.contains("loses"), "{out}");
    // A rule is kept all the same if it wins against the program as it is.
    let mut tool = place.improve(&[COST, &["--json"]].concat(), &[]);
    let json = parsed(&tool.env("FAKE_BASE", "110").output().unwrap());
    assert_eq!(json["tries"][0]["verdict"], "loses");
    assert_eq!(kept(&json), ["+10 size 16 near rbx", "+70 size 16 last"]);
}

#[test]
fn input_is_replayed_and_the_wall_clock_is_the_default() {
    let place = Place::new();
    let mut tool = place.improve(&["--json", "--check", "grep -q hello"], &["wait"]);
    tool.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = tool.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let json = parsed(&child.wait_with_output().unwrap());
    assert!(kept(&json).contains(&"+10 size 16 near rbx"), "{json}");
    assert!(
        json["kept"]["command_line"]
            .as_str()
            .unwrap()
            .ends_with(" wait < INPUT")
    );
}

#[test]
fn output_that_differs_each_time_is_not_compared() {
    let place = Place::new();
    let json = place.json(COST, &["clock"]);
    assert_eq!(json["steady_output"], false);
    assert_eq!(verdict(&json, "+40").0, "no gain");
    assert_eq!(verdict(&json, "+30").0, "wrong");
    let options = [COST, &["--check", "! grep -q other"]].concat();
    let json = place.json(&options, &["clock"]);
    let refused = (
        "wrong".to_owned(),
        "fails the check: exit status 1".to_owned(),
    );
    assert_eq!(verdict(&json, "+40"), refused);
    // A status that is not 0 is as good as another, if it stays the same.
    let options = [COST, &["--json"]].concat();
    let output = place.improve(&options, &["fail"]).output().unwrap();
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kept(&json).len(), 2);
    let err = text(&output.stderr);
    let said = "ccscope: as it is, the program ends with exit status 7 each time\n";
    assert_eq!(err, said);
}

#[test]
fn servers_are_driven() {
    let place = Place::new();
    let options = [
        &["--ready", "test -e ready", "--drive", "rm ready; cat cost"][..],
        &["--metric", "cat", "--json"],
    ]
    .concat();
    // It ends by SIGTERM, and prints nothing that counts. Rule 40 writes to its output.
    let json = parsed(&place.improve(&options, &["serve"]).output().unwrap());
    assert_eq!(kept(&json), ["+10 size 16 near rbx", "+70 size 16 last"]);
    assert_eq!(verdict(&json, "+30").1, "ends before it is ready");
    let options = ["--drive", "exit 3", "--ready", "test -e ready"];
    let output = place.improve(&options, &["serve"]).output().unwrap();
    let err = text(&output.stderr);
    assert!(
        err.contains("the program as it is fails its load: exit status 3"),
        "{err}"
    );
}

#[test]
fn the_budget_holds() {
    let place = Place::new();
    let json = place.json(&[COST, &["--budget", "1s"]].concat(), &["wait"]);
    assert_eq!(json["ended"], "budget");
    // A run takes at least 36 ms; other machines take longer.
    assert!(place.runs() <= 30, "{}", place.runs());
    let (word, why) = verdict(&json, "+70");
    assert_eq!((&*word, &*why), ("not tried", "the budget ran out"));
}

#[test]
fn higher_figures_may_be_better() {
    let place = Place::new();
    let options = [COST, &["--higher-is-better"]].concat();
    let json = place.json(&options, &[]);
    assert_eq!(verdict(&json, "+20").0, "gains");
    assert_eq!(verdict(&json, "+10").0, "loses");
    assert_eq!(kept(&json), ["+20 size 16 near r12"]);
}

#[test]
fn an_interrupt_prints_what_is_known() {
    let place = Place::new();
    let mut tool = place.improve(COST, &["hang"]);
    let tool = tool
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let runs = place.folder.path().join("runs");
    // Of two as it is, one that learns, and three pairs; the next one does not end.
    while !fs::read_to_string(&runs).is_ok_and(|text| text.lines().count() > 10) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // Shells let what runs in the background ignore SIGINT.
    let kill = Command::new("kill")
        .args(["-TERM", &tool.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = tool.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), &*text(&output.stderr)),
        (Some(130), "")
    );
    let out = text(&output.stdout);
    assert!(
        out.contains("Interrupted: the rest was not tried."),
        "{out}"
    );
    assert!(
        out.contains("allocator, over the program as it is"),
        "{out}"
    );
}

#[test]
fn it_says_why_nothing_was_tried() {
    let place = Place::new();
    let said = |change: fn(&mut Command)| {
        let mut tool = place.improve(COST, &[]);
        change(&mut tool);
        let output = tool.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).replace('\n', " ")
    };
    let out = said(|tool| {
        tool.env("FAKE_ALLOCATIONS", "12");
    });
    let few = "12 allocations of the program reach malloc: there is nothing to place.";
    assert!(
        out.contains(few) && out.contains("No change pays off."),
        "{out}"
    );
    assert!(!out.contains("gain"), "{out}");
    let out = said(|tool| {
        tool.env("FAKE_REFUSED", "1").env("FAKE_BASE", "100");
    });
    let why = "No rule was found: +58 size 16, no place is linked often enough.";
    assert!(
        out.contains(why) && out.contains("No change pays off."),
        "{out}"
    );
    // The runs: as it is, learning, and the allocator's comparison.
    assert!(
        out.contains("allocator, over the program as it is"),
        "{out}"
    );
}

#[test]
fn rules_of_another_build_are_left_out() {
    let place = Place::new();
    let file = place.folder.path().join("given");
    let known = "module fake-program build-id 0102\n+10 size 16 near rbx\n";
    let other = "module other build-id 0103\n+10 size 16 near rbx\n";
    fs::write(&file, format!("ccmalloc rules 1\n{known}{other}")).unwrap();
    let options = [COST, &["--json", "--rules", "given"]].concat();
    let output = place.improve(&options, &[]).output().unwrap();
    let said = "rules of other: left out, no module with build id 0103 is loaded";
    assert_eq!(text(&output.stderr), format!("ccscope: {said}\n"));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(kept(&json), ["+10 size 16 near rbx"]);
    assert!(place.rules().unwrap().contains("build-id 0102"));
}

#[test]
fn programs_out_of_reach_are_refused() {
    let place = Place::new();
    let refusal = |options: &[&str], code, change: fn(&mut Command)| {
        let mut tool = place.improve(options, &[]);
        change(&mut tool);
        let output = tool.output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(
            (output.status.code(), err.lines().count()),
            (Some(code), 1),
            "{err}"
        );
        assert!(output.stdout.is_empty());
        err
    };
    for (options, code, why) in [
        (&["--metric", "echo x"][..], 1, "gives no number above 0"),
        (
            &["--check", "false"],
            1,
            "the program as it is fails the check",
        ),
        (&["--rules", "cost"], 1, "cost is no file of rules"),
        (&["--rules", "no-such"], 1, "cannot read no-such"),
        (&["-o", "no/such/folder"], 1, "its folder does not exist"),
        (&["--budget", "soon"], 2, "not a time"),
        (&["--memory", "0.5"], 2, "not a number from 1 on"),
        (&["--higher-is-better"], 2, "is for a --metric"),
        (&["--ready", "true"], 2, "--drive"),
    ] {
        let err = refusal(options, code, |_| ());
        assert!(err.contains(why), "{options:?}: {err}");
    }
    let fixed = compile(place.folder.path(), &["cc"], "ends.c", &["-static"]);
    let mut tool = command(CCSCOPE);
    let output = tool.arg("improve").arg(&fixed).output().unwrap();
    let err = text(&output.stderr);
    assert!(err.contains("do not reach malloc"), "{err}");
    let mut tool = place.improve(&["--allocator", "no.so"], &[]);
    let output = tool.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
