//! The functions of libc by which a process becomes another program, or starts one: the tool is
//! told of [those](super::aside) that the library will not be in.
//!
//! They are assembly, since some take any number of arguments: all go on as they came.

use core::ffi::{c_char, c_void};

use super::real::Real;
use super::{aside, sys};

static REAL: [Real; 9] = [
    Real::new(c"execve", true),
    Real::new(c"execv", true),
    Real::new(c"execl", true),
    Real::new(c"execle", true),
    Real::new(c"posix_spawn", true),
    // From here on, a name without a slash is looked up.
    Real::new(c"execvp", true),
    Real::new(c"execvpe", true),
    Real::new(c"execlp", true),
    Real::new(c"posix_spawnp", true),
];
const LOOKS_UP: usize = 5;
const SPAWNS: [usize; 2] = [4, 8];

/// Looks up all functions; see [`super::hooks`].
pub(crate) fn find_all() {
    for real in &REAL {
        real.address();
    }
}

/// Before a program is started by function `index`; what to go on with.
///
/// # Safety
///
/// As for the function: the text that names the program ends with 0.
unsafe extern "C" fn before(
    first: *const c_char,
    second: *const c_char,
    index: usize,
) -> *mut c_void {
    let name = if SPAWNS.contains(&index) {
        second
    } else {
        first
    };
    // SAFETY: `name` ends with 0 (`# Safety`), and so do values of the environment.
    unsafe {
        let socket = sys::variable(crate::capture_format::SOCKET_VARIABLE);
        if !socket.is_null() && !name.is_null() {
            let folder = folder_of(core::ffi::CStr::from_ptr(socket).to_bytes());
            let text = core::ffi::CStr::from_ptr(name).to_bytes();
            if index < LOOKS_UP || text.contains(&b'/') {
                tell(folder, name);
            } else {
                tell_of_one_in_path(folder, text);
            }
        }
    }
    REAL[index].address()
}

/// # Safety
///
/// `name` ends with 0.
unsafe fn tell(folder: &[u8], name: *const c_char) {
    // SAFETY: `name` ends with 0 (`# Safety`).
    unsafe {
        if let Some(why) = aside::reason(name) {
            aside::say(folder, name, why);
        }
    }
}

fn tell_of_one_in_path(folder: &[u8], name: &[u8]) {
    const EXECUTE: u64 = 1;
    const ACCESS: u64 = 21;
    // SAFETY: the name and what is found end with 0; `path` has a 0 behind what is copied.
    unsafe {
        let list = sys::getenv(c"PATH".as_ptr());
        if list.is_null() {
            return;
        }
        for part in core::ffi::CStr::from_ptr(list)
            .to_bytes()
            .split(|&byte| byte == b':')
        {
            let mut path = [0_u8; 512];
            let (len, all) = (part.len(), part.len() + 1 + name.len());
            if all >= path.len() {
                continue;
            }
            path[..len].copy_from_slice(part);
            path[len] = b'/';
            path[len + 1..all].copy_from_slice(name);
            let words = [path.as_ptr() as u64, EXECUTE, 0, 0, 0, 0];
            if sys::system_call(ACCESS, words) == 0 {
                return tell(folder, path.as_ptr().cast());
            }
        }
    }
}

/// The folder of a socket.
pub(crate) fn folder_of(socket: &[u8]) -> &[u8] {
    let slash = socket.iter().rposition(|&byte| byte == b'/');
    &socket[..slash.unwrap_or(0)]
}

#[cfg(not(test))]
macro_rules! passed_on {
    ($($index:literal $name:ident)*) => {$(
        /// As libc's.
        ///
        /// # Safety
        ///
        /// As libc's.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "push rax",
            concat!("mov edx, ", $index),
            "call {before}",
            "mov r11, rax",
            "pop rax",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp r11",
            before = sym before,
            )
        }
    )*};
}

#[cfg(not(test))]
passed_on! {
    0 execve 1 execv 2 execl 3 execle 4 posix_spawn
    5 execvp 6 execvpe 7 execlp 8 posix_spawnp
}
