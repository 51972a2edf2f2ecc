use quickcheck::quickcheck;

use super::*;

/// The weights, the largest first.
fn descending(text: &str, keys: usize) -> Vec<f64> {
    let distribution: KeyDistribution = text.parse().unwrap();
    let mut weights = distribution.weights(keys).unwrap().unwrap();
    weights.sort_by(|a, b| b.total_cmp(a));
    weights
}

#[test]
fn weights_are_as_the_rules_say() {
    for (text, expected) in [
        ("zipf:2", vec![1.0, 1.0 / 4.0, 1.0 / 9.0, 1.0 / 16.0]),
        ("zipf:0", vec![1.0; 9]),
        (
            "hot:0.1:0.9",
            [vec![0.9 / 5.0; 5], vec![0.1 / 45.0; 45]].concat(),
        ),
        // One key is hot at least, and all may be.
        ("hot:0:0.5", [vec![0.5], vec![0.05; 10]].concat()),
        ("hot:1:0.5", vec![1.0; 3]),
    ] {
        let found = descending(text, expected.len());
        let mut pairs = found.iter().zip(&expected);
        assert!(
            pairs.all(|(a, b)| (a - b).abs() < 1e-12),
            "{text}: {found:?}"
        );
    }
    // Which keys are frequent follows from the seed, not from their order.
    let zipf: KeyDistribution = "zipf:1".parse().unwrap();
    let weights = zipf.weights(100).unwrap().unwrap();
    assert!(!weights.is_sorted_by(|a, b| a >= b));
}

#[test]
fn traces_are_counted_or_refused_with_the_line() {
    let read = |text: &[u8]| KeyDistribution::read_trace(text, 10).map_err(|e| e.to_string());
    let trace = KeyDistribution::read_trace(&b"# keys\n 3\n0\r\n\n3\n3"[..], 4);
    assert_eq!(
        trace,
        Ok(KeyDistribution::Weights(vec![1.0, 0.0, 0.0, 3.0]))
    );
    let no_key = "a line holds one key, a decimal number";
    let too_large = "there is no key 10: keys are numbered from 0, and there are 10";
    for (text, expected) in [
        (&b"1\n10\n"[..], format!("line 2: {too_large}")),
        (b"1\n\n-1\n", format!("line 3: {no_key}")),
        (b"99999999999999999999999", format!("line 1: {no_key}")),
        (b"\xff\xfe\n", "line 1: it is not UTF-8 text".to_owned()),
        (b"# nothing\n", "no key is ever asked for".to_owned()),
        (
            &[b'1'; 100_000],
            "line 1: it is longer than 65536 bytes".to_owned(),
        ),
    ] {
        assert_eq!(read(text), Err(expected));
    }
}

#[test]
fn names_and_weights_that_mean_nothing_are_refused() {
    let wrong = " zipf zipf: zipf:x zipf:-1 zipf:nan zipf:inf hot:0.1 hot:0.1:2 hot:nan:0.5 \
                 hot:-0.1:0.5 uniform:1 trace";
    for text in wrong.split(' ') {
        assert!(text.parse::<KeyDistribution>().is_err(), "{text}");
    }
    let of = |weights: &[f64], keys| KeyDistribution::Weights(weights.to_vec()).weights(keys);
    assert!(of(&[1.0], 2).is_err() && of(&[0.0, f64::NAN], 2).is_err());
    assert_eq!(of(&[], 0), Ok(Some(Vec::new())));
    for text in ["uniform", "zipf:1", "hot:0.5:0.5"] {
        assert!(text.parse::<KeyDistribution>().unwrap().weights(0).is_ok());
    }
}

quickcheck! {
    fn a_name_is_read_as_it_is_written(exponent: u16, keys: u8, operations: u8) -> bool {
        let exponent = f64::from(exponent) / 1000.0;
        let [keys, operations] = [keys, operations].map(|number| f64::from(number) / 255.0);
        let names = ["uniform".to_owned(), format!("zipf:{exponent}"),
            format!("hot:{keys}:{operations}")];
        let read = |name: &str| name.parse::<KeyDistribution>().unwrap().to_string();
        names.iter().all(|name| read(name) == *name)
    }

    fn no_text_panics(bytes: Vec<u8>, text: String, keys: u8) -> bool {
        let keys = usize::from(keys);
        let named = text.parse::<KeyDistribution>();
        let read = KeyDistribution::read_trace(&bytes[..], keys);
        named.map_or_else(|error| !error.to_string().is_empty(), |_| true)
            && read.map_or(true, |distribution| distribution.weights(keys).is_ok())
    }
}
