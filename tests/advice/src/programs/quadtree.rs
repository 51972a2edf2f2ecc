//! A quadtree of random points, whose neighbourhoods are then counted.
//!
//! The nodes of a path lie anywhere, as in any tree that was built by random insertions. But a node
//! with four links nearly fills a cache line, so a morph brings no two together, and a search needs
//! few levels below those that stay in the cache.

use super::mix;
use ccmorph::TreeNode;

morphed!(Square::children; |size| build(size), |root| count(size, root));

#[derive(TreeNode, Default)]
struct Square {
    points: u64,
    #[child]
    parts: [Option<Box<Square>>; 4],
}

/// Levels below the root.
const DEPTH: u32 = 11;

fn build(size: usize) -> Box<Square> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut root = Box::new(Square::default());
    for _ in 0..size {
        let mut place = random.u32(..);
        let mut at = &mut root;
        for _ in 0..DEPTH {
            at.points += 1;
            place = place.rotate_left(2);
            at = at.parts[(place % 4) as usize].get_or_insert_default();
        }
        at.points += 1;
    }
    root
}

/// Sums the points of the smallest squares around random places that have some neighbours.
fn count(size: usize, root: &Square) -> u64 {
    let mut random = fastrand::Rng::with_seed(6);
    (0..3 * size).fold(0, |sum, _| {
        let (mut place, wanted) = (random.u32(..), random.u64(1..3));
        let mut at = root;
        loop {
            place = place.rotate_left(2);
            match &at.parts[(place % 4) as usize] {
                Some(part) if part.points >= wanted => at = part,
                _ => break mix(sum, at.points),
            }
        }
    })
}
