//! Reads the files of the tracer: events, and the modules of the process.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use object::{Object, ObjectSegment};

use super::wire::{self, HEADER, MAGIC};
use ccscope::Error;
use ccscope::capture_format::Module;

/// Something that happened; its number is its place in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Counted from 0 in each process.
    pub order: u64,
    /// A letter of [`wire`].
    pub kind: u8,
    /// The kernel's number.
    pub thread: u32,
    /// The instruction; of a call, where it returns to.
    pub ip: u64,
    /// The first byte.
    pub address: u64,
    /// Bytes.
    pub len: u64,
    /// Of copies and what moves: where from.
    pub from: u64,
    /// Of allocations: where the callers return to, innermost first.
    pub callers: Vec<u64>,
}

impl Event {
    /// Whether it is an access of one instruction.
    #[must_use]
    pub fn is_access(&self) -> bool {
        self.kind == wire::LOAD || self.kind == wire::STORE
    }
}

/// What the file's start says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The process.
    pub pid: u64,
    /// Events.
    pub events: u64,
    /// Events that had no room.
    pub lost: u64,
    /// Faults that were answered.
    pub faults: u64,
    /// Instructions that were stepped.
    pub stepped: u64,
    /// Instructions that the tracer carried out.
    pub emulated: u64,
    /// Mappings that were left out.
    pub left_out: u64,
    /// Instructions that were patched.
    pub patched: u64,
}

/// A file of events.
#[derive(Debug)]
pub struct Reader {
    /// What its start says.
    pub counts: Counts,
    file: BufReader<File>,
    next: u64,
    left: u64,
    /// Events that were read to find what belongs to an earlier one.
    ahead: VecDeque<Event>,
}

/// Events of other threads that may come between an event and what belongs to it.
const AHEAD: usize = 4096;

impl Reader {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read or has another form.
    pub fn open(path: &Path) -> Result<Reader, Error> {
        let refused =
            |why: &dyn std::fmt::Display| Error::new(format!("{}: {why}", path.display()));
        let file = File::open(path).map_err(|why| refused(&why))?;
        let len = file.metadata().map_err(|why| refused(&why))?.len();
        let mut file = BufReader::with_capacity(1 << 20, file);
        let mut header = [0_u8; HEADER];
        file.read_exact(&mut header)
            .map_err(|_| refused(&"it has no header"))?;
        let word =
            |at: usize| u64::from_le_bytes(header[at * 8..][..8].try_into().expect("eight bytes"));
        if word(0) != MAGIC {
            return Err(refused(&"no file of this version's tracer"));
        }
        let there = len.saturating_sub(HEADER as u64) / size_of::<wire::Event>() as u64;
        let whole = word(2).min(word(3)).min(there);
        Ok(Reader {
            counts: Counts {
                pid: word(1),
                events: whole,
                lost: word(2) - whole,
                faults: word(4),
                stepped: word(5),
                emulated: word(6),
                left_out: word(7),
                patched: word(8),
            },
            file,
            next: 0,
            left: whole,
            ahead: VecDeque::new(),
        })
    }

    /// The next record as it was written.
    fn record(&mut self) -> Option<Event> {
        while self.left > 0 {
            self.left -= 1;
            let order = self.next;
            self.next += 1;
            let mut bytes = [0_u8; size_of::<wire::Event>()];
            self.file.read_exact(&mut bytes).ok()?;
            let word =
                |at: usize| u64::from_le_bytes(bytes[at..][..8].try_into().expect("eight bytes"));
            let (kind, size) = (bytes[28], u16::from_le_bytes([bytes[30], bytes[31]]));
            // A thread that ended while it wrote.
            if kind == 0 {
                continue;
            }
            let is_access = kind == wire::LOAD || kind == wire::STORE;
            return Some(Event {
                order,
                kind,
                thread: u32::from_le_bytes(bytes[24..28].try_into().expect("four bytes")),
                ip: word(0),
                address: word(8),
                len: if is_access { size.into() } else { word(16) },
                from: 0,
                callers: if kind == wire::FRAMES {
                    vec![word(16)]
                } else {
                    Vec::new()
                },
            });
        }
        None
    }

