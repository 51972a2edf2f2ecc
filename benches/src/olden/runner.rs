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
//! to, and works; these three are timed. It prints one line of JSON and ends; nothing is freed, as
//! in the originals. With `:check` at the end it checks its result as well, afterwards; with
//! `:input` it ends before the build, which is what a simulation takes off the counts of a whole
//! run; and with `:rsim` morphs lay out for the thesis's machine instead of this one.

use std::alloc::Layout;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::timing::timed;
use ccmalloc::Policy;
use ccmodel::{CacheGeometry, Machine};
use ccmorph::{Morph, MorphError};
use serde::{Deserialize, Serialize};

use super::age::age;
use super::bisort::Bisort;
use super::em3d::Em3d;
use super::health::Health;
use super::mst::Mst;
use super::perimeter::Perimeter;
use super::placement::{AsAllocated, Hinted, NullHinted, Placement, Prefetched};
use super::treeadd::TreeAdd;
use super::tsp::Tsp;
use super::{Olden, Size};
use crate::dispatch::served_by;
use crate::sys::peak_resident_bytes;

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
    run: fn(&Run) -> Result<Stages, String>,
    policy: Policy,
    nodes: fn(Size) -> Vec<(Layout, usize)>,
}

impl Program {
    /// The program `P`.
    pub const fn of<P: Olden>() -> Program {
        Program {
            name: P::NAME,
            run: run::<P>,
            policy: P::POLICY,
            nodes: |size| P::nodes(&P::input(size)),
        }
    }

    /// The one called `name`.
    pub fn find(name: &str) -> Option<&'static Program> {
        PROGRAMS.iter().find(|program| program.name == name)
    }

    /// The variant that is called hinted: under the program's own policy.
    pub const fn hinted(&self) -> Variant {
        match self.policy {
            Policy::Closest => Variant::Closest,
            Policy::FirstFit => Variant::FirstFit,
            Policy::NewBlock => Variant::NewBlock,
        }
    }

    /// Bytes of the nodes that it builds, without what allocators add.
    pub fn node_bytes(&self, size: Size) -> usize {
        let nodes = (self.nodes)(size);
        nodes
            .iter()
            .map(|(layout, count)| layout.size() * count)
            .sum()
    }
}

/// An enum whose values have names on the command line.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $value,)*
        }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$value,)*];

            /// Its name on the command line.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$value => $text,)*
                }
            }
        }

        impl FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let mut all = $name::ALL.iter().copied();
                all.find(|value| value.name() == text)
                    .ok_or_else(|| format!("there is no {} called {text:?}", stringify!($name)))
            }
        }
    };
}

named! {
    /// What the heap has behind it when the program begins.
    Setting {
        /// Nothing: the process has just begun.
        Fresh = "fresh",
        /// A while: see [`super::age`].
        Aged = "aged",
    }
}

named! {
    /// How a program's nodes are placed.
    Variant {
        /// By an allocator that is given no hints.
        AsAllocated = "as-allocated",
        /// As allocated, with prefetches by hand.
        Prefetched = "prefetched",
        /// By `ccmalloc`, with hints that are all null.
        NullHints = "null-hints",
        /// By `ccmalloc`, hinted.
        Closest = "closest",
        /// By `ccmalloc`, hinted.
        FirstFit = "first-fit",
        /// By `ccmalloc`, hinted.
        NewBlock = "new-block",
        /// As `ccmalloc` allocates without hints, and then by a morph: clustering only.
        Clustered = "clustered",
        /// As `Clustered`, with colours for half of the cache.
        Coloured = "coloured",
    }
}

impl Variant {
    /// Whether `ccmalloc` has to serve the process.
    pub fn needs_ours(self) -> bool {
        !matches!(self, Variant::AsAllocated | Variant::Prefetched)
    }
}

named! {
    /// How much of a run takes place.
    Extent {
        /// Everything but the check.
        Run = "run",
        /// Everything.
        Checked = "check",
        /// The input, and the age of the heap; no build.
        Input = "input",
    }
}

