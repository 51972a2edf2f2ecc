//! How far a machine's numbers can be trusted.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Machine, Origin, Verdict};

/// Between which factors of a prediction the clock is expected.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct ErrorBand {
    /// Measured over predicted, at least; at most 1.
    pub low: f64,
    /// Measured over predicted, at most; at least 1.
    pub high: f64,
}

/// Other programs change what is left of a shared cache within minutes.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Memory, kernel or other guests may change within days.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

impl Machine {
    /// The factors of a predicted time between which the clock is expected.
    ///
    /// | numbers | measured over predicted |
    /// |---|---|
    /// | calibrated, quiet, at most ten minutes old | 0.85 to 1.2 |
    /// | the same, busy or not known | 0.8 to 1.25 |
    /// | the same, loud | 0.7 to 1.4 |
    /// | in the short form | 1.05 times wider |
    /// | older than ten minutes; a day | 1.15, 1.4 times wider |
    /// | defaults of this machine, presets | 0.4 to 2.5 |
    ///
    /// The first rows rest on dependent searches in trees of 2^16 to 2^22 nodes on two virtual
    /// processors of an Emerald Rapids, November 2026 (`ccmodel-lab validate`). With five programs
    /// and more to each processor, a loud machine, 168 ratios lay between 0.77 and 1.30. With fewer
    /// programs running, 96 ratios lay between 0.88 and 1.19. The factors of the short form and of
    /// age, and the last row, are judgement.
    pub fn error_band(&self) -> ErrorBand {
        self.error_band_at(SystemTime::now())
    }

    fn error_band_at(&self, now: SystemTime) -> ErrorBand {
        let Origin::Calibrated {
            unix_seconds,
            quick,
        } = self.origin
        else {
            return ErrorBand {
                low: 0.4,
                high: 2.5,
            };
        };
        let verdict = (self.evidence.quietness.as_ref()).map(|quietness| quietness.verdict);
        let (low, high) = match verdict {
            Some(Verdict::Quiet) => (0.85, 1.2),
            Some(Verdict::Busy) | None => (0.8, 1.25),
            Some(Verdict::Loud) => (0.7, 1.4),
        };
        let measured = UNIX_EPOCH.checked_add(Duration::from_secs(unix_seconds));
        // A machine file from the future is of unknown age.
        let by_age = match measured.and_then(|measured| now.duration_since(measured).ok()) {
            Some(age) if age <= FRESH => 1.0,
            Some(age) if age <= STALE => 1.15,
            _ => 1.4,
        };
        let wider = by_age * if quick { 1.05 } else { 1.0 };
        ErrorBand {
            low: low / wider,
            high: high * wider,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Quietness;

    #[test]
    fn bands_widen_with_noise_and_age() {
        let width = |verdict, quick, seconds| {
            let mut machine = Machine::thesis();
            machine.origin = Origin::Calibrated {
                unix_seconds: 1000,
                quick,
            };
            let quietness = Quietness::new(Vec::new(), None, None);
            machine.evidence.quietness = Some(Quietness {
                verdict,
                ..quietness
            });
            let band = machine.error_band_at(UNIX_EPOCH + Duration::from_secs(seconds));
            assert!(band.low < 1.0 && band.high > 1.0);
            band.high / band.low
        };
        let preset = Machine::thesis().error_band();
        let widths = [
            width(Verdict::Quiet, false, 1060),
            width(Verdict::Quiet, true, 1060),
            width(Verdict::Quiet, false, 5000),
            // From the future: of unknown age.
            width(Verdict::Quiet, false, 10),
            preset.high / preset.low,
        ];
        assert!(widths.is_sorted_by(|a, b| a < b), "{widths:?}");
        let verdicts = [Verdict::Quiet, Verdict::Busy, Verdict::Loud];
        let widths = verdicts.map(|verdict| width(verdict, false, 1060));
        assert!(widths.is_sorted_by(|a, b| a < b), "{widths:?}");
        let old = width(Verdict::Quiet, false, 1_000_000);
        assert!((old - width(Verdict::Quiet, false, 10)).abs() < 1e-9);
    }
}
