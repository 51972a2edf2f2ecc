//! One run of one program, in a process of its own; and the parent's side of it.
//!
//! ```text
//! BENCHES_ALLOCATOR=ccmalloc report --worker olden:treeadd:aged:new-block:quick
//!                                                  │       │     │         └─ Size
//!                                                  │       │     └─ Variant: placement, layout
//!                                                  │       └─ Setting
//!                                                  └─ one of PROGRAMS
//! ```
//!
//! The worker makes the input, ages the heap where asked to, and then builds, lays out where asked
//! to, and works; these three are timed. It checks its result, prints one line of JSON and ends
//! without freeing anything, as the originals do. A [`Mode`] may follow the size.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ccmalloc::Policy;
use ccmodel::{CacheGeometry, Machine};
use ccmorph::{Morph, MorphError};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::age::age;
use super::bisort::Bisort;
use super::em3d::Em3d;
use super::health::Health;
use super::mst::Mst;
use super::perimeter::Perimeter;
use super::treeadd::TreeAdd;
use super::tsp::Tsp;
use super::{Olden, Size};
use crate::dispatch::served_by;
use crate::placement::{AS_ALLOCATED, Hinted, NullHinted, PREFETCHED, Placement};
use crate::sys::peak_resident_bytes;
use crate::timing::timed;

/// The programs. Adding one is a file and a line here, and one in [`crate::suites::olden`].
pub const PROGRAMS: &[Program] = &[
    Program::of::<TreeAdd>(),
    Program::of::<Perimeter>(),
    Program::of::<Bisort>(),
    Program::of::<Health>(),
    Program::of::<Mst>(),
    Program::of::<Em3d>(),
    Program::of::<Tsp>(),
];

/// What names of runs begin with.
const PREFIX: &str = "olden";

/// The share of the cache that colours keep for the first nodes; the thesis's figure 2-3 shows
/// half.
const HOT_SHARE: f64 = 0.5;

/// A program, whatever its types.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name in names of comparisons.
    pub name: &'static str,
    /// The variant that is called hinted: under the program's own policy.
    pub hinted: Variant,
    run: fn(&Run) -> Result<Stages, String>,
}

impl Program {
    const fn of<P: Olden>() -> Program {
        Program {
            name: P::NAME,
            hinted: match P::POLICY {
                Policy::Closest => Variant::Closest,
                Policy::FirstFit => Variant::FirstFit,
                Policy::NewBlock => Variant::NewBlock,
            },
            run: run::<P>,
        }
    }
}

/// The state of the heap when the program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Setting {
    /// The process has just begun.
    Fresh,
    /// See [`super::age`].
    Aged,
}

/// How a program's nodes are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Variant {
    /// By an allocator that is given no hints.
    AsAllocated,
    /// As allocated, with prefetches by hand.
    Prefetched,
    /// By `ccmalloc`, with hints that are all null.
    NullHints,
    /// By `ccmalloc`, hinted.
    Closest,
    /// By `ccmalloc`, hinted.
    FirstFit,
    /// By `ccmalloc`, hinted.
    NewBlock,
    /// As `ccmalloc` allocates without hints, and then by a morph: clustering only.
    Clustered,
    /// As `Clustered`, with colours for half of the cache.
    Coloured,
}

/// What a worker runs, and for which machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// The program. Morphs lay out for this machine.
    Run,
    /// The program, to be simulated. Morphs lay out for the machine of the thesis's table 4.1.
    Rsim,
    /// Only what comes before the build, which a simulation subtracts from the counts of a run.
    Input,
}

/// The name of `value` on the command line.
///
/// # Panics
/// Never: the enums here skip no value.
pub fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value().expect("no value is skipped");
    value.get_name().to_owned()
}

/// What one worker is to do.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// The program.
    pub program: &'static Program,
    /// Its heap.
    pub setting: Setting,
    /// Where its nodes go.
    pub variant: Variant,
    /// Its input.
    pub size: Size,
    /// How much of it, and for which machine.
    pub mode: Mode,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (setting, variant, size) = (name(self.setting), name(self.variant), name(self.size));
        let (program, mode) = (self.program.name, name(self.mode));
        write!(f, "{PREFIX}:{program}:{setting}:{variant}:{size}:{mode}")
    }
}

impl FromStr for Run {
    type Err = String;

