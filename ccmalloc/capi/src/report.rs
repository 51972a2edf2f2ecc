//! `CCMALLOC_REPORT=FILE`: what became of the hints, when the process ends.

use std::fs::OpenOptions;
use std::io::Write;

/// Appends one line to the file that the environment names, if it names one.
extern "C" fn report_at_exit() {
    // SAFETY: these have no preconditions.
    let is_privileged =
        unsafe { libc::getuid() != libc::geteuid() || libc::getgid() != libc::getegid() };
    let Some(file) = std::env::var_os("CCMALLOC_REPORT").filter(|_| !is_privileged) else {
        return;
    };
    let program = std::env::args_os().next().unwrap_or_default();
    let line = format!(
        "{} ({}): {}\n",
        program.display(),
        std::process::id(),
        allocator::placement()
    );
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(file) {
        // There is no one left to tell of an error.
        file.write_all(line.as_bytes()).ok();
    }
}

/// Called when the process ends, after all handlers of `atexit`.
#[used]
// Sound, because that section is an array of the addresses of such functions.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = report_at_exit;
