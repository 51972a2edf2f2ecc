//! voronoi: the Delaunay triangulation of points, whose dual is their Voronoi diagram, by dividing
//! and conquering.
//!
//! After L. Guibas and J. Stolfi, *Primitives for the manipulation of general subdivisions and the
//! computation of Voronoi diagrams* (ACM Transactions on Graphics 4(2), 1985). The sites are a
//! binary tree by x; edges are records that know their neighbours around both ends and on both
//! sides (module `quad_edge`).
//!
//! ```text
//! triangulate(t, last):   the sites below t, t, and `last`, which follows them all
//!     two or three sites  one, two or three edges
//!     more                triangulate(left, t), triangulate(right, last), and sew both together from their lower common tangent upwards;
//!                         edges of either side that the seam crosses are deleted
//! ```
//!
//! A seam walks along both sides, deletes about as many edges as it keeps of its own, and makes new
//! ones beside those. So the edges around a site come from many seams, and their order in memory is
//! that of the recursion.
//!
//! The thesis did not run this program; the smallest size is about Olden's own. Coordinates are
//! whole numbers of 26 bits, so that all predicates are exact (module `predicates`).
//!
//! A site's hint is the one above it in the tree. Edges get none, in any placement: a record of 56
//! bytes shares a block of 64 with nothing, which is where the guide (`docs/ccmalloc.md`) says not
//! to hint. With the edge that they continue as the hint, 6000 sites took 66.4 million instructions
//! instead of 52.2 (new-block; closest 108.6), and missed as much: 277,643 times a first-level
//! cache of 48 KiB instead of 285,602, and one of 2 MiB 107,588 times instead of 100,860
//! (cachegrind, check and input included).
//!
//! A morph lays out the tree of sites, in depth-first order, as it is walked whole; that is all
//! there is after the build. Edges are made during the work, and as others refer to them around
//! both ends, they are no tree to lay out.

mod predicates;
mod quad_edge;

use std::alloc::Layout;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};
use examples::rng::Rng;

use super::placement::Placement;
use super::{Olden, Size};
use predicates::{COORDINATE_MAX, Point, area, in_circle};
use quad_edge::{Diagram, Edge, Entered, Node, Record, Site};

/// The program.
#[derive(Debug)]
pub struct Voronoi {
    diagram: Diagram,
}

/// Sites by x, and by y where x is the same; no two are the same.
#[derive(Clone, Debug)]
pub struct Input {
    sites: Vec<Point>,
}

impl Input {
    /// About so many sites, even over a square.
    pub fn random(sites: usize, seed: u64) -> Input {
        let mut rng = Rng::new(seed);
        let mut coordinate = || rng.below(COORDINATE_MAX as usize + 1);
        Input::of((0..sites).map(|_| [coordinate(), coordinate()]).collect())
    }

    /// These sites, without repetitions; coordinates too large for the predicates are cut.
    pub fn of(sites: Vec<[usize; 2]>) -> Input {
        let cut = |coordinate: usize| {
            u32::try_from(coordinate).map_or(COORDINATE_MAX, |number| number.min(COORDINATE_MAX))
        };
        // Cut first: sites may become the same, or change their order, by it.
        let mut sites: Vec<[u32; 2]> = sites.into_iter().map(|site| site.map(cut)).collect();
        sites.sort_unstable();
        sites.dedup();
        Input {
            sites: sites.into_iter().map(|site| site.map(f64::from)).collect(),
        }
    }
}

impl Olden for Voronoi {
    const NAME: &'static str = "voronoi";

    // The tree is built in one go.
    const POLICY: Policy = Policy::Closest;

    type Input = Input;

    fn input(size: Size) -> Input {
        let sites = match size {
            Size::Tiny => 6_000,
            Size::Thesis => 60_000,
            Size::Quick => 130_000,
            // 32 bytes each, and three edges of 56.
            Size::Large => 700_000,
        };
        Input::random(sites, 0x76_6F)
    }

    fn nodes(input: &Input) -> Vec<(Layout, usize)> {
        let sites = input.sites.len();
        vec![
            (Layout::new::<Node>(), sites),
            (Layout::new::<Record>(), 3 * sites),
        ]
    }

