//! Finds the program to run and refuses those that cannot be profiled.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::elf::{self, Facts, Kind};
use super::{CliError, fail};

/// How many interpreters of scripts may be scripts themselves, as in the kernel.
const MAX_SCRIPTS: usize = 4;

/// A program that can be profiled.
#[derive(Debug)]
pub struct Program {
    /// Its file.
    pub path: PathBuf,
    /// What is known of the program, or of the interpreter if it is a script.
    pub(super) facts: Facts,
    /// Why it runs as without the tool.
    pub aside: Option<String>,
}

/// Finds `name` as a shell does.
///
/// # Errors
///
/// There is no such program, or it cannot be read or run.
pub fn find(name: &OsStr) -> Result<Program, CliError> {
    let shown = Path::new(name).display();
    let Some(path) = look_up(name) else {
        return fail(format!("{shown}: no such program"));
    };
    let mut file = path.clone();
    for _ in 0..=MAX_SCRIPTS {
        let aside = check_file(&file)?;
        let kind = elf::kind_of(&file);
        let shown = file.display();
        match kind.map_err(|error| format!("{shown}: cannot be read: {error}"))? {
            Kind::Elf64(facts) => {
                let aside = aside.or(check_elf(&file, &facts)?);
                return Ok(Program { path, facts, aside });
            }
            Kind::Elf32 => {
                return Ok(Program {
                    path,
                    facts: Facts::default(),
                    aside: Some(format!(
                        "{shown} is a 32-bit program; only x86-64 is supported"
                    )),
                });
            }
            Kind::Other => return fail(format!("{shown} is no program: neither ELF nor a script")),
            Kind::Script(interpreter, argument) => {
                let Some(next) = interpreter_of(&interpreter, argument.as_deref()) else {
                    return fail(format!(
                        "{shown}: its interpreter {interpreter} does not exist"
                    ));
                };
                file = next;
            }
        }
    }
    fail(format!("{shown}: scripts of scripts, too many of them"))
}

/// The file that a script's first line names; with `env`, the program that this would start.
fn interpreter_of(interpreter: &str, argument: Option<&str>) -> Option<PathBuf> {
    if Path::new(interpreter).file_name() == Some(OsStr::new("env")) {
        let words = argument.unwrap_or_default().split_whitespace();
        let program = words
            .into_iter()
            .find(|word| !word.starts_with('-') && !word.contains('='));
        return look_up(OsStr::new(program?));
    }
    Some(PathBuf::from(interpreter)).filter(|path| path.exists())
}

pub(super) fn look_up(name: &OsStr) -> Option<PathBuf> {
    let path = Path::new(name);
    if path.components().count() > 1 || path.has_root() || path.starts_with(".") {
        return path.exists().then(|| path.to_owned());
    }
    let folders = env::var_os("PATH")?;
    let found = env::split_paths(&folders).map(|folder| folder.join(name));
    found
        .into_iter()
        .find(|path| path.is_file() && is_executable(path))
}

pub(super) fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

/// Refuses what is no program; the answer is why this one runs as without the tool.
fn check_file(path: &Path) -> Result<Option<String>, CliError> {
    let shown = path.display();
    let file = fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?;
    if file.is_dir() {
        return fail(format!("{shown} is a folder"));
    }
    if !is_executable(path) {
        return fail(format!("{shown} is not executable"));
    }
    let me = rustix::process::geteuid().as_raw();
    let (user, group) = (file.mode() & 0o4000 != 0, file.mode() & 0o2000 != 0);
    let others =
        user && file.uid() != me || group && file.gid() != rustix::process::getegid().as_raw();
    Ok(others
        .then(|| format!("{shown} is setuid or setgid: the loader keeps the runtime out of it")))
}

pub(super) fn check_elf(path: &Path, facts: &Facts) -> Result<Option<String>, CliError> {
    let shown = path.display();
    let why = match facts.interpreter.as_deref() {
        _ if !facts.is_x86_64 => "is for another processor; only x86-64 is supported",
        None => {
            "is linked statically: without a dynamic loader the runtime cannot enter it (link it \
             without -static; in Rust, for x86_64-unknown-linux-gnu without crt-static)"
        }
        Some(loader) if loader.contains("musl") => {
            "is a musl program; the runtime needs glibc (build it for x86_64-unknown-linux-gnu)"
        }
        Some(_) if facts.has_sanitizer => {
            "is built with a sanitizer of its own, whose runtime takes the place of ours"
        }
        Some(_) if facts.is_of_other_version => {
            return fail(format!(
                "{shown} was instrumented by another version of ccscope: build it again"
            ));
        }
        Some(_) => return Ok(None),
    };
    Ok(Some(format!("{shown} {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_found_through_env() {
        let sh = look_up(OsStr::new("sh")).unwrap();
        assert_eq!(
            interpreter_of("/usr/bin/env", Some("-S A=1 sh -e")),
            Some(sh)
        );
        assert_eq!(interpreter_of("/usr/bin/env", None), None);
        assert_eq!(interpreter_of("/no/such", None), None);
        assert_eq!(
            interpreter_of("/bin/sh", Some("-e")),
            Some(PathBuf::from("/bin/sh"))
        );
    }
}
