//! Searches on simulated runs: what is true of each setup is known here.

use std::time::Duration;

use super::super::gate::{Outcome, Sample};
use super::*;

/// Programs whose times are known, with noise.
struct Simulated {
    seed: u64,
    /// Standard deviation of the logarithm of a time.
    noise: f64,
    /// Gain of the allocator alone.
    allocator: f64,
    /// Gains of the changes, which multiply.
    gains: Vec<f64>,
    /// Peak memory of the changes, as multiples.
    memory: Vec<f64>,
    /// Changes with which the program crashes.
    crashing: Vec<usize>,
    run_s: f64,
    elapsed_s: f64,
    /// The user's interrupt.
    interrupted_at_s: f64,
    runs: usize,
}

impl Simulated {
    fn new(seed: u64, allocator: f64, gains: &[f64]) -> Simulated {
        let mut lab = Simulated {
            seed,
            noise: 0.0,
            allocator,
            gains: gains.to_vec(),
            memory: vec![1.0; gains.len()],
            crashing: Vec::new(),
            run_s: 1.0,
            elapsed_s: 0.0,
            interrupted_at_s: f64::INFINITY,
            runs: 0,
        };
        lab.noise = 0.01 + 0.04 * lab.uniform();
        lab
    }

    /// Above 0, below 1: `SplitMix64` (Steele, Lea and Flood, 2014).
    fn uniform(&mut self) -> f64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    fn found(&mut self, budget_s: u64) -> Found {
        let limits = Limits {
            budget: Duration::from_secs(budget_s),
            memory: 1.25,
            each: false,
        };
        search(self, self.gains.len(), |_, _| false, limits).unwrap()
    }
}

impl Lab for Simulated {
    fn run(&mut self, setup: &Setup) -> Result<Outcome, String> {
        self.runs += 1;
        let changes: &[usize] = match setup {
            Setup::AsIs => &[],
            Setup::With(changes) => changes,
        };
        let changes = changes.to_vec();
        let mut wall_s = self.run_s * (self.noise * self.normal()).exp();
        // Something else runs now and then.
        if self.uniform() < 0.03 {
            wall_s *= 1.2 + self.uniform();
        }
        if *setup != Setup::AsIs {
            wall_s /= self.allocator;
        }
        let mut peak = 1e9;
        for &change in &changes {
            wall_s /= self.gains[change];
            peak *= self.memory[change];
        }
        self.elapsed_s += wall_s;
        if self.elapsed_s > self.interrupted_at_s {
            return Ok(Outcome::Interrupted);
        }
        if changes.iter().any(|change| self.crashing.contains(change)) {
            return Ok(Outcome::Wrong("ends by SIGSEGV".to_owned()));
        }
        let peak_bytes = crate::analyses::units::rounded(peak);
        Ok(Outcome::Ran(Sample {
            cost: wall_s,
            wall_s,
            user_s: wall_s,
            peak_bytes,
        }))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.elapsed_s)
    }
}

/// How many of 100 searches keep the only change.
fn kept(allocator: f64, gain: f64) -> usize {
    let is_kept = |seed: &u64| {
        let found = Simulated::new(*seed, allocator, &[gain]).found(600);
        found.kept.is_some_and(|kept| kept == [0])
    };
    (0..100).filter(is_kept).count()
}

#[test]
fn no_slower_change_is_kept() {
    for gain in [1.0 / 1.05, 1.0 / 1.02, 1.0 / 1.01, 1.0] {
        for allocator in [1.0, 1.2] {
            assert_eq!(kept(allocator, gain), 0, "{gain} over {allocator}");
        }
    }
}

#[test]
fn gains_are_found() {
    for allocator in [1.0, 1.2] {
        let counts = [1.05, 1.1, 1.3].map(|gain| kept(allocator, gain));
        assert!(
            counts[0] >= 90 && counts[1] >= 98 && counts[2] == 100,
            "{counts:?}"
        );
    }
    // Less than is worth it.
    let counts = [1.01, 1.02].map(|gain| kept(1.0, gain));
    assert!(counts[0] <= 2 && counts[1] <= 20, "{counts:?}");
}

#[test]
fn the_allocator_alone_is_a_change() {
    for (gain, expected) in [(1.3, Some(Vec::new())), (1.0, None), (0.95, None)] {
        for seed in 0..20 {
            let found = Simulated::new(seed, gain, &[0.9, 1.0]).found(600);
            assert_eq!(found.kept, expected, "{gain} {seed}");
            assert!(found.ended.is_none());
        }
    }
    // Changes are tried though the allocator loses, but must win against the program as it is.
    for (gain, expected) in [(1.4, 20), (1.1, 0)] {
        let is_kept = |&seed: &u64| Simulated::new(seed, 0.8, &[gain]).found(600).kept.is_some();
        let kept = (0..20).filter(is_kept).count();
        assert!(kept.abs_diff(expected) <= 1, "{gain}: {kept}");
    }
}

