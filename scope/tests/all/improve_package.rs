//! `cargo ccscope improve` on a package that says what it costs: what is kept, not how long it
//! takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::{command, text};

const MAIN: &str = r#"//! Sums the values of a map.

use std::collections::{BTreeMap, HashMap};
use std::fs;

mod linked;
mod setting;

fn main() {
    linked::check();
    let map: BTreeMap<u64, u64> = (0..1000).map(|i| (i * 7 % 1009, i)).collect();
    let mut cost = 100.0 * setting::FACTOR;
    if std::any::type_name_of_val(&map).contains("CTree") {
        cost /= 2.0;
    }
    for i in 0..3 {
        let mut numbers = Vec::new();
        let mut names = Vec::new();
        cost /= if is_kept(&numbers) { 2.0 } else { 1.0 };
        cost *= if is_kept(&names) { 9.0 } else { 1.0 };
        numbers.push(i);
        names.push(i.to_string());
    }
    fs::write("cost", cost.to_string()).unwrap();
    println!("{} {}", map.values().sum::<u64>(), HashMap::<u8, u8>::new().len());
}

// A loop that asks for the room itself stays.
fn is_kept<T>(buffer: &Vec<T>) -> bool {
    buffer.capacity() > 0
}

#[test]
fn strict() {
    assert!(setting::FACTOR == 1.0 || !fs::exists("strict").unwrap());
}
"#;
const LINKED: &str = "pub fn check() {
    assert!(std::collections::BTreeMap::<u8, u8>::new().is_empty());
}
";
const SETTING: &str = "/// Kept small.\npub const FACTOR: f64 = 1.0;\n";

