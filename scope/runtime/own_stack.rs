//! Where the stack of a thread is that ran before this library came: the kernel is asked, as libc
//! cannot be within `malloc`.
//!
//! Libc puts a thread's variables at the end of its stack, and a page without rights below it. So
//! the stack is what is mapped around the variables, if such a page is right below.

use super::local::Local;
use super::sys;

/// What is read of the list of mappings at once: stacks may be small.
const ROOM: usize = 512;

/// The stack of the thread that `local` is of, from its address to where its variables begin;
/// zeros if it is not one of libc's.
pub(crate) fn find(local: *const Local) -> [u64; 2] {
    const OPEN: u64 = 2;
    const READ: u64 = 0;
    const CLOSE: u64 = 3;
    const CLOSED_BY_EXEC: u64 = 0o2_000_000;
    let path = c"/proc/thread-self/maps".as_ptr().expose_provenance() as u64;
    let mut lines = Lines::new(local.addr() as u64);
    let mut bytes = [0_u8; ROOM];
    // SAFETY: the path ends with 0, and the kernel writes at most `ROOM` bytes.
    unsafe {
        let file = sys::system_call(OPEN, [path, CLOSED_BY_EXEC, 0, 0, 0, 0]);
        let Ok(file) = u64::try_from(file) else {
            return [0; 2];
        };
        while lines.found.is_none() {
            let words = [file, (&raw mut bytes) as u64, ROOM as u64, 0, 0, 0];
            let len = usize::try_from(sys::system_call(READ, words)).unwrap_or(0);
            if len == 0 {
                break;
            }
            bytes.iter().take(len).for_each(|&byte| lines.add(byte));
        }
        sys::system_call(CLOSE, [file, 0, 0, 0, 0, 0]);
    }
    lines.found.unwrap_or_default()
}

/// The part of a line that comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Start,
    End,
    Rights,
    Rest,
}

/// Takes lines of `/proc/PID/maps`, byte by byte.
struct Lines {
    address: u64,
    part: Part,
    start: u64,
    end: u64,
    is_closed: bool,
    /// The end of the mapping before, if it has no rights.
    guard: u64,
    found: Option<[u64; 2]>,
}

impl Lines {
    fn new(address: u64) -> Lines {
        Lines {
            address,
            part: Part::Start,
            start: 0,
            end: 0,
            is_closed: true,
            guard: 0,
            found: None,
        }
    }

    fn add(&mut self, byte: u8) {
        let digit = |sum: u64| match char::from(byte).to_digit(16) {
            Some(digit) => sum << 4 | u64::from(digit),
            None => sum,
        };
        match (self.part, byte) {
            (_, b'\n') => self.end_line(),
            (Part::Start, b'-') => self.part = Part::End,
            (Part::Start, _) => self.start = digit(self.start),
            (Part::End, b' ') => self.part = Part::Rights,
            (Part::End, _) => self.end = digit(self.end),
            (Part::Rights, b' ') => self.part = Part::Rest,
            (Part::Rights, _) => self.is_closed &= matches!(byte, b'-' | b'p'),
            (Part::Rest, _) => {}
        }
    }

    fn end_line(&mut self) {
        let Lines {
            address,
            start,
            end,
            is_closed,
            guard,
            found,
            ..
        } = *self;
        let is_it = start <= address && address < end;
        *self = Lines {
            guard: if is_closed { end } else { 0 },
            found: match found {
                None if is_it && guard == start => Some([start, address & !7]),
                None if is_it => Some([0; 2]),
                found => found,
            },
            ..Lines::new(address)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_ends_where_the_variables_begin() {
        let found = |text: &str, address| {
            let mut lines = Lines::new(address);
            text.bytes().for_each(|byte| lines.add(byte));
            lines.found
        };
        let text = "1000-2000 ---p 00000000 00:00 0\n2000-5000 rw-p 00000000 00:00 0 \n\
            7000-8000 rw-p 00001000 fe:00 12 /lib/a---p\n8000-9000 r--p 0 0 0\n";
        assert_eq!(found(text, 0x4808), Some([0x2000, 0x4808]));
        assert_eq!(found(text, 0x7008), Some([0; 2]));
        assert_eq!(found(text, 0x6000), None);
    }

    #[test]
    fn a_thread_has_a_stack_and_the_first_one_is_known_otherwise() {
        let here = 0_u64;
        let own = std::thread::spawn(|| {
            let here = 0_u64;
            let found = find(super::super::local::local());
            (found, (&raw const here).addr() as u64)
        });
        let (found, sp) = own.join().unwrap();
        assert!(found[0] < sp && sp < found[1], "{found:x?} {sp:x}");
        let found = find((&raw const here).cast());
        assert!(found[0] < (&raw const here).addr() as u64);
    }
}
