//! What the clock has said of predictions.
//!
//! `report --suite advice` tries the changes of its programs, and fits these constants to those of
//! the training half: its rows `advice_fit_` have what belongs here. The other half judges them.

use super::Kind;
use crate::analyses::misses::Interval;

/// By kind, the exponent of a predicted gain that gives the measured one.
pub const EXPONENTS: [(Kind, f64); 7] = [
    (Kind::Hint, 1.0),
    (Kind::Morph, 1.0),
    (Kind::Container, 1.0),
    (Kind::FieldOrder, 1.0),
    (Kind::Split, 1.0),
    (Kind::Group, 1.0),
    (Kind::Smaller, 1.0),
];
/// Four of five measured gains are within this factor of the predicted ones: by 21 tries of the
/// training half, on two loaded processors (28 November 2026; all of 38 tries: 1.73). Too few of
/// each kind for exponents.
pub const RANGE: f64 = 1.75;

/// The part of the time that is left, from the one that the replay finds: low, estimate, high.
pub(super) fn left(kind: Kind, replayed: [f64; 3]) -> [f64; 3] {
    let exponent = EXPONENTS.iter().find(|(of, _)| *of == kind);
    replayed.map(|left| left.powf(exponent.map_or(1.0, |(_, exponent)| *exponent)))
}

/// The range of a gain that holds in four of five tries.
pub(super) fn range(gain: Interval) -> Interval {
    Interval {
        low: gain.low.min(gain.estimate / RANGE),
        high: gain.high.max(gain.estimate * RANGE),
        ..gain
    }
}
