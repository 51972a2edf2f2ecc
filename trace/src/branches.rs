//! Which instructions of a process are safe to patch: their code is as in its file, their function
//! decodes cleanly from its start, and no branch leads into them. Bytes between functions may be
//! data, and do not spoil the functions behind them.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use iced_x86::{Decoder, DecoderError, DecoderOptions, FlowControl};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SectionKind, SymbolKind};

use super::wire::Question;

/// Files of code that were looked at.
#[derive(Default)]
pub(super) struct Files {
    files: HashMap<PathBuf, Option<File>>,
    /// Where processes have them mapped.
    rows: HashMap<i32, Vec<Row>>,
}

/// Code of a file in a process.
struct Row {
    addresses: Range<u64>,
    offset: u64,
    path: PathBuf,
}

struct File {
    bytes: Vec<u8>,
    /// Offsets in the file at which instructions begin, as bits.
    starts: Vec<u64>,
    /// Those to which branches lead, in order.
    targets: Vec<u64>,
}

impl Files {
    /// Whether the instruction may be patched that process `pid` asks about, of `len` bytes.
    pub(super) fn allow(&mut self, pid: i32, question: &Question, len: u64) -> bool {
        let Some((path, at)) = self.mapped(pid, question.ip) else {
            return false;
        };
        let file = self
            .files
            .entry(path)
            .or_insert_with_key(|path| File::read(path));
        let Some(file) = file else {
            return false;
        };
        let range = |it: u64| usize::try_from(it).unwrap_or(usize::MAX);
        let there = file.bytes.get(range(at)..range(at.saturating_add(len)));
        let own = question.bytes.get(..range(len));
        let first = file.targets.partition_point(|&target| target <= at);
        let next = file.targets.get(first).copied().unwrap_or(u64::MAX);
        let is_start =
            { file.starts.get(range(at / 64)) }.is_some_and(|it| it >> (at % 64) & 1 != 0);
        is_start && there.is_some() && there == own && next >= at + len
    }

    /// The file that is mapped at an address as code, and the offset in it. What was mapped before
    /// may be gone: whoever asks compares the bytes.
    fn mapped(&mut self, pid: i32, address: u64) -> Option<(PathBuf, u64)> {
        let rows = self.rows.entry(pid).or_default();
        let is_there = |row: &&Row| row.addresses.contains(&address);
        if !rows.iter().any(|row| is_there(&row)) {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
            *rows = maps.lines().filter_map(row).collect();
        }
        let row = rows.iter().find(is_there)?;
        let at = address - row.addresses.start + row.offset;
        Some((row.path.clone(), at))
    }
}

/// A line of `/proc/PID/maps`, if it is of code in a file.
fn row(line: &str) -> Option<Row> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let addresses = hex(start)?..hex(end)?;
    if words.next()? != "r-xp" {
        return None;
    }
    let offset = hex(words.next()?)?;
    let path = PathBuf::from(words.nth(2)?.trim_start());
    path.is_absolute().then_some(Row {
        addresses,
        offset,
        path,
    })
}

impl File {
    fn read(path: &Path) -> Option<File> {
        let bytes = fs::read(path).ok()?;
        let file = object::File::parse(&*bytes).ok()?;
        let segments: Vec<(u64, u64, u64)> = file
            .segments()
            .map(|it| (it.address(), it.size(), it.file_range().0))
            .collect();
        let place = |address: u64| {
            let segment =
                { segments.iter() }.find(|(start, size, _)| address.wrapping_sub(*start) < *size);
            segment.map(|(start, _, offset)| address - start + offset)
        };
        let mut starts = vec![0; bytes.len().div_ceil(64)];
        let functions = functions(&file);
        let mut targets: Vec<u64> = functions.iter().copied().filter_map(place).collect();
        for section in file.sections().filter(|it| it.kind() == SectionKind::Text) {
            let code = section.data().ok()?;
            let (offset, _) = section.file_range()?;
            let first = section.address();
            // A section may be empty, and what a damaged file says may be no address.
            let end = first.checked_add(section.size())?;
            let mut borders: Vec<u64> = functions.range(first..end).copied().collect();
            borders.extend([first, end]);
            borders.sort_unstable();
            for part in borders.windows(2) {
                let within = |at: u64| usize::try_from(at - first).unwrap_or(usize::MAX);
                let code = code.get(within(part[0])..within(part[1]))?;
                let mut decoder = Decoder::with_ip(64, code, part[0], DecoderOptions::NONE);
                let (mut own, mut is_code) = (Vec::new(), true);
                while decoder.can_decode() {
                    let instruction = decoder.decode();
                    match decoder.last_error() {
                        DecoderError::None => own.push(instruction.ip() - first + offset),
                        // The next function begins within it.
                        DecoderError::NoMoreBytes => {}
                        _ => is_code = false,
                    }
                    let is_direct = matches!(
                        instruction.flow_control(),
                        FlowControl::UnconditionalBranch
                            | FlowControl::ConditionalBranch
                            | FlowControl::Call
                            | FlowControl::XbeginXabortXend
                    );
                    if is_direct {
                        targets.extend(place(instruction.near_branch_target()));
                    }
                }
                for at in own.into_iter().filter(|_| is_code) {
                    *starts.get_mut(usize::try_from(at / 64).ok()?)? |= 1_u64 << (at % 64);
                }
            }
        }
        targets.sort_unstable();
        targets.dedup();
        Some(File {
            bytes,
            starts,
            targets,
        })
    }
}

