//! How often a cache sees a block that another cache stands in front of.
//!
//! The second cache gets a request for a block only when the first one misses it. Such requests are
//! rarer than touches, and never come soon after each other. Let touches come at rate `rho`, and
//! let the first cache hold a block for a time `T`
//! after each touch (its characteristic time). Then a request passes when the touch before it is
//! older than `T`, and given a request at time 0, the next ones have the density
//!
//! ```text
//! 0 before T,    lambda = rho exp(-rho T) from T on
//! ```
//!
//! whatever happened in between, since only the last stretch of length `T` counts. So the time to
//! the next request has the tail `S` with
//!
//! ```text
//! S'(t) = -lambda S(t - T),    S = 1 up to T
//! ```
//!
//! of which all else follows: the request at the end of such a time misses a second cache of
//! characteristic time `t` with probability `S(t)`, and the block is there with probability `lambda
//! (integral of S from 0 to t) = 1 - S(t + T)`. With `x = t / T` one number is left, `lambda T = -m
//! ln m`, where `m = exp(-rho T)` is the first cache's miss ratio. It is at most 1/e, so `S` never
//! oscillates; it is a sum of exponentials, two of which are real:
//!
//! ```text
//! S(x) ~ sum of exp(-r x) / (1 - r)  over the roots of  r = lambda T exp(r)
//! ```
//!
//! The same approximation, with only the first request after `T`, describes cascades of caches in
//! networks (Melazzi, Bianchi, Caponi and Detti, "A general, tractable and accurate model for a
//! cascade of LRU caches", IEEE Communications Letters 2014).

/// Miss ratios from here on leave a stream as it is.
const UNFILTERED: f64 = 1.0 - 1e-6;
/// Requests as rare as this never come.
const NEVER: f64 = 1e-15;
/// Above this probability, a block's misses do not depend on when it was touched.
const NEARLY_CERTAIN: f64 = 1.0 - 1e-3;
/// Up to here the power series of `S` is summed; from here on two of its exponentials are left.
const SERIES_UNITS: f64 = 5.0;
/// Where both real roots meet, their sum is a difference of large numbers: loads stay below this.
const CRITICAL: f64 = 0.3678;

/// The requests for one block that reach a cache.
///
/// Time is counted in operations. The block is touched by an operation with probability `p`, of
/// which the share `reaching` gets past the caches before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stream {
    /// P(an operation requests the block here): `lambda`.
    rate: f64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Every operation alike: `S(t) = exp(-decay t)`.
    Memoryless { decay: f64 },
    /// After a dead time, as above; roots and weights of the two exponentials.
    Filtered {
        dead_time: f64,
        load: f64,
        slow: f64,
        fast: f64,
    },
    /// No request at all.
    Silent,
}

impl Stream {
    /// The requests that are left of touches with probability `probability` an operation.
    pub(crate) fn new(probability: f64, reaching: f64) -> Stream {
        let probability = probability.clamp(0.0, 1.0);
        let reaching = reaching.clamp(0.0, 1.0);
        let rate = probability * reaching;
        let kind = if rate.is_nan() || rate <= NEVER {
            Kind::Silent
        } else if reaching > UNFILTERED || probability > NEARLY_CERTAIN {
            Kind::Memoryless {
                decay: -(-rate).ln_1p(),
            }
        } else {
            let touches = -(-probability).ln_1p();
            let load = (-reaching * reaching.ln()).min(CRITICAL);
            Kind::Filtered {
                dead_time: -reaching.ln() / touches,
                load,
                slow: slow_root(load),
                fast: fast_root(load),
            }
        };
        Stream { rate, kind }
    }

    /// Requests an operation.
    pub(crate) fn rate(&self) -> f64 {
        if self.kind == Kind::Silent {
            0.0
        } else {
            self.rate
        }
    }

