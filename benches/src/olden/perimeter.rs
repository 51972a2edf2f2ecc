//! perimeter: the perimeter of the black regions of an image, by its quadtree.
//!
//! From H. Samet, *Computing perimeters of regions in images represented by quadtrees* (IEEE PAMI
//! 3, 1981), which Olden's program follows: for each black leaf and each of its four sides, the
//! neighbour is found by going up until a common ancestor, and down again mirrored. Sides against
//! white count, and so does the border of the image.
//!
//! ```text
//! neighbour(node, side):  up while node lies at that side of its parent; then down, mirrored
//!     white, or none -> the side counts           black -> it does not
//!     grey           -> the white leaves along the side count
//! ```
//!
//! The thesis does not show its image. Ours is a zone plate: rings of equal area around a point off
//! the centre, black and white in turns, computed in integers. With it a 4 K x 4 K image has 64 MB
//! of nodes, as in the thesis (table 4.2).
//!
//! Two pointers lead to each node, its parent's and its children's, so the links are raw, as in C.

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};

use super::{Olden, Size, check_equal};
use crate::placement::Placement;

/// A quarter of a square, numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Quadrant {
    NorthWest,
    NorthEast,
    SouthWest,
    SouthEast,
}

impl Quadrant {
    const ALL: [Quadrant; 4] = [
        Quadrant::NorthWest,
        Quadrant::NorthEast,
        Quadrant::SouthWest,
        Quadrant::SouthEast,
    ];
}

/// What a square of the image holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Colour {
    White,
    Black,
    /// Both: there are four quarters.
    Grey,
}

/// One node: 48 bytes.
///
/// Invariants, from the end of [`Perimeter::build`] on:
/// - each of `children` is null, or points to a live node of the same tree, made by `Box`, whose
///   `parent` points back to this one and to which no other node's `children` point;
/// - `parent` is null in the root;
/// - nodes change, move and are freed only under a `&mut Perimeter`.
#[derive(Debug)]
struct Node {
    colour: Colour,
    /// Which quarter of its parent it is.
    quadrant: Quadrant,
    children: [*mut Node; 4],
    parent: *mut Node,
}

const _: () = assert!(size_of::<Node>() == 48);

impl Node {
    #[inline]
    fn child(&self, quadrant: Quadrant) -> Option<&Node> {
        // SAFETY: null, or a live node (invariant), which does not change while this one is
        // borrowed: that takes the whole tree.
        unsafe { self.children[quadrant as usize].as_ref() }
    }

    #[inline]
    fn parent(&self) -> Option<&Node> {
        // SAFETY: as in `child`.
        unsafe { self.parent.as_ref() }
    }
}

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

/// A part of an image.
#[derive(Clone, Copy, Debug)]
struct Square {
    column: i64,
    row: i64,
    /// Pixels of a side.
    side: i64,
}

impl Square {
    fn quarter(self, quadrant: Quadrant) -> Square {
        let side = self.side / 2;
        let number = quadrant as i64;
        Square {
            column: self.column + number % 2 * side,
            row: self.row + number / 2 * side,
            side,
        }
    }
}

/// The area of a ring is that of the image divided by two to this power, so that about a hundred
/// rings lie between the centre and the farthest corner.
const RING_SHIFT: u32 = 7;

/// An image: a zone plate.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Pixels of a side: two to this power.
    pub levels: u32,
}

impl Image {
    fn side(self) -> i64 {
        1 << self.levels
    }

    fn whole(self) -> Square {
        Square {
            column: 0,
            row: 0,
            side: self.side(),
        }
    }

    /// The least and the largest square of a distance from the centre in one direction, of `count`
    /// pixels from `first` on, in quarters of pixels.
    fn squares(centre: i64, first: i64, count: i64) -> [i64; 2] {
        // Twice the coordinates, so that centres of pixels are odd and never that of the plate.
        let low = 2 * (first - centre) + 1;
        let high = low + 2 * (count - 1);
        let least = match low < 0 && high > 0 {
            true => 1,
            false => low.abs().min(high.abs()),
        };
        let most = low.abs().max(high.abs());
        [least * least, most * most]
    }

    /// Black or white when the nearest and the farthest pixel of a square lie in the same ring.
    fn colour(self, square: Square) -> Colour {
        let (side, count) = (self.side(), square.side);
        let across = Image::squares(side * 5 / 16, square.column, count);
        let down = Image::squares(side * 7 / 16, square.row, count);
        // Coordinates are doubled, so the image's area is four times the pixels.
        let shift = 2 * self.levels + 2 - RING_SHIFT;
        let [nearest, farthest] = [0, 1].map(|end: usize| (across[end] + down[end]) >> shift);
        match (nearest == farthest, nearest % 2 == 0) {
            (false, _) => Colour::Grey,
            (true, true) => Colour::Black,
            (true, false) => Colour::White,
        }
    }

