//! Which keys operations ask for, and how often.
//!
//! A distribution is a rule until the number of keys is known; then it gives one weight for each.
//! Skewed rules say how much more frequent some keys are than others, not which: that is drawn from
//! a seed, so that neighbours in key order are no more alike than any two keys.
//!
//! - [`Zipf`](KeyDistribution::Zipf): the r-th most frequent key is asked for in proportion to 1 /
//!   r^s (G. Zipf, *Human Behavior and the Principle of Least Effort*, 1949); s = 0.99 is what YCSB
//!   calls Zipfian (B. Cooper and others, *Benchmarking Cloud Serving Systems with YCSB*, 2010).
//! - [`HotSet`](KeyDistribution::HotSet): a share of the keys gets a share of the operations, each
//!   of them as often.
//! - [`Weights`](KeyDistribution::Weights): counts of a trace, or any others.

use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use crate::shape::random;

/// The longest line of a trace, in bytes: a key is a number of up to ten digits.
const LINE_BYTES_MAX: usize = 1 << 12;

/// How often operations ask for each key.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum KeyDistribution {
    /// Each as often.
    #[default]
    Uniform,
    /// The r-th most frequent in proportion to 1 / r^exponent.
    Zipf {
        /// At least 0, which is uniform.
        exponent: f64,
        /// Chooses which keys are frequent.
        seed: u64,
    },
    /// Some keys get more operations than their part.
    HotSet {
        /// How many of the keys are hot, from 0 to 1; rounded to whole keys, at least one.
        keys_share: f64,
        /// How many of the operations are for those, from 0 to 1.
        operations_share: f64,
        /// Chooses which keys are hot.
        seed: u64,
    },
    /// In proportion to these, by number of the key. Weights that are negative or no numbers count
    /// as 0.
    Weights(Vec<f64>),
}

impl KeyDistribution {
    /// The weight of each of `keys` keys, `None` where all are the same. O(keys).
    ///
    /// # Errors
    /// [`KeysError`] for weights of another number of keys or none above 0, and for exponents and
    /// shares that are out of bounds.
    pub fn weights(&self, keys: usize) -> Result<Option<Vec<f64>>, KeysError> {
        match *self {
            KeyDistribution::Uniform => Ok(None),
            KeyDistribution::Zipf { exponent, seed } => {
                if !(exponent >= 0.0 && exponent.is_finite()) {
                    return Err(KeysError::Exponent(exponent));
                }
                let mut weights = vec![0.0; keys];
                for (rank, key) in (1u32..).zip(shuffled(keys, seed)?) {
                    weights[key as usize] = f64::from(rank).powf(-exponent);
                }
                Ok(Some(weights))
            }
            KeyDistribution::HotSet {
                keys_share,
                operations_share,
                seed,
            } => {
                for share in [keys_share, operations_share] {
                    if !(0.0..=1.0).contains(&share) {
                        return Err(KeysError::Share(share));
                    }
                }
                if keys == 0 {
                    return Ok(None);
                }
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "at least 0 and at most `keys`"
                )]
                let hot = ((keys_share * keys as f64).round() as usize).clamp(1, keys);
                let cold = keys - hot;
                // Where all are hot, the operations for others have no key, and count for none.
                let (hot_weight, cold_weight) = if cold == 0 {
                    (1.0, 0.0)
                } else {
                    (
                        operations_share / hot as f64,
                        (1.0 - operations_share) / cold as f64,
                    )
                };
                let mut weights = vec![cold_weight; keys];
                for key in shuffled(keys, seed)?.into_iter().take(hot) {
                    weights[key as usize] = hot_weight;
                }
                Ok(Some(weights))
            }
            KeyDistribution::Weights(ref weights) => {
                if weights.len() != keys {
                    return Err(KeysError::Number {
                        weights: weights.len(),
                        keys,
                    });
                }
                if keys > 0
                    && !weights
                        .iter()
                        .any(|&weight| weight > 0.0 && weight.is_finite())
                {
                    return Err(KeysError::NoWeight);
                }
                Ok(Some(weights.clone()))
            }
        }
    }

    /// Counts the keys of a trace: one a line, as a decimal number below `keys`. Empty lines and
    /// those that begin with `#` are skipped. Reads line by line.
    ///
    /// # Errors
    /// [`KeysError::Line`] names the first line that holds no key; also when reading fails, and
    /// when there is no key at all.
    pub fn read_trace(mut reader: impl BufRead, keys: usize) -> Result<KeyDistribution, KeysError> {
        let mut counts = vec![0.0; keys];
        let mut line = Vec::new();
        let mut number = 0;
        let mut any = false;
        while crate::lines::read(&mut reader, &mut line, LINE_BYTES_MAX, &mut number)? {
            let text = line.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let key: Option<u64> = std::str::from_utf8(text)
                .ok()
                .and_then(|text| text.parse().ok());
            let count = key
                .and_then(|key| usize::try_from(key).ok())
                .and_then(|key| counts.get_mut(key));
            match (key, count) {
                (_, Some(count)) => {
                    *count += 1.0;
                    any = true;
                }
                (Some(key), None) => {
                    let what = format!(
                        "there is no key {key}: keys are numbered from 0, and there are {keys}"
                    );
                    return Err(KeysError::Line { number, what });
                }
                (None, None) => {
                    let what = "a line holds one key, a decimal number".to_owned();
                    return Err(KeysError::Line { number, what });
                }
            }
        }
        if any {
            Ok(KeyDistribution::Weights(counts))
        } else {
            Err(KeysError::NoWeight)
        }
    }
}

