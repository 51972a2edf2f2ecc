//! What a program, or who runs it, has chosen by [`set_options`](crate::set_options).

use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};

/// When huge pages are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HugeMode {
    Never = 0,
    /// Where objects fill them.
    Filled = 1,
    Always = 2,
}

pub(crate) static HUGE: AtomicU8 = AtomicU8::new(HugeMode::Filled as u8);
pub(crate) static DECAY_MILLISECONDS: AtomicUsize = AtomicUsize::new(500);
/// The process that has a background thread; 0 for none.
pub(crate) static BACKGROUND: AtomicU32 = AtomicU32::new(0);
pub(crate) static WARN: AtomicBool = AtomicBool::new(false);
pub(crate) static KEPT_BYTES_MAX: AtomicUsize = AtomicUsize::new(usize::MAX);

/// See the option `huge_pages`.
pub(crate) fn huge_pages() -> HugeMode {
    match HUGE.load(Ordering::Relaxed) {
        0 => HugeMode::Never,
        1 => HugeMode::Filled,
        _ => HugeMode::Always,
    }
}

/// How long memory is kept that no request takes.
pub(crate) fn decay_milliseconds() -> usize {
    DECAY_MILLISECONDS.load(Ordering::Relaxed)
}

/// How many bytes of unused chunks and mappings are kept at most.
pub(crate) fn kept_bytes_max() -> usize {
    KEPT_BYTES_MAX.load(Ordering::Relaxed)
}

/// Whether a wrong free is told and ignored.
pub(crate) fn warns() -> bool {
    WARN.load(Ordering::Relaxed)
}
