//! Finds `libccmalloc.so`, or builds it.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::{CliError, fail, runtime};

const NAME: &str = "libccmalloc.so";
/// Its package, where this tool was built from a clone.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ccmalloc/capi/Cargo.toml");

/// The library: the one that is given, else one beside this tool, else one in the cache folder,
/// which is built first if this tool's sources are still there.
pub(super) fn find(given: Option<&Path>, err: &mut dyn Write) -> Result<PathBuf, CliError> {
    let path = match given {
        Some(path) => path.to_owned(),
        None => match beside() {
            Some(path) => path,
            None => cached(err)?,
        },
    };
    let shown = path.display();
    let full = path.canonicalize();
    let full = full.map_err(|error| format!("cannot read the allocator {shown}: {error}"))?;
    // The dynamic loader takes these for ends of names.
    match full.to_str() {
        Some(text) if !text.contains([' ', ':', ';', '$']) => Ok(full),
        _ => fail(format!(
            "{shown} has a character that LD_PRELOAD cannot hold"
        )),
    }
}

fn beside() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    let folder = own.parent()?;
    let candidates = [folder.join(NAME), folder.join("../lib").join(NAME)];
    candidates.into_iter().find(|path| path.is_file())
}

/// The library of the cache folder. Cargo sees to it that it fits its sources.
fn cached(err: &mut dyn Write) -> Result<PathBuf, CliError> {
    let target = runtime::cache_folder()?.join("ccmalloc");
    let library = target.join("release").join(NAME);
    if !Path::new(SOURCE).is_file() {
        return match library.is_file() {
            true => Ok(library),
            false => fail(format!(
                "there is no {NAME}: build it by `cargo build --release -p ccmalloc-capi` in a \
                 clone of ccscope's repository, and name it by --allocator"
            )),
        };
    }
    let closed = runtime::own_folders(&target.join("release"));
    closed.map_err(|error| format!("{error} (set XDG_CACHE_HOME)"))?;
    if !library.is_file() {
        writeln!(err, "ccscope: building {NAME} once, in a minute")?;
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--quiet", "--manifest-path", SOURCE])
        .arg("--target-dir")
        .arg(&target)
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null());
    let why = match command.output() {
        Ok(output) if output.status.success() => return Ok(library),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let line = { text.lines() }.find(|line| line.starts_with("error"));
            line.unwrap_or("cargo fails").to_owned()
        }
        // Cargo was there when it was built.
        Err(_) if library.is_file() => return Ok(library),
        Err(error) => format!("cargo cannot be started: {error}"),
    };
    fail(format!(
        "cannot build {NAME}: {why}; name one by --allocator"
    ))
}
