//! The fuzzer's bytes as a trace in text, read whole and through a buffer that splits its lines:
//! both must come to the same.
#![no_main]

use std::io::BufReader;

use ccmodel::simulator::{TextTrace, TraceRecord};
use libfuzzer_sys::fuzz_target;

/// All records, and the message of the error that ended them.
fn read<E: std::fmt::Display>(
    trace: impl Iterator<Item = Result<TraceRecord, E>>,
) -> (Vec<TraceRecord>, Option<String>) {
    let mut records = Vec::new();
    for record in trace {
        match record {
            Ok(record) => records.push(record),
            Err(error) => return (records, Some(error.to_string())),
        }
    }
    (records, None)
}

fuzz_target!(|bytes: &[u8]| {
    let (whole, fault) = read(TextTrace::new(bytes));
    assert!(whole.iter().all(|record| record.bytes > 0));
    assert!(whole.len() <= bytes.len() / 4);
    if let Some(message) = &fault {
        assert!(message.starts_with("line ") && !message.contains(char::is_control));
    }
    let pieces = read(TextTrace::new(BufReader::with_capacity(7, bytes)));
    assert_eq!(pieces, (whole, fault));
});