    /// Probability that none of `operations` operations after a request makes another: `S`.
    pub(crate) fn none_within(&self, operations: f64) -> f64 {
        match self.kind {
            Kind::Silent => 1.0,
            Kind::Memoryless { decay } if decay.is_infinite() => {
                if operations > 0.0 {
                    0.0
                } else {
                    1.0
                }
            }
            Kind::Memoryless { decay } => (-decay * operations).exp(),
            Kind::Filtered {
                dead_time,
                load,
                slow,
                fast,
            } => tail(operations / dead_time, load, slow, fast),
        }
    }

    /// Mean of [`none_within`](Stream::none_within) over `from`, .., `to` - 1: P(gap >= t) for t in
    /// `(from, to]`.
    pub(crate) fn mean_none_within(&self, from: f64, to: f64) -> f64 {
        match self.kind {
            Kind::Silent => 1.0,
            Kind::Memoryless { .. } => {
                (self.none_within(from) - self.none_within(to)) / (self.rate * (to - from))
            }
            Kind::Filtered { .. } => {
                // Filtered streams change over times longer than one operation: Simpson's rule.
                let middle = self.none_within(0.5 * (from + to));
                (self.none_within(from) + 4.0 * middle + self.none_within(to)) / 6.0
            }
        }
    }

    /// How long the caches before hold the block after a touch; 0 where they hold nothing, or do
    /// not go by time.
    pub(crate) fn dead_time(&self) -> f64 {
        match self.kind {
            Kind::Filtered { dead_time, .. } => dead_time,
            Kind::Silent | Kind::Memoryless { .. } => 0.0,
        }
    }

    /// Sum of [`none_within`](Stream::none_within) over 0, .., `operations` - 1: expected
    /// operations up to the next request, at most so many.
    pub(crate) fn waiting(&self, operations: f64) -> f64 {
        match self.kind {
            Kind::Silent => operations,
            Kind::Memoryless { .. } => (1.0 - self.none_within(operations)) / self.rate,
            Kind::Filtered { .. } => {
                // Near 0 the difference would be one of rounding, and S is 1 there.
                let requested = self.requested_within(operations);
                if requested < 1e-9 {
                    operations
                } else {
                    (requested / self.rate).min(operations)
                }
            }
        }
    }

    /// Probability that any of `operations` operations in a row requests the block.
    pub(crate) fn requested_within(&self, operations: f64) -> f64 {
        match self.kind {
            Kind::Silent => 0.0,
            Kind::Memoryless { .. } => 1.0 - self.none_within(operations),
            Kind::Filtered {
                dead_time,
                load,
                slow,
                fast,
            } => {
                let units = operations / dead_time;
                if units <= 1.0 {
                    load * units
                } else {
                    1.0 - tail(units + 1.0, load, slow, fast)
                }
            }
        }
        .clamp(0.0, 1.0)
    }
}

/// `S(x)` of the module's docs, for `load = lambda T`.
fn tail(units: f64, load: f64, slow: f64, fast: f64) -> f64 {
    if units <= 1.0 {
        return 1.0;
    }
    if units > SERIES_UNITS {
        let slow_part = (-slow * units).exp() / (1.0 - slow);
        let fast_part = if fast.is_finite() {
            (-fast * units).exp() / (1.0 - fast)
        } else {
            0.0
        };
        return (slow_part + fast_part).clamp(0.0, 1.0);
    }
    // Integrating piece by piece: S(x) = sum over k of (-load)^k (x - k)^k / k! for k < x + 1.
    let mut sum = 1.0;
    let mut factor = 1.0;
    let mut k = 1.0;
    while units > k {
        factor *= -load / k;
        sum += factor * (units - k).powf(k);
        k += 1.0;
    }
    sum.clamp(0.0, 1.0)
}

/// The root below 1 of `r = load exp(r)`, for a load of at most 1/e.
fn slow_root(load: f64) -> f64 {
    // The left side less the right one is concave and negative at 0: Newton's method comes from the
    // left.
    let mut root = 0.0f64;
    for _ in 0..60 {
        let power = load * root.exp();
        let step = (power - root) / (1.0 - power);
        root += step;
        if step.abs() < 1e-14 {
            break;
        }
    }
    root
}