    /// Reads one more record ahead; what belongs to an event goes there.
    fn read_ahead(&mut self) -> bool {
        let Some(event) = self.record() else {
            return false;
        };
        if event.kind != wire::PREVIOUS && event.kind != wire::FRAMES {
            self.ahead.push_back(event);
            return true;
        }
        let owner = self
            .ahead
            .iter_mut()
            .rev()
            .find(|it| it.thread == event.thread);
        if let Some(owner) = owner {
            if event.kind == wire::PREVIOUS {
                owner.from = event.address;
            } else {
                let words = [event.ip, event.address].into_iter().chain(event.callers);
                owner.callers.extend(words.filter(|&word| word != 0));
            }
        }
        true
    }
}

impl Iterator for Reader {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let is_whole = self.ahead.front().is_some_and(|first| {
                !has_more(first.kind)
                    || self.ahead.len() > AHEAD
                    || self
                        .ahead
                        .iter()
                        .skip(1)
                        .any(|it| it.thread == first.thread)
            });
            if is_whole || !self.read_ahead() {
                return self.ahead.pop_front();
            }
        }
    }
}

/// Whether records may belong to events of this kind.
fn has_more(kind: u8) -> bool {
    use wire::{CALLOC, COPY, MALLOC, MMAP, MREMAP, REALLOC};
    [COPY, MALLOC, CALLOC, MMAP, REALLOC, MREMAP].contains(&kind)
}

/// A mapping of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// First byte.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
    /// As `r-xp`.
    pub rights: String,
    /// What is mapped: a file, or `[heap]`; of bss, the file before it with `(bss)`.
    pub name: String,
}

/// The mappings of a process before they were taken over.
#[derive(Clone, Debug, Default)]
pub struct Maps {
    /// In order of addresses.
    pub rows: Vec<Row>,
    /// Executables and libraries.
    pub modules: Vec<Module>,
}

impl Maps {
    /// Reads the file `maps` beside a file of events. What cannot be read is left out: names get
    /// poorer.
    #[must_use]
    pub fn of(events: &Path) -> Maps {
        let turn = events.file_stem().unwrap_or_default().to_string_lossy();
        let process = turn.split('.').next().unwrap_or_default();
        let bytes = fs::read(events.with_file_name("maps")).unwrap_or_default();
        // The first is of the start; the other has libraries that came later.
        let (mut first, mut later, mut owner) = (String::new(), String::new(), "");
        let text = String::from_utf8_lossy(&bytes);
        for line in text.split_inclusive('\n') {
            if line.starts_with('/') {
                owner = line.trim_end().rsplit('/').next().unwrap_or_default();
            } else if owner == turn {
                first.push_str(line);
            } else if owner == process {
                later.push_str(line);
            }
        }
        let mut maps = Maps::default();
        for line in first.lines().chain(of_program(&first, &later)) {
            maps.line(line);
        }
        maps.rows.sort_by_key(|row| row.start);
        maps
    }

