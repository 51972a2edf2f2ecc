//! One run of one program, in a process of its own.
//!
//! ```text
//! BENCHES_ALLOCATOR=ccmalloc measure --worker olden:treeadd:aged:new-block:quick
//!                                                program:setting:variant:size, and maybe :mode
//! ```
//!
//! The worker makes the input, ages the heap where asked to, and then builds, lays out where asked
//! to, and works, which is timed. It ends without freeing anything, as the originals do.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ccmalloc::Policy;
use ccmodel::{CacheGeometry, Machine};
use ccmorph::Morph;
use clap::ValueEnum;

use super::age::age;
use super::bisort::Bisort;
use super::em3d::Em3d;
use super::health::Health;
use super::mst::Mst;
use super::perimeter::Perimeter;
use super::treeadd::TreeAdd;
use super::tsp::Tsp;
use super::{Olden, Size};
use crate::placement::{AS_ALLOCATED, Hinted, NullHinted, PREFETCHED, Placement};
use crate::programs::Outcome;
use crate::timing::timed;

/// The programs. Each has a line in [`crate::suites::olden`] as well.
pub const PROGRAMS: &[Program] = &[
    Program::of::<TreeAdd>(),
    Program::of::<Perimeter>(),
    Program::of::<Bisort>(),
    Program::of::<Health>(),
    Program::of::<Mst>(),
    Program::of::<Em3d>(),
    Program::of::<Tsp>(),
];

const PREFIX: &str = "olden";

/// The share of the cache that colours keep for the first nodes, as in the thesis's figure 2-3.
const HOT_SHARE: f64 = 0.5;

#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    /// Under the program's own policy.
    pub(crate) hinted: Variant,
    run: fn(&Run) -> Result<Outcome, String>,
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
    /// By `ccmalloc`, with hints under this policy, as the next two.
    Closest,
    FirstFit,
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
pub fn name(value: impl ValueEnum) -> String {
    let value = value.to_possible_value().expect("no value is skipped");
    value.get_name().to_owned()
}

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub(crate) program: &'static Program,
    pub(crate) setting: Setting,
    pub(crate) variant: Variant,
    pub(crate) size: Size,
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

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [PREFIX, program, setting, variant, size, ref mode @ ..] = parts[..] else {
            return Err(format!(
                "{text:?} is not {PREFIX}:program:setting:variant:size"
            ));
        };
        let mode = mode.first();
        let found = PROGRAMS.iter().find(|known| known.name == program);
        Ok(Run {
            program: found.ok_or_else(|| format!("there is no program {program:?}"))?,
            setting: Setting::from_str(setting, false)?,
            variant: Variant::from_str(variant, false)?,
            size: Size::from_str(size, false)?,
            mode: mode.map_or(Ok(Mode::Run), |mode| Mode::from_str(mode, false))?,
        })
    }
}

/// Whether a worker's program is one of these.
pub(crate) fn is_olden(name: &str) -> bool {
    name.split(':').next() == Some(PREFIX)
}

/// Does the run called `name`. Fails when there is no such run, or when its result is wrong.
pub(crate) fn work(name: &str) -> Result<Outcome, String> {
    let run: Run = name.parse()?;
    (run.program.run)(&run)
}

fn run<P: Olden>(run: &Run) -> Result<Outcome, String> {
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
            let morph = match (run.mode, run.variant) {
                (Mode::Rsim, Variant::Clustered) => Morph::new().machine(&rsim),
                (Mode::Rsim, _) => Morph::new().machine(&rsim).colour_for(cache, HOT_SHARE),
                (_, Variant::Clustered) => Morph::new(),
                _ => Morph::new().colour(HOT_SHARE),
            };
            run_placed::<P, _>(run, AS_ALLOCATED, Some(&morph))
        }
    }
}

fn run_placed<P: Olden, L: Placement>(
    run: &Run,
    placement: L,
    morph: Option<&Morph<'_>>,
) -> Result<Outcome, String> {
    let input = P::input(run.size);
    if run.setting == Setting::Aged {
        age(&P::nodes(&input));
    }
    if run.mode == Mode::Input {
        return Ok(Outcome::default());
    }
    let lay_out = |program: &mut P| {
        let result = morph.map_or(Ok(()), |morph| program.morph(morph));
        result.expect("ccmalloc serves this process, and there is memory");
    };
    let (build, program) = timed(|| P::build(&input, placement));
    let program = Box::leak(Box::new(program));
    let (layout, ()) = timed(|| lay_out(program));
    let (work, checksum) = timed(|| program.work(&input, placement, lay_out));
    let expected = P::RESULTS[run.size as usize];
    if checksum != expected {
        return Err(format!("the result is {checksum}, not {expected}"));
    }
    Ok(Outcome {
        checksum,
        build,
        layout: morph.map_or(Duration::ZERO, |_| layout),
        work,
        object_bytes: None,
    })
}
