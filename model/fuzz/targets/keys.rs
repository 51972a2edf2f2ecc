//! The fuzzer's bytes as a trace of keys, and as the name of a distribution. What a trace is read
//! as gives each key as much weight as it is there.
#![no_main]

use ccmodel::KeyDistribution;
use libfuzzer_sys::fuzz_target;

const KEYS: usize = 100;

fuzz_target!(|bytes: &[u8]| {
    match KeyDistribution::read_trace(bytes, KEYS) {
        Ok(distribution) => {
            let weights = distribution.weights(KEYS).expect("a trace has weights");
            let weights = weights.expect("those of a trace are not uniform");
            assert_eq!(weights.len(), KEYS);
            let lines = bytes.split(|&byte| byte == b'\n');
            let keys = lines.filter(|line| {
                let line = line.trim_ascii();
                !line.is_empty() && !line.starts_with(b"#")
            });
            assert!((weights.iter().sum::<f64>() - keys.count() as f64).abs() < 1e-6);
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
    match String::from_utf8_lossy(bytes).parse::<KeyDistribution>() {
        Ok(distribution) => {
            let weights = distribution
                .weights(KEYS)
                .ok()
                .flatten()
                .unwrap_or_default();
            assert!(
                weights
                    .iter()
                    .all(|weight| weight.is_finite() && *weight >= 0.0)
            );
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
});