    /// Nodes of the tree of `square`.
    fn nodes(self, square: Square) -> usize {
        if self.colour(square) != Colour::Grey {
            return 1;
        }
        let quarters = Quadrant::ALL.map(|quadrant| self.nodes(square.quarter(quadrant)));
        1 + quarters.iter().sum::<usize>()
    }

    /// The tree of `square`, a node before its children. A single pixel is never grey.
    fn tree<P: Placement>(
        self,
        square: Square,
        quadrant: Quadrant,
        parent: *mut Node,
        placement: P,
    ) -> *mut Node {
        let colour = self.colour(square);
        let leaf = Node {
            colour,
            quadrant,
            children: [ptr::null_mut(); 4],
            parent,
        };
        let node = Box::into_raw(placement.new_near(leaf, parent));
        if colour == Colour::Grey {
            for quadrant in Quadrant::ALL {
                let child = self.tree(square.quarter(quadrant), quadrant, node, placement);
                // SAFETY: made above, and there is no reference to it: its descendants only hold
                // its address.
                unsafe { (*node).children[quadrant as usize] = child };
            }
        }
        node
    }
}

/// An image's quadtree.
///
/// Invariant: `root` is null only while [`drop`](Drop::drop) runs; else the invariants of `Node`
/// hold for all nodes that can be reached from it.
#[derive(Debug)]
pub struct Perimeter {
    root: *mut Node,
}

impl Drop for Perimeter {
    fn drop(&mut self) {
        let mut pending = vec![std::mem::replace(&mut self.root, ptr::null_mut())];
        while let Some(node) = pending.pop() {
            if !node.is_null() {
                // SAFETY: made by `Box`, live, and reached once, because one link alone leads to
                // each node (invariants).
                let node = unsafe { Box::from_raw(node) };
                pending.extend(node.children);
            }
        }
    }
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

    fn nodes(image: &Image) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<Node>(), image.nodes(image.whole()))]
    }

    fn build<P: Placement>(image: &Image, placement: P) -> Self {
        let whole = image.whole();
        let root = image.tree(whole, Quadrant::NorthWest, ptr::null_mut(), placement);
        Perimeter { root }
    }

    /// Depth-first: all leaves are visited, and neighbours lie mostly near.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmodel::Layout::DepthFirst);
        let roots = std::slice::from_mut(&mut self.root);
        // SAFETY: the nodes are live and come from `Box`; the places shown are all pointers to them
        // that there are (children, parents, the root), and stay readable and writable for the
        // call, because the tree is mutably borrowed.
        let report = unsafe {
            morph.run_raw(roots, |node, visit| {
                for quadrant in Quadrant::ALL {
                    visit.link(&raw mut (*node).children[quadrant as usize]);
                }
                visit.pointer(&raw mut (*node).parent);
            })
        };
        report.map(drop)
    }

    fn work<P: Placement>(
        &mut self,
        image: &Image,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        // SAFETY: not null outside of `drop`, so a live node (invariant), which does not change
        // while the tree is borrowed.
        let root = unsafe { &*self.root };
        Ok(perimeter(root, image.side(), placement).unsigned_abs())
    }

    /// The changes of colour along each row and each column of pixels, white outside.
    fn check(&self, image: &Image, result: u64) -> Result<(), String> {
        let side = image.side();
        let is_black = |column: i64, row: i64| {
            let pixel = Square {
                column,
                row,
                side: 1,
            };
            column < side && row < side && image.colour(pixel) == Colour::Black
        };
        let mut expected = 0;
        for line in 0..side {
            let (mut left, mut above) = (false, false);
            for place in 0..=side {
                let (across, down) = (is_black(place, line), is_black(line, place));
                expected += u64::from(across != left) + u64::from(down != above);
                (left, above) = (across, down);
            }
        }
        check_equal(result, expected)
    }
}

/// The perimeter of the black leaves below `node`, whose sides have `side` pixels.
fn perimeter<P: Placement>(node: &Node, side: i64, placement: P) -> i64 {
    match node.colour {
        Colour::White => 0,
        Colour::Grey => {
            for child in node.children {
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
    let across = match side.quarters().contains(&node.quadrant) {
        true => neighbour(parent, side)?,
        false => parent,
    };
    // A leaf has no children, and is then itself the neighbour.
    let mirrored = across.child(side.mirror(node.quadrant));
    Some(mirrored.unwrap_or(across))
}

/// Pixels of white leaves along the given side of `node`, of which `length` pixels count.
fn white_along(node: &Node, side: Side, length: i64) -> i64 {
    match node.colour {
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
