//! Numbers as people read them.

/// A quotient of counts; 0 where there is nothing to divide by.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A sum that stops at the largest number: a damaged profile must not end the tool.
pub(crate) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A number of things, to the nearest; numbers that are too large, negative or none are cut.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` cuts, and that is what is promised"
)]
pub(crate) fn rounded(number: f64) -> u64 {
    number.round() as u64
}

/// Three digits and a decimal prefix: `999 B`, `1.10 kB`, `80.0 MB`.
pub(crate) fn bytes(number: u64) -> String {
    prefixed(number as f64, "B")
}

/// `1.10 GB*s`.
pub(crate) fn byte_seconds(number: f64) -> String {
    prefixed(number, "B*s")
}

pub(crate) fn prefixed(number: f64, unit: &str) -> String {
    let mut scaled = number;
    for prefix in ["", "k", "M", "G", "T"] {
        // What would be rounded up to 1000 goes on.
        if scaled < 999.5 {
            let digits = match scaled {
                _ if prefix.is_empty() && scaled.fract() == 0.0 => 0,
                ..9.995 => 2,
                ..99.95 => 1,
                _ => 0,
            };
            return format!("{scaled:.digits$} {prefix}{unit}");
        }
        scaled /= 1000.0;
    }
    format!("{scaled:.0} P{unit}")
}

/// In full, with commas: `1,000,000`.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// In full up to six digits, then `1.20 M`.
pub(crate) fn short_count(number: u64) -> String {
    match number {
        ..1_000_000 => count(number),
        _ => prefixed(number as f64, "").trim_end().to_owned(),
    }
}

/// `3.20 s`, `15.0 ms`, `800 ns`.
pub(crate) fn seconds(number: f64) -> String {
    let (scaled, unit) = match number {
        0.0 => return "0 s".to_owned(),
        1.0.. => (number, "s"),
        1e-3.. => (number * 1e3, "ms"),
        1e-6.. => (number * 1e6, "us"),
        _ => (number * 1e9, "ns"),
    };
    let digits = match scaled {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$} {unit}")
}

/// `42 %`; of less than one, two digits: `0.25 %`.
pub(crate) fn percent(part: f64) -> String {
    // The sum of no numbers is -0.
    match part * 100.0 + 0.0 {
        percent if percent > 0.0 && percent < 0.95 => format!("{percent:.2} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// `400 chunks`, `1 chunk`.
pub(crate) fn plural(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{} {thing}{ending}", count(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_prefix() {
        assert_eq!([-0.0, 0.004, 0.5].map(percent), ["0 %", "0.40 %", "50 %"]);
        let cases: [(u64, &str); 7] = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (1_104, "1.10 kB"),
            (80_000_000, "80.0 MB"),
            (999_700, "1.00 MB"),
            (u64::MAX, "18447 PB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text);
        }
        assert_eq!(byte_seconds(1.1e9), "1.10 GB*s");
        assert_eq!(byte_seconds(0.5), "0.50 B*s");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(count(12), "12");
        assert_eq!(short_count(999_999), "999,999");
        assert_eq!(short_count(1_250_000), "1.25 M");
        assert_eq!(plural(1, "chunk"), "1 chunk");
    }

    #[test]
    fn times_choose_their_unit() {
        assert_eq!(seconds(3.2), "3.20 s");
        assert_eq!(seconds(0.015), "15.0 ms");
        assert_eq!(seconds(2.5e-6), "2.50 us");
        assert_eq!(seconds(0.0), "0 s");
    }

    #[test]
    fn rounding_cuts_what_is_no_count() {
        assert_eq!(rounded(2.5), 3);
        assert_eq!(rounded(-1.0), 0);
        assert_eq!(rounded(f64::NAN), 0);
        assert_eq!(rounded(1e300), u64::MAX);
    }
}
