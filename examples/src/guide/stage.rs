//! The stages of the cure: the same prices, kept in five ways.

use std::fmt;
use std::hint::black_box;

use ccmorph::{Map, Morph, MorphError, TreeNode, map};
use clap::ValueEnum;
use ctree::{CTreeMap, FrozenCTreeMap};

use super::price_list::{Node, PriceList};
use crate::chain::QueryChain;
use crate::rng::Rng;
use crate::switch::{Source, born_in};

/// Requests that come and go before an article is added: see [`Traffic`].
const REQUESTS_PER_ARTICLE: usize = 8;
/// What a request keeps, in words: 16 to 56 bytes.
const REQUEST_WORDS: std::ops::RangeInclusive<usize> = 2..=7;
const ARTICLES_SEED: u64 = 11;
const TRAFFIC_SEED: u64 = 12;

/// How the prices are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Stage {
    /// The program as it was written: a tree of boxes from the system's malloc
    Plain,
    /// Each node allocated near its parent, by ccmalloc
    Hinted,
    /// The finished tree re-laid once, by ccmorph
    Morphed,
    /// A `ctree::CTreeMap` in place of the tree
    Map,
    /// A `ctree::FrozenCTreeMap`, made once from all prices
    Frozen,
}

impl Stage {
    pub(super) const ALL: [Stage; 5] = [
        Stage::Plain,
        Stage::Hinted,
        Stage::Morphed,
        Stage::Map,
        Stage::Frozen,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Stage::Plain => "plain",
            Stage::Hinted => "hinted",
            Stage::Morphed => "morphed",
            Stage::Map => "map",
            Stage::Frozen => "frozen",
        }
    }
}

/// Articles in the order in which they are added, each with its price. The same for all stages.
pub(super) fn articles(count: usize) -> Vec<(u64, u64)> {
    let mut rng = Rng::new(ARTICLES_SEED);
    (0..count)
        .map(|_| (rng.next_u64(), rng.next_u64()))
        .collect()
}

/// The rest of the program: requests, each of which keeps a short vector until it is answered.
///
/// At any time as many are open as the list will have articles, and for each article that is added
/// some end, drawn at random, and others begin. So a new node gets a place that was freed
/// somewhere, as in a program that has run for a while. In a fresh heap, nodes would lie in the
/// order of their birth, and the program would not be slow yet.
#[derive(Debug)]
pub(super) struct Traffic {
    open: Vec<Vec<u64>>,
    rng: Rng,
}

impl Traffic {
    fn with_open(requests: usize) -> Traffic {
        let mut rng = Rng::new(TRAFFIC_SEED);
        let open = (0..requests).map(|_| request(&mut rng)).collect();
        Traffic { open, rng }
    }

    /// Ends some requests, and begins as many.
    fn turn_over(&mut self) {
        for _ in 0..REQUESTS_PER_ARTICLE {
            let begun = request(&mut self.rng);
            let at = self.rng.below(self.open.len());
            self.open[at] = begun;
        }
    }
}

fn request(rng: &mut Rng) -> Vec<u64> {
    let words = REQUEST_WORDS.start() + rng.below(REQUEST_WORDS.end() - REQUEST_WORDS.start() + 1);
    vec![rng.next_u64(); words]
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a stage holds one of them")]
enum Prices {
    Tree(PriceList),
    Map(CTreeMap<u64, u64>),
    Frozen(FrozenCTreeMap<u64, u64>),
}

/// The prices as a stage keeps them, and the requests that are open meanwhile.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) stage: Stage,
    prices: Prices,
    articles: usize,
    /// Kept, so that the heap stays as it was while the list grew.
    _traffic: Traffic,
    /// What a morph has to say.
    pub(super) morph: Option<String>,
}

impl Subject {
    /// Adds all articles, with the traffic of the rest of the program between them.
    pub(super) fn build(stage: Stage, articles: &[(u64, u64)]) -> Result<Subject, MorphError> {
        let source = match stage {
            Stage::Plain => Source::System,
            _ => Source::CcMalloc,
        };
        born_in(source, || {
            let mut traffic = Traffic::with_open(articles.len());
            let mut morph = None;
            let prices = match stage {
                Stage::Plain | Stage::Morphed => {
                    let mut list = PriceList::default();
                    for &(article, price) in articles {
                        traffic.turn_over();
                        list.set(article, price);
                    }
                    if stage == Stage::Morphed {
                        let report = Morph::new().run(list.root_mut(), Node::children)?;
                        morph = Some(report.to_string());
                    }
                    Prices::Tree(list)
                }
                Stage::Hinted => {
                    let mut list = PriceList::default();
                    for &(article, price) in articles {
                        traffic.turn_over();
                        list.set_near_parent(article, price);
                    }
                    Prices::Tree(list)
                }
                Stage::Map => {
                    let mut map = CTreeMap::new();
                    for &(article, price) in articles {
                        traffic.turn_over();
                        map.insert(article, price);
                    }
                    Prices::Map(map)
                }
                Stage::Frozen => Prices::Frozen(articles.iter().copied().collect()),
            };
            Ok(Subject {
                stage,
                prices,
                articles: articles.len(),
                _traffic: traffic,
                morph,
            })
        })
    }

