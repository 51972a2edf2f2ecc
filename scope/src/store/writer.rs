//! Writes profiles.

use std::fs::{self, File, Permissions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde::Serialize;

use super::section::{self, Kind, TARGET_CONTENT};
use super::{PART_LEN, WindowPart};
use crate::Error;
use crate::profile::{Chunk, PageUse, Profile};

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
    if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
        // A device or a pipe cannot be replaced.
        let file = File::options()
            .write(true)
            .open(path)
            .map_err(|e| failed(&e))?;
        return write_with(profile, chunks, BufWriter::new(file)).map_err(|e| failed(&e));
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let file = tempfile::Builder::new()
        .prefix(".ccscope-")
        .permissions(Permissions::from_mode(0o666))
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
            // No type of a profile has a form that this encoding lacks.
            let item = postcard::to_allocvec(&item).map_err(|e| Error::new(e.to_string()))?;
            if count > 0 && content.len() + item.len() > TARGET_CONTENT {
                self.put(kind, count, &content)?;
                content.clear();
                count = 0;
            }
            content.extend(item);
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
