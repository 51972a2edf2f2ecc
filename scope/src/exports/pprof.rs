//! pprof's `profile.proto`, packed with gzip.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use ccmodel::Machine;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use super::{Interner, Weight, frames, name, signed, weights};
use crate::analyses::units::rounded;
use crate::profile::{Frame, Profile};

mod schema;

use schema::{File, Function, Line, Location, Mapping, Sample, ValueType};

/// Writes the file. The number that viewers show first is that of bytes at the peak.
///
/// # Errors
///
/// If `out` cannot take it.
pub fn write(profile: &Profile, machine: &Machine, out: impl Write) -> io::Result<()> {
    let mut builder = Builder::of(profile, &weights(profile, machine));
    builder.file.default_sample_type = builder.string("peak");
    builder.file.time_nanos = signed(profile.run.started_ns);
    builder.file.duration_nanos = signed(rounded(profile.run.seconds * 1e9));
    builder.pack(out)
}

/// What Go calls the numbers of a heap profile.
const GO_NAMES: [(&str, Weight); 4] = [
    ("alloc_objects", Weight::Allocations),
    ("alloc_space", Weight::Bytes),
    ("inuse_objects", Weight::EndChunks),
    ("inuse_space", Weight::End),
];

/// Writes a snapshot as Go programs serve theirs, for what collects these: with Go's names of
/// numbers, of which viewers show `first` first, and the time at which it was taken.
///
/// # Errors
///
/// If `out` cannot take it.
pub fn write_heap(
    profile: &Profile,
    first: &str,
    taken: SystemTime,
    out: impl Write,
) -> io::Result<()> {
    let numbers = |weight: Weight| weight.of_sites(profile, Machine::this());
    let weights = GO_NAMES.map(|(name, weight)| (name, weight, numbers(weight)));
    let mut builder = Builder::of(profile, &weights);
    builder.file.default_sample_type = builder.string(first);
    // Collectors have these in the names of their series.
    builder.file.period_type = Some(ValueType {
        kind: builder.string("space"),
        unit: builder.string("bytes"),
    });
    builder.file.period = signed(profile.run.sample.max(1));
    let since = taken.duration_since(UNIX_EPOCH).unwrap_or_default();
    builder.file.time_nanos = since.as_nanos().try_into().unwrap_or(i64::MAX);
    builder.pack(out)
}

fn sorted(table: Interner<String>) -> Vec<String> {
    let mut strings: Vec<(String, usize)> = table.indices.into_iter().collect();
    strings.sort_unstable_by_key(|&(_, index)| index);
    strings.into_iter().map(|(string, _)| string).collect()
}

struct Builder {
    file: File,
    strings: Interner<String>,
    functions: Interner<[i64; 2]>,
    mappings: Interner<i64>,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            file: File::default(),
            strings: Interner::new(),
            functions: Interner::new(),
            mappings: Interner::new(),
        }
    }
}

impl Builder {
    /// All sites with their stacks and these numbers.
    fn of(profile: &Profile, weights: &[(&str, Weight, Vec<u64>)]) -> Builder {
        let mut builder = Builder::default();
        builder.string("");
        for (name, weight, _) in weights {
            let value = ValueType {
                kind: builder.string(name),
                unit: builder.string(weight.unit()),
            };
            builder.file.sample_type.push(value);
        }
        let mut locations = Interner::new();
        for (index, site) in profile.sites.iter().enumerate() {
            // An address and the functions that are inlined there are one location.
            let stack: Vec<usize> = frames(site).collect();
            let ends_here = |frame: &usize| profile.frames[*frame].inlined;
            let parts = stack.chunk_by(|frame, _| ends_here(frame));
            let location_id = parts.map(|part| {
                let (index, is_new) = locations.add(part.to_vec());
                if is_new {
                    let frames: Vec<&Frame> = part.iter().map(|&it| &profile.frames[it]).collect();
                    builder.location(&frames);
                }
                index as u64 + 1
            });
            let location_id = location_id.collect();
            let value = weights.iter().map(|(.., numbers)| signed(numbers[index]));
            builder.file.sample.push(Sample {
                location_id,
                value: value.collect(),
            });
        }
        for text in std::iter::once(&profile.run.command.join(" ")).chain(&profile.run.caveats) {
            let comment = builder.string(text);
            builder.file.comment.push(comment);
        }
        builder
    }

    fn pack(mut self, out: impl Write) -> io::Result<()> {
        self.file.string_table = sorted(self.strings);
        let mut packer = GzEncoder::new(out, Compression::default());
        packer.write_all(&self.file.encode_to_vec())?;
        packer.finish()?.flush()
    }

    fn string(&mut self, text: &str) -> i64 {
        signed(self.strings.add(text.to_owned()).0 as u64)
    }

    /// Adds an address with its functions, innermost first.
    fn location(&mut self, frames: &[&Frame]) {
        let Some(outermost) = frames.last() else {
            return;
        };
        let filename = self.string(&outermost.module);
        let (index, is_new) = self.mappings.add(filename);
        let mapping_id = index as u64 + 1;
        if is_new {
            // Symbols are here: viewers need not look for the file.
            self.file.mapping.push(Mapping {
                id: mapping_id,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        let line = frames.iter().map(|frame| Line {
            function_id: self.function(frame),
            line: frame.line.into(),
        });
        let line = line.collect();
        self.file.location.push(Location {
            id: self.file.location.len() as u64 + 1,
            mapping_id,
            address: outermost.address,
            line,
        });
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let (name, filename) = (self.string(&name(frame)), self.string(&frame.file));
        let (index, is_new) = self.functions.add([name, filename]);
        let id = index as u64 + 1;
        if is_new {
            self.file.function.push(Function {
                id,
                name,
                system_name: name,
                filename,
            });
        }
        id
    }
}
