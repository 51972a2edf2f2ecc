//! The memory of another process: its mappings, its bytes, and where its libraries' functions are.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;

/// A part of the address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_executable: bool,
    /// In the file.
    pub(super) offset: u64,
    /// Empty without a file.
    pub(super) path: String,
}

impl Mapping {
    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    fn file_name(&self) -> &str {
        let path = self.path.trim_end_matches(" (deleted)");
        path.rsplit('/').next().unwrap_or(path)
    }

    pub(super) fn is_libc(&self) -> bool {
        let name = self.file_name();
        name == "libc.so.6" || name.starts_with("libc-2.")
    }

    /// Whether threads may wait here for a lock of an allocator, or of the runtime.
    pub(super) fn is_of_allocator(&self) -> bool {
        let name = self.file_name();
        name.contains("malloc") || name.contains("libccscope_runtime.so")
    }

    /// Whether the allocator or the dynamic linker may call itself from here.
    pub(super) fn is_of_system(&self) -> bool {
        let name = self.file_name();
        self.is_libc() || name.starts_with("ld-") || name.starts_with("libpthread")
    }
}

/// A line of `/proc/PID/maps`.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        is_executable: rights.contains('x'),
        offset: number(offset)?,
        path: words.nth(2).unwrap_or_default().trim_start().to_owned(),
    })
}

pub(super) fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    let text = fs::read(format!("/proc/{pid}/maps"))?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(mapping).collect())
}

/// The bytes of another process's memory.
#[derive(Debug)]
pub(super) struct Memory(File);

impl Memory {
    pub(super) fn open(pid: u32) -> io::Result<Memory> {
        let mut options = File::options();
        options.read(true).write(true);
        options.open(format!("/proc/{pid}/mem")).map(Memory)
    }

    pub(super) fn read(&self, address: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.0.read_exact_at(&mut bytes, address)?;
        Ok(bytes)
    }

    pub(super) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, address)
    }

    pub(super) fn word(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, address)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// The text at `address`, up to its end or 255 bytes.
    pub(super) fn text(&self, address: u64) -> String {
        let mut bytes = [0; 255];
        let len = self.0.read_at(&mut bytes, address).unwrap_or(0);
        let text = bytes[..len].split(|&byte| byte == 0).next();
        String::from_utf8_lossy(text.unwrap_or_default()).into_owned()
    }

    /// As many words from `address` on as are there, at most `count`.
    pub(super) fn words(&self, address: u64, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; count * 8];
        let len = self.0.read_at(&mut bytes, address).unwrap_or(0);
        let words = bytes[..len].as_chunks::<8>().0;
        words.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// Where the functions `names` of the library are whose file is mapped from `base` on, as its
    /// tables in memory have it: the file may be another one by now.
    pub(super) fn functions<const N: usize>(
        &self,
        base: u64,
        names: [&str; N],
    ) -> io::Result<[Option<u64>; N]> {
        const DYNAMIC: u32 = 2;
        const HASH: u64 = 0x6fff_fef5;
        /// Far more than libraries have.
        const MOST: u64 = 1 << 22;
        let head = self.words(base, 8);
        let (Some(&table), Some(&counts)) = (head.get(4), head.get(7)) else {
            return Ok([None; N]);
        };
        let headers = (0..counts & 0xffff)
            .map(|index| self.read(base + table + index * 56, 56))
            .collect::<io::Result<Vec<_>>>()?;
        let number = |bytes: &[u8], at: usize| {
            let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
            word.map_or(0, |word| u64::from_le_bytes(*word))
        };
        let kind = |header: &[u8]| u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let Some(dynamic) = headers.iter().find(|header| kind(header) == DYNAMIC) else {
            return Ok([None; N]);
        };
        let (mut symbols, mut texts, mut texts_len, mut hash) = (0, 0, 0, 0);
        let len = usize::try_from(number(dynamic, 40).min(1 << 16)).unwrap_or(0);
        for pair in self
            .read(base + number(dynamic, 16), len)?
            .as_chunks::<16>()
            .0
        {
            let value = number(pair, 8);
            match number(pair, 0) {
                0 => break,
                5 => texts = value,
                6 => symbols = value,
                10 => texts_len = value,
                HASH => hash = value,
                _ => {}
            }
        }
        let loaded = |address: u64| {
            if address < base {
                address + base
            } else {
                address
            }
        };
        if [symbols, texts, hash].contains(&0) || texts_len > MOST {
            return Ok([None; N]);
        }
        let count = self.symbol_count(loaded(hash))?.min(MOST);
        let all = self.read(loaded(symbols), usize::try_from(count * 24).unwrap_or(0))?;
        let texts = self.read(loaded(texts), usize::try_from(texts_len).unwrap_or(0))?;
        Ok(names.map(|name| {
            all.as_chunks::<24>().0.iter().find_map(|symbol| {
                let at = usize::try_from(number(symbol, 0) & 0xffff_ffff).ok()?;
                let is_it = texts.get(at..)?.strip_prefix(name.as_bytes())?.first() == Some(&0);
                let (is_function, section) = (symbol[4] & 15 == 2, &symbol[6..8]);
                (is_it && is_function && section != [0, 0])
                    .then(|| base.wrapping_add(number(symbol, 8)))
            })
        }))
    }

    /// Entries of the table of symbols, as the table of hashes at `hash` has it.
    fn symbol_count(&self, hash: u64) -> io::Result<u64> {
        let word = |at| Ok::<_, io::Error>(self.word(at)? & 0xffff_ffff);
        let (buckets, first, filter) = (word(hash)?, word(hash + 4)?, word(hash + 8)?);
        let bucket_at = hash + 16 + filter * 8;
        let len = usize::try_from(buckets.min(1 << 20) * 4).unwrap_or(0);
        let bytes = self.read(bucket_at, len)?;
        let chains = bytes.as_chunks::<4>().0.iter();
        let mut last = chains
            .map(|it| u64::from(u32::from_le_bytes(*it)))
            .max()
            .unwrap_or(0);
        if last < first {
            return Ok(first);
        }
        while word(bucket_at + (buckets + last - first) * 4)? & 1 == 0 {
            last += 1;
        }
        Ok(last + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_process_are_found() {
        let own = std::process::id();
        let (maps, memory) = (mappings(own).unwrap(), Memory::open(own).unwrap());
        let libc = maps
            .iter()
            .find(|it| it.is_libc() && it.offset == 0)
            .unwrap();
        let found = memory
            .functions(libc.start, ["malloc", "no_such_function"])
            .unwrap();
        assert_eq!(found, [Some(libc::malloc as *const () as u64), None]);
        assert!(libc.is_of_system() && libc.contains(libc.start));
        assert_eq!(memory.text(c"a text".as_ptr().addr() as u64), "a text");
        assert!(memory.words(8, 4).is_empty());
    }

    #[test]
    fn lines_of_mappings_are_read() {
        let line = "7f00-8000 r-xp 00001000 fe:00 12345      /a folder/libc.so.6 (deleted)";
        let found = mapping(line).unwrap();
        assert_eq!(
            (found.start, found.end, found.offset),
            (0x7f00, 0x8000, 0x1000)
        );
        assert!(found.is_executable && found.is_libc());
        assert_eq!(mapping("7f00-8000 rw-p 00000000 00:00 0").unwrap().path, "");
        assert!(mapping("").is_none());
    }
}
