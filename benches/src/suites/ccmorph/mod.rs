//! Structures as an allocator left them, against the same structures after `ccmorph`.
//!
//! | module | measures |
//! |---|---|
//! | [`lookups`] | searches in random trees |
//! | [`walks`] | churned lists, hash chains, range queries in an octree |
//! | [`regret`] | how far the model's choice of a layout is from the best one |
//! | [`weighted`] | hot keys: the layout that knows them |
//! | [`cost`] | what a morph takes: time and memory |
//!
//! The rivals' structures are built in their memory, ours in `CcMalloc`'s, and morphed; all of them
//! are then asked the same, by the same machine code, in turns.

pub mod cost;
pub mod lookups;
pub mod regret;
pub mod walks;
pub mod weighted;

use ccmodel::Layout;
use ccmorph::Morph;

use super::{Pass, against_the_best, compare};
use crate::programs::Scale;
use crate::rivals::AllocatorRival;
use crate::rounds::Rounds;
use crate::source::{Source, allocate_from, rivals};
use crate::structures::Structure;
use crate::workload::{Comparison, Effort, Failure, Workload};

pub use cost::MORPH_COST;
pub use lookups::{BST_RANDOM_4M, BST_RANDOM_DEPENDENT_2M};
pub use regret::AUTO_REGRET;
pub use walks::{HASH_CHAINS_WALK, LIST_CHURNED_WALK, OCTREE_QUERIES};
pub use weighted::WEIGHTED_ZIPF;

/// The layouts that need to know nothing but the shape.
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

/// The name of a layout in names of comparisons; `None` is the model's choice.
fn slug(layout: Option<Layout>) -> String {
    layout.map_or_else(
        || "auto".to_owned(),
        |layout| layout.to_string().replace(':', "_"),
    )
}

/// Lays `structure`, which lies in `CcMalloc`'s memory, out anew, and returns the layout that it
/// has then.
///
/// # Panics
/// When there is no memory for it.
fn morph_in_place<S: Structure>(structure: &mut S, layout: Option<Layout>) -> Layout {
    let morph = layout.map_or_else(Morph::new, |layout| Morph::new().layout(layout));
    let report = allocate_from(Source::CcMalloc, || structure.morph(&morph));
    report
        .expect("there is memory for one more structure")
        .layout
}

/// A copy of `structure` in `CcMalloc`'s memory, laid out.
fn morphed<S: Structure>(structure: &S, layout: Option<Layout>) -> S {
    let mut copy = allocate_from(Source::CcMalloc, || structure.copy());
    morph_in_place(&mut copy, layout);
    copy
}

/// One structure in many places.
struct Subjects<S> {
    /// As the rivals allocated it.
    rivals: Vec<(&'static AllocatorRival, S)>,
    /// As `CcMalloc` allocated it.
    unmorphed: S,
    /// Morphed: the model's choice first, and in full runs each layout by itself, with their names.
    morphed: Vec<(String, S)>,
}

impl<S: Structure> Subjects<S> {
    fn new(effort: &Effort, build: impl Fn() -> S) -> Self {
        let rivals = rivals()
            .map(|rival| (rival, allocate_from(Source::Rival(rival), &build)))
            .collect();
        let unmorphed = allocate_from(Source::CcMalloc, &build);
        let fixed = match effort.scale {
            Scale::Quick => &[],
            Scale::Full => FIXED.as_slice(),
        };
        let layouts = std::iter::once(None).chain(fixed.iter().copied().map(Some));
        let morphed = layouts
            .map(|layout| (slug(layout), morphed(&unmorphed, layout)))
            .collect();
        Subjects {
            rivals,
            unmorphed,
            morphed,
        }
    }

    /// Times `pass`, of so many operations, on all of them: the model's choice against the best
    /// rival, each rival, and what it was before; and each layout against the best rival.
    fn contest(
        &self,
        workload: &Workload,
        effort: &Effort,
        operations: usize,
        pass: impl Fn(&S) -> u64,
    ) -> Result<Vec<Comparison>, Failure> {
        let rivals = self.rivals.iter().map(|(rival, it)| (rival.name, it));
        let morphed = self.morphed.iter().map(|(name, it)| (name.as_str(), it));
        let passes: Vec<Pass<'_>> = rivals
            .chain(std::iter::once(("ccmalloc", &self.unmorphed)))
            .chain(morphed)
            .map(|(name, structure)| -> Pass<'_> {
                (name.to_owned(), Box::new(|| pass(structure)))
            })
            .collect();
        let times: Vec<Rounds> = compare(workload.name, effort, passes)?
            .into_iter()
            .map(|rounds| rounds.per_operation(operations))
            .collect();
        let (theirs, rest) = times.split_at(self.rivals.len());
        let (unmorphed, ours) = (&rest[0], &rest[1..]);

        let against_rivals = self.rivals.iter().zip(theirs).map(|((rival, _), theirs)| {
            Comparison::of_times(workload, rival.slug, rival.name, &ours[0], theirs)
        });
        let mut comparisons = against_the_best(workload, against_rivals.collect());
        comparisons.push(Comparison::of_times(
            workload,
            "unmorphed",
            "ccmalloc, unmorphed",
            &ours[0],
            unmorphed,
        ));
        let fastest = theirs
            .iter()
            .zip(&self.rivals)
            .min_by(|a, b| a.0.median().total_cmp(&b.0.median()));
        if let Some((theirs, (rival, _))) = fastest {
            for ((name, _), ours) in self.morphed.iter().zip(ours).skip(1) {
                let name = format!("{}_{name}_vs_best", workload.name);
                comparisons.push(Comparison::new(
                    workload.suite,
                    name,
                    rival.name,
                    "ns",
                    ours,
                    theirs,
                ));
            }
        }
        Ok(comparisons)
    }
}
