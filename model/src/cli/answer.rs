//! The prediction for one layout, with how each level was found and what to warn of.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::args::CostArgs;
use super::arrangement::Arrangement;
use super::output::{Table, human_bytes, human_number};
use super::question::{Question, chosen_by_address, complete_arity};
use super::{CliError, refuse};
use crate::machine::Origin;
use crate::predict::{Known, TierMisses, geometry_for};
use crate::{
    Accesses, ClosedForm, Frames, Hierarchy, Inclusion, Level, LevelMisses, LevelPrediction,
    Machine, Operation, Prediction, Predictor, Replacement, Tier, tiers,
};

/// Aliasing is noted where a cache misses by more than this factor, and by more misses of an
/// operation, than a fully associative one.
const ALIASING_RATIO: f64 = 1.2;
const ALIASING_MISSES: f64 = 0.1;
/// Caches of fewer ways always miss more.
const ALIASING_WAYS_MIN: u64 = 4;
/// Operations that touch more of a cache are not compared.
const ALIASING_SHARE: f64 = 0.05;

/// What one operation costs in one layout.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) arrangement: Arrangement,
    pub(super) prediction: Prediction,
    /// By level of the prediction, how its misses were found, and why so.
    methods: Vec<(String, String)>,
    pub(super) span_bytes: u64,
    /// A cache that misses more than if blocks fell into any set, and both numbers.
    aliased: Option<(String, f64, f64)>,
}

pub(super) fn answer(
    question: &Question<'_>,
    arrangement: Arrangement,
    cost: &CostArgs,
) -> Result<Answer, CliError> {
    let tier = cost.tier;
    let hierarchy = geometry_for(question.machine, tier);
    if hierarchy.is_none() && !matches!(tier, Tier::Auto | Tier::Footprint) {
        return refuse(format!(
            "--tier {tier} needs a machine whose sets and ways are known (presets have them)"
        ));
    }
    let Some(hierarchy) = hierarchy.filter(|_| tier == Tier::Closed) else {
        return answer_by_nodes(question, arrangement, cost, None);
    };
    let formula = closed_form(question, arrangement)?;
    if let Some(answer) = by_formula(question, arrangement, &formula, hierarchy, cost) {
        return Ok(answer);
    }
    // No formula knows some level.
    let whole = Question::new(question.args, question.machine, Tier::Auto)?;
    let known = formula.predict(hierarchy);
    answer_by_nodes(&whole, arrangement, cost, Some(known))
}

/// The answer from all nodes, and from what a formula says of some levels.
fn answer_by_nodes(
    question: &Question<'_>,
    arrangement: Arrangement,
    cost: &CostArgs,
    by_formula: Option<Vec<LevelPrediction>>,
) -> Result<Answer, CliError> {
    let (tier, machine, pages) = (cost.tier, question.machine, question.args.pages);
    let (accesses, span_bytes) = question.arrange(arrangement)?;
    let (frames, first) = (question.frames(0), question.args.searches);
    // Colours are about sets: the coloured cache is predicted by its geometry.
    let alone = match (geometry_for(machine, tier), arrangement) {
        (None, Arrangement::Coloured(_)) => {
            let caches = vec![question.colour_cache()?.clone()];
            Some(Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new())?)
        }
        _ => None,
    };
    let hierarchy = geometry_for(machine, tier).or(alone.as_ref());
    let found = hierarchy.map(|hierarchy| {
        let found = by_formula.unwrap_or_else(|| {
            let tier = if alone.is_some() { Tier::PerSet } else { tier };
            let mut found = tiers::predict_misses(&accesses, hierarchy, frames, tier, first);
            for level in &mut found {
                level.misses /= first.unwrap_or(1) as f64;
            }
            found
        });
        TierMisses::new(found, hierarchy, pages)
    });
    let known = Known {
        found: found.as_ref(),
        first: first.map(|first| first as f64),
        ..Known::of(&accesses)
    };
    let prediction = Predictor::of(&accesses)
        .style(cost.style)
        .overlap(cost.overlap())
        .predict_known(known, pages, machine);
    let mut answer = Answer::new(arrangement, prediction, found.as_ref(), machine, span_bytes);
    if tier == Tier::Auto && first.is_none() {
        answer.aliased = aliased(&answer, &accesses, frames, machine);
    }
    Ok(answer)
}

