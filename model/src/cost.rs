//! The cost of a morph, and the number of operations after which it has paid.
//!
//! A morph knows addresses ahead, so several misses are under way together and only a part of each
//! latency is waited for. That part and the time of the instructions were measured with `Morph` on
//! random-insert trees of 2^14 to 2^22 nodes of 32, 64 and 128 bytes in a young heap under
//! `ccmalloc`, on two Emerald Rapids cores (21 November 2026).

use crate::choose::prediction_of_choice;
use crate::{
    Level, LevelKind, Machine, NodeExtent, PageSize, Placement, Prediction, Predictor, Shape,
};

/// Nanoseconds of instructions for each node.
const CPU_NS: f64 = 65.0;
/// The part of the latency of a line of a node that is waited for: to walk over it, to read it in
/// its old place and to write it in its new one.
const WAITED_LINE: f64 = 0.12 + 2.0 * 0.05;
/// The part of the latency of the lists that is waited for, for each node.
const WAITED_LISTS: f64 = 0.8;
/// Bytes of the lists that are accessed at random, for each node.
const LIST_BYTES: f64 = 8.0;
/// Clearing and mapping new memory, in nanoseconds a byte beyond the caches.
const FIRST_TOUCH_NS: f64 = 0.35;
/// Nanoseconds of a node's visit in a search on the machine where the work was measured.
const REFERENCE_NODE_NS: f64 = 1.13;

/// Time of a random access to a working set of `bytes` bytes, less that of a first-level hit.
fn latency_ns(machine: &Machine, pages: PageSize, bytes: f64) -> f64 {
    machine
        .levels_for(pages)
        .flat_map(|level| &level.steps)
        .map(|step| step.step_ns * (1.0 - step.capacity_bytes / bytes.max(1.0)).max(0.0))
        .sum()
}

/// Nanoseconds that a morph of `nodes` nodes takes, with the choice of the layout. Measured times
/// were within a factor of one and a half for nodes of 32 bytes, and of two for larger ones.
///
/// O(levels of the machine). Nodes with destructors or allocations of their own do not cost more,
/// since they are moved.
///
/// # Examples
/// ```
/// use ccmodel::{Machine, NodeExtent, PageSize, morph_cost};
///
/// let node = NodeExtent::new(32, 8)?;
/// let cost = |nodes| morph_cost(nodes, node, PageSize::Huge2M, Machine::this());
/// assert!(cost(1 << 20) > 64.0 * cost(1 << 14));
/// assert!(cost(0) < 1.0);
/// # Ok::<(), ccmodel::Error>(())
/// ```
pub fn morph_cost(nodes: usize, node: NodeExtent, pages: PageSize, machine: &Machine) -> f64 {
    let (nodes, bytes) = (nodes as f64, f64::from(node.bytes));
    // A node begins anywhere in its first line.
    let lines = 1.0 + (bytes - 1.0) / 64.0;
    let each = CPU_NS * processor_speed(machine)
        + WAITED_LINE * lines * latency_ns(machine, pages, nodes * bytes)
        + WAITED_LISTS * latency_ns(machine, pages, nodes * LIST_BYTES)
        + FIRST_TOUCH_NS * bytes * far_share(machine, nodes * bytes);
    nodes * each
}

/// The part of `bytes` that no cache holds.
fn far_share(machine: &Machine, bytes: f64) -> f64 {
    let data = (machine.levels.iter()).filter(|level| level.kind == LevelKind::Data);
    let held = data.map(Level::capacity_bytes).fold(0.0, f64::max);
    (1.0 - held / bytes.max(1.0)).max(0.0)
}

/// How much longer instructions take than where the costs were measured.
fn processor_speed(machine: &Machine) -> f64 {
    // The root, since one instruction cost is a rough measure of a processor.
    let ratio = (machine.search.node_ns / REFERENCE_NODE_NS).sqrt();
    if ratio.is_finite() {
        ratio.clamp(0.5, 4.0)
    } else {
        1.0
    }
}

/// A layout that is predicted to be less than this many times faster counts as no faster.
///
/// Predictions of two layouts on one machine err by up to a tenth against each other. Of pairs that
/// differ by more, the clock agrees with the model on the order of nearly all.
pub const WORTHWHILE_SPEEDUP: f64 = 1.1;

