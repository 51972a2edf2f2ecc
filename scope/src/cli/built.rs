//! What `cargo ccscope` tells `ccscope run`, which cargo starts.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// Not arguments, since cargo prints those.
const VARIABLE: &str = "CCSCOPE_BUILT";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Built {
    pub(super) compiler: String,
    pub(super) flags: Vec<String>,
    /// For profiles without a name of their own: tests run in the folders of their packages.
    pub(super) folder: PathBuf,
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
}