    fn line(&mut self, line: &str) {
        let mut words = line.splitn(6, ' ');
        let (Some(range), Some(mut rights)) = (words.next(), words.next()) else {
            return;
        };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let Some((start, end)) = range.split_once('-') else {
            return;
        };
        let (Some(start), Some(end)) = (hex(start), hex(end)) else {
            return;
        };
        let mut name = words.nth(3).unwrap_or_default().trim().to_owned();
        if self.rows.iter().any(|row| row.start == start) {
            return;
        }
        let before = self
            .rows
            .last()
            .filter(|row| row.end == start && row.name.starts_with('/'));
        // What the tracer has put there: data of the file before it, or none of the program's.
        if name.starts_with("/memfd:ccscope") {
            let Some(before) = before else { return };
            name.clone_from(&before.name);
            rights = "rw-p";
        }
        if name.is_empty()
            && let Some(before) = before
        {
            name = format!("{} (bss)", before.name.trim_end_matches(" (bss)"));
        }
        let is_code = rights.contains('x') && name.starts_with('/');
        let is_known =
            |row_start: u64| { self.modules.last() }.is_some_and(|last| row_start < last.end);
        if is_code && !is_known(start) {
            // Other files may be large, or be devices and pipes that wait for somebody.
            let rows = self.rows.iter().rev();
            let first = rows
                .take_while(|row| row.name == name && !is_known(row.start))
                .last()
                .map_or(start, |row| row.start);
            self.modules.extend(module(first, &name));
        } else if let Some(module) = self.modules.last_mut()
            && path_of(module) == Path::new(name.trim_end_matches(" (bss)"))
        {
            module.end = module.end.max(end);
        }
        self.rows.push(Row {
            start,
            end,
            rights: rights.to_owned(),
            name,
        });
    }

    /// The mapping that contains an address.
    #[must_use]
    pub fn row(&self, address: u64) -> Option<&Row> {
        let at = self
            .rows
            .partition_point(|row| row.start <= address)
            .checked_sub(1)?;
        self.rows.get(at).filter(|row| address < row.end)
    }
}

/// The lines of later copies of the mappings that are of the same program as the first: a process
/// that becomes another program has copies of both.
fn of_program<'t>(first: &str, later: &'t str) -> impl Iterator<Item = &'t str> {
    let is_file = |line: &&str| line.contains('/');
    let own = first.lines().find(is_file).unwrap_or_default().to_owned();
    let start = |line: &str| {
        let hex = line.split('-').next().unwrap_or_default();
        u64::from_str_radix(hex, 16).unwrap_or(0)
    };
    let lines: Vec<&str> = later.lines().collect();
    let copies = lines.chunk_by(|a, b| start(a) <= start(b));
    let of_it: Vec<&str> = { copies.filter(|copy| copy.contains(&&*own)) }
        .flatten()
        .copied()
        .collect();
    of_it.into_iter()
}

/// The file of a module.
pub(super) fn path_of(module: &Module) -> PathBuf {
    let path = module
        .path
        .split(|&byte| byte == 0)
        .next()
        .unwrap_or_default();
    PathBuf::from(String::from_utf8_lossy(path).into_owned())
}

