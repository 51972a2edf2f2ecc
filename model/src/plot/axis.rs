//! Axes: which numbers they take, from where to where they go, and which of their numbers are
//! written.

/// More ticks than this are never drawn.
const TICKS_MAX: usize = 12;
/// Ticks that a linear axis aims at.
const TICKS_WANTED: f64 = 8.0;
/// The share of the data's range that stays free on either side.
const MARGIN: f64 = 0.04;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    Linear,
    /// Decades, or octaves.
    Logarithmic {
        base: u8,
    },
}

impl Scale {
    /// Where a number lies on a scale that is not bounded yet.
    fn position(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Logarithmic { base: 2 } => value.log2(),
            Scale::Logarithmic { .. } => value.log10(),
        }
    }

    /// Which number lies at a position.
    fn value(self, position: f64) -> f64 {
        match self {
            Scale::Linear => position,
            Scale::Logarithmic { base } => f64::from(base).powf(position),
        }
    }
}

/// An axis of a chart: its name, with the unit, and its scale.
#[derive(Clone, Debug)]
pub struct Axis {
    pub(super) label: String,
    scale: Scale,
    has_zero: bool,
}

impl Axis {
    /// Equal differences are equally long.
    pub fn linear(label: &str) -> Axis {
        Axis {
            label: label.to_owned(),
            scale: Scale::Linear,
            has_zero: false,
        }
    }

    /// Equal ratios are equally long; the ticks are powers of ten. Takes positive numbers only.
    pub fn logarithmic(label: &str) -> Axis {
        Axis {
            scale: Scale::Logarithmic { base: 10 },
            ..Axis::linear(label)
        }
    }

    /// As [`logarithmic`](Axis::logarithmic), with powers of two for ticks: numbers of nodes, sizes
    /// of caches.
    pub fn powers_of_two(label: &str) -> Axis {
        Axis {
            scale: Scale::Logarithmic { base: 2 },
            ..Axis::linear(label)
        }
    }

    /// Lets a linear axis begin at 0 (or end there, if all is negative); a logarithmic one has no
    /// 0.
    #[must_use]
    pub fn from_zero(mut self) -> Axis {
        self.has_zero = true;
        self
    }

    /// Whether the axis has a place for a number.
    pub(super) fn takes(&self, value: f64) -> bool {
        value.is_finite() && (self.scale == Scale::Linear || value > 0.0)
    }

    /// The part of the axis that shows all of some numbers that it takes.
    pub(super) fn range(&self, values: impl Iterator<Item = f64>) -> Range {
        let positions = values.map(|value| self.scale.position(value));
        let ends = positions.fold(None, |ends: Option<(f64, f64)>, position| {
            Some(match ends {
                None => (position, position),
                Some((low, high)) => (low.min(position), high.max(position)),
            })
        });
        let (mut low, mut high) = ends.unwrap_or((0.0, 1.0));
        let zero = self.has_zero && self.scale == Scale::Linear;
        if zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        // One number has room on both sides, in proportion to what it is.
        if high - low <= f64::EPSILON * low.abs().max(high.abs()) {
            let room = (low.abs() / 10.0).max(if zero { 1.0 } else { 0.5 });
            if !zero || low < 0.0 {
                low -= room;
            }
            high += room;
        } else {
            // Halves, because the difference of two numbers may be none.
            let room = 2.0 * MARGIN * (high / 2.0 - low / 2.0);
            low -= if zero && low >= 0.0 { 0.0 } else { room };
            high += if zero && high <= 0.0 { 0.0 } else { room };
        }
        Range {
            scale: self.scale,
            low: low.max(f64::MIN / 2.0),
            high: high.min(f64::MAX / 2.0),
        }
    }
}

/// A written number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// A part of an axis, from a position to a larger one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    scale: Scale,
    low: f64,
    high: f64,
}

