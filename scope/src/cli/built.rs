//! Settings that `cargo ccscope` passes to the compiler's wrapper and to `ccscope run`, both of
//! which cargo starts, in an environment variable.

use std::env;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::report;

/// Not arguments, since cargo prints those.
const VARIABLE: &str = "CCSCOPE_BUILT";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Built {
    pub(super) compiler: String,
    pub(super) flags: Vec<String>,
    /// Flags by which a program is linked.
    pub(super) link: Vec<String>,
    /// What the user starts the compiler by.
    pub(super) wrapper: Option<OsString>,
    /// Options of `ccscope run`.
    pub(super) options: Vec<OsString>,
    /// For profiles without a name of their own: tests run in the folders of their packages.
    pub(super) folder: PathBuf,
    /// Where `ccscope run` notes what it has done.
    pub(super) notes: PathBuf,
}

impl Built {
    pub(super) fn tell(&self, command: &mut Command) -> Result<(), serde_json::Error> {
        command.env(VARIABLE, serde_json::to_string(self)?);
        Ok(())
    }

    /// `None` if the program is not started by `cargo ccscope`.
    pub(super) fn told() -> Option<Built> {
        serde_json::from_str(&env::var(VARIABLE).ok()?).ok()
    }

    /// Keeps it from programs.
    pub(super) fn hide(command: &mut Command) {
        command.env_remove(VARIABLE);
    }

    /// Notes that a program is started.
    pub(super) fn start(&self) {
        // Without the note there is a line too many.
        drop(fs::write(self.notes.join("started"), ""));
    }

    pub(super) fn has_started(&self) -> bool {
        self.notes.join("started").exists()
    }

    /// Where the next profile goes that is to be `asked`: that of a second program of one command
    /// makes it `asked.2`, and the first one's `asked.1`.
    pub(super) fn place(&self, asked: &Path, err: &mut dyn Write) -> io::Result<PathBuf> {
        let path = self.notes.join("profiles");
        let mut notes = OpenOptions::new().create(true).append(true).open(&path)?;
        notes.write_all(b"\n")?;
        let count = fs::metadata(&path)?.len();
        if count == 2 {
            let first = numbered(asked, 1);
            fs::rename(asked, &first)?;
            drop(fs::rename(report::beside(asked), report::beside(&first)));
            let (asked, first) = (asked.display(), first.display());
            writeln!(err, "ccscope: several programs: {asked} is now {first}")?;
        }
        Ok(match count {
            1 => asked.to_owned(),
            count => numbered(asked, count),
        })
    }
}

fn numbered(path: &Path, number: u64) -> PathBuf {
    match path.extension() {
        Some(end) if end == "ccscope" => path.with_extension(format!("{number}.ccscope")),
        _ => {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            name.into()
        }
    }
}
