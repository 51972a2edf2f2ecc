//! A price list in a search tree (figures in `docs/use/faq.md`), as first written and after each
//! cure.
//!
//! ```text
//! cargo run --release --example guide                      all stages, timed in turns
//! cargo run --release --example guide -- --growth          the first stage, small to large
//! cargo run --release --example guide -- --stage plain     one stage alone, for valgrind and perf
//! cargo run --release --example guide -- --nodes 2000 --pictures FOLDER
//! ```
//!
//! The list grows while requests come and go in the same heap, so a node gets a place that was
//! freed somewhere, as in a program that has run for a while.

use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use ccmorph::{Map, MapStyle, Morph, MorphError, TreeNode, map};
use clap::{Parser, ValueEnum};
use ctree::{CTreeMap, FrozenCTreeMap};
use examples::{Switch, dependent_lookups, median, time_in_turns, with_ccmalloc};
use fastrand::Rng;

#[global_allocator]
static GLOBAL: Switch = Switch;

/// A price list in a search tree, as first written and after each cure.
#[derive(Parser)]
struct Args {
    /// Articles on the list
    #[arg(long, default_value = "1048576", value_parser = clap::value_parser!(u32).range(16..))]
    nodes: u32,
    /// Lookups in each round
    #[arg(long, default_value = "100000", value_parser = clap::value_parser!(u32).range(1..))]
    lookups: u32,
    /// Rounds whose median is shown
    #[arg(long, default_value = "9", value_parser = clap::value_parser!(u8).range(1..))]
    rounds: u8,
    /// Only this stage
    #[arg(long, conflicts_with_all = ["growth", "pictures"])]
    stage: Option<Stage>,
    /// Only the first stage, with lists of up to `--nodes`
    #[arg(long, conflicts_with = "pictures")]
    growth: bool,
    /// Draw where the nodes lie, into this folder
    #[arg(long)]
    pictures: Option<PathBuf>,
}

/// How the prices are kept.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Stage {
    /// A tree of boxes from the system's malloc
    Plain,
    /// Each node allocated near its parent, by ccmalloc
    Hinted,
    /// The finished tree morphed once, by ccmorph
    Morphed,
    /// A `ctree::CTreeMap` in place of the tree
    Map,
    /// A `ctree::FrozenCTreeMap`, made once from all prices
    Frozen,
}

impl Stage {
    fn name(self) -> &'static str {
        ["plain", "hinted", "morphed", "map", "frozen"][self as usize]
    }
}

/// An article and its price: 32 bytes, so that two of them fit a block of 64.
#[derive(TreeNode)]
struct Node {
    article: u64,
    price: u64,
    #[child]
    left: Option<Box<Node>>,
    #[child]
    right: Option<Box<Node>>,
}

/// Prices by article.
#[derive(Default)]
struct PriceList {
    root: Option<Box<Node>>,
}

impl PriceList {
    /// Sets the price of a new article. With `hinted`, allocates its node near the parent.
    fn set(&mut self, article: u64, price: u64, hinted: bool) {
        let mut link = &mut self.root;
        while let Some(node) = link {
            link = if article < node.article {
                &mut node.left
            } else {
                &mut node.right
            };
        }
        let (left, right) = (None, None);
        let node = Node {
            article,
            price,
            left,
            right,
        };
        // The empty link lies in the parent.
        *link = Some(if hinted {
            ccmalloc::near(link, || Box::new(node))
        } else {
            Box::new(node)
        });
    }

    #[inline]
    fn price(&self, article: u64) -> Option<u64> {
        let mut link = &self.root;
        while let Some(node) = link {
            if article == node.article {
                return Some(node.price);
            }
            link = if article < node.article {
                &node.left
            } else {
                &node.right
            };
        }
        None
    }
}

/// Articles in the order in which they are added, each with its price.
fn articles(count: u32) -> Vec<(u64, u64)> {
    let mut rng = Rng::with_seed(11);
    (0..count).map(|_| (rng.u64(..), rng.u64(..))).collect()
}

/// Pairs of articles to look up.
fn queries(articles: &[(u64, u64)], lookups: u32) -> Vec<[u64; 2]> {
    let mut rng = Rng::with_seed(13);
    let mut article = || articles[rng.usize(..articles.len())].0;
    (0..lookups).map(|_| [article(), article()]).collect()
}

