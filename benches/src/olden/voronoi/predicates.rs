//! On which side of a line, and inside of which circle, a point lies: exactly.
//!
//! Coordinates are whole numbers below 2^26, in `f64`s. So differences have 26 bits, products of
//! two 52, and the side of a line comes out exact. The determinant of the circle has terms of 105
//! bits. It is computed in `f64` with a bound on the error, and in 128-bit integers where the bound
//! leaves the sign open, which in random points it hardly ever does: a triangulation by signs that
//! contradict each other need not end.

/// A point with whole coordinates from 0 to [`COORDINATE_MAX`].
pub(super) type Point = [f64; 2];

/// The largest coordinate.
pub(super) const COORDINATE_MAX: u32 = (1 << 26) - 1;

/// Twice the area of the triangle, positive when its corners go counter-clockwise. Exact.
#[inline]
pub(super) fn area(a: Point, b: Point, c: Point) -> f64 {
    (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
}

/// Whether `point` lies inside of the circle through `a`, `b` and `c`, which go counter-clockwise.
/// Exact; on the circle is not inside.
#[inline]
pub(super) fn in_circle(a: Point, b: Point, c: Point, point: Point) -> bool {
    let [a, b, c] = [a, b, c].map(|corner| [corner[0] - point[0], corner[1] - point[1]]);
    let square = |v: Point| v[0] * v[0] + v[1] * v[1];
    // Exact: squares are below 2^53, and so is the difference of two products below 2^52.
    let minor = |v: Point, w: Point| v[0] * w[1] - v[1] * w[0];
    let terms = [
        (square(a), minor(b, c)),
        (square(b), minor(c, a)),
        (square(c), minor(a, b)),
    ];
    let products = terms.map(|(square, minor)| square * minor);
    let determinant = products[0] + products[1] + products[2];
    // Three products and two sums are rounded, each by half a unit in the last place of at most the
    // sum of the magnitudes.
    let error = 4.0 * f64::EPSILON * products.iter().map(|product| product.abs()).sum::<f64>();
    if determinant.abs() > error {
        determinant > 0.0
    } else {
        in_circle_exactly(terms)
    }
}

/// The same from the exact factors.
#[cold]
#[inline(never)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "whole numbers of at most 2^53, which an i128 holds"
)]
fn in_circle_exactly(terms: [(f64, f64); 3]) -> bool {
    let product = |(square, minor): (f64, f64)| square as i128 * minor as i128;
    terms.into_iter().map(product).sum::<i128>() > 0
}
