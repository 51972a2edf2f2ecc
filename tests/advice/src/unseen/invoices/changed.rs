//! Another map, and all articles of a basket at once.

use super::before::{Article, baskets, catalogue};
use ctree::CTreeMap;
use std::collections::HashMap;

macro_rules! with {
    ($name:ident, $Map:ident) => {
        pub fn $name(size: usize) -> u64 {
            let articles: $Map<u64, Article> = catalogue(size).into_iter().collect();
            baskets(size, |numbers| {
                let known = numbers.iter().filter_map(|number| articles.get(number));
                known.map(Article::price).sum()
            })
        }
    };
}

with!(container, CTreeMap);
with!(idea, HashMap);

pub fn many(size: usize) -> u64 {
    let articles: CTreeMap<u64, Article> = catalogue(size).into_iter().collect();
    baskets(size, |numbers| {
        let mut sum = 0;
        articles.get_many_with(numbers, |_, article| {
            sum += article.map_or(0, Article::price);
        });
        sum
    })
}
