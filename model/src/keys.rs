//! Which keys operations ask for, and how often.
//!
//! A distribution is a rule until the number of keys is known; then it gives one weight for each.
//! Which keys are frequent is drawn from a seed, so neighbours are no more alike than any two keys.

use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

use crate::Error;
use crate::lines::{self, TextError};
use crate::shape::random;

/// How often operations ask for each key.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum KeyDistribution {
    /// Each equally often.
    #[default]
    Uniform,
    /// The r-th most frequent in proportion to 1 / r^exponent (G. Zipf, *Human Behavior and the
    /// Principle of Least Effort*, 1949). An exponent of 0.99 is what YCSB calls Zipfian.
    Zipf {
        /// At least 0, which is uniform.
        exponent: f64,
        /// Chooses which keys are frequent.
        seed: u64,
    },
    /// A share of the keys gets a share of the operations, each of them equally often.
    HotSet {
        /// How many of the keys are hot, from 0 to 1; rounded to whole keys, at least one.
        keys_share: f64,
        /// How many of the operations are for those, from 0 to 1.
        operations_share: f64,
        /// Chooses which keys are hot.
        seed: u64,
    },
    /// Each key in proportion to its weight, in the order of their numbers. Weights that are
    /// negative or no numbers count as 0.
    Weights(Vec<f64>),
}

impl KeyDistribution {
    /// The weight of each of `keys` keys, `None` where all are the same. O(keys).
    ///
    /// # Errors
    /// For weights of another number of keys or none above 0, and for exponents
    /// and shares that are out of bounds.
    pub fn weights(&self, keys: usize) -> Result<Option<Vec<f64>>, Error> {
        match *self {
            KeyDistribution::Uniform => Ok(None),
            KeyDistribution::Zipf { exponent, seed } => {
                if !(exponent >= 0.0 && exponent.is_finite()) {
                    let what = format!("a Zipf exponent is a number of at least 0, not {exponent}");
                    return Err(Error::new(what));
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
                let shares = [keys_share, operations_share];
                if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
                    let what = format!("a share is between 0 and 1, not {share}");
                    return Err(Error::new(what));
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
                // Where all are hot, the operations for others have no key, and count for none.
                let (hot_weight, cold_weight) = match keys - hot {
                    0 => (1.0, 0.0),
                    cold => (
                        operations_share / hot as f64,
                        (1.0 - operations_share) / cold as f64,
                    ),
                };
                let mut weights = vec![cold_weight; keys];
                for key in shuffled(keys, seed)?.into_iter().take(hot) {
                    weights[key as usize] = hot_weight;
                }
                Ok(Some(weights))
            }
            KeyDistribution::Weights(ref weights) => {
                if weights.len() != keys {
                    let what = format!("there are {} weights for {keys} keys", weights.len());
                    return Err(Error::new(what));
                }
                let is_usable = |&weight: &f64| weight > 0.0 && weight.is_finite();
                if keys > 0 && !weights.iter().any(is_usable) {
                    return Err(Error::new(NO_KEY));
                }
                Ok(Some(weights.clone()))
            }
        }
    }

    /// Counts the keys of a trace: one a line, as a decimal number below `keys`. Empty lines and
    /// those that begin with `#` are skipped. Reads line by line.
    ///
    /// # Errors
    /// [`TextError`] names the first line that holds no key; also when there is no key at all.
    pub fn read_trace(reader: impl BufRead, keys: usize) -> Result<KeyDistribution, TextError> {
        let mut counts = vec![0.0; keys];
        lines::for_each(reader, &["#"], |_, text| {
            let key: u64 = text
                .parse()
                .map_err(|_| "a line holds one key, a decimal number")?;
            let index = usize::try_from(key).ok();
            let count = index.and_then(|key| counts.get_mut(key)).ok_or_else(|| {
                format!("there is no key {key}: keys are numbered from 0, and there are {keys}")
            })?;
            *count += 1.0;
            Ok(())
        })?;
        if counts.iter().any(|&count| count > 0.0) {
            return Ok(KeyDistribution::Weights(counts));
        }
        Err(TextError {
            line: None,
            what: NO_KEY.to_owned(),
        })
    }
}

const NO_KEY: &str = "no key is ever asked for";

/// The numbers below `keys` in random order.
fn shuffled(keys: usize, seed: u64) -> Result<Vec<u32>, Error> {
    match u32::try_from(keys) {
        Ok(keys) => Ok(random::permutation(keys, seed)),
        Err(_) => Err(Error::new(format!("{keys} keys are more than 2^32"))),
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
    type Err = Error;

    /// `uniform`, `zipf:S`, or `hot:K:O` with the shares of keys and operations. Seeds are 1.
    fn from_str(text: &str) -> Result<KeyDistribution, Error> {
        let seed = 1;
        let mut words = text.split(':');
        let name = words.next();
        let numbers: Option<Vec<f64>> = words.map(|word| word.parse().ok()).collect();
        let distribution = match (name, numbers.as_deref()) {
            (Some("uniform"), Some([])) => KeyDistribution::Uniform,
            (Some("zipf"), Some(&[exponent])) => KeyDistribution::Zipf { exponent, seed },
            (Some("hot"), Some(&[keys_share, operations_share])) => KeyDistribution::HotSet {
                keys_share,
                operations_share,
                seed,
            },
            _ => {
                let start: String = text.chars().take(40).collect();
                return Err(Error::new(format!(
                    "unknown key distribution {start:?}: uniform, zipf:S, or hot:K:O with shares \
                     of keys and operations"
                )));
            }
        };
        // Bounds do not depend on the number of keys.
        distribution.weights(1).map(|_| distribution)
    }
}

#[cfg(test)]
mod tests;
