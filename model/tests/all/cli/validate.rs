//! `model validate`: rows as soon as they are known.

use super::{model, refusal};

#[test]
fn a_row_is_one_object_on_one_line() {
    // Debug builds are slow: the row may well be below what is allowed, which is exit code 1.
    let output = model(&["validate", "--quick", "--only", "simulator_speed", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    let row: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(row["name"], "simulator_speed");
    assert_eq!(row["allowed"].as_f64(), Some(50.0));
    let value = row["value"].as_f64().unwrap();
    assert_eq!(row["ok"].as_bool(), Some(value >= 50.0));
    assert_eq!(output.status.code(), Some(i32::from(value < 50.0)));
    assert!(row["note"].is_string());
    assert!(output.stderr.is_empty());
}

#[test]
fn unknown_rows_are_refused_with_a_suggestion() {
    let line = refusal(&["validate", "--only", "steady_eror_max"]);
    assert!(line.contains("`steady_error_max`"), "{line}");
}

#[test]
fn notes_are_sentences() {
    let output = model(&["validate", "--quick", "--only", "thesis_pins"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let notes: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("    "))
        .collect();
    assert!(notes.len() > 1, "one line a sentence: {text}");
    for note in notes {
        let sentence = note.trim_start();
        assert!(
            sentence.starts_with(char::is_uppercase) && sentence.ends_with('.'),
            "{note}"
        );
    }
}
