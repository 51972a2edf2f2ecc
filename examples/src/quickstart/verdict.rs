//! The recommendation, from figures alone.

use super::rows::layouts;
use ccmodel::WORTHWHILE_SPEEDUP;

/// Trees of fewer nodes are in the second-level cache of most machines, where layouts gain little.
const NODES_MIN: usize = 1 << 16;
/// From this factor between the second shortest and the second longest round on, something else
/// used the machine.
const SPREAD_MAX: f64 = 1.3;

/// What was measured and predicted of one structure, in nanoseconds a lookup.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The name of the layout, as in the table.
    pub layout: &'static str,
    /// What each round took.
    pub rounds: Vec<f64>,
    /// What is predicted at least and at most.
    pub band: (f64, f64),
}

impl Figures {
    /// The median of the rounds; of an even number, the upper of the two in the middle.
    ///
    /// # Panics
    /// When there are no rounds.
    pub fn measured(&self) -> f64 {
        let rounds = self.sorted();
        rounds[rounds.len() / 2]
    }

    /// How many times longer the second longest round took than the second shortest.
    fn spread(&self) -> f64 {
        let rounds = self.sorted();
        let second = usize::from(rounds.len() > 3);
        rounds[rounds.len() - 1 - second] / rounds[second]
    }

    fn sorted(&self) -> Vec<f64> {
        let mut rounds = self.rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds
    }
}

/// What to do in one's own program, in a sentence: of figures for a structure of `nodes` nodes, the
/// first of which are of the tree as allocated.
///
/// It recommends nothing where the structure is small, the rounds spread, or a measurement lies
/// outside of what is predicted, and says so.
///
/// # Panics
/// When there are no figures, or no rounds.
pub fn advice(nodes: usize, figures: &[Figures]) -> String {
    if nodes < NODES_MIN {
        return format!(
            "No recommendation: {nodes} nodes fit in caches, where layouts gain little. \
             Try a text of {NODES_MIN} characters or more."
        );
    }
    let used = || (figures.iter()).filter(|of| of.layout != layouts::BTREEMAP);
    if let Some(loud) = used().find(|of| of.spread() > SPREAD_MAX) {
        return format!(
            "No recommendation: rounds of `{}` differ by a factor of {:.1}, so something else \
             used the machine. Try again when it is idle.",
            loud.layout,
            loud.spread()
        );
    }
    let is_off = |of: &&Figures| !(of.band.0..=of.band.1).contains(&of.measured());
    if let Some(off) = used().find(is_off) {
        return format!(
            "No recommendation: `{}` took {:.0} ns where {:.0} to {:.0} are predicted, so one of \
             the two is wrong. Try again when the machine is idle.",
            off.layout,
            off.measured(),
            off.band.0,
            off.band.1
        );
    }
    let gain_of = |layout| {
        let row = figures.iter().find(|of| of.layout == layout)?;
        let gain = figures[0].measured() / row.measured();
        (gain >= WORTHWHILE_SPEEDUP).then(|| format!("({gain:.1}x)"))
    };
    let clauses: Vec<String> = [
        (
            layouts::CTREE,
            "keep what is built once in a `ctree::FrozenCTreeMap`",
        ),
        (
            layouts::MORPHED,
            "call `ccmorph(&mut root, Node::children)` on a tree of your own once it is built",
        ),
        (
            layouts::HINTED,
            "allocate each node inside `ccmalloc::near(&parent, ..)` while it still grows",
        ),
    ]
    .into_iter()
    .filter_map(|(layout, clause)| Some(format!("{clause} {}", gain_of(layout)?)))
    .collect();
    let what = match clauses.split_last() {
        None => "leave it as it is, for no layout gains more than predictions err".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, first)) => format!("{}, or {last}", first.join(", ")),
    };
    format!("In a program with a structure like this one: {what}.")
}