impl Range {
    /// Where a number lies between the ends: 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let position = self.scale.position(value);
        let share = (position - self.low) / (self.high - self.low);
        if share.is_finite() {
            share.clamp(0.0, 1.0)
        } else {
            0.5
        }
    }

    /// The numbers that are written at the axis, ascending.
    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut ticks = match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Logarithmic { base } => self.power_ticks(base),
        };
        ticks.retain(|tick| tick.value.is_finite());
        ticks.dedup_by(|a, b| a.label == b.label);
        ticks
    }

    /// Multiples of 1, 2 or 5 times a power of ten.
    fn linear_ticks(&self) -> Vec<Tick> {
        let rough = (self.high - self.low) / TICKS_WANTED;
        let decade = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .map(|digit| digit * decade)
            .into_iter()
            .find(|&step| step >= rough)
            .unwrap_or(rough);
        if !(step.is_finite() && step > 0.0) {
            return Vec::new();
        }
        let first = (self.low / step).ceil();
        (0..=TICKS_MAX)
            .map(|i| (first + i as f64) * step)
            .take_while(|&value| value <= self.high)
            .map(|value| Tick {
                // -0 is written as 0.
                value: value + 0.0,
                label: stepped_number(value + 0.0, step),
            })
            .collect()
    }

    /// Powers of the base, every so many of them; with what lies between where there are few.
    fn power_ticks(&self, base: u8) -> Vec<Tick> {
        let span = self.high - self.low;
        if base == 10 && span < 2.5 {
            return self.digit_ticks();
        }
        if base == 2 && span < 1.5 {
            let values = Range {
                scale: Scale::Linear,
                low: self.scale.value(self.low),
                high: self.scale.value(self.high),
            };
            return values.linear_ticks();
        }
        let stride = (span / 9.0).ceil().max(1.0);
        let first = (self.low / stride).ceil();
        // All as they are, or all as powers.
        let plain = match base {
            2 => self.low >= 0.0 && self.high < 17.0,
            _ => self.low >= -3.5 && self.high < 4.5,
        };
        (0..=TICKS_MAX)
            .map(|i| (first + i as f64) * stride)
            .take_while(|&exponent| exponent <= self.high)
            .map(|exponent| Tick {
                value: self.scale.value(exponent),
                label: power(base, exponent, plain),
            })
            .collect()
    }

    /// 1, 2 and 5 times powers of ten, all digits where the axis is short.
    fn digit_ticks(&self) -> Vec<Tick> {
        let digits: &[f64] = match self.high - self.low {
            span if span < 0.3 => {
                let values = Range {
                    scale: Scale::Linear,
                    low: self.scale.value(self.low),
                    high: self.scale.value(self.high),
                };
                return values.linear_ticks();
            }
            span if span < 0.9 => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0],
            _ => &[1.0, 2.0, 5.0],
        };
        let first = self.low.floor();
        (0..4)
            .map(|decade| 10f64.powf(first + f64::from(decade)))
            .flat_map(|decade| digits.iter().map(move |digit| digit * decade))
            .filter(|value| (self.low..=self.high).contains(&value.log10()))
            .map(|value| Tick {
                value,
                label: short_number(value),
            })
            .collect()
    }
}

/// A power, plain or with its exponent raised.
fn power(base: u8, exponent: f64, plain: bool) -> String {
    if plain {
        return short_number(f64::from(base).powf(exponent));
    }
    let raised = |digit: char| match digit {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    };
    let exponent: String = format!("{exponent:.0}").chars().map(raised).collect();
    format!("{base}{exponent}")
}

/// A multiple of a step, with the decimals that the step has.
fn stepped_number(value: f64, step: f64) -> String {
    let size = value.abs().max(step);
    if !(1e-4..1e7).contains(&size) || step < 1e-6 {
        return short_number(value);
    }
    let decimals = (0..7).find(|&decimals| {
        let scaled = step * 10f64.powi(decimals);
        (scaled - scaled.round()).abs() < 1e-6 * scaled
    });
    let decimals = usize::try_from(decimals.unwrap_or(6)).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// A number in at most four digits or so: `1.63`, `35.2`, `262144`, `1.5e9`.
pub(super) fn short_number(value: f64) -> String {
    let size = value.abs();
    let text = match size {
        0.0 => return String::from("0"),
        _ if !(1e-3..1e7).contains(&size) => return format!("{value:.3e}").replace(".000e", "e"),
        _ if size < 0.1 => format!("{value:.4}"),
        _ if size < 10.0 => format!("{value:.2}"),
        _ if size < 100.0 => format!("{value:.1}"),
        _ => return format!("{value:.0}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
