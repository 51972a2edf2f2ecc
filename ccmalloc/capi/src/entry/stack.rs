//! Where a thread's stack lies, by the kernel's list of mappings.
//!
//! The C library knows it, too, but answers under a lock, and allocates under it: a `malloc` must
//! not ask.

use core::ops::Range;

use super::thread_state;
use crate::errno;

/// The kernel leaves at least this much below the end of the first thread's stack to it.
const FIRST_STACK_BYTES: usize = 128 << 20;

/// Memory that belongs to the calling thread's stack, and is mapped as long as the thread runs;
/// `None` if that is not certain.
///
/// The first thread's stack has a name in the list. Another's ends with its thread-local variables,
/// if it has a guard below: without one, its mapping may be one with another's.
pub(super) fn of_thread() -> Option<(usize, usize)> {
    // SAFETY: both have no preconditions.
    let is_first = unsafe { libc::syscall(libc::SYS_gettid) == libc::getpid().into() };
    let variables = (&raw const *thread_state()).addr();
    let mut guard_end = 0;
    let mut stack = None;
    for_each_mapping(|mapping, line| {
        if is_first {
            if line.ends_with(b"[stack]") {
                // It grows down, where nothing else is mapped.
                let start = mapping.end.saturating_sub(FIRST_STACK_BYTES);
                stack = Some((start.min(mapping.start), mapping.end));
            }
        } else if mapping.contains(&variables) && guard_end == mapping.start {
            stack = Some((mapping.start, variables));
        }
        // `start-end rwxp`: without any right.
        let is_guard = line.split(|&byte| byte == b' ').nth(1) == Some(b"---p");
        guard_end = if is_guard { mapping.end } else { 0 };
        stack.is_none()
    });
    stack
}

/// Calls `f` with the bounds of each mapping of the process and its line, until it returns `false`.
/// Allocates nothing, and keeps `errno`.
fn for_each_mapping(mut f: impl FnMut(Range<usize>, &[u8]) -> bool) {
    let before = errno::get();
    // SAFETY: the path is a C string.
    let file = unsafe {
        libc::open(
            c"/proc/self/maps".as_ptr(),
            libc::O_RDONLY | libc::O_CLOEXEC,
        )
    };
    let mut room = [0; 8192];
    let mut length = 0;
    let mut goes_on = file >= 0;
    while goes_on {
        let Some(rest) = room.get_mut(length..).filter(|rest| !rest.is_empty()) else {
            // A longer line than there can be.
            break;
        };
        // SAFETY: the rest of the room.
        let read = unsafe { libc::read(file, rest.as_mut_ptr().cast(), rest.len()) };
        let Some(read) = usize::try_from(read).ok().filter(|&read| read > 0) else {
            break;
        };
        length += read;
        let mut used = 0;
        while let Some(rest) = room.get(used..length)
            && let Some(end) = rest.iter().position(|&byte| byte == b'\n')
            && let Some(line) = rest.get(..end)
        {
            used += end + 1;
            goes_on &= bounds(line).is_none_or(|mapping| f(mapping, line));
            if !goes_on {
                break;
            }
        }
        room.copy_within(used..length, 0);
        length -= used;
    }
    if file >= 0 {
        // SAFETY: opened above; closed once.
        unsafe { libc::close(file) };
    }
    errno::set(before);
}

/// The bounds at the start of a line.
fn bounds(line: &[u8]) -> Option<Range<usize>> {
    let text = line.split(|&byte| byte == b' ').next()?;
    let (start, end) = core::str::from_utf8(text).ok()?.split_once('-')?;
    Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
}
