//! An octree over points of the unit cube: a leaf holds a few of them, and becomes an inner node
//! with eight octants when it overflows.

use ccmorph::{Morph, MorphError, Report, TreeNode};

use super::Structure;
use crate::rng::Rng;

#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// From 0 to below 1.
    at: [f32; 3],
    pub id: u32,
}

const LEAF_POINTS: usize = 4;

/// One node: 72 bytes.
#[derive(Clone, Debug, TreeNode)]
enum Octant {
    /// `len` points, and behind them nothing of meaning.
    Leaf {
        len: u8,
        points: [Point; LEAF_POINTS],
    },
    /// Eight parts, without those that have no points.
    Inner(#[child] [Option<Box<Octant>>; 8]),
}

const _: () = assert!(size_of::<Octant>() == 72);

/// Bits of a coordinate in a query.
const QUERY_BITS: u32 = 21;

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

    /// Which eighth a point lies in: one bit for each direction.
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

#[derive(Clone, Debug)]
pub struct Octree {
    root: Option<Box<Octant>>,
    /// From the centre of a query's cube to its sides.
    query_reach: f32,
}

impl Octree {
    /// A tree of `count` random points. Queries are for cubes in which 64 lie on average.
    #[expect(clippy::cast_possible_truncation, reason = "a side may be rounded")]
    pub fn random(count: usize, seed: u64) -> Octree {
        let side = (64.0 / count.max(1) as f64).cbrt().min(1.0);
        let mut tree = Octree {
            root: None,
            query_reach: (side / 2.0) as f32,
        };
        for point in random_points(count, seed) {
            insert(&mut tree.root, Cube::UNIT, point);
        }
        tree
    }

    /// Whether a point lies in the cube that `query` means.
    pub fn asks_for(&self, query: u64, point: &Point) -> bool {
        self.cube_of(query).meets(point.at, 0.0)
    }

    /// The cube that `query` means: 21 bits for each coordinate of its centre.
    #[inline]
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

/// Adds a point below `link`, which belongs to `cube`. Panics when five points are at one place.
fn insert(link: &mut Option<Box<Octant>>, cube: Cube, point: Point) {
    let octant = link.get_or_insert_with(|| {
        let points = [Point::default(); LEAF_POINTS];
        Box::new(Octant::Leaf { len: 0, points })
    });
    let mut parted = None;
    if let Octant::Leaf { len, points } = &mut **octant {
        if let Some(free) = points.get_mut(usize::from(*len)) {
            *free = point;
            *len += 1;
            return;
        }
        // Halving a reach some 150 times gives 0.
        assert!(cube.reach > 0.0, "five points at one place");
        parted = Some(*points);
        **octant = Octant::Inner(Default::default());
    }
    if let Octant::Inner(eighths) = &mut **octant {
        for point in parted.into_iter().flatten().chain([point]) {
            let which = cube.eighth_of(point.at);
            insert(&mut eighths[which], cube.eighth(which), point);
        }
    }
}

impl Octant {
    fn sum(&self, cube: &Cube, query: &Cube) -> u32 {
        match self {
            Octant::Leaf { len, points } => {
                let points = points[..usize::from(*len)].iter();
                let inside = points.filter(|point| query.meets(point.at, 0.0));
                inside.fold(0, |sum: u32, point| sum.wrapping_add(point.id))
            }
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
#[expect(clippy::cast_possible_truncation, reason = "half an id is enough")]
pub fn random_points(count: usize, seed: u64) -> Vec<Point> {
    const SCALE: f32 = 1.0 / (1_u32 << 24) as f32;
    let mut rng = Rng::new(seed);
    let mut points = Vec::with_capacity(count);
    for _ in 0..count {
        let mut coordinate = || (rng.next_u64() >> 40) as f32 * SCALE;
        let at = [coordinate(), coordinate(), coordinate()];
        let id = rng.next_u64() as u32;
        points.push(Point { at, id });
    }
    points
}

impl Structure for Octree {
    fn morph(&mut self, morph: &Morph<'_>) -> Result<Report, MorphError> {
        morph.run(&mut self.root, Octant::children)
    }

    #[inline]
    fn answer(&self, query: u64) -> u32 {
        let root = self.root.as_deref();
        root.map_or(0, |root| root.sum(&Cube::UNIT, &self.cube_of(query)))
    }
}
