//! Puts the runtime into a process that runs, and has it begin and end recordings.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use super::super::{CliError, fail, runtime};
use super::inject::{Caller, Injector, gone, not_allowed};
use super::memory::{Mapping, Memory, mappings};
use super::target::reads_our_files;
use crate::capture_format::live;

/// Where the functions of libc are that a thread is made to call.
struct Libc {
    errno: u64,
    open: u64,
    error: u64,
    /// At which a thread may be stopped.
    entries: Vec<u64>,
}

impl Libc {
    fn find(pid: u32, memory: &Memory, maps: &[Mapping]) -> Result<Libc, CliError> {
        let first =
            |is_it: fn(&Mapping) -> bool| maps.iter().find(|it| it.offset == 0 && is_it(it));
        let Some(libc) = first(Mapping::is_libc) else {
            return fail(format!("process {pid} has no glibc"));
        };
        let found = memory.functions(libc.start, ["__errno_location", "dlopen", "dlerror"]);
        let [errno, open, error] = found.map_err(|error| gone(pid, &error))?;
        // Until 2.33, of a library of its own.
        let other = maps
            .iter()
            .find(|it| it.offset == 0 && it.path.contains("/libdl"));
        let others = match other.filter(|_| open.is_none()) {
            Some(other) => memory.functions(other.start, ["dlopen", "dlerror"]),
            None => Ok([None; 2]),
        };
        let [other_open, other_error] = others.map_err(|error| gone(pid, &error))?;
        let (Some(errno), Some(open), Some(error)) =
            (errno, open.or(other_open), error.or(other_error))
        else {
            return fail(format!("process {pid}: its libc has no `dlopen`"));
        };
        // Those of an allocator that is another library are called instead.
        let allocator = first(|it| it.path.contains("malloc") && it.path.contains(".so"));
        let mut entries = Vec::new();
        for base in [allocator, Some(libc)]
            .into_iter()
            .flatten()
            .map(|it| it.start)
        {
            let found = memory.functions(base, ["malloc", "free"]);
            entries.extend(
                found
                    .map_err(|error| gone(pid, &error))?
                    .into_iter()
                    .flatten(),
            );
        }
        Ok(Libc {
            errno,
            open,
            error,
            entries,
        })
    }
}

/// Runs `work` on a stopped thread of the process, with its `dlopen` and `dlerror`.
fn with_thread<R>(
    pid: u32,
    work: impl FnOnce(&mut Caller<'_>, [u64; 2]) -> Result<R, CliError>,
) -> Result<(R, Duration), CliError> {
    let memory = Memory::open(pid).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => not_allowed(pid, &error),
        _ => gone(pid, &error),
    })?;
    let maps = mappings(pid).map_err(|error| gone(pid, &error))?;
    let libc = Libc::find(pid, &memory, &maps)?;
    let injector = Injector {
        pid,
        memory: &memory,
        maps: &maps,
        entries: libc.entries,
        errno: libc.errno,
    };
    injector.with_thread(|caller| work(caller, [libc.open, libc.error]))
}

/// Where the runtime is in the process, if it is there.
fn base(pid: u32, library: &Library) -> io::Result<Option<u64>> {
    let maps = mappings(pid)?;
    let first = { maps.iter() }.find(|it| it.offset == 0 && it.path.contains(&library.hash));
    Ok(first.map(|it| it.start))
}

/// Where a function of the runtime is, from its base on.
fn offset_of(name: &str) -> Result<u64, CliError> {
    Ok(runtime::address_of(name).ok_or("the runtime does not fit this tool")?)
}

/// The runtime as a file.
struct Library {
    path: String,
    /// Part of the path, or of the name that it has in a process that does not see that.
    hash: String,
}

impl Library {
    fn new() -> Result<Library, CliError> {
        let path = runtime::install_runtime()?;
        let hash = path.parent().and_then(Path::file_name).unwrap_or_default();
        Ok(Library {
            hash: hash.to_string_lossy().into_owned(),
            path: path.to_string_lossy().into_owned(),
        })
    }
}

