//! Structs of published crates that are larger than a block, each used as its crate means it.
//!
//! Nobody but the crates can reorder their fields, so there are no changes: how many misses
//! the advised order saves is simulated.

use std::iter::repeat_with;

use crate::programs::mix;
use fastrand::Rng;

/// A name, and what runs, by a number of elements; returns a checksum.
type Published = (&'static str, fn(usize) -> u64);

/// `plain NAME before` runs these too.
pub(crate) const PUBLISHED: &[Published] = &[
    ("KdTree", kd_tree),
    ("NodeData", xml),
    ("Waypoint", track),
    ("Point", point_cloud),
    ("Item", feed),
];

/// Their sizes at scale 1.
pub(crate) const SIZE: usize = 100_000;

fn random() -> Rng {
    Rng::with_seed(7)
}

/// Nearest neighbours, by `kdtree`.
fn kd_tree(size: usize) -> u64 {
    let mut random = random();
    let mut point = || [random.f64(), random.f64(), random.f64()];
    let mut tree = kdtree::KdTree::with_capacity(3, 8);
    for id in 0..2 * size as u64 {
        tree.add(point(), id).expect("it has three dimensions");
    }
    let distance = kdtree::distance::squared_euclidean;
    (0..size).fold(0, |sum, _| {
        let nearest = tree.nearest(&point(), 1, &distance);
        nearest.map_or(sum, |found| mix(sum, *found[0].1))
    })
}

/// The elements of a document in any order, and all of it from its beginning, by `roxmltree`.
fn xml(size: usize) -> u64 {
    let mut random = random();
    let item = |number: usize| {
        let kind = number % 9;
        format!("<item id='{number}' kind='{kind}'><name>n{number}</name><v>{kind}</v></item>")
    };
    let text: String = (0..size).map(item).collect();
    let text = format!("<all>{text}</all>");
    let document = roxmltree::Document::parse(&text).expect("it is well formed");
    let items: Vec<roxmltree::Node<'_, '_>> = document.root_element().children().collect();
    let sum = (0..2 * size).fold(0, |sum, _| {
        let children = items[random.usize(..size)].children();
        let values = children.filter(|child| child.has_tag_name("v"));
        values.fold(sum, |sum, it| {
            mix(sum, it.text().map_or(0, str::len) as u64)
        })
    });
    let values = document.descendants().filter(|it| it.has_tag_name("v"));
    mix(sum, values.count() as u64)
}

/// What lies between two places of a track and how much higher one is, by `gpx`.
fn track(size: usize) -> u64 {
    let mut random = random();
    let places = (0..2 * size).map(|number| {
        let mut place = gpx::Waypoint::new(geo_types::Point::new(random.f64(), random.f64()));
        place.elevation = Some(random.f64());
        place.speed = Some(random.f64());
        place.sat = Some(random.u64(4..12));
        place.name = number.is_multiple_of(16).then(|| number.to_string());
        place
    });
    let places: Vec<gpx::Waypoint> = places.collect();
    let mut any = || &places[random.usize(..places.len())];
    (0..12 * size).fold(0, |sum, _| {
        let (from, to) = (any(), any());
        let way = to.point() - from.point();
        let climb = to.elevation.zip(from.elevation).map(|(to, from)| to - from);
        mix(
            sum,
            (way.x().hypot(way.y()) * climb.unwrap_or(0.0)).to_bits(),
        )
    })
}

/// First returns from the ground, anywhere in a cloud of laser points, by `las`.
fn point_cloud(size: usize) -> u64 {
    use las::point::Classification;
    let mut random = random();
    let points = repeat_with(|| las::Point {
        x: random.f64(),
        y: random.f64(),
        z: random.f64(),
        intensity: random.u16(..),
        return_number: random.u8(1..4),
        classification: Classification::Ground,
        gps_time: Some(random.f64()),
        ..las::Point::default()
    });
    let points: Vec<las::Point> = points.take(4 * size).collect();
    (0..24 * size).fold(0, |sum, _| {
        let point = &points[random.usize(..points.len())];
        let is_first = point.return_number == 1;
        match is_first && point.classification == Classification::Ground {
            true => mix(sum, (point.x * point.y + point.z).to_bits()),
            false => sum,
        }
    })
}

/// Titles and dates of entries, by `rss`.
fn feed(size: usize) -> u64 {
    let mut random = random();
    let items = (0..size).map(|number| {
        let mut item = rss::Item::default();
        item.set_title(format!("entry {number}"));
        item.set_link(format!("https://example.org/{number}"));
        item.set_pub_date(format!("{number}"));
        item.set_description("what it is about".to_owned());
        item
    });
    let items: Vec<rss::Item> = items.collect();
    (0..12 * size).fold(0, |sum, _| {
        let item = &items[random.usize(..size)];
        let length = |text: Option<&str>| text.map_or(0, str::len) as u64;
        mix(mix(sum, length(item.title())), length(item.pub_date()))
    })
}