/// The answers for several layouts, in their order, in parallel as far as memory allows.
pub(super) fn answers(
    question: &Question<'_>,
    arrangements: &[Arrangement],
    cost: &CostArgs,
) -> Result<Vec<Answer>, CliError> {
    let mut answers = Vec::with_capacity(arrangements.len());
    for batch in arrangements.chunks(question.answers_at_once()) {
        answers.extend(std::thread::scope(|scope| {
            let one = |&arrangement| scope.spawn(move || answer(question, arrangement, cost));
            let running: Vec<_> = batch.iter().map(one).collect();
            let joined = running.into_iter().map(|thread| match thread.join() {
                Ok(answer) => answer,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect::<Result<Vec<Answer>, CliError>>()
        })?);
    }
    Ok(answers)
}

/// The formula for the structure in this layout.
fn closed_form(question: &Question<'_>, arrangement: Arrangement) -> Result<ClosedForm, CliError> {
    let cannot = |why: &str| refuse(format!("--tier closed: formulas are for {why}"));
    let Some(arity) = question.structure.and_then(complete_arity) else {
        return cannot("complete trees of nodes with one key");
    };
    if question.args.operation != Operation::Search || !question.is_uniform() {
        return cannot("searches for uniform keys");
    }
    if question.args.searches.is_some() {
        return cannot("the steady state");
    }
    let Arrangement::Plain(layout) = arrangement else {
        return cannot("layouts without colours and with links");
    };
    let extent = question.built.extent();
    Ok(ClosedForm::new(layout, question.nodes, arity, extent)?)
}

/// An answer from the formula alone; `None` where it knows not all levels. What neighbours save
/// ([`Machine::neighbours`]) is not in it. O(log n).
fn by_formula(
    question: &Question<'_>,
    arrangement: Arrangement,
    formula: &ClosedForm,
    hierarchy: &Hierarchy,
    cost: &CostArgs,
) -> Option<Answer> {
    let (machine, pages) = (question.machine, question.args.pages);
    let found = TierMisses::new(formula.predict_up_to(hierarchy, 1.0), hierarchy, pages);
    let mut levels = Vec::new();
    for level in machine.levels_for(pages) {
        let block_bytes = level.block_bytes;
        let (mut ns, mut misses) = (0.0, 0.0);
        for (step, costs) in level.steps.iter().enumerate() {
            let missed = found.level(level, step)?.misses;
            ns += missed * costs.step_ns / formula.blocks_per_node(block_bytes);
            misses += missed * costs.step_ns / level.step_ns();
        }
        let capacity_blocks = level.capacity_bytes() / block_bytes as f64;
        levels.push(LevelMisses {
            name: level.name.clone(),
            misses,
            ns,
            touched_share: formula.distinct_blocks(block_bytes, 1.0)? / capacity_blocks,
            order_known: false,
        });
    }
    let prediction = Predictor::with_visits(formula.visits())
        .style(cost.style)
        .overlap(cost.overlap())
        .with_instructions(levels, machine);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 2^32 nodes of 2^32 bytes"
    )]
    let span_bytes = formula.span_bytes() as u64;
    let found = Some(&found);
    Some(Answer::new(
        arrangement,
        prediction,
        found,
        machine,
        span_bytes,
    ))
}

/// How a level's misses were found, and why so.
fn method(
    level: &Level,
    found: Option<&TierMisses>,
    machine: &Machine,
    order_known: bool,
) -> (String, String) {
    if let Some(found) = found.and_then(|found| found.level(level, 0)) {
        return (found.tier.to_string(), found.reason.clone());
    }
    let capacity = human_bytes(level.capacity_bytes());
    let capacity = format!("the effective capacity, {capacity}");
    let (tier, reason) = match machine.replacement {
        _ if order_known => (
            Tier::Sequence,
            format!("all operations read in one order; {capacity}"),
        ),
        Replacement::Lru => (Tier::Footprint, format!("{capacity}, LRU")),
        Replacement::Random => (Tier::Footprint, format!("{capacity}, random replacement")),
    };
    (tier.to_string(), reason)
}

