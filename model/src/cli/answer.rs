//! One layout's answer: misses by the tiers, time by the machine.
//!
//! A machine that was calibrated, and this one as long as it was not, are known by effective
//! capacities: what of a cache is there for one program. The footprint tier predicts from those.
//! Presets are known by their geometry, which any tier can take; so is every machine when a tier is
//! asked for by name.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::CliError;
use super::args::CostArgs;
use super::arrangement::Arrangement;
use super::output::{human_bytes, human_number};
use super::question::{Arranged, Question};
use crate::machine::Origin;
use crate::tiers::Sequence;
use crate::{
    Accesses, CacheLevel, ClosedForm, Footprint, FrameMap, Frames, Growth, Hierarchy,
    KeyDistribution, Level, LevelKind, LevelMisses, LevelPrediction, Machine, Operation, PageSize,
    Prediction, Predictor, Replacement, Structure, Tier, predict_misses, predict_transient,
};

/// A cache misses more than this where blocks lie, over what it would miss if they lay anywhere,
/// before a note says so.
const ALIASING_RATIO: f64 = 1.2;
/// And at least so many misses of an operation more.
const ALIASING_MISSES: f64 = 0.1;

/// What one operation costs in one layout.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) arrangement: Arrangement,
    pub(super) ns: f64,
    pub(super) ns_low: f64,
    pub(super) ns_high: f64,
    pub(super) cpu_ns: f64,
    pub(super) nodes_visited: f64,
    pub(super) levels: Vec<LevelAnswer>,
    pub(super) span_bytes: u64,
    /// Levels of which an operation touches a good part, though the tier takes operations as short.
    /// With the part of the level that it touches.
    pub(super) crowded: Vec<(String, f64)>,
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

/// How misses are found on a machine.
enum Method<'a> {
    /// From the effective capacities of its levels.
    Capacities,
    /// From the geometry of its caches.
    Geometry(&'a Hierarchy, Tier),
}

impl<'a> Method<'a> {
    fn of(machine: &'a Machine, tier: Tier) -> Result<Method<'a>, CliError> {
        let is_published = machine.origin == Origin::Preset;
        match (&machine.hierarchy, tier) {
            (Some(hierarchy), Tier::Auto) if is_published => Ok(Method::Geometry(hierarchy, tier)),
            (_, Tier::Auto | Tier::Footprint) if !is_published => Ok(Method::Capacities),
            (Some(hierarchy), _) => Ok(Method::Geometry(hierarchy, tier)),
            (None, Tier::Auto | Tier::Footprint) => Ok(Method::Capacities),
            (None, _) => Err(CliError::Request(format!(
                "--tier {tier} needs a machine whose sets and ways are known (presets have them)"
            ))),
        }
    }
}

/// What one operation costs in this layout.
pub(super) fn answer(
    question: &Question<'_>,
    arrangement: Arrangement,
    cost: &CostArgs,
) -> Result<Answer, CliError> {
    answer_with(question, arrangement, cost, false)
}

/// As [`answer`]; whether nodes lie powers of two apart takes longer to find than all the rest.
fn answer_with(
    question: &Question<'_>,
    arrangement: Arrangement,
    cost: &CostArgs,
    find_aliasing: bool,
) -> Result<Answer, CliError> {
    let tier = cost.tier()?;
    let machine = question.machine();
    let method = Method::of(machine, tier)?;
    if let Method::Geometry(hierarchy, Tier::Closed) = method {
        let formula = closed_form(question, arrangement)?;
        // All levels, or the nodes have to be placed after all.
        let levels = formula.predict_up_to(hierarchy, 1.0);
        let found = Found::new(levels, hierarchy, question.pages());
        if let Some(prediction) = by_formula(question, &formula, &found, cost) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 2^32 nodes of 2^32 bytes"
            )]
            let span_bytes = formula.span_bytes() as u64;
            return Ok(Answer::new(
                arrangement,
                prediction,
                &found,
                machine,
                span_bytes,
                Vec::new(),
            ));
        }
        // Some level has no formula: by what is known of all nodes.
        if let Some(whole) = question.whole()? {
            return answer_with(&whole, arrangement, cost, find_aliasing);
        }
    }
    let arranged = question.arrange(arrangement)?;
    let accesses = &arranged.accesses;
    let pages = question.pages();
    let frames = frame_map(question.frames());
    let predictor = Predictor::of(accesses)
        .style(cost.style.search_style())
        .overlap(cost.overlap());
    let first = question.first_operations();
    let found = match method {
        Method::Geometry(hierarchy, Tier::Closed) => {
            let formula = closed_form(question, arrangement)?;
            Found::new(formula.predict(hierarchy), hierarchy, pages)
        }
        Method::Geometry(hierarchy, tier) => {
            let found = match first {
                Some(first) => of_each(
                    predict_transient(accesses, hierarchy, frames, tier, first),
                    first,
                ),
                None => predict_misses(accesses, hierarchy, frames, tier),
            };
            Found::new(found, hierarchy, pages)
        }
        Method::Capacities => coloured_cache(question, arrangement, &arranged)?,
    };
    let mut footprints = Footprints::new(accesses);
    let prediction = predictor.predict_found(accesses, pages, machine, |level, step| {
        let known = found.misses(level, step);
        match (known, first) {
            (None, Some(first)) => Some(footprints.first_misses(level, step, machine, first)),
            (known, _) => known,
        }
    });
    // Long operations crowd every set, wherever nodes lie, and take long to weigh.
    let is_short = !(prediction.levels.iter())
        .any(|level| level.touched_share > LevelMisses::CROWDED_SHARE && level.misses > 0.0);
    let aliased = match (&machine.hierarchy, first) {
        (Some(hierarchy), None) if is_short && tier == Tier::Auto && find_aliasing => {
            aliased(accesses, hierarchy, frames, &found)
        }
        _ => Vec::new(),
    };
    Ok(Answer::new(
        arrangement,
        prediction,
        &found,
        machine,
        arranged.span_bytes,
        aliased,
    ))
}

