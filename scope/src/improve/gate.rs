//! Compares two setups: runs them in turns until the gain is known, or the time is up.

use std::time::Duration;

use serde::Serialize;

use super::interval;
use crate::analyses::misses::Interval;

/// A change is kept if it gains so much, as a ratio.
pub(crate) const MIN_GAIN: f64 = 1.03;
/// A gain is certain once its interval lies above.
const SURE_GAIN: f64 = 1.02;
/// Pairs without which there is no verdict.
const MIN_PAIRS: usize = 3;
/// More pairs make the interval hardly narrower.
const MAX_PAIRS: usize = 200;
/// A change is given up once a sufficient gain has only this probability, but not in the last
/// stage. An early look that is wrong here loses a gain; it never keeps a loss.
const HOPELESS: f64 = 0.05;
/// So many bytes more are no reason to refuse a change: an allocator's own tables take some.
const FREE_BYTES: f64 = 8e6;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setup {
    /// The program as it is.
    AsIs,
    /// The allocator, with the changes of these numbers.
    With(Vec<usize>),
}

/// What one run took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// What is compared; above 0, and lower is better.
    pub(crate) cost: f64,
    pub(crate) wall_s: f64,
    pub(crate) user_s: f64,
    pub(crate) peak_bytes: u64,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Ran(Sample),
    /// It did not do what the program as it is does; why.
    Wrong(String),
    /// The user wants an end.
    Interrupted,
}

/// Runs setups.
pub(crate) trait Lab {
    /// Runs a setup once.
    ///
    /// # Errors
    ///
    /// Nothing more can be measured.
    fn run(&mut self, setup: &Setup) -> Result<Outcome, String>;

    /// Makes what a setup needs to be run, which may take longer than a run; why that cannot be.
    ///
    /// # Errors
    ///
    /// Nothing more can be measured.
    fn prepare(&mut self, _setup: &Setup) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// Time since the search began.
    fn elapsed(&self) -> Duration;

    /// Called before each pair: what is compared, and what is known.
    fn show(&mut self, _base: &Setup, _setup: &Setup, _known: Option<Interval>) {}
}

/// What a comparison says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// At least [`MIN_GAIN`], and certainly more than 1.
    Gains,
    /// It is certainly slower.
    Loses,
    /// It gains nothing, or too little.
    NoGain,
    /// The time was up first.
    Unclear,
    /// It takes too much memory.
    Memory,
    /// It does not do what the program as it is does; why.
    Wrong(String),
    /// Why there were too few runs.
    NotTried(String),
}

/// What a comparison is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Stage {
    Allocator,
    /// All changes over the allocator.
    All,
    /// One change over the allocator.
    Alone,
    /// One change over others.
    Together,
    /// What is left, once more.
    Last,
}

/// Two setups, and what their runs say.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) stage: Stage,
    pub(crate) base: Setup,
    pub(crate) setup: Setup,
    pub(crate) pairs: usize,
    /// How many times as good the setup is as the base.
    pub(crate) gain: Option<Interval>,
    /// Peak memory, as a multiple of that of the program as it is.
    pub(crate) memory: Option<f64>,
    /// Medians of the base and the setup.
    pub(crate) wall_s: [f64; 2],
    pub(crate) user_s: [f64; 2],
    pub(crate) verdict: Verdict,
}

impl Comparison {
    pub(crate) fn not_tried(stage: Stage, base: Setup, setup: Setup, why: &str) -> Comparison {
        Comparison {
            stage,
            base,
            setup,
            pairs: 0,
            gain: None,
            memory: None,
            wall_s: [0.0; 2],
            user_s: [0.0; 2],
            verdict: Verdict::NotTried(why.to_owned()),
        }
    }

    pub(crate) fn gains(&self) -> bool {
        self.verdict == Verdict::Gains
    }

    /// Whether it is certainly better, by however little.
    pub(crate) fn is_better(&self) -> bool {
        let is_fit = matches!(
            self.verdict,
            Verdict::Gains | Verdict::NoGain | Verdict::Unclear
        );
        is_fit && self.gain.is_some_and(|gain| gain.low > 1.0)
    }
}

