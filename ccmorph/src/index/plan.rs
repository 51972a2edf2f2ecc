//! Which order the nodes of a slice get.
//!
//! A [`Layout`] places nodes from a border on and may leave gaps. A slice has as many places as
//! nodes, and begins where its allocator put it: glibc gives large vectors 16 bytes behind the
//! border of a page. Between the two:
//!
//! * **Gaps are filled from the end.** Where blocks hold a number of whole nodes, a node from the
//!   end of the order takes a place that the layout leaves free, so that the clusters behind it
//!   still begin with blocks. Else everything behind a gap moves up.
//! * **Borders are met.** If some nodes after the first there is a border of 256 bytes, as many
//!   nodes from the end of an order of clusters come first; the same once in 64 KiB, where layouts
//!   begin again.
//! * **The model chooses only among layouts that survive it.** Clusters of 64 bytes lose their
//!   borders when nodes of 24 bytes move up.

use super::walk::Walk;
use super::{IndexReport, Permutation};
use crate::error::MorphError;
use crate::nearness::Distances;
use crate::plan::{Plan, Settings, fills_blocks, has_clusters};
use crate::report::Report;
use ccmodel::{Layout, NO_NODE, NodeExtent, PageSize, Placement, Shape};

/// Chooses where the nodes go. The report lacks the times. Not generic, so compiled once.
pub(super) fn plan(
    settings: &Settings<'_>,
    walk: &mut Walk<'_>,
    slice: Slice,
) -> Result<IndexReport, MorphError> {
    let mut weights = std::mem::take(&mut walk.weights);
    let walk = &*walk;
    let parents = &walk.parents;
    // Without roots, the trees found on the way are the structure.
    let live = if walk.reached == 0 {
        parents.len()
    } else {
        walk.reached
    };
    weights.truncate(live);
    let (live_parents, others) = parents.split_at(live);
    let first_other = u32::try_from(live).map_err(|_| MorphError::TooManyNodes)?;
    let Some(node) = slice.extent else {
        // All nodes without bytes have the same place.
        let order: Vec<u32> = (0..NO_NODE).take(parents.len()).collect();
        let nothing = Report {
            nodes: parents.len(),
            ..Report::of_nothing(settings.layout_of_nothing(), 0)
        };
        return Ok(report(walk, order, nothing));
    };
    let pages = settings.pages.unwrap_or(PageSize::Small4K);
    let settings = &Settings {
        pages: Some(pages),
        colour: None,
        in_slice: true,
        ..*settings
    };
    let plan = Plan::make(settings, live_parents, weights, Vec::new(), node)?;

    // A node that was not reached hangs below another one that was not.
    let other_parents = others.iter().map(|parent| match *parent {
        NO_NODE => NO_NODE,
        parent => parent - first_other,
    });
    let others = Shape::from_parent_vec(other_parents.collect());
    let others = others.map_err(|_| MorphError::TooManyNodes)?;
    let rest = others
        .preorder()
        .iter()
        .map(|number| number + first_other)
        .collect();
    let mut order = slice.order(plan.layout, plan.placement(), node, rest);
    // A root in the first place stays there.
    if walk.order.first() == Some(&0)
        && walk.reached > 0
        && let Some(place) = order.iter().position(|&number| number == 0)
    {
        order.swap(0, place);
    }

    let (before, after) = (slice.addresses_of(&walk.order), slice.addresses(&order));
    let predict = |addresses: &[u64]| plan.predict_at(settings, addresses[..live].to_vec(), pages);
    let (predicted_before, predicted_after) = (predict(&before), predict(&after));
    let distances = |addresses: &[u64]| match plan.walk() {
        Some(walk) => Distances::along(walk, |v| addresses[v]),
        None => Distances::of(parents, |v| addresses[v]),
    };
    let (near_before, near_after) = (distances(&before), distances(&after));
    let morph = Report {
        nodes: parents.len(),
        span_bytes: parents.len() as u64 * slice.node_bytes as u64,
        lists_bytes: walk.list_bytes() + plan.list_bytes,
        operation: plan.operation,
        ranking: plan.ranking.clone(),
        ranked_for: plan.ranked_for,
        basis: plan.basis,
        predicted_before,
        predicted_after,
        edges: near_before.count(),
        near_before: near_before.nearness(),
        near_after: near_after.nearness(),
        ..Report::of_nothing(plan.layout, slice.node_bytes)
    };
    Ok(report(walk, order, morph))
}

