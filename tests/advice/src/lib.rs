//! Small programs on which the advice of `ccscope advise` is judged.
//!
//! Each is there twice: `before` is ordinary code, and `after` has the change that its kind of
//! advice asks for, or, where nothing is worth it, the change that a hopeful user would make. The
//! clock then says who was right.
//!
//! `plain NAME before|after [SCALE]` prints a checksum, the same for both. `SCALE` multiplies the
//! size. `plain --list` prints a line for each program: `NAME KIND BINARY NOTE`, with `:` and the
//! new container behind the kind where it is one. A `!` before the kind says that the change gains
//! nothing; `BINARY`, which of `plain` and `placed` runs `after`.

mod programs;
#[cfg(feature = "published")]
mod published;

use std::fmt;
use std::process::ExitCode;

pub use programs::PROGRAMS;

/// A program with and without a change.
#[derive(Debug)]
pub struct Program {
    /// How the command line calls it.
    pub name: &'static str,
    /// What kind of change `after` has.
    pub kind: Kind,
    /// Whether the change makes the program faster.
    pub worth_it: bool,
    /// What it stands for, in a few words.
    pub note: &'static str,
    /// Number of elements at scale 1.
    pub size: usize,
    /// The program as it is written without a thought of the cache; returns a checksum.
    pub before: fn(usize) -> u64,
    /// The same with the change.
    pub after: fn(usize) -> u64,
}

/// A kind of advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `ccmalloc::near`.
    Hint,
    /// `ccmorph` after the structure is built.
    Morph,
    /// Another collection, or another call of it.
    Container(&'static str),
    /// Another order of fields.
    FieldOrder,
    /// Rarely used fields behind a link.
    Split,
    /// A `ccmalloc::Heap` for one site.
    Group,
    /// Fewer bytes.
    Smaller,
}

impl Kind {
    /// The binary that runs `after`.
    pub fn binary(self) -> &'static str {
        match self {
            Self::Hint | Self::Morph => "placed",
            _ => "plain",
        }
    }
}

/// As `ccscope advise --json` calls it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Container(which) = self {
            return write!(f, "container:{which}");
        }
        f.write_str(match self {
            Self::Hint => "hint",
            Self::Morph => "morph",
            Self::Container(_) => "container",
            Self::FieldOrder => "field-order",
            Self::Split => "split",
            Self::Group => "group",
            Self::Smaller => "smaller",
        })
    }
}

/// The line of `--list`.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name, kind, note, ..
        } = self;
        let hopeless = if self.worth_it { "" } else { "!" };
        write!(f, "{name} {hopeless}{kind} {} {note}", kind.binary())
    }
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["--list"] {
        PROGRAMS.iter().for_each(|program| println!("{program}"));
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Some(checksum) => {
            println!("{checksum:016x}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: --list | NAME before|after [SCALE], with a NAME of --list");
            ExitCode::from(2)
        }
    }
}

fn run(args: &[String]) -> Option<u64> {
    let (name, version, scale) = match args {
        [name, version] => (name, version, 1.0),
        [name, version, scale] => (name, version, scale.parse::<f64>().ok()?),
        _ => return None,
    };
    if !(scale > 0.0 && scale <= 100.0) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "sizes are far below 2^53")]
    let scaled = |size: usize| ((size as f64 * scale) as usize).max(16);
    #[cfg(feature = "published")]
    if let Some((_, run)) = published::PUBLISHED.iter().find(|it| it.0 == name) {
        return (version == "before").then(|| run(scaled(published::SIZE)));
    }
    let program = PROGRAMS.iter().find(|program| program.name == name)?;
    match version.as_str() {
        "before" => Some((program.before)(scaled(program.size))),
        "after" => Some((program.after)(scaled(program.size))),
        _ => None,
    }
}
