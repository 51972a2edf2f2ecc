//! The prediction for one layout, with how each level was found and what to warn of.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::CliError;
use super::args::CostArgs;
use super::arrangement::Arrangement;
use super::output::{human_bytes, human_number};
use super::question::Question;
use crate::machine::Origin;
use crate::predict::{Known, TierMisses, geometry_for};
use crate::tiers::{self, Workload};
use crate::{
    Accesses, CacheLevel, ClosedForm, FrameMap, Frames, Growth, Hierarchy, Inclusion,
    KeyDistribution, Level, LevelMisses, LevelPrediction, Machine, Operation, PageSize, Prediction,
    Predictor, Replacement, Structure, Tier, predict_misses,
};

/// A cache misses more than this where blocks lie, over what it would miss if they lay anywhere,
/// before a note says so.
const ALIASING_RATIO: f64 = 1.2;
/// And at least so many misses of an operation more.
const ALIASING_MISSES: f64 = 0.1;

/// Operations that touch more of a cache are not compared.
const ALIASING_SHARE: f64 = 0.05;

/// What one operation costs in one layout.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) arrangement: Arrangement,
    pub(super) prediction: Prediction,
    /// The prediction's levels, and how each was found.
    pub(super) levels: Vec<LevelAnswer>,
    pub(super) span_bytes: u64,
    /// Caches that miss more than if blocks fell into any set, with both.
    aliased: Vec<(String, f64, f64)>,
}

/// Misses of one level, and how they were found.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LevelAnswer {
    pub(super) name: String,
    pub(super) misses: f64,
    pub(super) ns: f64,
    pub(super) tier: String,
    pub(super) reason: String,
}

/// What one operation costs in this layout.
pub(super) fn answer(
    question: &Question<'_>,
    arrangement: Arrangement,
    cost: &CostArgs,
) -> Result<Answer, CliError> {
    answer_with(question, arrangement, cost, false)
}

/// As [`answer`]; to find whether nodes lie powers of two apart takes longer than the rest.
fn answer_with(
    question: &Question<'_>,
    arrangement: Arrangement,
    cost: &CostArgs,
    find_aliasing: bool,
) -> Result<Answer, CliError> {
    let tier = cost.tier()?;
    let machine = question.machine();
    let hierarchy = geometry_for(machine, tier);
    if hierarchy.is_none() && !matches!(tier, Tier::Auto | Tier::Footprint) {
        return Err(CliError::Request(format!(
            "--tier {tier} needs a machine whose sets and ways are known (presets have them)"
        )));
    }
    let pages = question.pages();
    if let (Tier::Closed, Some(hierarchy)) = (tier, hierarchy) {
        let formula = closed_form(question, arrangement)?;
        // All levels, or the nodes have to be placed after all.
        let levels = formula.predict_up_to(hierarchy, 1.0);
        let found = TierMisses::new(levels, hierarchy, pages);
        if let Some(prediction) = by_formula(question, &formula, &found, cost) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 2^32 nodes of 2^32 bytes"
            )]
            let span_bytes = formula.span_bytes() as u64;
            let found = Some(&found);
            return Ok(Answer::new(
                arrangement,
                prediction,
                found,
                machine,
                span_bytes,
            ));
        }
        // Some level has no formula.
        if let Some(whole) = question.whole()? {
            return answer_with(&whole, arrangement, cost, find_aliasing);
        }
    }
    let arranged = question.arrange(arrangement)?;
    let accesses = &arranged.accesses;
    let frames = frame_map(question.frames());
    let first = question.first_operations().map(|first| first.max(1) as f64);
    let by_sets = |hierarchy: &Hierarchy, tier: Tier| {
        let workload = Workload::Accesses(accesses);
        let mut found = tiers::predict(&workload, hierarchy, frames, tier, first);
        for level in &mut found {
            level.misses /= first.unwrap_or(1.0);
        }
        TierMisses::new(found, hierarchy, pages)
    };
    let found = match (hierarchy, arrangement) {
        (Some(hierarchy), _) if tier == Tier::Closed => {
            let formula = closed_form(question, arrangement)?;
            Some(TierMisses::new(
                formula.predict(hierarchy),
                hierarchy,
                pages,
            ))
        }
        (Some(hierarchy), _) => Some(by_sets(hierarchy, tier)),
        // Colours are about sets: the coloured cache is predicted by its geometry.
        (None, Arrangement::Coloured(_)) => {
            let caches = vec![question.colour_cache()?.clone()];
            let alone = Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new())
                .map_err(|error| CliError::Request(error.to_string()))?;
            Some(by_sets(&alone, Tier::PerSet))
        }
        (None, _) => None,
    };
    let known = Known {
        found: found.as_ref(),
        first,
        divided: None,
    };
    let prediction = Predictor::of(accesses)
        .style(cost.style.search_style())
        .overlap(cost.overlap())
        .predict_workload(Workload::Accesses(accesses), pages, machine, known);
    // Long operations crowd every set, wherever nodes lie, and take long to compare.
    let is_long = |level: &LevelMisses| level.touched_share > ALIASING_SHARE && level.misses > 0.0;
    let is_short = !prediction.levels.iter().any(is_long);
    let span_bytes = arranged.span_bytes;
    let mut answer = Answer::new(arrangement, prediction, found.as_ref(), machine, span_bytes);
    if let (Some(hierarchy), None) = (&machine.hierarchy, first)
        && is_short
        && tier == Tier::Auto
        && find_aliasing
    {
        answer.aliased = aliased(accesses, hierarchy, frames, found.as_ref());
    }
    Ok(answer)
}