/// The first cache that misses more than a fully associative one. Only caches whose sets addresses
/// choose can.
fn aliased(
    answer: &Answer,
    accesses: &Accesses,
    frames: Frames,
    machine: &Machine,
) -> Option<(String, f64, f64)> {
    let levels = &answer.prediction.levels;
    // Long operations fill every set, wherever nodes lie.
    let is_long = |level: &LevelMisses| level.touched_share > ALIASING_SHARE && level.misses > 0.0;
    if levels.iter().any(is_long) {
        return None;
    }
    let mut caches = machine.hierarchy.as_ref()?.caches().iter();
    caches.find_map(|cache| {
        let geometry = cache.geometry;
        if !chosen_by_address(cache, frames) || geometry.associativity() < ALIASING_WAYS_MIN {
            return None;
        }
        let mut found = levels.iter().zip(&answer.methods);
        let (level, _) = found
            .find(|(level, method)| level.name == cache.name && method.0 == Tier::PerSet.name())?;
        let blocks = accesses.block_probabilities(geometry.block_bytes());
        let room = cache.blocks() as f64;
        let anywhere = blocks.footprint().misses(room, Replacement::Lru);
        let least = (ALIASING_RATIO * anywhere).max(anywhere + ALIASING_MISSES);
        (level.misses > least).then(|| (cache.name.clone(), level.misses, anywhere))
    })
}

impl Answer {
    fn new(
        arrangement: Arrangement,
        prediction: Prediction,
        found: Option<&TierMisses>,
        machine: &Machine,
        span_bytes: u64,
    ) -> Answer {
        let methods = prediction.levels.iter().map(|misses| {
            let mut levels = machine.levels.iter();
            let level = levels.find(|level| level.name == misses.name);
            level.map_or_else(Default::default, |level| {
                method(level, found, machine, misses.order_known)
            })
        });
        Answer {
            arrangement,
            methods: methods.collect(),
            prediction,
            span_bytes,
            aliased: None,
        }
    }

    /// How many times faster than the baseline; 1 where a machine file makes everything free.
    pub(super) fn speedup(&self, baseline_ns: f64) -> f64 {
        match self.prediction.ns {
            ns if ns > 0.0 => baseline_ns / ns,
            _ => 1.0,
        }
    }

    pub(super) fn report(&self, baseline_ns: f64) -> Value {
        let prediction = &self.prediction;
        let levels = prediction.levels.iter().zip(&self.methods);
        let levels = levels.map(|(level, (tier, reason))| {
            json!({
                "name": level.name,
                "misses": level.misses,
                "ns": level.ns,
                "tier": tier,
                "reason": reason,
            })
        });
        let levels = levels.collect::<Vec<_>>();
        let misses = prediction.levels.iter();
        let misses = misses.map(|level| (&level.name, level.misses));
        json!({
            "layout": self.arrangement.to_string(),
            "ns": prediction.ns,
            "ns_low": prediction.ns_low,
            "ns_high": prediction.ns_high,
            "cpu_ns": prediction.cpu_ns,
            "nodes_visited": prediction.nodes_visited,
            "misses": misses.collect::<BTreeMap<_, _>>(),
            "levels": levels,
            "span_bytes": self.span_bytes,
            "speedup": self.speedup(baseline_ns),
        })
    }

    /// The first cells of the answer's row in a table for people: layout, ns, from, to, speedup.
    pub(super) fn cells(&self, baseline_ns: f64) -> Vec<String> {
        let prediction = &self.prediction;
        vec![
            self.arrangement.to_string(),
            format!("{:.1}", prediction.ns),
            format!("{:.0}", prediction.ns_low),
            format!("{:.0}", prediction.ns_high),
            format!("{:.2}x", self.speedup(baseline_ns)),
        ]
    }
}

