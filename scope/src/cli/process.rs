//! A process that has sent its capture.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use memmap2::{Mmap, MmapOptions};
use rustix::fs::{MemfdFlags, SealFlags, SeekFrom};
use rustix::io::Errno;

use super::secrets;
use super::socket::Arrival;
use super::spool::Spool;
use crate::capture::leaks::Scan;
use crate::capture_format::{self, Header, MAGIC, Module, layout};
use crate::profile::{Exit, Resident, Run};

/// What an access takes of the runtime, and what an allocation with its free takes besides, with
/// warm caches: measured in loops of C, with and without the tool, on a virtual EPYC.
const EVENT_NS: f64 = 1.8;
const CALL_NS: f64 = 115.0;

/// What the profiler takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overhead {
    /// At least this part of the process's processor time; unknown at first.
    pub(super) time: Option<f64>,
    /// Size of the capture.
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// File name of what it runs now, if it is still there.
    program: String,
    pub(super) command: Vec<String>,
    pub(super) exit: Exit,
    capture: File,
    /// `/proc/PID/status`, kept open: a sample takes one system call.
    status: Option<File>,
    resident: Vec<Resident>,
    /// What was leaked at its end, if it was looked for, or why nobody could.
    pub(super) leaks: Option<Result<Scan, String>>,
    /// Freed chunks; `None` if there is no room for them on the disk.
    dead: Option<Spool>,
    /// Whether it was there before the recording.
    is_attached: bool,
    /// Snapshots that the program has asked for so far.
    asked: u64,
}

impl Process {
    pub(super) fn new(arrival: Arrival, keep_arguments: bool) -> Process {
        let Arrival { pid, capture } = arrival;
        // Both are empty for a process that has ended and been waited for.
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = line.split_inclusive(|&byte| byte == 0);
        let words = words.map(|word| {
            String::from_utf8_lossy(word)
                .trim_end_matches('\0')
                .to_owned()
        });
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        Process {
            pid,
            program: name.trim_end_matches(" (deleted)").to_owned(),
            command: secrets::hide(&words.collect::<Vec<_>>(), keep_arguments),
            exit: Exit::Unknown,
            capture,
            status: Status::open(pid),
            resident: Vec::new(),
            leaks: None,
            dead: Spool::new().ok(),
            is_attached: false,
            asked: 0,
        }
    }

    /// The same of one that was there before.
    pub(super) fn attached(arrival: Arrival, keep_arguments: bool) -> Process {
        Process {
            is_attached: true,
            ..Process::new(arrival, keep_arguments)
        }
    }

    /// Takes the chunks that have died since.
    pub(super) fn drain(&mut self) -> io::Result<()> {
        match (self.header(), &mut self.dead) {
            (Some(header), Some(spool)) => spool.drain(&self.capture, &header),
            _ => Ok(()),
        }
    }

    /// Whether it is the one that was started or attached to: its end is known.
    pub(super) fn is_main(&self) -> bool {
        self.is_attached || self.exit != Exit::Unknown
    }

    /// Whether the program has asked for a snapshot since.
    pub(super) fn asks_for_snapshot(&mut self) -> bool {
        let asked = self.header().map_or(0, |header| header.asked);
        asked > std::mem::replace(&mut self.asked, asked)
    }

    /// What it is now.
    pub(super) fn copy(&self) -> io::Result<Process> {
        Ok(Process {
            program: self.program.clone(),
            command: self.command.clone(),
            capture: copy(&self.capture)?,
            status: None,
            resident: self.resident.clone(),
            leaks: None,
            dead: self.dead.as_ref().map(Spool::share).transpose()?,
            ..*self
        })
    }

    /// What the runtime has counted so far; `None` if this is no capture.
    pub(super) fn header(&self) -> Option<Header> {
        let mut bytes = [0; size_of::<Header>()];
        self.capture
            .read_exact_at(&mut bytes, layout::HEADER)
            .ok()?;
        capture_format::read::<Header>(&bytes, 0).filter(|header| header.magic == MAGIC)
    }

    /// Notes how much memory of the process is resident. The capture is shared memory, which
    /// does not count.
    pub(super) fn sample(&mut self) {
        let status = self.status.as_ref().and_then(Status::read);
        let Some(bytes) = status.and_then(|status| status.resident) else {
            return;
        };
        let Some(header) = self.header() else { return };
        let ns = nanoseconds_now().saturating_sub(header.start_ns);
        self.resident.push(Resident {
            time: header.events,
            ns,
            bytes,
        });
    }

    /// File name of the program. A process may have started another one since, so the runtime knows
    /// better than the kernel.
    pub(super) fn name(&self) -> String {
        let seen = self.executable();
        let name = seen.as_deref().and_then(Path::file_name);
        name.map_or_else(
            || self.program.clone(),
            |name| name.to_string_lossy().into_owned(),
        )
    }

