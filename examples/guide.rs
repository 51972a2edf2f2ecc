//! The program of `docs/guide.md`: a price list in a search tree, as first written and after each
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

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use ccmalloc::CcMalloc;
use ccmorph::{Map, MapStyle, Morph, MorphError, TreeNode, map};
use clap::{Parser, ValueEnum};
use ctree::{CTreeMap, FrozenCTreeMap};

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

/// Serves objects from the system's malloc for the stage `plain`, and from `CcMalloc` for the
/// others. A program says `static GLOBAL: CcMalloc = CcMalloc::new();`.
struct Switch;

#[global_allocator]
static GLOBAL: Switch = Switch;
static USE_CCMALLOC: AtomicBool = AtomicBool::new(false);

// SAFETY: both allocators keep the contract. The one that served an object frees it: `contains` is
// true for objects of `CcMalloc` and for no others.
unsafe impl GlobalAlloc for Switch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match USE_CCMALLOC.load(Relaxed) {
            // SAFETY: the caller keeps the contract of `alloc`.
            true => unsafe { CcMalloc.alloc(layout) },
            // SAFETY: as above.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        match ccmalloc::contains(ptr) {
            // SAFETY: `CcMalloc` served it; the caller keeps the contract of `dealloc`.
            true => unsafe { CcMalloc.dealloc(ptr, layout) },
            // SAFETY: the system served it.
            false => unsafe { System.dealloc(ptr, layout) },
        }
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
    /// Sets the price of an article. With `hinted`, allocates a new node near its parent.
    fn set(&mut self, article: u64, price: u64, hinted: bool) {
        let mut link = &mut self.root;
        while let Some(node) = link {
            if article == node.article {
                node.price = price;
                return;
            }
            link = match article < node.article {
                true => &mut node.left,
                false => &mut node.right,
            };
        }
        let node = Node {
            article,
            price,
            left: None,
            right: None,
        };
        // The empty link lies in the parent.
        *link = Some(match hinted {
            true => ccmalloc::near(link, || Box::new(node)),
            false => Box::new(node),
        });
    }

    #[inline]
    fn price(&self, article: u64) -> Option<u64> {
        let mut link = &self.root;
        while let Some(node) = link {
            if article == node.article {
                return Some(node.price);
            }
            link = match article < node.article {
                true => &node.left,
                false => &node.right,
            };
        }
        None
    }
}

/// How the prices are kept.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
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
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
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

/// Seeded random numbers: Steele, Lea and Flood's `SplitMix64`. The outputs in `docs/guide.md`
/// come from this stream.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    #[expect(clippy::cast_possible_truncation, reason = "below a usize")]
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// Articles in the order in which they are added, each with its price.
fn articles(count: u32) -> Vec<(u64, u64)> {
    let mut rng = Rng(11);
    (0..count).map(|_| (rng.next(), rng.next())).collect()
}

/// What a request keeps until it is answered.
fn request(rng: &mut Rng) -> Vec<u64> {
    let words = 2 + rng.below(6);
    vec![rng.next(); words]
}

impl Subject {
    fn build(stage: Stage, articles: &[(u64, u64)]) -> Result<Subject, MorphError> {
        USE_CCMALLOC.store(stage != Stage::Plain, Relaxed);
        // As many open requests as articles.
        let mut rng = Rng(12);
        let requests = articles.iter().map(|_| request(&mut rng));
        let mut requests: Vec<Vec<u64>> = requests.collect();
        let (mut list, mut map) = (PriceList::default(), CTreeMap::new());
        for &(article, price) in articles {
            for _ in 0..8 {
                let begun = request(&mut rng);
                let ended = rng.below(articles.len());
                requests[ended] = begun;
            }
            match stage {
                Stage::Frozen => {}
                Stage::Map => drop(map.insert(article, price)),
                _ => list.set(article, price, stage == Stage::Hinted),
            }
        }
        let mut report = String::new();
        if stage == Stage::Morphed {
            report = Morph::new()
                .run(&mut list.root, Node::children)?
                .to_string();
        }
        let prices = match stage {
            Stage::Frozen => Prices::Frozen(articles.iter().copied().collect()),
            Stage::Map => Prices::Map(map),
            _ => Prices::Tree(list),
        };
        USE_CCMALLOC.store(false, Relaxed);
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

    /// Looks all articles of `questions` up. Profilers name this function.
    #[inline(never)]
    fn lookups(&self, questions: &Questions) -> u64 {
        match &self.prices {
            Prices::Tree(list) => questions.ask(|article| list.price(article)),
            Prices::Map(map) => questions.ask(|article| map.get(&article).copied()),
            Prices::Frozen(map) => questions.ask(|article| map.get(&article).copied()),
        }
    }
}

/// Articles to look up.
enum Questions {
    /// The price before chooses one of two, so that lookups wait for each other.
    Dependent(Vec<[u64; 2]>),
    /// Known ahead.
    Known(Vec<u64>),
}

impl Questions {
    fn dependent(articles: &[(u64, u64)], lookups: u32) -> Questions {
        let mut rng = Rng(13);
        let mut draw = || articles[rng.below(articles.len())].0;
        Questions::Dependent((0..lookups).map(|_| [draw(), draw()]).collect())
    }