/// The numbers below `keys` in random order.
fn shuffled(keys: usize, seed: u64) -> Result<Vec<u32>, KeysError> {
    match u32::try_from(keys) {
        Ok(keys) => Ok(random::permutation(keys, seed)),
        Err(_) => Err(KeysError::TooMany { keys }),
    }
}

impl fmt::Display for KeyDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyDistribution::Uniform => f.write_str("uniform"),
            KeyDistribution::Zipf { exponent, .. } => write!(f, "zipf:{exponent}"),
            KeyDistribution::HotSet {
                keys_share,
                operations_share,
                ..
            } => write!(f, "hot:{keys_share}:{operations_share}"),
            KeyDistribution::Weights(_) => f.write_str("weights"),
        }
    }
}

impl FromStr for KeyDistribution {
    type Err = KeysError;

    /// `uniform`, `zipf:S`, or `hot:K:O` with the shares of keys and operations. Seeds are 1.
    fn from_str(text: &str) -> Result<KeyDistribution, KeysError> {
        let number = |text: &str| text.parse::<f64>().ok();
        let unknown = || KeysError::Unknown(text.chars().take(40).collect());
        if text == "uniform" {
            return Ok(KeyDistribution::Uniform);
        }
        let distribution = if let Some(exponent) = text.strip_prefix("zipf:") {
            KeyDistribution::Zipf {
                exponent: number(exponent).ok_or_else(unknown)?,
                seed: 1,
            }
        } else {
            let shares = text
                .strip_prefix("hot:")
                .and_then(|text| text.split_once(':'));
            let (keys, operations) = shares.ok_or_else(unknown)?;
            KeyDistribution::HotSet {
                keys_share: number(keys).ok_or_else(unknown)?,
                operations_share: number(operations).ok_or_else(unknown)?,
                seed: 1,
            }
        };
        // Bounds do not depend on the number of keys.
        distribution.weights(1).map(|_| distribution)
    }
}

/// Why there is no such distribution of keys.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum KeysError {
    /// A text that names none.
    Unknown(String),
    /// Zipf's exponent is negative or no number.
    Exponent(f64),
    /// A share is not between 0 and 1.
    Share(f64),
    /// There is not one weight for each key.
    Number {
        /// How many weights there are.
        weights: usize,
        /// How many keys or places.
        keys: usize,
    },
    /// No key is ever asked for.
    NoWeight,
    /// More keys than can be numbered.
    TooMany {
        /// How many.
        keys: usize,
    },
    /// A line of a trace that holds no key, or could not be read.
    Line {
        /// The line, from 1 on.
        number: u64,
        /// What is wrong with it.
        what: String,
    },
}

impl From<crate::lines::LineError> for KeysError {
    fn from(error: crate::lines::LineError) -> KeysError {
        KeysError::Line {
            number: error.number,
            what: error.what,
        }
    }
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeysError::Unknown(text) => write!(
                f,
                "unknown key distribution {text:?}: uniform, zipf:S, or hot:K:O with shares of \
                 keys and operations"
            ),
            KeysError::Exponent(exponent) => {
                write!(
                    f,
                    "a Zipf exponent is a number and at least 0, not {exponent}"
                )
            }
            KeysError::Share(share) => write!(f, "a share is between 0 and 1, not {share}"),
            KeysError::Number { weights, keys } => {
                write!(f, "there are {weights} weights for {keys} keys")
            }
            KeysError::NoWeight => f.write_str("no key is ever asked for"),
            KeysError::TooMany { keys } => write!(f, "{keys} keys are more than 2^32"),
            KeysError::Line { number, what } => write!(f, "line {number}: {what}"),
        }
    }
}

impl std::error::Error for KeysError {}

#[cfg(test)]
mod tests;
