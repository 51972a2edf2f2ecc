//! The ranks in vectors of their own, and then also the links, with four bytes each.

use super::before::{ROUNDS, checksum, crawl};

pub fn split(size: usize) -> u64 {
    let pages = crawl(size);
    let (mut ranks, mut next) = (vec![1.0; size], vec![0.0; size]);
    for _ in 0..ROUNDS {
        for (page, rank) in pages.iter().zip(&ranks) {
            let share = rank / page.links.len() as f64;
            page.links.iter().for_each(|&to| next[to] += share);
        }
        settle(&mut ranks, &mut next);
    }
    checksum(pages.iter().zip(ranks))
}

pub fn smaller(size: usize) -> u64 {
    let pages = crawl(size);
    let links = pages.iter().flat_map(|page| &page.links);
    let links: Vec<u32> = links.map(|&link| link as u32).collect();
    let counts: Vec<usize> = pages.iter().map(|page| page.links.len()).collect();
    let (mut ranks, mut next) = (vec![1.0; size], vec![0.0; size]);
    for _ in 0..ROUNDS {
        let mut rest = &links[..];
        for (&count, rank) in counts.iter().zip(&ranks) {
            let (own, others) = rest.split_at(count);
            let share = rank / count as f64;
            own.iter().for_each(|&to| next[to as usize] += share);
            rest = others;
        }
        settle(&mut ranks, &mut next);
    }
    checksum(pages.iter().zip(ranks))
}

fn settle(ranks: &mut [f64], next: &mut [f64]) {
    for (rank, next) in ranks.iter_mut().zip(next) {
        *rank = 0.15 + 0.85 * *next;
        *next = 0.0;
    }
}
