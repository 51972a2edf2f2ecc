//! Reads profiles, section by section.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use serde::de::DeserializeOwned;

use super::section::{self, FILE_HEADER, HEADER, Header, Kind};
use super::{WindowPart, check};
use crate::Error;
use crate::profile::{Chunk, PageUse, Profile, Window};

/// A profile of which parts are read on demand.
#[derive(Debug)]
pub struct Reader<R> {
    file: R,
    /// Where the stored bytes of each section begin.
    sections: Vec<(u64, Header)>,
    /// What is missing if the file was cut short.
    caveat: Option<String>,
}

impl Reader<File> {
    /// Opens the profile at `path`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is no profile, of another version, or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Reader<File>, Error> {
        let path = path.as_ref();
        let failed = |why: &dyn std::fmt::Display| Error::new(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|e| failed(&e))?;
        if file.metadata().is_ok_and(|there| there.is_dir()) {
            return Err(failed(&"is a folder"));
        }
        Reader::new(file).map_err(|e| failed(&e))
    }
}

fn damaged(what: &str) -> Error {
    Error::new(format!("the profile is damaged: {what}"))
}

/// The checksums are right, so that everything is as somebody has written it.
fn foreign(what: &str) -> Error {
    Error::new(format!(
        "the profile is of another version of ccscope: {what}"
    ))
}

fn unreadable(why: std::io::Error) -> Error {
    Error::new(format!("the profile cannot be read: {why}"))
}

impl<R: Read + Seek> Reader<R> {
    /// Finds the sections of `file`, and reads none.
    ///
    /// # Errors
    ///
    /// If `file` cannot be read, is no profile, of another version, or damaged.
    pub fn new(mut file: R) -> Result<Reader<R>, Error> {
        let len = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        let mut header = Vec::new();
        file.by_ref()
            .take(FILE_HEADER as u64)
            .read_to_end(&mut header)
            .map_err(unreadable)?;
        section::check_file_header(&header)?;
        let mut sections: Vec<(u64, Header)> = Vec::new();
        let mut at = FILE_HEADER as u64;
        // `at` is at most `len`, so nothing overflows.
        while len - at >= HEADER as u64 {
            let mut bytes = [0; HEADER];
            file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
            file.read_exact(&mut bytes).map_err(unreadable)?;
            let header = Header::read(&bytes)?;
            at += HEADER as u64;
            if header.kind == Kind::END {
                let whole = header.items as usize == sections.len() && header.stored == 0;
                if !whole || at != len {
                    return Err(damaged("sections are missing or follow its end"));
                }
                return Ok(Reader {
                    file,
                    sections,
                    caveat: None,
                });
            }
            if len - at < u64::from(header.stored) {
                break;
            }
            sections.push((at, header));
            at += u64::from(header.stored);
        }
        let caveat = "The file was cut short: what came after its first bytes is missing: only \
                      sections before the cut are shown.";
        Ok(Reader {
            file,
            sections,
            caveat: Some(caveat.into()),
        })
    }

    /// Everything but chunks and windows, which are left empty.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is damaged.
    pub fn profile(&mut self) -> Result<Profile, Error> {
        let mut run = self.only::<crate::profile::Run>(Kind::RUN)?;
        run.caveats.extend(self.caveat.clone());
        let total = match (self.items_of(Kind::TOTALS), &self.caveat) {
            (0, Some(_)) => crate::profile::Totals::default(),
            _ => self.only(Kind::TOTALS)?,
        };
        let profile = Profile {
            run,
            total,
            frames: self.all(Kind::FRAMES)?,
            types: self.all(Kind::TYPES)?,
            sites: self.all(Kind::SITES)?,
            threads: self.all(Kind::THREADS)?,
            curve: self.all(Kind::CURVE)?,
            resident: self.all(Kind::RESIDENT)?,
            edges: self.all(Kind::EDGES)?,
            regions: self.all(Kind::REGIONS)?,
            mappings: self.all(Kind::MAPPINGS)?,
            pages: self.pages()?,
            lines: self.all(Kind::LINES)?,
            exceeded: self.all(Kind::EXCEEDED)?,
            leaks: self.all(Kind::LEAKS)?,
            links: self.all(Kind::LINKS)?,
            ..Profile::default()
        };
        check::profile(&profile).map_err(damaged)?;
        Ok(profile)
    }

    /// Pages, which are stored as distances.
    fn pages(&mut self) -> Result<Vec<PageUse>, Error> {
        let mut pages: Vec<PageUse> = self.all(Kind::PAGES)?;
        let mut at = 0_u64;
        for it in &mut pages {
            at = at
                .checked_add(it.page)
                .ok_or_else(|| damaged("a page is beyond all memory"))?;
            it.page = at;
        }
        Ok(pages)
    }

    /// The profile with its chunks and windows.
    pub(super) fn everything(mut self) -> Result<Profile, Error> {
        let mut profile = self.profile()?;
        profile.windows = self.windows().collect::<Result<_, Error>>()?;
        for block in self.chunks() {
            profile.chunks.extend(block?);
        }
        Ok(profile)
    }

