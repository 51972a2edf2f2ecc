//! How much cheaper far loads are near each other.
//!
//! A tree of nodes of one line each, larger than the caches, is laid out in van Emde Boas order and
//! searched. Then its aligned blocks of `g` bytes are scattered at random and it is searched again.
//! Let `f_G` be what the far misses of a search would cost if only the first missed line of each
//! block of `G` bytes did, and `s_G` the share of a miss for which that is so. Then
//!
//! ```text
//! t_g = cpu + sum over G <= g of s_G f_G  +  (sum over G > g of s_G) f_g
//! t_g - t_g' = tail_g (f_g - f_g'),  tail_g = sum over G > g of s_G     (g' the next larger)
//! ```
//!
//! so the differences of the times give the tails, and the tails the shares. On an Emerald Rapids
//! virtual machine, searches of 2^21 nodes of 32 B took 986 ns scattered by 64 B, 640 ns as they
//! were.

use crate::machine::{CurvePoint, Level, NeighbourShare};
use crate::predict::far_costs;
use crate::probe::TreeProbe;
use crate::shape::random::permutation;
use crate::{Layout, NodeExtent, PageSize, Placement, Predictor, SearchStyle, Shape};

use super::{REPLACEMENT, typical};

/// Nodes of the tree: 32 MB in lines.
const NODES: u32 = 1 << 19;
/// Block sizes that are scattered, and that may get a share. The last one is the tree unscattered.
const BLOCKS: [u64; 5] = [64, 128, 256, 1024, 4096];
/// At most this share of a far miss is saved for neighbours; the rest is spent in the near caches.
const MAX_TAIL: f64 = 0.95;
/// Shares below this are left out.
const MIN_SHARE: f64 = 0.02;

/// The times, and the shares that follow from them; empty without memory.
pub(super) fn measure(runs: u32, levels: &[Level]) -> (Vec<CurvePoint>, Vec<NeighbourShare>) {
    let node = NodeExtent {
        bytes: 64,
        align: 64,
    };
    let shape = Shape::random_binary(NODES, 1);
    let placement = Layout::VanEmdeBoas.place(&shape, node);
    let Some(times) = scattered_times(&shape, &placement, node, runs) else {
        return (Vec::new(), Vec::new());
    };
    let predictor = Predictor::new(&shape);
    let costs = far_costs(&predictor, &placement, levels, REPLACEMENT, &BLOCKS);
    let points = BLOCKS.iter().zip(times).map(|(&bytes, ns)| CurvePoint {
        at: bytes as f64,
        ns,
    });
    (points.collect(), shares(tails(&times, &costs)))
}

/// Nanoseconds of a search for each of [`BLOCKS`]; `None` when there is no memory for the trees.
fn scattered_times(
    shape: &Shape,
    placement: &Placement,
    node: NodeExtent,
    runs: u32,
) -> Option<[f64; BLOCKS.len()]> {
    let mut probes = Vec::new();
    for (i, &block) in BLOCKS.iter().enumerate() {
        let is_last = i + 1 == BLOCKS.len();
        let scattered = (!is_last).then(|| scatter(placement, block));
        let placement = scattered.as_ref().unwrap_or(placement);
        probes.push(TreeProbe::new(shape, placement, node, PageSize::Huge2M).ok()?);
    }
    let mut samples = [const { Vec::new() }; BLOCKS.len()];
    // Runs of about a quarter of a millisecond, much shorter than a scheduler's slice; the trees in
    // turns, each warmed up first.
    for round in 0..4 {
        for (probe, samples) in probes.iter_mut().zip(&mut samples) {
            let mut ns = |searches| probe.random_search_ns(SearchStyle::BranchFree, searches);
            ns(if round == 0 { 40_000 } else { 10_000 });
            samples.extend((0..8 * runs).map(|_| ns(250)));
        }
    }
    Some(samples.map(typical))
}

/// The placement with its aligned blocks in random order.
fn scatter(placement: &Placement, block_bytes: u64) -> Placement {
    let last = placement.offsets().iter().copied().max().unwrap_or(0) / block_bytes;
    let order = permutation(u32::try_from(last + 1).unwrap_or(u32::MAX), 1);
    let moved = |&offset: &u64| {
        #[expect(clippy::cast_possible_truncation, reason = "an index of `order`")]
        let block = (offset / block_bytes) as usize;
        u64::from(order[block]) * block_bytes + offset % block_bytes
    };
    Placement::from_offsets(placement.offsets().iter().map(moved).collect())
}

