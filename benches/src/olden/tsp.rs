//! tsp: a tour through cities, by cutting the plane into pieces.
//!
//! After R. Karp, *Probabilistic analysis of partitioning algorithms for the traveling-salesman
//! problem in the plane* (Mathematics of Operations Research, 1977). The cities are a binary tree:
//! each city divides its rectangle by the vertical or horizontal line through it, in turns, and has
//! the cities of either side below it. Then
//!
//! ```text
//! tour(t):  at most 150 cities    insert one by one: next to the nearest city in the ring, on the
//!                                 side that costs less
//!           more                  tour(left), tour(right); open each at the city nearest to t, and
//!                                 close both through t at least cost
//! ```
//!
//! Tours are rings of doubly linked cities (module `ring`), the tree's own nodes. Each merge walks
//! both rings, and reverses one when the ends demand it, so each city is visited about once for
//! each level of the tree, along links that have little to do with the order of allocation.
//!
//! The thesis did not run this program; the size `thesis` is about Olden's own. Split lines are
//! drawn with the spread of the median of uniform points, so that cities are even over the square.
//! The hint is the city above in the tree. In a fresh heap it gains nothing: a city of 56 bytes
//! shares a block of 64 with no other.

mod ring;

use std::alloc::Layout;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};

use super::{Olden, Size, check_equal};
use crate::placement::Placement;
use crate::rng::Rng;
pub use ring::Point;
use ring::{Cities, City, Spot, left_share};

/// Subtrees of at most this many cities are toured by insertion; Olden's number.
const INSERTED_MAX: usize = 150;

/// The program.
#[derive(Debug)]
pub struct Tsp {
    cities: Cities,
}

/// This many cities in the unit square.
pub fn random_cities(cities: usize, seed: u64) -> Vec<Point> {
    let mut points = Vec::with_capacity(cities);
    let square = [[0.0; 2], [1.0; 2]];
    draw(cities, square, 0, &mut Rng::new(seed), &mut points);
    points
}

/// Draws the cities between two corners: the root on a line that divides `axis`, and those of both
/// sides, which divide the other axis.
fn draw(cities: usize, within: [Point; 2], axis: usize, rng: &mut Rng, points: &mut Vec<Point>) {
    let Some(below) = cities.checked_sub(1) else {
        return;
    };
    let [low, high] = within;
    let between = |axis: usize, share: f64| low[axis] + share * (high[axis] - low[axis]);
    // The median of n uniform numbers has a standard deviation of about 1 / (2 sqrt(n + 1)); of a
    // uniform number in -1..1 it is 1 / sqrt(3).
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
    let left_cities = left_share(below);
    draw(left_cities, left, 1 - axis, rng, points);
    draw(below - left_cities, right, 1 - axis, rng, points);
}

/// A number from 0 to 1.
fn unit(rng: &mut Rng) -> f64 {
    rng.next_u64() as f64 / u64::MAX as f64
}

impl Olden for Tsp {
    const NAME: &'static str = "tsp";
    // The tree of cities is built in one go, and the tours are made of its nodes.
    const POLICY: Policy = Policy::Closest;
    /// Cities in the preorder of their tree; tours do not ask how it divides the plane.
    type Input = Vec<Point>;

    fn input(size: Size) -> Vec<Point> {
        let cities = match size {
            Size::Tiny => 1 << 15,
            Size::Thesis => 1 << 16,
            Size::Quick => 1 << 19,
            // 56 bytes each.
            Size::Large => 5 << 19,
        };
        random_cities(cities, 0x75_70)
    }

    fn nodes(input: &Vec<Point>) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<City>(), input.len())]
    }

    fn build<P: Placement>(input: &Vec<Point>, placement: P) -> Tsp {
        Tsp {
            cities: Cities::build(input, placement),
        }
    }

    /// The tree in depth-first order, as it is walked whole.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        self.cities.morph(&morph)
    }

    /// The length of the tour, as the bits of an `f64`.
    fn work<P: Placement>(
        &mut self,
        _input: &Vec<Point>,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        let length = self.cities.enter(|root| {
            root.map_or(0.0, |root| {
                tour(root, placement);
                length(root, placement)
            })
        });
        Ok(length.to_bits())
    }

    /// The ring has the tree's cities, each once, its length is what another sum gives, and it is
    /// no longer than such tours are.
    fn check(&self, input: &Vec<Point>, result: u64) -> Result<(), String> {
        let cities = input.len();
        self.cities.enter(|root| {
            let ring = root.map_or_else(Vec::new, |root| backwards(root, cities));
            check_equal(ring.len() as u64, cities as u64)?;
            let mut in_ring: Vec<_> = ring.iter().map(|spot| spot.address()).collect();
            let mut in_tree = Vec::with_capacity(ring.len());
            collect(root, &mut in_tree);
            in_ring.sort_unstable();
            in_tree.sort_unstable();
            if in_ring != in_tree {
                return Err("the tour misses a city and has another one twice".to_owned());
            }
            let between = |(one, other): (&Spot<'_>, &Spot<'_>)| distance(one.at(), other.at());
            let rest = ring.iter().skip(1).chain(ring.first());
            let sum: f64 = ring.iter().zip(rest).map(between).sum();
            let length = f64::from_bits(result);
            // A length or a sum that is not a number is close to nothing.
            let is_right = (sum - length).abs() <= 1e-9 * sum && length <= longest(&ring);
            is_right
                .then_some(())
                .ok_or_else(|| format!("a length of {length}, where the ring has {sum}"))
        })
    }
}