    /// What the profiler takes of the process so far.
    pub(super) fn overhead(&self, header: &Header) -> Overhead {
        let own = header.events as f64 * EVENT_NS + header.total.allocations as f64 * CALL_NS;
        let used = processor_ns(self.pid).filter(|&used| used > 0.0);
        let blocks = self.capture.metadata().map_or(0, |file| file.blocks());
        Overhead {
            time: used.map(|used| own / used),
            bytes: blocks * 512,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        let status = self.status.as_ref().and_then(Status::read);
        status.is_none_or(|status| status.is_zombie)
    }

    /// The executable as the runtime has seen it, if it has come so far.
    pub(super) fn executable(&self) -> Option<PathBuf> {
        let mut bytes = [0; size_of::<Module>()];
        self.capture
            .read_exact_at(&mut bytes, layout::MODULES)
            .ok()?;
        let module = capture_format::read::<Module>(&bytes, 0)?;
        let path = module.path.split(|&byte| byte == 0).next()?;
        let path = String::from_utf8_lossy(path).into_owned();
        Some(PathBuf::from(path)).filter(|path| path.file_name().is_some())
    }

    pub(super) fn capture(&self) -> &File {
        &self.capture
    }

    /// The capture and what is known about the run, to make a profile of.
    pub(super) fn finish(
        mut self,
        run: Run,
    ) -> io::Result<(Mapped, Run, Vec<Resident>, Option<Spool>)> {
        self.drain()?;
        if self.command.is_empty() {
            // It has ended or started another program before it could be asked.
            let program = self.executable().unwrap_or_default();
            self.command = vec![program.to_string_lossy().into_owned()];
        }
        // A copy has no status, and is of a process that ran.
        if self.exit == Exit::Unknown && self.status.is_some() && self.has_ended() {
            self.exit = Exit::Ended;
        }
        let Process {
            pid,
            command,
            exit,
            capture,
            resident,
            dead,
            ..
        } = self;
        Ok((
            map(capture)?,
            Run {
                pid,
                command,
                exit,
                ..run
            },
            resident,
            dead,
        ))
    }
}

/// Lines of `/proc/PID/status`.
struct Status {
    /// Bytes; `None` once the process has given up its memory.
    resident: Option<u64>,
    is_zombie: bool,
}

impl Status {
    /// More than the lines take, with all groups that a user has.
    const ROOM: usize = 1 << 14;

    fn open(pid: u32) -> Option<File> {
        File::open(format!("/proc/{pid}/status")).ok()
    }

    /// `None` once the process has ended and has been waited for.
    fn read(file: &File) -> Option<Status> {
        let mut bytes = [0; Status::ROOM];
        let len = file.read_at(&mut bytes, 0).ok()?;
        let text = String::from_utf8_lossy(&bytes[..len]);
        let value = |name| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let bytes = |name| {
            let number = value(name)?.strip_suffix(" kB")?.parse::<u64>().ok()?;
            Some(number * 1024)
        };
        let resident = bytes("RssAnon:").zip(bytes("RssFile:"));
        Some(Status {
            resident: resident.map(|(anonymous, file)| anonymous + file),
            is_zombie: value("State:").is_some_and(|state| state.starts_with(['Z', 'X'])),
        })
    }
}

/// The time for which the threads of a process have run, in their own code and the kernel's.
fn processor_ns(pid: u32) -> Option<f64> {
    /// Linux counts in these for programs, whatever it does itself.
    const NS_OF_TICK: f64 = 1e7;
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name, in brackets.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) * NS_OF_TICK)
}

pub(super) fn nanoseconds_now() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    now.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// A capture, and what of it is no hole.
pub(super) type Mapped = (Mmap, Vec<Range<u64>>);

/// Maps a capture that nobody can change any more. Where a process still writes to it, a copy.
pub(super) fn map(capture: File) -> io::Result<Mapped> {
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
    let file = match rustix::fs::fcntl_add_seals(&capture, seals) {
        Ok(()) => capture,
        Err(_) => {
            let copy = copy(&capture)?;
            rustix::fs::fcntl_add_seals(&copy, seals)?;
            copy
        }
    };
    if file.metadata()?.len() < layout::PAGES {
        return Err(io::Error::other("it is too short"));
    }
    let data = data(&file)?;
    let mut options = MmapOptions::new();
    // The parts behind are the runtime's own.
    options.len(layout::PAGES.try_into().map_err(io::Error::other)?);
    let mapped = options.no_reserve_swap().map_if_safe(&file);
    Ok((mapped.map_err(io::Error::other)?, data))
}

