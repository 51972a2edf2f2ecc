//! The file in memory that zones are mapped from, and what they have in it.
//!
//! All of it is under the tracer's [lock](crate::LOCK).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::sys::{self, PAGE};
use crate::table::{Zone, all, find, part};
use crate::zones::usable;

/// Size of the file: it has no content where nobody wrote.
const SIZE: u64 = 1 << 44;

static FD: AtomicU64 = AtomicU64::new(0);
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
            crate::start::high(fd.cast_unsigned())
        };
        if sys::failed(fd)
            || sys::failed(sys::call(
                sys::FTRUNCATE,
                [fd.cast_unsigned(), SIZE, 0, 0, 0, 0],
            ))
        {
            return None;
        }
        Some(fd.cast_unsigned())
    }
}

/// The descriptor of the file.
pub(crate) fn descriptor() -> u64 {
    FD.load(Relaxed)
}

/// The program wants the descriptor's number for itself: ours gets another.
pub(crate) fn move_descriptor() {
    let moved = crate::start::high(FD.load(Relaxed));
    FD.store(moved.cast_unsigned(), Relaxed);
}

/// Before all else.
pub(crate) fn init() {
    let Some(file) = new() else {
        sys::die(b"no file in memory can be made");
    };
    FD.store(file, Relaxed);
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
        // SAFETY: the caller's.
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
        // SAFETY: as above.
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
    // SAFETY: the caller's; the alias is the same memory.
    each_written(zone, |at, len| unsafe {
        copy_pages(to + at, alias + at, len);
    });
}

/// Before `fork`: a copy of the file for the child.
pub(crate) fn copy() -> Option<u64> {
    let fd = new()?;
    for zone in all() {
        let len = zone.end - zone.start;
        let both = sys::PROT_READ | sys::PROT_WRITE;
        // SAFETY: the zone's own place in the new file, mapped where nothing is.
        unsafe {
            let copy = sys::map(
                0,
                len,
                both,
                sys::MAP_SHARED | sys::MAP_NORESERVE,
                fd.cast_signed(),
                zone.file,
            );
            if sys::failed(copy) {
                sys::die(b"no memory for fork");
            }
            copy_zone(copy.cast_unsigned(), &zone);
            sys::call(sys::MUNMAP, [copy.cast_unsigned(), len, 0, 0, 0, 0]);
        }
    }
    Some(fd)
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
