//! A log of all that regions are made of, for tests that compute them in another way: it is written
//! to the file that the environment names.

use core::sync::atomic::{AtomicI32, Ordering};

use super::super::local::Local;
use super::super::sys;

const VARIABLE: &core::ffi::CStr = c"CCSCOPE_EVENTS";
/// The file's descriptor; -1 without a log.
static FILE: AtomicI32 = AtomicI32::new(-1);

/// What an event is; its numbers follow.
#[repr(u8)]
pub(super) enum Event {
    /// Address and size of an access of the heap.
    Load = 1,
    Store = 2,
    /// An address in the function, and the stack pointer.
    Begins = 3,
    /// 0, and the stack pointer.
    Ends = 4,
    /// The name's number.
    Enter = 5,
    Exit = 6,
    /// 0, and the size.
    Allocation = 7,
    /// The span, and its name's number.
    SpanNew = 8,
    /// The span.
    SpanEnter = 9,
    SpanExit = 10,
    SpanClose = 11,
    /// A name's number and length; its bytes follow in as many records as they need.
    Name = 12,
}

/// Opens the log if there is one.
pub(super) fn begin() {
    const O_WRONLY_CREAT_APPEND: u64 = 1 | 0o100 | 0o2000;
    const SYS_OPEN: u64 = 2;
    // SAFETY: the names end with 0.
    unsafe {
        let name = sys::getenv(VARIABLE.as_ptr());
        if !name.is_null() {
            let words = [name as u64, O_WRONLY_CREAT_APPEND, 0o600, 0, 0, 0];
            let file = sys::system_call(SYS_OPEN, words);
            FILE.store(file as i32, Ordering::Relaxed);
        }
    }
}

/// Whether there is a log: then every access must come to where it is written.
#[inline(always)]
pub(super) fn are_written() -> bool {
    FILE.load(Ordering::Relaxed) >= 0
}

/// Adds an event of the calling thread.
#[inline(always)]
pub(super) fn put(local: *mut Local, event: Event, first: u64, second: u64) {
    if are_written() {
        write(local, event, first, second);
    }
}

#[cold]
fn write(local: *mut Local, event: Event, first: u64, second: u64) {
    let record = record(local, event, first, second);
    put_bytes(record.map(u64::to_ne_bytes).as_flattened());
}

fn record(local: *mut Local, event: Event, first: u64, second: u64) -> [u64; 4] {
    // SAFETY: the block is this thread's.
    let thread = unsafe { (*local).thread };
    [event as u64 | u64::from(thread) << 16, first, second, 0]
}

/// Adds a name, of at most 255 bytes.
pub(super) fn put_name(local: *mut Local, number: u32, name: &[u8]) {
    if are_written() {
        // At once: other threads write, too.
        let mut bytes = [0; 32 + 256];
        let record = record(local, Event::Name, number.into(), name.len() as u64);
        for (place, word) in bytes.chunks_mut(8).zip(record) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[32..32 + name.len()].copy_from_slice(name);
        put_bytes(&bytes[..32 + name.len().next_multiple_of(32)]);
    }
}

fn put_bytes(bytes: &[u8]) {
    const SYS_WRITE: u64 = 1;
    let file = FILE.load(Ordering::Relaxed) as u64;
    let (start, len) = (bytes.as_ptr() as u64, bytes.len() as u64);
    // SAFETY: the kernel reads the slice, and nothing else.
    unsafe { sys::system_call(SYS_WRITE, [file, start, len, 0, 0, 0]) };
}
