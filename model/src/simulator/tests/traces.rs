//! Traces: what is written is read, what is broken is refused where it is broken.

use std::io::{self, BufReader, Read};

use quickcheck::{Arbitrary, Gen, quickcheck};

use super::{pick, two_levels};
use crate::hierarchy::Inclusion;
use crate::simulator::{TraceKind, TraceRecord, read_trace, simulate_trace};

/// As lackey writes them.
const KINDS: [(TraceKind, &str); 4] = [
    (TraceKind::Instruction, "I "),
    (TraceKind::Load, " L"),
    (TraceKind::Store, " S"),
    (TraceKind::Modify, " M"),
];

impl Arbitrary for TraceRecord {
    fn arbitrary(g: &mut Gen) -> TraceRecord {
        TraceRecord {
            kind: pick(g, &KINDS).0,
            address: u64::arbitrary(g) >> pick(g, &[0, 16, 40, 63]),
            bytes: u16::arbitrary(g).max(1),
        }
    }
}

fn text(records: &[TraceRecord]) -> String {
    let line = |record: &TraceRecord| {
        let kind = KINDS.iter().find(|kind| kind.0 == record.kind).unwrap().1;
        format!("{kind} {:08x},{}\n", record.address, record.bytes)
    };
    records.iter().map(line).collect()
}

/// The records before the first error, and its message.
fn read(reader: impl io::BufRead) -> (Vec<TraceRecord>, String) {
    let mut records = Vec::new();
    let result = read_trace(reader, |record| records.push(record));
    let message = result.map_or_else(|error| error.to_string(), |()| String::new());
    (records, message)
}

quickcheck! {
    fn traces_are_read_as_they_were_written(records: Vec<TraceRecord>, buffer: usize) -> bool {
        let text = text(&records);
        // The small buffer splits records.
        let reader = BufReader::with_capacity(buffer % 40 + 1, text.as_bytes());
        read(reader) == (records, String::new())
    }

    fn a_text_that_is_cut_off_loses_its_last_record_only(records: Vec<TraceRecord>) -> bool {
        let records = &records[..records.len().min(20)];
        let whole = text(records);
        for len in 0..whole.len() {
            let lines = whole[..len].matches('\n').count();
            let (found, message) = read(&whole.as_bytes()[..len]);
            assert_eq!(found[..lines], records[..lines]);
            assert!(found.len() <= lines + 1);
            let named = message.is_empty() || message.starts_with(&format!("line {}:", lines + 1));
            assert!(named, "{message}");
        }
        true
    }

    fn garbage_is_read_or_refused(bytes: Vec<u8>, records: Vec<TraceRecord>) -> bool {
        let (found, message) = read(&[text(&records).into_bytes(), bytes].concat()[..]);
        assert!(found.iter().all(|record| record.bytes > 0));
        !message.contains(char::is_control)
    }
}

#[test]
fn every_form_of_line_that_valgrind_writes_is_understood() {
    let text = "==1== Lackey, an example Valgrind tool\r\n\n==1== \nI  04016a90,3\n\
                 \x20S 1ffefffea8,8\n L 0402f8e0,16 \n\tM 0402FA10,4\n--1-- note\n\
                **1** client\n L ffffffffffffffff,65535";
    let (records, message) = read(text.as_bytes());
    assert_eq!(message, "");
    let of = |record: &TraceRecord| (record.kind, record.address, record.bytes);
    let seen: Vec<(TraceKind, u64, u16)> = records.iter().map(of).collect();
    let expected = [
        (TraceKind::Instruction, 0x0401_6a90, 3),
        (TraceKind::Store, 0x1f_feff_fea8, 8),
        (TraceKind::Load, 0x0402_f8e0, 16),
        (TraceKind::Modify, 0x0402_fa10, 4),
        (TraceKind::Load, u64::MAX, 65535),
    ];
    assert_eq!(seen, expected);
    // What valgrind says of a long command line.
    let remark = format!("==1== Command: {}\n L 1000,8\n", "x".repeat(1_000_000));
    let (records, message) = read(remark.as_bytes());
    assert_eq!((records.len(), message.as_str()), (1, ""));
}

#[test]
fn a_line_that_is_no_record_is_named() {
    let good = " L 1000,8\n";
    for (bad, reason) in [
        ("hello", "no access as `L 1ffefffea8,8`: \"hello\""),
        ("L", "no access"),
        ("L ,8", "no access"),
        ("L 1000", "no access"),
        ("L 1000;8", "no access"),
        ("L 0x1000,8", "no access"),
        ("L1000,8", "no access"),
        ("l 1000,8", "no access"),
        ("Lo 1000,8", "no access"),
        ("L 12345678123456789,8", "no access"),
        ("L 1000,", "the size is no number"),
        ("L 1000,0", "the size is no number"),
        ("L 1000,-8", "the size is no number"),
        ("L 1000,8 8", "the size is no number"),
        ("L 1000,65536", "the size is no number"),
        ("\u{1b}[2J\0", r#""\u{1b}[2J\0""#),
    ] {
        let message = read(format!("{good}=={good}\n\n{bad}\n{good}").as_bytes()).1;
        assert!(message.starts_with("line 5: "), "{message}");
        assert!(message.contains(reason), "{message} for {reason}");
    }
    // Bytes without end, and a file that cannot be read.
    let endless = BufReader::new(io::repeat(b'x').take(1 << 20));
    assert_eq!(read(endless).1, "line 1: it is longer than 65536 bytes");
    struct Denied;
    impl Read for Denied {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
    let message = read(BufReader::new(Denied)).1;
    assert!(message.contains("reading fails"), "{message}");
}

#[test]
fn accesses_to_data_are_simulated() {
    let trace = "I  0,4\n L 1000,8\nI  4,4\n M 2000,8\n S 1000,8\n L 3000,8\n";
    let mut simulator = two_levels(Inclusion::NonInclusive);
    let counts = simulate_trace(trace.as_bytes(), &mut simulator).unwrap();
    let level = simulator.counts().caches.swap_remove(0);
    assert_eq!((counts.instructions, counts.data()), (2, 4));
    assert_eq!((level.accesses, level.misses), (4, 3));
    let mut simulator = two_levels(Inclusion::NonInclusive);
    let error = simulate_trace(&b" L 0,8\n L 40,8\nbad\n"[..], &mut simulator).unwrap_err();
    assert_eq!(error.line, Some(3));
    assert_eq!(simulator.counts().caches[0].accesses, 2);
}
