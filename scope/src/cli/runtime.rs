//! The runtime, which this program carries, as files in the user's cache folder.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSymbol};
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use tempfile::Builder;

use super::{CliError, fail};

pub(super) const RUNTIME: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_runtime.so"));
pub(super) const NAME: &str = "libccscope_runtime.so";
/// The fast path, which is linked into programs.
const HOT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_fast_path.rlib"));
const FAST_PATH_NAME: &str = "libccscope_fast_path.a";
/// The same for programs that are built for regions.
const REGIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libccscope_regions.rlib"));
const REGIONS_NAME: &str = "libccscope_regions.a";

/// What glibc calls the machine; up to 2.36, some by what they can do.
const PLATFORMS: [&str; 3] = ["x86_64", "haswell", "xeon_phi"];

/// What the loader of glibc for 32 bits calls the machine.
const PLATFORM_32: &str = "i686";
/// An empty library of 32 bits, so that this loader finds one and says nothing.
#[rustfmt::skip]
const LIBRARY_32: [u32; 58] = [
    // Header: a shared library for the 80386, with three segments.
    0x464c_457f, 0x0001_0101, 0, 0, 0x0003_0003, 1, 0, 52, 0, 0, 0x0020_0034, 0x0028_0003, 0,
    // All of this; the dynamic section; a stack without code.
    1, 0, 0, 0, 232, 232, 6, 4096, 2, 148, 148, 148, 48, 48, 6, 4,
    0x6474_e551, 0, 0, 0, 0, 0, 6, 16,
    // Places of the hash table, names and symbols; sizes of names and of a symbol.
    4, 196, 5, 228, 6, 212, 10, 1, 11, 16, 0, 0,
    // The hash table, a symbol and its name.
    1, 1, 0, 0, 0, 0, 0, 0, 0,
];

/// `$XDG_CACHE_HOME/ccscope`, by default `~/.cache/ccscope`.
pub(super) fn cache_folder() -> Result<PathBuf, CliError> {
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    match cache {
        Some(cache) => Ok(cache.join("ccscope")),
        None => fail("no folder for the runtime: set HOME or XDG_CACHE_HOME"),
    }
}

/// The folder that a variable names; the standard has relative ones ignored.
pub(super) fn absolute(variable: &str) -> Option<PathBuf> {
    let folder = env::var_os(variable).map(PathBuf::from);
    folder.filter(|path| path.is_absolute())
}

/// Writes the runtime unless it is there; its path.
pub(super) fn install_runtime() -> Result<PathBuf, CliError> {
    let folder = install(
        &[(NAME, RUNTIME)],
        &[(FAST_PATH_NAME, HOT), (REGIONS_NAME, REGIONS)],
    )?;
    Ok(folder.join(NAME))
}

/// Writes libraries that are to be preloaded, and other files, unless they are there: into a folder
/// of the cache that is theirs alone, which is returned.
///
/// # Errors
///
/// They cannot be written, or not by this user alone.
pub fn install(libraries: &[(&str, &[u8])], others: &[(&str, &[u8])]) -> Result<PathBuf, CliError> {
    let name = format!("{:016x}", hash_of((libraries, others)));
    let path = cache_folder()?.join(name);
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
    let of_32_bits: Vec<u8> = { LIBRARY_32.iter() }
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let stubs =
        { libraries.iter() }.map(|(name, _)| (path.join(PLATFORM_32).join(name), &*of_32_bits));
    let files =
        { others.iter().chain(libraries) }.map(|(name, content)| (path.join(name), *content));
    // Those first that are in the folder itself: it is closed to others by then.
    for (path, content) in files.chain(stubs) {
        let path = &path;
        let installed = own_folders(path).and_then(|()| match holds(path, content) {
            true => Ok(()),
            false => replace(path, content),
        });
        if let Err(error) = installed {
            let path = path.display();
            return fail(format!("cannot write {path}: {error} (set XDG_CACHE_HOME)"));
        }
    }
    for platform in PLATFORMS {
        let link = path.join(platform);
        if fs::read_link(&link).is_ok_and(|to| to == Path::new(".")) {
            continue;
        }
        drop(fs::remove_file(&link));
        // Another tool may have made it meanwhile.
        if let Err(error) = symlink(".", &link)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            let link = link.display();
            return fail(format!("cannot write {link}: {error} (set XDG_CACHE_HOME)"));
        }
    }
    Ok(path)
}

