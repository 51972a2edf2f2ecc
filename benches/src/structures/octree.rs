//! An octree over points of the unit cube: a leaf holds a few of them, and becomes an inner node
//! with eight octants when it overflows.

use crate::rng::Rng;
use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;

/// A point, and what it stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Coordinates, from 0 to below 1.
    pub at: [f32; 3],
    /// A number of the owner's choice.
    pub id: u32,
}

/// Points of a leaf at most.
const LEAF_POINTS: usize = 4;

/// One node: 72 bytes.
#[derive(Clone, Debug, TreeNode)]
pub enum Octant {
    /// Few points.
    Leaf {
        /// How many of `points` there are.
        len: u8,
        /// The points, and behind them nothing of meaning.
        points: [Point; LEAF_POINTS],
    },
    /// Eight parts, by halves in each direction; those without points are not there.
    Inner(#[child] [Option<Box<Octant>>; 8]),
}

const _: () = assert!(size_of::<Octant>() == 72);

/// Bits of a point's coordinate in a query.
const QUERY_BITS: u32 = 21;

/// A cube.
#[derive(Clone, Copy, Debug)]
struct Cube {
    centre: [f32; 3],
    /// From the centre to a side.
    reach: f32,
}

impl Cube {
    const UNIT: Cube = Cube {
        centre: [0.5; 3],
        reach: 0.5,
    };

    /// Which eighth of it a point lies in: one bit for each direction.
    #[inline]
    fn eighth_of(&self, at: [f32; 3]) -> usize {
        (0..3).fold(0, |bits, axis| {
            bits | usize::from(at[axis] >= self.centre[axis]) << axis
        })
    }

    #[inline]
    fn eighth(&self, which: usize) -> Cube {
        let reach = self.reach / 2.0;
        let mut centre = self.centre;
        for (axis, middle) in centre.iter_mut().enumerate() {
            let is_upper = which >> axis & 1 == 1;
            *middle += if is_upper { reach } else { -reach };
        }
        Cube { centre, reach }
    }

    /// Whether a cube around `at` with this `reach`, which may be 0, meets this one.
    #[inline]
    fn meets(&self, at: [f32; 3], reach: f32) -> bool {
        (0..3).all(|axis| (self.centre[axis] - at[axis]).abs() <= self.reach + reach)
    }
}

/// Points on average that a query asks for.
const QUERY_POINTS: f64 = 64.0;

/// An octree of points.
#[derive(Clone, Debug)]
pub struct Octree {
    root: Option<Box<Octant>>,
    /// From the centre of a query's cube to its sides.
    query_reach: f32,
}

impl Octree {
    /// A tree with `count` random points, inserted one by one.
    pub fn random(count: usize, seed: u64) -> Octree {
        let mut tree = Octree::for_points(count);
        for point in random_points(count, seed) {
            tree.insert(point);
        }
        tree
    }