#[expect(clippy::large_enum_variant, reason = "a stage holds one of them")]
enum Prices {
    Tree(PriceList),
    Map(CTreeMap<u64, u64>),
    Frozen(FrozenCTreeMap<u64, u64>),
}

/// The prices as a stage keeps them.
struct Subject {
    stage: Stage,
    prices: Prices,
    /// Kept, so that the heap stays as it was while the list grew.
    _requests: Vec<Vec<u64>>,
    /// What the morph reported.
    report: String,
}

impl Subject {
    fn build(stage: Stage, articles: &[(u64, u64)]) -> Result<Subject, MorphError> {
        with_ccmalloc(stage != Stage::Plain, || {
            Subject::build_here(stage, articles)
        })
    }

    fn build_here(stage: Stage, articles: &[(u64, u64)]) -> Result<Subject, MorphError> {
        let mut rng = Rng::with_seed(12);
        // What a request keeps until it is answered. As many are open as there are articles.
        let request = |rng: &mut Rng| vec![rng.u64(..); rng.usize(2..8)];
        let mut requests: Vec<_> = articles.iter().map(|_| request(&mut rng)).collect();
        let (mut list, mut map) = (PriceList::default(), CTreeMap::new());
        for &(article, price) in articles {
            for _ in 0..8 {
                let begun = request(&mut rng);
                requests[rng.usize(..articles.len())] = begun;
            }
            match stage {
                Stage::Frozen => {}
                Stage::Map => drop(map.insert(article, price)),
                _ => list.set(article, price, stage == Stage::Hinted),
            }
        }
        let mut report = String::new();
        if stage == Stage::Morphed {
            let morphed = Morph::new().run(&mut list.root, Node::children)?;
            report = morphed.to_string();
        }
        let prices = match stage {
            Stage::Frozen => Prices::Frozen(articles.iter().copied().collect()),
            Stage::Map => Prices::Map(map),
            _ => Prices::Tree(list),
        };
        Ok(Subject {
            stage,
            prices,
            _requests: requests,
            report,
        })
    }

    /// Where the nodes lie; `None` for maps.
    fn map(&mut self) -> Result<Option<Map>, MorphError> {
        match &mut self.prices {
            Prices::Tree(list) => map(&mut list.root, Node::children).map(Some),
            Prices::Map(_) | Prices::Frozen(_) => Ok(None),
        }
    }

    /// A sum over the prices of one article of each pair: the price before chooses it (`waiting`),
    /// or it is the first. Profilers name this function.
    #[inline(never)]
    fn lookups(&self, queries: &[[u64; 2]], waiting: bool) -> u64 {
        match &self.prices {
            Prices::Tree(list) => sum(queries, waiting, |article| list.price(article)),
            Prices::Map(map) => sum(queries, waiting, |article| map.get(&article).copied()),
            Prices::Frozen(map) => sum(queries, waiting, |article| map.get(&article).copied()),
        }
    }
}

#[inline]
fn sum(queries: &[[u64; 2]], waiting: bool, price: impl Fn(u64) -> Option<u64>) -> u64 {
    let price = |article| price(article).unwrap_or(0);
    if waiting {
        return dependent_lookups(queries, price);
    }
    let prices = queries
        .iter()
        .map(|&[article, _]| price(black_box(article)));
    prices.fold(0, |sum, price| sum.wrapping_mul(31).wrapping_add(price))
}

/// The median nanoseconds of a lookup of each subject.
fn medians(subjects: &[Subject], queries: &[[u64; 2]], waiting: bool, rounds: u8) -> Vec<f64> {
    let passes = subjects
        .iter()
        .map(|subject| || subject.lookups(queries, waiting));
    let times = time_in_turns(rounds.into(), &passes.collect::<Vec<_>>());
    let ns = |seconds: &Vec<f64>| median(seconds) * 1e9 / queries.len() as f64;
    times.iter().map(ns).collect()
}

