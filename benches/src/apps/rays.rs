//! Light through a landscape: the first pass of photon mapping, over a bounding volume hierarchy.
//!
//! The landscape is a square of heights by midpoint displacement (A. Fournier, D. Fussell,
//! L. Carpenter, *Computer Rendering of Stochastic Models*, 1982), two triangles for each of its
//! cells. Photons leave the sky at random places in random directions (H. W. Jensen, *Global
//! Illumination using Photon Maps*, 1996), and are followed to the first triangle that they meet.
//!
//! The crate keeps its nodes in a public vector, in depth-first order, linked by index:
//! `Morph::run_slice` puts them into an order in which a path from the root touches fewer pages.
//! Nodes have 80 bytes, more than a cache block. The time of the morph counts.

use bvh::aabb::{Aabb, Bounded};
use bvh::bounding_hierarchy::BHShape;
use bvh::bvh::{Bvh, BvhNode};
use bvh::ray::Ray;
use ccmorph::{Layout, Morph};
use nalgebra::{Point3, Vector3};

use crate::programs::{Outcome, Scale};
use crate::rng::Rng;

/// The change.
pub(super) fn morph(hierarchy: &mut Bvh<f32, 3>) {
    // The crate begins there.
    let mut root = 0_usize;
    let report = Morph::new()
        .layout(Layout::VanEmdeBoas)
        .run_slice(&mut hierarchy.nodes, &mut root, |node, visit| match node {
            BvhNode::Leaf { parent_index, .. } => visit.reference(parent_index),
            BvhNode::Node {
                parent_index,
                child_l_index,
                child_r_index,
                ..
            } => {
                visit.child(child_l_index);
                visit.child(child_r_index);
                visit.reference(parent_index);
            }
        })
        .expect("its indices have room for each other");
    let nodes = report.morph.nodes;
    assert_eq!(report.reached, nodes, "all hang below the root");
    assert_eq!(root, 0, "a root that is first stays so");
}

/// Cells along a side of the landscape.
const SIDE: usize = 1 << 10;
const PHOTONS: usize = 8_000_000;

struct Triangle {
    corners: [Point3<f32>; 3],
    node: usize,
}

impl Bounded<f32, 3> for Triangle {
    fn aabb(&self) -> Aabb<f32, 3> {
        let corners = self.corners.iter();
        corners.fold(Aabb::empty(), |bounds, corner| bounds.grow(corner))
    }
}

impl BHShape<f32, 3> for Triangle {
    fn set_bh_node_index(&mut self, node: usize) {
        self.node = node;
    }

    fn bh_node_index(&self) -> usize {
        self.node
    }
}

pub(super) fn run(scale: Scale, morph: impl Fn(&mut Bvh<f32, 3>)) -> Outcome {
    let mut rng = Rng::new(42);
    let mut triangles = landscape(&mut rng);
    Outcome::of(|sum| {
        let mut hierarchy = Bvh::build(&mut triangles);
        morph(&mut hierarchy);
        let photons = scale.of(PHOTONS);
        let mut hits = 0;
        for _ in 0..photons {
            let origin = Point3::new(unit(&mut rng), unit(&mut rng), 1.0);
            let direction = Vector3::new(unit(&mut rng) - 0.5, unit(&mut rng) - 0.5, -1.0);
            let ray = Ray::new(origin, direction);
            let triangles = hierarchy.traverse_iterator(&ray, &triangles);
            let distances = triangles.map(|triangle| {
                let [a, b, c] = &triangle.corners;
                ray.intersects_triangle(a, b, c).distance
            });
            let nearest = distances.fold(f32::INFINITY, f32::min);
            hits += usize::from(nearest.is_finite());
            sum.add(u64::from(nearest.to_bits()));
        }
        assert!(hits > photons / 2, "{hits} of {photons} photons hit");
        hierarchy
    })
}

/// A number from 0 to 1, both possible.
fn unit(rng: &mut Rng) -> f32 {
    rng.below(1 << 24) as f32 / ((1 << 24) - 1) as f32
}

/// The triangles over a square of heights.
fn landscape(rng: &mut Rng) -> Vec<Triangle> {
    let heights = heights(rng);
    let point = |x: usize, y: usize| {
        let at = |cell: usize| cell as f32 / SIDE as f32;
        Point3::new(at(x), at(y), heights[y * (SIDE + 1) + x])
    };
    let mut triangles = Vec::with_capacity(2 * SIDE * SIDE);
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (west, east) = (point(x, y), point(x + 1, y));
            let (north, far) = (point(x, y + 1), point(x + 1, y + 1));
            // The crate's triangles have one side: against the clock as seen from the sky.
            for corners in [[west, east, north], [east, far, north]] {
                triangles.push(Triangle { corners, node: 0 });
            }
        }
    }
    triangles
}

/// Midpoint displacement: the middle of each square and of each edge lies between its neighbours,
/// plus or minus half of what it was a size before.
fn heights(rng: &mut Rng) -> Vec<f32> {
    const ROW: usize = SIDE + 1;
    let mut heights = vec![0.0_f32; ROW * ROW];
    let mut step = SIDE;
    let mut roughness = 0.25_f32;
    while step > 1 {
        let half = step / 2;
        let mut displace = |at: usize, neighbours: &[usize]| {
            let sum: f32 = neighbours.iter().map(|&neighbour| heights[neighbour]).sum();
            heights[at] = sum / neighbours.len() as f32 + roughness * (unit(rng) - 0.5);
        };
        let (across, down) = (half, half * ROW);
        for y in (half..SIDE).step_by(step) {
            for at in (y * ROW + half..y * ROW + SIDE).step_by(step) {
                let (above, below) = (at - down, at + down);
                let [left, right] = [above - across, above + across];
                displace(at, &[left, right, below - across, below + across]);
            }
        }
        for y in (0..=SIDE).step_by(step) {
            for at in (y * ROW + half..y * ROW + SIDE).step_by(step) {
                displace(at, &[at - across, at + across]);
            }
        }
        for y in (half..SIDE).step_by(step) {
            for at in (y * ROW..=y * ROW + SIDE).step_by(step) {
                displace(at, &[at - down, at + down]);
            }
        }
        step = half;
        roughness /= 2.0;
    }
    heights
}