    fn build<P: Placement>(input: &Input, placement: P) -> Voronoi {
        Voronoi {
            diagram: Diagram::build(&input.sites, placement),
        }
    }

    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        self.diagram
            .morph(&morph.layout(ccmorph::Layout::DepthFirst))
    }

    /// A sum over all edges of the triangulation, whatever their order.
    fn work<P: Placement>(
        &mut self,
        _input: &Input,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        self.diagram.clear();
        let sum = self.diagram.enter(|diagram| {
            if let (Some(root), Some(last)) = (diagram.root(), diagram.last()) {
                let hull = triangulate(diagram, root, last, placement);
                diagram.set_first(hull.first);
            }
            let mut sum = 0_u64;
            diagram.each_edge(placement, |edge| {
                sum = sum.wrapping_add(digest(edge.origin().at(), edge.destination().at()));
            });
            sum
        });
        Ok(sum)
    }

    /// All faces but the outer one are triangles, Euler's formula counts the edges, each edge is
    /// Delaunay's, which makes all of it so (B. Delaunay 1934), and some triangles are compared
    /// with all sites.
    fn check(&self, input: &Input, result: u64) -> Result<(), String> {
        let edges = self.diagram.edges();
        self.diagram
            .enter(|diagram| check(diagram, input, edges, result))
    }
}

/// A number for an edge, the same in both directions.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "coordinates are whole, not negative, and below 2^26"
)]
fn digest(one: Point, other: Point) -> u64 {
    let packed = |at: Point| (at[0] as u64) << 32 | at[1] as u64;
    let number = packed(one).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let other = packed(other).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    // Symmetric, and far from linear.
    (number ^ other).wrapping_mul(number.wrapping_add(other) | 1)
}

/// The outline of a triangulation.
#[derive(Clone, Copy)]
struct Hull<'d> {
    /// From the first site, counter-clockwise along the hull.
    first: Edge<'d>,
    /// From the last site, clockwise along the hull.
    last: Edge<'d>,
}

/// Triangulates the sites below `root`, itself, and `last`, which follows all of them.
fn triangulate<'d, P: Placement>(
    diagram: Entered<'d>,
    root: Site<'d>,
    last: Site<'d>,
    placement: P,
) -> Hull<'d> {
    for below in [root.left(), root.right()].into_iter().flatten() {
        placement.prefetch(below.address());
    }
    match (root.left(), root.right()) {
        (Some(left), Some(right)) => {
            let left = triangulate(diagram, left, root, placement);
            let right = triangulate(diagram, right, last, placement);
            merge(diagram, left, right, placement)
        }
        (Some(left), None) => triangle(diagram, [left, root, last]),
        // The left share is never the smaller one, so there is nothing on the right either.
        (None, _) => {
            let edge = diagram.edge(root, last);
            Hull {
                first: edge,
                last: edge.sym(),
            }
        }
    }
}

/// The triangle of three ascending sites, or two edges in line.
fn triangle<'d>(diagram: Entered<'d>, sites: [Site<'d>; 3]) -> Hull<'d> {
    let [a, b, c] = sites;
    let first = diagram.edge(a, b);
    let second = diagram.edge(b, c);
    first.sym().splice(second);
    let side = area(a.at(), b.at(), c.at());
    if side > 0.0 {
        connect(diagram, second, first);
    } else if side < 0.0 {
        let third = connect(diagram, second, first);
        return Hull {
            first: third.sym(),
            last: third,
        };
    }
    Hull {
        first,
        last: second.sym(),
    }
}

/// A new edge from the end of `one` to the beginning of `other`, with the same face on the left as
/// these two.
fn connect<'d>(diagram: Entered<'d>, one: Edge<'d>, other: Edge<'d>) -> Edge<'d> {
    let edge = diagram.edge(one.destination(), other.origin());
    edge.splice(one.lnext());
    edge.sym().splice(other);
    edge
}

fn is_left_of(site: Site<'_>, edge: Edge<'_>) -> bool {
    area(site.at(), edge.origin().at(), edge.destination().at()) > 0.0
}

fn is_right_of(site: Site<'_>, edge: Edge<'_>) -> bool {
    area(site.at(), edge.destination().at(), edge.origin().at()) > 0.0
}

/// Sews two triangulations together, of which the left one's sites all come before those of the
/// right one.
fn merge<'d, P: Placement>(
    diagram: Entered<'d>,
    left: Hull<'d>,
    right: Hull<'d>,
    placement: P,
) -> Hull<'d> {
    // The lower common tangent: down on both sides until neither has a site below the line between.
    let (mut from_left, mut from_right) = (left.last, right.first);
    loop {
        if is_left_of(from_right.origin(), from_left) {
            from_left = from_left.lnext();
        } else if is_right_of(from_left.origin(), from_right) {
            from_right = from_right.rprev();
        } else {
            break;
        }
    }
    let mut seam = connect(diagram, from_right.sym(), from_left);
    let first = if from_left.origin() == left.first.origin() {
        seam.sym()
    } else {
        left.first
    };
    let last = if from_right.origin() == right.last.origin() {
        seam
    } else {
        right.last
    };
    // The seam goes from right to left; above it are the edges that could close the next triangle,
    // one on either side.
    loop {
        let kept = [first, last, seam, seam];
        let from_left = candidate(diagram, kept, seam.sym().onext(), Edge::onext, placement);
        let kept = [first, last, seam, from_left.unwrap_or(seam)];
        let from_right = candidate(diagram, kept, seam.oprev(), Edge::oprev, placement);
        seam = match (from_left, from_right) {
            (None, None) => return Hull { first, last },
            (Some(left), None) => connect(diagram, seam.sym(), left.sym()),
            (None, Some(right)) => connect(diagram, right, seam.sym()),
            (Some(left), Some(right)) => {
                let corners = [left.destination(), left.origin(), right.origin()].map(Site::at);
                if in_circle(corners[0], corners[1], corners[2], right.destination().at()) {
                    connect(diagram, right, seam.sym())
                } else {
                    connect(diagram, seam.sym(), left.sym())
                }
            }
        };
    }
}

