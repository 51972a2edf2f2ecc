//! Programs that run as without the tool, because the library cannot be preloaded: those that are
//! linked statically, use another C library, are for another processor, take other rights (setuid),
//! or have a sanitizer.
//!
//! The kernel and the loaders leave the library out of all but the last. `musl`'s loader does not
//! know `$PLATFORM` in `LD_PRELOAD`, and so finds no file there. A sanitizer's runtime ends the
//! process where it finds another library first: so this one, while the loader still links the
//! program, starts it once more without itself.
//!
//! [`leave_sanitized_programs`](crate::leave_sanitized_programs) is for the last.

use core::ffi::c_char;

use crate::sys::system_call;

const OPEN: u64 = 2;
const CLOSE: u64 = 3;
const READ: u64 = 0;
const STAT: u64 = 4;
const FSTAT: u64 = 5;
const WRITEV: u64 = 20;
const EXECVE: u64 = 59;
const GETUID: u64 = 102;
const GETGID: u64 = 104;
const CLOSED_BY_EXEC: u64 = 0o2_000_000;

/// What is read of a program's file.
const HEAD: usize = 2048;
/// How many interpreters of scripts may be scripts themselves, as in the kernel.
const SCRIPTS: u32 = 4;

/// What the first bytes of a program's file say.
#[derive(Debug, PartialEq, Eq)]
enum Head<'b> {
    /// The library can be in it, or it is no program.
    Plain,
    Aside(&'static [u8]),
    /// Starts this file.
    Script(&'b [u8]),
}

const IS_STATIC: &[u8] = b"it is linked statically";
const IS_MUSL: &[u8] = b"it is a musl program";
const IS_FOREIGN: &[u8] = b"it is not for x86-64";
const IS_SETUID: &[u8] = b"it is setuid or setgid";
const IS_SANITIZED: &[u8] = b"it has a sanitizer of its own";

fn number(bytes: &[u8], at: usize, len: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(len)?)?;
    Some({ word.iter().rev() }.fold(0, |sum, &byte| sum << 8 | usize::from(byte)))
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|it| it == part)
}

fn head(bytes: &[u8]) -> Head<'_> {
    const X86_64: usize = 62;
    const INTERPRETER: usize = 3;
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let words = line.split(|byte| [b' ', b'\t', b'\r'].contains(byte));
        return match words.into_iter().find(|word| !word.is_empty()) {
            Some(word) => Head::Script(word),
            None => Head::Plain,
        };
    }
    if !bytes.starts_with(b"\x7fELF") || bytes.len() < 64 {
        return Head::Plain;
    }
    if bytes[4] != 2 || number(bytes, 18, 2) != Some(X86_64) {
        return Head::Aside(IS_FOREIGN);
    }
    let (table, size) = (number(bytes, 32, 8), number(bytes, 54, 2));
    let (Some(table), Some(size), Some(count)) = (table, size, number(bytes, 56, 2)) else {
        return Head::Plain;
    };
    for entry in (0..count).map(|at| table.saturating_add(at * size)) {
        match number(bytes, entry, 4) {
            Some(INTERPRETER) => {
                let place = number(bytes, entry + 8, 8).zip(number(bytes, entry + 32, 8));
                let name = place.and_then(|(at, len)| bytes.get(at..at.checked_add(len)?));
                return match name {
                    Some(name) if has(name, b"musl") => Head::Aside(IS_MUSL),
                    _ => Head::Plain,
                };
            }
            Some(_) => {}
            // The table goes on where nothing was read.
            None => return Head::Plain,
        }
    }
    Head::Aside(IS_STATIC)
}

