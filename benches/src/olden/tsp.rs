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
//! both rings, and reverses one when the ends demand it, so that each city is visited about once
//! for each level of the tree, along links that have little to do with the order in which the
//! cities were allocated.
//!
//! The thesis did not run this program; the smallest size is about Olden's own. The split lines are
//! drawn with the spread of the median of uniform points, so that cities are even over the square.
//! A morph lays out the tree in depth-first order, as it is walked whole; the rings change all the
//! time, the tree does not, so there is nothing to lay out again.
//!
//! Hint: the city above in the tree. It is the one that there is, and in a fresh heap it gains
//! nothing: a city of 56 bytes shares a block of 64 with no other, and without hints, cities lie in
//! the order in which the tree is walked. 32,768 cities took 65.9 million instructions with it
//! (new-block) and 60.7 without; a cache of 2 MiB, which just holds them, missed 338,940 times
//! instead of 192,480 (cachegrind, check and input included).

mod ring;

use std::alloc::Layout;

use crate::rng::Rng;
use ccmalloc::Policy;
use ccmorph::{Morph, MorphError};

use super::placement::Placement;
use super::{Olden, Size};
use ring::{Cities, City, Point, Spot, left_share};

/// Subtrees of at most so many cities are toured by insertion; Olden's number.
const INSERTED_MAX: usize = 150;

/// The program.
#[derive(Debug)]
pub struct Tsp {
    cities: Cities,
}

/// Cities in the preorder of their tree.
#[derive(Clone, Debug)]
pub struct Input {
    points: Vec<Point>,
}

impl Input {
    /// So many cities in the unit square.
    pub fn random(cities: usize, seed: u64) -> Input {
        let mut points = Vec::with_capacity(cities);
        let square = Rectangle {
            low: [0.0; 2],
            high: [1.0; 2],
        };
        draw(cities, square, 0, &mut Rng::new(seed), &mut points);
        Input { points }
    }

    /// Cities where they are told to be, as a tree in their order; the tours do not ask how they
    /// divide the plane.
    pub fn of(points: Vec<Point>) -> Input {
        Input { points }
    }
}

#[derive(Clone, Copy)]
struct Rectangle {
    low: Point,
    high: Point,
}

/// Draws the cities of a rectangle: the root on a line that divides `axis`, and those of both
/// sides, which divide the other axis.
fn draw(cities: usize, within: Rectangle, axis: usize, rng: &mut Rng, points: &mut Vec<Point>) {
    let Some(below) = cities.checked_sub(1) else {
        return;
    };
    let between =
        |axis: usize, share: f64| within.low[axis] + share * (within.high[axis] - within.low[axis]);
    // The median of n uniform numbers has a standard deviation of about 1 / (2 sqrt(n + 1)); of a
    // uniform number in -1..1 it is 1 / sqrt(3).
    let spread = if below == 0 {
        0.5
    } else {
        (3.0 / (cities + 1) as f64).sqrt() / 2.0
    };
    let mut root = [0.0; 2];
    root[axis] = between(axis, 0.5 + spread.min(0.5) * (2.0 * unit(rng) - 1.0));
    root[1 - axis] = between(1 - axis, unit(rng));
    points.push(root);
    let (mut left, mut right) = (within, within);
    left.high[axis] = root[axis];
    right.low[axis] = root[axis];
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

    type Input = Input;

    fn input(size: Size) -> Input {
        let cities = match size {
            Size::Tiny => 1 << 15,
            Size::Thesis => 1 << 16,
            Size::Quick => 1 << 19,
            // 56 bytes each.
            Size::Large => 5 << 19,
        };
        Input::random(cities, 0x75_70)
    }

    fn nodes(input: &Input) -> Vec<(Layout, usize)> {
        vec![(Layout::new::<City>(), input.points.len())]
    }

    fn build<P: Placement>(input: &Input, placement: P) -> Tsp {
        Tsp {
            cities: Cities::build(&input.points, placement),
        }
    }

    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        self.cities
            .morph(&morph.layout(ccmorph::Layout::DepthFirst))
    }

    /// The length of the tour, as the bits of an `f64`.
    fn work<P: Placement>(
        &mut self,
        _input: &Input,
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
    fn check(&self, input: &Input, result: u64) -> Result<(), String> {
        self.cities.enter(|root| {
            let ring = root.map_or_else(Vec::new, |root| backwards(root, self.cities.len()));
            if ring.len() != input.points.len() {
                return Err(format!(
                    "a tour of {} of {} cities",
                    ring.len(),
                    input.points.len()
                ));
            }
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
            let is_close = (sum - length).abs() <= 1e-9 * sum;
            if !is_close {
                return Err(format!(
                    "the tour was said to be {length} long, it is {sum}"
                ));
            }
            check_length(&ring, length)
        })
    }
}

/// From how many cities on the length of a tour is about what the formula for many says.
const MANY: usize = 1000;

/// An optimal tour through many even cities of an area has a length of about 0.7124 sqrt(cities x
/// area). This one is up to 1.5 times as long; a wrong one, such as the order of the tree, is many
/// times as long.
fn check_length(ring: &[Spot<'_>], length: f64) -> Result<(), String> {
    if ring.len() < MANY {
        return Ok(());
    }
    let extent = |axis: usize| {
        let along = ring.iter().map(|spot| spot.at()[axis]);
        along.clone().fold(f64::MIN, f64::max) - along.fold(f64::MAX, f64::min)
    };
    let optimum = 0.7124 * (ring.len() as f64 * extent(0) * extent(1)).sqrt();
    let is_short = length <= 1.5 * optimum;
    if !is_short {
        return Err(format!("{length} is too long for an optimum of {optimum}"));
    }
    Ok(())
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
    let halves = [root.left(), root.right()].map(|half| {
        half.inspect(|half| {
            tour(*half, placement);
        })
    });
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

/// Inserts `city` into the ring, beside the city that is nearest to it, on the side where that
/// makes the ring less longer.
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

/// A ring that is opened between two neighbours.
#[derive(Clone, Copy)]
struct Opened<'t> {
    /// The end that goes to the root.
    outer: Spot<'t>,
    /// The end that goes to the other ring.
    inner: Spot<'t>,
}

impl Opened<'_> {
    /// All ways of opening a ring beside `spot`.
    fn beside(spot: Spot<'_>) -> [Opened<'_>; 4] {
        let (prev, next) = (spot.prev(), spot.next());
        [(spot, next), (next, spot), (spot, prev), (prev, spot)]
            .map(|(outer, inner)| Opened { outer, inner })
    }
}

/// Makes one ring of `root` and the rings of two cities.
fn merge<'t, P: Placement>(root: Spot<'t>, left: Spot<'t>, right: Spot<'t>, placement: P) {
    let at = root.at();
    let left = Opened::beside(nearest(at, left, placement));
    let right = Opened::beside(nearest(at, right, placement));
    let mut best = (f64::INFINITY, left[0], right[0]);
    for left in left {
        for right in right {
            let longer = distance(at, left.outer.at())
                + distance(left.inner.at(), right.inner.at())
                + distance(right.outer.at(), at)
                - distance(left.outer.at(), left.inner.at())
                - distance(right.outer.at(), right.inner.at());
            if longer < best.0 {
                best = (longer, left, right);
            }
        }
    }
    let (_, left, right) = best;
    // root -> outer .. inner of the left ring -> inner .. outer of the right one -> root
    if left.inner.next() != left.outer {
        left.outer.reverse();
    }
    if right.outer.next() != right.inner {
        right.outer.reverse();
    }
    root.link(left.outer);
    left.inner.link(right.inner);
    right.outer.link(root);
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
