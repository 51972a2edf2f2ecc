//! The quadtree of an image, with parent pointers.
//!
//! Every node knows its parent, so ownership by `Box` would be a lie: two pointers lead to each
//! node. The links are raw, as they are in C, and all that dereferences them stands in this file.
//! Outside of it a tree is built once, laid out, and read by shared references.

use std::ptr;

use ccmorph::{Morph, MorphError};

use crate::olden::placement::Placement;

/// A quarter of a square, numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Quadrant {
    NorthWest,
    NorthEast,
    SouthWest,
    SouthEast,
}

impl Quadrant {
    pub(super) const ALL: [Quadrant; 4] = [
        Quadrant::NorthWest,
        Quadrant::NorthEast,
        Quadrant::SouthWest,
        Quadrant::SouthEast,
    ];
}

/// What a square of the image holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Colour {
    White,
    Black,
    /// Both: there are four quarters.
    Grey,
}

/// One node: 48 bytes.
///
/// Invariants, from the end of [`Quadtree::build`] on:
/// - each of `children` is null, or points to a live node of the same tree, made by `Box`, whose
///   `parent` points back to this one and to which no other node's `children` point;
/// - `parent` is null in the root;
/// - nodes change, move and go only under a `&mut Quadtree`.
#[derive(Debug)]
pub(super) struct Node {
    colour: Colour,
    quadrant: Quadrant,
    children: [*mut Node; 4],
    parent: *mut Node,
}

const _: () = assert!(size_of::<Node>() == 48);

impl Node {
    pub(super) fn colour(&self) -> Colour {
        self.colour
    }

    /// Which quarter of its parent it is.
    pub(super) fn quadrant(&self) -> Quadrant {
        self.quadrant
    }

    #[inline]
    pub(super) fn child(&self, quadrant: Quadrant) -> Option<&Node> {
        // SAFETY: null, or a live node (invariant), which nobody changes while this one is
        // borrowed: that takes the whole tree.
        unsafe { self.children[quadrant as usize].as_ref() }
    }

    #[inline]
    pub(super) fn parent(&self) -> Option<&Node> {
        // SAFETY: as in `child`.
        unsafe { self.parent.as_ref() }
    }

    /// Addresses of the children, null for those that are not there.
    pub(super) fn children(&self) -> [*mut Node; 4] {
        self.children
    }
}

/// The tree of an image.
///
/// Invariant: `root` is null only while [`drop`](Drop::drop) runs; else the invariants of [`Node`]
/// hold for all nodes that can be reached from it.
#[derive(Debug)]
pub(super) struct Quadtree {
    root: *mut Node,
}

impl Quadtree {
    /// The tree of an image whose sides have `2^levels` pixels. `colour` tells what a square holds,
    /// and must not call a single pixel grey.
    ///
    /// A node is allocated before its children, and used next together with its parent.
    pub(super) fn build<P: Placement>(
        levels: u32,
        colour: impl Fn(Square) -> Colour,
        placement: P,
    ) -> Quadtree {
        let root = grow(
            Square::whole(levels),
            Quadrant::NorthWest,
            ptr::null_mut(),
            &colour,
            placement,
        );
        Quadtree { root }
    }

    pub(super) fn root(&self) -> &Node {
        // SAFETY: not null outside of `drop`, so a live node (invariant); nobody changes it while
        // the tree is borrowed.
        unsafe { &*self.root }
    }

    /// Lays the nodes out.
    ///
    /// # Errors
    /// Those of [`Morph::run_raw`]; the tree is then as it was.
    pub(super) fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
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
}

impl Drop for Quadtree {
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

/// A part of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Square {
    pub(super) column: i64,
    pub(super) row: i64,
    /// Pixels of a side.
    pub(super) side: i64,
}

impl Square {
    /// An image whose sides have `2^levels` pixels.
    pub(super) fn whole(levels: u32) -> Square {
        Square {
            column: 0,
            row: 0,
            side: 1 << levels,
        }
    }

    pub(super) fn quarter(self, quadrant: Quadrant) -> Square {
        let side = self.side / 2;
        let number = quadrant as i64;
        Square {
            column: self.column + number % 2 * side,
            row: self.row + number / 2 * side,
            side,
        }
    }
}

/// The tree of `square`.
fn grow<P: Placement>(
    square: Square,
    quadrant: Quadrant,
    parent: *mut Node,
    colour: &impl Fn(Square) -> Colour,
    placement: P,
) -> *mut Node {
    let colour_here = colour(square);
    let leaf = Node {
        colour: colour_here,
        quadrant,
        children: [ptr::null_mut(); 4],
        parent,
    };
    let node = Box::into_raw(placement.new_near(leaf, parent));
    if colour_here == Colour::Grey {
        for quadrant in Quadrant::ALL {
            let child = grow(square.quarter(quadrant), quadrant, node, colour, placement);
            // SAFETY: made above, and nobody else has a reference to it: its descendants only hold
            // its address.
            unsafe { (*node).children[quadrant as usize] = child };
        }
    }
    node
}