/// Where functions begin: by the symbols, and by the tables for unwinding, which files without
/// symbols have, too.
fn functions(file: &object::File<'_>) -> BTreeSet<u64> {
    let mut all: BTreeSet<u64> = { file.symbols().chain(file.dynamic_symbols()) }
        .filter(|it| it.kind() == SymbolKind::Text)
        .map(|it| it.address())
        .collect();
    if let Some(section) = file.section_by_name(".eh_frame")
        && let Ok(data) = section.data()
    {
        let frames = EhFrame::new(data, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let mut entries = frames.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(entry) = entry
                && let Ok(entry) = entry.parse(EhFrame::cie_from_offset)
            {
                all.insert(entry.initial_address());
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::FOR_PATCH;

    #[test]
    fn code_of_a_file_is_told_from_other_memory() {
        let own = code_of_a_file_is_told_from_other_memory as fn() as usize as u64;
        let pid = i32::try_from(std::process::id()).unwrap();
        let question = |ip: u64, bytes: [u8; 16]| Question {
            asks: FOR_PATCH,
            ip,
            thunk: 0,
            delta: 0,
            len: 16,
            bytes,
        };
        let mut files = Files::default();
        let (path, at) = files.mapped(pid, own).unwrap();
        assert_eq!(path, std::env::current_exe().unwrap());
        let code = fs::read(&path).unwrap();
        let at = usize::try_from(at).unwrap();
        let bytes: [u8; 16] = code[at..at + 16].try_into().unwrap();
        assert!(files.allow(pid, &question(own, bytes), 1));
        let mut other = bytes;
        other[0] ^= 1;
        assert!(!files.allow(pid, &question(own, other), 1));
        let data = Box::new(0_u64);
        let place = std::ptr::from_ref(&*data).addr() as u64;
        assert!(!files.allow(pid, &question(place, bytes), 1));
        // Somewhere a branch leads behind an instruction of one byte.
        let file = files.files[&path].as_ref().unwrap();
        let index = |it: u64| usize::try_from(it).unwrap();
        let is_start = |at: u64| file.starts[index(at / 64)] >> (at % 64) & 1 != 0;
        let target = { file.targets.iter() }.find(|&&it| it > at as u64 && is_start(it - 1));
        let before = index(target.unwrap() - 1);
        let ip = own - at as u64 + before as u64;
        let bytes: [u8; 16] = code[before..before + 16].try_into().unwrap();
        assert!(!files.allow(pid, &question(ip, bytes), 2));
        assert!(files.allow(pid, &question(ip, bytes), 1));
    }

    #[test]
    fn damaged_and_empty_sections_have_no_instructions() {
        let folder = tempfile::TempDir::new().unwrap();
        let [source, library] = ["it.s", "it.so"].map(|name| folder.path().join(name));
        let text = ".globl it\n.type it, @function\nit: movl (%rdi), %eax\nret\n";
        fs::write(&source, text).unwrap();
        link(&source, &library);
        let count = |file: &File| -> u32 { file.starts.iter().map(|it| it.count_ones()).sum() };
        assert_eq!(count(&File::read(&library).unwrap()), 2);
        let bytes = fs::read(&library).unwrap();
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        // Headers of sections have their flags at 8, and their size at 32.
        let (headers, sections) = (usize::try_from(number(40)).unwrap(), usize::from(bytes[60]));
        let mut headers = (0..sections).map(|it| headers + it * 64);
        let code = headers.find(|&at| number(at + 8) & 4 != 0).unwrap();
        for size in [0, u64::MAX] {
            let mut damaged = bytes.clone();
            damaged[code + 32..code + 40].copy_from_slice(&size.to_le_bytes());
            fs::write(&library, damaged).unwrap();
            assert_eq!(File::read(&library).map_or(0, |it| count(&it)), 0);
        }
        for len in (0..bytes.len()).step_by(61) {
            fs::write(&library, &bytes[..len]).unwrap();
            assert!(File::read(&library).is_none_or(|it| count(&it) <= 2));
        }
    }

    /// Makes a library of assembly.
    fn link(source: &Path, library: &Path) {
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-shared", "-nostdlib", "-o"]);
        assert!(
            compiler
                .arg(library)
                .arg(source)
                .status()
                .unwrap()
                .success()
        );
    }

    #[test]
    fn data_among_code_hides_nothing() {
        let folder = tempfile::TempDir::new().unwrap();
        let [source, library] = ["it.s", "it.so"].map(|name| folder.path().join(name));
        // A byte that would make a jump of the four behind it, and one that is no instruction.
        let text = "
            .globl first, second, third
            .type first, @function
            .type second, @function
            .type third, @function
            first:  movl (%rdi), %eax
                    ret
                    .byte 0xe9
            second: movl (%rdi), %eax
                    jmp 1f
                    nop
            1:      movl (%rsi), %eax
                    ret
            third:  movl (%rdi), %eax
                    ret
                    .byte 0x06
                    nop
        ";
        fs::write(&source, text).unwrap();
        link(&source, &library);
        let file = File::read(&library).unwrap();
        let bytes = fs::read(&library).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let section = object.section_by_name(".text").unwrap();
        let (at, _) = section.file_range().unwrap();
        let is_start = |it: u64| {
            let word = file.starts[usize::try_from((at + it) / 64).unwrap()];
            word >> ((at + it) % 64) & 1 != 0
        };
        let starts: Vec<u64> = (0..section.size()).filter(|&it| is_start(it)).collect();
        assert_eq!(starts, [0, 2, 4, 6, 8, 9, 11]);
        let targets: Vec<u64> = file.targets.iter().map(|it| it - at).collect();
        assert_eq!(targets, [0, 4, 9, 12]);
    }
}
