//! The example program `placement`: what each policy does with the objects of three structures, and
//! what that gains.
//!
//! | structure | how it comes to be | hint | an operation |
//! |---|---|---|---|
//! | `tree` | a search tree, keys in random order | the parent | a search |
//! | `chains` | hash chains of 8 links on average, after half as many random deletions, each followed by an append, as there are links | the chain's last link | a walk along one chain |
//! | `list` | a list, from its front to its end | the item before | the step to the next item |
//!
//! Each is built six times from the same data: by the system's malloc, by `CcMalloc` without hints,
//! by `CcMalloc` with hints under each [`Policy`], and once more under the default with three
//! quarters of each page reserved. Its objects have 24 bytes, so that two of them fit a block of
//! 64, and a third does not.
//!
//! All operations of a kind wait for each other. The six of a structure are timed in turns, the
//! medians over the rounds are compared, and their answers must be equal.

mod chains;
mod list;

use std::fmt::{self, Display};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use ccmalloc::{Policy, placement, set_default_policy, set_reserved_blocks};

use crate::chain::QueryChain;
use crate::rng::Rng;
use crate::search_tree::{Node, SearchTree};
use crate::survey::{Survey, page_bytes};
use crate::switch::{Source, born_in};
use crate::timing::{medians_in_turns, timed};
use chains::{HashChains, Link};
use list::{Item, List};

/// Objects of each structure unless said otherwise: 14 MB of them, and 19 MB in glibc's malloc.
const OBJECTS: usize = 600_000;
/// Fewer make no structure worth a figure; more than this, the survey of a tree cannot number.
const OBJECTS_RANGE: std::ops::RangeInclusive<usize> = 1000..=1 << 28;
/// Links of a chain on average.
const CHAIN_LINKS: usize = 8;
/// Searches, and walks along a chain, a round.
const LOOKUPS: usize = 50_000;
/// Walks along the list a round.
const LIST_WALKS: u64 = 4;
const ROUNDS: usize = 7;
/// Three quarters of the 64 blocks of a page: left to hints at what lies on the page, where any
/// are.
const RESERVED_BLOCKS: usize = 48;
/// The unit that moves between memory and cache.
const BLOCK_BYTES: u64 = 64;
const SEED: u64 = 4;

/// How a structure's objects are allocated.
#[derive(Clone, Copy, Debug)]
enum Hints {
    /// By the system's malloc.
    System,
    /// By `CcMalloc`, no hints, which is what null hints come to.
    Null,
    /// By `CcMalloc`, with hints.
    By(Policy),
    /// By `CcMalloc`, with hints and the default policy, and [`RESERVED_BLOCKS`] of each page left
    /// to hints at what lies on it.
    Reserving,
}

impl Hints {
    const ALL: [Hints; 6] = [
        Hints::System,
        Hints::Null,
        Hints::By(Policy::FirstFit),
        Hints::By(Policy::Closest),
        Hints::By(Policy::NewBlock),
        Hints::Reserving,
    ];

    fn name(self) -> &'static str {
        match self {
            Hints::System => "malloc",
            Hints::Null => "no hints",
            Hints::By(Policy::FirstFit) => "FirstFit",
            Hints::By(Policy::Closest) => "Closest",
            Hints::By(Policy::NewBlock) => "NewBlock",
            Hints::Reserving => "NewBlock, ¾ reserved",
        }
    }

    /// What `plain` or, when there are hints to give, `hinted` makes; and what became of the hints.
    fn build<T>(self, plain: impl FnOnce() -> T, hinted: impl FnOnce() -> T) -> (T, Outcomes) {
        let before = Outcomes::now();
        let built = match self {
            Hints::System => born_in(Source::System, plain),
            Hints::Null => born_in(Source::CcMalloc, plain),
            Hints::By(policy) => {
                let default = ccmalloc::default_policy();
                set_default_policy(policy);
                let built = born_in(Source::CcMalloc, hinted);
                set_default_policy(default);
                built
            }
            Hints::Reserving => {
                set_reserved_blocks(RESERVED_BLOCKS);
                let built = born_in(Source::CcMalloc, hinted);
                set_reserved_blocks(0);
                built
            }
        };
        (built, Outcomes::now().since(before))
    }
}

