//! The quickstart as its user meets it: as a process, with good input and bad.

mod common;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::example_program;

use serde_json::Value;

const LAYOUTS: [&str; 5] = ["malloc", "hinted", "morphed", "ctree", "btreemap"];

fn quickstart<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(example_program("quickstart"))
        .args(arguments)
        .output()
        .unwrap()
}

/// A file in a folder of this test's own, gone with it.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, content: &[u8]) -> Self {
        let folder =
            std::env::temp_dir().join(format!("quickstart-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("text");
        std::fs::write(&path, content).unwrap();
        TempFile(path)
    }

    fn folder(&self) -> &Path {
        self.0.parent().unwrap()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Left behind at worst; a failing test must still say why it failed.
        if let Err(error) = std::fs::remove_dir_all(self.folder()) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}

/// A run that must succeed, with `--json`; its object.
fn json_of(arguments: &[&OsStr]) -> Value {
    let output = quickstart(
        [
            OsStr::new("--json"),
            OsStr::new("--lookups"),
            OsStr::new("2000"),
        ]
        .iter()
        .chain(arguments),
    );
    let (stdout, stderr) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    assert_eq!(stderr, "", "{arguments:?}");
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    serde_json::from_str(&stdout).unwrap()
}

/// A machine description, so that tests do not measure one each.
fn machine_file() -> TempFile {
    let machine = ccmodel::Machine::this();
    TempFile::new(
        &format!("machine-{:?}", std::thread::current().id()),
        machine.to_json().as_bytes(),
    )
}

fn assert_rows(object: &Value, nodes: u64) {
    let rows = object["rows"].as_array().unwrap();
    assert_eq!(
        rows.iter()
            .map(|row| row["layout"].as_str().unwrap())
            .collect::<Vec<_>>(),
        LAYOUTS
    );
    for row in rows {
        assert_eq!(row["nodes"], nodes);
        for figure in ["ns_measured", "ns_predicted", "speedup", "bytes_per_node"] {
            let value = row[figure].as_f64().unwrap();
            assert!(value.is_finite() && value > 0.0, "{figure} of {row}");
        }
        let misses = row["misses_predicted"].as_object().unwrap();
        assert!(!misses.is_empty());
        assert!(
            misses
                .values()
                .all(|misses| misses.as_f64().unwrap() >= 0.0),
            "{row}"
        );
    }
    let speedup_of_baseline = rows[0]["speedup"].as_f64().unwrap();
    assert!((speedup_of_baseline - 1.0).abs() < 1e-9);
    assert!(
        object["advice"]
            .as_str()
            .unwrap()
            .starts_with("No recommendation: ")
    );
}

#[test]
fn embedded_text_as_json() {
    let machine = machine_file();
    let arguments = ["--nodes", "2000", "--machine"].map(OsStr::new);
    let object = json_of(&[&arguments[..], &[machine.0.as_os_str()]].concat());
    assert_rows(&object, 2000);
    assert_eq!(object["text"]["phrase_characters"], 7);
    assert!(object["text"]["positions"].as_u64().unwrap() > 3_000_000);
    assert_eq!(object["checks"]["compared"], 2000);
    assert_eq!(object["checks"]["scanned"], 200);
    assert!(
        object["checks"]["absent"].as_u64().unwrap() > 0,
        "questions without an answer are asked, too"
    );
    assert_eq!(object["lookups"], 2000);
}

#[test]
fn files_of_all_kinds_as_json() {
    let machine = machine_file();
    let texts: [(&str, String); 5] = [
        ("two", "ab".to_owned()),
        ("same", "a".repeat(3000)),
        (
            "poem",
            "the quick brown fox jumps over the lazy dog\r\n".repeat(40),
        ),
        ("greek", "ἄνδρα μοι ἔννεπε, μοῦσα, πολύτροπον\n".repeat(30)),
        (
            "wide",
            ('\u{4e00}'..'\u{9fff}')
                .chain('\u{1f300}'..'\u{1f5ff}')
                .collect(),
        ),
    ];
    for (name, content) in texts {
        let text = TempFile::new(name, content.as_bytes());
        let object = json_of(&[
            text.0.as_os_str(),
            OsStr::new("--machine"),
            machine.0.as_os_str(),
        ]);
        assert_rows(&object, content.chars().count() as u64);
        assert_eq!(object["text"]["bytes"], content.len());
    }
}

#[test]
fn table_and_markdown_name_every_layout() {
    let machine = machine_file();
    for option in ["--quiet", "--markdown"] {
        let arguments = ["--nodes", "500", "--lookups", "500", option, "--machine"].map(OsStr::new);
        let output = quickstart(arguments.iter().copied().chain([machine.0.as_os_str()]));
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(
            LAYOUTS.iter().all(|layout| stdout.contains(layout)),
            "{stdout}"
        );
        assert!(
            stdout.contains("No recommendation: 500 nodes fit in caches"),
            "{stdout}"
        );
        assert!(
            stdout.contains("ns predicted") && stdout.contains("B a node"),
            "{stdout}"
        );
        assert!(output.stderr.is_empty(), "no bar where nobody watches");
    }
}

#[test]
fn this_machine_is_measured_when_no_description_is_given() {
    let object = json_of(&[OsStr::new("--nodes"), OsStr::new("300")]);
    assert_rows(&object, 300);
    assert!(
        object["machine"]["levels"]
            .as_array()
            .is_some_and(|levels| !levels.is_empty())
    );
}

#[test]
fn help_and_version_are_no_faults() {
    for (option, part) in [("--help", "--nodes"), ("--version", "quickstart")] {
        let output = quickstart([option]);
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains(part));
        assert!(output.stderr.is_empty());
    }
}