/// The answers for several layouts, in their order, in parallel as far as memory allows. For the
/// first `aliased` of them it is found whether nodes lie powers of two apart.
pub(super) fn answers(
    question: &Question<'_>,
    arrangements: &[Arrangement],
    cost: &CostArgs,
    aliased: usize,
) -> Result<Vec<Answer>, CliError> {
    let threads = question.answers_at_once().min(arrangements.len());
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        while let i = next.fetch_add(1, Ordering::Relaxed)
            && let Some(&arrangement) = arrangements.get(i)
        {
            own.push((i, answer_with(question, arrangement, cost, i < aliased)));
        }
        own
    };
    let mut answers: Vec<(usize, Result<Answer, CliError>)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .flat_map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    answers.sort_by_key(|&(i, _)| i);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Which addresses caches see. Sets of no cache are chosen by more than the bits of a huge page.
fn frame_map(frames: Frames) -> FrameMap {
    match frames {
        Frames::Random {
            pages: PageSize::Small4K,
            ..
        } => FrameMap::Random,
        _ => FrameMap::Identity,
    }
}

/// The formula for the structure in this layout.
fn closed_form(question: &Question<'_>, arrangement: Arrangement) -> Result<ClosedForm, CliError> {
    let refuse = |why: &str| Err(CliError::Request(format!("--tier closed: {why}")));
    let growth = Growth::Complete;
    let arity = match question.structure() {
        Some(Structure::SearchTree { growth: own }) if own == growth => 2,
        Some(Structure::Tree { arity, growth: own }) if own == growth => arity,
        Some(Structure::PointTree {
            dimensions,
            growth: own,
        }) if own == growth => 1 << dimensions,
        _ => return refuse("formulas are for complete trees of nodes with one key"),
    };
    let uniform = matches!(question.keys(), KeyDistribution::Uniform);
    if question.operation() != Operation::Search || !uniform {
        return refuse("formulas are for searches for uniform keys");
    }
    if question.first_operations().is_some() {
        return refuse("formulas are for the steady state");
    }
    let Arrangement::Plain(layout) = arrangement else {
        return refuse("formulas are for layouts without colours and with links");
    };
    ClosedForm::new(layout, question.nodes(), arity, question.built().extent())
        .map_err(|error| CliError::Request(error.to_string()))
}