/// The counts of a `PlacementReport`, in the order of its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcomes([u64; 6]);

impl Outcomes {
    /// All hinted allocations of the process so far.
    fn now() -> Self {
        let report = placement();
        Outcomes([
            report.same_block,
            report.same_group,
            report.same_page,
            report.tied_page,
            report.elsewhere,
            report.not_usable,
        ])
    }

    fn since(self, before: Self) -> Self {
        let mut counts = self.0;
        for (count, before) in counts.iter_mut().zip(before.0) {
            *count -= before;
        }
        Outcomes(counts)
    }
}

/// A structure that stands in memory: where its objects lie, and an operation to time.
struct Subject {
    hints: Hints,
    outcomes: Outcomes,
    /// Share of the objects that lie in one block with the one before them: their parent, or the
    /// link or item that leads to them.
    together: f64,
    bytes_per_object: f64,
    /// Runs all operations of a round and returns a sum over their answers.
    pass: Box<dyn FnMut() -> u64>,
}

impl Subject {
    fn new(
        hints: Hints,
        outcomes: Outcomes,
        survey: &Pairs,
        pass: impl FnMut() -> u64 + 'static,
    ) -> Self {
        Subject {
            hints,
            outcomes,
            together: survey.together(),
            bytes_per_object: survey.bytes_per_object(),
            pass: Box::new(pass),
        }
    }
}

/// Objects of 24 bytes, and which of them lie together.
#[derive(Default)]
struct Pairs {
    addresses: Vec<u64>,
    pairs: u64,
    in_one_block: u64,
}

impl Pairs {
    /// The objects along one way, each of which leads to the next.
    fn add_way<'a, T: 'a>(&mut self, way: impl Iterator<Item = &'a T>) {
        let mut before: Option<u64> = None;
        for object in way {
            let address = std::ptr::from_ref(object).addr() as u64;
            if let Some(before) = before {
                self.pairs += 1;
                self.in_one_block += u64::from(before / BLOCK_BYTES == address / BLOCK_BYTES);
            }
            before = Some(address);
            self.addresses.push(address);
        }
    }

    fn together(&self) -> f64 {
        self.in_one_block as f64 / self.pairs.max(1) as f64
    }

    fn bytes_per_object(&self) -> f64 {
        let bytes = page_bytes(self.addresses.iter().copied(), size_of::<Link>() as u64);
        bytes as f64 / self.addresses.len().max(1) as f64
    }
}

fn trees(objects: usize) -> Vec<Subject> {
    let keys = distinct_keys(objects);
    let chain = QueryChain::sample(&keys, LOOKUPS, SEED);
    let grow = |insert: fn(&mut SearchTree, u64) -> bool| {
        let mut tree = SearchTree::new();
        for &key in &keys {
            insert(&mut tree, key);
        }
        tree
    };
    let subject = |hints: Hints| {
        let (tree, outcomes) = hints.build(
            || grow(SearchTree::insert),
            || grow(SearchTree::insert_near_parent),
        );
        let survey = Survey::of(&tree);
        let together = survey.share_with_parent(BLOCK_BYTES);
        let bytes_per_object = survey.page_bytes() as f64 / tree.len() as f64;
        let chain = chain.clone();
        Subject {
            hints,
            outcomes,
            together,
            bytes_per_object,
            pass: Box::new(move || chain.follow(|key| search(&tree, key))),
        }
    };
    Hints::ALL.map(subject).into()
}

/// The low half of the key that is found. It is read back through a reference that the compiler
/// knows nothing about: from the query alone the answer must not be told, or searches would not
/// wait for each other.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is enough")]
fn search(tree: &SearchTree, key: u64) -> u32 {
    match tree.lower_bound(key) {
        Some(node) => black_box::<&Node>(node).key as u32,
        None => u32::MAX,
    }
}

