//! The lab of real programs.

use std::time::{Duration, Instant};

use super::gate::{Lab, Outcome, Setup};
use super::runs::{Runs, Variant};
use crate::analyses::misses::Interval;

/// A variant, or why the changes cannot be made together.
type Made = Result<Variant, String>;

/// Runs setups as processes.
pub(crate) struct Programs<'r> {
    pub(crate) runs: &'r mut Runs,
    pub(crate) as_is: Variant,
    /// Makes the variant with the changes of these numbers, or says why there is none.
    pub(crate) with: &'r mut dyn FnMut(&[usize]) -> Result<Made, String>,
    /// Told what is compared, and what is known of it.
    pub(crate) progress: &'r mut dyn FnMut(&Setup, &Setup, Option<Interval>),
    pub(crate) started: Instant,
    /// What making variants has taken, which is no part of the budget.
    pub(crate) making: Duration,
}

impl Lab for Programs<'_> {
    fn run(&mut self, setup: &Setup) -> Result<Outcome, String> {
        let Setup::With(changes) = setup else {
            return self.runs.run_as_is(&self.as_is);
        };
        let variant = match (self.with)(changes)? {
            Ok(variant) => variant,
            Err(why) => return Ok(Outcome::Wrong(why)),
        };
        let outcome = self.runs.run_other(&variant, &self.as_is)?;
        // One line, and then it runs without rules.
        let said = self.runs.said();
        let refused = { said.lines() }.find(|line| line.starts_with("ccmalloc: CCMALLOC_RULES"));
        Ok(match refused {
            Some(line) => Outcome::Wrong(format!("is refused its rules: {line}")),
            None => outcome,
        })
    }

    fn prepare(&mut self, setup: &Setup) -> Result<Option<String>, String> {
        let Setup::With(changes) = setup else {
            return Ok(None);
        };
        let start = Instant::now();
        let unfit = (self.with)(changes)?.err();
        self.making += start.elapsed();
        Ok(unfit)
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(self.making)
    }

    fn show(&mut self, base: &Setup, setup: &Setup, known: Option<Interval>) {
        (self.progress)(base, setup, known);
    }
}
