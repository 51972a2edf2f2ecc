//! The text of options.

use core::fmt;
use core::sync::atomic::Ordering;
use std::time::Duration;

use crate::options::{
    BACKGROUND, DECAY_MILLISECONDS, HUGE, HugeMode, KEPT_BYTES_MAX, WARN, decay_milliseconds,
};
use crate::{sweep, sys};

/// A part of the text given to [`set_options`] that is no option, or whose value is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionsError<'a>(&'a str);

impl OptionsError<'_> {
    /// The part, as it was given.
    #[must_use]
    pub fn part(&self) -> &str {
        self.0
    }
}

impl fmt::Display for OptionsError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such option, or not a value of it: {:?}", self.0)
    }
}

impl core::error::Error for OptionsError<'_> {}

/// Sets options for the process, from now on: `name:value` pairs, separated by commas, as in
/// `"decay_ms:100,huge_pages:never"`. `libccmalloc.so` calls this with the environment variable
/// `CCMALLOC_OPTIONS` when it is loaded.
///
/// - `huge_pages`: `never`, `filled` (the default) or `always`. Whether to ask the OS for huge
///   pages: not at all; where objects fill them, but not for memory that is requested as zeros; for
///   all.
/// - `decay_ms`: milliseconds, 500 by default. How long unused memory is kept before it goes back
///   to the OS, when a thread next takes or frees memory.
/// - `kept_bytes`: bytes, or with `K`, `M`, `G`. How much unused memory is kept at most; by default
///   as much as the process uses, within 16 MiB and 128 MiB.
/// - `background_thread`: `true` or `false` (the default). Whether a thread of the allocator's own
///   gives unused memory back in time, also if all threads of the program are idle. The child of a
///   `fork` has none.
/// - `errors`: `abort` (the default) or `warn`. What a free of a pointer that is no live object's
///   does, after one line on stderr: end the process, or nothing. With `warn`, what is found too
///   late to be left out still ends it.
///
/// # Errors
/// The first part that is no option; the others are set.
///
/// # Examples
///
/// ```
/// assert!(ccmalloc::set_options("decay_ms:100,kept_bytes:8M").is_ok());
/// assert_eq!(ccmalloc::set_options("decay_ms:soon").unwrap_err().part(), "decay_ms:soon");
/// ```
pub fn set_options(options: &str) -> Result<(), OptionsError<'_>> {
    let mut result = Ok(());
    for part in options.split(',').map(str::trim) {
        if !part.is_empty() && set_option(part).is_none() && result.is_ok() {
            result = Err(OptionsError(part));
        }
    }
    result
}

/// Sets one option; `None` if it is none.
fn set_option(part: &str) -> Option<()> {
    let (name, value) = part.split_once(':')?;
    match (name, value) {
        ("huge_pages", _) => {
            let mode = match value {
                "never" => HugeMode::Never,
                "filled" => HugeMode::Filled,
                "always" => HugeMode::Always,
                _ => return None,
            };
            HUGE.store(mode as u8, Ordering::Relaxed);
        }
        ("decay_ms", _) => DECAY_MILLISECONDS.store(value.parse().ok()?, Ordering::Relaxed),
        ("kept_bytes", _) => KEPT_BYTES_MAX.store(bytes_of(value)?, Ordering::Relaxed),
        ("background_thread", "true") => return background_thread(),
        ("background_thread", "false") => BACKGROUND.store(0, Ordering::Relaxed),
        ("errors", "abort" | "warn") => WARN.store(value == "warn", Ordering::Relaxed),
        _ => return None,
    }
    Some(())
}

/// Starts the background thread, unless there is one; `None` if the OS refuses.
fn background_thread() -> Option<()> {
    let process = sys::process_id();
    if BACKGROUND.swap(process, Ordering::Relaxed) == process {
        return Some(());
    }
    let thread = std::thread::Builder::new().name("ccmalloc".to_owned());
    // Signals of the program are for its own threads.
    let started = sys::with_signals_blocked(|| {
        thread.stack_size(64 << 10).spawn(|| {
            while BACKGROUND.load(Ordering::Relaxed) == sys::process_id() {
                let time = decay_milliseconds().clamp(10, 60_000);
                std::thread::sleep(Duration::from_millis(time as u64));
                sweep::tick(sys::milliseconds());
            }
        })
    });
    if started.is_err() {
        BACKGROUND.store(0, Ordering::Relaxed);
    }
    started.ok().map(drop)
}

/// A number of bytes: digits, and maybe `K`, `M` or `G`.
fn bytes_of(value: &str) -> Option<usize> {
    let (digits, unit) = match value.as_bytes().last()? {
        b'K' => (value.strip_suffix('K')?, 1 << 10),
        b'M' => (value.strip_suffix('M')?, 1 << 20),
        b'G' => (value.strip_suffix('G')?, 1 << 30),
        _ => (value, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let sizes = ["0", "12", "3K", "8M", "2G"].map(|text| bytes_of(text).unwrap());
        assert_eq!(sizes, [0, 12, 3 << 10, 8 << 20, 2 << 30]);
        for text in [
            "",
            "K",
            "1T",
            "-1",
            "1 M",
            "99999999999999999999",
            "18446744073709551615G",
        ] {
            assert_eq!(bytes_of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_option_is_named() {
        for part in [
            "huge",
            "huge_pages:",
            "huge_pages:some",
            "errors:ignore",
            "Errors:warn",
            ":",
        ] {
            assert_eq!(set_options(part), Err(OptionsError(part)));
        }
        assert_eq!(set_options(""), Ok(()));
        assert_eq!(set_options(" , a:1, b:2"), Err(OptionsError("a:1")));
    }
}
