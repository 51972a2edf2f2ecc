//! What the C library's functions of this kind say of its own heap, said of this one, and JSON.
//!
//! Nothing here allocates: a program may ask when there is no memory.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::fmt::{self, Write};

use crate::errno;

/// What a callback gets: text, ended by a zero byte.
type Writer = unsafe extern "C" fn(*mut c_void, *const c_char);

/// Text of at most 2 KiB, ended by a zero byte.
pub(crate) struct Text {
    bytes: [u8; 2048],
    length: usize,
}

impl Text {
    fn of(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self {
            bytes: [0; 2048],
            length: 0,
        };
        // What does not fit is cut off; the texts here do.
        let _ = text.write_fmt(arguments);
        text
    }

    fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        self.as_c_str().to_str().unwrap_or_default()
    }

    /// Writes the text to a stream of the C library's.
    ///
    /// # Safety
    /// - `stream` is an open stream.
    unsafe fn put(&self, stream: *mut libc::FILE) -> c_int {
        // SAFETY: the text ends with a zero byte; the caller promises an open stream.
        unsafe { libc::fputs(self.as_c_str().as_ptr(), stream) }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.len() - 1 - self.length;
        let added = text
            .as_bytes()
            .get(..text.len().min(room))
            .unwrap_or_default();
        if let Some(place) = self.bytes.get_mut(self.length..self.length + added.len()) {
            place.copy_from_slice(added);
        }
        self.length += added.len();
        Ok(())
    }
}

/// The figures that all functions below are made of, in bytes.
pub(crate) struct Figures {
    /// Chunks and large mappings in use, and what is kept.
    mapped: usize,
    /// Objects, rounded up to the 64 KiB that small ones share.
    in_use: usize,
    /// The rest.
    free: usize,
    stats: allocator::Stats,
}

impl Figures {
    pub(crate) fn now() -> Self {
        let stats = allocator::stats();
        let free = stats.free_bytes + stats.kept_bytes;
        let mapped = stats.chunk_bytes + stats.large_bytes + stats.kept_bytes;
        let in_use = mapped.saturating_sub(free);
        Self {
            mapped,
            in_use,
            free,
            stats,
        }
    }

    pub(crate) fn json(&self) -> Text {
        let (stats, hints) = (self.stats, allocator::placement());
        Text::of(format_args!(
            concat!(
                "{{\"version\":1,\"mapped_bytes\":{},\"in_use_bytes\":{},\"free_bytes\":{},",
                "\"kept_bytes\":{},\"chunk_bytes\":{},\"large_bytes\":{},\"heaps\":{},",
                "\"hints\":{{\"same_block\":{},\"same_group\":{},\"same_page\":{},",
                "\"tied_page\":{},\"elsewhere\":{},\"not_usable\":{}}}}}\n"
            ),
            self.mapped,
            self.in_use,
            stats.free_bytes,
            stats.kept_bytes,
            stats.chunk_bytes,
            stats.large_bytes,
            stats.heaps,
            hints.same_block,
            hints.same_group,
            hints.same_page,
            hints.tied_page,
            hints.elsewhere,
            hints.not_usable,
        ))
    }
}

/// Gives unused memory back to the OS. Returns 1 if there was any, as glibc's function does. `_pad`
/// is ignored: nothing is kept at the top of a heap.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn malloc_trim(_pad: usize) -> c_int {
    c_int::from(allocator::purge() > 0)
}

/// Gives unused memory back to the OS, and returns about how many bytes.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ccmalloc_purge() -> usize {
    allocator::purge()
}

/// `struct mallinfo2` of glibc: the fields that have a meaning here.
#[cfg(target_env = "gnu")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let figures = Figures::now();
    libc::mallinfo2 {
        arena: figures.mapped - figures.stats.large_bytes,
        ordblks: 0,
        smblks: 0,
        hblks: 0,
        hblkhd: figures.stats.large_bytes,
        usmblks: 0,
        fsmblks: 0,
        uordblks: figures.in_use - figures.stats.large_bytes.min(figures.in_use),
        fordblks: figures.free,
        keepcost: figures.stats.kept_bytes,
    }
}

/// As [`mallinfo2`]; what an `int` cannot hold is its largest value.
#[cfg(target_env = "gnu")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn mallinfo() -> libc::mallinfo {
    let info = mallinfo2();
    let int = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    libc::mallinfo {
        arena: int(info.arena),
        ordblks: 0,
        smblks: 0,
        hblks: 0,
        hblkhd: int(info.hblkhd),
        usmblks: 0,
        fsmblks: 0,
        uordblks: int(info.uordblks),
        fordblks: int(info.fordblks),
        keepcost: int(info.keepcost),
    }
}

/// Writes XML to a stream. Returns 0, or EINVAL unless `options` is 0.
///
/// # Safety
/// - `stream` is null or an open stream.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 || stream.is_null() {
        errno::set(libc::EINVAL);
        return libc::EINVAL;
    }
    let figures = Figures::now();
    let text = Text::of(format_args!(
        concat!(
            "<malloc version=\"ccmalloc-1\">\n",
            "<system type=\"current\" size=\"{}\"/>\n<in_use size=\"{}\"/>\n",
            "<total type=\"rest\" count=\"0\" size=\"{}\"/>\n",
            "<total type=\"mmap\" count=\"0\" size=\"{}\"/>\n",
            "<heaps count=\"{}\"/>\n</malloc>\n"
        ),
        figures.mapped,
        figures.in_use,
        figures.free,
        figures.stats.large_bytes,
        figures.stats.heaps,
    ));
    // SAFETY: the caller promises that the stream, which is not null, is open.
    if unsafe { text.put(stream) } < 0 {
        -1
    } else {
        0
    }
}

/// Writes what there is to stderr, for people.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn malloc_stats() {
    let figures = Figures::now();
    say(format_args!(
        concat!(
            "{} heaps, {} bytes mapped, {} in use (of them {} in objects with mappings of their ",
            "own), {} free, of them {} kept for large objects and chunks"
        ),
        figures.stats.heaps,
        figures.mapped,
        figures.in_use,
        figures.stats.large_bytes,
        figures.free,
        figures.stats.kept_bytes,
    ));
}

/// Writes a line to stderr.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    write_to_stderr(&Text::of(format_args!("ccmalloc: {line}\n")));
}

fn write_to_stderr(text: &Text) {
    // SAFETY: initialised bytes of this length.
    unsafe { libc::write(2, text.bytes.as_ptr().cast(), text.length) };
}

/// Gives one JSON object to `write`, with `opaque`, or to stderr if `write` is null.
///
/// # Safety
/// - `write` is null or may be called with `opaque` and a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ccmalloc_stats_print(write: Option<Writer>, opaque: *mut c_void) {
    let text = Figures::now().json();
    match write {
        // SAFETY: the caller promises that `write` may be called with `opaque` and a text.
        Some(write) => unsafe { write(opaque, text.as_c_str().as_ptr()) },
        None => write_to_stderr(&text),
    }
}
