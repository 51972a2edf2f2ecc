//! Structures as an allocator left them, against the same structures after `ccmorph`.
//!
//! The rivals' structures lie in their memory, ours in `CcMalloc`'s, morphed. The same machine code
//! asks them all, in turns. Lookups depend on the answer before, unless the name says otherwise.

mod regret;

use std::collections::HashMap;

use ccmodel::Layout;
use ccmorph::{Morph, TreeNode};

use super::{Pass, compare, pass};
use crate::keys;
use crate::queries::{Chain, Zipf};
use crate::rivals::{Allocator, OURS, SYSTEM};
use crate::rng::Rng;
use crate::rounds::Rounds;
use crate::search_tree::{Node, SearchTree, Tree};
use crate::source::{self, allocate_from};
use crate::structures::Structure;
use crate::structures::lists::{LINKS_EACH, Lists};
use crate::structures::octree::Octree;
use crate::structures::table::Table;
use crate::structures::tree::Plan;
use crate::worker::{Taken, measure};
use crate::workload::{
    Comparison, Effort, KEYS_2M, Rows, SEED, Side, Workload, against_each, agree, best_first,
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

/// The name of a layout in names of comparisons. `None` is the model's choice.
fn slug(layout: Option<Layout>) -> String {
    let name = layout.map_or_else(|| "auto".to_owned(), |it| it.to_string());
    name.replace(':', "_")
}

/// Morphs `structure`, which lies in `CcMalloc`'s memory. Returns its new layout.
pub(super) fn morph_in_place<S: Structure>(structure: &mut S, layout: Option<Layout>) -> Layout {
    let morph = Morph::new().layout(layout);
    let report = allocate_from(&OURS, || structure.morph(&morph));
    let report = report.expect("there is memory for one more structure");
    report.layout
}

/// A search tree with `keys`, as if inserted in their order, in the system's memory.
pub(super) fn tree_of(keys: &[u64]) -> SearchTree {
    let plan = Plan::of_inserts(keys);
    allocate_from(&SYSTEM, || plan.build_with(|_| ()))
}

/// A copy of `structure` in `CcMalloc`'s memory, morphed.
pub(super) fn morphed<S: Structure>(structure: &S, layout: Option<Layout>) -> S {
    let mut copy = allocate_from(&OURS, || structure.clone());
    morph_in_place(&mut copy, layout);
    copy
}

/// Copies of `structure` in the layout that the model chooses and in `layouts`, with their names.
fn in_layouts<S: Structure>(structure: &S, layouts: &[Layout]) -> Vec<(String, S)> {
    let layouts = [None].into_iter().chain(layouts.iter().copied().map(Some));
    let copies = layouts.map(|layout| (slug(layout), morphed(structure, layout)));
    copies.collect()
}

fn passes<'a, S>(
    structures: &'a [(String, S)],
    run: &'a dyn Fn(&S) -> u64,
) -> impl Iterator<Item = Pass<'a>> {
    structures
        .iter()
        .map(move |(name, it)| pass(name, name, move || run(it)))
}

/// One structure in the memory of each allocator, and morphed.
struct Subjects<S> {
    rivals: Vec<(&'static Allocator, S)>,
    unmorphed: S,
    /// In the model's choice, and in full runs in each layout.
    morphed: Vec<(String, S)>,
}

impl<S: Structure> Subjects<S> {
    fn new(effort: &Effort, build: impl Fn() -> S) -> Self {
        let rivals = source::rivals().map(|rival| (rival, allocate_from(rival, &build)));
        let rivals = rivals.collect();
        let unmorphed = allocate_from(&OURS, &build);
        let fixed = effort.scale.pick(&[][..], &FIXED);
        Subjects {
            rivals,
            morphed: in_layouts(&unmorphed, fixed),
            unmorphed,
        }
    }

