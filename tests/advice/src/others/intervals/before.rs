//! Where addresses are, by a map of the beginnings of networks.

use fastrand::Rng;
use std::collections::BTreeMap;

#[derive(Clone, Copy)]
pub(super) struct Network {
    end: u32,
    country: u16,
}

/// Networks as a file lists them, by country.
pub(super) fn networks(size: usize) -> Vec<(u32, Network)> {
    let mut random = Rng::with_seed(55);
    let step = u32::MAX / size as u32;
    let network = |number| {
        let begin = number * step;
        let end = begin + random.u32(step / 2..step);
        let country = random.u16(..200);
        (begin, Network { end, country })
    };
    let mut all: Vec<_> = (0..size as u32).map(network).collect();
    all.sort_by_key(|(_, network)| network.country);
    all
}

pub(super) fn visits<'a>(size: usize, find: impl Fn(u32) -> Option<&'a Network>) -> u64 {
    let mut random = Rng::with_seed(56);
    let mut countries = [0_u64; 200];
    for _ in 0..2 * size {
        let address = random.u32(..);
        match find(address) {
            Some(network) if address < network.end => countries[network.country as usize] += 1,
            _ => countries[0] += 1,
        }
    }
    countries.iter().fold(0, |sum, it| sum.rotate_left(5) ^ it)
}

pub fn run(size: usize) -> u64 {
    let map: BTreeMap<u32, Network> = networks(size).into_iter().collect();
    visits(size, |address| {
        map.range(..=address).next_back().map(|it| it.1)
    })
}
