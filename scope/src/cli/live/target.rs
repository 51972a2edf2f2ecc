//! Whether a process can be attached to, asked before it is touched.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::elf::{self, Kind};
use super::super::program::{self, Program};
use super::super::socket::{Ask, ask};
use super::super::{CliError, fail};

/// The program of a process that can be attached to.
pub(super) fn program(pid: u32, despite_seccomp: bool) -> Result<Program, CliError> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let status = match fs::read_to_string(folder.join("status")) {
        Ok(status) => status,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return fail(format!("there is no process {pid}"));
        }
        Err(error) => return fail(format!("process {pid}: {error}")),
    };
    let value = |name| {
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim);
        value.unwrap_or_default()
    };
    let me = rustix::process::geteuid();
    let is_own = fs::metadata(&folder).is_ok_and(|it| it.uid() == me.as_raw()) || me.is_root();
    if !is_own {
        return fail(format!("process {pid} is another user's"));
    }
    if value("State:").starts_with(['Z', 'X']) {
        return fail(format!("process {pid} has ended"));
    }
    if value("Tgid:") != pid.to_string() {
        return fail(format!(
            "{pid} is a thread: give its process, {}",
            value("Tgid:")
        ));
    }
    if !matches!(value("TracerPid:"), "" | "0") {
        let tracer = value("TracerPid:");
        return fail(format!(
            "process {pid} is traced by process {tracer}, a debugger perhaps"
        ));
    }
    if value("State:").starts_with(['T', 't']) {
        return fail(format!("process {pid} is stopped: continue it first"));
    }
    if value("x86_Thread_features:").contains("shstk") {
        return fail(format!(
            "process {pid} has a shadow stack, which forbids to call functions"
        ));
    }
    if !value("VmLck:").starts_with("0 ") && !value("VmLck:").is_empty() {
        return fail(format!(
            "process {pid} locks its memory (mlockall), with which the capture would fill memory"
        ));
    }
    if !matches!(value("Seccomp:"), "" | "0") && !despite_seccomp {
        return fail(format!(
            "process {pid} has a filter of system calls (seccomp), which might end it for loading \
             a library: `--despite-seccomp` tries"
        ));
    }
    let file = folder.join("exe");
    let path = fs::read_link(&file).unwrap_or_default();
    let kind = elf::kind_of(&file);
    let kind = kind.map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
    let shown = format!("process {pid}: {}", path.display());
    let Kind::Elf64(facts) = kind else {
        return fail(format!(
            "{shown} is a 32-bit program; only x86-64 is supported"
        ));
    };
    if let Some(why) = program::check_elf(Path::new(&shown), &facts)? {
        return fail(why);
    }
    if facts.is_instrumented {
        return fail(format!(
            "{shown} is instrumented: start it by `ccscope run`"
        ));
    }
    Ok(Program {
        path,
        facts,
        aside: None,
    })
}

/// The process of the one command that records.
pub(super) fn the_only_one() -> Result<u32, CliError> {
    let recorded: Vec<String> = ask(0, &Ask::Who)
        .into_iter()
        .filter_map(Result::ok)
        .collect();
    match recorded.as_slice() {
        [] => fail("no program is recorded: start one by `ccscope run`, or `ccscope attach PID`"),
        [pid] => Ok(pid.parse()?),
        several => fail(format!(
            "several programs are recorded: {}",
            several.join(", ")
        )),
    }
}

/// Whether the process can read the files of this user: another one may not enter the folder.
pub(super) fn reads_our_files(pid: u32) -> bool {
    let owner = |pid: &str| Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid());
    let space = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let root = |pid: &str| {
        let root = fs::metadata(format!("/proc/{pid}/root/")).ok()?;
        Some((root.dev(), root.ino()))
    };
    let pid = pid.to_string();
    owner(&pid) == owner("self") && space(&pid) == space("self") && root(&pid) == root("self")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_cannot_be_attached_to_are_told() {
        let error = |pid| program(pid, false).unwrap_err().to_string();
        assert_eq!(error(u32::MAX), format!("there is no process {}", u32::MAX));
        let own = std::process::id();
        assert!(reads_our_files(own));
        let thread = fs::read_dir("/proc/self/task").unwrap();
        let ids = thread.map(|it| {
            it.unwrap()
                .file_name()
                .to_str()
                .unwrap()
                .parse::<u32>()
                .unwrap()
        });
        for id in ids.filter(|&id| id != own) {
            assert_eq!(
                error(id),
                format!("{id} is a thread: give its process, {own}")
            );
        }
    }
}
