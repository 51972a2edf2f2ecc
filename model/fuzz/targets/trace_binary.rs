//! The fuzzer's bytes as a binary trace: as they are, behind a good header, and behind it with a
//! good end. What can be read is simulated, and written again to the bytes that it came from.
#![no_main]

use ccmodel::{
    BinaryTrace, BinaryTraceWriter, CacheGeometry, CacheLevel, Frames, Hierarchy, Inclusion,
    Simulator, TraceMode, TraceOptions, simulate_trace,
};
use libfuzzer_sys::fuzz_target;

const HEADER: &[u8; 12] = b"\x89CCTR\r\n\x1a\x01\0\0\0";
const RECORD_BYTES: usize = 12;

/// Small caches, so that everything happens in them.
fn simulator() -> Simulator {
    let level = |name, sets, ways| {
        let geometry = CacheGeometry::new(sets, 64, ways).expect("small powers of two");
        CacheLevel::lru(name, geometry)
    };
    let caches = vec![level("L1", 2, 2), level("L2", 4, 2), level("L3", 4, 3)];
    let hierarchy =
        Hierarchy::new(caches, Inclusion::Inclusive, Vec::new()).expect("these are caches");
    Simulator::new(&hierarchy, Frames::Identity)
}

fn check(bytes: &[u8]) {
    let mut writer = BinaryTraceWriter::new(Vec::new()).expect("a vector takes everything");
    let mut records = 0;
    let mut whole = true;
    for record in BinaryTrace::new(bytes) {
        match record {
            Ok(record) => {
                writer.write(record).expect("what was read can be written");
                records += 1;
            }
            Err(error) => {
                assert!(!error.to_string().contains(char::is_control));
                whole = false;
            }
        }
    }
    let written = writer.finish().expect("a vector takes everything");
    let same = RECORD_BYTES * (records + 1);
    if whole {
        assert_eq!(written, bytes);
    } else if records > 0 {
        assert_eq!(written[..same], bytes[..same]);
    }
    let options = TraceOptions {
        mode: TraceMode::InstructionsAndData,
        warm_up_records: 3,
    };
    let counts = simulate_trace(BinaryTrace::new(bytes), &mut simulator(), options);
    assert_eq!(counts.is_ok(), whole);
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    let mut trace = [HEADER, bytes].concat();
    check(&trace);
    let records = bytes.len() / RECORD_BYTES;
    trace.truncate(HEADER.len() + records * RECORD_BYTES);
    trace.extend_from_slice(&(records as u64).to_le_bytes());
    trace.extend_from_slice(&[0; 4]);
    check(&trace);
});