fn chains(objects: usize) -> Vec<Subject> {
    let subject = |hints: Hints| {
        let ((chains, keys), outcomes) = hints.build(
            || aged_chains(objects, HashChains::append),
            || aged_chains(objects, HashChains::append_near_last),
        );
        let mut pairs = Pairs::default();
        chains.chains().for_each(|chain| pairs.add_way(chain));
        let chain = QueryChain::sample(&keys, LOOKUPS, SEED);
        Subject::new(hints, outcomes, &pairs, move || {
            chain.follow(|key| chains.walk(key))
        })
    };
    Hints::ALL.map(subject).into()
}

/// Chains of `links` random keys, after half as many times one of them was deleted and another
/// appended; and the keys that they hold.
fn aged_chains(links: usize, append: fn(&mut HashChains, u64, u64)) -> (HashChains, Vec<u64>) {
    let mut chains = HashChains::new(links.div_ceil(CHAIN_LINKS));
    let mut rng = Rng::new(SEED);
    let mut keys = distinct_keys(links);
    for &key in &keys {
        append(&mut chains, key, !key);
    }
    for _ in 0..links / 2 {
        let index = rng.below(links);
        let old = std::mem::replace(&mut keys[index], rng.next_u64());
        assert_eq!(chains.remove(old), Some(!old), "each key is in a chain");
        append(&mut chains, keys[index], !keys[index]);
    }
    assert_eq!(chains.len(), links);
    (chains, keys)
}

fn lists(objects: usize) -> Vec<Subject> {
    let subject = |hints: Hints| {
        let (list, outcomes) = hints.build(
            || List::with_len(objects as u64),
            || List::with_len_near_last(objects as u64),
        );
        let mut pairs = Pairs::default();
        pairs.add_way::<Item>(list.items());
        assert_eq!(pairs.addresses.len(), objects);
        Subject::new(hints, outcomes, &pairs, move || {
            (0..LIST_WALKS).fold(0, |sum, _| black_box(&list).walk().wrapping_add(sum))
        })
    };
    Hints::ALL.map(subject).into()
}

/// So many keys, no two alike, in random order.
fn distinct_keys(count: usize) -> Vec<u64> {
    // Multiplication by an odd number is a permutation of u64, and spreads the keys over it.
    let mut keys: Vec<u64> = (0..count as u64)
        .map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .collect();
    Rng::new(SEED).shuffle(&mut keys);
    keys
}

/// A row of the table.
#[derive(Debug)]
struct Row {
    structure: &'static str,
    hints: Hints,
    outcomes: Outcomes,
    together: f64,
    bytes_per_object: f64,
    /// How many times as fast as the system's malloc.
    speedup: f64,
}

impl Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} |", self.structure, self.hints.name())?;
        let Outcomes(counts) = self.outcomes;
        let hinted: u64 = counts.iter().sum();
        for count in counts {
            if hinted == 0 {
                write!(f, " |")?;
            } else {
                write!(f, " {:.1} |", count as f64 * 100.0 / hinted as f64)?;
            }
        }
        let together = self.together * 100.0;
        write!(
            f,
            " {together:.1} | {:.1} | {:.2}x |",
            self.bytes_per_object, self.speedup
        )
    }
}

const HEADER: &str = "\
| structure | hints | same_block | same_group | same_page | tied_page | elsewhere | not_usable | % in one block | B an object | speed |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

