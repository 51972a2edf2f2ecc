//! What the environment asks for when the library is loaded: `CCMALLOC_OPTIONS`,
//! `CCMALLOC_RULES=FILE` or `CCMALLOC_LEARN=FILE`, and `CCMALLOC_REPORT=FILE`, what became of the
//! hints, when the process ends.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::OnceLock;

use crate::statistics::{Figures, say};

/// The file that `CCMALLOC_REPORT` named when the library was loaded.
static HINTS: OnceLock<OsString> = OnceLock::new();
/// The file that the option `report` named.
static STATISTICS: OnceLock<String> = OnceLock::new();

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

/// Records the files: at the end of the process, other threads may be changing the environment.
extern "C" fn read_environment() {
    if is_privileged() {
        return;
    }
    if let Some(file) = std::env::var_os("CCMALLOC_REPORT") {
        // No other code sets it.
        HINTS.set(file).ok();
    }
    #[cfg(has_rules)]
    learn_or_apply();
    let options = std::env::var_os("CCMALLOC_OPTIONS").unwrap_or_default();
    for option in options.to_string_lossy().split(',').map(str::trim) {
        if let Some(file) = option.strip_prefix("report:") {
            STATISTICS.set(file.to_owned()).ok();
        } else if let Err(error) = allocator::set_options(option) {
            say(format_args!("CCMALLOC_OPTIONS: {error}"));
        }
    }
}

/// Starts what `CCMALLOC_LEARN` or `CCMALLOC_RULES` asks for.
#[cfg(has_rules)]
fn learn_or_apply() {
    use std::os::unix::ffi::OsStringExt;

    if let Some(file) = std::env::var_os("CCMALLOC_LEARN") {
        // What is learned is to hold for the program as it is: rules are left out.
        return crate::learn::start(file);
    }
    let Some(file) = std::env::var_os("CCMALLOC_RULES") else {
        return;
    };
    // A variable of the environment has no zero byte.
    let path = std::ffi::CString::new(file.into_vec()).unwrap_or_default();
    if let Err(failure) = crate::rules::load(&path, HINTS.get().is_some()) {
        let path = path.to_string_lossy();
        say(format_args!(
            "CCMALLOC_RULES: {path}: {failure}; no rules are applied"
        ));
    }
}

/// Called when the library is loaded.
#[used]
// Sound, because that section is an array of the addresses of such functions.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = read_environment;

/// Appends one line to each file that there is.
extern "C" fn report_at_exit() {
    #[cfg(has_rules)]
    crate::learn::finish();
    if let Some(file) = STATISTICS.get() {
        append(file.as_ref(), Figures::now().json().as_str());
    }
    let Some(file) = HINTS.get() else { return };
    let program = std::env::args_os().next().unwrap_or_default();
    let line = format!(
        "{} ({}): {}\n",
        program.display(),
        std::process::id(),
        allocator::placement()
    );
    append(file, &line);
    #[cfg(has_rules)]
    crate::rules::report(|line| append(file, &format!("{line}\n")));
}

/// Appends a line to a file, if it can.
fn append(file: &OsStr, line: &str) {
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