    /// The mode may be left out.
    fn from_str(text: &str) -> Result<Self, String> {
        fn value<T: ValueEnum>(name: &str) -> Result<T, String> {
            T::from_str(name, false)
        }
        let parts: Vec<&str> = text.split(':').collect();
        let [PREFIX, program, setting, variant, size, ref mode @ ..] = parts[..] else {
            return Err(format!(
                "{text:?} is not {PREFIX}:program:setting:variant:size"
            ));
        };
        let found = PROGRAMS.iter().find(|known| known.name == program);
        Ok(Run {
            program: found.ok_or_else(|| format!("there is no program {program:?}"))?,
            setting: value(setting)?,
            variant: value(variant)?,
            size: value(size)?,
            mode: mode.first().map_or(Ok(Mode::Run), |name| value(name))?,
        })
    }
}

/// Times of the parts of a program, and what it computed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Stages {
    /// Of the work's results.
    pub checksum: u64,
    /// Building the structure.
    pub build_ns: u64,
    /// Laying it out.
    pub morph_ns: u64,
    /// Working with it.
    pub work_ns: u64,
    /// The most memory that the process had until then.
    pub peak_bytes: u64,
}

impl Stages {
    /// Time of the program: build, layout and work.
    pub fn total_ns(&self) -> u64 {
        self.build_ns + self.morph_ns + self.work_ns
    }
}

/// What a worker prints when it has finished.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Finished {
    /// The name of the run.
    pub run: String,
    /// The allocator of the process.
    pub allocator: String,
    /// What came of it.
    pub stages: Stages,
}

/// Whether a worker's program is one of these.
pub fn is_olden(name: &str) -> bool {
    name.split(':').next() == Some(PREFIX)
}

/// The worker's part: does the run called `name` and returns the line to print.
///
/// # Errors
/// When there is no such run, when its result is wrong, or when a morph has no memory.
pub fn work(name: &str) -> Result<String, String> {
    let run: Run = name.parse()?;
    let finished = Finished {
        run: name.to_owned(),
        allocator: served_by().to_owned(),
        stages: (run.program.run)(&run)?,
    };
    serde_json::to_string(&finished).map_err(|error| error.to_string())
}

fn run<P: Olden>(run: &Run) -> Result<Stages, String> {
    let hinted = |policy| run_placed::<P, _>(run, Hinted::new(policy), None);
    match run.variant {
        Variant::AsAllocated => run_placed::<P, _>(run, AS_ALLOCATED, None),
        Variant::Prefetched => run_placed::<P, _>(run, PREFETCHED, None),
        Variant::NullHints => run_placed::<P, _>(run, NullHinted::new(P::POLICY), None),
        Variant::Closest => hinted(Policy::Closest),
        Variant::FirstFit => hinted(Policy::FirstFit),
        Variant::NewBlock => hinted(Policy::NewBlock),
        Variant::Clustered | Variant::Coloured => {
            let rsim = Machine::preset("thesis-rsim").expect("a preset");
            // The second-level cache of table 4.1: 256 KB, two ways, lines of 128 bytes.
            let cache = CacheGeometry::new(1024, 128, 2).expect("powers of two");
            let mut morph = Morph::new();
            match (run.mode, run.variant == Variant::Coloured) {
                (Mode::Rsim, false) => morph = morph.machine(&rsim),
                (Mode::Rsim, true) => {
                    morph = morph.machine(&rsim).colour_for(cache, HOT_SHARE);
                }
                (_, false) => {}
                (_, true) => morph = morph.colour(HOT_SHARE),
            }
            run_placed::<P, _>(run, AS_ALLOCATED, Some(&morph))
        }
    }
}

fn run_placed<P: Olden, L: Placement>(
    run: &Run,
    placement: L,
    morph: Option<&Morph<'_>>,
) -> Result<Stages, String> {
    let input = P::input(run.size);
    if run.setting == Setting::Aged {
        age(&P::nodes(&input));
    }
    if run.mode == Mode::Input {
        return Ok(Stages::default());
    }
    let no_morph = |error: MorphError| format!("no morph: {error}");
    let (build, program) = timed(|| P::build(&input, placement));
    // Leaked, because the process ends after it.
    let program = Box::leak(Box::new(program));
    let (layout, laid_out) = timed(|| morph.map_or(Ok(()), |morph| program.morph(morph)));
    laid_out.map_err(no_morph)?;
    let (work, result) = timed(|| program.work(&input, placement, morph));
    let checksum = result.map_err(no_morph)?;
    let expected = P::RESULTS[run.size as usize];
    if checksum != expected {
        return Err(format!("the result is {checksum}, not {expected}"));
    }
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(Stages {
        checksum,
        build_ns: nanoseconds(build),
        morph_ns: morph.map_or(0, |_| nanoseconds(layout)),
        work_ns: nanoseconds(work),
        peak_bytes: peak_resident_bytes(),
    })
}