/// Why a search has ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Ended {
    Budget,
    Interrupted,
}

/// What a search may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) budget: Duration,
    /// Peak memory, as a multiple of that of the program as it is.
    pub(crate) memory: f64,
    /// Whether each change must certainly gain besides the others, if that was measured. Else what
    /// gains together is kept, less what adds nothing.
    pub(crate) each: bool,
}

/// Compares setups of one program.
#[derive(Debug)]
pub(crate) struct Gate<'l, L> {
    pub(crate) lab: &'l mut L,
    pub(crate) limits: Limits,
    /// Of the program as it is.
    peaks: Vec<f64>,
    pub(crate) ended: Option<Ended>,
    /// Seconds that the latest pair took.
    pair_s: f64,
}

impl<'l, L: Lab> Gate<'l, L> {
    pub(crate) fn new(lab: &'l mut L, limits: Limits) -> Gate<'l, L> {
        Gate {
            lab,
            limits,
            peaks: Vec::new(),
            ended: None,
            pair_s: 0.0,
        }
    }

    /// The time since the start at which so much of what is left of the budget has passed.
    pub(crate) fn after_part(&self, part: f64) -> Duration {
        let left = self.limits.budget.saturating_sub(self.lab.elapsed());
        self.lab.elapsed() + left.mul_f64(part)
    }

    /// Whether the fewest runs that give so many verdicts end before `until`, as far as that is
    /// known.
    pub(crate) fn has_time(&self, verdicts: usize, until: Duration) -> bool {
        let needed = self.pair_s * (verdicts * MIN_PAIRS) as f64;
        self.ended.is_none() && self.lab.elapsed().as_secs_f64() + needed <= until.as_secs_f64()
    }

    /// Compares until the gain is known or `until`, a time since the start, has come. A verdict
    /// may take longer; the budget is never exceeded by more than one run.
    pub(crate) fn compare(
        &mut self,
        stage: Stage,
        base: Setup,
        setup: Setup,
        until: Duration,
    ) -> Result<Comparison, String> {
        let mut runs = Runs::default();
        let mut known = None;
        self.lab.show(&base, &setup, known);
        let unfit = match self.lab.prepare(&base)? {
            None => self.lab.prepare(&setup)?,
            unfit => unfit,
        };
        if let Some(why) = unfit {
            let mut refused = Comparison::not_tried(stage, base, setup, "");
            refused.verdict = Verdict::Wrong(why);
            return Ok(refused);
        }
        let (mut looks, mut verdict) = (0, None);
        while verdict.is_none() && runs.logs.len() < MAX_PAIRS {
            let pairs = runs.logs.len();
            if pairs >= MIN_PAIRS && !self.has_time_for_pair(until) {
                break;
            }
            self.lab.show(&base, &setup, known);
            // A B B A: what changes steadily meanwhile meets both alike.
            let order = match pairs % 2 {
                0 => [&base, &setup],
                _ => [&setup, &base],
            };
            let start = self.lab.elapsed();
            let pair = match [self.run(order[0])?, None] {
                [None, _] => break,
                [Some(Err(why)), _] => Err(why),
                [Some(Ok(first)), _] => match self.run(order[1])? {
                    None => break,
                    Some(second) => second.map(|second| [first, second]),
                },
            };
            self.pair_s = (self.lab.elapsed() - start).as_secs_f64();
            match pair {
                Ok([first, second]) if pairs % 2 == 0 => runs.add(first, second),
                Ok([first, second]) => runs.add(second, first),
                Err(why) => {
                    verdict = Some(Verdict::Wrong(why));
                    break;
                }
            }
            if interval::is_look(runs.logs.len()) {
                looks += 1;
                let gain = interval::of(&runs.logs, looks);
                known = Some(gain);
                // Two of three pairs may have been disturbed; the last verdict waits for a fourth.
                if looks > 1 || stage != Stage::Last {
                    verdict = self.decide(stage, gain, &runs);
                }
            }
        }
        let len = runs.logs.len();
        if verdict.is_none() && len >= MIN_PAIRS {
            let gain = match known.filter(|_| interval::is_look(len)) {
                Some(gain) => gain,
                None => interval::of(&runs.logs, looks + 1),
            };
            known = Some(gain);
            verdict = self.decide(stage, gain, &runs);
            if verdict.is_none() && gain.low > 1.0 && gain.estimate >= MIN_GAIN {
                verdict = Some(Verdict::Gains);
            }
        }
        let unknown = match self.ended {
            _ if len >= MIN_PAIRS => Verdict::Unclear,
            Some(Ended::Interrupted) => Verdict::NotTried("interrupted".to_owned()),
            _ => Verdict::NotTried("the budget ran out".to_owned()),
        };
        Ok(Comparison {
            stage,
            base,
            setup,
            pairs: len,
            gain: known,
            memory: self.memory(&runs),
            wall_s: runs.samples.each_ref().map(|it| median(it, |it| it.wall_s)),
            user_s: runs.samples.each_ref().map(|it| median(it, |it| it.user_s)),
            verdict: verdict.unwrap_or(unknown),
        })
    }

    fn has_time_for_pair(&self, until: Duration) -> bool {
        self.lab.elapsed().as_secs_f64() + self.pair_s <= until.as_secs_f64()
    }

    /// One run; `None` if there is to be no other.
    fn run(&mut self, setup: &Setup) -> Result<Option<Result<Sample, String>>, String> {
        if self.ended.is_none() && self.lab.elapsed() >= self.limits.budget {
            self.ended = Some(Ended::Budget);
        }
        if self.ended.is_some() {
            return Ok(None);
        }
        Ok(match self.lab.run(setup)? {
            Outcome::Ran(sample) => {
                if *setup == Setup::AsIs {
                    self.peaks.push(sample.peak_bytes as f64);
                }
                Some(Ok(sample))
            }
            Outcome::Wrong(why) => Some(Err(why)),
            Outcome::Interrupted => {
                self.ended = Some(Ended::Interrupted);
                None
            }
        })
    }

    /// What is certain after a look.
    fn decide(&self, stage: Stage, gain: Interval, runs: &Runs) -> Option<Verdict> {
        let peak = median(&runs.samples[1], |it| it.peak_bytes as f64);
        let usual = median(&self.peaks, |&peak| peak);
        if peak > usual * self.limits.memory && peak > usual + FREE_BYTES && usual > 0.0 {
            return Some(Verdict::Memory);
        }
        match gain {
            _ if gain.low > SURE_GAIN && gain.estimate >= MIN_GAIN => Some(Verdict::Gains),
            _ if gain.high < 1.0 => Some(Verdict::Loses),
            _ if gain.high < MIN_GAIN => Some(Verdict::NoGain),
            _ if stage == Stage::Last => None,
            _ if interval::unlikely_above(&runs.logs, HOPELESS) < MIN_GAIN => Some(Verdict::NoGain),
            _ => None,
        }
    }

    fn memory(&self, runs: &Runs) -> Option<f64> {
        let usual = median(&self.peaks, |&peak| peak);
        let peak = median(&runs.samples[1], |it| it.peak_bytes as f64);
        (usual > 0.0 && peak > 0.0).then(|| peak / usual)
    }
}

/// The runs of a comparison.
#[derive(Debug, Default)]
struct Runs {
    /// Logarithms of the pairs' gains.
    logs: Vec<f64>,
    /// Of the base and the setup.
    samples: [Vec<Sample>; 2],
}

impl Runs {
    fn add(&mut self, base: Sample, setup: Sample) {
        self.logs.push((base.cost / setup.cost).ln());
        self.samples[0].push(base);
        self.samples[1].push(setup);
    }
}

/// The upper one of two in the middle; 0 of none.
fn median<T>(of: &[T], value: impl Fn(&T) -> f64) -> f64 {
    let mut values: Vec<f64> = of.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
