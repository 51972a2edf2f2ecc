//! Finds the changes that pay off.

use super::gate::{Comparison, Ended, Gate, Lab, Limits, MIN_GAIN, Setup, Stage, Verdict};

/// Parts of the time that is left which a stage may take.
const ALLOCATOR_PART: f64 = 0.15;
const ALL_PART: f64 = 0.35;
const ALONE_PART: f64 = 0.55;
const TOGETHER_PART: f64 = 0.4;
/// Of the fewest runs of one change, alone and against both at the end, those alone.
const CONFIRMABLE_PART: f64 = 1.0 / 3.0;
/// What the last comparisons may need, in fewest runs that give a verdict. Nothing is refined in
/// that time: of few pairs, one that was disturbed would make all before it worth nothing.
const LAST_VERDICTS: usize = 6;
/// A change that adds less to those that gain together is dropped. Many that add little each may be
/// worth it together, so this is less than what one alone must gain.
const MIN_SHARE: f64 = 1.01;

/// What a search has found.
#[derive(Debug, Default)]
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
    let mut all = vec![first];
    let (fit, unfit) = fit(&mut gate, changes)?;
    let set = match at_once(&mut gate, &fit, &excludes, &mut all)? {
        Some(set) => set,
        None => {
            let alone = each_alone(&mut gate, &fit, &mut all)?;
            together(&mut gate, &alone, excludes, &mut all)?
        }
    };
    all.extend(unfit);
    let mut found = Found {
        comparisons: all,
        ..Found::default()
    };
    confirm(&mut gate, set, &mut found)?;
    found.ended = gate.ended;
    Ok(found)
}

/// The changes that can be made, and what is said of the others: one of them would leave all of a
/// set untried.
fn fit<L: Lab>(
    gate: &mut Gate<'_, L>,
    changes: usize,
) -> Result<(Vec<usize>, Vec<Comparison>), String> {
    let (mut fit, mut unfit) = (Vec::new(), Vec::new());
    for change in 0..changes {
        let [base, setup] = [Vec::new(), vec![change]].map(Setup::With);
        match gate.lab.prepare(&setup)? {
            None => fit.push(change),
            Some(why) => {
                let verdict = Verdict::Wrong(why);
                let refused = Comparison::not_tried(Stage::Alone, base, setup, "");
                unfit.push(Comparison { verdict, ..refused });
            }
        }
    }
    Ok((fit, unfit))
}

/// Tries all changes together. If they gain, that is the shortest way: then each that adds nothing
/// is dropped. `None` if the changes have to be tried alone.
fn at_once<L: Lab>(
    gate: &mut Gate<'_, L>,
    changes: &[usize],
    excludes: impl Fn(usize, usize) -> bool,
    all: &mut Vec<Comparison>,
) -> Result<Option<Vec<usize>>, String> {
    let mut set: Vec<usize> = Vec::new();
    for &change in changes {
        if !set.iter().any(|&other| excludes(change, other)) {
            set.push(change);
        }
    }
    let is_usable = !matches!(all[0].verdict, Verdict::Wrong(_));
    let has_time = gate.has_time(1, gate.after_part(CONFIRMABLE_PART));
    if set.len() < 2 || !is_usable || !has_time {
        return Ok(None);
    }
    let until = gate.after_part(ALL_PART);
    let base = Setup::With(Vec::new());
    let tried = gate.compare(Stage::All, base, Setup::With(set.clone()), until)?;
    let may_gain = tried.gains()
        || tried.verdict == Verdict::Unclear
            && tried.gain.is_some_and(|gain| gain.estimate >= MIN_GAIN)
            && !gate.has_time(changes.len(), gate.after_part(ALONE_PART));
    all.push(tried);
    if !may_gain {
        return Ok(None);
    }
    let end = gate.after_part(TOGETHER_PART);
    // The last ones have the fewest bytes.
    for (place, &change) in changes.iter().enumerate().rev() {
        let is_in = set.contains(&change);
        let others: Vec<usize> = set.iter().copied().filter(|&it| it != change).collect();
        let setup = match is_in {
            true => set.clone(),
            false => [&*set, &[change]].concat(),
        };
        let [base, setup] = [others, setup].map(Setup::With);
        let why = match gate.ended {
            _ if !is_in => "another change of the same place gains",
            Some(Ended::Interrupted) => "interrupted",
            _ => "the budget ran out",
        };
        let has_time = gate.has_time(1, end) && gate.has_time(LAST_VERDICTS, gate.after_part(1.0));
        if !is_in || !has_time {
            all.push(Comparison::not_tried(Stage::Together, base, setup, why));
            continue;
        }
        let share = end
            .saturating_sub(gate.lab.elapsed())
            .div_f64((place + 1) as f64);
        let until = gate.lab.elapsed() + share;
        let tried = gate.compare(Stage::Together, base, setup, until)?;
        let adds_nothing = tried.gain.is_some_and(|gain| gain.estimate < MIN_SHARE);
        let is_dropped = match tried.verdict {
            Verdict::NoGain | Verdict::Loses => adds_nothing || gate.limits.each,
            Verdict::Unclear => gate.limits.each,
            _ => false,
        };
        if is_dropped {
            set.retain(|&it| it != change);
        }
        all.push(tried);
    }
    Ok(Some(set))
}

