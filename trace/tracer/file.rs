//! The file in memory that zones are mapped from, and what they have in it.
//!
//! All of it is under the tracer's [lock](super::lock::LOCK).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::sys::{self, PAGE};
use super::zone_table::{Zone, all, find, part, usable};

/// Size of the file: it has no content where nobody wrote.
const SIZE: u64 = 1 << 44;

/// A descriptor of no file.
pub(crate) const NONE: u64 = u64::MAX;
static FD: AtomicU64 = AtomicU64::new(NONE);
static USED: AtomicU64 = AtomicU64::new(0);

/// A file in memory; `None` if there is no descriptor or no memory for it.
fn new() -> Option<u64> {
    const CLOSED_BY_EXEC: u64 = 1;
    // SAFETY: the name ends with 0. A number above those that programs choose is taken.
    unsafe {
        let fd = sys::call(
            sys::MEMFD_CREATE,
            [c"ccscope".as_ptr() as u64, CLOSED_BY_EXEC, 0, 0, 0, 0],
        );
        let fd = if sys::failed(fd) {
            fd
        } else {
            sys::high(fd.cast_unsigned())
        };
        if sys::failed(fd) {
            return None;
        }
        let fd = fd.cast_unsigned();
        if !sys::lengthen(fd, SIZE) {
            sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
            return None;
        }
        Some(fd)
    }
}

/// The descriptor of the file.
pub(crate) fn descriptor() -> u64 {
    FD.load(Relaxed)
}

/// The program wants the descriptor's number for itself: ours gets another.
pub(crate) fn move_descriptor() {
    let moved = sys::high(FD.load(Relaxed));
    FD.store(moved.cast_unsigned(), Relaxed);
}

/// Before all else; false if there can be no file.
pub(crate) fn init() -> bool {
    let file = new();
    FD.store(file.unwrap_or(NONE), Relaxed);
    file.is_some()
}

/// Whether there is a file.
pub(crate) fn is_there() -> bool {
    FD.load(Relaxed) != NONE
}

/// Another file takes its place. The answer is the descriptor of the one before.
pub(crate) fn swap(fd: u64) -> u64 {
    FD.swap(fd, Relaxed)
}

/// A part of the file that was not used before.
pub(crate) fn range(len: u64) -> u64 {
    USED.fetch_add(len, Relaxed)
}

/// A part of the file is zero again and takes no memory.
pub(crate) fn empty(file: u64, len: u64) {
    const KEEP_SIZE_AND_PUNCH_HOLE: u64 = 1 | 2;
    // SAFETY: the file is ours.
    unsafe {
        let fd = FD.load(Relaxed);
        sys::call(
            sys::FALLOCATE,
            [fd, KEEP_SIZE_AND_PUNCH_HOLE, file, len, 0, 0],
        );
    }
}

/// Copies what is not zero, so that the rest takes no memory.
///
/// # Safety
///
/// As for [`sys::copy`]; both are whole pages, and the target's are zero.
pub(crate) unsafe fn copy_pages(to: u64, from: u64, len: u64) {
    for at in (0..len).step_by(PAGE as usize) {
        let page = core::ptr::with_exposed_provenance::<[u64; 512]>((from + at) as usize);
        // SAFETY: `at` is below `len`, so that both pages are whole and within what the caller may
        // read and write (`# Safety`); words of a page are aligned.
        unsafe {
            if (*page).iter().any(|&word| word != 0) {
                sys::copy(to + at, from + at, PAGE);
            }
        }
    }
}

