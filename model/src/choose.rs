//! Which layout is best here.

use crate::{Layout, Machine, NodeExtent, PageSize, Placement, Prediction, Predictor, Shape};

/// The best layout with what it was compared with.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The layout with the least predicted time.
    pub layout: Layout,
    /// Where it puts the nodes.
    pub placement: Placement,
    /// All candidates with their predictions, best first.
    pub ranking: Vec<(Layout, Prediction)>,
}

/// The candidates: every layout that needs no parameters; clusters in lines of `line_bytes`, in what a memory access
/// delivers, in pages. The first of equals wins.
fn candidates(line_bytes: u32) -> [Layout; 7] {
    [
        Layout::VanEmdeBoas,
        Layout::DepthFirst,
        Layout::ClusterVanEmdeBoas {
            block_bytes: line_bytes,
        },
        Layout::ClusterVanEmdeBoas { block_bytes: 256 },
        Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
        Layout::SubtreeCluster {
            block_bytes: line_bytes,
        },
        Layout::BreadthFirst,
    ]
}

/// Picks the layout with the least predicted time for uniform searches.
///
/// O(n log n) for placing each of seven candidates, and O(n) for each of them and each block size of the machine. Ties go to the candidate with the smaller span,
/// then to van Emde Boas order.
///
/// Lists and other structures whose searches touch a good part of a cache are ranked with less certainty: see
/// [`Prediction::crowded_levels`].
///
/// # Panics
/// When the machine was changed into one whose block sizes are no powers of two, which [`Machine::check`] tells.
///
/// # Examples
/// ```
/// use ccmodel::{Layout, Machine, NodeExtent, PageSize, Shape, choose_layout};
///
/// let shape = Shape::random_binary(20_000, 1);
/// let node = NodeExtent::new(24, 8)?;
/// let choice = choose_layout(&shape, node, PageSize::Small4K, &Machine::thesis());
/// assert_eq!(choice.ranking[0].0, choice.layout);
/// assert_ne!(choice.layout, Layout::BreadthFirst);
/// # Ok::<(), ccmodel::ExtentError>(())
/// ```
pub fn choose_layout(
    shape: &Shape,
    node: NodeExtent,
    pages: PageSize,
    machine: &Machine,
) -> Choice {
    let line_bytes = machine
        .levels_for(pages)
        .map(|level| level.block_bytes)
        .find(|&bytes| bytes >= 64)
        .and_then(|bytes| u32::try_from(bytes).ok())
        .unwrap_or(64);
    let predictor = Predictor::new(shape);
    let mut ranking = Vec::new();
    let mut best: Option<(f64, u64, Layout, Placement)> = None;
    for layout in candidates(line_bytes) {
        let placement = layout.place(shape, node);
        let prediction = predictor.predict(&placement, node, pages, machine);
        let (ns, span) = (prediction.ns, placement.span_bytes(node));
        ranking.push((span, layout, prediction));
        let better = best.as_ref().is_none_or(|&(best_ns, best_span, ..)| {
            ns < best_ns || (ns <= best_ns && span < best_span)
        });
        if better {
            best = Some((ns, span, layout, placement));
        }
    }
    ranking.sort_by(|a, b| a.2.ns.total_cmp(&b.2.ns).then(a.0.cmp(&b.0)));
    let ranking = ranking
        .into_iter()
        .map(|(_, layout, prediction)| (layout, prediction))
        .collect();
    let (layout, placement) = match best {
        Some((_, _, layout, placement)) => (layout, placement),
        None => (Layout::VanEmdeBoas, Layout::VanEmdeBoas.place(shape, node)),
    };
    Choice {
        layout,
        placement,
        ranking,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_the_head_of_the_ranking() {
        for nodes in [0, 1, 2, 100, 5000] {
            let shape = Shape::random_binary(nodes, 3);
            let node = NodeExtent::new(24, 8).unwrap();
            let choice = choose_layout(&shape, node, PageSize::Small4K, Machine::this());
            assert_eq!(choice.ranking.len(), 7);
            assert_eq!(choice.ranking[0].0, choice.layout);
            assert_eq!(choice.placement, choice.layout.place(&shape, node));
            assert!(choice.ranking.is_sorted_by(|a, b| a.1.ns <= b.1.ns));
        }
    }

    #[test]
    fn large_trees_are_not_left_in_breadth_first_order() {
        let shape = Shape::random_binary(200_000, 3);
        let node = NodeExtent::new(24, 8).unwrap();
        let choice = choose_layout(&shape, node, PageSize::Small4K, Machine::this());
        assert_eq!(choice.ranking[6].0, Layout::BreadthFirst);
    }
}
