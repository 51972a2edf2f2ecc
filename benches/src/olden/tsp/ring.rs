//! The cities: nodes of a tree, and of rings that run through the same nodes.
//!
//! ```text
//! tree:   a city owns those of its two halves of the plane      (left, right: boxes)
//! ring:   a city knows the one after it and the one before it   (next, prev: addresses)
//! ```
//!
//! Rings change all the time, the tree does not. Following an address is the only unsafe code here.
//! It is sound by the invariant of [`City`], which types keep:
//!
//! - A [`Spot`] is a city of a borrowed tree. [`Cities::enter`] hands out the first one with a
//!   lifetime of that call alone, in which `Spot` is invariant, and spots lead only to spots of the
//!   same lifetime. So two spots that can be linked are of one tree.
//! - While there is a spot, the tree is borrowed, so no city moves or is freed.
//! - A tree that moves as a value leaves its cities alone: the root lies in a box ([`Cities`]).
//! - A morph is shown all links, so they lead to the same cities afterwards. One that fails has
//!   borrowed the cities exclusively and set no link; [`Cities::morph`] then drops the cities.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use ccmorph::{Morph, MorphError, TreeNode};

use crate::placement::Placement;

/// A point of the plane.
pub type Point = [f64; 2];

/// A city: 56 bytes, with the fields of Olden's.
///
/// Invariant: `next` and `prev` are null, or the addresses of cities of the same tree, derived from
/// shared borrows of these or given by a morph, and since then no city of the tree was borrowed
/// exclusively but by a morph that gave all links anew.
#[derive(Debug, TreeNode)]
pub(super) struct City {
    /// Cities of the subtree, this one included.
    size: u32,
    at: Point,
    #[child]
    left: Option<Box<City>>,
    #[child]
    right: Option<Box<City>>,
    #[pointer]
    next: Cell<*const City>,
    #[pointer]
    prev: Cell<*const City>,
}

const _: () = assert!(size_of::<City>() == 56);

/// How many of the `cities` below a root lie in its left half; the others lie in the right one.
pub(super) fn left_share(cities: usize) -> usize {
    cities / 2
}

/// A tree of cities.
#[derive(Debug)]
pub(super) struct Cities {
    /// Boxed, so that the links to the root stay good when this is moved: a box that moves takes
    /// the right to its contents from all other pointers to them.
    ///
    /// Invariant: exclusively borrowed only to be morphed, and to be dropped.
    root: Box<Option<Box<City>>>,
}

impl Cities {
    /// The tree whose cities in preorder are `points`; each left half has [`left_share`] of those
    /// below its root. A city is allocated before those below it, near the one above it.
    ///
    /// # Panics
    /// When there are 2^32 points or more.
    pub(super) fn build<P: Placement>(points: &[Point], placement: P) -> Cities {
        assert!(
            u32::try_from(points.len()).is_ok(),
            "a city counts in 32 bits"
        );
        Cities {
            root: Box::new(build(points, ptr::null(), placement)),
        }
    }

    /// Lays the tree out. Rings stay as they are.
    ///
    /// # Errors
    /// Those of [`Morph::run`]. The tree is empty then.
    pub(super) fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let result = morph.run(&mut *self.root, City::children);
        if result.is_err() {
            // The invariant of `City`: each one was borrowed exclusively, and its links are those
            // from before.
            *self.root = None;
        }
        result.map(drop)
    }

    /// Hands the root to `visit`, if there is one.
    pub(super) fn enter<R>(&self, visit: impl for<'t> FnOnce(Option<Spot<'t>>) -> R) -> R {
        visit(self.root.as_deref().map(Spot::new))
    }
}

fn build<P: Placement>(points: &[Point], above: *const City, placement: P) -> Option<Box<City>> {
    let (&at, below) = points.split_first()?;
    let city = City {
        size: u32::try_from(points.len()).unwrap_or(u32::MAX),
        at,
        left: None,
        right: None,
        next: Cell::new(ptr::null()),
        prev: Cell::new(ptr::null()),
    };
    let mut city = placement.new_near(city, above);
    let here = ptr::from_ref(&*city);
    let (left, right) = below.split_at(left_share(below.len()));
    city.left = build(left, here, placement);
    city.right = build(right, here, placement);
    Some(city)
}

/// A city of a tree that is borrowed for `'t`.
///
/// Invariant: all spots of one lifetime `'t` are of one tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'t> {
    city: &'t City,
    /// Keeps `'t` from being shortened to that of another tree's spots.
    invariant: PhantomData<fn(&'t ()) -> &'t ()>,
}

impl PartialEq for Spot<'_> {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self.city, other.city)
    }
}

impl<'t> Spot<'t> {
    fn new(city: &'t City) -> Spot<'t> {
        Spot {
            city,
            invariant: PhantomData,
        }
    }

    /// Where it lies in the plane.
    #[inline]
    pub(super) fn at(self) -> Point {
        self.city.at
    }

    /// Cities of its subtree.
    pub(super) fn size(self) -> usize {
        self.city.size as usize
    }

    /// The root of its left half.
    pub(super) fn left(self) -> Option<Spot<'t>> {
        self.city.left.as_deref().map(Spot::new)
    }

    /// The root of its right half.
    pub(super) fn right(self) -> Option<Spot<'t>> {
        self.city.right.as_deref().map(Spot::new)
    }

    /// Its address.
    #[inline]
    pub(super) fn address(self) -> *const City {
        self.city
    }

    /// The address of the city after it; null when it was never in a ring.
    #[inline]
    pub(super) fn next_address(self) -> *const City {
        self.city.next.get()
    }

    /// The city after it in its ring; a city that was never in a ring is alone in one.
    #[inline]
    pub(super) fn next(self) -> Spot<'t> {
        self.follow(&self.city.next)
    }

    /// The city before it in its ring.
    #[inline]
    pub(super) fn prev(self) -> Spot<'t> {
        self.follow(&self.city.prev)
    }

    #[inline]
    fn follow(self, link: &Cell<*const City>) -> Spot<'t> {
        // SAFETY: the link is of a city of the tree that `'t` borrows. By its invariant it is null
        // or leads to a city of the same tree, with the right to read it; that one is live and
        // stays where it is for `'t`, and only cells of it change meanwhile.
        unsafe { link.get().as_ref() }.map_or(self, Spot::new)
    }

    /// Makes `next` the one after it, and it the one before `next`.
    #[inline]
    pub(super) fn link(self, next: Spot<'t>) {
        // The invariant of `City`: both are of one tree, as their lifetimes are the same.
        self.city.next.set(next.city);
        next.city.prev.set(self.city);
    }

    /// Reverses its ring. Walks the ring.
    pub(super) fn reverse(self) {
        let mut spot = self;
        loop {
            let next = spot.next();
            // Both link to cities of the tree, whichever is which.
            spot.city.next.swap(&spot.city.prev);
            if next == self {
                break;
            }
            spot = next;
        }
    }
}
