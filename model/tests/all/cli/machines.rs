//! Where machines come from: `model topology`, `model calibrate`, presets and files.

use std::fs;
use std::process::Command;

use ccmodel::Machine;

use super::{SMALL, TempFile, answer, json, number, refusal};

/// A small prediction on the machine of this file.
fn on(machine: &str) -> String {
    format!("{SMALL} --machine {machine}")
}

#[test]
fn machine_files_are_read_and_bad_ones_refused() {
    let good = TempFile::new(&Machine::thesis().to_json());
    let rows = |machine: &str| json(&on(machine))["rows"].clone();
    assert_eq!(rows(good.path()), rows("thesis"));
    let thesis = Machine::thesis().to_json();
    let many_ways = thesis.replace("\"ways\": 1", "\"ways\": 65536");
    for (text, expected) in [
        ("{\"format\": 99}", "format 99"),
        ("[]", "not a machine file"),
        (&thesis.replace("Sun", "\\u001b[31m"), "control characters"),
        (&many_ways, "16384 ways"),
    ] {
        let file = TempFile::new(text);
        let line = refusal(&on(file.path()));
        assert!(line.contains(expected), "{expected}: {line}");
    }
    let mut noted = Machine::thesis();
    noted.notes.push("the clock stood still".to_owned());
    let file = TempFile::new(&noted.to_json());
    assert!(answer(&on(file.path())).contains("note: the clock stood still"));
}

/// None of these may hang.
#[test]
fn folders_devices_pipes_and_large_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let is_refused = |path: &str| refusal(&on(path)).contains("not a regular file");
    assert!(is_refused(folder.path().to_str().unwrap()));
    let large = TempFile::new("");
    let file = fs::OpenOptions::new()
        .write(true)
        .open(large.path())
        .unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(refusal(&on(large.path())).contains("larger than 16 MiB"));
    if cfg!(unix) {
        assert!(is_refused("/dev/zero"));
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status();
        let is_made = made.is_ok_and(|status| status.success());
        assert!(!is_made || is_refused(pipe.to_str().unwrap()));
    }
}

#[test]
fn calibration_writes_a_file_that_predict_reads() {
    let file = TempFile::new("");
    let printed = answer(&format!("calibrate --quick --json -o {}", file.path()));
    let written = fs::read_to_string(file.path()).unwrap();
    assert_eq!(printed, written);
    let machine = Machine::from_json(&written).unwrap();
    assert!(machine.levels.iter().any(|level| level.name == "L1"));
    assert!(!machine.evidence.huge_pages.is_empty());
    assert!(answer(&on(file.path())).contains("veb"));
}

#[test]
fn topology_names_sources() {
    let object = json("topology");
    assert!(object["caches"][0]["source"].is_string());
    let page = object["page_bytes"]["value"].as_u64();
    assert!(page.is_some_and(u64::is_power_of_two));
}

#[test]
fn presets_are_known_by_name() {
    for preset in Machine::presets() {
        let object = json(&format!("{} --layout veb", on(preset.name)));
        assert_eq!(object["origin"], "preset", "{}", preset.name);
        assert!(number(&object, "rows.0.misses.L1") > 0.0);
    }
}
