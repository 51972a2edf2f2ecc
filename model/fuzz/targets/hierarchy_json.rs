//! The fuzzer's bytes as the JSON of caches, and as edits of one. What is read as caches can be
//! simulated.
#![no_main]

mod edits;

use ccmodel::{Frames, Hierarchy, Simulator};
use libfuzzer_sys::fuzz_target;

const GOOD: &str = r#"{"caches":[
    {"name":"L1","sets":4,"block_bytes":64,"ways":3,"policy":"tree-plru"},
    {"name":"L2","sets":8,"block_bytes":64,"ways":4,"policy":"random"},
    {"name":"L3","sets":8,"block_bytes":64,"ways":9}],
    "inclusion":"victim-last","tlbs":[{"name":"dTLB","sets":2,"block_bytes":4096,"ways":6}]}"#;
/// Larger ones are left alone: a run is to take no time.
const BLOCKS_MAX: u64 = 1 << 16;

fn check(text: &str) {
    let Ok(hierarchy) = serde_json::from_str::<Hierarchy>(text) else {
        return;
    };
    let written = serde_json::to_string(&hierarchy).expect("caches are plain data");
    let read = serde_json::from_str::<Hierarchy>(&written).expect("what was written can be read");
    assert_eq!(read, hierarchy);
    let levels = hierarchy.caches().iter().chain(hierarchy.tlbs());
    if levels.map(|level| level.blocks()).sum::<u64>() <= BLOCKS_MAX {
        let mut simulator = Simulator::new(&hierarchy, Frames::Identity);
        for i in 0..300u64 {
            simulator.access(i * i * 40 % 5000, 8);
        }
        let counts = simulator.counts();
        for level in counts.caches.iter().chain(&counts.tlbs) {
            assert!(level.misses <= level.accesses);
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(&String::from_utf8_lossy(bytes));
    check(&edits::edited(GOOD, bytes));
});
