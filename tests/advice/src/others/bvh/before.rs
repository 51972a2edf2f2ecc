//! A ray tracer's tree of boxes around spheres.

use fastrand::Rng;

pub(super) type Vector = [f32; 3];

#[derive(Clone, Copy)]
pub(super) struct Sphere {
    centre: Vector,
    radius: f32,
}

#[derive(Clone, Copy)]
pub(super) struct Bounds {
    low: Vector,
    high: Vector,
}

pub(super) enum Tree {
    Leaf(Sphere),
    Inner(Bounds, [Box<Tree>; 2]),
}

pub(super) struct Ray {
    from: Vector,
    inverse: Vector,
    to: Vector,
}

impl Bounds {
    fn of(spheres: &[Sphere]) -> Self {
        let (mut low, mut high) = ([f32::MAX; 3], [f32::MIN; 3]);
        for sphere in spheres {
            for axis in 0..3 {
                low[axis] = low[axis].min(sphere.centre[axis] - sphere.radius);
                high[axis] = high[axis].max(sphere.centre[axis] + sphere.radius);
            }
        }
        Bounds { low, high }
    }

    pub(super) fn is_hit(&self, ray: &Ray) -> bool {
        let (mut near, mut far) = (0.0_f32, f32::MAX);
        for axis in 0..3 {
            let first = (self.low[axis] - ray.from[axis]) * ray.inverse[axis];
            let second = (self.high[axis] - ray.from[axis]) * ray.inverse[axis];
            near = near.max(first.min(second));
            far = far.min(first.max(second));
        }
        near <= far
    }
}

impl Sphere {
    pub(super) fn is_hit(&self, ray: &Ray) -> bool {
        let offset = [0, 1, 2].map(|axis| self.centre[axis] - ray.from[axis]);
        let dot = |a: Vector, b: Vector| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let along = dot(offset, ray.to);
        dot(offset, offset) - along * along < self.radius * self.radius
    }
}

impl Tree {
    pub(super) fn hits(&self, ray: &Ray) -> u64 {
        match self {
            Tree::Leaf(sphere) => u64::from(sphere.is_hit(ray)),
            Tree::Inner(bounds, _) if !bounds.is_hit(ray) => 0,
            Tree::Inner(_, [left, right]) => left.hits(ray) + right.hits(ray),
        }
    }
}

pub(super) fn build(spheres: &mut [Sphere]) -> Box<Tree> {
    if let [sphere] = spheres {
        return Box::new(Tree::Leaf(*sphere));
    }
    let bounds = Bounds::of(spheres);
    let extent = |axis: &usize| bounds.high[*axis] - bounds.low[*axis];
    let axis = (0..3)
        .max_by(|a, b| extent(a).total_cmp(&extent(b)))
        .unwrap();
    let half = spheres.len() / 2;
    spheres.select_nth_unstable_by(half, |a, b| a.centre[axis].total_cmp(&b.centre[axis]));
    let (left, right) = spheres.split_at_mut(half);
    Box::new(Tree::Inner(bounds, [build(left), build(right)]))
}

pub(super) fn scene(size: usize) -> Vec<Sphere> {
    let mut random = Rng::with_seed(67);
    let mut sphere = |_| {
        let centre = [0, 1, 2].map(|_| random.f32());
        let radius = 0.2 * random.f32() / (size as f32).cbrt();
        Sphere { centre, radius }
    };
    (0..size).map(&mut sphere).collect()
}

pub(super) fn shoot(rays: usize, hits: impl Fn(&Ray) -> u64) -> u64 {
    let mut random = Rng::with_seed(68);
    (0..rays).fold(0, |sum: u64, _| {
        let from = [0, 1, 2].map(|_| random.f32());
        let to = [0, 1, 2].map(|_| random.f32() - 0.5);
        let length = (to[0] * to[0] + to[1] * to[1] + to[2] * to[2]).sqrt();
        let to = to.map(|part| part / length);
        let inverse = to.map(|part| 1.0 / part);
        sum.rotate_left(1) ^ hits(&Ray { from, inverse, to })
    })
}

pub fn run(size: usize) -> u64 {
    let tree = build(&mut scene(size));
    shoot(size / 20 + 10, |ray| tree.hits(ray))
}