/// A run that must be refused with exit code 2 and one line that says `part`.
fn assert_refused(arguments: &[&OsStr], part: &str) {
    let output = quickstart(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
    assert!(
        stderr.starts_with("quickstart: ") && stderr.contains(part),
        "{arguments:?}: {stderr}"
    );
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

#[test]
fn unusable_files_are_refused() {
    let empty = TempFile::new("empty", b"");
    assert_refused(&[empty.0.as_os_str()], "is empty");
    let one_byte = TempFile::new("one", b"x");
    assert_refused(&[one_byte.0.as_os_str()], "single character");
    let not_utf8 = TempFile::new("latin1", b"caf\xe9 au lait");
    assert_refused(&[not_utf8.0.as_os_str()], "not UTF-8 from byte 3 on");
    assert_refused(&[empty.folder().as_os_str()], "is a directory");
    assert_refused(
        &[empty.folder().join("no-such-file").as_os_str()],
        "no-such-file",
    );
    let odd_name = empty.folder().join("two\nlines");
    assert_refused(&[odd_name.as_os_str()], "two\\nlines");
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let secret = TempFile::new("secret", b"some text");
    std::fs::set_permissions(&secret.0, std::fs::Permissions::from_mode(0o000)).unwrap();
    // The superuser reads it all the same; then it is a text like others.
    if std::fs::read(&secret.0).is_err() {
        assert_refused(&[secret.0.as_os_str()], "denied");
    } else {
        assert!(
            quickstart([secret.0.as_os_str(), OsStr::new("--quiet")])
                .status
                .success()
        );
    }
}

#[test]
fn unusable_options_are_refused() {
    let text = TempFile::new("short", b"only a few characters");
    for (arguments, part) in [
        (&["--no-such-option"] as &[&str], "--no-such-option"),
        (&["--nodes", "0"], "--nodes"),
        (&["--nodes", "-3"], "-3"),
        (&["--nodes", "18446744073709551616"], "--nodes"),
        (&["--lookups", "0"], "--lookups"),
        (&["--seed", "x"], "--seed"),
        (&["--json", "--markdown"], "--markdown"),
        (&["--machine", "no-such-machine"], "no-such-machine"),
        (&["one", "two"], "two"),
    ] {
        assert_refused(&arguments.iter().map(OsStr::new).collect::<Vec<_>>(), part);
    }
    assert_refused(
        &[text.0.as_os_str(), OsStr::new("--nodes"), OsStr::new("22")],
        "only 21 positions",
    );
    assert_refused(&[OsStr::new("--machine"), text.0.as_os_str()], "text");
}