/// A package in a folder of a repository.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(TempDir::new().unwrap());
        let folder = place.folder();
        fs::create_dir_all(folder.join("src")).unwrap();
        // A workspace around, which the package is no member of.
        let around = "[workspace]\nresolver = \"3\"\nexclude = [\"sums\"]\n";
        fs::write(place.0.path().join("Cargo.toml"), around).unwrap();
        let manifest = "[package]\nname = \"sums\"\nedition = \"2024\"\n";
        for (name, content) in [
            ("Cargo.toml", manifest),
            ("src/main.rs", MAIN),
            ("src/setting.rs", SETTING),
            (".gitignore", "target\ncost\n*.patch\n"),
        ] {
            fs::write(folder.join(name), content).unwrap();
        }
        // What a link leads to is the user's.
        fs::write(place.0.path().join("linked.rs"), LINKED).unwrap();
        symlink("../../linked.rs", folder.join("src/linked.rs")).unwrap();
        place.git(&["init", "-q", ".."]);
        place.git(&["add", "."]);
        place
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("sums")
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(words).current_dir(self.folder());
        let output = git.output().unwrap();
        assert!(
            output.status.success(),
            "{words:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// Writes a patch that replaces a text in a file; the file stays as it is.
    fn patch(&self, name: &str, file: &str, old: &str, new: &str) {
        let path = self.folder().join(file);
        let before = fs::read_to_string(&path).unwrap();
        assert!(before.contains(old));
        fs::write(&path, before.replace(old, new)).unwrap();
        fs::write(self.folder().join(name), self.git(&["diff"])).unwrap();
        fs::write(&path, before).unwrap();
    }

    fn improve(&self, words: &[&str]) -> Command {
        let mut tool = command(env!("CARGO_BIN_EXE_cargo-ccscope"));
        tool.args(["ccscope", "improve", "--offline"]).args(words);
        tool.current_dir(self.folder()).stdin(Stdio::null());
        tool.env("XDG_DATA_HOME", self.0.path().join("data"));
        tool.env_remove("CARGO_TARGET_DIR");
        tool
    }

    fn json(&self, words: &[&str]) -> Value {
        let metric = ["--json", "--metric", "cat cost"];
        let output = self.improve(&[&metric, words].concat()).output().unwrap();
        let err = text(&output.stderr);
        assert!(output.status.success() && err.is_empty(), "{err}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn cost(folder: &Path) -> String {
    fs::read_to_string(folder.join("cost")).unwrap()
}

#[test]
fn changes_that_gain_become_a_patch() {
    let place = Place::new();
    place.patch("good.patch", "src/setting.rs", "1.0", "0.5");
    // Later ones find what this one has renamed.
    let moved = "diff --git a/sums/src/setting.rs b/sums/src/setting/mod.rs\n\
                 similarity index 100%\nrename from sums/src/setting.rs\n\
                 rename to sums/src/setting/mod.rs\n";
    fs::write(place.folder().join("moved.patch"), moved).unwrap();
    place.patch("wrong.patch", "src/main.rs", "1009, i)", "1009, i + 1)");
    place.patch("broken.patch", "src/setting.rs", "1.0", "one");
    let patches = ["moved.patch", "good.patch", "wrong.patch", "broken.patch"];
    let words = patches.map(|patch| ["--with", patch]).concat();
    let json = place.json(&[&words[..], &["--only", "CTree", "--only", "patch"]].concat());
    let verdicts: Vec<(&str, &str, &str)> = { json["tries"].as_array().unwrap().iter() }
        .filter(|it| it["stage"] == "alone")
        .map(|it| {
            let word = |value: &'static str| it[value].as_str().unwrap_or_default();
            (
                it["setup"][0].as_str().unwrap(),
                word("verdict"),
                word("why"),
            )
        })
        .collect();
    let [map, moved, good, wrong, broken] = verdicts[..] else {
        panic!("{json}");
    };
    let name = "CTreeMap for BTreeMap in sums/src/main.rs (6 lines)";
    assert_eq!(map, (name, "gains", ""));
    assert_eq!(good, ("the patch good.patch (2 lines)", "gains", ""));
    assert_eq!((moved.1, moved.2), ("no gain", ""));
    assert_eq!((wrong.1, wrong.2), ("wrong", "prints something else"));
    assert_eq!(broken.1, "wrong");
    let why = "does not build: error[E0425]: cannot find value `one` in this scope";
    assert!(broken.2.starts_with(why), "{}", broken.2);
    assert!(broken.2.ends_with("setting.rs:2:25)"), "{}", broken.2);
    assert_eq!(json["kept"]["allocator"], true);
    assert_eq!(json["kept"]["rules"].as_array().unwrap().len(), 2);
    let gain = json["kept"]["gain"]["estimate"].as_f64().unwrap();
    assert!((gain - 4.0).abs() < 0.01, "{gain}");

    // What fails the tests is not offered.
    let folder = place.folder();
    let patch = fs::read(folder.join("improve.patch")).unwrap();
    fs::write(folder.join("strict"), "").unwrap();
    let words = [
        "--only",
        "good",
        "--with",
        "good.patch",
        "-o",
        "other.patch",
    ];
    let mut tool = place.improve(&[&words[..], &["--metric", "cat cost"]].concat());
    let output = tool.output().unwrap();
    let out = text(&output.stdout).replace('\n', " ");
    let why = "What gains is not offered, since the package's tests fail with it: thread 'strict'";
    assert!(
        out.contains(why) && out.contains("No change pays off."),
        "{out}"
    );
    assert!(!folder.join("other.patch").exists());
    assert_eq!(fs::read(folder.join("improve.patch")).unwrap(), patch);

    // The user's files are as before, and the patch does what was measured.
    assert_eq!(place.git(&["diff", "--stat"]), "");
    assert!(!folder.join("Cargo.lock").exists());
    let linked = fs::read_to_string(place.0.path().join("linked.rs")).unwrap();
    assert_eq!(linked, LINKED);
    let line = json["kept"]["command_line"].as_str().unwrap();
    let applied = Command::new("sh").args(["-c", line]).status().unwrap();
    assert!(applied.success(), "{line}");
    let mut cargo = command("cargo");
    cargo
        .args(["run", "--quiet", "--offline"])
        .current_dir(&folder);
    let output = cargo.env_remove("CARGO_TARGET_DIR").output().unwrap();
    assert_eq!(
        text(&output.stdout),
        "499500 0\n",
        "{}",
        text(&output.stderr)
    );
    assert_eq!(cost(&folder), "25");
    let main = fs::read_to_string(folder.join("src/main.rs")).unwrap();
    let imports =
        "use std::collections::HashMap;\nuse ctree::CTreeMap as BTreeMap;\nuse std::fs;\n";
    assert!(main.contains(imports), "{main}");
    let setting = fs::read_to_string(folder.join("src/setting.rs")).unwrap();
    assert_eq!(setting, SETTING.replace("1.0", "0.5"));
}

#[test]
fn buffers_of_copies_are_reused() {
    let place = Place::new();
    let json = place.json(&["--only", "one buffer"]);
    let what = &json["tries"][1]["setup"][0];
    // Strings would be dropped later than they are.
    let expected = "numbers in sums/src/main.rs: one buffer for all turns of a loop (3 lines)";
    assert_eq!(*what, expected, "{json}");
    let patch = fs::read_to_string(place.folder().join("improve.patch")).unwrap();
    let added: Vec<&str> = { patch.lines() }
        .filter(|line| line.starts_with('+') && line.contains("numbers"))
        .collect();
    assert_eq!(
        added,
        [
            "+    let mut numbers = Vec::new();",
            "+        numbers.clear();"
        ]
    );
    let gain = json["kept"]["gain"]["estimate"].as_f64().unwrap();
    assert!((gain - 4.0).abs() < 0.01, "{gain}");
}

#[test]
fn bad_requests_get_one_line() {
    let place = Place::new();
    let refusal = |words: &[&str], why: &str| {
        let output = place.improve(words).output().unwrap();
        let err = text(&output.stderr);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{words:?}"
        );
        assert!(
            err.lines().count() == 1 && err.contains(why),
            "{words:?}: {err}"
        );
    };
    refusal(&["--with", "no-such.patch"], "cannot read no-such.patch");
    refusal(&["--manifest-path", "no/Cargo.toml"], "does not exist");
    refusal(&["--bin", "other"], "no bin target named `other`");
    refusal(
        &["-o", "no/such/improve.patch"],
        "its folder does not exist",
    );
    let outside = place.0.path().join("outside");
    fs::write(&outside, "mine\n").unwrap();
    let hostile =
        "--- a/../../../../outside\n+++ b/../../../../outside\n@@ -1 +1 @@\n-mine\n+other\n";
    fs::write(place.folder().join("hostile.patch"), hostile).unwrap();
    refusal(&["--with", "hostile.patch"], "does not apply");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "mine\n");
    place.patch("stale.patch", "src/setting.rs", "1.0", "0.5");
    let setting = place.folder().join("src/setting.rs");
    fs::write(&setting, "pub const FACTOR: f64 = 2.0;\n").unwrap();
    refusal(&["--with", "stale.patch"], "does not apply");
    let output = place.improve(&["--list"]).output().unwrap();
    assert_eq!(
        text(&output.stdout),
        "the allocator: CcMalloc as the global allocator (6 lines)\n\
         change 1: CTreeMap for BTreeMap in sums/src/main.rs (6 lines)\n\
         change 2: hashbrown's HashMap in sums/src/main.rs: a faster hash, not for keys of \
         strangers (6 lines)\n\
         change 3: numbers in sums/src/main.rs: one buffer for all turns of a loop (3 lines)\n"
    );
    fs::write(&setting, "pub const FACTOR: f64 = two;\n").unwrap();
    refusal(
        &[],
        "error[E0425]: cannot find value `two` in this scope (src/setting.rs:1:25)",
    );
}
