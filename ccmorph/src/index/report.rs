//! What a morph of an index tree did.

use super::Permutation;
use crate::Nearness;
use ccmodel::{Basis, Layout, Prediction};
use std::fmt;
use std::time::Duration;

/// What a morph of an index tree did, and who went where.
#[derive(Clone, Debug)]
#[must_use = "whoever keeps indices outside of the nodes and the roots has to translate them"]
#[non_exhaustive]
pub struct IndexReport {
    /// Who went where: for indices that are kept elsewhere, and for arrays that run beside the
    /// nodes.
    pub permutation: Permutation,
    /// How many nodes the slice has.
    pub nodes: usize,
    /// How many of them hang below the roots; the others are at the end of the slice.
    pub reached: usize,
    /// The size of a node, in bytes.
    pub node_bytes: usize,
    /// The layout used.
    pub layout: Layout,
    /// Under [`LayoutChoice::Auto`](crate::LayoutChoice::Auto) what each layout promised that suits
    /// a slice of such nodes, the one taken first, then the best first, as far as they had to be
    /// compared: see [`basis`](IndexReport::basis). Else empty.
    pub ranking: Vec<(Layout, Prediction)>,
    /// Under [`LayoutChoice::Auto`](crate::LayoutChoice::Auto), what the choice rests on; `None`
    /// for nodes without bytes.
    pub basis: Option<Basis>,
    /// How many nodes are the child of another one.
    pub edges: usize,
    /// How close children lay to their parents.
    pub near_before: Nearness,
    /// How close children lie to their parents now.
    pub near_after: Nearness,
    /// Where the time went.
    pub times: IndexTimes,
}

/// One or two lines for people; programs read the fields.
impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} nodes of {} B, {} of them below the roots, laid out as {} in {:.1?}",
            self.nodes,
            self.node_bytes,
            self.reached,
            self.layout,
            self.times.total()
        )?;
        if self.edges == 0 {
            return Ok(());
        }
        let percent = |count: usize| 100.0 * count as f64 / self.edges as f64;
        let (before, after) = (self.near_before, self.near_after);
        write!(
            f,
            "\nparent and child in the same 64 B: {:.1}% -> {:.1}%; 256 B: {:.1}% -> {:.1}%; 4 KiB: {:.1}% -> {:.1}%",
            percent(before.same_64),
            percent(after.same_64),
            percent(before.same_256),
            percent(after.same_256),
            percent(before.same_page),
            percent(after.same_page)
        )
    }
}

/// How long each phase of a morph of an index tree took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexTimes {
    /// Walking the structure.
    pub traverse: Duration,
    /// Choosing the layout and computing it.
    pub plan: Duration,
    /// Rewriting the indices and moving the nodes.
    pub permute: Duration,
}

impl IndexTimes {
    /// All phases together.
    pub fn total(&self) -> Duration {
        self.traverse + self.plan + self.permute
    }
}
