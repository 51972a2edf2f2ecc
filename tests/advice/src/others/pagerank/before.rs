//! Ranks of pages by the links between them.

use fastrand::Rng;

pub(super) struct Page {
    url: String,
    title: String,
    words: [u32; 8],
    rank: f64,
    next: f64,
    pub(super) links: Vec<usize>,
}

/// Half of the links lead to the first pages.
pub(super) fn crawl(size: usize) -> Vec<Page> {
    let mut random = Rng::with_seed(53);
    let mut page = |number| {
        let (few, all) = (1 + size / 100, size);
        let link = |random: &mut Rng| match random.bool() {
            true => random.usize(..few),
            false => random.usize(..all),
        };
        Page {
            url: format!("https://example.org/{number}"),
            title: format!("Page {number}"),
            words: [number as u32; 8],
            rank: 1.0,
            next: 0.0,
            links: (0..random.usize(1..20))
                .map(|_| link(&mut random))
                .collect(),
        }
    };
    (0..size).map(&mut page).collect()
}

pub(super) const ROUNDS: usize = 25;

/// What the pages are, with their ranks.
pub(super) fn checksum<'a>(pages: impl Iterator<Item = (&'a Page, f64)>) -> u64 {
    pages.fold(0, |sum, (page, rank)| {
        let words = page.words[3] as usize + page.url.len() + page.title.len();
        sum.rotate_left(1) ^ rank.to_bits() ^ words as u64
    })
}

pub fn run(size: usize) -> u64 {
    let mut pages = crawl(size);
    for _ in 0..ROUNDS {
        for at in 0..pages.len() {
            let share = pages[at].rank / pages[at].links.len() as f64;
            for link in 0..pages[at].links.len() {
                let to = pages[at].links[link];
                pages[to].next += share;
            }
        }
        for page in &mut pages {
            page.rank = 0.15 + 0.85 * page.next;
            page.next = 0.0;
        }
    }
    checksum(pages.iter().map(|page| (page, page.rank)))
}