/// What a morph gains and costs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Gain {
    /// An operation before the morph.
    pub before: Prediction,
    /// An operation after it.
    pub after: Prediction,
    /// Nanoseconds of the morph.
    pub cost_ns: f64,
    /// Operations after which the morph has paid; infinite when it never does.
    pub break_even_operations: f64,
}

impl Gain {
    /// A gain of these predictions at this cost.
    pub fn new(before: Prediction, after: Prediction, cost_ns: f64) -> Gain {
        let saved_ns = before.ns - after.ns;
        let break_even_operations = if cost_ns <= 0.0 && saved_ns >= 0.0 {
            0.0
        } else if saved_ns > 0.0 {
            cost_ns / saved_ns
        } else {
            f64::INFINITY
        };
        Gain {
            before,
            after,
            cost_ns,
            break_even_operations,
        }
    }

    /// Nanoseconds that an operation is faster afterwards; negative when it is slower.
    pub fn saved_ns(&self) -> f64 {
        self.before.ns - self.after.ns
    }

    /// How many times faster an operation is afterwards; 1 where neither takes time.
    pub fn speedup(&self) -> f64 {
        if self.after.ns > 0.0 {
            self.before.ns / self.after.ns
        } else {
            1.0
        }
    }

    /// Whether an operation gets faster by at least [`WORTHWHILE_SPEEDUP`], and the morph
    /// [pays](Gain::pays_within) within `operations` operations.
    pub fn is_worthwhile(&self, operations: f64) -> bool {
        self.speedup() >= WORTHWHILE_SPEEDUP && self.pays_within(operations)
    }

    /// Whether `operations` operations save more time than the morph takes.
    pub fn pays_within(&self, operations: f64) -> bool {
        operations > self.break_even_operations
    }
}

