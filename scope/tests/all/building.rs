//! Captures built by hand, as the runtime would leave them.

use ccscope::capture_format::{self, Header, Plain, layout, state};
use ccscope::profile::{Profile, Run};
use ccscope::symbols::Symbols;
use memmap2::MmapMut;

/// A sparse file as large as a capture.
pub(crate) struct Capture {
    pub(crate) map: MmapMut,
    pub(crate) header: Header,
    pub(crate) used: u64,
}

/// An entry of which every number is 0.
pub(crate) fn zero<T: Plain>() -> T {
    capture_format::read(&vec![0; size_of::<T>()], 0).unwrap()
}

impl Capture {
    pub(crate) fn new() -> Capture {
        let file = tempfile::tempfile().unwrap();
        file.set_len(layout::END).unwrap();
        // SAFETY: nobody else has the file.
        let map = unsafe { MmapMut::map_mut(&file) }.unwrap();
        let header = Header {
            magic: capture_format::MAGIC,
            version: capture_format::VERSION,
            pid: 42,
            parent: 41,
            start_ns: 1_000_000,
            start_tsc: 500,
            last_ns: 1_002_000,
            last_tsc: 1500,
            state: state::EXITED,
            events: 100,
            ..zero()
        };
        Capture {
            map,
            header,
            used: 0,
        }
    }

    pub(crate) fn put<T: Plain>(&mut self, offset: u64, value: T) {
        let start = usize::try_from(offset).unwrap();
        // SAFETY: a `Plain` type has no padding, so all its bytes are set.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const value).cast::<u8>(), size_of::<T>()) };
        self.map[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn entry<T: Plain>(&mut self, table: u64, index: u64, value: T) {
        self.put(table + index * size_of::<T>() as u64, value);
    }

    /// Puts `values` into the heap and tells where.
    pub(crate) fn heap<T: Plain>(&mut self, values: &[T]) -> u64 {
        let at = layout::HEAP + self.used;
        for value in values {
            self.put(layout::HEAP + self.used, *value);
            self.used += size_of::<T>() as u64;
        }
        at
    }

    pub(crate) fn profile(&mut self) -> Result<Profile, String> {
        self.put(
            layout::HEADER,
            Header {
                heap_used: self.used,
                ..self.header
            },
        );
        let mut symbols = Symbols::default();
        let made = ccscope::capture::profile(&self.map, Run::default(), Vec::new(), &mut symbols);
        made.map_err(|error| error.to_string())
    }
}
