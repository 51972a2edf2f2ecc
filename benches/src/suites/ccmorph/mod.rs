//! Structures as an allocator left them, against the same structures after `ccmorph`.
//!
//! The rivals' structures are built in their memory, ours in `CcMalloc`'s, and morphed. The same
//! machine code asks all of them the same, in turns. Each operation's query depends on the answer
//! before, unless the name says otherwise. [`regret`] measures how far the model's choice of a
//! layout is from the best one.

mod regret;

use std::collections::HashMap;

use ccmodel::Layout;
use ccmorph::{Morph, TreeNode};

use super::predictions::{answer, tree_of};
use super::{compare, pass};
use crate::keys;
use crate::programs::Scale;
use crate::queries::{Chain, Zipf};
use crate::rivals::{Allocator, OURS, SYSTEM};
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::search_tree::{Node, Tree};
use crate::source::{self, allocate_from};
use crate::structures::Structure;
use crate::structures::lists::{LINKS_EACH, Lists};
use crate::structures::octree::Octree;
use crate::structures::table::Table;
use crate::structures::tree::Plan;
use crate::worker::{Taken, measure};
use crate::workload::{
    Comparison, Effort, KEYS_2M, Rows, SEED, Workload, against_each, best_first, wrong_answer,
};

pub(super) use regret::auto_regret;

/// The layouts that depend on the shape alone.
const FIXED: [Layout; 8] = [
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::VanEmdeBoas,
    Layout::Hierarchical,
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::ClusterVanEmdeBoas { block_bytes: 256 },
    Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
];

/// The model's choice, and then `layouts`.
fn auto_and(layouts: &[Layout]) -> impl Iterator<Item = Option<Layout>> {
    std::iter::once(None).chain(layouts.iter().copied().map(Some))
}

/// The name of a layout in names of comparisons. `None` is the model's choice.
fn slug(layout: Option<Layout>) -> String {
    layout.map_or_else(
        || "auto".to_owned(),
        |layout| layout.to_string().replace(':', "_"),
    )
}

/// Morphs `structure`, which lies in `CcMalloc`'s memory. Returns its new layout.
///
/// # Panics
/// When there is no memory for it.
fn morph_in_place<S: Structure>(structure: &mut S, layout: Option<Layout>) -> Layout {
    let morph = Morph::new().layout(layout);
    let report = allocate_from(&OURS, || structure.morph(&morph));
    let report = report.expect("there is memory for one more structure");
    report.layout
}

/// A copy of `structure` in `CcMalloc`'s memory, morphed.
fn morphed<S: Structure>(structure: &S, layout: Option<Layout>) -> S {
    let mut copy = allocate_from(&OURS, || structure.clone());
    morph_in_place(&mut copy, layout);
    copy
}

/// One structure in the memory of each allocator, and morphed.
struct Subjects<S> {
    /// As the rivals allocated it.
    rivals: Vec<(&'static Allocator, S)>,
    /// As `CcMalloc` allocated it.
    unmorphed: S,
    /// The model's choice, and in full runs each layout, with their names.
    morphed: Vec<(String, S)>,
}

impl<S: Structure> Subjects<S> {
    fn new(effort: &Effort, build: impl Fn() -> S) -> Self {
        let rivals = source::rivals()
            .map(|rival| (rival, allocate_from(rival, &build)))
            .collect();
        let unmorphed = allocate_from(&OURS, &build);
        let fixed = match effort.scale {
            Scale::Quick => &[],
            Scale::Full => FIXED.as_slice(),
        };
        let morphed = auto_and(fixed).map(|layout| (slug(layout), morphed(&unmorphed, layout)));
        Subjects {
            rivals,
            morphed: morphed.collect(),
            unmorphed,
        }
    }