/// The root above 1, infinite where there is no load.
fn fast_root(load: f64) -> f64 {
    if load < 1e-12 {
        return f64::INFINITY;
    }
    // r = ln(r / load), from above: r - ln r grows beyond 1.
    let mut root = 2.0 - 2.0 * load.ln();
    for _ in 0..60 {
        let step = (root - root.ln() + load.ln()) / (1.0 - 1.0 / root);
        root -= step;
        if step.abs() < 1e-13 {
            break;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn unfiltered_streams_are_geometric() {
        let stream = Stream::new(0.25, 1.0);
        assert!((stream.none_within(3.0) - 0.421_875).abs() < 1e-12);
        assert!((stream.requested_within(3.0) - 0.578_125).abs() < 1e-12);
        // P(gap >= 1), P(gap >= 2).
        assert!((stream.mean_none_within(0.0, 2.0) - 0.875).abs() < 1e-12);
        assert!((stream.waiting(2.0) - 1.75).abs() < 1e-12);
        assert!((Stream::new(1.0, 1.0).waiting(9.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_gets_past_a_cache_that_never_misses() {
        for stream in [
            Stream::new(1.0, 0.0),
            Stream::new(0.0, 1.0),
            Stream::new(f64::NAN, 0.5),
        ] {
            assert!(stream.rate().abs() < 1e-12);
            assert!((stream.none_within(1e9) - 1.0).abs() < 1e-12);
            assert!(stream.requested_within(1e9).abs() < 1e-12);
            assert!((stream.waiting(7.0) - 7.0).abs() < 1e-12);
        }
    }

    #[test]
    fn both_forms_of_the_tail_meet() {
        for load in [0.01, 0.1, 0.2, 0.3, 0.35, CRITICAL] {
            let (slow, fast) = (slow_root(load), fast_root(load));
            assert!(slow < 1.0 && fast > 1.0 && (slow - load * slow.exp()).abs() < 1e-12);
            let below = tail(SERIES_UNITS - 1e-9, load, slow, fast);
            let above = tail(SERIES_UNITS + 1e-9, load, slow, fast);
            assert!(
                (below - above).abs() < 2e-4,
                "load {load}: {below} and {above}"
            );
        }
    }

    /// The definition: touches at random, the first cache as a dead time.
    #[test]
    fn agrees_with_touches_one_by_one() {
        let (probability, dead_time) = (0.02f64, 90);
        let reaching = (1.0 - probability).powi(dead_time);
        let stream = Stream::new(probability, reaching);
        // P(no request within t after one), by the recurrence of the discrete case.
        let rate = probability * reaching;
        let mut tail = vec![1.0];
        for t in 1..=2000usize {
            let before = t.checked_sub(1 + usize::try_from(dead_time).unwrap());
            tail.push(tail[t - 1] - rate * before.map_or(0.0, |u| tail[u]));
        }
        for t in [50, 100, 200, 500, 1000, 2000u32] {
            let exact = tail[t as usize];
            let found = stream.none_within(f64::from(t));
            assert!((exact - found).abs() < 5e-3, "{t}: {exact} and {found}");
        }
    }

    quickcheck! {
        fn is_a_distribution(probability: f64, reaching: f64, a: u16, b: u16) -> bool {
            let unit = |x: f64| if x.is_finite() { x.abs().fract() } else { 0.5 };
            let stream = Stream::new(unit(probability), unit(reaching));
            let (near, far) = (f64::from(a.min(b)), f64::from(a.max(b)));
            let eps = 1e-3;
            stream.none_within(far) <= stream.none_within(near) + eps
                && stream.requested_within(near) <= stream.requested_within(far) + eps
                && (0.0..=1.0).contains(&stream.none_within(far))
                && stream.waiting(far) <= far + 1e-9
                && stream.mean_none_within(near, far + 1.0) <= 1.0 + 1e-9
        }
    }
}