/// Calls `each` with where a zone has content, from its start on, and how much. The rest is holes
/// of the file: who reads these has them take memory. Meanwhile the alias can be read.
fn each_written(zone: &Zone, mut each: impl FnMut(u64, u64)) {
    const SEEK_DATA: u64 = 3;
    const SEEK_HOLE: u64 = 4;
    let (len, fd) = (zone.end - zone.start, FD.load(Relaxed));
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // Memory that may be stored to can be read.
    let is_readable = zone.protection & (sys::PROT_READ | sys::PROT_WRITE) != 0;
    if !is_readable {
        // SAFETY: the alias is the zone's.
        unsafe { sys::protect(alias, len, sys::PROT_READ) };
    }
    // SAFETY: the file is ours, and nobody needs its offset.
    let seek = |at, what| unsafe { sys::call(sys::LSEEK, [fd, at, what, 0, 0, 0]) };
    let end = zone.file + len;
    let mut at = zone.file;
    while at < end {
        let from = seek(at, SEEK_DATA);
        if sys::failed(from) || from.cast_unsigned() >= end {
            break;
        }
        let from = from.cast_unsigned();
        at = seek(from, SEEK_HOLE).cast_unsigned().min(end);
        each(from - zone.file, at - from);
    }
    if !is_readable {
        // SAFETY: the alias is the zone's, and gets back what the program may do with it.
        unsafe { sys::protect(alias, len, zone.protection) };
    }
}

/// Copies a zone to memory of zeros.
///
/// # Safety
///
/// As many bytes are writable there, and of nobody else.
pub(crate) unsafe fn copy_zone(to: u64, zone: &Zone) {
    let alias = zone.start.wrapping_add_signed(zone.delta);
    // SAFETY: `at` and `len` are within the zone, so that the target is within the caller's memory
    // (`# Safety`), of zeros; `each_written` has made the alias readable.
    each_written(zone, |at, len| unsafe {
        copy_pages(to + at, alias + at, len);
    });
}

/// Bytes that are mapped at a time to copy them.
const PIECE: u64 = 1 << 24;

/// Before `fork`: a copy of the file for the child; `None` if there is no descriptor or memory.
pub(crate) fn copy() -> Option<u64> {
    let fd = is_there().then(new)??;
    for zone in all() {
        for start in (zone.start..zone.end).step_by(PIECE as usize) {
            let piece = part(&zone, start, zone.end.min(start + PIECE));
            let len = piece.end - start;
            let both = sys::PROT_READ | sys::PROT_WRITE;
            let flags = sys::MAP_SHARED | sys::MAP_NORESERVE;
            // SAFETY: the zone's own place in the new file, mapped where nothing is, and so
            // writable memory of nobody else.
            unsafe {
                let copy = sys::map(0, len, both, flags, fd.cast_signed(), piece.file);
                if sys::failed(copy) {
                    sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]);
                    return None;
                }
                copy_zone(copy.cast_unsigned(), &piece);
                sys::call(sys::MUNMAP, [copy.cast_unsigned(), len, 0, 0, 0, 0]);
            }
        }
    }
    Some(fd)
}

/// Before `fork` without a file for the child: a copy of all zones, one after the other, in memory
/// that the child gets from the kernel. Its address and length; `None` if there is no room.
pub(crate) fn private_copy() -> Option<[u64; 2]> {
    let len: u64 = all().map(|zone| zone.end - zone.start).sum();
    if len == 0 {
        return Some([0; 2]);
    }
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    let both = sys::PROT_READ | sys::PROT_WRITE;
    // SAFETY: it is put where nothing is.
    let copy = unsafe { sys::map(0, len, both, flags, -1, 0) };
    if sys::failed(copy) {
        return None;
    }
    let mut at = copy.cast_unsigned();
    for zone in all() {
        // SAFETY: of the memory just mapped, which is of zeros, the zone's own part.
        unsafe { copy_zone(at, &zone) };
        at += zone.end - zone.start;
    }
    Some([copy.cast_unsigned(), len])
}

/// Copies content from one range to another of zeros; parts of both may lie outside of zones.
pub(crate) fn copy_content(to: u64, from: u64, len: u64) {
    let mut at = from;
    while at < from + len {
        let zone = find(at);
        let end = zone.map_or(at + PAGE, |zone| zone.end).min(from + len);
        let place = to + (at - from);
        match zone {
            Some(zone) => each_written(&part(&zone, at, end), |offset, len| {
                for offset in (offset..offset + len).step_by(PAGE as usize) {
                    let from = at.wrapping_add_signed(zone.delta) + offset;
                    // SAFETY: whole pages of an alias; the target was just made.
                    unsafe { sys::copy(usable(place + offset), from, PAGE) };
                }
            }),
            // SAFETY: a whole page, if the program has it; the target was just made.
            None => unsafe {
                sys::try_copy(usable(place), at, PAGE);
            },
        }
        at = end;
    }
}
