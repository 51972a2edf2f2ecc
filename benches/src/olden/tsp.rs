//! tsp: a tour through cities, by cutting the plane into pieces.
//!
//! After R. Karp, *Probabilistic analysis of partitioning algorithms for the traveling-salesman
//! problem in the plane* (Mathematics of Operations Research, 1977). The cities are a binary tree:
//! each city divides its rectangle, vertically or horizontally in turns, and has the cities of
//! either side below it. Up to 150 cities are inserted into a ring one by one; more get a tour of
//! each half, which are opened at the cities nearest to the root and closed through it. Tours are
//! rings of doubly linked cities, the tree's own nodes, and each merge walks both rings.
//!
//! The thesis did not run this program; the size `thesis` is about Olden's own. The hint, the city
//! above in the tree, gains nothing in a fresh heap: a city of 56 bytes shares no block.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode};

use super::{Olden, Size};
use crate::placement::Placement;
use crate::rng::Rng;

/// The most cities that are toured by insertion; Olden's number.
const INSERTED_MAX: u32 = 150;

pub type Point = [f64; 2];

/// A city: 56 bytes, with the fields of Olden's. The tree owns cities; rings are addresses.
///
/// Invariant: `next` and `prev` are null, or the addresses of cities of the same tree, derived from
/// shared borrows of these or given by a morph, and since then no city of the tree was borrowed
/// exclusively but by a morph that wrote all links again. This module alone has cities, hands out
/// none, and works on one tree at a time.
#[derive(TreeNode)]
struct City {
    /// Number of cities in the subtree.
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

impl City {
    /// Itself for a city that was never in a ring.
    #[inline]
    fn next(&self) -> &City {
        self.follow(&self.next)
    }

    #[inline]
    fn prev(&self) -> &City {
        self.follow(&self.prev)
    }

    #[inline]
    fn follow(&self, link: &Cell<*const City>) -> &City {
        // SAFETY: the link is of a city of the tree that the borrow of `self` keeps borrowed. By
        // the invariant of `City` it is null or leads to a city of the same tree, with the right to
        // read it; that one is live and stays where it is, and only cells of it change meanwhile.
        unsafe { link.get().as_ref() }.unwrap_or(self)
    }

    fn halves(&self) -> [Option<&City>; 2] {
        [self.left.as_deref(), self.right.as_deref()]
    }

    fn is(&self, other: &City) -> bool {
        ptr::eq(self, other)
    }
}

/// Makes `after` the city after `before`, of the same tree.
#[inline]
fn link(before: &City, after: &City) {
    before.next.set(after);
    after.prev.set(before);
}

/// The cities. The input is their places, in the preorder of the tree.
pub struct Tsp {
    /// Boxed, because a box that moves takes the right to its contents from other pointers to them:
    /// the links to the root stay good when this is moved.
    ///
    /// Invariant: exclusively borrowed only to be morphed or dropped.
    root: Box<Option<Box<City>>>,
}

/// This many cities in the unit square.
pub fn random_cities(cities: usize, seed: u64) -> Vec<Point> {
    let mut points = Vec::with_capacity(cities);
    let square = [[0.0; 2], [1.0; 2]];
    draw(cities, square, 0, &mut Rng::new(seed), &mut points);
    points
}

/// Draws the cities between two corners: the root on a line that divides `axis`, then both sides.
fn draw(cities: usize, within: [Point; 2], axis: usize, rng: &mut Rng, points: &mut Vec<Point>) {
    let Some(below) = cities.checked_sub(1) else {
        return;
    };
    let [low, high] = within;
    let between = |axis: usize, share: f64| low[axis] + share * (high[axis] - low[axis]);
    let unit = |rng: &mut Rng| rng.next_u64() as f64 / u64::MAX as f64;
    // That of the median of n uniform points: a standard deviation of about 1 / (2 sqrt(n + 1)),
    // where a uniform number in -1..1 has 1 / sqrt(3).
    let spread = match below {
        0 => 0.5,
        _ => (3.0 / (cities + 1) as f64).sqrt() / 2.0,
    };
    let mut root = [0.0; 2];
    root[axis] = between(axis, 0.5 + spread.min(0.5) * (2.0 * unit(rng) - 1.0));
    root[1 - axis] = between(1 - axis, unit(rng));
    points.push(root);
    let (mut left, mut right) = (within, within);
    left[1][axis] = root[axis];
    right[0][axis] = root[axis];
    let left_cities = below / 2;
    draw(left_cities, left, 1 - axis, rng, points);
    draw(below - left_cities, right, 1 - axis, rng, points);
}

/// A city is allocated before those below it, near the one above it.
fn build<P: Placement>(points: &[Point], above: *const City, placement: P) -> Option<Box<City>> {
    let (&at, below) = points.split_first()?;
    let city = City {
        size: u32::try_from(points.len()).expect("a city counts in 32 bits"),
        at,
        left: None,
        right: None,
        next: Cell::new(ptr::null()),
        prev: Cell::new(ptr::null()),
    };
    let mut city = placement.new_near(city, above);
    let here = ptr::from_ref(&*city);
    let (left, right) = below.split_at(below.len() / 2);
    city.left = build(left, here, placement);
    city.right = build(right, here, placement);
    Some(city)
}

impl Olden for Tsp {
    const NAME: &'static str = "tsp";
    const POLICY: Policy = Policy::Closest;
    const RESULTS: [u64; 4] = [
        4_640_690_682_262_996_891,
        4_643_350_541_812_230_422,
        4_649_714_829_575_677_342,
        4_654_985_246_223_715_065,
    ];
    type Input = Vec<Point>;

