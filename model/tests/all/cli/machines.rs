//! Where machines come from: `model topology`, `model calibrate`, presets and files.

use std::fs;
use std::process::Command;

use ccmodel::Machine;

use super::{TempFile, answer, json, refusal, small};

#[test]
fn machine_files_are_read_and_bad_ones_refused() {
    let good = TempFile::new("good.json", &Machine::thesis().to_json());
    let from_file = json(&small(&["--machine", good.path(), "--json"]));
    let preset = json(&small(&["--machine", "thesis", "--json"]));
    assert_eq!(from_file["rows"], preset["rows"]);
    let cases = [
        ("version.json", "{\"format\": 99}", "format 99"),
        ("broken.json", "{\"format\": 1,", "not a machine file"),
        ("empty.json", "", "not a machine file"),
        ("other.json", "[]", "not a machine file"),
    ];
    for (name, text, expected) in cases {
        let file = TempFile::new(name, text);
        let line = refusal(&small(&["--machine", file.path()]));
        assert!(line.contains(expected), "{line}");
    }
    let odd = Machine::thesis()
        .to_json()
        .replacen("\"block_bytes\": 64", "\"block_bytes\": 48", 1);
    let odd = TempFile::new("odd.json", &odd);
    assert!(refusal(&small(&["--machine", odd.path()])).contains("block_bytes"));
    let contradiction = Machine::thesis()
        .to_json()
        .replacen("\"sets\": 1024", "\"sets\": 512", 1);
    let contradiction = TempFile::new("contradiction.json", &contradiction);
    let line = refusal(&small(&["--machine", contradiction.path()]));
    assert!(line.contains("8192 bytes, not 16384"), "{line}");
    assert!(refusal(&small(&["--machine", "no/such/file"])).contains("no/such/file"));
}

#[test]
fn machine_files_without_end_or_sense_are_refused() {
    // None of these may hang, whatever it says.
    let folder = std::env::temp_dir();
    assert!(
        refusal(&small(&["--machine", folder.to_str().unwrap()])).contains("not a regular file")
    );
    #[cfg(unix)]
    assert!(refusal(&small(&["--machine", "/dev/zero"])).contains("not a regular file"));
    let large = TempFile::new("large.json", "");
    let file = fs::OpenOptions::new().write(true).open(&large.0).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(refusal(&small(&["--machine", large.path()])).contains("larger than 16 MiB"));
    let mut machine = Machine::thesis();
    let level = machine.levels[0].clone();
    machine.levels = (0..256)
        .map(|i| ccmodel::Level {
            name: format!("L{i}"),
            ..level.clone()
        })
        .collect();
    machine.neighbours = vec![
        ccmodel::NeighbourShare {
            block_bytes: 256,
            share: 0.001,
        };
        256
    ];
    let heavy = TempFile::new("heavy.json", &machine.to_json());
    assert!(refusal(&small(&["--machine", heavy.path()])).contains("256 levels"));
    let escape = Machine::thesis().to_json().replace("Sun", "\\u001b[31m");
    let escape = TempFile::new("escape.json", &escape);
    assert!(refusal(&small(&["--machine", escape.path()])).contains("control characters"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_machine_file() {
    let path = std::env::temp_dir().join(format!("ccmodel-cli-{}-pipe", std::process::id()));
    let made = Command::new("mkfifo").arg(&path).status();
    if !made.is_ok_and(|status| status.success()) {
        // Without the tool there is no pipe to try; the folder and the device of the test above go
        // the same way.
        return;
    }
    let pipe = TempFile(path);
    assert!(refusal(&small(&["--machine", pipe.path()])).contains("not a regular file"));
}

#[test]
fn notes_of_a_machine_file_are_passed_on() {
    let mut machine = Machine::thesis();
    machine.notes.push("the clock stood still".to_owned());
    let file = TempFile::new("notes.json", &machine.to_json());
    let text = answer(&small(&["--machine", file.path()]));
    assert!(text.contains("note: the clock stood still"), "{text}");
}

#[test]
fn calibration_writes_a_file_that_predict_reads() {
    let file = TempFile::new("calibrated.json", "");
    let printed = answer(&["calibrate", "--quick", "--json", "-o", file.path()]);
    let written = fs::read_to_string(&file.0).unwrap();
    assert_eq!(printed, written);
    let machine = Machine::from_json(&written).unwrap();
    assert!(machine.levels.iter().any(|level| level.name == "L1"));
    assert!(!machine.evidence.huge_pages.is_empty());
    assert!(answer(&small(&["--machine", file.path()])).contains("veb"));
    let line = refusal(&["calibrate", "--quick", "-o", "no/such/folder/file"]);
    assert!(line.contains("no/such/folder/file"), "{line}");
}

#[test]
fn topology_names_sources() {
    let text = answer(&["topology"]);
    assert!(text.contains("L1 data"), "{text}");
    let object = json(&["topology", "--json"]);
    assert!(object["caches"][0]["source"].is_string());
    assert!(
        object["page_bytes"]["value"]
            .as_u64()
            .unwrap()
            .is_power_of_two()
    );
}

#[test]
fn presets_are_known_by_name() {
    for preset in Machine::presets() {
        let object = json(&small(&[
            "--machine",
            preset.name(),
            "--layout",
            "veb",
            "--json",
        ]));
        assert_eq!(object["origin"], "preset", "{}", preset.name());
        assert!(object["rows"][0]["misses"]["L1"].as_f64().unwrap() > 0.0);
    }
    let line = refusal(&small(&["--machine", "thesys"]));
    assert!(
        line.contains("\"thesis\"") && line.contains("zen4"),
        "{line}"
    );
}