    /// Times `run`, of `operations`, on all of them, as rows called `name`: the model's choice
    /// against the best rival, each rival, and the unmorphed structure; and each layout against the
    /// best rival.
    fn contest(
        &self,
        name: &str,
        effort: &Effort,
        operations: usize,
        run: impl Fn(&S) -> u64,
    ) -> Rows {
        let rivals = self.rivals.iter().map(|(rival, it)| (rival.name, it));
        let morphed = self.morphed.iter().map(|(name, it)| (name.as_str(), it));
        let all = rivals.chain([("ccmalloc", &self.unmorphed)]).chain(morphed);
        let passes = all.map(|(name, structure)| pass(name, || run(structure)));
        let times = compare(name, effort, operations, passes.collect())?;
        let (theirs, rest) = times.split_at(self.rivals.len());
        let (unmorphed, ours) = (&rest[0], &rest[1..]);

        let against = |rivals| against_each(name, "ns", &ours[0], rivals);
        let rivals = self.rivals.iter().zip(theirs);
        let rivals = rivals.map(|((rival, _), theirs)| (rival.slug, rival.name, theirs));
        let rivals: Vec<_> = rivals.collect();
        let best = best_of(rivals.iter().map(|&(_, rival, theirs)| (rival, theirs)));
        let mut comparisons = best_first(name, against(rivals));
        let unmorphed = ("unmorphed", "ccmalloc, unmorphed", unmorphed);
        comparisons.extend(against(vec![unmorphed]));
        if let Some((rival, theirs)) = best {
            for ((layout, _), ours) in self.morphed.iter().zip(ours).skip(1) {
                let name = format!("{name}_{layout}_vs_best");
                comparisons.push(Comparison::new(name, rival, "ns", ours, theirs));
            }
        }
        Ok(comparisons)
    }
}

/// The one with the least median.
fn best_of<'a>(all: impl Iterator<Item = (&'a str, &'a Rounds)>) -> Option<(&'a str, &'a Rounds)> {
    all.min_by(|a, b| a.1.median().total_cmp(&b.1.median()))
}

