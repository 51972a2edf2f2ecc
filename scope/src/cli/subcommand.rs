//! Commands of other packages, found as cargo finds its subcommands.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::{CliError, program};

/// Becomes the command `ccscope-NAME` of the package `ccNAME`; the answer is why that cannot be.
pub(super) fn become_command(name: &str, args: &[OsString]) -> CliError {
    let file = format!("ccscope-{name}");
    match find(&file) {
        Some(path) => {
            let error = Command::new(&path).args(args).exec();
            format!("{}: cannot be started: {error}", path.display()).into()
        }
        None => format!(
            "`ccscope {name}` is the command `{file}`, which is neither beside it nor in PATH: \
             install it by `cargo install --path {name}` in a clone of the repository"
        )
        .into(),
    }
}

/// Beside this executable, or in a folder of `PATH`.
fn find(file: &str) -> Option<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.map(|own| own.with_file_name(file));
    beside
        .filter(|path| program::is_executable(path))
        .or_else(|| program::look_up(OsStr::new(file)))
}
