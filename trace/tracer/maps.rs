//! What is mapped: `/proc/self/maps`, and which libraries the tool does not know yet.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::folder::Path;
use super::options::hex;
use super::sys::{self, PAGE};

/// Libraries were mapped that the tool does not know yet.
static MODULES_ARE_NEW: AtomicBool = AtomicBool::new(false);
/// Where the dynamic linker's code begins and ends.
static LINKER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Memory for a copy of `/proc/self/maps`.
static TEXT: AtomicU64 = AtomicU64::new(0);
const SIZE: u64 = 1 << 22;

/// Before all else.
pub(crate) fn init() {
    TEXT.store(sys::memory(SIZE), Relaxed);
}

/// A row of `/proc/self/maps`.
#[derive(Clone, Copy)]
pub(crate) struct Row<'t> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) rights: &'t [u8],
    pub(crate) offset: u64,
    pub(crate) path: &'t [u8],
}

/// Reads `/proc/self/maps`.
///
/// # Safety
///
/// Nobody else is here meanwhile, and what an earlier call returned is not used any more.
pub(crate) unsafe fn read() -> &'static [u8] {
    let place = TEXT.load(Relaxed);
    let mut len = 0;
    // SAFETY: `SIZE` bytes at `place` are mapped for this alone, and no earlier answer is
    // still in use (`# Safety`). `len` of them were written, and the path ends with 0.
    unsafe {
        let name = c"/proc/self/maps".as_ptr() as u64;
        let fd = sys::call(sys::OPEN, [name, 0, 0, 0, 0, 0]);
        if !sys::failed(fd) {
            loop {
                let words = [fd.cast_unsigned(), place + len, SIZE - len, 0, 0, 0];
                let got = sys::call(sys::READ, words);
                if got <= 0 {
                    break;
                }
                len += got.cast_unsigned();
            }
            sys::call(sys::CLOSE, [fd.cast_unsigned(), 0, 0, 0, 0, 0]);
        }
        let first = core::ptr::with_exposed_provenance(place as usize);
        core::slice::from_raw_parts(first, len as usize)
    }
}

pub(crate) fn rows(text: &[u8]) -> impl Iterator<Item = Row<'_>> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.splitn(6, |&byte| byte == b' ');
        let range = words.next()?;
        let dash = range.iter().position(|&byte| byte == b'-')?;
        let rights = words.next()?;
        let offset = hex(words.next()?);
        let path = words.nth(2).unwrap_or_default();
        let path = path.trim_ascii_start();
        Some(Row {
            start: hex(&range[..dash]),
            end: hex(&range[dash + 1..]),
            rights,
            offset,
            path,
        })
    })
}

/// Where the first page of a file is mapped.
pub(crate) fn base_of(path: &[u8]) -> Option<u64> {
    // SAFETY: by the lock invariant nobody else is here. A number is all that is kept of the text.
    let text = unsafe { read() };
    rows(text)
        .find(|row| row.path == path && row.offset == 0)
        .map(|row| row.start)
}

/// Whether code of the file is mapped.
pub(crate) fn is_module(text: &[u8], path: &[u8]) -> bool {
    rows(text).any(|row| row.path == path && row.rights.get(2) == Some(&b'x'))
}