named! {
    /// For which machine morphs lay out.
    Target {
        /// The one that they run on.
        This = "this",
        /// That of the thesis's table 4.1, where it is simulated.
        Rsim = "rsim",
    }
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
    /// How much of it.
    pub extent: Extent,
    /// For whom.
    pub target: Target,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run {
            program,
            setting,
            variant,
            size,
            extent,
            target,
        } = self;
        write!(
            f,
            "{PREFIX}:{}:{}:{}:{}:{}:{}",
            program.name,
            setting.name(),
            variant.name(),
            size.name(),
            extent.name(),
            target.name()
        )
    }
}

impl FromStr for Run {
    type Err = String;

    /// The last two parts may be left out.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let mut part = |what: &str| {
            parts
                .next()
                .ok_or_else(|| format!("{text:?} names no {what}"))
        };
        if part("suite")? != PREFIX {
            return Err(format!("{text:?} does not begin with {PREFIX:?}"));
        }
        let program = part("program")?;
        let program =
            Program::find(program).ok_or_else(|| format!("no program is called {program:?}"))?;
        let setting = part("setting")?.parse()?;
        let variant = part("variant")?.parse()?;
        let size = part("size")?.parse()?;
        let extent = parts.next().map_or(Ok(Extent::Run), str::parse)?;
        let target = parts.next().map_or(Ok(Target::This), str::parse)?;
        Ok(Run {
            program,
            setting,
            variant,
            size,
            extent,
            target,
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

/// What a worker says when it has finished.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Finished {
    /// What it was asked to do.
    pub run: String,
    /// Who served it.
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
/// When there is no such run, when its check fails, or when a morph has no memory.
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
    match run.variant {
        Variant::AsAllocated => run_placed::<P, _>(run, AsAllocated, None),
        Variant::Prefetched => run_placed::<P, _>(run, Prefetched, None),
        Variant::NullHints => run_placed::<P, _>(run, NullHinted::new(), None),
        Variant::Closest => run_placed::<P, _>(run, Hinted::new(Policy::Closest), None),
        Variant::FirstFit => run_placed::<P, _>(run, Hinted::new(Policy::FirstFit), None),
        Variant::NewBlock => run_placed::<P, _>(run, Hinted::new(Policy::NewBlock), None),
        Variant::Clustered => with_morph(run.target, false, |morph| {
            run_placed::<P, _>(run, AsAllocated, Some(morph))
        }),
        Variant::Coloured => with_morph(run.target, true, |morph| {
            run_placed::<P, _>(run, AsAllocated, Some(morph))
        }),
    }
}

/// Calls `f` with the morph for a machine.
fn with_morph<R>(target: Target, coloured: bool, f: impl FnOnce(&Morph<'_>) -> R) -> R {
    match target {
        Target::This if coloured => f(&Morph::new().colour(HOT_SHARE)),
        Target::This => f(&Morph::new()),
        Target::Rsim => {
            let machine =
                Machine::preset("thesis-rsim").expect("the model knows the thesis's machines");
            let morph = Morph::new().machine(&machine);
            if coloured {
                // The second-level cache of table 4.1: 256 KB, two ways, lines of 128 bytes.
                let cache = CacheGeometry::new(1024, 128, 2).expect("powers of two");
                f(&morph.colour_for(cache, HOT_SHARE))
            } else {
                f(&morph)
            }
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
    if run.extent == Extent::Input {
        return Ok(Stages::default());
    }
    let no_morph = |error: MorphError| format!("no morph: {error}");
    let (build, program) = timed(|| P::build(&input, placement));
    // Leaked, because the process ends after it.
    let program = Box::leak(Box::new(program));
    let mut layout = Duration::ZERO;
    if let Some(morph) = morph {
        let (time, laid_out) = timed(|| program.morph(morph));
        laid_out.map_err(no_morph)?;
        layout = time;
    }
    let (work, result) = timed(|| program.work(&input, placement, morph));
    let checksum = result.map_err(no_morph)?;
    let peak_bytes = peak_resident_bytes();
    if run.extent == Extent::Checked {
        program.check(&input, checksum)?;
    }
    Ok(Stages {
        checksum,
        build_ns: nanoseconds(build),
        morph_ns: nanoseconds(layout),
        work_ns: nanoseconds(work),
        peak_bytes,
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