    fn known(articles: &[(u64, u64)], lookups: u32) -> Questions {
        let mut known: Vec<u64> = articles.iter().map(|&(article, _)| article).collect();
        let mut rng = Rng(13);
        for end in (1..known.len()).rev() {
            known.swap(end, rng.below(end + 1));
        }
        known.truncate(lookups as usize);
        Questions::Known(known)
    }

    fn len(&self) -> usize {
        match self {
            Questions::Dependent(pairs) => pairs.len(),
            Questions::Known(known) => known.len(),
        }
    }

    /// A sum over all prices in their order.
    #[inline]
    fn ask(&self, price: impl Fn(u64) -> Option<u64>) -> u64 {
        let (mut sum, mut last) = (0_u64, 0);
        let mut add = |article| {
            last = price(article).unwrap_or(0);
            sum = sum.wrapping_mul(31).wrapping_add(last);
            last
        };
        match self {
            Questions::Dependent(pairs) => {
                pairs
                    .iter()
                    .fold(0, |last, pair| add(pair[usize::from(last % 2 == 1)]));
            }
            Questions::Known(known) => known.iter().for_each(|&article| {
                add(black_box(article));
            }),
        }
        sum
    }
}

/// The median nanoseconds of a lookup of each subject. They take turns, so that noise of the
/// machine falls on all of them.
fn medians(subjects: &[Subject], questions: &Questions, rounds: u8) -> Vec<f64> {
    let expected = subjects[0].lookups(questions);
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..rounds {
        for (subject, times) in subjects.iter().zip(&mut times) {
            let start = Instant::now();
            let sum = subject.lookups(questions);
            times.push(start.elapsed().as_secs_f64() * 1e9 / questions.len() as f64);
            assert_eq!(sum, expected, "{:?}: other prices", subject.stage);
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    times.into_iter().map(median).collect()
}

/// One stage alone. The difference between two runs of different rounds is what the lookups cost.
fn run_one(stage: Stage, args: &Args) -> Result<(), MorphError> {
    let articles = articles(args.nodes);
    let questions = Questions::dependent(&articles, args.lookups);
    let subject = [Subject::build(stage, &articles)?];
    let ns = medians(&subject, &questions, args.rounds)[0];
    println!(
        "{}: {} articles, {} times {} lookups, {ns:.0} ns a lookup, checksum {:016x}",
        stage.name(),
        articles.len(),
        args.rounds,
        args.lookups,
        subject[0].lookups(&Questions::known(&articles, args.lookups))
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
    for length in (4..16).map(|power| 1 << (2 * power)) {
        if length > args.nodes {
            break;
        }
        let articles = articles(length);
        let questions = Questions::dependent(&articles, args.lookups);
        let mut subject = [Subject::build(Stage::Plain, &articles)?];
        let ns = medians(&subject, &questions, args.rounds)[0];
        let map = subject[0].map()?.expect("the first stage is a tree");
        let levels: u32 = map.nodes().map(|node| node.depth + 1).sum();
        let levels = f64::from(levels) / f64::from(length);
        println!(
            "| {length} | {} | {levels:.1} | {ns:.0} | {:.1} |",
            u64::from(length) * 32 / 1024,
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
    let waiting = Questions::dependent(&articles, args.lookups);
    let waiting = medians(&subjects, &waiting, args.rounds);
    let known = Questions::known(&articles, args.lookups);
    let known = medians(&subjects, &known, args.rounds);

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
        let (cells, bytes) = match (subject.map()?, &subject.prices) {
            (Some(map), _) => {
                let together = map.edges_within(64) as f64 / map.edges() as f64;
                let blocks = map.touched_by_search(64);
                let pages = map.touched_by_search(4096);
                let cells = format!("{:.1} % | {blocks:.1} | {pages:.1}", together * 100.0);
                (cells, map.pieces(4096).count() * 4096)
            }
            (_, Prices::Map(map)) => ("- | - | -".to_owned(), map.memory_usage()),
            (_, Prices::Frozen(map)) => ("- | - | -".to_owned(), map.memory_usage()),
            (None, Prices::Tree(_)) => unreachable!("a tree has a map"),
        };
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
    for &stage in Stage::value_variants() {
        if let Some(map) = Subject::build(stage, &articles)?.map()? {
            let title = format!("The price list, {}", stage.name());
            let style = MapStyle {
                title,
                path_to: Some(args.nodes / 2),
                ..MapStyle::default()
            };
            let path = folder.join(format!("guide-{}.svg", stage.name()));
            std::fs::write(&path, map.to_svg(&style))?;
            println!("{}: {}\n{map}\n", stage.name(), path.display());
        }
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
