//! Writes profiles.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;

use super::section::{self, Kind, TARGET_CONTENT};
use super::{PART_LEN, WindowPart};
use crate::Error;
use crate::profile::{Chunk, PageUse, Profile};

/// Rights of files.
const PRIVATE: u32 = 0o600;

/// Whether `path` is a device, a pipe or the like, or leads to one of the process's open files: it
/// is written as it is, never replaced, and nothing is put beside it.
pub fn is_stream(path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    let is_of_kernel = folder.is_some_and(|folder| {
        let is_memory = folder.starts_with("/dev/shm");
        folder.starts_with("/proc") || folder.starts_with("/dev") && !is_memory
    });
    fs::metadata(path).is_ok_and(|there| !there.is_dir() && (is_of_kernel || !there.is_file()))
}

/// Makes a file that nobody else may read: what the tool writes tells much of a program.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(true);
    options.mode(PRIVATE).open(path)
}

/// Puts the profile at `path` when it is complete.
pub(super) fn save(
    profile: &Profile,
    chunks: impl IntoIterator<Item = Chunk>,
    path: &Path,
) -> Result<(), Error> {
    let failed = |why: &dyn std::fmt::Display| {
        Error::new(format!(
            "the profile cannot be written to {}: {why}",
            path.display()
        ))
    };
    if is_stream(path) || path.is_dir() {
        let file = create(path).map_err(|e| failed(&e))?;
        return write_with(profile, chunks, BufWriter::new(file)).map_err(|e| failed(&e));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".ccscope-")
        .permissions(Permissions::from_mode(PRIVATE))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(|e| failed(&e))?;
    write_with(profile, chunks, BufWriter::new(&file)).map_err(|e| failed(&e))?;
    file.persist(path).map_err(|e| failed(&e.error))?;
    Ok(())
}

/// Writes the profile's bytes to `out`.
///
/// # Errors
///
/// If `out` cannot take them, or a single item is larger than a section may be.
pub fn write(profile: &Profile, out: impl Write) -> Result<(), Error> {
    write_with(profile, std::iter::empty(), out)
}

fn write_with(
    profile: &Profile,
    chunks: impl IntoIterator<Item = Chunk>,
    mut out: impl Write,
) -> Result<(), Error> {
    put(&mut out, &section::file_header())?;
    let mut sections = Sections { out, count: 0 };
    sections.items(Kind::RUN, [&profile.run])?;
    sections.items(Kind::TOTALS, [&profile.total])?;
    sections.items(Kind::FRAMES, &profile.frames)?;
    sections.items(Kind::TYPES, &profile.types)?;
    sections.items(Kind::SITES, &profile.sites)?;
    sections.items(Kind::THREADS, &profile.threads)?;
    sections.items(Kind::CURVE, &profile.curve)?;
    sections.items(Kind::RESIDENT, &profile.resident)?;
    sections.items(Kind::EDGES, &profile.edges)?;
    sections.items(Kind::REGIONS, &profile.regions)?;
    sections.items(Kind::MAPPINGS, &profile.mappings)?;
    let mut before = 0;
    let pages = profile.pages.iter().map(|it| {
        let page = it.page.wrapping_sub(before);
        before = it.page;
        PageUse { page, ..*it }
    });
    sections.items(Kind::PAGES, pages)?;
    sections.items(Kind::LINES, &profile.lines)?;
    sections.items(Kind::EXCEEDED, &profile.exceeded)?;
    sections.items(Kind::LEAKS, &profile.leaks)?;
    sections.items(Kind::LINKS, &profile.links)?;
    let parts = profile.windows.iter().flat_map(|window| {
        // A burst without accesses has a part, too.
        let rest = window
            .accesses
            .get(PART_LEN..)
            .unwrap_or_default()
            .chunks(PART_LEN);
        let first = &window.accesses[..window.accesses.len().min(PART_LEN)];
        let (time, thread) = (window.time, window.thread);
        std::iter::once((false, first))
            .chain(rest.map(|part| (true, part)))
            .map(move |(continues, part)| WindowPart {
                continues,
                time,
                from_start: window.from_start,
                thread,
                accesses: part.into(),
            })
    });
    sections.items(Kind::WINDOWS, parts)?;
    sections.items(Kind::CHUNKS, profile.chunks.iter().copied().chain(chunks))?;
    let count = sections.count;
    sections.put(Kind::END, count, &[])?;
    sections.out.flush().map_err(|e| Error::new(e.to_string()))
}

fn put(out: &mut impl Write, bytes: &[u8]) -> Result<(), Error> {
    out.write_all(bytes).map_err(|e| Error::new(e.to_string()))
}

struct Sections<W> {
    out: W,
    count: u32,
}

impl<W: Write> Sections<W> {
    /// Writes as many sections of one kind as the items need.
    fn items<T: Serialize>(
        &mut self,
        kind: Kind,
        items: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        let (mut content, mut count) = (Vec::new(), 0);
        for item in items {
            let before = content.len();
            // No type of a profile has a form that this encoding lacks.
            content = postcard::to_extend(&item, content).map_err(|e| Error::new(e.to_string()))?;
            if count > 0 && content.len() > TARGET_CONTENT {
                self.put(kind, count, &content[..before])?;
                content.drain(..before);
                count = 0;
            }
            count += 1;
        }
        if count > 0 {
            self.put(kind, count, &content)
        } else {
            Ok(())
        }
    }

    fn put(&mut self, kind: Kind, items: u32, content: &[u8]) -> Result<(), Error> {
        self.count += 1;
        put(&mut self.out, &section::pack(kind, items, content)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_open_files_are_streams() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        assert!(!is_stream(&file));
        create(&file).unwrap();
        let open = File::open(&file).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        for (path, expected) in [
            ("/dev/null".to_owned(), true),
            (format!("/dev/fd/{number}"), true),
            (format!("/proc/self/fd/{number}"), true),
            (file.display().to_string(), false),
            ("/dev".to_owned(), false),
        ] {
            assert_eq!(is_stream(Path::new(&path)), expected, "{path}");
        }
    }
}
