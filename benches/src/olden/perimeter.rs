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
//! the centre, black and white in turns, computed in integers. With it an image of 4096 x 4096
//! pixels has 64 MB of nodes, as in the thesis (table 4.2).
//!
//! Two pointers lead to each node, its parent's and its children's, so the links are raw, as in C.

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};

use super::{Olden, Size};
use crate::placement::Placement;

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
/// - nodes change and move only under a `&mut Perimeter`, and are never freed but by a morph.
#[derive(Debug)]
struct Node {
    colour: Colour,
    /// Which quarter of its parent it is, numbered row by row: bit 0 is set in the eastern ones,
    /// bit 1 in the southern ones.
    quadrant: u8,
    children: [*mut Node; 4],
    parent: *mut Node,
}

const _: () = assert!(size_of::<Node>() == 48);

impl Node {
    #[inline]
    fn child(&self, quadrant: u8) -> Option<&Node> {
        // SAFETY: null, or a live node (invariant), which does not change while this one is
        // borrowed: that takes the whole tree.
        unsafe { self.children[usize::from(quadrant)].as_ref() }
    }

    #[inline]
    fn parent(&self) -> Option<&Node> {
        // SAFETY: as in `child`.
        unsafe { self.parent.as_ref() }
    }
}

/// A side of a square: the quadrants lie at it whose bits under the mask `axis` are `at`.
#[derive(Clone, Copy, Debug)]
struct Side {
    axis: u8,
    at: u8,
}

/// North, south, west, and east.
const SIDES: [Side; 4] = [
    Side { axis: 2, at: 0 },
    Side { axis: 2, at: 2 },
    Side { axis: 1, at: 0 },
    Side { axis: 1, at: 1 },
];

/// A square part of an image, in pixels.
#[derive(Clone, Copy, Debug)]
struct Square {
    column: i64,
    row: i64,
    side: i64,
}

impl Square {
    fn quarter(self, quadrant: u8) -> Square {
        let side = self.side / 2;
        Square {
            column: self.column + i64::from(quadrant & 1) * side,
            row: self.row + i64::from(quadrant >> 1) * side,
            side,
        }
    }
}

/// The area of a ring is that of the image divided by two to this power, so that about a hundred
/// rings lie between the centre and the farthest corner.
const RING_SHIFT: u32 = 7;

/// A zone plate.
#[derive(Clone, Copy, Debug)]
struct Image {
    /// Pixels of a side: two to this power.
    levels: u32,
}

impl Image {
    fn whole(self) -> Square {
        Square {
            column: 0,
            row: 0,
            side: 1 << self.levels,
        }
    }

    /// Black or white when the nearest and the farthest pixel of a square lie in the same ring.
    fn colour(self, square: Square) -> Colour {
        let side = self.whole().side;
        let across = squared_distances(side * 5 / 16, square.column, square.side);
        let down = squared_distances(side * 7 / 16, square.row, square.side);
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
        let quarters = (0..4).map(|quadrant| self.nodes(square.quarter(quadrant)));
        1 + quarters.sum::<usize>()
    }

    /// The tree of `square`, a node before its children. A single pixel is never grey.
    fn tree<P: Placement>(
        self,
        square: Square,
        quadrant: u8,
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
            for quadrant in 0..4 {
                let child = self.tree(square.quarter(quadrant), quadrant, node, placement);
                // SAFETY: made above, and there is no reference to it: its descendants only hold
                // its address.
                unsafe { (*node).children[usize::from(quadrant)] = child };
            }
        }
        node
    }
}

/// The squares of the least and the largest distance from the centre in one direction, of `count`
/// pixels from `first` on, in quarters of pixels.
fn squared_distances(centre: i64, first: i64, count: i64) -> [i64; 2] {
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

/// An image's quadtree. The input is the logarithm of the pixels of a side.
///
/// Invariant: `root` is not null, and the invariants of `Node` hold for all nodes that can be
/// reached from it.
#[derive(Debug)]
pub struct Perimeter {
    root: *mut Node,
}

impl Olden for Perimeter {
    const NAME: &'static str = "perimeter";
    const POLICY: Policy = Policy::Closest;
    const RESULTS: [u64; 4] = [35_626, 573_036, 286_400, 1_146_276];
    type Input = u32;

    fn input(size: Size) -> u32 {
        [8, 12, 11, 13][size as usize]
    }

    fn nodes(&levels: &u32) -> Vec<(Layout, usize)> {
        let image = Image { levels };
        vec![(Layout::new::<Node>(), image.nodes(image.whole()))]
    }

    fn build<P: Placement>(&levels: &u32, placement: P) -> Self {
        let image = Image { levels };
        Perimeter {
            root: image.tree(image.whole(), 0, ptr::null_mut(), placement),
        }
    }

    /// Depth-first: all leaves are visited, and neighbours lie mostly near.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        let roots = std::slice::from_mut(&mut self.root);
        // SAFETY: the nodes are live and come from `Box`; the places shown are all pointers to them
        // that there are (children, parents, the root), and stay readable and writable for the
        // call, because the tree is mutably borrowed.
        let report = unsafe {
            morph.run_raw(roots, |node, visit| {
                for quadrant in 0..4 {
                    visit.link(&raw mut (*node).children[quadrant]);
                }
                visit.pointer(&raw mut (*node).parent);
            })
        };
        report.map(drop)
    }

    fn work<P: Placement>(
        &mut self,
        &levels: &u32,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        // SAFETY: a live node (invariant), which does not change while the tree is borrowed.
        let root = unsafe { &*self.root };
        Ok(perimeter(root, 1 << levels, placement).unsigned_abs())
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
            (0..4)
                .filter_map(|quadrant| node.child(quadrant))
                .map(|child| perimeter(child, side / 2, placement))
                .sum()
        }
        Colour::Black => SIDES
            .into_iter()
            .map(|at| {
                let facing = Side {
                    at: at.at ^ at.axis,
                    ..at
                };
                neighbour(node, at).map_or(side, |beyond| white_along(beyond, facing, side))
            })
            .sum(),
    }
}

/// The node beyond that side which is as large as `node`, or the larger leaf that holds it; none
/// beyond the border.
fn neighbour(node: &Node, side: Side) -> Option<&Node> {
    let parent = node.parent()?;
    let across = match node.quadrant & side.axis == side.at {
        true => neighbour(parent, side)?,
        false => parent,
    };
    // A leaf has no children, and is then itself the neighbour.
    let mirrored = across.child(node.quadrant ^ side.axis);
    Some(mirrored.unwrap_or(across))
}

/// Pixels of white leaves along the given side of `node`, of which `length` pixels count.
fn white_along(node: &Node, side: Side, length: i64) -> i64 {
    match node.colour {
        Colour::White => length,
        Colour::Black => 0,
        Colour::Grey => [side.at, side.at | (3 ^ side.axis)]
            .into_iter()
            .filter_map(|quadrant| node.child(quadrant))
            .map(|child| white_along(child, side, length / 2))
            .sum(),
    }
}