/// The executable or library whose first page is mapped at `start`.
fn module(start: u64, path: &str) -> Option<Module> {
    let mut file = File::open(path).ok()?;
    let mut bytes = vec![0; 4];
    file.read_exact(&mut bytes).ok()?;
    if bytes != *b"\x7fELF" {
        return None;
    }
    file.read_to_end(&mut bytes).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let first = file.segments().map(|segment| segment.address()).min()? & !0xfff;
    let last = file
        .segments()
        .map(|segment| segment.address() + segment.size())
        .max()?;
    let bias = start.wrapping_sub(first);
    let mut name = [0; 488];
    name.get_mut(..path.len())?.copy_from_slice(path.as_bytes());
    Some(Module {
        start,
        end: bias.wrapping_add(last),
        bias,
        path: name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, thread: u32, words: [u64; 3]) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(thread.to_le_bytes());
        bytes.extend([kind, 0, 4, 0]);
        bytes
    }

    fn file(records: &[Vec<u8>]) -> tempfile::NamedTempFile {
        let mut bytes = vec![0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[16..24].copy_from_slice(&(records.len() as u64).to_le_bytes());
        bytes[24..32].copy_from_slice(&100_u64.to_le_bytes());
        bytes.extend(records.concat());
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        file
    }

    #[test]
    fn what_belongs_to_an_event_is_found_among_other_threads() {
        let file = file(&[
            record(wire::COPY, 1, [7, 100, 50]),
            record(wire::LOAD, 2, [8, 200, 0]),
            record(wire::PREVIOUS, 1, [7, 300, 0]),
            record(wire::MALLOC, 2, [9, 400, 16]),
            record(wire::FRAMES, 2, [10, 11, 0]),
            record(wire::STORE, 1, [12, 500, 0]),
        ]);
        let events: Vec<Event> = Reader::open(file.path()).unwrap().collect();
        assert_eq!(events.len(), 4);
        assert_eq!((events[0].from, events[0].len), (300, 50));
        assert_eq!((events[1].kind, events[1].len), (wire::LOAD, 4));
        assert_eq!(events[2].callers, [10, 11]);
        assert_eq!(events[3].order, 5);
    }

    #[test]
    fn damaged_files_are_refused_or_read_as_far_as_they_go() {
        let whole = file(&[
            record(wire::LOAD, 1, [1, 2, 3]),
            record(wire::LOAD, 1, [4, 5, 6]),
        ]);
        let bytes = fs::read(whole.path()).unwrap();
        for len in 0..bytes.len() {
            let part = tempfile::NamedTempFile::new().unwrap();
            fs::write(part.path(), &bytes[..len]).unwrap();
            match Reader::open(part.path()) {
                Ok(reader) => assert!(reader.count() <= 1),
                Err(why) => assert!(why.to_string().contains("header")),
            }
        }
        let mut other = bytes;
        other[0] ^= 1;
        fs::write(whole.path(), other).unwrap();
        assert!(
            Reader::open(whole.path())
                .unwrap_err()
                .to_string()
                .contains("version")
        );
    }

    #[test]
    fn files_without_code_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let mkfifo = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(mkfifo.unwrap().success());
        let program = std::env::current_exe().unwrap();
        let mut maps = Maps::default();
        // It would wait for a writer.
        maps.line(&format!(
            "1000-2000 rw-s 00000000 08:01 5 {}",
            pipe.display()
        ));
        for row in ["3000-4000 r--p 00000000", "4000-5000 r-xp 00001000"] {
            maps.line(&format!("{row} 08:01 6 {}", program.display()));
        }
        assert_eq!(maps.modules.len(), 1);
        assert_eq!(maps.modules[0].start, 0x3000);
    }

    #[test]
    fn later_mappings_are_those_of_the_same_program() {
        let folder = tempfile::tempdir().unwrap();
        let own = "1000-2000 r--p 00000000 08:01 5 /none";
        let lib = "\
            500-600 rwxp 00000000 00:00 0 \n1000-2000 r--p 00000000 08:01 5 /none\n\
            7000-8000 r--p 00000000 08:01 6 /lib\n8000-9000 ---s 00001000 00:01 7 /memfd:ccscope\n\
            a000-b000 rw-s 00001000 00:01 7 /memfd:ccscope\n";
        let other = "1000-3000 r--p 00000000 08:01 5 /other\n5000-6000 r--p 00000000 08:01 5 /x\n";
        let events = folder.path().join("7.0.events");
        let text = format!("/x/7.0\n{own}\n/x/70.0\n{other}/x/7\n{lib}{other}");
        fs::write(folder.path().join("maps"), text).unwrap();
        let rows = Maps::of(&events).rows;
        let names: Vec<(u64, &str)> = rows.iter().map(|it| (it.start, &*it.name)).collect();
        let expected = [
            (0x500, ""),
            (0x1000, "/none"),
            (0x7000, "/lib"),
            (0x8000, "/lib"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn mappings_are_named() {
        let mut maps = Maps::default();
        for line in [
            "1000-2000 r--p 00000000 08:01 5 /none",
            "2000-3000 rw-p 00001000 08:01 5 /none",
            "3000-4000 rw-p 00000000 00:00 0 ",
            "9000-a000 rw-p 00000000 00:00 0                          [heap]",
            "nonsense",
        ] {
            maps.line(line);
        }
        let name = |address| maps.row(address).map(|row| row.name.as_str());
        assert_eq!(name(0x2fff), Some("/none"));
        assert_eq!(name(0x3000), Some("/none (bss)"));
        assert_eq!(name(0x9123), Some("[heap]"));
        assert_eq!((name(0x8fff), name(0)), (None, None));
    }
}
