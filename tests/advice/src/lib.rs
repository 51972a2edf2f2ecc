//! Small programs on which the advice of `ccscope advise` is judged.
//!
//! Each is there as ordinary code, `before`, and with one or several changes, each of a kind of
//! advice. Some changes gain nothing: a hopeful user would make them. The clock says which.
//!
//! `plain NAME before|KIND [SCALE]` prints a checksum, the same for all versions; `placed` does so
//! with `CcMalloc` as the allocator. `SCALE` multiplies the size. `--list` prints a line for each
//! program: `NAME training|test SIZE KIND,KIND,.. NOTE`, with `:` and the new
//! container, or the word of an idea, behind the kind.

/// Rows of name, size, note, and changes: a kind and the function that has it. The head says where
/// in a program's module `before` is, and where the functions with changes are.
macro_rules! programs {
    (
        $half:ident $before:tt $changed:tt;
        $($name:ident, $size:literal, $note:literal, [$($kind:expr => $run:ident),+];)*
    ) => {
        &[$(Program {
            name: stringify!($name),
            half: crate::Half::$half,
            note: $note,
            size: $size,
            before: programs!(@path $name $before),
            changes: &[$(Change { kind: $kind, run: programs!(@path $name $changed $run) }),+],
        }),*]
    };
    (@path $name:ident [$($tokens:tt)*] $($function:ident)?) => {
        $name::$($tokens)* $($function)?
    };
}

mod others;
mod programs;
#[cfg(feature = "published")]
mod published;
mod unseen;

use ccmorph::Morph;
use std::fmt;
use std::process::ExitCode;

/// All programs.
pub fn all() -> impl Iterator<Item = &'static Program> {
    let seen = programs::PROGRAMS.iter().chain(others::PROGRAMS);
    seen.chain(unseen::PROGRAMS)
}

/// A program, with and without changes.
#[derive(Debug)]
pub struct Program {
    /// How the command line calls it.
    pub name: &'static str,
    /// What the adviser may be fitted to it for.
    pub half: Half,
    /// What it stands for, in a few words.
    pub note: &'static str,
    /// Number of elements at scale 1.
    pub size: usize,
    /// The program as it is written without a thought of the cache; returns a checksum.
    pub before: fn(usize) -> u64,
    /// Changes of it, each of another kind.
    pub changes: &'static [Change],
}

/// A program with a change.
#[derive(Debug)]
pub struct Change {
    /// What kind of change.
    pub kind: Kind,
    /// The program with the change; returns the checksum that `before` does.
    pub run: fn(usize) -> u64,
}

/// Whether the adviser may be fitted to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    /// The adviser is fitted to these.
    Training,
    /// Only to see how good it is at what it was not fitted to.
    Test,
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
    /// Anything else, such as another order of what is done; a word that says it.
    Idea(&'static str),
}

/// As `ccscope advise --json` calls it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Container(which) => return write!(f, "container:{which}"),
            Self::Idea(word) => return write!(f, "idea:{word}"),
            _ => {}
        }
        f.write_str(match self {
            Self::Hint => "hint",
            Self::Morph => "morph",
            Self::Container(_) => "container",
            Self::FieldOrder => "field-order",
            Self::Split => "split",
            Self::Group => "group",
            Self::Smaller => "smaller",
            Self::Idea(_) => "idea",
        })
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Training => "training",
            Self::Test => "test",
        })
    }
}

/// The line of `--list`.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<String> = { self.changes.iter() }
            .map(|change| change.kind.to_string())
            .collect();
        let Self {
            name,
            half,
            size,
            note,
            ..
        } = self;
        write!(f, "{name} {half} {size} {} {note}", kinds.join(","))
    }
}

/// A morph that `plain` runs too.
fn morph() -> Morph<'static> {
    Morph::new().under_any_allocator()
}

/// Runs what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args == ["--list"] {
        all().for_each(|program| println!("{program}"));
        return ExitCode::SUCCESS;
    }
    match run(&args) {
        Some(checksum) => {
            println!("{checksum:016x}");
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: --list | NAME before|KIND [SCALE], with a NAME of --list");
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
    let program = all().find(|program| program.name == name)?;
    let run = match version.as_str() {
        "before" => program.before,
        kind => {
            let mut changes = program.changes.iter();
            changes.find(|change| change.kind.to_string() == kind)?.run
        }
    };
    Some(run(scaled(program.size)))
}