    fn input(size: Size) -> Vec<Point> {
        random_cities([1 << 15, 1 << 16, 1 << 19, 5 << 19][size as usize], 0x75_70)
    }

    fn nodes(input: &Vec<Point>) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<City>(), input.len())]
    }

    fn build<P: Placement>(input: &Vec<Point>, placement: P) -> Tsp {
        let root = Box::new(build(input, ptr::null(), placement));
        Tsp { root }
    }

    /// The tree is walked whole; rings stay as they are. After an error there are no cities.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        let result = morph.run(&mut *self.root, City::children);
        if result.is_err() {
            // The invariant of `City`: the links are those from before.
            *self.root = None;
        }
        result.map(drop)
    }

    /// The length of the tour, as the bits of an `f64`.
    fn work<P: Placement>(&mut self, _: &Vec<Point>, placement: P, _: impl Fn(&mut Self)) -> u64 {
        let length = self.root.as_deref().map_or(0.0, |root| {
            tour(root, placement);
            length(root, placement)
        });
        length.to_bits()
    }
}

/// Makes a ring of all cities of the subtree.
fn tour<P: Placement>(root: &City, placement: P) {
    if root.size <= INSERTED_MAX {
        link(root, root);
        insert_below(root, root, placement);
        return;
    }
    let halves = root.halves();
    for half in halves.into_iter().flatten() {
        tour(half, placement);
    }
    link(root, root);
    match halves {
        [Some(left), Some(right)] => merge(root, left, right, placement),
        [Some(half), None] | [None, Some(half)] => insert(root, half, placement),
        [None, None] => {}
    }
}

/// Inserts all cities below `above` into the ring, upper ones first.
fn insert_below<P: Placement>(above: &City, ring: &City, placement: P) {
    for half in above.halves().into_iter().flatten() {
        placement.prefetch(half);
    }
    for half in above.halves().into_iter().flatten() {
        insert(half, ring, placement);
        insert_below(half, ring, placement);
    }
}

/// Inserts `city` beside the city nearest to it, on the side with the shorter detour.
fn insert<P: Placement>(city: &City, ring: &City, placement: P) {
    let nearest = nearest(city.at, ring, placement);
    let (prev, next) = (nearest.prev(), nearest.next());
    let detour = |neighbour: &City| distance(neighbour, city) - distance(neighbour, nearest);
    let (before, after) = if detour(prev) < detour(next) {
        (prev, nearest)
    } else {
        (nearest, next)
    };
    link(before, city);
    link(city, after);
}

/// The first of the cities of the ring that are nearest to `point`.
fn nearest<P: Placement>(point: Point, ring: &City, placement: P) -> &City {
    let mut best = (square(ring.at, point), ring);
    let mut city = ring.next();
    while !city.is(ring) {
        placement.prefetch(city.next.get());
        let square = square(city.at, point);
        if square < best.0 {
            best = (square, city);
        }
        city = city.next();
    }
    best.1
}

/// The possibilities to open a ring beside `city`: the end linked to the root, and the other one.
fn openings(city: &City) -> [[&City; 2]; 4] {
    let (prev, next) = (city.prev(), city.next());
    [[city, next], [next, city], [city, prev], [prev, city]]
}

/// Makes one ring of `root` and the rings of two cities.
fn merge<P: Placement>(root: &City, left: &City, right: &City, placement: P) {
    let left = openings(nearest(root.at, left, placement));
    let right = openings(nearest(root.at, right, placement));
    let mut best = (f64::INFINITY, left[0], right[0]);
    for left in left {
        for right in right {
            let ([left_outer, left_inner], [right_outer, right_inner]) = (left, right);
            let longer = distance(root, left_outer)
                + distance(left_inner, right_inner)
                + distance(right_outer, root)
                - distance(left_outer, left_inner)
                - distance(right_outer, right_inner);
            if longer < best.0 {
                best = (longer, left, right);
            }
        }
    }
    let (_, [left_outer, left_inner], [right_outer, right_inner]) = best;
    if !left_inner.next().is(left_outer) {
        reverse(left_outer);
    }
    if !right_outer.next().is(right_inner) {
        reverse(right_outer);
    }
    link(root, left_outer);
    link(left_inner, right_inner);
    link(right_outer, root);
}

fn reverse(first: &City) {
    let mut city = first;
    loop {
        let next = city.next();
        city.next.swap(&city.prev);
        if next.is(first) {
            break;
        }
        city = next;
    }
}

fn length<P: Placement>(root: &City, placement: P) -> f64 {
    let mut length = 0.0;
    let mut city = root;
    loop {
        let next = city.next();
        placement.prefetch(next.next.get());
        length += distance(city, next);
        if next.is(root) {
            return length;
        }
        city = next;
    }
}

fn square(one: Point, other: Point) -> f64 {
    let (across, along) = (one[0] - other[0], one[1] - other[1]);
    across * across + along * along
}

fn distance(one: &City, other: &City) -> f64 {
    square(one.at, other.at).sqrt()
}