/// A prediction from the formula alone; `None` where it knows not all levels. What neighbours save
/// ([`Machine::neighbours`]) is not in it. O(log n).
fn by_formula(
    question: &Question<'_>,
    formula: &ClosedForm,
    found: &TierMisses,
    cost: &CostArgs,
) -> Option<Prediction> {
    let machine = question.machine();
    let mut levels = Vec::new();
    for level in machine.levels_for(question.pages()) {
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
    let predictor = Predictor::with_visits(formula.visits())
        .style(cost.style.search_style())
        .overlap(cost.overlap());
    Some(predictor.with_instructions(levels, machine))
}

/// How a level's misses were found, and why so.
fn method(
    level: &Level,
    found: Option<&TierMisses>,
    machine: &Machine,
    order_known: bool,
) -> (String, String) {
    let capacity = human_bytes(level.capacity_bytes());
    match found.and_then(|found| found.level(level, 0)) {
        Some(found) => (found.tier.to_string(), found.reason.clone()),
        None if order_known => (
            Tier::Sequence.to_string(),
            format!("all operations read in one order; the effective capacity, {capacity}"),
        ),
        None => {
            let replacement = match machine.replacement {
                Replacement::Lru => "LRU",
                Replacement::Random => "random replacement",
            };
            (
                Tier::Footprint.to_string(),
                format!("the effective capacity, {capacity}, {replacement}"),
            )
        }
    }
}

/// Caches that miss more than if blocks fell into any set. Only where addresses choose sets can
/// they.
fn aliased(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: FrameMap,
    found: Option<&TierMisses>,
) -> Vec<(String, f64, f64)> {
    let by_address = |cache: &&CacheLevel| {
        frames == FrameMap::Identity || cache.geometry.way_bytes() <= PageSize::Small4K.bytes()
    };
    let caches: Vec<CacheLevel> = hierarchy
        .caches()
        .iter()
        .take_while(by_address)
        .cloned()
        .collect();
    // A part of a hierarchy is one, unless it is none at all.
    let Ok(part) = Hierarchy::new(caches, Inclusion::NonInclusive, Vec::new()) else {
        return Vec::new();
    };
    let known = |level: &CacheLevel| {
        let mut caches = found?.caches().iter();
        caches
            .find(|other| other.name == level.name && other.tier == Tier::PerSet)
            .cloned()
    };
    let known: Option<Vec<LevelPrediction>> = part.caches().iter().map(known).collect();
    let by_sets = known.unwrap_or_else(|| predict_misses(accesses, &part, frames, Tier::PerSet));
    let by_chance = predict_misses(accesses, &part, frames, Tier::Poisson);
    by_sets
        .into_iter()
        .zip(by_chance)
        .filter(|(sets, chance)| {
            sets.misses > ALIASING_RATIO * chance.misses
                && sets.misses > chance.misses + ALIASING_MISSES
        })
        .map(|(sets, chance)| (sets.name, sets.misses, chance.misses))
        .collect()
}

impl Answer {
    fn new(
        arrangement: Arrangement,
        prediction: Prediction,
        found: Option<&TierMisses>,
        machine: &Machine,
        span_bytes: u64,
    ) -> Answer {
        let levels = prediction.levels.iter().map(|misses| {
            let level = machine
                .levels
                .iter()
                .find(|level| level.name == misses.name);
            let (tier, reason) = level.map_or_else(Default::default, |level| {
                method(level, found, machine, misses.order_known)
            });
            LevelAnswer {
                name: misses.name.clone(),
                misses: misses.misses,
                ns: misses.ns,
                tier,
                reason,
            }
        });
        let levels = levels.collect();
        Answer {
            arrangement,
            levels,
            prediction,
            span_bytes,
            aliased: Vec::new(),
        }
    }

    /// The warning that nodes lie powers of two apart, where they do.
    pub(super) fn aliasing_note(&self) -> Option<String> {
        let (name, sets, chance) = self.aliased.first()?;
        Some(format!(
            "{}: nodes lie powers of two apart and meet in few sets: {name} misses {} times an \
             operation, {} if they lay anywhere; another node size or layout helps",
            self.arrangement,
            human_number(*sets),
            human_number(*chance)
        ))
    }

    #[cfg(test)]
    pub(super) fn of_time(arrangement: Arrangement, ns: f64) -> Answer {
        Answer {
            arrangement,
            prediction: Prediction {
                ns,
                ns_low: ns,
                ns_high: ns,
                cpu_ns: 0.0,
                nodes_visited: 1.0,
                levels: Vec::new(),
            },
            levels: Vec::new(),
            span_bytes: 0,
            aliased: Vec::new(),
        }
    }
}

/// The warning that operations are long, where they are.
pub(super) fn crowded_note(answers: &[Answer]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let answers = answers.iter();
    for level in answers.flat_map(|answer| answer.prediction.crowded_levels()) {
        if !names.contains(&level.name.as_str()) {
            names.push(&level.name);
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "one operation touches more than {:.0} % of what {} can hold: real caches miss more \
             there than predicted",
            100.0 * LevelMisses::CROWDED_SHARE,
            names.join(", ")
        )
    })
}

/// What the reader should know of the machine before believing nanoseconds.
pub(super) fn machine_notes(machine: &Machine) -> Vec<String> {
    let mut notes = Vec::new();
    if machine.origin == Origin::Defaults {
        notes.push(
            "latencies are defaults, not measured: use --machine calibrate, or calibrate -o FILE \
             and --machine FILE"
                .to_owned(),
        );
    }
    notes
}
