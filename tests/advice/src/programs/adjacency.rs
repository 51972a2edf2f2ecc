//! A graph as a list of edges for each vertex, gone through again and again.
//!
//! The edges of a file come in any order, so those of one vertex lie far apart. A morph puts each
//! list into one piece.

use super::mix;
use ccmorph::TreeNode;

morphed!(Edge::children, Walk; |size| read(size), |root| spread(root));

#[derive(TreeNode)]
struct Edge {
    to: u32,
    weight: u32,
    #[child]
    next: Option<Box<Edge>>,
}

fn read(size: usize) -> Vec<Option<Box<Edge>>> {
    let mut random = fastrand::Rng::with_seed(9);
    let mut vertices: Vec<Option<Box<Edge>>> = Vec::new();
    vertices.resize_with(size / 16, || None);
    let count = u32::try_from(vertices.len()).expect("few vertices");
    for _ in 0..size {
        let from = &mut vertices[random.u32(..count) as usize];
        let (to, weight) = (random.u32(..count), random.u32(1..100));
        *from = Some(Box::new(Edge {
            to,
            weight,
            next: from.take(),
        }));
    }
    vertices
}

fn spread(vertices: &[Option<Box<Edge>>]) -> u64 {
    let mut heights: Vec<u64> = (0..).take(vertices.len()).collect();
    for _ in 0..6 {
        for (at, first) in vertices.iter().enumerate() {
            let mut edge = first;
            while let Some(Edge { to, weight, next }) = edge.as_deref() {
                heights[at] = heights[at].max(heights[*to as usize] + u64::from(*weight));
                edge = next;
            }
        }
    }
    heights.into_iter().fold(0, mix)
}