/// The edge of one side that could close a triangle with the seam, if one rises above it: the first
/// one, from `edge` on in the direction of `next`, whose circle has not the end of the one behind
/// it inside. Those before it are deleted.
///
/// `kept` are the edges that the caller goes on with; the seam is the third.
///
/// # Panics
/// When one of these is to be deleted; with exact predicates, never.
fn candidate<'d, P: Placement>(
    diagram: Entered<'d>,
    kept: [Edge<'d>; 4],
    mut edge: Edge<'d>,
    next: impl Fn(Edge<'d>) -> Edge<'d>,
    placement: P,
) -> Option<Edge<'d>> {
    let seam = kept[2];
    if !is_right_of(edge.destination(), seam) {
        return None;
    }
    let [end, begin] = [seam.destination(), seam.origin()].map(Site::at);
    loop {
        let behind = next(edge);
        placement.prefetch(next(behind).address());
        if !in_circle(
            end,
            begin,
            edge.destination().at(),
            behind.destination().at(),
        ) {
            return Some(edge);
        }
        assert!(
            !behind.is_same_record(edge) && !kept.iter().any(|kept| kept.is_same_record(edge)),
            "an edge that lasts is in no circle's way"
        );
        // SAFETY: of this record, nothing is used afterwards: `edge` is replaced by the one behind
        // it, and the caller goes on with none but those just compared. Its callers hold edges of
        // parts of the diagram that are not connected to this one yet, and so cannot be what rings
        // around the seam's ends lead to. The diagram's first edge is set when all is sewn.
        unsafe { edge.delete(diagram) };
        edge = behind;
    }
}

/// The triangles whose circles are compared with all sites.
const SAMPLED: usize = 16;

fn check(diagram: Entered<'_>, input: &Input, edges: usize, result: u64) -> Result<(), String> {
    let sites = input.sites.len();
    if sites < 2 {
        return if edges == 0 {
            Ok(())
        } else {
            Err(format!("{edges} edges between {sites} sites"))
        };
    }
    let mut reached = 0;
    let (mut sum, mut hull, mut triangles) = (0_u64, 0, Vec::new());
    let mut wrong = None;
    diagram.each_edge(super::placement::AsAllocated, |edge| {
        reached += 1;
        sum = sum.wrapping_add(digest(edge.destination().at(), edge.origin().at()));
        let mut corners = [None; 2];
        for (side, corner) in [edge, edge.sym()].into_iter().zip(&mut corners) {
            let third = side.lnext().destination();
            let [a, b, c] = [side.origin(), side.destination(), third].map(Site::at);
            if side.lnext().lnext().lnext() == side && area(a, b, c) > 0.0 {
                *corner = Some(c);
                triangles.push([a, b, c]);
            } else {
                // All sites lie on one side of an outer edge, or on its line.
                hull += 1;
            }
        }
        if let [Some(left), Some(right)] = corners {
            let (from, to) = (edge.origin().at(), edge.destination().at());
            if in_circle(from, to, left, right) {
                wrong = Some(format!("{from:?} to {to:?} is no edge of Delaunay's"));
            }
        }
    });
    if let Some(wrong) = wrong {
        return Err(wrong);
    }
    if reached != edges || sum != result {
        return Err(format!(
            "{reached} of {edges} edges add up to {sum}, not {result}"
        ));
    }
    // Each triangle was met from each of its sides; a side of the outer face, which is all that is
    // not a triangle, is an edge of the hull.
    let faces = triangles.len() / 3 + 1;
    if sites + faces != edges + 2 || 3 * (faces - 1) + hull != 2 * edges {
        return Err(format!(
            "{sites} sites, {edges} edges and {faces} faces, {hull} sides outside: not a triangulation"
        ));
    }
    let every = triangles.len().div_ceil(SAMPLED).max(1);
    for [a, b, c] in triangles.into_iter().step_by(every) {
        if let Some(inside) = input.sites.iter().find(|&&site| in_circle(a, b, c, site)) {
            return Err(format!("{inside:?} lies inside of {a:?}, {b:?}, {c:?}"));
        }
    }
    Ok(())
}
