//! The runtime, which this program carries, as files in the user's cache folder.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};
use tempfile::NamedTempFile;

use super::{CliError, fail};

const RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_runtime.so"));
const NAME: &str = "libccscope_runtime.so";
/// The hot path, which is linked into programs.
const HOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_hot.rlib"));
const HOT_NAME: &str = "libccscope_hot.a";
/// The same for programs that are built for regions.
const REGIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_regions.rlib"));
const REGIONS_NAME: &str = "libccscope_regions.a";

/// What `ccscope trace` preloads.
const TRACER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_tracer.so"));
const TRACER_NAME: &str = "libccscope_tracer.so";

/// `$XDG_CACHE_HOME/ccscope`, by default `~/.cache/ccscope`.
pub(super) fn cache_folder() -> Result<PathBuf, CliError> {
    let absolute = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    match cache {
        Some(cache) => Ok(cache.join("ccscope")),
        None => fail("no folder for the runtime: set HOME or XDG_CACHE_HOME"),
    }
}

/// Writes the runtime unless it is there; its path.
pub(super) fn install() -> Result<PathBuf, CliError> {
    let path = cache_folder()?
        .join(format!("{:016x}", hash_of((RUNTIME, HOT, REGIONS, TRACER))))
        .join(NAME);
    // The dynamic loader takes blanks and colons for ends of names.
    if path
        .to_str()
        .is_none_or(|text| text.contains([' ', ':', ';']))
    {
        let path = path.display();
        return fail(format!(
            "{path} has a character that LD_PRELOAD cannot hold: set XDG_CACHE_HOME"
        ));
    }
    for (path, content) in [
        (&path.with_file_name(HOT_NAME), HOT),
        (&path.with_file_name(REGIONS_NAME), REGIONS),
        (&path.with_file_name(TRACER_NAME), TRACER),
        (&path, RUNTIME),
    ] {
        if fs::read(path).is_ok_and(|bytes| bytes == content) {
            continue;
        }
        if let Err(error) = replace(path, content) {
            let path = path.display();
            return fail(format!("cannot write {path}: {error} (set XDG_CACHE_HOME)"));
        }
    }
    Ok(path)
}

/// Where [`install`] has put the tracer.
pub(super) fn tracer(runtime: &Path) -> PathBuf {
    runtime.with_file_name(TRACER_NAME)
}

/// Words for the linker by which a program has the callbacks, and the runtime also where nobody
/// preloads it. They follow the program's objects: those with a callback take it from the archive.
pub(super) fn linking(runtime: &Path, regions: bool) -> [OsString; 4] {
    let folder = runtime.parent().unwrap_or(runtime);
    let hot = if regions { REGIONS_NAME } else { HOT_NAME };
    [
        runtime.with_file_name(hot).into(),
        runtime.into(),
        "-rpath".into(),
        folder.into(),
    ]
}

/// Options of the linker by which calls of the allocators that the runtime knows arrive there: a
/// wrapper is a function `__wrap_NAME` for `NAME`.
pub(super) fn wrapping() -> Vec<String> {
    let Ok(library) = object::File::parse(RUNTIME) else {
        return Vec::new();
    };
    library
        .dynamic_symbols()
        .filter_map(|symbol| symbol.name().ok()?.strip_prefix("__wrap_"))
        .flat_map(|name| {
            [
                format!("--wrap={name}"),
                format!("--export-dynamic-symbol={name}"),
            ]
        })
        .collect()
}

/// Writes a file that others see whole or not at all, and the folders above it.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Names an entry of the cache. A hash of another kind in a later compiler makes a new entry.
pub(super) fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
