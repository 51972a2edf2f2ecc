//! Predicts cache misses and nanoseconds of a pointer structure, a layout and a machine.
//!
//! Three descriptions go in, one [`Prediction`] comes out:
//!
//! | what | type | from |
//! |---|---|---|
//! | who points to whom | [`Shape`] | parents of nodes, or generated |
//! | where nodes lie | [`Placement`] | a [`Layout`], or the addresses of a live heap |
//! | what a miss costs | [`Machine`] | a file, [`Machine::this`], `calibrate`, `presets` |
//!
//! ```
//! use ccmodel::{Layout, Machine, NodeExtent, PageSize, Shape, predict_tree};
//!
//! let shape = Shape::random_binary(100_000, 1);
//! let node = NodeExtent::new(24, 8)?;
//! let ns = |layout: Layout| {
//!     let placement = layout.place(&shape, node);
//!     predict_tree(&shape, &placement, node, PageSize::Small4K, &Machine::thesis()).ns
//! };
//! assert!(ns(Layout::VanEmdeBoas) < ns(Layout::Random { seed: 1 }));
//! # Ok::<(), ccmodel::Error>(())
//! ```
//!
//! Everything but searches in trees comes down to [`Accesses`]: a [`Structure`] is [`Built`], its
//! nodes are placed, and an [`Operation`] with a [`KeyDistribution`] says what is read
//! ([`Predictor::predict_accesses`]). [`structure::walk`] and [`structure::read_edges`] take
//! structures of your own. The guide is `docs/use/model.md`.
//!
//! A prediction goes through these modules: `visits` (how often each node is visited),
//! `probability` (how often each block is touched), `footprint` (what a cache of some capacity
//! misses of that), `neighbours` (which misses are cheap because another one was near), `predict`
//! (what all this costs). Where the sets of a machine's caches are known ([`Hierarchy`]), `tiers`
//! replays drawn operations through a [`Simulator`]. `machine` holds what `calibrate` measures and
//! `topology` reads; `probe` compares predictions with the clock.
//!
//! **Words.** A *block* is the unit that moves on a miss: a line of 64 bytes unless said. A *level*
//! is named after what was missed: a miss of `L2` is a load that the second-level cache does not
//! serve. A *step* is the latency that such a miss adds.
//!
//! **Features.** `structures` describes structures, operations and keys. `calibrate` measures this
//! machine (memmap2, zerocopy). `json` reads and writes machine files (serde). `counters` reads
//! hardware counters on Linux (perf-event). `cli`, on by default, is the `model` command (clap,
//! plotters) with all of these. `parquet` reads traces as tables (parquet); the command reads them,
//! too, where both are on. Without features, the only dependency is `libc`.
//!
//! **Known limits.** Effective capacities know nothing of sets: by them, nodes that lie large
//! powers of two apart miss more than predicted, and so do operations that touch a good part of a
//! cache, which [`Prediction::crowded_levels`] names. [`predict_misses`] knows both. Operations
//! count as dependent unless [`Predictor::overlap`] says otherwise. Prefetchers and writing back
//! are not modelled.

#![cfg_attr(docsrs, feature(doc_cfg))]

// Modules, lowest first: `error`, `counters`, `evidence`, `footprint`, `geometry`, `lines`, `plot`,
// `shape`, `hierarchy`, `keys`, `layout`, `sys`, `visits`, `probability`, `sample`, `simulator`,
// `topology`, `accesses`, `machine`, `neighbours`, `structure`, `tiers`, `predict`, `choose`,
// `colour`, `probe`, `calibrate`, `cost`, `cli`.

mod accesses;
#[cfg(feature = "calibrate")]
mod calibrate;
mod choose;
#[cfg(feature = "cli")]
pub mod cli;
mod colour;
mod cost;
pub mod counters;
mod error;
mod footprint;
mod geometry;
mod hierarchy;
#[cfg(feature = "structures")]
mod keys;
mod layout;
mod lines;
mod machine;
mod neighbours;
#[cfg(feature = "cli")]
pub mod plot;
mod predict;
mod probability;
#[cfg(feature = "calibrate")]
mod probe;
mod sample;
mod shape;
pub mod simulator;
#[cfg(feature = "structures")]
pub mod structure;
mod sys;
mod tiers;
pub mod topology;
mod visits;

pub use accesses::{Accesses, Operations};
#[cfg(feature = "calibrate")]
pub use calibrate::CalibrateOptions;
pub use choose::{Basis, Choice, choose_layout, rank_layouts};
pub use colour::{ColourError, ColourGain, Coloured, Colouring};
pub use cost::{Gain, WORTHWHILE_SPEEDUP, morph_cost, morph_gain};
pub use error::Error;
#[doc(hidden)]
pub use error::first_paragraph;
pub use footprint::{Footprint, Replacement};
pub use geometry::{CacheGeometry, GeometryError, PageSize};
pub use hierarchy::{CacheLevel, Hierarchy, Inclusion, MAX_CACHES, ReplacementPolicy};
#[cfg(feature = "structures")]
pub use keys::KeyDistribution;
pub use layout::{HintPolicy, Layout, NodeExtent, Placement};
pub use lines::TextError;
pub use machine::{
    ErrorBand, Level, LevelKind, LookAhead, Machine, NeighbourShare, Origin, Preset, SearchCosts,
    SearchStyle, Step,
};
pub use predict::{
    LevelMisses, Overlap, Prediction, Predictor, SearchLevel, predict_levels, predict_tree,
};
pub use probability::{Access, BlockProbabilities, Lengths};
#[cfg(feature = "calibrate")]
pub use probe::TreeProbe;
pub use shape::{NO_NODE, Shape, ShapeError};
pub use simulator::{Frames, Simulator};
#[cfg(feature = "structures")]
pub use structure::{Built, Growth, InNode, Links, Operation, Sizes, Structure};
#[cfg(feature = "calibrate")]
pub use sys::PagedMemory;
pub use tiers::{ClosedForm, LevelPrediction, Tier, predict_misses};
pub use topology::{CacheKind, Topology};
pub use visits::{Visits, ends_of_accesses};

/// What calibration measured: the parts of [`Machine::evidence`].
pub mod evidence {
    pub use crate::machine::{
        ChaseReading, ColourProbe, CurvePoint, Evidence, Quietness, TranslationLevel,
        TranslationProbe, Verdict,
    };
}