/// Begins a recording: its capture, and for how long a thread was stopped.
pub(super) fn attach(pid: u32, options: &str) -> Result<(File, Duration), CliError> {
    let library = Library::new()?;
    let of_process = |error: io::Error| gone(pid, &error);
    let (offset, base) = (
        offset_of("ccscope_attach")?,
        base(pid, &library).map_err(of_process)?,
    );
    with_thread(pid, |caller, [open, error]| {
        let base = match base {
            Some(base) => base,
            None => load(pid, caller, &library, open, error)?,
        };
        let begin = base.wrapping_add(offset);
        let text = caller
            .put(format!("{options}\0").as_bytes())
            .map_err(of_process)?;
        let result = caller
            .call(begin, [text, 0])
            .map_err(of_process)?
            .cast_signed();
        if result < 0 {
            return fail(format!("process {pid} {}", reason(result)));
        }
        let name = format!("/proc/{pid}/fd/{result}");
        let capture = File::options().read(true).write(true).open(name);
        let close = [result.cast_unsigned(), 0, 0, 0, 0, 0];
        caller
            .system_call(libc::SYS_close, close)
            .map_err(of_process)?;
        Ok(capture.map_err(|error| format!("the capture of process {pid}: {error}"))?)
    })
}

/// Ends a recording; for how long a thread was stopped.
pub(super) fn detach(pid: u32) -> Result<Duration, CliError> {
    let library = Library::new()?;
    let of_process = |error: io::Error| gone(pid, &error);
    let Some(base) = base(pid, &library).map_err(of_process)? else {
        return fail(format!("process {pid} is not attached to"));
    };
    let end = base.wrapping_add(offset_of("ccscope_detach")?);
    let ((), pause) = with_thread(pid, |caller, _| {
        match caller.call(end, [0; 2]).map_err(of_process)?.cast_signed() {
            0 | live::OCCUPIED => Ok(()),
            result => fail(format!("process {pid} {}", reason(result))),
        }
    })?;
    Ok(pause)
}

fn reason(result: i64) -> &'static str {
    match result {
        live::ALREADY => "is attached to already: `ccscope detach` first",
        live::NOT_LATE => "has the runtime from its start: start it by `ccscope run`",
        live::NO_ALLOCATOR => "has no `malloc` and `free` that other libraries are linked to",
        live::NOT_ATTACHED => "is not attached to",
        live::NO_FILE => "cannot have a memory file for the capture",
        live::TOO_LONG => "must be allowed files of 1.3 TiB (see `ulimit -f`)",
        live::NO_ADDRESSES => {
            "uses addresses that the recording must have, or has no 1.3 TiB left (`ulimit -v`): \
             start it by `ccscope run`"
        }
        _ => "has a dynamic linker that is not supported",
    }
}

/// Loads the runtime, from its file or, if the process cannot read that, from its own memory.
/// Returns where it is.
fn load(
    pid: u32,
    caller: &mut Caller<'_>,
    library: &Library,
    open: u64,
    error: u64,
) -> Result<u64, CliError> {
    let of_process = |error: io::Error| gone(pid, &error);
    let (path, own) = if reads_our_files(pid) {
        (library.path.clone(), None)
    } else {
        let name = caller
            .put(format!("libccscope_runtime.so-{}\0", library.hash).as_bytes())
            .map_err(of_process)?;
        let words = [name, 0, 0, 0, 0, 0];
        let file = caller
            .system_call(libc::SYS_memfd_create, words)
            .map_err(of_process)?;
        let path = format!("/proc/{pid}/fd/{file}");
        let written = fs::write(path, runtime::RUNTIME);
        written.map_err(|error| format!("process {pid}: a file in its memory: {error}"))?;
        (format!("/proc/self/fd/{file}"), Some(file))
    };
    const NOW: u64 = 2;
    let text = caller
        .put(format!("{path}\0").as_bytes())
        .map_err(of_process)?;
    let handle = caller.call(open, [text, NOW]).map_err(of_process)?;
    if let Some(file) = own {
        let words = [file, 0, 0, 0, 0, 0];
        caller
            .system_call(libc::SYS_close, words)
            .map_err(of_process)?;
    }
    if handle == 0 {
        let text = caller.call(error, [0; 2]).map_err(of_process)?;
        let why = match text {
            0 => "it does not say why".to_owned(),
            text => caller.memory().text(text),
        };
        return fail(format!("process {pid} cannot load the runtime: {why}"));
    }
    // What `dlopen` gives begins with what is added to addresses of the file.
    caller.memory().word(handle).map_err(of_process)
}
