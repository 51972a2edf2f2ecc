//! The fuzzer's bytes as a machine file, and as edits of one. What is read as a machine passes its
//! own check, is written to what can be read again, and predicts something.
#![no_main]

mod edits;

use std::sync::LazyLock;

use ccmodel::{Layout, Machine, NodeExtent, PageSize, Shape, predict_tree};
use libfuzzer_sys::fuzz_target;

static GOOD: LazyLock<String> = LazyLock::new(|| Machine::thesis().to_json());

fn check(text: &str) {
    match Machine::from_json(text) {
        Ok(machine) => {
            assert_eq!(machine.check(), Ok(()));
            assert!(Machine::from_json(&machine.to_json()).is_ok());
            let shape = Shape::complete_binary(100);
            let node = NodeExtent::new(24, 8).expect("nodes have bytes");
            let placement = Layout::VanEmdeBoas.place(&shape, node);
            let prediction = predict_tree(&shape, &placement, node, PageSize::Small4K, &machine);
            assert!(prediction.ns.is_finite() && prediction.ns >= 0.0);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(&String::from_utf8_lossy(bytes));
    check(&edits::edited(&GOOD, bytes));
});