/// Lookups in a tree of 2^22 nodes of 32 bytes that was built in random order: dependent,
/// independent, and eight side by side.
///
/// Independence gains little by itself: the processor cannot predict where a search ends, so it
/// does not run ahead into the next one. Side by side, the misses of eight searches overlap.
pub(super) fn bst_random_4m(workload: &Workload, effort: &Effort) -> Rows {
    let plan = Plan::of_inserts(&keys::random(1 << 22, SEED));
    let subjects = Subjects::new(effort, || plan.build());
    let mut rng = Rng::new(SEED);
    let mut query = || plan.keys()[rng.below(plan.keys().len())];
    // Each takes more than a microsecond at first.
    let lookups = effort.lookups / 4;
    let chain = Chain::draw(lookups, &mut query);
    let known: Vec<u64> = (0..lookups).map(|_| query()).collect();
    drop(plan);

    type Run<'a> = &'a dyn Fn(&Tree<u64>) -> u64;
    let runs: [(&str, Run<'_>); 3] = [
        (workload.name, &|tree| tree.follow(&chain)),
        (workload.also[0], &|tree| tree.get_all(&known)),
        (workload.also[1], &|tree| tree.get_all_side_by_side(&known)),
    ];
    let mut comparisons = Vec::new();
    for (name, run) in runs {
        comparisons.extend(subjects.contest(name, effort, lookups, run)?);
    }
    Ok(comparisons)
}

/// Lookups that wait for each other, in a tree of 2^21 random keys that was built in random order.
pub(super) fn bst_random_2m(workload: &Workload, effort: &Effort) -> Rows {
    let layouts = auto_and(&[
        Layout::DepthFirst,
        Layout::BreadthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    ]);
    let keys = keys::random(KEYS_2M, SEED);
    let chain = Chain::sample(&keys, effort.lookups / 4, SEED);
    let unmorphed = tree_of(&SYSTEM, &keys);
    let trees = layouts.map(|layout| {
        allocate_from(&OURS, || {
            let mut copy = unmorphed.clone();
            let morph = Morph::new().layout(layout);
            let report = morph.run(&mut copy.root, Node::children);
            report.expect("there is memory for one more tree");
            (slug(layout), copy)
        })
    });
    let trees: Vec<_> = trees.collect();

    let all = [("malloc", &unmorphed)].into_iter();
    let all = all.chain(trees.iter().map(|(slug, tree)| (slug.as_str(), tree)));
    let passes = all.map(|(name, tree)| pass(name, || chain.follow(|&key| answer(tree, key))));
    let times = compare(workload.name, effort, chain.len(), passes.collect())?;
    let comparisons = trees.iter().zip(&times[1..]).map(|((slug, _), ours)| {
        let name = format!("{}_{slug}_vs_malloc", workload.name);
        let rival = "system malloc, unmorphed";
        Comparison::new(name, rival, "ns", ours, &times[0])
    });
    Ok(comparisons.collect())
}

/// Walks of whole lists, each of some 32 links that were inserted and deleted at random: 2^21 links
/// in all, half of them in a quick run.
pub(super) fn list_churned_walk(workload: &Workload, effort: &Effort) -> Rows {
    let links = match effort.scale {
        Scale::Quick => 1 << 20,
        Scale::Full => 1 << 21,
    };
    let churn = effort.scale.of(1 << 20);
    let subjects = Subjects::new(effort, || Lists::churned(links, churn, SEED));
    let all = subjects.morphed.iter().map(|(_, lists)| lists);
    for lists in all.chain([&subjects.unmorphed]) {
        assert!(
            lists.is_linked_both_ways(),
            "a morph and a copy keep the links to the front right"
        );
    }
    let numbers: Vec<u64> = (0..(links / LINKS_EACH) as u64).collect();
    let chain = Chain::sample(&numbers, effort.lookups / 8, SEED);
    // Per link, so that the figure does not change with their number in a list.
    let operations = chain.len() * LINKS_EACH;
    subjects.contest(workload.name, effort, operations, |lists| {
        lists.follow(&chain)
    })
}

/// Walks to a key in the chains of a hash table of 4 M entries at load factor 4.
pub(super) fn hash_chains_walk(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(1 << 22, SEED);
    let subjects = Subjects::new(effort, || Table::with_keys(&keys));
    let chain = Chain::sample(&keys, effort.lookups / 4, SEED);
    subjects.contest(workload.name, effort, chain.len(), |table| {
        table.follow(&chain)
    })
}

/// Sums over the points of small cubes in an octree of 2^20 points, some 64 points each.
pub(super) fn octree_queries(workload: &Workload, effort: &Effort) -> Rows {
    let subjects = Subjects::new(effort, || Octree::random(1 << 20, SEED));
    let mut rng = Rng::new(SEED);
    let chain = Chain::draw(effort.lookups / 16, || rng.next_u64());
    subjects.contest(workload.name, effort, chain.len(), |octree| {
        octree.follow(&chain)
    })
}

/// Dependent lookups with a frequency after Zipf's law in a random tree of 2^22 nodes, 2^19 in a
/// quick run: laid out by the counts of earlier lookups, against the best layout that does not know
/// them.
pub(super) fn weighted_zipf(workload: &Workload, effort: &Effort) -> Rows {
    let nodes = match effort.scale {
        Scale::Quick => 1 << 19,
        Scale::Full => 1 << 22,
    };
    let keys = keys::random(nodes, SEED);
    let tree = allocate_from(&OURS, || Plan::of_inserts(&keys).build());
    // The counts are of other lookups than those that are timed; what is hot is the same.
    let mut queries = Zipf::new(&keys, SEED);
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for _ in 0..nodes {
        *counts.entry(queries.draw()).or_default() += 1;
    }
    let chain = Chain::draw(effort.lookups / 4, || queries.draw());
    // A copy that is laid out by `counts`, and its layout.
    let weighted = |layout: Option<Layout>| {
        allocate_from(&OURS, || {
            let mut copy = tree.clone();
            let morph = Morph::new().layout(layout);
            let report = morph.run_weighted(&mut copy.root, Node::children, |node| {
                f64::from(counts.get(&node.key).copied().unwrap_or(0))
            });
            let report = report.expect("there is memory for one more tree");
            (copy, report.layout)
        })
    };

    let (by_weight, _) = weighted(Some(Layout::Weighted));
    let (chosen, chosen_layout) = weighted(None);
    let mut trees = vec![
        ("weighted".to_owned(), by_weight),
        ("chosen by weight".to_owned(), chosen),
    ];
    let with_weights = trees.len();
    let unweighted = FIXED.map(Some).into_iter();
    let unweighted = unweighted.chain([None]);
    trees.extend(unweighted.map(|layout| (slug(layout), morphed(&tree, layout))));
    trees.push(("unmorphed".to_owned(), tree));

    let passes = trees
        .iter()
        .map(|(name, tree)| pass(name, || tree.follow(&chain)));
    let times = compare(workload.name, effort, chain.len(), passes.collect())?;
    let others = trees.iter().zip(&times).skip(with_weights);
    let others = others.map(|((name, _), times)| (name.as_str(), times));
    let name = workload.name;
    let mut comparisons = Vec::new();
    if let Some((best, theirs)) = best_of(others.clone()) {
        let chosen = format!("{best} (chosen: {chosen_layout})");
        for (name, rival, ours) in [
            (name.to_owned(), best, &times[0]),
            (format!("{name}_auto_vs_best"), chosen.as_str(), &times[1]),
        ] {
            comparisons.push(Comparison::new(name, rival, "ns", ours, theirs));
        }
    }
    let others = others.map(|(rival, theirs)| (rival, rival, theirs));
    comparisons.extend(against_each(name, "ns", &times[0], others));
    Ok(comparisons)
}

/// A recursive copy of a random tree of 2^22 nodes of 32 bytes against its morph in the layout that
/// the model chooses; and resident memory before the morph against after.
///
/// Copies and morphs run in processes of their own, in turns, each on a tree that was built there
/// ([`crate::programs::morphs`]): neither finds memory or caches as the other left them.
pub(super) fn morph_cost(workload: &Workload, effort: &Effort) -> Rows {
    let (rounds, rivals): (_, Vec<_>) = match effort.scale {
        Scale::Quick => (1, Vec::new()),
        Scale::Full => (effort.process_rounds, source::rivals().collect()),
    };
    let clones = rivals.iter().map(|rival| ("tree_clone", rival.process));
    let own = [("tree_morph", OURS.process), ("tree_clone", OURS.process)];
    let variants: Vec<_> = own.into_iter().chain(clones).collect();
    let taken = measure(&variants, effort.scale, rounds)?;
    let (morph, copies) = (&taken[0], &taken[1..]);
    if copies[0].checksum != morph.checksum {
        return Err(wrong_answer(workload.name, "the copy"));
    }

    let (time, memory) = (workload.name, workload.also[0]);
    let ms = |name: String, rival: &str, copies: &Taken| {
        Comparison::new(name, rival, "ms", &morph.ms, &copies.ms)
    };
    let bytes = |name: String, rival: &str, copies: &Taken| {
        let (ours, theirs) = (&morph.object_bytes, &copies.object_bytes);
        Comparison::new(name, rival, "B", ours, theirs)
    };
    let mut times = vec![ms(time.to_owned(), "recursive copy", &copies[0])];
    let mut weights = vec![bytes(memory.to_owned(), "before the morph", &copies[0])];
    for (rival, copies) in rivals.iter().zip(&copies[1..]) {
        let (slug, name) = (rival.process, rival.name);
        times.push(ms(
            format!("{time}_in_{slug}"),
            &format!("copy in {name}"),
            copies,
        ));
        weights.push(bytes(format!("{memory}_vs_{slug}"), name, copies));
    }
    times.extend(weights);
    Ok(times)
}
