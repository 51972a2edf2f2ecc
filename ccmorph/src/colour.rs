//! Colouring in a morph: which cache, and places at addresses of the right colour.
//!
//! A placement has offsets, a colour depends on addresses. Within a segment of 64 KiB of a
//! [`Region`](ccmalloc::Region) the two agree. Where a way of the cache is larger, more segments
//! are reserved than are needed, and matched; the others go back untouched.

use crate::link::Placer;
use ccmodel::{
    CacheGeometry, ColourGain, Colouring, Layout, LevelKind, Machine, NodeExtent, Placement,
    Topology,
};
use std::alloc;
use std::collections::BTreeMap;

/// A way of a first-level cache on nearly all machines: a page, so that bits of the page offset are
/// all that chooses a set.
const FIRST_LEVEL_WAY_BYTES: u64 = 4096;
const LINE_BYTES: u64 = 64;
/// The largest way for which segments of the right colour can be had in each chunk of 2 MiB.
pub(crate) const WAY_BYTES_MAX: u64 = 1 << 20;

/// What a morph did with the colours of a cache: see [`Morph::colour`](crate::Morph::colour).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ColourReport {
    /// The cache, and its share for hot nodes.
    pub colouring: Colouring,
    /// How many nodes have that share for themselves.
    pub hot_nodes: usize,
    /// Bytes of address space in gaps between colours.
    pub gap_bytes: u64,
    /// Bytes of memory in gaps: none where these are whole pages.
    pub lost_bytes: u64,
    /// What an operation gains and loses at each level of the machine. `None` when the cache's ways
    /// are larger than [`Machine::colour_way_bytes`].
    pub gain: Option<ColourGain>,
}

/// A cache, or by default the first level of the machine, and the share for hot nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColourChoice {
    pub(crate) geometry: Option<CacheGeometry>,
    pub(crate) hot_share: f64,
}

impl ColourChoice {
    /// The cache to colour.
    pub(crate) fn geometry(&self, machine: Option<&Machine>) -> CacheGeometry {
        self.geometry.unwrap_or_else(|| match machine {
            Some(machine) => first_level_of(machine),
            None => first_level_here().unwrap_or_else(|| first_level_of(Machine::this())),
        })
    }
}

/// The first-level data cache as the system describes it.
fn first_level_here() -> Option<CacheGeometry> {
    let topology = Topology::this();
    let cache = topology.data_caches().find(|cache| cache.level == 1)?;
    let way_bytes = cache.size_bytes / u64::from(cache.ways.max(1));
    let sets = way_bytes.checked_div(cache.line_bytes)?;
    CacheGeometry::new(sets, cache.line_bytes, u64::from(cache.ways)).ok()
}

/// A first-level cache of a machine's capacity, its ways being pages.
fn first_level_of(machine: &Machine) -> CacheGeometry {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a number of bytes, within bounds"
    )]
    let capacity_bytes =
        first_level(machine).map_or(0.0, |level| level.capacity_bytes().clamp(0.0, 1e9)) as u64;
    let ways = (capacity_bytes / FIRST_LEVEL_WAY_BYTES).clamp(1, 1 << 16);
    match CacheGeometry::new(FIRST_LEVEL_WAY_BYTES / LINE_BYTES, LINE_BYTES, ways) {
        Ok(geometry) => geometry,
        Err(error) => unreachable!("64 sets of 64 bytes are a cache: {error}"),
    }
}

/// The level nearest to the processor.
fn first_level(machine: &Machine) -> Option<&ccmodel::Level> {
    data_levels(machine).next()
}

fn data_levels(machine: &Machine) -> impl Iterator<Item = &ccmodel::Level> {
    (machine.levels.iter()).filter(|level| level.kind == LevelKind::Data)
}

/// The level of a cache with ways of this size; `None` where they are larger than what is known to
/// colour.
pub(crate) fn level_of(machine: &Machine, way_bytes: u64) -> Option<&ccmodel::Level> {
    if way_bytes <= FIRST_LEVEL_WAY_BYTES {
        return first_level(machine);
    }
    data_levels(machine)
        .nth(1)
        .filter(|_| way_bytes <= machine.colour_way_bytes())
}

/// A placer whose segments are matched to those of the offsets by their position in a way.
#[derive(Debug)]
pub(crate) struct Matched<P> {
    inner: P,
    /// For each segment of the offsets that has nodes, the segment of the placer.
    segments: BTreeMap<usize, usize>,
}

const SEGMENT_BYTES: usize = ccmalloc::Region::SEGMENT_BYTES;

impl<P: Placer> Matched<P> {
    /// Room for a placement in which offsets and addresses agree modulo `way_bytes`, a power of
    /// two. `None` when there is no memory.
    pub(crate) fn reserve(
        placement: &Placement,
        node: NodeExtent,
        way_bytes: u64,
        reserve: impl Fn(usize) -> Option<P>,
    ) -> Option<Matched<P>> {
        let way_segments = (usize::try_from(way_bytes).ok()? / SEGMENT_BYTES).max(1);
        let mut wanted = BTreeMap::new();
        for &offset in placement.offsets() {
            let last = offset + u64::from(node.bytes) - 1;
            debug_assert_eq!(offset / Layout::SEGMENT_BYTES, last / Layout::SEGMENT_BYTES);
            wanted.insert(usize::try_from(offset).ok()? / SEGMENT_BYTES, 0);
        }
        let mut of_colour = vec![0usize; way_segments];
        for segment in wanted.keys() {
            of_colour[segment % way_segments] += 1;
        }
        let most = of_colour.iter().max().copied().unwrap_or(0);
        // Each chunk of 32 segments keeps its first for itself, and the chunks may be in use in
        // part: some more, and then more again.
        for attempt in 1..=3 {
            let count = (most + 1) * way_segments * (attempt + 1) + 32;
            let inner = reserve(count.checked_mul(SEGMENT_BYTES)?)?;
            if match_segments(&inner, count, way_segments, &mut wanted) {
                return Some(Matched {
                    inner,
                    segments: wanted,
                });
            }
        }
        None
    }
}

impl<P> Matched<P> {
    /// The placer's offset for one of the placement, whose segments were all matched.
    fn matched(&self, offset: usize) -> usize {
        let segment = self.segments.get(&(offset / SEGMENT_BYTES));
        segment.map_or(usize::MAX, |segment| {
            segment * SEGMENT_BYTES + offset % SEGMENT_BYTES
        })
    }
}

/// Gives each wanted segment one of the same colour out of the first `count`. Returns whether there
/// were enough.
fn match_segments(
    placer: &impl Placer,
    count: usize,
    way_segments: usize,
    wanted: &mut BTreeMap<usize, usize>,
) -> bool {
    let mut of_colour = vec![Vec::new(); way_segments];
    // From the last to the first, so that `pop` gives ascending addresses.
    for segment in (0..count).rev() {
        let address = placer.address(segment * SEGMENT_BYTES).addr();
        of_colour[address / SEGMENT_BYTES % way_segments].push(segment);
    }
    wanted.iter_mut().all(|(&offset, segment)| {
        let found = of_colour[offset % way_segments].pop();
        found.map(|found| *segment = found).is_some()
    })
}

// SAFETY: allocations are those of the inner placer.
unsafe impl<P: Placer> Placer for Matched<P> {
    fn alloc_at(&mut self, offset: usize, layout: alloc::Layout) -> *mut u8 {
        let offset = self.matched(offset);
        self.inner.alloc_at(offset, layout)
    }

    fn address(&self, offset: usize) -> *mut u8 {
        self.inner.address(self.matched(offset))
    }
}
