//! perimeter: the perimeter of the black regions of an image, by its quadtree.
//!
//! From H. Samet, *Computing perimeters of regions in images represented by quadtrees* (IEEE PAMI
//! 3, 1981), which Olden's program follows. For each side of each black leaf, the neighbour is
//! found by going up until a common ancestor, and down again mirrored. The side counts where that
//! is white or missing; along a grey neighbour, the sides of its white leaves count.
//!
//! The image, which the thesis does not show, is a zone plate: rings of equal area around a point
//! off the centre, black and white in turns, computed in integers. 4096 x 4096 pixels have 64 MB of
//! nodes, as in the thesis (table 4.2). Links are raw, as in C, since two lead to each node.

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};

use super::{Olden, Size};
use crate::placement::Placement;

#[derive(Clone, Copy, PartialEq)]
#[repr(u8)]
enum Colour {
    White,
    Black,
    Grey,
}

/// One node: 48 bytes.
///
/// Invariants, from the end of [`Perimeter::build`] on:
/// - each of `children` is null, or points to a live node of the same tree, made by `Box`, whose
///   `parent` points back to this one and to which no other node's `children` point;
/// - `parent` is null in the root;
/// - nodes change and move only under a `&mut Perimeter`, and are never freed but by a morph.
struct Node {
    colour: Colour,
    /// Which quarter of its parent: bit 0 is set in the eastern ones, bit 1 in the southern ones.
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
        // SAFETY: null, or a live node (invariant), which does not change while this one is
        // borrowed.
        unsafe { self.parent.as_ref() }
    }
}

/// A side of a square, as an axis and a place: its quadrants have the place as bits under the axis.
type Side = (u8, u8);

/// North, south, west, and east.
const SIDES: [Side; 4] = [(2, 0), (2, 2), (1, 0), (1, 1)];

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

/// The area of a ring is that of the image divided by two to this power: about a hundred rings.
const RING_SHIFT: u32 = 7;

/// A zone plate; a side has `2^levels` pixels.
#[derive(Clone, Copy, Debug)]
struct Image {
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

/// The squares of the least and the largest distance from `centre` in one direction, over `count`
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
/// Invariant: `root` is not null, and those of `Node` hold for all nodes that it leads to.
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
        let root = image.tree(image.whole(), 0, ptr::null_mut(), placement);
        Perimeter { root }
    }

    /// Depth-first: all leaves are visited, and most neighbours are near.
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

    fn work<P: Placement>(&mut self, &levels: &u32, placement: P, _: impl Fn(&mut Self)) -> u64 {
        // SAFETY: a live node (invariant), which does not change while the tree is borrowed.
        let root = unsafe { &*self.root };
        perimeter(root, 1 << levels, placement).unsigned_abs()
    }
}

/// The perimeter of the black leaves below a square of `side` pixels.
fn perimeter<P: Placement>(node: &Node, side: i64, placement: P) -> i64 {
    match node.colour {
        Colour::White => 0,
        Colour::Grey => {
            for child in node.children {
                placement.prefetch(child);
            }
            let children = (0..4).filter_map(|quadrant| node.child(quadrant));
            children
                .map(|child| perimeter(child, side / 2, placement))
                .sum()
        }
        Colour::Black => {
            let free = |(axis, at)| {
                let facing = (axis, at ^ axis);
                let beyond = neighbour(node, (axis, at));
                beyond.map_or(side, |beyond| white_along(beyond, facing, side))
            };
            SIDES.into_iter().map(free).sum()
        }
    }
}

/// The node beyond that side which is as large as `node`, or the larger leaf that holds it.
fn neighbour(node: &Node, side: Side) -> Option<&Node> {
    let (axis, at) = side;
    let parent = node.parent()?;
    let across = match node.quadrant & axis == at {
        true => neighbour(parent, side)?,
        false => parent,
    };
    // A leaf has no children, and is then itself the neighbour.
    let mirrored = across.child(node.quadrant ^ axis);
    Some(mirrored.unwrap_or(across))
}

/// Pixels of white leaves along a side of `node`, of which `length` pixels count.
fn white_along(node: &Node, side @ (axis, at): Side, length: i64) -> i64 {
    match node.colour {
        Colour::White => length,
        Colour::Black => 0,
        Colour::Grey => {
            let quadrants = [at, at | (3 ^ axis)].into_iter();
            let children = quadrants.filter_map(|quadrant| node.child(quadrant));
            children
                .map(|child| white_along(child, side, length / 2))
                .sum()
        }
    }
}
