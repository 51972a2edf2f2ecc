use quickcheck::quickcheck;

use super::*;

fn weights(text: &str, keys: usize) -> Vec<f64> {
    let distribution: KeyDistribution = text.parse().unwrap();
    distribution
        .weights(keys)
        .unwrap()
        .unwrap_or(vec![1.0; keys])
}

fn descending(mut weights: Vec<f64>) -> Vec<f64> {
    weights.sort_by(|a, b| b.total_cmp(a));
    weights
}

#[test]
fn zipf_weighs_ranks_by_their_inverse_powers() {
    let found = descending(weights("zipf:2", 4));
    let expected = [1.0, 1.0 / 4.0, 1.0 / 9.0, 1.0 / 16.0];
    assert!(
        found
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-12)
    );
    assert!(
        weights("zipf:0", 9)
            .iter()
            .all(|&weight| (weight - 1.0).abs() < 1e-12)
    );
    // Which keys are frequent follows from the seed, not from their order.
    assert!(!weights("zipf:1", 100).is_sorted_by(|a, b| a >= b));
}

#[test]
fn a_hot_set_gets_its_share() {
    let found = descending(weights("hot:0.1:0.9", 50));
    assert!(
        found[..5]
            .iter()
            .all(|&weight| (weight - 0.9 / 5.0).abs() < 1e-12)
    );
    assert!(
        found[5..]
            .iter()
            .all(|&weight| (weight - 0.1 / 45.0).abs() < 1e-12)
    );
    // One key is hot at least, and all may be.
    assert!((descending(weights("hot:0:0.5", 11))[0] - 0.5).abs() < 1e-12);
    assert!(
        weights("hot:1:0.5", 3)
            .iter()
            .all(|&weight| (weight - 1.0).abs() < 1e-12)
    );
}

#[test]
fn a_trace_is_counted() {
    let trace = "# keys\n 3\n0\r\n\n3\n3";
    let read = KeyDistribution::read_trace(trace.as_bytes(), 4).unwrap();
    assert_eq!(read, KeyDistribution::Weights(vec![1.0, 0.0, 0.0, 3.0]));
}

#[test]
fn what_is_wrong_with_a_trace_is_said_with_its_line() {
    let message = |text: &[u8]| {
        KeyDistribution::read_trace(text, 10)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message(b"1\n10\n"),
        "line 2: there is no key 10: keys are numbered from 0, and there are 10"
    );
    assert_eq!(
        message(b"1\n\n-1\n"),
        "line 3: a line holds one key, a decimal number"
    );
    assert_eq!(
        message(b"\xff\xfe\n"),
        "line 1: a line holds one key, a decimal number"
    );
    assert_eq!(
        message(b"99999999999999999999999"),
        "line 1: a line holds one key, a decimal number"
    );
    assert_eq!(message(b"# nothing\n"), "no key is ever asked for");
    assert_eq!(
        message(&[b'1'; 10_000]),
        "line 1: it is longer than 4096 bytes"
    );
}

#[test]
fn names_that_mean_nothing_are_refused() {
    for text in [
        "",
        "zipf",
        "zipf:",
        "zipf:x",
        "zipf:-1",
        "zipf:nan",
        "zipf:inf",
        "hot:0.1",
        "hot:0.1:2",
        "hot:nan:0.5",
        "hot:-0.1:0.5",
        "uniform:1",
        "trace",
    ] {
        assert!(text.parse::<KeyDistribution>().is_err(), "{text}");
    }
}

#[test]
fn weights_must_fit() {
    let of = |weights: &[f64], keys| KeyDistribution::Weights(weights.to_vec()).weights(keys);
    assert_eq!(
        of(&[1.0], 2),
        Err(KeysError::Number {
            weights: 1,
            keys: 2
        })
    );
    assert_eq!(of(&[0.0, f64::NAN], 2), Err(KeysError::NoWeight));
    assert_eq!(of(&[], 0), Ok(Some(Vec::new())));
    for text in ["uniform", "zipf:1", "hot:0.5:0.5"] {
        assert!(text.parse::<KeyDistribution>().unwrap().weights(0).is_ok());
    }
}

quickcheck! {
    fn a_name_is_read_as_it_is_written(exponent: u16, keys: u8, operations: u8) -> bool {
        let share = |number: u8| f64::from(number) / 255.0;
        [
            KeyDistribution::Uniform,
            KeyDistribution::Zipf {
                exponent: f64::from(exponent) / 1000.0,
                seed: 1,
            },
            KeyDistribution::HotSet {
                keys_share: share(keys),
                operations_share: share(operations),
                seed: 1,
            },
        ]
        .into_iter()
        .all(|distribution| distribution.to_string().parse() == Ok(distribution))
    }

    fn no_trace_panics(bytes: Vec<u8>, keys: u8) -> bool {
        match KeyDistribution::read_trace(&bytes[..], usize::from(keys)) {
            Ok(distribution) => distribution.weights(usize::from(keys)).is_ok(),
            Err(error) => !error.to_string().is_empty(),
        }
    }

    fn no_name_panics(text: String) -> bool {
        text.parse::<KeyDistribution>()
            .map_or_else(|error| !error.to_string().is_empty(), |_| true)
    }
}
