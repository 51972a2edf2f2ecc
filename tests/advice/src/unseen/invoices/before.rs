//! A shop's invoices: the articles of each basket are looked up in the catalogue.

use fastrand::Rng;
use std::collections::BTreeMap;

#[derive(Clone)]
pub(super) struct Article {
    name: String,
    cents: u32,
    tax_percent: u32,
    stock: u32,
}

/// Numbers have gaps: articles come and go.
pub(super) fn catalogue(size: usize) -> Vec<(u64, Article)> {
    let mut random = Rng::with_seed(103);
    let mut number = 10_000_000;
    let article = |_| {
        number += random.u64(1..20);
        let article = Article {
            name: format!("Article no. {number}"),
            cents: random.u32(99..10_000),
            tax_percent: *random.choice([0, 7, 19]).as_ref().unwrap(),
            stock: random.u32(..100),
        };
        (number, article)
    };
    let mut articles: Vec<_> = (0..size).map(article).collect();
    random.shuffle(&mut articles);
    articles
}

/// Baskets of up to forty articles, some of which are no longer to be had.
pub(super) fn baskets(size: usize, mut total: impl FnMut(&[u64]) -> u64) -> u64 {
    let mut random = Rng::with_seed(104);
    (0..size / 10).fold(0, |sum: u64, _| {
        let numbers: Vec<u64> = (0..random.usize(1..40))
            .map(|_| 10_000_000 + random.u64(..10 * size as u64))
            .collect();
        sum.rotate_left(1) ^ total(&numbers)
    })
}

impl Article {
    pub(super) fn price(&self) -> u64 {
        let name_fee = u64::from(self.stock == 0) * self.name.len() as u64;
        u64::from(self.cents) * u64::from(100 + self.tax_percent) + name_fee
    }
}

pub fn run(size: usize) -> u64 {
    let articles: BTreeMap<u64, Article> = catalogue(size).into_iter().collect();
    baskets(size, |numbers| {
        let known = numbers.iter().filter_map(|number| articles.get(number));
        known.map(Article::price).sum()
    })
}