/// The rows of one structure, or what is wrong with its answers.
fn compare(structure: &'static str, mut subjects: Vec<Subject>) -> Result<Vec<Row>, String> {
    let answers: Vec<u64> = subjects
        .iter_mut()
        .map(|subject| (subject.pass)())
        .collect();
    if let Some((subject, _)) = (subjects.iter().zip(&answers)).find(|(_, sum)| **sum != answers[0])
    {
        let name = subject.hints.name();
        return Err(format!("{structure}, {name}: other answers than malloc's"));
    }
    let mut passes: Vec<_> = subjects
        .iter_mut()
        .map(|subject| {
            let expected = answers[0];
            move || {
                let (time, sum) = timed(&mut subject.pass);
                assert_eq!(sum, expected, "the same structure, the same questions");
                time
            }
        })
        .collect();
    let mut turns: Vec<&mut dyn FnMut() -> Duration> = Vec::new();
    for pass in &mut passes {
        turns.push(pass);
    }
    let medians = medians_in_turns(ROUNDS, &mut turns);
    drop(passes);
    let rows = subjects.iter().zip(&medians).map(|(subject, time)| Row {
        structure,
        hints: subject.hints,
        outcomes: subject.outcomes,
        together: subject.together,
        bytes_per_object: subject.bytes_per_object,
        speedup: medians[0].as_secs_f64() / time.as_secs_f64(),
    });
    Ok(rows.collect())
}

/// How many objects a structure shall have, as the command line says.
fn objects_from(mut arguments: impl Iterator<Item = String>) -> Result<usize, String> {
    let objects = match arguments.next() {
        None => OBJECTS,
        Some(number) => (number.parse().ok())
            .filter(|objects| OBJECTS_RANGE.contains(objects))
            .ok_or(format!(
                "{number}: a number of objects from {} to {} is wanted",
                OBJECTS_RANGE.start(),
                OBJECTS_RANGE.end()
            ))?,
    };
    match arguments.next() {
        None => Ok(objects),
        Some(more) => Err(format!(
            "{more}: nothing is known to do with a second argument"
        )),
    }
}

/// Builds a structure of so many objects in each way.
type Build = fn(usize) -> Vec<Subject>;

/// Runs the program and prints its table as Markdown.
///
/// # Panics
/// When a structure gives other answers than a moment ago.
pub fn run_from_command_line() -> ExitCode {
    let objects = match objects_from(std::env::args().skip(1)) {
        Ok(objects) => objects,
        Err(message) => {
            eprintln!("placement: {message}");
            return ExitCode::from(2);
        }
    };
    println!("{objects} objects of 24 B a structure; hints in percent of the hinted allocations\n");
    println!("{HEADER}");
    // One structure at a time: its six live together, and are gone before the next.
    let structures: [(&'static str, Build); 3] =
        [("tree", trees), ("chains", chains), ("list", lists)];
    for (name, build) in structures {
        match compare(name, build(objects)) {
            Ok(rows) => rows.iter().for_each(|row| println!("{row}")),
            Err(message) => {
                eprintln!("placement: {message}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::{OBJECTS, Pairs, compare, distinct_keys, lists, objects_from, trees};

    #[test]
    fn the_command_line_names_a_number_or_nothing() {
        let objects = |arguments: &[&str]| objects_from(arguments.iter().map(ToString::to_string));
        assert_eq!(objects(&[]), Ok(OBJECTS));
        assert_eq!(objects(&["5000"]), Ok(5000));
        for wrong in [&["0"][..], &["many"], &["-1"], &["5000", "6000"]] {
            assert!(objects(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn pairs_in_one_block_are_counted_along_a_way() {
        #[repr(align(64))]
        struct Blocks([u64; 24]);
        let blocks = Blocks([0; 24]);
        let Blocks(words) = &blocks;
        let mut pairs = Pairs::default();
        pairs.add_way([&words[0], &words[7], &words[8], &words[3]].into_iter());
        pairs.add_way([&words[16]].into_iter());
        assert_eq!((pairs.pairs, pairs.in_one_block), (3, 1));
        assert!((pairs.together() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn keys_are_distinct() {
        let mut keys = distinct_keys(1000);
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 1000);
    }

    #[test]
    fn other_answers_are_an_error() {
        let mut subjects = trees(1000);
        subjects[3] = trees(1001).remove(3);
        let error = compare("tree", subjects).unwrap_err();
        assert_eq!(error, "tree, Closest: other answers than malloc's");
        assert_eq!(compare("list", lists(1000)).unwrap().len(), 6);
    }
}
