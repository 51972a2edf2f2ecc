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
    let good = TempFile::new("good.json", &Machine::thesis().to_json());
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
        let file = TempFile::new("bad-machine.json", text);
        let line = refusal(&on(file.path()));
        assert!(line.contains(expected), "{expected}: {line}");
    }
    let mut noted = Machine::thesis();
    noted.notes.push("the clock stood still".to_owned());
    let file = TempFile::new("notes.json", &noted.to_json());
    assert!(answer(&on(file.path())).contains("note: the clock stood still"));
}

/// None of these may hang.
#[test]
fn folders_devices_pipes_and_large_files_are_refused() {
    let folder = std::env::temp_dir();
    assert!(refusal(&on(folder.to_str().unwrap())).contains("not a regular file"));
    let large = TempFile::new("large.json", "");
    let file = fs::OpenOptions::new().write(true).open(&large.0).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(refusal(&on(large.path())).contains("larger than 16 MiB"));
    if cfg!(unix) {
        assert!(refusal(&on("/dev/zero")).contains("not a regular file"));
        let path = folder.join(format!("ccmodel-cli-{}-pipe", std::process::id()));
        let made = Command::new("mkfifo").arg(&path).status();
        if made.is_ok_and(|status| status.success()) {
            let pipe = TempFile(path);
            assert!(refusal(&on(pipe.path())).contains("not a regular file"));
        }
    }
}

#[test]
fn calibration_writes_a_file_that_predict_reads() {
    let file = TempFile::new("calibrated.json", "");
    let printed = answer(&format!("calibrate --quick --json -o {}", file.path()));
    let written = fs::read_to_string(&file.0).unwrap();
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