/// The answers for several layouts, in their order; as many at a time as there are processors and
/// memory. For the first `aliased` of them it is found out whether nodes lie powers of two apart.
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

/// Misses of so many operations as the mean of one.
fn of_each(mut found: Vec<LevelPrediction>, operations: u64) -> Vec<LevelPrediction> {
    for level in &mut found {
        level.misses /= operations.max(1) as f64;
    }
    found
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
    found: &Found,
    cost: &CostArgs,
) -> Option<Prediction> {
    let machine = question.machine();
    let mut levels = Vec::new();
    for level in machine.levels_for(question.pages()) {
        let block_bytes = level.block_bytes;
        let (mut ns, mut misses) = (0.0, 0.0);
        for (step, costs) in level.steps.iter().enumerate() {
            let missed = found.misses(level, step)?;
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

/// Misses that were found level by level.
struct Found {
    caches: Vec<LevelPrediction>,
    /// Those that translate the pages in question.
    tlbs: Vec<LevelPrediction>,
}

impl Found {
    /// Sorts what was found of a hierarchy, caches first.
    fn new(found: Vec<LevelPrediction>, hierarchy: &Hierarchy, pages: PageSize) -> Found {
        let is_tlb = |level: &LevelPrediction| {
            let mut tlbs = hierarchy.tlbs().iter();
            tlbs.any(|tlb| tlb.name == level.name && tlb.geometry.block_bytes() == pages.bytes())
        };
        let is_cache = |level: &LevelPrediction| {
            let mut caches = hierarchy.caches().iter();
            caches.any(|cache| cache.name == level.name)
        };
        Found {
            caches: found
                .iter()
                .filter(|level| is_cache(level))
                .cloned()
                .collect(),
            tlbs: found.into_iter().filter(is_tlb).collect(),
        }
    }

    /// Of one step of a machine's level: a cache has its name; the steps of the translations are
    /// the buffers, in order.
    fn level(&self, level: &Level, step: usize) -> Option<&LevelPrediction> {
        match level.kind {
            LevelKind::Data => self.caches.iter().find(|found| found.name == level.name),
            LevelKind::Pages(_) => self.tlbs.get(step),
        }
    }

    fn misses(&self, level: &Level, step: usize) -> Option<f64> {
        self.level(level, step).map(|found| found.misses)
    }

    /// How the level's misses were found, and why so.
    fn method(&self, level: &Level, machine: &Machine, order_known: bool) -> (String, String) {
        let capacity = human_bytes(level.capacity_bytes());
        match self.level(level, 0) {
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
}

/// Colours are a matter of sets: where nothing else is known by its geometry, the coloured cache
/// is.
fn coloured_cache(
    question: &Question<'_>,
    arrangement: Arrangement,
    arranged: &Arranged,
) -> Result<Found, CliError> {
    let mut caches = Vec::new();
    if let Arrangement::Coloured(_) = arrangement {
        let cache = question.colour_cache()?;
        let alone = Hierarchy::new(
            vec![cache.clone()],
            crate::Inclusion::NonInclusive,
            Vec::new(),
        )
        .map_err(|error| CliError::Request(error.to_string()))?;
        let frames = frame_map(question.frames());
        caches = match question.first_operations() {
            Some(first) => of_each(
                predict_transient(&arranged.accesses, &alone, frames, Tier::PerSet, first),
                first,
            ),
            None => predict_misses(&arranged.accesses, &alone, frames, Tier::PerSet),
        };
        for found in &mut caches {
            "colours are a matter of sets".clone_into(&mut found.reason);
        }
    }
    Ok(Found {
        caches,
        tlbs: Vec::new(),
    })
}

/// Footprints by block size, for what no tier was asked about.
struct Footprints<'a> {
    accesses: &'a Accesses,
    known: Vec<(u64, Footprint)>,
    /// Where all operations read one.
    sequence: Option<Sequence<'a>>,
}

impl<'a> Footprints<'a> {
    fn new(accesses: &'a Accesses) -> Footprints<'a> {
        Footprints {
            accesses,
            known: Vec::new(),
            sequence: Sequence::of(accesses),
        }
    }

    fn of(&mut self, block_bytes: u64) -> &Footprint {
        let index = match self.known.iter().position(|(size, _)| *size == block_bytes) {
            Some(index) => index,
            None => {
                let blocks = self.accesses.block_probabilities(block_bytes);
                self.known.push((block_bytes, blocks.footprint()));
                self.known.len() - 1
            }
        };
        &self.known[index].1
    }

    /// Mean misses of one of the first `first` operations from cold: all blocks are new until the
    /// cache is full, after that it is as ever.
    fn first_misses(&mut self, level: &Level, step: usize, machine: &Machine, first: u64) -> f64 {
        let capacity = level
            .steps
            .get(step)
            .map_or(0.0, |step| step.capacity_bytes);
        let capacity_blocks = capacity / level.block_bytes as f64;
        let operations = first.max(1) as f64;
        if let Some(sequence) = &self.sequence {
            let block_bytes = level.block_bytes;
            return sequence.first_misses(block_bytes, capacity_blocks, operations) / operations;
        }
        let footprint = self.of(level.block_bytes);
        let full = footprint.characteristic_time(capacity_blocks, machine.replacement);
        let steady = footprint.misses(capacity_blocks, machine.replacement);
        let new = footprint.distinct_blocks(operations.min(full));
        (new + (operations - full).max(0.0) * steady) / operations
    }
}

/// Caches that miss more than if blocks fell into any set. Only where addresses choose sets can
/// they.
fn aliased(
    accesses: &Accesses,
    hierarchy: &Hierarchy,
    frames: FrameMap,
    found: &Found,
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
    let Ok(part) = Hierarchy::new(caches, crate::Inclusion::NonInclusive, Vec::new()) else {
        return Vec::new();
    };
    let known = |level: &CacheLevel| {
        let mut sets = found.caches.iter();
        sets.find(|other| other.name == level.name && other.tier == Tier::PerSet)
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
        found: &Found,
        machine: &Machine,
        span_bytes: u64,
        aliased: Vec<(String, f64, f64)>,
    ) -> Answer {
        let levels = prediction.levels.iter().map(|misses| {
            let level = machine
                .levels
                .iter()
                .find(|level| level.name == misses.name);
            let (tier, reason) = level.map_or_else(Default::default, |level| {
                found.method(level, machine, misses.order_known)
            });
            LevelAnswer {
                name: misses.name.clone(),
                misses: misses.misses,
                ns: misses.ns,
                tier,
                reason,
            }
        });
        Answer {
            arrangement,
            ns: prediction.ns,
            ns_low: prediction.ns_low,
            ns_high: prediction.ns_high,
            cpu_ns: prediction.cpu_ns,
            nodes_visited: prediction.nodes_visited,
            levels: levels.collect(),
            span_bytes,
            crowded: (prediction.levels.iter())
                .filter(|misses| {
                    let mut levels = machine.levels.iter();
                    let level = levels.find(|level| level.name == misses.name);
                    let is_long = misses.touched_share > LevelMisses::CROWDED_SHARE;
                    // Tiers that know sets know the order of what an operation reads, too.
                    match level.and_then(|level| found.level(level, 0)) {
                        Some(found) => {
                            is_long && misses.misses > 0.0 && found.tier == Tier::Footprint
                        }
                        None => misses.is_crowded(),
                    }
                })
                .map(|misses| (misses.name.clone(), misses.touched_share))
                .collect(),
            aliased,
        }
    }

    /// The warning that nodes lie powers of two apart, where they do.
    pub(super) fn aliasing_note(&self) -> Option<String> {
        let (name, sets, chance) = self.aliased.first()?;
        Some(format!(
            "{}: nodes lie powers of two apart and meet in few sets: {name} misses {} times an operation, {} if they lay anywhere; another node size or layout helps",
            self.arrangement,
            human_number(*sets),
            human_number(*chance)
        ))
    }

    #[cfg(test)]
    pub(super) fn of_time(arrangement: Arrangement, ns: f64) -> Answer {
        Answer {
            arrangement,
            ns,
            ns_low: ns,
            ns_high: ns,
            cpu_ns: 0.0,
            nodes_visited: 1.0,
            levels: Vec::new(),
            span_bytes: 0,
            crowded: Vec::new(),
            aliased: Vec::new(),
        }
    }
}

/// The warning that operations are long, where they are.
pub(super) fn crowded_note(answers: &[Answer]) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in answers.iter().flat_map(|answer| &answer.crowded) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| {
        format!(
            "one operation touches more than {:.0} % of what {} can hold: real caches miss more there than predicted",
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
            "latencies are defaults, not measured: use --machine calibrate, or calibrate -o FILE and --machine FILE"
                .to_owned(),
        );
    }
    notes
}
