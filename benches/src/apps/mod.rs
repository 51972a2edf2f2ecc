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
//! [`corpus`] is the text: the sources of the packages that this workspace is built of.
//!
//! Bias: each program spends most of its time in one structure that is much larger than the
//! second-level cache. `docs/applications.md` says where placement does not pay all the same.

pub mod completions;
pub mod corpus;
pub mod diagrams;
pub mod phrases;
pub mod rays;

use crate::timing::timed;

use crate::programs::{Outcome, Program};

/// All of them, plain and changed.
pub const PROGRAMS: &[Program] = &[
    phrases::PLAIN,
    phrases::HINTED,
    rays::PLAIN,
    rays::MORPHED,
    diagrams::PLAIN,
    diagrams::MORPHED,
    completions::PLAIN,
    completions::MORPHED,
    completions::OPEN,
    completions::IN_KEY_ORDER,
    completions::BTREE_MAP,
];

/// Times `work`, which returns the checksum and what it has built: that is taken down when the
/// clock has stopped, as in a program that just ends.
fn outcome<B>(work: impl FnOnce() -> (u64, B)) -> Outcome {
    let (time, (checksum, _built)) = timed(work);
    Outcome {
        checksum,
        time,
        object_bytes: None,
    }
}
