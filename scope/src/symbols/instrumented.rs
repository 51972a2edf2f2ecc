//! Which ranges of code are instrumented. Rust's standard library comes compiled, and so do most
//! libraries: their accesses are not seen.

use std::fs;
use std::path::Path;

use object::{Object, ObjectSymbol};

use super::debug_info;
use crate::profile::Frame;

/// What a module says of its code.
pub(super) struct InstrumentedCode {
    is_instrumented: bool,
    has_units: bool,
    /// Addresses of code that did not come compiled, by their start.
    own: Vec<gimli::Range>,
}

impl InstrumentedCode {
    /// Reads the module at `path`, with its debug information in `debug_file`.
    pub(super) fn read(path: &Path, debug_file: &Path) -> InstrumentedCode {
        let (mut has_units, mut own) = (false, Vec::new());
        // Damaged debug information is as good as none.
        let _damaged = debug_info::each_unit(debug_file, |dwarf, unit| {
            has_units = true;
            let name = unit.name.map(|name| name.to_string_lossy());
            // The folders in which the releases of Rust are built.
            if name.is_some_and(|it| it.starts_with("/rustc/") || it.starts_with("/rust/deps/")) {
                return Ok(true);
            }
            let mut ranges = dwarf.unit_ranges(unit)?;
            while let Some(range) = ranges.next()? {
                own.push(range);
            }
            Ok(true)
        });
        own.sort_by_key(|range| range.begin);
        InstrumentedCode {
            is_instrumented: is_instrumented(path),
            has_units,
            own,
        }
    }

    /// Whether the code at `address` calls the runtime for its accesses. Code of no unit, in a
    /// module that has some, came compiled: parts of Rust's standard library have none.
    pub(super) fn has(&self, address: u64) -> bool {
        let after = self.own.partition_point(|it| it.begin <= address);
        let unit = after.checked_sub(1).map(|at| self.own[at]);
        self.is_instrumented && (!self.has_units || unit.is_some_and(|range| address < range.end))
    }
}

/// Whether a module refers to the runtime's functions for accesses.
fn is_instrumented(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    let Ok(object) = object::File::parse(&*bytes) else {
        return false;
    };
    let is_callback = |name: &str| {
        [
            "__asan_load",
            "__asan_store",
            "ccscope_load",
            "ccscope_store",
        ]
        .iter()
        .any(|start| name.starts_with(start))
    };
    object
        .dynamic_symbols()
        .any(|symbol| symbol.is_undefined() && symbol.name().is_ok_and(is_callback))
}

/// Parts of standard libraries that hold bytes for their caller.
const CONTAINERS: [&str; 11] = [
    "alloc::alloc::",
    "alloc::boxed::",
    "alloc::collections::",
    "alloc::raw_vec::",
    "alloc::slice::",
    "alloc::str::",
    "alloc::string::",
    "alloc::vec::",
    "hashbrown::",
    "std::__cxx11::basic_string",
    "std::string::",
];

/// Whether the function allocates for its caller, who alone tells what the chunk is for.
pub(crate) fn is_for_caller(frame: &Frame) -> bool {
    let function = frame.function.trim_start_matches(['<', '&', '[', '(']);
    super::is_allocator(frame) || CONTAINERS.iter().any(|path| function.starts_with(path))
}
