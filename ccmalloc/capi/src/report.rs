//! `CCMALLOC_REPORT=FILE`: what became of the hints, when the process ends.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;

/// The file that the environment named when the library was loaded.
static FILE: OnceLock<OsString> = OnceLock::new();

/// Whether the program was started with rights that its user does not have: the environment is then
/// not to be trusted.
fn is_privileged() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    // SAFETY: looks up what the process was started with; any number may be asked for.
    let privileged = unsafe { libc::getauxval(libc::AT_SECURE) != 0 };
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    // SAFETY: has no preconditions.
    let privileged = unsafe { libc::issetugid() != 0 };
    privileged
}

/// Records the file. At the end of the process, other threads may be changing the environment.
extern "C" fn read_environment() {
    if let Some(file) = std::env::var_os("CCMALLOC_REPORT").filter(|_| !is_privileged()) {
        // No other code sets it.
        FILE.set(file).ok();
    }
}

/// Called when the library is loaded.
#[used]
// Sound, because that section is an array of the addresses of such functions.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = read_environment;

/// Appends one line to the file, if there is one.
extern "C" fn report_at_exit() {
    let Some(file) = FILE.get() else { return };
    let program = std::env::args_os().next().unwrap_or_default();
    let line = format!(
        "{} ({}): {}\n",
        program.display(),
        std::process::id(),
        allocator::placement()
    );
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
        // An error cannot be reported any more.
        file.write_all(line.as_bytes()).ok();
    }
}

/// Called when the process ends, after all handlers of `atexit`.
#[used]
// Sound, because that section is an array of the addresses of such functions.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report_at_exit;