#[test]
fn changes_that_gain_are_combined() {
    for seed in 0..20 {
        let mut lab = Simulated::new(seed, 1.1, &[1.2, 0.9, 1.5, 1.0, 1.3]);
        lab.memory[4] = 1.6;
        let found = lab.found(1200);
        assert_eq!(found.kept, Some(vec![2, 0]), "{seed}");
        assert!(found.is_confirmed);
        let verdict = |change: usize| {
            let setup = Setup::With(vec![change]);
            let mut all = found.comparisons.iter();
            all.find(|it| it.setup == setup)
                .map(|it| it.verdict.clone())
        };
        assert_eq!(verdict(4), Some(Verdict::Memory));
        assert!(matches!(verdict(1), Some(Verdict::Loses | Verdict::NoGain)));
    }
    // Of two that exclude each other the better one is kept.
    let mut lab = Simulated::new(1, 1.0, &[1.2, 1.5]);
    let limits = Limits {
        budget: Duration::from_secs(600),
        memory: 2.0,
        each: false,
    };
    let found = search(&mut lab, 2, |_, _| true, limits).unwrap();
    assert_eq!(found.kept, Some(vec![1]));
}

#[test]
fn changes_that_gain_little_each_are_found_together() {
    let (mut found, mut is_slower) = (0, 0);
    for seed in 0..100 {
        let mut lab = Simulated::new(seed, 1.0, &[1.025, 1.0 / 1.05, 1.025, 1.025, 1.025, 1.025]);
        let kept = lab.found(2400).kept.unwrap_or_default();
        let gain: f64 = kept.iter().map(|&change| lab.gains[change]).product();
        found += usize::from(gain >= 1.05);
        is_slower += usize::from(kept.contains(&1));
    }
    assert!(found >= 80 && is_slower <= 2, "{found} {is_slower}");
}

#[test]
fn each_may_have_to_gain() {
    for seed in 0..20 {
        let mut lab = Simulated::new(seed, 1.0, &[1.5, 1.01, 1.3]);
        let limits = Limits {
            budget: Duration::from_secs(900),
            memory: 2.0,
            each: true,
        };
        let found = search(&mut lab, 3, |_, _| false, limits).unwrap();
        assert_eq!(found.kept, Some(vec![0, 2]), "{seed}");
    }
}

#[test]
fn few_runs_find_changes_that_gain_much() {
    // Of 3 s each: the time of 25 runs for 12 changes.
    let is_found = |&seed: &u64| {
        let mut lab = Simulated::new(seed, 1.1, &[1.1; 12]);
        lab.run_s = 3.0;
        let found = lab.found(75);
        found.kept.is_some_and(|kept| kept.len() >= 10)
    };
    let found = (0..100).filter(is_found).count();
    assert!(found >= 95, "{found}");
}

#[test]
fn a_change_that_crashes_is_refused_and_others_are_tried() {
    let mut lab = Simulated::new(7, 1.0, &[1.5, 1.5]);
    lab.crashing = vec![0];
    let found = lab.found(600);
    assert_eq!(found.kept, Some(vec![1]));
    assert!(
        matches!(&found.comparisons[1].verdict, Verdict::Wrong(why) if why.contains("SIGSEGV"))
    );
}

#[test]
fn the_budget_is_exceeded_by_one_run_at_most() {
    for budget_s in [1, 5, 20, 60, 200] {
        for seed in 0..20 {
            let mut lab = Simulated::new(seed, 1.1, &[1.2; 12]);
            let found = lab.found(budget_s);
            let of_one = |it: &&Comparison| matches!(it.stage, Stage::Alone | Stage::Together);
            assert_eq!(found.comparisons.iter().filter(of_one).count(), 12);
            assert!(lab.elapsed_s < budget_s as f64 + 3.5, "{}", lab.elapsed_s);
        }
    }
    // Few runs fit: the first proposals are tried, with enough of them.
    let mut lab = Simulated::new(3, 1.0, &[1.03; 50]);
    let found = lab.found(60);
    let tried = found.comparisons.iter().filter(|it| it.pairs >= 3).count();
    assert!((3..20).contains(&tried), "{tried}");
    assert!(found.kept.is_some_and(|kept| kept.len() > 40));
    // One of them crashes: the first are tried alone.
    let mut lab = Simulated::new(3, 1.0, &[2.0; 50]);
    lab.crashing = vec![49];
    let found = lab.found(60);
    let tried = found.comparisons.iter().filter(|it| it.pairs >= 3).count();
    assert!((3..20).contains(&tried), "{tried}");
    assert!(found.kept.is_some_and(|kept| kept[0] < tried));
}

#[test]
fn an_interrupt_keeps_what_is_known() {
    for at_s in [0.5, 7.0, 30.0, 60.0, 100.0] {
        let mut lab = Simulated::new(5, 1.3, &[2.0, 1.0]);
        lab.interrupted_at_s = at_s;
        let runs = lab.found(600);
        assert_eq!(
            runs.ended,
            (lab.elapsed_s > at_s).then_some(Ended::Interrupted)
        );
        assert!(runs.kept.is_none() || !runs.is_confirmed || runs.ended.is_none());
    }
    let mut lab = Simulated::new(5, 1.3, &[2.0, 1.0]);
    lab.interrupted_at_s = 16.0;
    let found = lab.found(600);
    assert_eq!((found.kept, found.is_confirmed), (Some(vec![0, 1]), false));
}