/// Why the library will not be in the program at `path`.
///
/// # Safety
///
/// `path` ends with 0.
pub unsafe fn reason(path: *const c_char) -> Option<&'static [u8]> {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let mut name = [0_u8; HEAD];
    let mut place = path as u64;
    for _ in 0..SCRIPTS {
        let mut bytes = [0_u8; HEAD];
        let mut status = [0_u32; 36];
        // SAFETY: `place` is `path`, which ends with 0 (`# Safety`), or `name`, which has a 0
        // behind what is copied below. The kernel writes 144 bytes of status, and at most `HEAD`.
        let (len, own) = unsafe {
            let fd = system_call(OPEN, [place, CLOSED_BY_EXEC, 0, 0, 0, 0]).cast_unsigned();
            if fd.cast_signed() < 0 {
                return None;
            }
            system_call(FSTAT, [fd, (&raw mut status) as u64, 0, 0, 0, 0]);
            let words = [fd, (&raw mut bytes) as u64, HEAD as u64, 0, 0, 0];
            let len = system_call(READ, words);
            system_call(CLOSE, [fd, 0, 0, 0, 0, 0]);
            (len, [GETUID, GETGID].map(|it| system_call(it, [0; 6])))
        };
        let [mode, user, group] = [status[6], status[7], status[8]];
        if mode & SET_USER != 0 && i64::from(user) != own[0]
            || mode & SET_GROUP == SET_GROUP && i64::from(group) != own[1]
        {
            return Some(IS_SETUID);
        }
        match head(&bytes[..usize::try_from(len).unwrap_or(0).min(HEAD)]) {
            Head::Plain => return None,
            Head::Aside(why) => return Some(why),
            Head::Script(next) => {
                let len = next.len().min(HEAD - 1);
                name[..len].copy_from_slice(&next[..len]);
                name[len] = 0;
                place = name.as_ptr() as u64;
            }
        }
    }
    None
}

/// Has the tool say that a program runs as without it.
///
/// # Safety
///
/// `program` ends with 0.
pub unsafe fn say(folder: &[u8], program: *const c_char, why: &[u8]) {
    const CREATE_TO_APPEND: u64 = 0o100 | 0o2000 | 1 | CLOSED_BY_EXEC;
    let mut path = [0_u8; 256];
    let name = b"/said\0";
    if folder.is_empty() || folder.len() + name.len() > path.len() {
        return;
    }
    path[..folder.len()].copy_from_slice(folder);
    path[folder.len()..][..name.len()].copy_from_slice(name);
    // SAFETY: `program` ends with 0 (`# Safety`), and so does `path`; the slices are readable.
    unsafe {
        let program = text_at(program.cast());
        let parts = [program, b" runs as without the tool: ", why, b"\n"];
        let parts = parts.map(|part| [part.as_ptr() as u64, part.len() as u64]);
        let words = [path.as_ptr() as u64, CREATE_TO_APPEND, 0o600, 0, 0, 0];
        let fd = system_call(OPEN, words).cast_unsigned();
        if fd.cast_signed() >= 0 {
            system_call(WRITEV, [fd, (&raw const parts) as u64, 4, 0, 0, 0]);
            system_call(CLOSE, [fd, 0, 0, 0, 0, 0]);
        }
    }
}

/// A text that ends with 0, without a function of libc, which a sanitizer may have taken over.
///
/// # Safety
///
/// It does, and lives as long as the slice is used.
unsafe fn text_at<'t>(at: *const u8) -> &'t [u8] {
    let mut len = 0;
    // SAFETY: no byte behind the 0 at the end is read (`# Safety`).
    unsafe {
        while *core::hint::black_box(at.add(len)) != 0 {
            len += 1;
        }
        core::slice::from_raw_parts(at, len)
    }
}

/// Takes `library` out of the list `text`, which ends with 0, in place; whether it was there.
///
/// # Safety
///
/// `text` ends with 0, and nobody else uses it.
unsafe fn leave_out(text: *mut u8, library: &[u8]) -> bool {
    let ends = |byte: u8| [b':', b' ', 0].contains(&byte);
    let (mut from, mut to, mut was) = (text, text, false);
    // SAFETY: `from` stops at the 0 that ends the text (`# Safety`), and `to` is never behind it.
    unsafe {
        while *from != 0 {
            let mut len = 0;
            while !ends(*from.add(len)) {
                len += 1;
            }
            let is_own = core::slice::from_raw_parts(from, len).ends_with(library);
            was |= is_own;
            let len = len + usize::from(*from.add(len) != 0);
            for at in 0..len * usize::from(!is_own) {
                *to = *from.add(at);
                to = to.add(1);
            }
            from = from.add(len);
        }
        *to = 0;
    }
    was
}

