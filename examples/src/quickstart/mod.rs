//! The main job, end to end: where should the nodes of a search tree over real text lie, and what
//! does it gain?
//!
//! One node for each sampled position of the text, keyed by the characters that follow it; a lookup
//! asks for the next occurrence of a phrase at or after a position. The same lookups go through the
//! same keys as five structures: the tree as malloc left it, the tree built with hints, the tree
//! after `ccmorph`, the `ctree` and std's `BTreeMap`. One table, one sentence.
//!
//! | module | holds |
//! |---|---|
//! | `args` | the command line |
//! | `text` | the text: embedded names or a file |
//! | `blocks` | what a lookup reads in the two maps that have nodes of many keys |
//! | `keys` | text positions as ordered `u64` keys, and the sample of them |
//! | `rows` | the five structures: how each is built, asked, predicted and weighed |
//! | `verify` | answers against each other and against a plain search of the text |
//! | `report` | the table, the JSON object, the Markdown table |
//! | `verdict` | the sentence |
//! | `progress` | the bar while it builds |
//! | `error` | what ends the program with one line |

mod args;
mod blocks;
mod error;
mod keys;
mod progress;
mod report;
mod rows;
mod text;
mod verdict;
mod verify;

use std::cell::Cell;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::chain::QueryChain;
use crate::timing::{nanoseconds_each, timed, times_in_turns};
use ccmodel::{CalibrateOptions, Machine};

use self::args::{Args, Output};
use self::error::UserError;
use self::keys::PositionKeys;
use self::progress::Progress;
use self::report::{Report, Row};
use self::rows::Structures;
use self::text::Text;
pub use self::verdict::{Figures, advice};
use self::verify::verify;

/// Rounds over which the median is taken; each round times each structure once.
const ROUNDS: usize = 7;

/// Exit code for input that cannot be used, as of `clap`.
const EXIT_BAD_INPUT: u8 = 2;

/// Reads the program's arguments, does the work, and prints the result; returns how the program
/// should end.
///
/// Needs [`SwitchAllocator`](crate::switch::SwitchAllocator) as the global allocator. Bad input
/// ends in one line on standard error and exit code 2.
pub fn run_from_command_line() -> ExitCode {
    let args = match Args::from_command_line() {
        Ok(args) => args,
        Err(exit) => return exit,
    };
    match run(&args) {
        Ok(output) => print(&output),
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::from(EXIT_BAD_INPUT)
        }
    }
}

/// All of the work; returns what belongs on standard output.
fn run(args: &Args) -> Result<String, UserError> {
    let machine = args
        .machine
        .as_deref()
        .map(args::read_machine)
        .transpose()?;
    let text = Text::load(args.file.as_deref())?;
    let positions = PositionKeys::sample(&text, args.nodes, args.seed)?;
    let progress = Progress::new(args.shows_progress(), positions.keys().len());

    let machine = match machine {
        Some(machine) => machine,
        None => progress.step("measuring this machine", || {
            Machine::calibrate(CalibrateOptions::quick())
        }),
    };
    let structures = Structures::build(&positions, &machine, &progress)?;
    let checks = progress.step("comparing the answers", || {
        verify(&structures, &positions, &text, args.seed)
    })?;
    let chain = QueryChain::sample(positions.keys(), args.lookups, args.seed);
    let measured = progress.step("timing the lookups", || measure(&structures, &chain))?;
    let rows = progress.step("predicting", || {
        let predict = |(structure, rounds)| Row::of(structure, rounds, &machine);
        structures.iter().zip(measured).map(predict).collect()
    });
    progress.finish();

    let report = Report {
        rows,
        machine: &machine,
        text: &text,
        positions: &positions,
        checks,
        args,
    };
    Ok(match args.output() {
        Output::Table => report.table(),
        Output::Json => report.json(),
        Output::Markdown => report.markdown(),
    })
}

/// Nanoseconds a lookup for each structure, in their order, in each of the rounds in which all take
/// turns.
///
/// The first, untimed pass warms the caches up and yields the sum of answers that every later pass
/// must repeat.
fn measure(structures: &Structures, chain: &QueryChain) -> Result<Vec<Vec<f64>>, UserError> {
    let expected: Vec<u64> = structures
        .iter()
        .map(|structure| structure.follow(chain))
        .collect();
    if expected.iter().any(|&sum| sum != expected[0]) {
        return Err(UserError::wrong_answers("the timed lookups"));
    }
    let agree = Cell::new(true);
    let mut passes: Vec<_> = structures
        .iter()
        .map(|structure| {
            || {
                let (time, sum) = timed(|| structure.follow(chain));
                agree.set(agree.get() && sum == expected[0]);
                time
            }
        })
        .collect();
    let mut subjects: Vec<&mut dyn FnMut() -> Duration> = Vec::new();
    subjects.extend(
        passes
            .iter_mut()
            .map(|pass| pass as &mut dyn FnMut() -> Duration),
    );
    let rounds = times_in_turns(ROUNDS, &mut subjects);
    if !agree.get() {
        return Err(UserError::wrong_answers("the timed lookups"));
    }
    let each = |time| nanoseconds_each(time, chain.len());
    Ok(rounds
        .into_iter()
        .map(|times| times.into_iter().map(each).collect())
        .collect())
}

/// Writes `output`; a reader that went away early (`| head`) is no fault of ours.
fn print(output: &str) -> ExitCode {
    match std::io::stdout().lock().write_all(output.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: cannot write the result: {error}");
            ExitCode::FAILURE
        }
    }
}
