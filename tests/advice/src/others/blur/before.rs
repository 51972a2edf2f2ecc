//! A picture that is blurred by the mean of each pixel's surroundings.

use fastrand::Rng;

pub(super) const WIDTH: usize = 1024;

fn picture(size: usize) -> Vec<f32> {
    let mut random = Rng::with_seed(74);
    (0..size * WIDTH).map(|_| random.f32()).collect()
}

/// The mean of the pixels at most two away, but for the border.
fn blur(from: &[f32], to: &mut [f32]) {
    for y in 2..from.len() / WIDTH - 2 {
        for x in 2..WIDTH - 2 {
            let mut sum = 0.0;
            for row in y - 2..=y + 2 {
                for pixel in &from[row * WIDTH + x - 2..=row * WIDTH + x + 2] {
                    sum += pixel;
                }
            }
            to[y * WIDTH + x] = sum / 25.0;
        }
    }
}

pub(super) fn blurred(size: usize, blur: impl Fn(&[f32], &mut [f32])) -> u64 {
    let mut from = picture(size);
    let mut to = from.clone();
    for _ in 0..5 {
        blur(&from, &mut to);
        std::mem::swap(&mut from, &mut to);
    }
    from.iter().fold(0, |sum: u64, pixel| {
        sum.rotate_left(1) ^ u64::from(pixel.to_bits())
    })
}

pub fn run(size: usize) -> u64 {
    blurred(size, blur)
}
