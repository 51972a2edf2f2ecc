//! Applications: published crates, unchanged, with real input, with and without the few lines that
//! name a hint or call a morph. Both must give the same answers.
//!
//! - [`phrases`] (`intrusive-collections`): finds phrases by an index of every word of forty
//!   million bytes of text. Hint: a posting beside the one before it.
//! - [`rays`] (`bvh`): follows light through a landscape of two million triangles. Morph: the
//!   hierarchy's nodes, after its build.
//! - [`diagrams`] (`biodivine-lib-bdd`): builds a multiplier as a binary decision diagram and
//!   evaluates test vectors. Morph: the diagram's nodes, after its build.
//! - [`completions`] (`intrusive-collections`): learns half of the text, and completes sequences of
//!   words of the other half. Morph: the nodes of a search tree, after its build.
//!
//! [`corpus`] is the text. Bias: each program spends most of its time in one structure that is much
//! larger than the second-level cache. `docs/applications.md` says where placement does not pay all
//! the same.

mod completions;
mod corpus;
mod diagrams;
mod phrases;
mod rays;

use crate::programs::Program;

/// All of them, as the crates' users write them and changed.
pub const PROGRAMS: &[Program] = &[
    Program::new("app_phrases", phrases::plain),
    Program::new("app_phrases_hinted", phrases::hinted),
    Program::new("app_rays", |scale| rays::run(scale, |_| ())),
    Program::new("app_rays_morphed", |scale| rays::run(scale, rays::morph)),
    Program::new("app_diagrams", |scale| {
        diagrams::run(scale, |diagram| diagram)
    }),
    Program::new("app_diagrams_morphed", |scale| {
        diagrams::run(scale, diagrams::morph)
    }),
    Program::new("app_completions", completions::plain),
    Program::new("app_completions_morphed", completions::morphed),
    // For comparison: what a program can do by itself, new boxes in the order of the keys; and a
    // map that has no nodes of the program's own.
    Program::new("app_completions_in_key_order", completions::in_key_order),
    Program::new("app_completions_btree_map", completions::btree_map),
];
