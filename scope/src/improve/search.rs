//! Finds the changes that pay off.

use super::gate::{Comparison, Ended, Gate, Lab, Limits, MIN_GAIN, Setup, Stage, Verdict};

/// Parts of the time that is left which a stage may take.
const ALLOCATOR_PART: f64 = 0.15;
const ALONE_PART: f64 = 0.55;
const TOGETHER_PART: f64 = 0.4;
/// Of the fewest runs of one change, alone and against both at the end, those alone.
const CONFIRMABLE_PART: f64 = 1.0 / 3.0;

/// What a search has found.
#[derive(Debug)]
pub(crate) struct Found {
    /// In the order in which they were made.
    pub(crate) comparisons: Vec<Comparison>,
    /// The setup that pays off.
    pub(crate) kept: Option<Vec<usize>>,
    /// Whether what is kept was measured once more at the end.
    pub(crate) is_confirmed: bool,
    /// What is kept gains at least so much, if that was not measured in one comparison.
    pub(crate) least: Option<f64>,
    pub(crate) ended: Option<Ended>,
}

/// Tries the changes of numbers below `changes`. Of two for which `excludes` is true only one can
/// be kept.
///
/// # Errors
///
/// The program as it is cannot be measured.
pub(crate) fn search<L: Lab>(
    lab: &mut L,
    changes: usize,
    excludes: impl Fn(usize, usize) -> bool,
    limits: Limits,
) -> Result<Found, String> {
    let mut gate = Gate::new(lab, limits);
    let allocator = || Setup::With(Vec::new());
    let until = gate.after_part(if changes == 0 { 0.5 } else { ALLOCATOR_PART });
    let first = gate.compare(Stage::Allocator, Setup::AsIs, allocator(), until)?;
    let is_usable = !matches!(first.verdict, Verdict::Wrong(_));
    let mut all = vec![first];
    let mut alone = Vec::new();
    let end = gate.after_part(ALONE_PART);
    for change in 0..changes {
        let setup = Setup::With(vec![change]);
        // Few runs fit: the first changes are tried as long as there is time to confirm one.
        let has_time = gate.has_time(end) || gate.has_time(gate.after_part(CONFIRMABLE_PART));
        if !is_usable || !has_time {
            let why = match gate.ended {
                _ if !is_usable => "the program does not run with the allocator",
                Some(Ended::Interrupted) => "interrupted",
                _ => "the budget ran out",
            };
            all.push(Comparison::not_tried(Stage::Alone, allocator(), setup, why));
            continue;
        }
        // The time that is left is shared by those that are left.
        let left = end.saturating_sub(gate.lab.elapsed());
        let share = left.div_f64((changes - change) as f64);
        let until = gate.lab.elapsed() + share;
        let tried = gate.compare(Stage::Alone, allocator(), setup, until)?;
        if tried.gains() {
            alone.push((change, tried.gain.map_or(1.0, |gain| gain.estimate)));
        }
        all.push(tried);
    }
    alone.sort_by(|a, b| b.1.total_cmp(&a.1));
    let set = together(&mut gate, &alone, excludes, &mut all)?;
    let mut found = Found {
        comparisons: all,
        kept: None,
        is_confirmed: false,
        least: None,
        ended: None,
    };
    confirm(&mut gate, set, &mut found)?;
    found.ended = gate.ended;
    Ok(found)
}

/// Adds changes while that gains, those that gain most alone first.
fn together<L: Lab>(
    gate: &mut Gate<'_, L>,
    alone: &[(usize, f64)],
    excludes: impl Fn(usize, usize) -> bool,
    all: &mut Vec<Comparison>,
) -> Result<Vec<usize>, String> {
    let mut set: Vec<usize> = alone.iter().take(1).map(|&(change, _)| change).collect();
    let end = gate.after_part(TOGETHER_PART);
    for (place, &(change, _)) in alone.iter().enumerate().skip(1) {
        let mut larger = set.clone();
        larger.push(change);
        let base = Setup::With(set.clone());
        if set.iter().any(|&other| excludes(change, other)) {
            let why = "another change of the same place gains more";
            all.push(Comparison::not_tried(
                Stage::Together,
                base,
                Setup::With(larger),
                why,
            ));
            continue;
        }
        let left = end.saturating_sub(gate.lab.elapsed());
        let share = left.div_f64((alone.len() - place) as f64);
        let until = gate.lab.elapsed() + share;
        let tried = gate.compare(Stage::Together, base, Setup::With(larger.clone()), until)?;
        if tried.gains() {
            set = larger;
        }
        all.push(tried);
    }
    Ok(set)
}

/// Measures what is left once more: what is kept must win against the program as it is, and its
/// changes against the allocator alone.
fn confirm<L: Lab>(
    gate: &mut Gate<'_, L>,
    set: Vec<usize>,
    found: &mut Found,
) -> Result<(), String> {
    let allocator = || Setup::With(Vec::new());
    // Where the time was up first, there may be more of it now.
    let may_gain = matches!(
        found.comparisons[0].verdict,
        Verdict::Gains | Verdict::Unclear
    );
    if !set.is_empty() {
        let setup = Setup::With(set.clone());
        let until = gate.after_part(0.5);
        let over_program = gate.compare(Stage::Last, Setup::AsIs, setup.clone(), until)?;
        let until = gate.after_part(if may_gain { 0.7 } else { 1.0 });
        let over_allocator = gate.compare(Stage::Last, allocator(), setup, until)?;
        let is_open = |it: &Comparison| matches!(it.verdict, Verdict::NotTried(_));
        // The changes have gained before: what was not measured again does not speak against them.
        let may_be = |it: &Comparison| {
            let gain = it.gain.map_or(0.0, |gain| gain.estimate);
            it.verdict == Verdict::Unclear && gain >= MIN_GAIN
        };
        let changes_gain =
            over_allocator.is_better() || is_open(&over_allocator) || may_be(&over_allocator);
        found.is_confirmed = over_program.gains() && over_allocator.is_better();
        found.least = is_open(&over_program)
            .then(|| least_by_two_steps(found, &set))
            .flatten();
        let is_kept = changes_gain && (over_program.gains() || found.least.is_some());
        found.comparisons.extend([over_program, over_allocator]);
        if is_kept {
            found.kept = Some(set);
            return Ok(());
        }
        found.least = None;
    }
    if may_gain {
        let until = gate.after_part(1.0);
        let again = gate.compare(Stage::Last, Setup::AsIs, allocator(), until)?;
        let is_known = found.comparisons[0].gains();
        if again.gains() || is_known && matches!(again.verdict, Verdict::NotTried(_)) {
            found.kept = Some(Vec::new());
            found.is_confirmed = again.gains();
        }
        found.comparisons.push(again);
    }
    Ok(())
}

/// The least gain over the program as it is of a set that was not compared with it, if it is one:
/// the low end of its gain over the allocator, times that of the allocator. Of several changes only
/// the first one's gain counts.
fn least_by_two_steps(found: &Found, set: &[usize]) -> Option<f64> {
    let low = |it: &Comparison| it.gain.map_or(0.0, |gain| gain.low);
    let first = Setup::With(set[..1].to_vec());
    let mut all = found.comparisons.iter();
    let alone = all.find(|it| it.stage == Stage::Alone && it.setup == first)?;
    Some(low(alone) * low(&found.comparisons[0])).filter(|least| *least > 1.0)
}

#[cfg(test)]
mod tests;
