//! What a program's file says about itself.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use memmap2::Mmap;
use object::elf::{EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

/// An executable of 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) is_x86_64: bool,
    /// The dynamic loader; `None` in a static program.
    pub(super) interpreter: Option<String>,
    /// Whether it calls the runtime for its accesses.
    pub(super) is_instrumented: bool,
    /// Whether it does so for regions.
    pub(super) has_regions: bool,
    /// Whether the fast path in it is of another version than the runtime.
    pub(super) is_of_other_version: bool,
    /// Whether it has the runtime of a sanitizer itself.
    pub(super) has_sanitizer: bool,
    /// Whether it is a Rust program in which nothing is left of the system's allocator, and neither
    /// `ccscope::Profiled` is there nor an allocator that is wrapped. After optimisation by the
    /// linker that is no proof.
    pub(super) may_have_allocator: bool,
    /// What its compilers have left in `.comment`.
    pub(super) compilers: Vec<String>,
}

#[derive(Debug)]
pub(super) enum Kind {
    Elf64(Facts),
    Elf32,
    /// With its interpreter and the argument for that.
    Script(String, Option<String>),
    Other,
}

pub(super) fn kind_of(path: &Path) -> io::Result<Kind> {
    let file = File::open(path)?;
    if fs::metadata(path)?.len() == 0 {
        return Ok(Kind::Other);
    }
    // SAFETY: somebody who shortens the program's file now would crash the program, too.
    let bytes = unsafe { Mmap::map(&file)? };
    Ok(parse(&bytes))
}

fn parse(bytes: &[u8]) -> Kind {
    if let Some(rest) = bytes.strip_prefix(b"#!") {
        let line = rest.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let (interpreter, argument) = match line.trim().split_once(char::is_whitespace) {
            Some((interpreter, argument)) => (interpreter, Some(argument.trim().to_owned())),
            None => (line.trim(), None),
        };
        return Kind::Script(interpreter.to_owned(), argument);
    }
    match bytes {
        [0x7f, b'E', b'L', b'F', 1, ..] => Kind::Elf32,
        [0x7f, b'E', b'L', b'F', 2, ..] => facts(bytes).map_or(Kind::Other, Kind::Elf64),
        _ => Kind::Other,
    }
}

fn facts(bytes: &[u8]) -> Option<Facts> {
    let elf = ElfFile::<FileHeader64<Endianness>>::parse(bytes).ok()?;
    let endian = elf.endian();
    let mut segments = elf.elf_program_headers().iter();
    let loader = segments.find(|segment| segment.p_type(endian) == PT_INTERP);
    let interpreter = loader.and_then(|segment| {
        let name = segment.data(endian, bytes).ok()?;
        Some(
            String::from_utf8_lossy(name)
                .trim_end_matches('\0')
                .to_owned(),
        )
    });
    // The last is what the linked fast path refers to.
    let callback = |name: &[u8]| {
        name.starts_with(b"__asan_load")
            || name.starts_with(b"__asan_store")
            || name == b"ccscope_load"
            || name == b"ccscope_region_load"
    };
    let symbols = || {
        elf.dynamic_symbols()
            .filter_map(|symbol| Some((symbol.name_bytes().ok()?, symbol)))
    };
    let comment = elf
        .section_by_name(".comment")
        .and_then(|section| section.data().ok());
    Some(Facts {
        is_x86_64: elf.elf_header().e_machine(endian) == EM_X86_64,
        interpreter,
        is_instrumented: symbols().any(|(name, symbol)| symbol.is_undefined() && callback(name)),
        has_regions: symbols().any(|(name, _)| name == b"ccscope_region_load"),
        is_of_other_version: symbols().any(|(name, _)| {
            let version = name.strip_prefix(b"ccscope_offset_");
            version.is_some_and(|version| version != env!("CCSCOPE_FAST_PATH").as_bytes())
        }),
        has_sanitizer: symbols().any(|(name, symbol)| {
            name == b"__tsan_init"
                || name == b"__asan_init" && symbol.is_definition()
                || name.starts_with(b"__asan_version_mismatch_check")
        }),
        may_have_allocator: {
            let has = |part: &str| {
                elf.symbols()
                    .any(|symbol| symbol.name().is_ok_and(|name| name.contains(part)))
            };
            // As `cargo ccscope` exports them.
            let is_wrapped = symbols().any(|(name, symbol)| {
                let is_ours = name.starts_with(b"mi_") || name.starts_with(b"_rjem_");
                is_ours && symbol.is_definition()
            });
            let is_seen = is_wrapped || has("__rdl_") || has("ccscope8profiled");
            has("__rust_alloc") && !is_seen
        },
        compilers: (comment.unwrap_or_default().split(|&byte| byte == 0))
            .map(|text| String::from_utf8_lossy(text).trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        assert!(matches!(parse(b""), Kind::Other));
        assert!(matches!(parse(b"text"), Kind::Other));
        assert!(matches!(parse(b"\x7fELF\x01\x01\x01"), Kind::Elf32));
        assert!(
            matches!(parse(b"\x7fELF\x02\x01\x01"), Kind::Other),
            "cut off"
        );
        let Kind::Script(name, argument) = parse(b"#! /usr/bin/env -S a b\nx") else {
            panic!()
        };
        assert_eq!(
            (name.as_str(), argument.as_deref()),
            ("/usr/bin/env", Some("-S a b"))
        );
        let Ok(Kind::Elf64(facts)) = kind_of(&std::env::current_exe().unwrap()) else {
            panic!()
        };
        assert!(facts.is_x86_64 && facts.interpreter.is_some());
        assert!(!facts.is_instrumented && !facts.has_sanitizer);
        assert!(
            facts.compilers.iter().any(|text| text.contains("rustc")),
            "{facts:?}"
        );
    }
}