/// The longest tour that is right. An optimal one through many even cities of an area has a length
/// of about 0.7124 sqrt(cities x area), and these are up to 1.5 times as long; a wrong one, such as
/// the order of the tree, is many times as long.
fn longest(ring: &[Spot<'_>]) -> f64 {
    const MANY: usize = 1000;
    if ring.len() < MANY {
        return f64::INFINITY;
    }
    let extent = |axis: usize| {
        let along = ring.iter().map(|spot| spot.at()[axis]);
        along.clone().fold(f64::MIN, f64::max) - along.fold(f64::MAX, f64::min)
    };
    1.5 * 0.7124 * (ring.len() as f64 * extent(0) * extent(1)).sqrt()
}

/// The cities of a ring from `root` on against its direction; one more than `at_most` when there
/// are more, and none when the links of two cities differ.
fn backwards(root: Spot<'_>, at_most: usize) -> Vec<Spot<'_>> {
    let mut ring = vec![root];
    let mut spot = root.prev();
    while spot != root && ring.len() <= at_most {
        ring.push(spot);
        spot = spot.prev();
    }
    let linked_both_ways = ring.iter().all(|spot| spot.prev().next() == *spot);
    if linked_both_ways { ring } else { Vec::new() }
}

/// The addresses of all cities of a tree.
fn collect(root: Option<Spot<'_>>, addresses: &mut Vec<*const City>) {
    if let Some(root) = root {
        addresses.push(root.address());
        collect(root.left(), addresses);
        collect(root.right(), addresses);
    }
}

/// Makes a ring of all cities of the subtree.
fn tour<P: Placement>(root: Spot<'_>, placement: P) {
    if root.size() <= INSERTED_MAX {
        root.link(root);
        insert_below(root, root, placement);
        return;
    }
    let halves = [root.left(), root.right()];
    for half in halves.into_iter().flatten() {
        tour(half, placement);
    }
    root.link(root);
    match halves {
        [Some(left), Some(right)] => merge(root, left, right, placement),
        [Some(half), None] | [None, Some(half)] => insert(root, half, placement),
        [None, None] => {}
    }
}

/// Inserts all cities below `above` into the ring, an upper one before those below it.
fn insert_below<'t, P: Placement>(above: Spot<'t>, ring: Spot<'t>, placement: P) {
    let halves = [above.left(), above.right()];
    for half in halves.into_iter().flatten() {
        placement.prefetch(half.address());
    }
    for half in halves.into_iter().flatten() {
        insert(half, ring, placement);
        insert_below(half, ring, placement);
    }
}

/// Inserts `city` into the ring beside the city nearest to it, on the side with the shorter detour.
fn insert<'t, P: Placement>(city: Spot<'t>, ring: Spot<'t>, placement: P) {
    let nearest = nearest(city.at(), ring, placement);
    let (prev, next) = (nearest.prev(), nearest.next());
    let detour = |neighbour: Spot<'t>| {
        distance(neighbour.at(), city.at()) - distance(neighbour.at(), nearest.at())
    };
    let (before, after) = if detour(prev) < detour(next) {
        (prev, nearest)
    } else {
        (nearest, next)
    };
    before.link(city);
    city.link(after);
}

/// The city of the ring that is nearest to `point`, the first of several. Walks the whole ring.
fn nearest<P: Placement>(point: Point, ring: Spot<'_>, placement: P) -> Spot<'_> {
    let mut best = (square(ring.at(), point), ring);
    let mut spot = ring.next();
    while spot != ring {
        placement.prefetch(spot.next_address());
        let square = square(spot.at(), point);
        if square < best.0 {
            best = (square, spot);
        }
        spot = spot.next();
    }
    best.1
}

/// The four possibilities to open a ring beside `spot`: the end that goes to the root, and the one
/// that goes to the other ring.
fn openings(spot: Spot<'_>) -> [[Spot<'_>; 2]; 4] {
    let (prev, next) = (spot.prev(), spot.next());
    [[spot, next], [next, spot], [spot, prev], [prev, spot]]
}

/// Makes one ring of `root` and the rings of two cities.
fn merge<'t, P: Placement>(root: Spot<'t>, left: Spot<'t>, right: Spot<'t>, placement: P) {
    let at = root.at();
    let between = |one: Spot<'_>, other: Spot<'_>| distance(one.at(), other.at());
    let left = openings(nearest(at, left, placement));
    let right = openings(nearest(at, right, placement));
    let mut best = (f64::INFINITY, left[0], right[0]);
    for left in left {
        for right in right {
            let ([left_outer, left_inner], [right_outer, right_inner]) = (left, right);
            let longer = between(root, left_outer)
                + between(left_inner, right_inner)
                + between(right_outer, root)
                - between(left_outer, left_inner)
                - between(right_outer, right_inner);
            if longer < best.0 {
                best = (longer, left, right);
            }
        }
    }
    // root -> outer .. inner of the left ring -> inner .. outer of the right one -> root
    let (_, [left_outer, left_inner], [right_outer, right_inner]) = best;
    if left_inner.next() != left_outer {
        left_outer.reverse();
    }
    if right_outer.next() != right_inner {
        right_outer.reverse();
    }
    root.link(left_outer);
    left_inner.link(right_inner);
    right_outer.link(root);
}

/// The length of a ring, from `root` on.
fn length<P: Placement>(root: Spot<'_>, placement: P) -> f64 {
    let mut length = 0.0;
    let mut spot = root;
    loop {
        let next = spot.next();
        placement.prefetch(next.next_address());
        length += distance(spot.at(), next.at());
        if next == root {
            return length;
        }
        spot = next;
    }
}

fn square(one: Point, other: Point) -> f64 {
    let (across, along) = (one[0] - other[0], one[1] - other[1]);
    across * across + along * along
}

fn distance(one: Point, other: Point) -> f64 {
    square(one, other).sqrt()
}
