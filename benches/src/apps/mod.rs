//! Applications: published crates, unchanged, with real input, with and without the few lines that
//! name a hint or call a morph. Both must give the same answers.
//!
//! [`corpus`] is the text. Each program spends most of its time in one structure, much larger than
//! the second-level cache. `docs/inside/applications.md` says where placement does not pay even so.

mod completions;
mod corpus;
mod diagrams;
mod phrases;
mod rays;

use crate::programs::Program;

/// All of them, as the crates' users write them and changed.
pub(crate) const PROGRAMS: &[Program] = &[
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
    // For comparison: what a program can do by itself, and a map without nodes of its own.
    Program::new("app_completions_in_key_order", completions::in_key_order),
    Program::new("app_completions_btree_map", completions::btree_map),
];
