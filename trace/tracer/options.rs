//! What the tool asks for, by a variable of the environment: lines of `NAME=VALUE`.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub(crate) use inside::options::hex;

/// Kinds of memory.
pub(crate) const HEAP: u64 = 1;
pub(crate) const DATA: u64 = 2;
pub(crate) const BSS: u64 = 4;
/// Besides: tracing is on from the start.
pub(crate) const AT_ONCE: u64 = 8;
/// Besides: instructions that fault often are patched.
pub(crate) const PATCH: u64 = 16;

static OPTIONS: AtomicU64 = AtomicU64::new(0);
static MOST: AtomicU64 = AtomicU64::new(0);

/// Sets the kinds, and most events of a process.
pub(crate) fn set(options: u64, most: u64) {
    OPTIONS.store(options, Relaxed);
    MOST.store(most, Relaxed);
}

/// Whether memory of a kind is traced.
pub(crate) fn traces(kind: u64) -> bool {
    OPTIONS.load(Relaxed) & kind != 0
}

/// Most events of a process.
pub(crate) fn most() -> u64 {
    MOST.load(Relaxed)
}

/// The value of an option.
pub(crate) fn option<'t>(text: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    let mut all = inside::options::each(text, b'\n');
    all.find_map(|(it, value)| (it == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_lines() {
        let text = b"folder=/tmp/a=b\noptions=1f\nfrom=10:/bin/x";
        assert_eq!(option(text, b"folder"), Some(&b"/tmp/a=b"[..]));
        assert_eq!(option(text, b"options").map(hex), Some(0x1f));
        assert_eq!(option(text, b"option"), None);
        assert_eq!(option(text, b"to"), None);
    }
}