/// What a morph of `shape` would gain and cost, when its nodes lie as `before` says and the morph
/// takes the layout of [`choose_layout`](crate::choose_layout). With `weights`, operations end at
/// nodes in proportion to them. O(n) for each block size of the machine.
///
/// # Panics
/// When `before` or `weights` are not of as many nodes as `shape`, and as [`Predictor::predict`].
///
/// # Examples
/// ```
/// use ccmodel::{Layout, Machine, NodeExtent, PageSize, Shape, morph_gain};
///
/// let (shape, node) = (Shape::random_binary(100_000, 1), NodeExtent::new(32, 8)?);
/// let gain = |layout: Layout| {
///     let before = layout.place(&shape, node);
///     morph_gain(&shape, &before, node, None, PageSize::Small4K, &Machine::thesis())
/// };
/// assert!(gain(Layout::Random { seed: 1 }).pays_within(1e6));
/// assert!(!gain(Layout::VanEmdeBoas).pays_within(1e5));
/// # Ok::<(), ccmodel::Error>(())
/// ```
pub fn morph_gain(
    shape: &Shape,
    before: &Placement,
    node: NodeExtent,
    weights: Option<&[f64]>,
    pages: PageSize,
    machine: &Machine,
) -> Gain {
    let predictor = Predictor::of_ends(shape, weights);
    let before = predictor.predict(before, node, pages, machine);
    let after = prediction_of_choice(shape, &predictor, node, weights, pages, machine);
    Gain::new(before, after, morph_cost(shape.len(), node, pages, machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, SearchCosts, Step};
    use quickcheck::quickcheck;

    const SMALL: PageSize = PageSize::Small4K;

    fn node(bytes: u32) -> NodeExtent {
        NodeExtent::new(bytes, 8).unwrap()
    }

    #[test]
    fn costs_are_those_that_were_measured() {
        // Nanoseconds a node of `Morph` on random trees, the shortest of some runs, and that
        // machine as it was calibrated, small steps taken together, in KiB and nanoseconds.
        let second = [
            (362, 2.5),
            (724, 1.0),
            (1024, 3.5),
            (1448, 9.1),
            (2048, 14.5),
            (2896, 14.9),
        ];
        let third = [(5793, 38.9), (8192, 40.6), (11_585, 11.9)];
        let levels = [
            ("L1", LevelKind::Data, 64, &[(45, 3.6)][..]),
            ("L2", LevelKind::Data, 64, &second),
            ("L3", LevelKind::Data, 64, &third),
            (
                "TLB-4k",
                LevelKind::Pages(SMALL),
                4096,
                &[(4096, 6.0), (5793, 7.2)],
            ),
        ];
        let levels = levels.map(|(name, kind, block_bytes, steps)| {
            let mut level = Level::new(name, kind, block_bytes, 0.0, 0.0);
            let step = |&(kib, step_ns): &(u32, f64)| Step {
                capacity_bytes: f64::from(kib) * 1024.0,
                step_ns,
            };
            level.steps = steps.iter().map(step).collect();
            level
        });
        let search = SearchCosts {
            operation_ns: 9.1,
            node_ns: REFERENCE_NODE_NS,
            misprediction_ns: 8.2,
            branch_free_node_ns: 3.5,
        };
        let machine = Machine::new("Emerald Rapids, virtual", search, levels.into()).unwrap();
        // By size of a node, log2 of the number of nodes and what was measured.
        let measured: [(u32, &[(u32, f64)]); 3] = [
            (
                32,
                &[(14, 71.7), (16, 71.0), (18, 95.1), (20, 142.2), (22, 216.1)],
            ),
            (64, &[(14, 70.4), (18, 95.9), (20, 119.1), (22, 362.4)]),
            (128, &[(14, 44.0), (18, 93.6), (22, 480.2)]),
        ];
        for (bytes, times) in measured {
            for &(bits, measured) in times {
                let is_small = u64::from(bytes) << bits < 8 << 20;
                let pages = if is_small { SMALL } else { PageSize::Huge2M };
                let each = morph_cost(1 << bits, node(bytes), pages, &machine);
                let each = each / f64::from(1 << bits);
                let within = if bytes == 32 { 1.5 } else { 2.0 };
                let range = measured / within..measured * within;
                assert!(range.contains(&each), "2^{bits} {bytes}: {each:.0}");
            }
        }
    }

    #[test]
    fn a_morph_is_worth_what_it_saves() {
        let gain = |shape: &Shape, layout: Layout, machine: &Machine| {
            let before = layout.place(shape, node(32));
            morph_gain(shape, &before, node(32), None, SMALL, machine)
        };
        let (shape, random) = (Shape::random_binary(60_000, 1), Layout::Random { seed: 1 });
        let clusters = Layout::ClusterVanEmdeBoas { block_bytes: 64 };
        for machine in [Machine::this(), &Machine::thesis()] {
            let scattered = gain(&shape, random, machine);
            assert!(scattered.speedup() > 1.2 && scattered.saved_ns() > 0.0);
            assert!(scattered.pays_within(scattered.break_even_operations * 1.01));
            assert!(!scattered.pays_within(scattered.break_even_operations));
            let good = gain(&shape, clusters, machine);
            assert!(good.break_even_operations > 10.0 * scattered.break_even_operations);
            // What is within the error of predictions is not worth any number of operations.
            assert!(scattered.is_worthwhile(1e12) && !scattered.is_worthwhile(1.0));
            assert!(!good.is_worthwhile(f64::INFINITY));
        }
        // In the first cache, no layout saves anything.
        let small = gain(&Shape::random_binary(500, 1), random, Machine::this());
        assert!(small.saved_ns().abs() < 1e-9 && !small.pays_within(1e9));
        assert!(small.cost_ns > 0.0 && (small.speedup() - 1.0).abs() < 1e-9);
        let nothing = gain(&Shape::complete_binary(0), random, Machine::this());
        assert!(nothing.cost_ns.abs() < 1e-9 && nothing.break_even_operations <= 0.0);
    }

    quickcheck! {
        fn more_nodes_and_larger_ones_cost_more(nodes: u16, more: u16, bytes: u16) -> bool {
            let bytes = u32::from(bytes) + 1;
            let cost = |nodes: usize, bytes: u32| {
                let node = NodeExtent::new(bytes, 1).unwrap();
                morph_cost(nodes, node, SMALL, Machine::this())
            };
            let (few, many) = (usize::from(nodes), usize::from(nodes) + usize::from(more) * 100);
            cost(few, bytes) <= cost(many, bytes) && cost(few, bytes) <= cost(few, bytes + 64)
        }
    }
}