    /// Rows called `name` of the model's choice against the best rival, each rival, and the
    /// unmorphed structure; and of each layout against the best rival.
    fn contest(
        &self,
        name: &str,
        effort: &Effort,
        operations: usize,
        run: &dyn Fn(&S) -> u64,
    ) -> Rows {
        let rivals = self.rivals.iter();
        let rivals = rivals.map(|(rival, it)| pass(rival.slug, rival.name, move || run(it)));
        let unmorphed = || run(&self.unmorphed);
        let unmorphed = pass("unmorphed", "ccmalloc, unmorphed", unmorphed);
        let morphed = passes(&self.morphed, run);
        let passes = rivals.chain([unmorphed]).chain(morphed).collect();
        let sides = compare(name, effort, operations, passes)?;

        let (rivals, rest) = sides.split_at(self.rivals.len());
        let [unmorphed, auto, fixed @ ..] = rest else {
            return Err("there is a pass for each subject".into());
        };
        let against = |rivals| against_each(name, "ns", &auto.rounds, rivals);
        let mut comparisons = best_first(name, against(rivals));
        comparisons.extend(against(std::slice::from_ref(unmorphed)));
        if let Some(best) = Side::best(rivals) {
            comparisons.extend(fixed.iter().map(|ours| {
                let name = format!("{name}_{}_vs_best", ours.slug);
                Comparison::new(name, best.name, "ns", &ours.rounds, &best.rounds)
            }));
        }
        Ok(comparisons)
    }
}

/// Lookups in a random tree of 2^22 nodes of 32 bytes: dependent, independent, and eight side by
/// side.
///
/// Independence alone gains little, as the processor cannot predict where a search ends. Side by
/// side, the misses of eight searches overlap.
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

/// Dependent lookups in a tree of 2^21 random keys.
pub(super) fn bst_random_2m(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(KEYS_2M, SEED);
    let chain = Chain::sample(&keys, effort.lookups / 4, SEED);
    let unmorphed = tree_of(&keys);
    let layouts = [
        Layout::DepthFirst,
        Layout::BreadthFirst,
        Layout::SubtreeCluster { block_bytes: 64 },
        Layout::VanEmdeBoas,
        Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    ];
    let trees = in_layouts(&unmorphed, &layouts);
    let rival = "system malloc, unmorphed";
    let follow = &|tree: &SearchTree| tree.follow(&chain);
    let mut all = vec![pass("malloc", rival, || follow(&unmorphed))];
    all.extend(passes(&trees, follow));
    let sides = compare(workload.name, effort, chain.len(), all)?;
    let comparisons = sides[1..].iter().map(|ours| {
        let name = format!("{}_{}_vs_malloc", workload.name, ours.slug);
        Comparison::new(name, rival, "ns", &ours.rounds, &sides[0].rounds)
    });
    Ok(comparisons.collect())
}

/// Walks of whole lists, whose links were inserted and deleted at random.
pub(super) fn list_churned_walk(workload: &Workload, effort: &Effort) -> Rows {
    let links = effort.scale.pick(1 << 20, 1 << 21);
    let churn = effort.scale.of(1 << 20);
    let subjects = Subjects::new(effort, || Lists::churned(links, churn, SEED));
    let all = subjects.morphed.iter().map(|(_, lists)| lists);
    for lists in all.chain([&subjects.unmorphed]) {
        assert!(lists.is_linked_both_ways(), "morphs keep parents' links");
    }
    let numbers: Vec<u64> = (0..(links / LINKS_EACH) as u64).collect();
    let chain = Chain::sample(&numbers, effort.lookups / 8, SEED);
    // Per link, so that the figure does not change with their number in a list.
    let operations = chain.len() * LINKS_EACH;
    let walk = |lists: &Lists| lists.follow(&chain);
    subjects.contest(workload.name, effort, operations, &walk)
}

/// Walks to a key in the chains of a hash table of 4 M entries at load factor 4.
pub(super) fn hash_chains_walk(workload: &Workload, effort: &Effort) -> Rows {
    let keys = keys::random(1 << 22, SEED);
    let subjects = Subjects::new(effort, || Table::with_keys(&keys));
    let chain = Chain::sample(&keys, effort.lookups / 4, SEED);
    let walk = |table: &Table| table.follow(&chain);
    subjects.contest(workload.name, effort, chain.len(), &walk)
}

/// Sums over the points of small cubes in an octree of 2^20 points, some 64 points each.
pub(super) fn octree_queries(workload: &Workload, effort: &Effort) -> Rows {
    let subjects = Subjects::new(effort, || Octree::random(1 << 20, SEED));
    let mut rng = Rng::new(SEED);
    let chain = Chain::draw(effort.lookups / 16, || rng.next_u64());
    let query = |octree: &Octree| octree.follow(&chain);
    subjects.contest(workload.name, effort, chain.len(), &query)
}

/// Dependent lookups after Zipf's law in a random tree: laid out by the counts of earlier lookups,
/// against the best layout that does not know them.
pub(super) fn weighted_zipf(workload: &Workload, effort: &Effort) -> Rows {
    let nodes = effort.scale.pick(1 << 19, 1 << 22);
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
    let mut others = in_layouts(&tree, &FIXED);
    others.rotate_left(1);
    others.push(("unmorphed".to_owned(), tree));

    let name = workload.name;
    let weighted = [
        ("weighted".to_owned(), by_weight),
        ("chosen by weight".to_owned(), chosen),
    ];
    let follow = &|tree: &Tree<u64>| tree.follow(&chain);
    let all = passes(&weighted, follow).chain(passes(&others, follow));
    let sides = compare(name, effort, chain.len(), all.collect())?;
    let (ours, others) = sides.split_at(2);
    let best = Side::best(others).ok_or("there are layouts without weights")?;
    let row = |name: String, rival: &str, ours: &Side<'_>| {
        Comparison::new(name, rival, "ns", &ours.rounds, &best.rounds)
    };
    let chosen = format!("{} (chosen: {chosen_layout})", best.name);
    let mut comparisons = vec![
        row(name.to_owned(), best.name, &ours[0]),
        row(format!("{name}_auto_vs_best"), &chosen, &ours[1]),
    ];
    comparisons.extend(against_each(name, "ns", &ours[0].rounds, others));
    Ok(comparisons)
}

