//! Names apart from the roads, or only what a search needs, in vectors.

use super::before::{WAYS, name_lengths, times, town};

/// The names stay with the junctions that are only read at the end.
pub fn split(size: usize) -> u64 {
    struct Slim {
        to: u32,
        seconds: u32,
    }
    let junctions = town(size);
    let slim = |road: &super::before::Road| {
        let seconds = road.seconds()? as u32;
        Some(Slim {
            to: road.to as u32,
            seconds,
        })
    };
    let roads: Vec<Vec<Slim>> = { junctions.iter() }
        .map(|it| it.roads.iter().filter_map(slim).collect())
        .collect();
    let sum = (0..WAYS).fold(0, |sum: u64, from| {
        sum ^ times(junctions.len(), from, |at, each| {
            let roads = roads[at].iter();
            roads.for_each(|road| each(road.to as usize, road.seconds.into()));
        })
    });
    sum ^ name_lengths(&junctions)
}

pub fn idea(size: usize) -> u64 {
    let junctions = town(size);
    let (mut ends, mut roads) = (vec![0], Vec::new());
    for junction in &junctions {
        let open = { junction.roads.iter() }.filter_map(|it| Some((it.to as u32, it.seconds()?)));
        roads.extend(open);
        ends.push(roads.len());
    }
    let sum = (0..WAYS).fold(0, |sum: u64, from| {
        sum ^ times(junctions.len(), from, |at, each| {
            let roads = roads[ends[at]..ends[at + 1]].iter();
            roads.for_each(|&(to, seconds)| each(to as usize, seconds));
        })
    });
    sum ^ name_lengths(&junctions)
}
