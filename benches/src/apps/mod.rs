//! Applications: published crates, used as they are published, with real input; and what our crates
//! gain in them.
//!
//! The thesis puts its hints and its morph into two programs of other people (section 4.3.2): VIS,
//! which is 27% faster with hints, and RADIANCE, 42% with its octree laid out anew. Here the other
//! people's code is a crate from the registry that nobody has changed. Each application is written
//! in the way in which its crate wants to be used, and exists twice, with and without the few lines
//! that name a hint or call a morph. Both give the same answers, or nothing is reported.
//!
//! | module | crate | what it does | ours |
//! |---|---|---|---|
//! | [`phrases`] | `intrusive-collections` | finds phrases by an index of every word in forty million bytes of text | hints: a posting beside the one before it |
//! | [`rays`] | `bvh` | follows light through a landscape of two million triangles | morph: the hierarchy's nodes, after its build |
//! | [`diagrams`] | `biodivine-lib-bdd` | builds a multiplier as a binary decision diagram, and puts test vectors to it | morph: the diagram's nodes, after its build |
//! | [`completions`] | `intrusive-collections` | learns half of the same text, and completes sequences of words of the other half | morph: the nodes of a search tree, after its build |
//!
//! [`corpus`] is the text: the sources of the packages that this workspace is built of.
//!
//! Bias: each program spends most of its time in one structure, which is larger than the
//! second-level cache many times over; that is what placement is for. Where it does not pay
//! although that is so, the application stays in the list. `docs/applications.md` says why for
//! each.

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
