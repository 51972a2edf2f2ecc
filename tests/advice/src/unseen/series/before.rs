//! A monitor: measurements by name, appended in turn, and asked for by time.

use fastrand::Rng;
use std::collections::HashMap;

pub(super) struct Point {
    pub(super) time: u64,
    pub(super) value: f64,
    pub(super) quality: u8,
}

#[derive(Default)]
struct Series {
    points: Vec<Point>,
}

struct Store {
    series: HashMap<String, Series>,
}

pub(super) fn name(number: usize) -> String {
    format!("host{}.cpu{}.load", number / 16, number % 16)
}

pub(super) const NAMES: usize = 800;

pub(super) enum Request {
    Append(String, Point),
    /// The greatest of the good values between two times.
    Greatest(String, u64, u64),
}

impl Store {
    fn greatest(&self, name: &str, from: u64, to: u64) -> f64 {
        let Some(Series { points }) = self.series.get(name) else {
            return 0.0;
        };
        let first = points.partition_point(|point| point.time < from);
        let inside = points[first..].iter().take_while(|point| point.time < to);
        let good = inside.filter(|point| point.quality > 10);
        good.map(|point| point.value).fold(0.0, f64::max)
    }
}

/// All hosts report in turn; now and then somebody looks at an hour.
pub(super) fn requests(size: usize, mut answer: impl FnMut(Request) -> f64) -> u64 {
    let mut random = Rng::with_seed(136);
    (0..size as u64).fold(0, |sum: u64, time| {
        let (value, quality) = (random.f64(), random.u8(..));
        answer(Request::Append(
            name(time as usize % NAMES),
            Point {
                time,
                value,
                quality,
            },
        ));
        if time % 20 > 0 {
            return sum;
        }
        let from = random.u64(..=time);
        let asked = Request::Greatest(name(random.usize(..NAMES)), from, from + 200_000);
        sum.rotate_left(1) ^ answer(asked).to_bits()
    })
}

pub fn run(size: usize) -> u64 {
    let mut store = Store {
        series: HashMap::new(),
    };
    requests(size, |request| match request {
        Request::Append(name, point) => {
            store.series.entry(name).or_default().points.push(point);
            0.0
        }
        Request::Greatest(name, from, to) => store.greatest(&name, from, to),
    })
}
