//! The fuzzer's bytes as a trace in text, read whole and through a buffer that splits its lines:
//! both must come to the same.
#![no_main]

use std::io::{BufRead, BufReader};

use ccmodel::simulator::{TraceRecord, read_trace};
use libfuzzer_sys::fuzz_target;

/// All records, and the message of the error that ended them.
fn read(reader: impl BufRead) -> (Vec<TraceRecord>, Option<String>) {
    let mut records = Vec::new();
    let result = read_trace(reader, |record| records.push(record));
    (records, result.err().map(|error| error.to_string()))
}

fuzz_target!(|bytes: &[u8]| {
    let (whole, fault) = read(bytes);
    assert!(whole.iter().all(|record| record.bytes > 0));
    assert!(whole.len() <= bytes.len() / 4);
    if let Some(message) = &fault {
        assert!(message.starts_with("line ") && !message.contains(char::is_control));
    }
    let pieces = read(BufReader::with_capacity(7, bytes));
    assert_eq!(pieces, (whole, fault));
});
