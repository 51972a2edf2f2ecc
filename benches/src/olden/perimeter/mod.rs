//! perimeter: the perimeter of the black regions of an image, by its quadtree.
//!
//! From H. Samet, *Computing perimeters of regions in images represented by quadtrees* (IEEE PAMI
//! 3, 1981), which Olden's program follows: for each black leaf and each of its four sides, the
//! neighbour is found by going up until a common ancestor, and down again mirrored. Sides of a leaf
//! against white count, and so does the border of the image.
//!
//! ```text
//! neighbour(node, side):  up while node lies at that side of its parent; then down, mirrored
//!     white, or none -> the side counts           black -> it does not
//!     grey           -> the white leaves along the side count
//! ```
//!
//! Choices: the image of the thesis (4 K x 4 K, 64 MB of nodes, table 4.2) is not told, and that of
//! the common copies of Olden, one ring, gives a tenth of the nodes. Ours is a zone plate: rings of
//! equal area around a point off the centre, black and white in turns, so that squares of all sizes
//! come up; integers decide, so it is the same on every machine. With its rings a 4 K x 4 K image
//! has 64 MB of nodes, as in the thesis.

mod quadtree;

use std::alloc::Layout;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};

use self::quadtree::{Colour, Node, Quadrant, Quadtree, Square};
use super::placement::Placement;
use super::{Olden, Size};

/// A side of a square.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    North,
    South,
    West,
    East,
}

impl Side {
    const ALL: [Side; 4] = [Side::North, Side::South, Side::West, Side::East];

    /// Whether a quarter lies at this side of the whole.
    fn is_of(self, quadrant: Quadrant) -> bool {
        self.quarters().contains(&quadrant)
    }

    /// The two quarters at this side.
    fn quarters(self) -> [Quadrant; 2] {
        match self {
            Side::North => [Quadrant::NorthWest, Quadrant::NorthEast],
            Side::South => [Quadrant::SouthWest, Quadrant::SouthEast],
            Side::West => [Quadrant::NorthWest, Quadrant::SouthWest],
            Side::East => [Quadrant::NorthEast, Quadrant::SouthEast],
        }
    }

    fn opposite(self) -> Side {
        match self {
            Side::North => Side::South,
            Side::South => Side::North,
            Side::West => Side::East,
            Side::East => Side::West,
        }
    }

    /// The quarter on the other side of the line through the middle.
    fn mirror(self, quadrant: Quadrant) -> Quadrant {
        let flipped = match self {
            Side::North | Side::South => 2,
            Side::West | Side::East => 1,
        };
        Quadrant::ALL[quadrant as usize ^ flipped]
    }
}

/// The area of a ring is that of the image divided by two to this power, so that about a hundred
/// rings lie between the centre and the farthest corner.
const RING_SHIFT: u32 = 7;

/// An image: a zone plate.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Pixels of a side: two to this power.
    levels: u32,
}

impl Image {
    fn side(self) -> i64 {
        1 << self.levels
    }

    /// The least and the largest square of a distance from the centre in one direction, of pixels
    /// from `first` on, in quarters of pixels.
    fn squares(self, centre: i64, first: i64, count: i64) -> (i64, i64) {
        // Twice the coordinates, so that centres of pixels are odd and never that of the plate.
        let (low, high) = (
            2 * first + 1 - 2 * centre,
            2 * (first + count - 1) + 1 - 2 * centre,
        );
        let least = if low < 0 && high > 0 {
            1
        } else {
            low.abs().min(high.abs())
        };
        let most = low.abs().max(high.abs());
        (least * least, most * most)
    }

    /// The rings in which the nearest and the farthest pixel of a square lie.
    fn rings(self, square: Square) -> (i64, i64) {
        let side = self.side();
        let (centre_column, centre_row) = (side * 5 / 16, side * 7 / 16);
        let (nearest, farthest) = [
            self.squares(centre_column, square.column, square.side),
            self.squares(centre_row, square.row, square.side),
        ]
        .into_iter()
        .fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        // Coordinates are doubled, so the image's area is four times the pixels.
        let shift = 2 * self.levels + 2 - RING_SHIFT;
        (nearest >> shift, farthest >> shift)
    }

    fn colour(self, square: Square) -> Colour {
        let (nearest, farthest) = self.rings(square);
        match (nearest == farthest, nearest % 2 == 0) {
            (false, _) => Colour::Grey,
            (true, true) => Colour::Black,
            (true, false) => Colour::White,
        }
    }