    /// An empty tree; queries are for cubes in which 64 of `count` even points would lie.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a side of a cube does not need the digits of an f64"
    )]
    pub fn for_points(count: usize) -> Octree {
        let side = (QUERY_POINTS / count.max(1) as f64).cbrt().min(1.0);
        Octree {
            root: None,
            query_reach: (side / 2.0) as f32,
        }
    }

    /// Adds a point.
    ///
    /// # Panics
    /// When a coordinate is not from 0 to below 1, or when there are five points so close together
    /// that 40 halvings do not part them.
    pub fn insert(&mut self, point: Point) {
        const DEPTH_MAX: usize = 40;
        assert!(
            point.at.iter().all(|at| (0.0..1.0).contains(at)),
            "the tree is over the unit cube"
        );
        let mut cube = Cube::UNIT;
        let mut link = &mut self.root;
        for _ in 0..DEPTH_MAX {
            let octant = link.get_or_insert_with(|| Box::new(Octant::EMPTY));
            if let Octant::Leaf { len, points } = &mut **octant {
                if usize::from(*len) < LEAF_POINTS {
                    points[usize::from(*len)] = point;
                    *len += 1;
                    return;
                }
                let points = *points;
                **octant = Octant::parted(&cube, &points);
            }
            let Octant::Inner(eighths) = &mut **octant else {
                unreachable!("a leaf was parted just now");
            };
            let which = cube.eighth_of(point.at);
            link = &mut eighths[which];
            cube = cube.eighth(which);
        }
        panic!("points too close together");
    }

    /// Whether a point lies in the cube that `query` means.
    pub fn asks_for(&self, query: u64, point: &Point) -> bool {
        self.cube_of(query).meets(point.at, 0.0)
    }

    /// The cube that `query` means: 21 bits for each coordinate of its centre.
    #[inline]
    #[expect(
        clippy::cast_precision_loss,
        reason = "21 bits fit the 24 of an f32 exactly"
    )]
    fn cube_of(&self, query: u64) -> Cube {
        const SCALE: f32 = 1.0 / (1_u32 << QUERY_BITS) as f32;
        let coordinate = |axis: u32| {
            let bits = query >> (axis * QUERY_BITS) & ((1 << QUERY_BITS) - 1);
            bits as f32 * SCALE
        };
        Cube {
            centre: [coordinate(0), coordinate(1), coordinate(2)],
            reach: self.query_reach,
        }
    }
}

impl Octant {
    const EMPTY: Octant = Octant::Leaf {
        len: 0,
        points: [Point {
            at: [0.0; 3],
            id: 0,
        }; LEAF_POINTS],
    };

    /// An inner node over `cube` with `points` in its eighths.
    fn parted(cube: &Cube, points: &[Point; LEAF_POINTS]) -> Octant {
        let mut eighths: [Option<Box<Octant>>; 8] = Default::default();
        for &point in points {
            let eighth = &mut eighths[cube.eighth_of(point.at)];
            let leaf = eighth.get_or_insert_with(|| Box::new(Octant::EMPTY));
            if let Octant::Leaf { len, points } = &mut **leaf {
                points[usize::from(*len)] = point;
                *len += 1;
            }
        }
        Octant::Inner(eighths)
    }

    fn sum(&self, cube: &Cube, query: &Cube) -> u32 {
        match self {
            Octant::Leaf { len, points } => points[..usize::from(*len)]
                .iter()
                .filter(|point| query.meets(point.at, 0.0))
                .fold(0, |sum: u32, point| sum.wrapping_add(point.id)),
            Octant::Inner(eighths) => {
                let mut sum = 0_u32;
                for (which, eighth) in eighths.iter().enumerate() {
                    if let Some(octant) = eighth {
                        let part = cube.eighth(which);
                        if part.meets(query.centre, query.reach) {
                            sum = sum.wrapping_add(octant.sum(&part, query));
                        }
                    }
                }
                sum
            }
        }
    }
}

/// `count` points, even over the unit cube.
pub fn random_points(count: usize, seed: u64) -> Vec<Point> {
    const SCALE: f32 = 1.0 / (1_u32 << 24) as f32;
    let mut rng = Rng::new(seed);
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "24 bits fit an f32 exactly; of the id the low half is enough"
    )]
    let mut point = || {
        let mut coordinate = || (rng.next_u64() >> 40) as f32 * SCALE;
        let at = [coordinate(), coordinate(), coordinate()];
        Point {
            at,
            id: rng.next_u64() as u32,
        }
    };
    (0..count).map(|_| point()).collect()
}

impl Structure for Octree {
    fn copy(&self) -> Self {
        self.clone()
    }

    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.root, Octant::children)
    }

    /// The sum of the ids of the points in the cube that `query` means.
    #[inline]
    fn answer(&self, query: u64) -> u32 {
        let root = self.root.as_deref();
        root.map_or(0, |root| root.sum(&Cube::UNIT, &self.cube_of(query)))
    }
}
