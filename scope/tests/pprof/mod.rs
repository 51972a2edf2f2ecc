//! Reads what is written for pprof.

use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;

#[path = "../../src/exports/pprof/schema.rs"]
pub(crate) mod schema;

use schema::{File, Sample};

pub(crate) fn open(packed: &[u8]) -> File {
    let mut bytes = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    File::decode(&*bytes).unwrap()
}

pub(crate) fn string(file: &File, index: i64) -> &str {
    &file.string_table[usize::try_from(index).unwrap()]
}

/// The functions of a stack, innermost first.
pub(crate) fn functions<'f>(file: &'f File, sample: &Sample) -> Vec<&'f str> {
    let index = |id: u64| usize::try_from(id).unwrap() - 1;
    let locations = sample.location_id.iter();
    let lines = locations.flat_map(|&id| &file.location[index(id)].line);
    lines
        .map(|line| string(file, file.function[index(line.function_id)].name))
        .collect()
}