    /// Whether a pixel is black; those outside of the image are not.
    fn is_black(self, column: i64, row: i64) -> bool {
        let inside = 0..self.side();
        let pixel = Square {
            column,
            row,
            side: 1,
        };
        inside.contains(&column) && inside.contains(&row) && self.colour(pixel) == Colour::Black
    }

    /// Nodes of the tree of `square`.
    fn nodes(self, square: Square) -> usize {
        match self.colour(square) {
            Colour::Grey => {
                let quarters = Quadrant::ALL.into_iter();
                1 + quarters
                    .map(|quadrant| self.nodes(square.quarter(quadrant)))
                    .sum::<usize>()
            }
            Colour::Black | Colour::White => 1,
        }
    }
}

/// An image's quadtree.
#[derive(Debug)]
pub struct Perimeter {
    tree: Quadtree,
}

impl Olden for Perimeter {
    const NAME: &'static str = "perimeter";

    // Built in one go, in the order of the walk.
    const POLICY: Policy = Policy::Closest;

    type Input = Image;

    fn input(size: Size) -> Image {
        let levels = match size {
            Size::Tiny => 8,
            Size::Thesis => 12,
            Size::Quick => 11,
            Size::Large => 13,
        };
        Image { levels }
    }

    fn nodes(&image: &Image) -> Vec<(Layout, usize)> {
        vec![(
            Layout::new::<Node>(),
            image.nodes(Square::whole(image.levels)),
        )]
    }

    fn build<P: Placement>(&image: &Image, placement: P) -> Self {
        Perimeter {
            tree: Quadtree::build(image.levels, |square| image.colour(square), placement),
        }
    }

    /// Depth-first: all leaves are visited, and neighbours lie mostly near.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        self.tree.morph(&morph.layout(ccmodel::Layout::DepthFirst))
    }

    fn work<P: Placement>(
        &mut self,
        image: &Image,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        Ok(perimeter(self.tree.root(), image.side(), placement).unsigned_abs())
    }

    /// The sides of black pixels that are not shared with another black one.
    fn check(&self, &image: &Image, result: u64) -> Result<(), String> {
        let mut expected = 0_u64;
        for row in 0..image.side() {
            let mut left = false;
            for column in 0..=image.side() {
                let here = image.is_black(column, row);
                expected += u64::from(here != left);
                left = here;
            }
        }
        for column in 0..image.side() {
            let mut above = false;
            for row in 0..=image.side() {
                let here = image.is_black(column, row);
                expected += u64::from(here != above);
                above = here;
            }
        }
        if result == expected {
            Ok(())
        } else {
            Err(format!("a perimeter of {result}, not {expected}"))
        }
    }
}

/// The perimeter of the black leaves below `node`, whose sides have `side` pixels.
fn perimeter<P: Placement>(node: &Node, side: i64, placement: P) -> i64 {
    match node.colour() {
        Colour::White => 0,
        Colour::Grey => {
            for child in node.children() {
                placement.prefetch(child);
            }
            let children = Quadrant::ALL.into_iter();
            children
                .filter_map(|quadrant| node.child(quadrant))
                .map(|child| perimeter(child, side / 2, placement))
                .sum()
        }
        Colour::Black => Side::ALL
            .into_iter()
            .map(|at| match neighbour(node, at) {
                None => side,
                Some(neighbour) => white_along(neighbour, at.opposite(), side),
            })
            .sum(),
    }
}

/// The node beyond that side which is as large as `node`, or the larger leaf that holds it; none
/// beyond the border.
fn neighbour(node: &Node, side: Side) -> Option<&Node> {
    let parent = node.parent()?;
    let across = if side.is_of(node.quadrant()) {
        neighbour(parent, side)?
    } else {
        parent
    };
    // A leaf has no children, and is then itself the neighbour.
    let mirrored = across.child(side.mirror(node.quadrant()));
    Some(mirrored.unwrap_or(across))
}

/// Pixels of white leaves along the given side of `node`, which has `length` pixels as far as they
/// count.
fn white_along(node: &Node, side: Side, length: i64) -> i64 {
    match node.colour() {
        Colour::White => length,
        Colour::Black => 0,
        Colour::Grey => {
            let quarters = side.quarters().into_iter();
            quarters
                .filter_map(|quadrant| node.child(quadrant))
                .map(|child| white_along(child, side, length / 2))
                .sum()
        }
    }
}
