//! The example program `guide`, which `docs/guide.md` works through: from the symptom to the cure,
//! on one program.
//!
//! | module | holds |
//! |---|---|
//! | `price_list` | the program: prices in a search tree |
//! | `stage` | the same prices as they were kept first and after each cure, and the traffic that goes on meanwhile |
//! | `args` | the command line |
//!
//! Without options all stages are built, asked the same questions in turns, and put into one table;
//! their answers must be equal. Counts (who shares a block with its parent, how many blocks and
//! pages a lookup goes through) are exact and the same on each machine of the same system's malloc;
//! times are not.

mod args;
mod price_list;
mod stage;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use ccmorph::{Map, MapStyle, MorphError};

use crate::chain::QueryChain;
use crate::survey::page_bytes;
use crate::timing::{medians_in_turns, nanoseconds_each, timed};
use args::Args;
use stage::{Stage, Subject, articles};

const QUESTIONS_SEED: u64 = 13;
const BLOCK_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 4096;
/// The shortest list of `--growth`, and by how much the next one is longer.
const GROWTH_FROM: usize = 1 << 8;
const GROWTH_FACTOR: usize = 4;

/// Reads the arguments, does what they say, and tells what went wrong.
pub fn run_from_command_line() -> ExitCode {
    let args = match Args::from_command_line() {
        Ok(args) => args,
        Err(status) => return status,
    };
    let done = match (args.stage, &args.pictures) {
        (Some(stage), _) => run_one(stage, &args),
        (None, Some(folder)) => draw(folder, &args),
        (None, None) if args.growth => grow(&args),
        (None, None) => compare(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("guide: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
enum Error {
    Morph(MorphError),
    WrongAnswers(Stage),
    File(PathBuf, io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Morph(error) => error.fmt(f),
            Error::WrongAnswers(stage) => write!(f, "{stage}: other answers than plain's"),
            Error::File(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl From<MorphError> for Error {
    fn from(error: MorphError) -> Error {
        Error::Morph(error)
    }
}

/// Questions about articles that are on the list.
struct Questions {
    chain: QueryChain,
    known: Vec<u64>,
}

impl Questions {
    fn about(articles: &[(u64, u64)], lookups: usize) -> Questions {
        let mut known: Vec<u64> = articles.iter().map(|&(article, _)| article).collect();
        let chain = QueryChain::sample(&known, lookups, QUESTIONS_SEED);
        crate::rng::Rng::new(QUESTIONS_SEED).shuffle(&mut known);
        known.truncate(lookups);
        Questions { chain, known }
    }
}

/// One stage alone, for tools that watch a process. What the lookups of a round cost is the
/// difference between two runs that differ in their rounds: both build the same list, and draw the
/// same questions.
fn run_one(stage: Stage, args: &Args) -> Result<(), Error> {
    let articles = articles(args.nodes);
    let questions = Questions::about(&articles, args.lookups);
    let subject = Subject::build(stage, &articles)?;
    let ns = median_ns(args, questions.chain.len(), &[&subject], |subject| {
        subject.ask(&questions.chain)
    })?[0];
    println!(
        "{stage}: {} articles, {} times {} lookups, {ns:.0} ns a lookup, checksum {:016x}",
        articles.len(),
        args.rounds,
        questions.chain.len(),
        subject.ask_known(&questions.known)
    );
    if let Some(morph) = &subject.morph {
        println!("\n{morph}");
    }
    if stage == Stage::Hinted {
        println!("\n{:#?}", ccmalloc::placement());
    }
    Ok(())
}

/// The program as it was written, with ever longer lists.
fn grow(args: &Args) -> Result<(), Error> {
    println!("| articles | KiB of nodes | levels a lookup | ns a lookup | ns a level |");
    println!("|---:|---:|---:|---:|---:|");
    let lengths = std::iter::successors(Some(GROWTH_FROM), |length| {
        length.checked_mul(GROWTH_FACTOR)
    });
    for length in lengths.take_while(|&length| length <= args.nodes) {
        let articles = articles(length);
        let questions = Questions::about(&articles, args.lookups);
        let mut subject = Subject::build(Stage::Plain, &articles)?;
        let ns = median_ns(args, questions.chain.len(), &[&subject], |subject| {
            subject.ask(&questions.chain)
        })?[0];
        let Some(map) = subject.map()? else { continue };
        let levels = levels_of_lookup(&map);
        println!(
            "| {length} | {} | {levels:.1} | {ns:.0} | {:.1} |",
            length * map.node_bytes() / 1024,
            ns / levels
        );
    }
    Ok(())
}

/// Nodes on the way to a node, the mean over all of them.
fn levels_of_lookup(map: &Map) -> f64 {
    let levels: u64 = map.nodes().map(|node| u64::from(node.depth) + 1).sum();
    levels as f64 / map.len().max(1) as f64
}

/// All stages, in turns.
fn compare(args: &Args) -> Result<(), Error> {
    let articles = articles(args.nodes);
    let questions = Questions::about(&articles, args.lookups);
    let mut subjects = Vec::new();
    for stage in Stage::ALL {
        subjects.push(Subject::build(stage, &articles)?);
    }
    let places = (subjects.iter_mut().map(Places::of)).collect::<Result<Vec<_>, MorphError>>()?;
    let subjects: Vec<&Subject> = subjects.iter().collect();
    let waiting = median_ns(args, questions.chain.len(), &subjects, |subject| {
        subject.ask(&questions.chain)
    })?;
    let known = median_ns(args, questions.known.len(), &subjects, |subject| {
        subject.ask_known(&questions.known)
    })?;

    println!(
        "{} articles; ns of a lookup, where each waits for the one before and where none does\n",
        articles.len()
    );
    println!(
        "| stage | in the parent's block | blocks a lookup | pages a lookup | B an article | ns, waiting | speed | ns, known ahead | speed |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (index, (subject, places)) in subjects.iter().zip(&places).enumerate() {
        println!(
            "| {} | {places} | {:.0} | {:.2}x | {:.0} | {:.2}x |",
            subject.stage,
            waiting[index],
            waiting[0] / waiting[index],
            known[index],
            known[0] / known[index]
        );
    }
    Ok(())
}

/// The median nanoseconds of each subject, asked in turns; equal answers are demanded.
fn median_ns(
    args: &Args,
    lookups: usize,
    subjects: &[&Subject],
    ask: impl Fn(&Subject) -> u64,
) -> Result<Vec<f64>, Error> {
    let sums: Vec<u64> = subjects.iter().map(|subject| ask(subject)).collect();
    if let Some((wrong, _)) = (subjects.iter().zip(&sums)).find(|(_, sum)| **sum != sums[0]) {
        return Err(Error::WrongAnswers(wrong.stage));
    }
    let mut passes: Vec<_> = subjects
        .iter()
        .map(|subject| {
            || {
                let (time, sum) = timed(|| ask(subject));
                assert_eq!(sum, sums[0], "the same list, the same questions");
                time
            }
        })
        .collect();
    let mut turns: Vec<&mut dyn FnMut() -> Duration> = Vec::new();
    for pass in &mut passes {
        turns.push(pass);
    }
    let medians = medians_in_turns(args.rounds.into(), &mut turns);
    Ok(medians
        .into_iter()
        .map(|time| nanoseconds_each(time, lookups))
        .collect())
}

/// Where the nodes lie, counted; four cells of the table.
struct Places {
    /// Share of nodes in the block of their parent, blocks and pages of the mean lookup.
    counts: Option<(f64, f64, f64)>,
    /// Bytes of memory for an article. Of a tree: of the pages that hold a node of it, whole pages
    /// counted, whoever else is on them.
    bytes_per_article: f64,
}

impl Places {
    fn of(subject: &mut Subject) -> Result<Places, MorphError> {
        Ok(match subject.map()? {
            Some(map) => {
                let addresses = map.nodes().map(|node| node.address);
                let bytes = page_bytes(addresses, map.node_bytes() as u64);
                Places {
                    counts: Some((
                        map.edges_within(BLOCK_BYTES) as f64 / map.edges().max(1) as f64,
                        map.touched_by_search(BLOCK_BYTES),
                        map.touched_by_search(PAGE_BYTES),
                    )),
                    bytes_per_article: bytes as f64 / map.len().max(1) as f64,
                }
            }
            None => Places {
                counts: None,
                bytes_per_article: subject.map_bytes().unwrap_or(0) as f64
                    / subject.len().max(1) as f64,
            },
        })
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.counts {
            Some((together, blocks, pages)) => {
                write!(f, "{:.1} % | {blocks:.1} | {pages:.1}", together * 100.0)?;
            }
            None => f.write_str("- | - | -")?,
        }
        write!(f, " | {:.1}", self.bytes_per_article)
    }
}

/// A picture of each stage that has nodes of its own.
fn draw(folder: &Path, args: &Args) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|error| Error::File(folder.to_owned(), error))?;
    let articles = articles(args.nodes);
    for stage in Stage::ALL {
        let Some(map) = Subject::build(stage, &articles)?.map()? else {
            continue;
        };
        // Nodes are numbered level by level: this one is half way down.
        let goal = u32::try_from(map.len() / 2).unwrap_or(0);
        let style = MapStyle::new()
            .title(format!("The price list, {stage}"))
            .path_to(goal);
        let path = folder.join(format!("guide-{stage}.svg"));
        fs::write(&path, map.to_svg(&style)).map_err(|error| Error::File(path.clone(), error))?;
        println!("{stage}: {}\n{map}\n", path.display());
    }
    Ok(())
}