/// Where the last segment of a module ends, with its bss; 0 if that is not known.
pub(crate) fn end_of_module(text: &[u8], path: &[u8]) -> u64 {
    let first = rows(text).find(|row| row.path == path && row.offset == 0);
    let Some(row) = first.filter(|row| row.rights.first() == Some(&b'r')) else {
        return 0;
    };
    const MAGIC: u64 = u64::from_le_bytes(*b"\x7fELF\x02\x01\x01\0");
    const LOADED: u64 = 1;
    const HALF: u64 = 0xffff_ffff;
    // SAFETY: the page is mapped and can be read, and the linker has read the same: the file's
    // header, and segments as it says.
    unsafe {
        if sys::word(row.start) & !(0xff << 56) != MAGIC & !(0xff << 56) {
            return 0;
        }
        let (segments, number) = (
            sys::word(row.start + 32),
            sys::word(row.start + 56) & 0xffff,
        );
        if segments + number * 56 > row.end - row.start {
            return 0;
        }
        let places = (0..number)
            .map(|at| row.start + segments + at * 56)
            .filter(|&at| sys::word(at) & HALF == LOADED)
            .map(|at| [sys::word(at + 8), sys::word(at + 16), sys::word(at + 40)]);
        let base = places.clone().find(|place| place[0] == 0);
        let end = places.map(|[_, address, len]| address + len).max();
        match (base, end) {
            (Some([_, first, _]), Some(end)) => {
                (row.start - (first & !(PAGE - 1)) + end).next_multiple_of(PAGE)
            }
            _ => 0,
        }
    }
}

/// A library is being mapped.
pub(crate) fn note_module() {
    MODULES_ARE_NEW.store(true, Relaxed);
}

/// Whether that happened.
pub(crate) fn modules_are_new() -> bool {
    MODULES_ARE_NEW.load(Relaxed)
}

/// Notes where the dynamic linker's code lies.
pub(crate) fn set_linker(start: u64, end: u64) {
    LINKER[0].store(start, Relaxed);
    LINKER[1].store(end, Relaxed);
}

/// Whether code is the dynamic linker's.
pub(crate) fn is_linker(ip: u64) -> bool {
    let [start, end] = [0, 1].map(|it| LINKER[it].load(Relaxed));
    (start..end).contains(&ip)
}

/// Tells the tool of libraries that are new, once the dynamic linker has mapped all of them.
pub(crate) fn tell_modules(ip: u64) {
    if !is_linker(ip) {
        MODULES_ARE_NEW.store(false, Relaxed);
        let mut name = Path::in_folder();
        name.number(sys::process());
        copy_maps(name);
    }
}

/// Appends `/proc/self/maps` to the file `maps`, by which the tool knows modules, behind a line
/// that says of whom it is. One file costs less than one of each process.
pub(crate) fn copy_maps(mut of: Path) {
    const CREATE_TO_APPEND: u64 = 0o100 | 0o2000 | 1;
    of.text(b"\n");
    let mut path = Path::in_folder();
    path.text(b"maps");
    // SAFETY: by the lock invariant nobody else is here, or the process has one thread. The text is
    // used in this function only.
    let text = unsafe { read() };
    let parts = [of.as_bytes(), text].map(|part| [part.as_ptr() as u64, part.len() as u64]);
    const MOST: u64 = 1 << 40;
    // SAFETY: the path ends with 0, and both parts are readable.
    sys::with_files_of(MOST, || unsafe {
        let words = [path.pointer(), CREATE_TO_APPEND, 0o600, 0, 0, 0];
        let fd = sys::call(sys::OPEN, words);
        if !sys::failed(fd) {
            let fd = fd.cast_unsigned();
            // In one call, so that no other process writes between them.
            sys::call(sys::WRITEV, [fd, (&raw const parts) as u64, 2, 0, 0, 0]);
            sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
        }
        fd
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_maps_have_paths_with_spaces() {
        let text = b"7f00-7f10 r-xp 00002000 08:01 123    /lib/a b.so\n\
            7f10-7f20 rw-p 00000000 00:00 0 \nno row\n";
        let [first, second] = [0, 1].map(|at| rows(text).nth(at).expect("there are two"));
        assert_eq!(
            (first.start, first.end, first.offset),
            (0x7f00, 0x7f10, 0x2000)
        );
        assert_eq!(
            (first.rights, first.path),
            (&b"r-xp"[..], &b"/lib/a b.so"[..])
        );
        assert_eq!((second.start, second.path), (0x7f10, &b""[..]));
        assert_eq!(rows(text).count(), 2);
        assert!(is_module(text, b"/lib/a b.so") && !is_module(text, b""));
    }
}