/// How misses were found, in a line for each method, with the layouts if not all agree.
pub(super) fn methods(answers: &[Answer]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<String>)> = Vec::new();
    for answer in answers {
        for (level, (tier, reason)) in answer.prediction.levels.iter().zip(&answer.methods) {
            let line = format!("{}: {tier}, {reason}", level.name);
            let layout = answer.arrangement.to_string();
            match lines.iter_mut().find(|(other, _)| *other == line) {
                Some((_, layouts)) => layouts.push(layout),
                None => lines.push((line, vec![layout])),
            }
        }
    }
    let line = |(line, layouts): (String, Vec<String>)| match layouts.len() == answers.len() {
        true => line,
        false => format!("{line} ({})", layouts.join(", ")),
    };
    lines.into_iter().map(line).collect()
}

/// Misses of all answers, a column for each level, as numbers for people.
pub(super) fn table(answers: &[Answer], baseline_ns: f64) -> Table {
    let mut table = Table::default();
    let levels = level_names(answers).map(|name| format!("{name} miss"));
    let titles = ["layout", "ns", "from", "to", "speedup"].map(str::to_owned);
    table.row(titles.into_iter().chain(levels).chain(["span".to_owned()]));
    for answer in answers {
        let mut cells = answer.cells(baseline_ns);
        let levels = &answer.prediction.levels;
        cells.extend(levels.iter().map(|level| human_number(level.misses)));
        cells.push(human_bytes(answer.span_bytes as f64));
        table.row(cells);
    }
    table
}

/// The same as numbers for programs.
pub(super) fn csv_table(answers: &[Answer], baseline_ns: f64) -> Table {
    let mut table = Table::default();
    let levels = level_names(answers).map(|name| format!("misses_{name}"));
    let titles = "layout ns ns_low ns_high cpu_ns speedup span_bytes".split(' ');
    table.row(titles.map(str::to_owned).chain(levels));
    for answer in answers {
        let (of, speedup) = (&answer.prediction, answer.speedup(baseline_ns));
        let span_bytes = answer.span_bytes as f64;
        let numbers = [of.ns, of.ns_low, of.ns_high, of.cpu_ns, speedup, span_bytes];
        let misses = of.levels.iter().map(|level| level.misses);
        let numbers = numbers.into_iter().chain(misses);
        let mut cells = vec![answer.arrangement.to_string()];
        cells.extend(numbers.map(|number| number.to_string()));
        table.row(cells);
    }
    table
}

/// All answers have the levels of one machine.
fn level_names(answers: &[Answer]) -> impl Iterator<Item = &str> {
    let first = answers.iter().take(1);
    let levels = first.flat_map(|answer| &answer.prediction.levels);
    levels.map(|level| level.name.as_str())
}

/// What the reader should know of the machine and of these answers.
pub(super) fn notes(machine: &Machine, answers: &[Answer]) -> Vec<String> {
    let mut notes = machine.notes.clone();
    if machine.origin == Origin::Defaults {
        let note = "latencies are defaults, not measured: use --machine calibrate, or calibrate \
                    -o FILE and --machine FILE";
        notes.push(note.to_owned());
    }
    let crowded = crowded_levels(answers);
    if !crowded.is_empty() {
        notes.push(format!(
            "one operation touches more than {:.0} % of what {} can hold: real caches miss more \
             there than predicted",
            100.0 * LevelMisses::CROWDED_SHARE,
            crowded.join(", ")
        ));
    }
    for answer in answers {
        if let Some((name, sets, anywhere)) = &answer.aliased {
            notes.push(format!(
                "{}: nodes lie powers of two apart and meet in few sets: {name} misses {} times \
                 an operation, {} if any block could lie anywhere; another node size or layout \
                 helps",
                answer.arrangement,
                human_number(*sets),
                human_number(*anywhere)
            ));
        }
    }
    notes
}

/// The levels that hold little more than some operation touches.
pub(super) fn crowded_levels<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for answer in answers {
        for level in answer.prediction.crowded_levels() {
            if !names.contains(&level.name.as_str()) {
                names.push(&level.name);
            }
        }
    }
    names
}