fn report(walk: &Walk<'_>, order: Vec<u32>, morph: Report) -> IndexReport {
    let old_of = order.iter().map(|&number| walk.order[number as usize]);
    IndexReport {
        permutation: Permutation::from_old_of(old_of.collect()),
        reached: walk.reached,
        morph,
    }
}

/// About what an access to memory brings in: the border that orders begin at.
const BORDER_BYTES: u64 = 256;

/// A slice of nodes without the nodes.
#[derive(Clone, Copy)]
pub(super) struct Slice {
    address: u64,
    pub(super) node_bytes: usize,
    /// `None` when nodes have no bytes.
    extent: Option<NodeExtent>,
}

impl Slice {
    pub(super) fn of<T>(nodes: &[T]) -> Result<Slice, MorphError> {
        if nodes.len() >= NO_NODE as usize {
            return Err(MorphError::TooManyNodes);
        }
        let node_bytes = size_of::<T>();
        let too_large = |_| MorphError::NodeTooLarge {
            node_bytes,
            node_bytes_max: u32::MAX as usize,
        };
        let bytes = u32::try_from(node_bytes).map_err(too_large)?;
        let align = u32::try_from(align_of::<T>()).map_err(too_large)?;
        Ok(Slice {
            address: nodes.as_ptr().addr() as u64,
            node_bytes,
            extent: NodeExtent::new(bytes, align).ok(),
        })
    }

    fn address_of(&self, at: u32) -> u64 {
        self.address + u64::from(at) * self.node_bytes as u64
    }

    /// The addresses of these places.
    pub(super) fn addresses_of(&self, places: &[u32]) -> Vec<u64> {
        places.iter().map(|&at| self.address_of(at)).collect()
    }

    /// By number: the address of each node when they lie in this order.
    fn addresses(&self, order: &[u32]) -> Vec<u64> {
        let mut addresses = vec![0; order.len()];
        for (at, &number) in (0..).zip(order) {
            addresses[number as usize] = self.address_of(at);
        }
        addresses
    }

    fn fills_blocks(&self) -> bool {
        fills_blocks(self.node_bytes as u64)
    }

    /// The numbers by place, for nodes of one size that a layout has placed so; those of `rest`
    /// come behind them.
    fn order(
        &self,
        layout: Layout,
        placement: &Placement,
        node: NodeExtent,
        rest: Vec<u32>,
    ) -> Vec<u32> {
        let mut order = by_place(placement, node);
        order.extend(rest);
        if self.fills_blocks() {
            // Each free place gets the node that is last, so that all others stay where they are.
            let mut at = 0;
            while let Some(&number) = order.get(at) {
                if number == NO_NODE {
                    order.swap_remove(at);
                } else {
                    at += 1;
                }
            }
        } else {
            order.retain(|&number| number != NO_NODE);
        }
        if has_clusters(layout) {
            order = self.meet_borders(order, placement);
        }
        order
    }

    /// Moves nodes from the end before the first node, and before those with which the layout
    /// begins again after a gap, so that these begin at borders, if they can.
    fn meet_borders(&self, order: Vec<u32>, placement: &Placement) -> Vec<u32> {
        /// At most one in this many of the nodes that are left is taken from the end.
        const SHARE_MAX: usize = 8;
        // Larger nodes gain nothing from borders.
        if self.node_bytes as u64 > BORDER_BYTES {
            return order;
        }
        let segment_of = |number: u32| match placement.offsets().get(number as usize) {
            Some(offset) if !self.fills_blocks() => Some(offset / Layout::SEGMENT_BYTES),
            // Gaps are filled, or the node is not in the layout.
            _ => None,
        };
        let mut met = Vec::with_capacity(order.len());
        let (mut at, mut end) = (0, order.len());
        let mut segment = None;
        while at < end {
            let next = segment_of(order[at]);
            if at == 0 || (next.is_some() && next != segment) {
                segment = next;
                let fillers = self.nodes_before_border(met.len());
                if fillers <= (end - at) / SHARE_MAX {
                    met.extend(order[end - fillers..end].iter().rev());
                    end -= fillers;
                }
            }
            met.push(order[at]);
            at += 1;
        }
        met
    }