    /// Articles on the list.
    pub(super) fn len(&self) -> usize {
        self.articles
    }

    /// Where the nodes lie; nothing for what is not made of nodes of ours.
    pub(super) fn map(&mut self) -> Result<Option<Map>, MorphError> {
        match &mut self.prices {
            Prices::Tree(list) => map(list.root_mut(), Node::children).map(Some),
            Prices::Map(_) | Prices::Frozen(_) => Ok(None),
        }
    }

    /// Bytes of a map, for what is not made of nodes of ours.
    pub(super) fn map_bytes(&self) -> Option<usize> {
        match &self.prices {
            Prices::Tree(_) => None,
            Prices::Map(map) => Some(map.memory_usage()),
            Prices::Frozen(map) => Some(map.memory_usage()),
        }
    }

    /// Asks for prices, each question chosen by the answer before, and returns a sum over the
    /// answers.
    ///
    /// A function for each kind, so that profilers name the lookups and nothing else.
    pub(super) fn ask(&self, questions: &QueryChain) -> u64 {
        match &self.prices {
            Prices::Tree(list) => lookups_in_tree(list, questions),
            Prices::Map(map) => lookups_in_map(map, questions),
            Prices::Frozen(map) => lookups_in_frozen(map, questions),
        }
    }

    /// Asks for the prices of articles that are known beforehand, so that lookups need not wait for
    /// each other.
    pub(super) fn ask_known(&self, articles: &[u64]) -> u64 {
        match &self.prices {
            Prices::Tree(list) => sum(articles, |article| list.price(article)),
            Prices::Map(map) => sum(articles, |article| map.get(&article).copied()),
            Prices::Frozen(map) => sum(articles, |article| map.get(&article).copied()),
        }
    }
}

#[inline(never)]
fn lookups_in_tree(list: &PriceList, questions: &QueryChain) -> u64 {
    questions.follow(|article| low_half(list.price(article)))
}

#[inline(never)]
fn lookups_in_map(map: &CTreeMap<u64, u64>, questions: &QueryChain) -> u64 {
    questions.follow(|article| low_half(map.get(&article).copied()))
}

#[inline(never)]
fn lookups_in_frozen(map: &FrozenCTreeMap<u64, u64>, questions: &QueryChain) -> u64 {
    questions.follow(|article| low_half(map.get(&article).copied()))
}

#[inline]
fn sum(articles: &[u64], price: impl Fn(u64) -> Option<u64>) -> u64 {
    articles.iter().fold(0_u64, |sum, &article| {
        sum.wrapping_mul(31)
            .wrapping_add(price(black_box(article)).unwrap_or(0))
    })
}

/// The answer as the chain of questions takes it; an article that is missing would change the sum.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low_half(price: Option<u64>) -> u32 {
    price.map_or(u32::MAX, |price| price as u32)
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::{REQUEST_WORDS, Stage, Subject, Traffic, articles};
    use crate::chain::QueryChain;

    #[test]
    fn all_stages_answer_alike() {
        let articles = articles(3000);
        let known: Vec<u64> = articles.iter().map(|&(article, _)| article).collect();
        let questions = QueryChain::sample(&known, 1000, 1);
        let sums = Stage::ALL.map(|stage| {
            let subject = Subject::build(stage, &articles).unwrap();
            (subject.ask(&questions), subject.ask_known(&known))
        });
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
        let others = &articles[1..];
        let other = Subject::build(Stage::Plain, others).unwrap();
        assert_ne!(other.ask_known(&known), sums[0].1);
    }

    #[test]
    fn traffic_changes_and_stays_as_much() {
        let mut traffic = Traffic::with_open(100);
        let before = traffic.open.clone();
        traffic.turn_over();
        assert_eq!(traffic.open.len(), 100);
        assert_ne!(traffic.open, before);
        let sizes = traffic.open.iter().map(Vec::len);
        assert!(sizes.clone().all(|words| REQUEST_WORDS.contains(&words)));
        assert_eq!(sizes.clone().min(), Some(2));
        assert_eq!(sizes.max(), Some(7));
    }
}