/// In which order parts of a capture are copied while a process writes to it: what refers to
/// others first, so that these are there, and what counts them last.
const PARTS: [fn(u64) -> bool; 5] = [
    |at| at >= layout::REGIONS && !(layout::HEAP..layout::HEAP_END).contains(&at),
    |at| (layout::SITES..layout::REGIONS).contains(&at),
    |at| (layout::NODES..layout::SITES).contains(&at),
    |at| (layout::HEAP..layout::HEAP_END).contains(&at),
    |at| at < layout::NODES,
];

/// Copies what is not a hole.
fn copy(capture: &File) -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(rustix::fs::memfd_create("ccscope", flags)?);
    file.set_len(capture.metadata()?.len())?;
    let mut buffer = vec![0; 1 << 20];
    for is_part in PARTS {
        for Range { start: mut at, end } in
            data(capture)?.into_iter().filter(|it| is_part(it.start))
        {
            while at < end {
                let len = buffer
                    .len()
                    .min((end - at).try_into().unwrap_or(usize::MAX));
                capture.read_exact_at(&mut buffer[..len], at)?;
                file.write_all_at(&buffer[..len], at)?;
                at += len as u64;
            }
        }
    }
    Ok(file)
}

/// The parts of a capture that are no holes.
pub(super) fn data(capture: &File) -> io::Result<Vec<Range<u64>>> {
    let (mut data, mut end) = (Vec::new(), 0);
    loop {
        let start = match rustix::fs::seek(capture, SeekFrom::Data(end)) {
            Ok(start) if start < layout::PAGES => start,
            Ok(_) | Err(Errno::NXIO) => return Ok(data),
            Err(error) => return Err(error.into()),
        };
        end = rustix::fs::seek(capture, SeekFrom::Hole(start))?.min(layout::PAGES);
        data.push(start..end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> File {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(rustix::fs::memfd_create("test", flags).unwrap());
        file.set_len(layout::END).unwrap();
        file.write_all_at(&MAGIC.to_ne_bytes(), 0).unwrap();
        file.write_all_at(b"far", layout::WINDOWS + 5000).unwrap();
        file
    }

    #[test]
    fn captures_of_ended_and_of_running_processes_are_mapped() {
        for is_written in [false, true] {
            let file = capture();
            let writer = is_written.then(|| {
                // SAFETY: nobody shortens the file.
                unsafe { MmapOptions::new().len(4096).map_mut(&file).unwrap() }
            });
            let (capture, data) = map(file).unwrap();
            let pages = 0..4096;
            let far = layout::WINDOWS + 4096..layout::WINDOWS + 8192;
            assert_eq!(data, [pages, far]);
            assert_eq!(capture_format::read::<u64>(&capture, 0), Some(MAGIC));
            let at = usize::try_from(layout::WINDOWS).unwrap() + 5000;
            assert_eq!(&capture[at..at + 4], b"far\0");
            drop(writer);
        }
    }

    #[test]
    fn counts_of_a_damaged_header_take_no_memory() {
        let file = capture();
        let set = |at: usize, value: u64| {
            file.write_all_at(&value.to_ne_bytes(), at as u64).unwrap();
        };
        set(
            std::mem::offset_of!(Header, version),
            capture_format::VERSION.into(),
        );
        let most = [
            (std::mem::offset_of!(Header, chunks), layout::MAX_CHUNKS),
            (std::mem::offset_of!(Header, sites), layout::MAX_SITES),
            (std::mem::offset_of!(Header, regions), layout::MAX_REGIONS),
            (
                std::mem::offset_of!(Header, heap_used),
                layout::HEAP_END - layout::HEAP,
            ),
        ];
        most.into_iter().for_each(|(at, count)| set(at, count));
        let held = file.try_clone().unwrap();
        let (bytes, data) = map(file).unwrap();
        let mut symbols = crate::symbols::Symbols::default();
        let made = crate::capture::profile_and_numbers(
            &bytes,
            &data,
            Run::default(),
            Vec::new(),
            &mut symbols,
        );
        made.unwrap();
        assert!(held.metadata().unwrap().blocks() * 512 < 1 << 20);
    }

    #[test]
    fn own_memory_is_resident() {
        let of = |pid| Status::read(&Status::open(pid)?);
        let status = of(std::process::id()).unwrap();
        assert!(status.resident.unwrap() > 100 << 10 && !status.is_zombie);
        assert!(processor_ns(std::process::id()).is_some());
        assert!(of(u32::MAX).is_none());
    }

    #[test]
    fn a_process_is_named_and_its_header_read() {
        let arrival = Arrival {
            pid: std::process::id(),
            capture: capture(),
        };
        let mut process = Process::new(arrival, false);
        assert_eq!(process.header().unwrap().events, 0);
        process.sample();
        assert_eq!(process.resident.len(), 1);
        assert!(
            !process.has_ended() && process.name().starts_with("ccscope-"),
            "{process:?}"
        );
        assert!(!process.command.is_empty());
    }
}