    /// How many nodes come before the first, from this place on, that begins at a border; 0 if
    /// none does.
    fn nodes_before_border(&self, place: usize) -> usize {
        let address = self.address + place as u64 * self.node_bytes as u64;
        let is_border =
            |nodes: &u64| (address + nodes * self.node_bytes as u64).is_multiple_of(BORDER_BYTES);
        // After this many nodes the distances repeat.
        let nodes = (0..BORDER_BYTES).find(is_border).unwrap_or(0);
        usize::try_from(nodes).unwrap_or(0)
    }
}

/// The numbers by their places, one stride each, with [`NO_NODE`] where the layout leaves one free.
fn by_place(placement: &Placement, node: NodeExtent) -> Vec<u32> {
    let numbers = 0..u32::try_from(placement.len()).unwrap_or(NO_NODE);
    // Offsets are multiples of the alignment and nodes do not overlap, so no two have the same
    // quotient by the stride.
    let places = placement.span_bytes(node).div_ceil(node.stride_bytes());
    if places > 4 * placement.len() as u64 {
        let mut order: Vec<u32> = numbers.collect();
        order.sort_unstable_by_key(|&v| placement.offset(v));
        return order;
    }
    let mut at_place = vec![NO_NODE; usize::try_from(places).unwrap_or(usize::MAX)];
    for (v, offset) in numbers.zip(placement.offsets()) {
        let place = usize::try_from(offset / node.stride_bytes()).unwrap_or(usize::MAX);
        at_place[place] = v;
    }
    at_place
}

#[cfg(test)]
mod tests {
    use super::{Layout, NodeExtent, Placement, Shape, Slice};
    use ccmodel::{BlockProbabilities, Visits};

    #[test]
    #[cfg_attr(miri, ignore = "counts for hours there, and has no unsafe code")]
    fn clusters_keep_their_borders_better_than_by_moving_up() {
        let shape = Shape::random_binary(1 << 15, 1);
        let visits = Visits::uniform(&shape);
        let clusters = Layout::ClusterVanEmdeBoas { block_bytes: 64 };
        for (node_bytes, layout, begin, fills) in [
            (8, clusters, 0, true),
            (16, clusters, 16, true),
            (32, Layout::Hierarchical, 32, true),
            (32, Layout::Hierarchical, 16, false),
            (24, Layout::Hierarchical, 16, false),
            (24, clusters, 16, false),
            (24, Layout::VanEmdeBoas, 16, false),
        ] {
            let node = NodeExtent::new(node_bytes, 8).unwrap();
            let placement = layout.place(&shape, node);
            let slice = Slice {
                address: (1 << 30) + begin,
                node_bytes: node_bytes as usize,
                extent: Some(node),
            };
            let mut moved_up: Vec<u32> = (0..).take(shape.len()).collect();
            moved_up.sort_unstable_by_key(|&v| placement.offset(v));
            let taken = slice.order(layout, &placement, node, Vec::new());
            // Expected blocks and groups of blocks that a search touches.
            let [boxes, moved_up, taken] = [
                placement.offsets().to_vec(),
                slice.addresses(&moved_up),
                slice.addresses(&taken),
            ]
            .map(|addresses| {
                let at = Placement::from_offsets(addresses);
                [64, 256].map(|bytes| {
                    BlockProbabilities::new(&visits, &at, node_bytes, bytes)
                        .footprint()
                        .touches()
                })
            });
            let case =
                format!("{node_bytes} B, {layout}, {begin}: {boxes:?} {moved_up:?} {taken:?}");
            for (i, taken) in taken.into_iter().enumerate() {
                assert!(taken <= moved_up[i] * 1.0001, "{case}");
                assert!(!fills || taken <= boxes[i] * 1.03, "{case}");
            }
        }
    }
}