/// Whether the program has a sanitizer whose functions it keeps to itself: functions that the
/// program may have for them are in its table of names.
///
/// # Safety
///
/// `segments` is where the loader has the program's headers, or 0, and the program is mapped.
unsafe fn is_sanitized(segments: u64) -> bool {
    const FIRST: &[u8] = b"__sanitizer_malloc_hook\0";
    const SECOND: &[u8] = b"__sanitizer_print_memory_profile\0";
    const OWN: u32 = 6;
    const DYNAMIC: u32 = 2;
    const NAMES: u64 = 5;
    const NAMES_LEN: u64 = 10;
    #[repr(C)]
    struct Segment {
        kind: u32,
        flags: u32,
        offset: u64,
        address: u64,
        rest: [u64; 4],
    }
    if segments == 0 {
        return false;
    }
    let mut segment = core::ptr::with_exposed_provenance::<Segment>(segments as usize);
    // SAFETY: headers of a program that can be loaded begin with its own place, and one of them
    // tells of the dynamic section, which ends with 0 and says where names are and how many bytes
    // these have (`# Safety`). The loader has read the same.
    unsafe {
        if (*segment).kind != OWN {
            return false;
        }
        let base = segments - (*segment).address;
        for _ in 0..16 {
            if (*segment).kind == DYNAMIC {
                break;
            }
            segment = segment.add(1);
        }
        if (*segment).kind != DYNAMIC {
            return false;
        }
        let place = base + (*segment).address;
        let mut entry = core::ptr::with_exposed_provenance::<[u64; 2]>(place as usize);
        let (mut names, mut len) = (0, 0);
        while (*entry)[0] != 0 {
            match *entry {
                [NAMES, at] => names = at,
                [NAMES_LEN, bytes] => len = bytes as usize,
                _ => {}
            }
            entry = entry.add(1);
        }
        // Loaders add the base in place.
        let names = if names < base { names + base } else { names };
        let names = core::ptr::with_exposed_provenance::<u8>(names as usize);
        let is_at = |at: usize, name: &[u8]| {
            at + name.len() <= len && (0..name.len()).all(|it| *names.add(at + it) == name[it])
        };
        (0..len).any(|at| *names.add(at) == b'_' && (is_at(at, FIRST) || is_at(at, SECOND)))
    }
}

/// Starts the program anew without this library, if it has a sanitizer.
///
/// `found` is not 0 if the process has a function of one. `folder_in` gives, of a variable of the
/// environment, the folder where the tool is told of things.
///
/// # Safety
///
/// The loader is linking the program: no code of other libraries has run, and none may be called.
pub unsafe fn start_again(
    found: u64,
    library: &[u8],
    folder_in: fn(variable: &[u8]) -> Option<&[u8]>,
) {
    const PRELOAD: &[u8] = b"LD_PRELOAD=";
    const SEGMENTS: u64 = 3;
    const NAME_OF_PROGRAM: u64 = 31;
    unsafe extern "C" {
        static __libc_stack_end: *mut u64;
    }
    // SAFETY: the loader has put the address of the initial stack there: the number of arguments,
    // them, the environment and the auxiliary vector, the first three each with a 0 behind. All
    // texts end with 0. The process has one thread, and the loader is done with these.
    unsafe {
        let stack = __libc_stack_end;
        // A program with a copy of this variable, as Node.js, has not been given its value yet.
        if stack.is_null() {
            return;
        }
        let arguments = stack.add(1);
        let environment = arguments.add(*stack as usize + 1);
        let mut at = environment;
        while *at != 0 {
            at = at.add(1);
        }
        let pairs = at.add(1).cast::<[u64; 2]>();
        let value = |key| {
            let mut pair = pairs;
            while (*pair)[0] != 0 && (*pair)[0] != key {
                pair = pair.add(1);
            }
            (*pair)[1]
        };
        if found == 0 && !is_sanitized(value(SEGMENTS)) {
            return;
        }
        let (mut from, mut to, mut was) = (environment, environment, false);
        let mut folder = &b""[..];
        while *from != 0 {
            let text = core::ptr::with_exposed_provenance_mut::<u8>(*from as usize);
            let whole = text_at(text);
            let is_list = whole.starts_with(PRELOAD);
            if let Some(found) = folder_in(whole) {
                folder = found;
            }
            let mut stays = true;
            if is_list {
                let list = text.add(PRELOAD.len());
                was |= leave_out(list, library);
                stays = *list != 0;
            }
            *to = *from;
            to = to.add(usize::from(stays));
            from = from.add(1);
        }
        *to = 0;
        if !was {
            return;
        }
        let name = value(NAME_OF_PROGRAM);
        // Of a script, it is the script's.
        let own = c"/proc/self/exe".as_ptr() as u64;
        let mut file = [0_u64; 36];
        for (at, path) in [own, name].into_iter().enumerate() {
            let place = (&raw mut file[at * 18]) as u64;
            system_call(STAT, [path, place, 0, 0, 0, 0]);
        }
        let is_same = file[0] == file[18] && file[1] == file[19];
        let program = if is_same { name } else { own };
        let shown = core::ptr::with_exposed_provenance(*arguments as usize);
        say(folder, shown, IS_SANITIZED);
        let words = [program, arguments as u64, environment as u64, 0, 0, 0];
        system_call(EXECVE, words);
    }
}

