//! What calibration measured, kept beside what was concluded from it.

use std::fmt;

#[cfg(feature = "json")]
use serde::{Deserialize, Serialize};

/// One point of a measured curve.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
pub struct CurvePoint {
    /// Bytes of a working set or block, pages, or chains of loads.
    #[cfg_attr(
        feature = "json",
        serde(alias = "bytes", alias = "pages", alias = "chains")
    )]
    pub at: f64,
    /// Nanoseconds a load or, in [`Evidence::scattered`], a search.
    pub ns: f64,
}

/// What calibration measured, kept beside what was concluded from it.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize), serde(default))]
pub struct Evidence {
    /// Latency curve in 4 KiB pages: dependent loads of random lines, by bytes of the working set.
    pub small_pages: Vec<CurvePoint>,
    /// The same in 2 MiB pages.
    pub huge_pages: Vec<CurvePoint>,
    /// Nanoseconds of a search in a tree whose aligned blocks of this many bytes were scattered;
    /// the last entry is the tree as it was.
    pub scattered: Vec<CurvePoint>,
    /// Whether colours keep parts of a cache apart, for each cache that was probed.
    pub colours: Vec<ColourProbe>,
    /// Nanoseconds from the address of a load to its value, where the first-level cache serves it.
    pub hit_ns: Option<f64>,
    /// What translating addresses costs.
    pub translation: Option<TranslationProbe>,
    /// Nanoseconds of a far load, by the number of independent chains of loads.
    pub overlap: Vec<CurvePoint>,
    /// How quiet the machine was meanwhile.
    pub quietness: Option<Quietness>,
}

/// A buffer of translations, as it shows from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
pub struct TranslationLevel {
    /// Most pages that could be visited in turns without missing it.
    pub entries: u64,
    /// What missing it adds to a load, in nanoseconds.
    pub miss_ns: f64,
}

/// What translating addresses adds to a load, by the number of pages of 4 KiB that are visited in
/// turns.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
pub struct TranslationProbe {
    /// In pages of 4 KiB.
    pub small_pages: Vec<CurvePoint>,
    /// The same lines in pages of 2 MiB.
    pub huge_pages: Vec<CurvePoint>,
    /// The buffers that the small pages show, the first-level one first; missing the last one is a
    /// walk through the page table. Two where all is well, fewer where a step drowned in noise.
    pub levels: Vec<TranslationLevel>,
}

impl TranslationProbe {
    /// Whether huge pages extend what the buffers reach: they save more than 70 % of what small
    /// ones cost. Where a hypervisor backs huge pages with small ones, only the walks are shorter.
    /// `None` when no buffer showed.
    pub fn huge_pages_reach(&self) -> Option<bool> {
        let (small, huge) = (self.small_pages.last()?, self.huge_pages.last()?);
        (!self.levels.is_empty() && small.ns > 0.0).then_some(huge.ns < 0.3 * small.ns)
    }
}

/// The same short chase again and again, before everything else was measured and after it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
pub struct ChaseReading {
    /// What the chase keeps busy: `L1`, `L2`, `memory`.
    pub name: String,
    /// Median nanoseconds a load before.
    pub before_ns: f64,
    /// Median nanoseconds a load after.
    pub after_ns: f64,
    /// The ninth decile of the times over the first, less 1; the larger of before and after.
    pub spread: f64,
}

impl ChaseReading {
    /// How much the median moved: the larger over the smaller, less 1.
    pub fn drift(&self) -> f64 {
        let less = self.before_ns.min(self.after_ns);
        let more = self.before_ns.max(self.after_ns);
        if less > 0.0 { more / less - 1.0 } else { 0.0 }
    }
}

/// How far a measurement can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "json", serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// Nothing else ran.
    Quiet,
    /// Other programs took their share of the last-level cache and the memory now and then.
    Busy,
    /// Others took so much that the numbers hold for that moment only.
    Loud,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Quiet => "quiet",
            Verdict::Busy => "busy",
            Verdict::Loud => "loud",
        })
    }
}

/// How quiet the machine was while it was measured.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
pub struct Quietness {
    /// The verdict of the worst reading. A spread or drift of a chase is quiet up to 10 % and loud
    /// beyond 40 %, stolen time up to 1 % and beyond 5 %, load up to 0.75 programs a processor and
    /// beyond 1.5.
    pub verdict: Verdict,
    /// Chases that were repeated.
    pub readings: Vec<ChaseReading>,
    /// Part of the processors' time that a hypervisor gave to others meanwhile, if known.
    pub steal_share: Option<f64>,
    /// Runnable programs for each processor in the minute before the end, if known: about
    /// `1 / processors` when this was the only one.
    pub load_per_processor: Option<f64>,
}

impl Quietness {
    /// Derives the verdict from the readings.
    pub fn new(
        readings: Vec<ChaseReading>,
        steal_share: Option<f64>,
        load_per_processor: Option<f64>,
    ) -> Quietness {
        let grade = |value: f64, quiet: f64, loud: f64| match value {
            value if value <= quiet => Verdict::Quiet,
            value if value <= loud => Verdict::Busy,
            _ => Verdict::Loud,
        };
        let chases = readings.iter();
        let verdict = chases
            .map(|reading| grade(reading.spread.max(reading.drift()), 0.10, 0.40))
            .chain(steal_share.map(|share| grade(share, 0.01, 0.05)))
            .chain(load_per_processor.map(|load| grade(load, 0.75, 1.5)))
            .max();
        Quietness {
            verdict: verdict.unwrap_or(Verdict::Quiet),
            readings,
            steal_share,
            load_per_processor,
        }
    }
}

impl fmt::Display for Quietness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.verdict)?;
        for (i, reading) in self.readings.iter().enumerate() {
            let separator = if i == 0 { ":" } else { "," };
            let (spread, drift) = (100.0 * reading.spread, 100.0 * reading.drift());
            let name = &reading.name;
            write!(
                f,
                "{separator} {name} spread {spread:.0} % drift {drift:.0} %"
            )?;
        }
        if let Some(steal) = self.steal_share {
            write!(f, ", stolen time {:.1} %", 100.0 * steal)?;
        }
        if let Some(load) = self.load_per_processor {
            write!(f, ", load {load:.2} a processor")?;
        }
        Ok(())
    }
}

/// What loads of a few hot lines cost beside many cold ones, of the same colour of a cache and of
/// another one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "json", derive(Serialize, Deserialize))]
pub struct ColourProbe {
    /// The size of a way of the cache.
    pub way_bytes: u64,
    /// Nanoseconds of a hot load and some cold ones, when the cold lines are of another colour.
    pub other_ns: f64,
    /// The same, when they are of the same colour.
    pub same_ns: f64,
    /// What a miss of the cache costs.
    pub miss_ns: f64,
}

impl ColourProbe {
    /// Whether colours keep the two apart: they saved more than 15 % of the hot loads from missing.
    pub fn works(&self) -> bool {
        self.miss_ns > 0.0 && self.same_ns - self.other_ns > 0.15 * self.miss_ns
    }
}