/// Tries each change over the allocator; those that gain, with their gain, the largest first.
fn each_alone<L: Lab>(
    gate: &mut Gate<'_, L>,
    changes: &[usize],
    all: &mut Vec<Comparison>,
) -> Result<Vec<(usize, f64)>, String> {
    let is_usable = !matches!(all[0].verdict, Verdict::Wrong(_));
    let mut alone = Vec::new();
    let end = gate.after_part(ALONE_PART);
    for (place, &change) in changes.iter().enumerate() {
        let [base, setup] = [Vec::new(), vec![change]].map(Setup::With);
        // Few runs fit: the first changes are tried as long as there is time to confirm one.
        let has_time = gate.has_time(1, end) || gate.has_time(1, gate.after_part(CONFIRMABLE_PART));
        if !is_usable || !has_time {
            let why = match gate.ended {
                _ if !is_usable => "the program does not run with the allocator",
                Some(Ended::Interrupted) => "interrupted",
                _ => "the budget ran out",
            };
            all.push(Comparison::not_tried(Stage::Alone, base, setup, why));
            continue;
        }
        // The time that is left is shared by those that are left.
        let left = end.saturating_sub(gate.lab.elapsed());
        let share = left.div_f64((changes.len() - place) as f64);
        let until = gate.lab.elapsed() + share;
        let tried = gate.compare(Stage::Alone, base, setup, until)?;
        if tried.gains() {
            alone.push((change, tried.gain.map_or(1.0, |gain| gain.estimate)));
        }
        all.push(tried);
    }
    alone.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(alone)
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
        // Where changes have gained before, what was not measured again speaks not against them.
        let has_gained = { found.comparisons.iter() }
            .any(|it| matches!(it.stage, Stage::All | Stage::Alone) && it.gains());
        let may_be = |it: &Comparison| {
            let gain = it.gain.map_or(0.0, |gain| gain.estimate);
            it.verdict == Verdict::Unclear && gain >= MIN_GAIN
        };
        let changes_gain = over_allocator.is_better()
            || has_gained && (is_open(&over_allocator) || may_be(&over_allocator));
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
/// the low end of its gain over the allocator, times that of the allocator. Of changes that were
/// tried alone only the first one's gain counts.
fn least_by_two_steps(found: &Found, set: &[usize]) -> Option<f64> {
    let low = |it: &Comparison| it.gain.map_or(0.0, |gain| gain.low);
    let allocator = Setup::With(Vec::new());
    let [first, whole] = [&set[..1], set].map(|set| Setup::With(set.to_vec()));
    let mut all = found.comparisons.iter();
    let gains = all.find(|it| {
        it.base == allocator && it.stage != Stage::Last && (it.setup == first || it.setup == whole)
    })?;
    Some(low(gains) * low(&found.comparisons[0])).filter(|least| *least > 1.0)
}

#[cfg(test)]
mod tests;