/// Has the library that this is written in leave programs that have a sanitizer: its file's name,
/// and what [`start_again`] takes as `folder_in`.
///
/// The loader asks the library for the address of a function that nobody calls, when all other
/// addresses of it are known. Each sanitizer with an allocator has one of the three functions.
#[macro_export]
macro_rules! leave_sanitized_programs {
    ($library:expr, $folder_in:expr) => {
        extern "C" fn ccscope_start_again(found: u64) {
            // SAFETY: the loader calls this while it links, before code of other libraries runs.
            unsafe { $crate::aside::start_again(found, $library, $folder_in) }
        }

        core::arch::global_asm!(
            ".weak __lsan_do_leak_check",
            ".weak __tsan_init",
            ".weak __msan_init",
            ".hidden ccscope_aside",
            ".globl ccscope_aside",
            ".type ccscope_aside,@gnu_indirect_function",
            "ccscope_aside:",
            "mov rdi, [rip + __lsan_do_leak_check@GOTPCREL]",
            "or rdi, [rip + __tsan_init@GOTPCREL]",
            "or rdi, [rip + __msan_init@GOTPCREL]",
            "sub rsp, 8",
            "call {start_again}",
            "add rsp, 8",
            "lea rax, [rip + ccscope_aside]",
            "ret",
            start_again = sym ccscope_start_again,
        );

        unsafe extern "C" {
            fn ccscope_aside();
        }

        #[used]
        static ASKS: unsafe extern "C" fn() = ccscope_aside;
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_by_their_first_bytes() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let own = &own[..HEAD];
        assert_eq!(head(own), Head::Plain);
        let mut other = own.to_vec();
        other[18] = 183;
        assert_eq!(head(&other), Head::Aside(IS_FOREIGN));
        other[4] = 1;
        assert_eq!(head(&other), Head::Aside(IS_FOREIGN));
        let at = own.windows(10).position(|it| it == b"/ld-linux-").unwrap();
        let mut other = own.to_vec();
        other[at..at + 10].copy_from_slice(b"/ld-musl-x");
        assert_eq!(head(&other), Head::Aside(IS_MUSL));
        // Without an interpreter.
        let mut other = own.to_vec();
        for entry in other[64..].chunks_mut(56) {
            if entry[0] == 3 {
                entry[0] = 0;
                break;
            }
        }
        assert_eq!(head(&other), Head::Aside(IS_STATIC));
        for len in 0..own.len() {
            head(&own[..len]);
        }
        assert_eq!(head(b"#! /bin/sh -e\nx"), Head::Script(b"/bin/sh"));
        assert_eq!((head(b"#!"), head(b"text")), (Head::Plain, Head::Plain));
        // SAFETY: both end with 0.
        unsafe {
            assert_eq!(reason(c"/proc/self/exe".as_ptr()), None);
            assert_eq!(reason(c"/no/such".as_ptr()), None);
        }
    }

    #[test]
    fn the_library_leaves_its_list_and_others_stay() {
        let own = "libown.so";
        for (list, rest, was) in [
            (format!("/c/$PLATFORM/{own}"), "", true),
            (format!("/c/{own}:/a.so /b.so"), "/a.so /b.so", true),
            (format!("/a.so:/c/{own}:/b.so"), "/a.so:/b.so", true),
            ("/a.so:/b.so".to_owned(), "/a.so:/b.so", false),
        ] {
            let mut text = format!("{list}\0").into_bytes();
            // SAFETY: it ends with 0, and is this test's.
            assert_eq!(unsafe { leave_out(text.as_mut_ptr(), own.as_bytes()) }, was);
            let text = text.split(|&byte| byte == 0).next().unwrap();
            assert_eq!(text, rest.as_bytes());
        }
    }
}