    /// Chunks, in blocks of bounded size.
    pub fn chunks(&mut self) -> Chunks<'_, R> {
        let limits = self.limits();
        Chunks {
            sections: self.of_kind(Kind::CHUNKS),
            reader: self,
            limits,
        }
    }

    /// Windows, one at a time.
    pub fn windows(&mut self) -> Windows<'_, R> {
        let limits = self.limits();
        let sections = self.of_kind(Kind::WINDOWS);
        Windows {
            sections,
            reader: self,
            limits,
            parts: Vec::new().into_iter(),
            begun: None,
        }
    }

    fn of_kind(&self, kind: Kind) -> std::vec::IntoIter<(u64, Header)> {
        let of_kind = self
            .sections
            .iter()
            .filter(|(_, header)| header.kind == kind);
        of_kind.copied().collect::<Vec<_>>().into_iter()
    }

    fn items_of(&self, kind: Kind) -> u64 {
        self.of_kind(kind)
            .map(|(_, header)| u64::from(header.items))
            .sum()
    }

    fn limits(&self) -> check::Limits {
        check::Limits {
            sites: self.items_of(Kind::SITES),
            threads: self.items_of(Kind::THREADS),
        }
    }

    fn only<T: DeserializeOwned>(&mut self, kind: Kind) -> Result<T, Error> {
        let mut items = self.all(kind)?;
        match (items.pop(), items.is_empty()) {
            (Some(item), true) => Ok(item),
            _ => Err(damaged("a part that must be there once is not")),
        }
    }

    fn all<T: DeserializeOwned>(&mut self, kind: Kind) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        for section in self.of_kind(kind) {
            self.section(section, &mut items)?;
        }
        Ok(items)
    }

    /// Adds the items of a section to `items`.
    fn section<T: DeserializeOwned>(
        &mut self,
        (at, header): (u64, Header),
        items: &mut Vec<T>,
    ) -> Result<(), Error> {
        self.file.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        // The file was as long when it was opened.
        let mut stored = vec![0; header.stored as usize];
        self.file.read_exact(&mut stored).map_err(unreadable)?;
        let content = header.unpack(stored)?;
        let mut rest = &*content;
        for _ in 0..header.items {
            let (item, after) =
                postcard::take_from_bytes(rest).map_err(|_| foreign("an item cannot be read"))?;
            items.push(item);
            rest = after;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(foreign("a section has more than its items"))
        }
    }
}

/// Blocks of chunks. After an error, there are no more.
#[derive(Debug)]
pub struct Chunks<'r, R> {
    reader: &'r mut Reader<R>,
    sections: std::vec::IntoIter<(u64, Header)>,
    limits: check::Limits,
}

impl<R: Read + Seek> Iterator for Chunks<'_, R> {
    type Item = Result<Vec<Chunk>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let section = self.sections.next()?;
        let mut chunks = Vec::new();
        let read = self.reader.section(section, &mut chunks);
        let checked = read.and_then(|()| self.limits.chunks(&chunks).map_err(damaged));
        if checked.is_err() {
            self.sections = Vec::new().into_iter();
        }
        Some(checked.map(|()| chunks))
    }
}

/// Windows, whose parts may be in several sections. After an error, there are no more.
#[derive(Debug)]
pub struct Windows<'r, R> {
    reader: &'r mut Reader<R>,
    sections: std::vec::IntoIter<(u64, Header)>,
    limits: check::Limits,
    /// Parts of the section that was read last.
    parts: std::vec::IntoIter<WindowPart<'static>>,
    begun: Option<Window>,
}

impl<R: Read + Seek> Windows<'_, R> {
    fn next_part(&mut self) -> Result<Option<WindowPart<'static>>, Error> {
        loop {
            if let Some(part) = self.parts.next() {
                return Ok(Some(part));
            }
            let Some(section) = self.sections.next() else {
                return Ok(None);
            };
            let mut parts = Vec::new();
            self.reader.section(section, &mut parts)?;
            self.parts = parts.into_iter();
        }
    }

    fn next_window(&mut self) -> Result<Option<Window>, Error> {
        while let Some(part) = self.next_part()? {
            if part.continues {
                let begun = self
                    .begun
                    .as_mut()
                    .ok_or_else(|| damaged("a window has no start"))?;
                begun.accesses.extend_from_slice(&part.accesses);
                continue;
            }
            let accesses = part.accesses.into_owned();
            let next = Window {
                time: part.time,
                from_start: part.from_start,
                thread: part.thread,
                accesses,
            };
            if let Some(whole) = self.begun.replace(next) {
                return Ok(Some(whole));
            }
        }
        Ok(self.begun.take())
    }
}

impl<R: Read + Seek> Iterator for Windows<'_, R> {
    type Item = Result<Window, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_window().and_then(|window| {
            let checked = window
                .as_ref()
                .map_or(Ok(()), |window| self.limits.window(window));
            checked.map_err(damaged).map(|()| window)
        });
        if next.is_err() {
            self.sections = Vec::new().into_iter();
            self.parts = Vec::new().into_iter();
            self.begun = None;
        }
        next.transpose()
    }
}