/// One stage alone. The difference between two runs of different rounds is what the lookups cost.
fn run_one(stage: Stage, args: &Args) -> Result<(), MorphError> {
    let articles = articles(args.nodes);
    let queries = queries(&articles, args.lookups);
    let subject = [Subject::build(stage, &articles)?];
    let ns = medians(&subject, &queries, true, args.rounds)[0];
    println!(
        "{}: {} articles, {} times {} lookups, {ns:.0} ns a lookup, checksum {:016x}",
        stage.name(),
        articles.len(),
        args.rounds,
        args.lookups,
        subject[0].lookups(&queries, false)
    );
    match stage {
        Stage::Hinted => println!("\n{:#?}", ccmalloc::placement()),
        Stage::Morphed => println!("\n{}", subject[0].report),
        _ => {}
    }
    Ok(())
}

/// The program as first written, with longer and longer lists.
fn grow(args: &Args) -> Result<(), MorphError> {
    println!("| articles | KiB of nodes | levels a lookup | ns a lookup | ns a level |");
    println!("|---:|---:|---:|---:|---:|");
    let lengths = (4..16).map(|power| 1 << (2 * power));
    for length in lengths.take_while(|&length| length <= args.nodes) {
        let articles = articles(length);
        let queries = queries(&articles, args.lookups);
        let mut subject = [Subject::build(Stage::Plain, &articles)?];
        let ns = medians(&subject, &queries, true, args.rounds)[0];
        let map = subject[0].map()?.expect("the first stage is a tree");
        let levels: u32 = map.nodes().map(|node| node.depth + 1).sum();
        let levels = f64::from(levels) / f64::from(length);
        let kib = u64::from(length) * 32 / 1024;
        println!(
            "| {length} | {kib} | {levels:.1} | {ns:.0} | {:.1} |",
            ns / levels
        );
    }
    Ok(())
}

/// All stages in one table.
fn compare(args: &Args) -> Result<(), MorphError> {
    let articles = articles(args.nodes);
    let stages = Stage::value_variants().iter();
    let subjects = stages.map(|&stage| Subject::build(stage, &articles));
    let mut subjects = subjects.collect::<Result<Vec<_>, _>>()?;
    let queries = queries(&articles, args.lookups);
    let waiting = medians(&subjects, &queries, true, args.rounds);
    let known = medians(&subjects, &queries, false, args.rounds);

    println!(
        "{} articles; ns of a lookup, where each waits for the one before and where none does\n",
        articles.len()
    );
    println!(
        "| stage | in the parent's block | blocks a lookup | pages a lookup | B an article \
         | ns, waiting | speed | ns, known ahead | speed |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (index, subject) in subjects.iter_mut().enumerate() {
        let mut cells = "- | - | -".to_owned();
        let mut bytes = match &subject.prices {
            Prices::Tree(_) => 0,
            Prices::Map(map) => map.memory_usage(),
            Prices::Frozen(map) => map.memory_usage(),
        };
        if let Some(map) = subject.map()? {
            let together = map.edges_within(64) as f64 / map.edges() as f64 * 100.0;
            let [blocks, pages] = [64, 4096].map(|bytes| map.touched_by_search(bytes));
            cells = format!("{together:.1} % | {blocks:.1} | {pages:.1}");
            bytes = map.pieces(4096).count() * 4096;
        }
        println!(
            "| {} | {cells} | {:.1} | {:.0} | {:.2}x | {:.0} | {:.2}x |",
            subject.stage.name(),
            bytes as f64 / articles.len() as f64,
            waiting[index],
            waiting[0] / waiting[index],
            known[index],
            known[0] / known[index]
        );
    }
    Ok(())
}

/// A picture of each stage that is a tree, with the path to a node half way down.
fn draw(folder: &Path, args: &Args) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let articles = articles(args.nodes);
    for stage in [Stage::Plain, Stage::Hinted, Stage::Morphed] {
        let map = Subject::build(stage, &articles)?.map()?;
        let style = MapStyle {
            title: format!("The price list, {}", stage.name()),
            path_to: Some(args.nodes / 2),
            ..MapStyle::default()
        };
        let path = folder.join(format!("guide-{}.svg", stage.name()));
        let map = map.expect("these stages are trees");
        std::fs::write(&path, map.to_svg(&style))?;
        println!("{}: {}\n{map}\n", stage.name(), path.display());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    match (args.stage, &args.pictures) {
        (Some(stage), _) => run_one(stage, &args)?,
        (None, Some(folder)) => draw(folder, &args)?,
        (None, None) if args.growth => grow(&args)?,
        (None, None) => compare(&args)?,
    }
    Ok(())
}