/// Makes the folders of a file in the cache, and closes them to others, who could otherwise put a
/// file of theirs there after it was looked at.
pub(super) fn own_folders(path: &Path) -> io::Result<()> {
    let refused = |path: &Path, why| {
        let path = path.display();
        Err(io::Error::other(format!("{path} {why}")))
    };
    let folder = path.parent().unwrap_or(path);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    for folder in folder.ancestors().take(2) {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = File::from(rustix::fs::open(folder, flags, Mode::empty())?);
        let there = opened.metadata()?;
        if there.uid() != geteuid().as_raw() {
            return refused(folder, "is another user's");
        }
        if there.mode() & 0o077 != 0 {
            opened.set_permissions(Permissions::from_mode(0o700))?;
        }
    }
    // Who may rename one of these can put another cache there.
    let above = folder.canonicalize()?;
    for folder in above.ancestors().skip(2) {
        let mode = folder.metadata()?.mode();
        if mode & 0o1002 == 0o002 {
            return refused(folder, "may be written by everybody");
        }
    }
    Ok(())
}

/// Whether the file is there, this user's alone, with this content: all of it asked of what is
/// open.
fn holds(path: &Path, content: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) else {
        return false;
    };
    let mut file = File::from(file);
    let is_own = file.metadata().is_ok_and(|there| {
        let is_of_len = there.is_file() && there.len() == content.len() as u64;
        is_of_len && there.uid() == geteuid().as_raw() && there.mode() & 0o022 == 0
    });
    let mut bytes = Vec::new();
    is_own && file.read_to_end(&mut bytes).is_ok() && bytes == content
}

/// The library as it is named in `LD_PRELOAD`: the loader of glibc puts one of [`PLATFORMS`] in,
/// and that of musl, whose programs it would end, finds nothing.
pub(super) fn preloaded(library: &Path) -> OsString {
    let folder = library.parent().unwrap_or(library);
    let name = library.file_name().unwrap_or_default();
    folder.join("$PLATFORM").join(name).into()
}

/// Words for the linker by which a program has the callbacks, and the runtime also where nobody
/// preloads it. They follow the program's objects: those with a callback take it from the archive.
pub(super) fn linking(runtime: &Path, regions: bool) -> [OsString; 4] {
    let folder = runtime.parent().unwrap_or(runtime);
    let archive = if regions {
        REGIONS_NAME
    } else {
        FAST_PATH_NAME
    };
    [
        runtime.with_file_name(archive).into(),
        runtime.into(),
        "-rpath".into(),
        folder.into(),
    ]
}

/// Options of the linker by which calls of the allocators that the runtime knows arrive there: a
/// wrapper is a function `__wrap_NAME` for `NAME`. Without a reference to `NAME` itself, mold
/// leaves it in its archive.
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
                format!("--undefined={name}"),
            ]
        })
        .collect()
}

/// Where an exported function of the runtime is, from its first byte on.
pub(super) fn address_of(name: &str) -> Option<u64> {
    let library = object::File::parse(RUNTIME).ok()?;
    let mut symbols = library.dynamic_symbols();
    symbols.find_map(|symbol| (symbol.name() == Ok(name)).then(|| symbol.address()))
}

/// Writes a file that others see whole or not at all, and the folders above it.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // For others to read, as the umask lets; folders of the cache are closed.
    let mut file = Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn the_cache_is_closed_and_only_own_files_are_taken() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("ccscope/1");
        let (path, content) = (folder.join(NAME), b"library");
        own_folders(&path).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&folder), holds(&path, content)), (0o700, false));
        replace(&path, content).unwrap();
        assert!(holds(&path, content) && !holds(&path, b"others'"));
        // As the umask lets, which other tests have, too.
        let beside = cache.path().join("beside");
        File::create(&beside).unwrap();
        assert_eq!(mode(&path), mode(&beside) & 0o644);
        // Others may write to it, or it is somewhere else.
        for rights in [0o620, 0o602] {
            fs::set_permissions(&path, Permissions::from_mode(rights)).unwrap();
            assert!(!holds(&path, content));
        }
        replace(&path, content).unwrap();
        let link = folder.join("link");
        symlink(&path, &link).unwrap();
        assert!(holds(&path, content) && !holds(&link, content));
        // One that was open to others is closed; a link to another place is refused.
        let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        open(&cache.path().join("ccscope"), 0o777).unwrap();
        own_folders(&path).unwrap();
        assert_eq!(mode(&cache.path().join("ccscope")), 0o700);
        symlink(&folder, cache.path().join("other")).unwrap();
        assert!(own_folders(&cache.path().join("other").join(NAME)).is_err());
        open(cache.path(), 0o777).unwrap();
        let refused = own_folders(&path).unwrap_err().to_string();
        assert!(refused.contains("written by everybody"), "{refused}");
        open(cache.path(), 0o1777).unwrap();
        own_folders(&path).unwrap();
    }
}
