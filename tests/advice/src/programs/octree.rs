//! An octree, built by inserting random points, then walked as a whole.
//!
//! Each walk reads the cubes in the order of space, and they lie in the order of the insertions. A
//! morph for walks puts them one behind the other.

use super::mix;
use ccmorph::TreeNode;

morphed!(Cube::children, Walk; |size| build(size), |root| walks(root));

#[derive(TreeNode, Default)]
struct Cube {
    mass: u64,
    #[child]
    parts: [Option<Box<Cube>>; 8],
}

fn build(size: usize) -> Option<Box<Cube>> {
    let mut random = fastrand::Rng::with_seed(3);
    let mut root = Box::new(Cube::default());
    for _ in 0..size {
        let mut place = random.u64(..);
        let mut at = &mut root;
        // Points of different mass lie in cubes of different size.
        for _ in 0..6 + place % 3 {
            place = place.rotate_left(3);
            at = at.parts[(place % 8) as usize].get_or_insert_default();
        }
        at.mass += place % 100;
    }
    Some(root)
}

fn walks(root: &Option<Box<Cube>>) -> u64 {
    let root = root.as_ref().expect("it was built");
    (0..12).fold(0, |sum, from| mix(sum, walk(root, from)))
}

/// The mass of a cube, its light points left out.
fn walk(cube: &Cube, from: u64) -> u64 {
    let own = if cube.mass > from { cube.mass } else { 0 };
    own + cube
        .parts
        .iter()
        .flatten()
        .map(|part| walk(part, from))
        .sum::<u64>()
}