/// For each block size, the share of a far miss that only the first line of any larger block pays:
/// falling, the last 0.
///
/// Shares must not rise with the block size. Where noise makes them, neighbours are pooled: the
/// isotonic regression of the slopes, each weighted with the cost it rests on (pool adjacent
/// violators).
fn tails(times: &[f64; BLOCKS.len()], costs: &[f64]) -> [f64; BLOCKS.len()] {
    // Runs of block sizes with one share: nanoseconds saved, nanoseconds that could be saved, how
    // many sizes.
    let mut stretches: Vec<(f64, f64, usize)> = Vec::new();
    let share = |&(saved, savable, _): &(f64, f64, usize)| saved / savable;
    for (times, costs) in times.windows(2).zip(costs.windows(2)) {
        let savable = (costs[0] - costs[1]).max(1e-3);
        stretches.push((times[0] - times[1], savable, 1));
        while let [.., before, last] = stretches.as_mut_slice()
            && share(before) < share(last)
        {
            *before = (before.0 + last.0, before.1 + last.1, before.2 + last.2);
            stretches.pop();
        }
    }
    let mut tails = [0.0; BLOCKS.len()];
    let shares = stretches
        .iter()
        .flat_map(|stretch| std::iter::repeat_n(share(stretch).clamp(0.0, MAX_TAIL), stretch.2));
    for (tail, share) in tails.iter_mut().zip(shares) {
        *tail = share;
    }
    tails
}

/// The share of each block size: what its tail leaves of the tail before.
fn shares(tails: [f64; BLOCKS.len()]) -> Vec<NeighbourShare> {
    let steps = tails.windows(2).map(|pair| pair[0] - pair[1]);
    let larger_blocks = BLOCKS.iter().skip(1);
    larger_blocks
        .zip(steps)
        .map(|(&block_bytes, share)| NeighbourShare { block_bytes, share })
        .filter(|neighbour| neighbour.share >= MIN_SHARE)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_found_again() {
        let costs = [500.0, 350.0, 250.0, 190.0, 150.0];
        let expected = [0.5, 0.4, 0.2, 0.1, 0.0];
        let mut times = [300.0; BLOCKS.len()];
        for i in (0..BLOCKS.len() - 1).rev() {
            times[i] = times[i + 1] + expected[i] * (costs[i] - costs[i + 1]);
        }
        let tails = tails(&times, &costs);
        for (tail, expected) in tails.into_iter().zip(expected) {
            assert!((tail - expected).abs() < 1e-9, "{tail} {expected}");
        }
        let found = shares(tails);
        let found = found.iter().map(|neighbour| neighbour.block_bytes);
        assert!(found.eq([128, 256, 1024, 4096]));
    }

    #[test]
    fn noise_gives_falling_shares() {
        let costs = [500.0, 350.0, 350.0, 190.0, 250.0];
        let wild = [9e3, 1.0, 5e3, 7.0, 8e3];
        for times in [wild, [0.0; 5], [1.0, 2.0, 3.0, 4.0, 5.0]] {
            let tails = tails(&times, &costs);
            assert!(tails.is_sorted_by(|a, b| a >= b), "{tails:?}");
            assert!(tails[0] <= MAX_TAIL && tails[4] >= 0.0, "{tails:?}");
            let shares = shares(tails);
            let sum: f64 = shares.iter().map(|neighbour| neighbour.share).sum();
            assert!(sum <= 1.0, "{shares:?}");
        }
    }

    #[test]
    fn scattering_moves_whole_blocks() {
        let placement = Placement::from_offsets((0..64).map(|i| i * 64).collect());
        let scattered = scatter(&placement, 256);
        assert_ne!(placement.offsets(), scattered.offsets());
        for four in scattered.offsets().chunks(4) {
            assert!(four[0].is_multiple_of(256) && four[3] == four[0] + 192);
        }
        let mut sorted = scattered.offsets().to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, placement.offsets());
    }
}