/// A recursive copy of a random tree of 2^22 nodes against its morph, and resident memory before
/// the morph against after; see [`crate::programs::morphs`].
pub(super) fn morph_cost(workload: &Workload, effort: &Effort) -> Rows {
    let rounds = effort.scale.pick(1, effort.process_rounds);
    let rivals = source::rivals().take(effort.scale.pick(0, usize::MAX));
    let rivals: Vec<_> = rivals.collect();
    let mut variants = vec![("tree_morph", OURS.process), ("tree_clone", OURS.process)];
    variants.extend(rivals.iter().map(|rival| ("tree_clone", rival.process)));
    let taken = measure(&variants, effort.scale, rounds)?;
    let (morph, copies) = (&taken[0], &taken[1..]);
    let mut sum = Some(morph.checksum());
    agree(&mut sum, copies[0].checksum(), workload.name, "the copy")?;
    let (time, memory) = (workload.name, workload.also[0]);
    let mut sides = vec![(time.to_owned(), "recursive copy".to_owned())];
    let mut weighed = vec![(memory.to_owned(), "before the morph".to_owned())];
    for rival in &rivals {
        let (slug, name) = (rival.process, rival.name);
        sides.push((format!("{time}_in_{slug}"), format!("copy in {name}")));
        weighed.push((format!("{memory}_vs_{slug}"), name.to_owned()));
    }
    let rows = |sides: Vec<(String, String)>, unit, figure: fn(&Taken) -> Rounds| {
        let row = move |((name, rival), copies): ((String, String), &Taken)| {
            Comparison::new(name, &rival, unit, &figure(morph), &figure(copies))
        };
        sides.into_iter().zip(copies).map(row)
    };
    let times = rows(sides, "ms", Taken::ms);
    Ok(times
        .chain(rows(weighed, "B", Taken::object_bytes))
        .collect())
}
