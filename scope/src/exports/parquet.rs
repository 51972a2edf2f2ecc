//! Tables for databases: `docs/use/ccscope-ci.md` has the schema, and queries on many profiles.
//!
//! A folder has one file for each table. Each row names its run, so that the files of many runs
//! can be read as one table. Columns are added within a version of the schema, and never change
//! or go.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use ccmodel::Machine;
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{frames, name, signed};
use crate::Error;
use crate::analyses::findings::{Amount, Options, findings, seconds_per_event};
use crate::analyses::numbers::{NUMBERS, Number};
use crate::analyses::scores::{self, scores};
use crate::analyses::types::{TypeSums, by_type, type_name};
use crate::analyses::waits::waits_by_site;
use crate::profile::{Chunk, Exit, Point, Profile, Region, RegionKind, Site};

/// Version of the schema, which each run's row has.
pub const SCHEMA: i64 = 1;
/// Chunks that are collected before they are written.
const GROUP_ROWS: usize = 1 << 17;

/// Columns in which hardly a value comes twice: a dictionary of them would cost time for nothing.
const DISTINCT: [&str; 5] = [
    "address",
    "allocated",
    "first_access",
    "last_access",
    "freed",
];

/// The values of a column; those of `Maybe` can be missing.
enum Values {
    Bool(Vec<bool>),
    Int(Vec<i64>),
    MaybeInt(Vec<Option<i64>>),
    Float(Vec<f64>),
    MaybeFloat(Vec<Option<f64>>),
    Text(Vec<ByteArray>),
    MaybeText(Vec<Option<ByteArray>>),
}

type Column = (&'static str, Values);

impl Values {
    /// As a schema writes it.
    fn kind(&self) -> [&'static str; 3] {
        match self {
            Values::Bool(_) => ["required", "boolean", ""],
            Values::Int(_) => ["required", "int64", ""],
            Values::MaybeInt(_) => ["optional", "int64", ""],
            Values::Float(_) => ["required", "double", ""],
            Values::MaybeFloat(_) => ["optional", "double", ""],
            Values::Text(_) => ["required", "binary", " (STRING)"],
            Values::MaybeText(_) => ["optional", "binary", " (STRING)"],
        }
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError> {
        match self {
            Values::Bool(all) => required::<BoolType>(group, all),
            Values::Int(all) => required::<Int64Type>(group, all),
            Values::MaybeInt(all) => optional::<Int64Type>(group, all),
            Values::Float(all) => required::<DoubleType>(group, all),
            Values::MaybeFloat(all) => optional::<DoubleType>(group, all),
            Values::Text(all) => required::<ByteArrayType>(group, all),
            Values::MaybeText(all) => optional::<ByteArrayType>(group, all),
        }
    }
}

fn required<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    put::<T>(group, values, None)
}

fn optional<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[Option<T::T>],
) -> Result<(), ParquetError> {
    let there: Vec<T::T> = values.iter().flatten().cloned().collect();
    let levels: Vec<i16> = values.iter().map(|it| it.is_some().into()).collect();
    put::<T>(group, &there, Some(&levels))
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| {
        ParquetError::General("the schema has fewer columns than the table".to_owned())
    })?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// A file that is being written.
struct Table {
    file: SerializedFileWriter<File>,
}

impl Table {
    /// Begins the file with its first rows, whose columns are those of all rows.
    fn new(path: &Path, columns: &[Column]) -> Result<Table, ParquetError> {
        let field = |(name, values): &Column| {
            let [repetition, physical, logical] = values.kind();
            format!("{repetition} {physical} {name}{logical};")
        };
        let fields: String = columns.iter().map(field).collect();
        let schema = Arc::new(parse_message_type(&format!("message row {{ {fields} }}"))?);
        let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        for name in DISTINCT {
            properties = properties.set_column_dictionary_enabled(name.into(), false);
        }
        let properties = properties.build().into();
        let mut table = Table {
            file: SerializedFileWriter::new(crate::store::create(path)?, schema, properties)?,
        };
        table.rows(columns)?;
        Ok(table)
    }

    fn rows(&mut self, columns: &[Column]) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for (_, values) in columns {
            values.write(&mut group)?;
        }
        group.close()?;
        Ok(())
    }
}

/// Writes the tables into `folder`, which is created, with `chunks`, as a
/// reader has them, after the profile's own.
///
/// # Errors
///
/// If a file cannot be written, or `chunks` has an error.
pub fn write(
    profile: &Profile,
    chunks: impl IntoIterator<Item = Result<Vec<Chunk>, Error>>,
    machine: &Machine,
    folder: &Path,
) -> Result<(), Error> {
    let refused = |name: &str, why: &dyn std::fmt::Display| {
        Error::new(format!(
            "{}/{name} cannot be written: {why}",
            folder.display()
        ))
    };
    fs::create_dir_all(folder).map_err(|why| refused("", &why))?;
    let id = ByteArray::from(run_id(profile).as_str());
    let tables = [
        ("run", runs(profile)),
        ("site", sites(profile, machine)),
        ("type", types(profile)),
        ("curve", curves(profile)),
        ("edge", edges(profile)),
        ("region", regions(profile)),
        ("finding", found(profile)),
    ];
    for (name, columns) in tables {
        let file = format!("{name}.parquet");
        let columns = with_run(&id, columns);
        let written = Table::new(&folder.join(&file), &columns).and_then(|it| it.file.close());
        written.map_err(|why| refused(&file, &why))?;
    }
    let refused = |why: ParquetError| refused("chunk.parquet", &why);
    let columns = |rows: &[Chunk]| with_run(&id, self::chunks(profile, rows));
    let mut table = Table::new(&folder.join("chunk.parquet"), &columns(&[])).map_err(refused)?;
    let mut rows = profile.chunks.clone();
    for more in chunks {
        rows.extend(more?);
        if rows.len() >= GROUP_ROWS {
            table.rows(&columns(&rows)).map_err(refused)?;
            rows.clear();
        }
    }
    table.rows(&columns(&rows)).map_err(refused)?;
    table.file.close().map_err(refused)?;
    Ok(())
}

/// The same for one profile, and different for others: the start in nanoseconds, the process, and
/// a checksum of all that is known of the run.
#[must_use]
pub fn run_id(profile: &Profile) -> String {
    let run = &profile.run;
    let text = format!("{run:?}");
    format!(
        "{:x}-{:x}-{:08x}",
        run.started_ns,
        run.pid,
        crc32fast::hash(text.as_bytes())
    )
}

/// The same for one stack in each run of a program, if its functions are: FNV-1a, 64 bits, of
/// the functions' names, innermost first, each with a byte 0 behind it.
fn stack_key(profile: &Profile, site: &Site) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for frame in frames(site) {
        let function = name(&profile.frames[frame]);
        for byte in function.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash.cast_signed()
}

/// Puts the run's name before the columns.
fn with_run(id: &ByteArray, columns: Vec<Column>) -> Vec<Column> {
    let rows = match &columns[0].1 {
        Values::Bool(all) => all.len(),
        Values::Int(all) => all.len(),
        Values::MaybeInt(all) => all.len(),
        Values::Float(all) => all.len(),
        Values::MaybeFloat(all) => all.len(),
        Values::Text(all) => all.len(),
        Values::MaybeText(all) => all.len(),
    };
    let ids = ("run", Values::Text(vec![id.clone(); rows]));
    [ids].into_iter().chain(columns).collect()
}

fn text(text: &str) -> ByteArray {
    ByteArray::from(text)
}

fn ints<T>(rows: &[T], of: impl Fn(&T) -> u64) -> Values {
    Values::Int(rows.iter().map(|row| signed(of(row))).collect())
}

/// The same where it is known, else nothing.
fn ints_if<T>(is_known: bool, rows: &[T], of: impl Fn(&T) -> u64) -> Values {
    let one = |row| is_known.then(|| signed(of(row)));
    Values::MaybeInt(rows.iter().map(one).collect())
}

fn runs(profile: &Profile) -> Vec<Column> {
    let (run, total) = (&profile.run, &profile.total);
    let int = |number: u64| Values::Int(vec![signed(number)]);
    let one = |it: &str| Values::Text(vec![text(it)]);
    let global = scores::global(&scores(profile, &scores::Options::default()));
    let mean = |of: &Option<scores::Spread>| Values::MaybeFloat(vec![of.map(|it| it.mean)]);
    let (code, signal) = match run.exit {
        Exit::Code(code) => (Some(code.into()), None),
        Exit::Signal(signal) => (None, Some(signal.into())),
        Exit::Unknown | Exit::Ended => (None, None),
    };
    vec![
        ("schema", Values::Int(vec![SCHEMA])),
        ("tool", one(&run.tool)),
        ("program", one(super::program(profile))),
        ("command", one(&run.command.join(" "))),
        ("pid", int(run.pid.into())),
        ("compiler", one(&run.compiler)),
        ("machine", one(&run.machine)),
        ("started_ns", int(run.started_ns)),
        ("seconds", Values::Float(vec![run.seconds])),
        ("events", int(run.end)),
        ("exit_code", Values::MaybeInt(vec![code])),
        ("exit_signal", Values::MaybeInt(vec![signal])),
        ("has_accesses", Values::Bool(vec![run.accesses])),
        ("allocations", int(total.allocations)),
        ("frees", int(total.frees)),
        ("requested", int(total.requested)),
        ("usable", int(total.usable)),
        ("peak_usable", int(total.peak_usable)),
        ("peak_requested", int(total.peak_requested)),
        ("peak_chunks", int(total.peak_chunks)),
        ("end_usable", int(total.end_usable)),
        ("end_chunks", int(total.end_chunks)),
        ("reads", int(total.heap_reads)),
        ("writes", int(total.heap_writes)),
        ("lifetime", mean(&global.lifetime)),
        ("usage", mean(&global.usage)),
        ("useful_lifetime", mean(&global.useful_lifetime)),
    ]
}

fn sites(profile: &Profile, machine: &Machine) -> Vec<Column> {
    let sites = &profile.sites;
    let scores = scores(profile, &scores::Options::default());
    let waits = match waits_by_site(profile, machine) {
        Some(waits) => waits.into_iter().map(Some).collect(),
        None => vec![None; sites.len()],
    };
    let place = |site: &Site| profile.frames.get(site.place? as usize);
    let names: Vec<_> = profile.frames.iter().map(name).collect();
    let stack = |site: &Site| {
        let names: Vec<&str> = frames(site).map(|frame| &*names[frame]).collect();
        text(&names.join("\n"))
    };
    let seconds = |of: fn(&Site) -> f64| {
        let all = { sites.iter() }.map(|it| {
            let seconds = of(it) * seconds_per_event(profile, it);
            profile.run.accesses.then_some(seconds)
        });
        Values::MaybeFloat(all.collect())
    };
    let score = |of: fn(&scores::Scores) -> Option<f64>| {
        Values::MaybeFloat(scores.iter().map(of).collect())
    };
    let maybe =
        |of: &dyn Fn(&Site) -> Option<ByteArray>| Values::MaybeText(sites.iter().map(of).collect());
    let mut columns = vec![
        ("site", Values::Int((0..).take(sites.len()).collect())),
        (
            "stack_key",
            Values::Int(sites.iter().map(|it| stack_key(profile, it)).collect()),
        ),
        ("stack", Values::Text(sites.iter().map(stack).collect())),
        ("function", maybe(&|it| Some(text(&place(it)?.function)))),
        ("file", maybe(&|it| Some(text(&place(it)?.file)))),
        (
            "line",
            Values::MaybeInt(
                { sites.iter() }
                    .map(|it| Some(place(it)?.line.into()))
                    .collect(),
            ),
        ),
        (
            "type",
            maybe(&|it| Some(text(type_name(profile, it.type_id)?))),
        ),
        ("drag_byte_seconds", seconds(|it| it.drag)),
        ("wait_byte_seconds", seconds(|it| it.wait)),
        ("memory_wait_ns", Values::MaybeFloat(waits)),
        ("lifetime", score(|it| it.lifetime)),
        ("usage", score(|it| it.usage)),
        ("useful_lifetime", score(|it| it.useful_lifetime)),
    ];
    // `lifetime` is the score here.
    let is_free = |it: &&Number| it.name != "lifetime";
    columns.extend(NUMBERS.iter().filter(is_free).map(|it| {
        let values = match it.needs_accesses {
            true => ints_if(profile.run.accesses, sites, it.of),
            false => ints(sites, it.of),
        };
        (it.name, values)
    }));
    columns
}

fn types(profile: &Profile) -> Vec<Column> {
    let all: Vec<usize> = (0..profile.sites.len()).collect();
    let types = by_type(profile, &all);
    let seen = |of: fn(&TypeSums) -> u64| ints_if(profile.run.accesses, &types, of);
    vec![
        (
            "type",
            Values::Text(types.iter().map(|it| text(&it.name)).collect()),
        ),
        ("sites", ints(&types, |it| it.sites)),
        ("allocations", ints(&types, |it| it.allocations)),
        ("usable", ints(&types, |it| it.usable)),
        ("requested", ints(&types, |it| it.requested)),
        ("at_peak_usable", ints(&types, |it| it.at_peak_usable)),
        ("at_peak_chunks", ints(&types, |it| it.at_peak_chunks)),
        ("touched_bytes", seen(|it| it.touched)),
        ("accesses", seen(|it| it.accesses)),
    ]
}

/// Columns of the curves of the process, its threads and its sites.
fn curves(profile: &Profile) -> Vec<Column> {
    let process = [("process", None, &profile.curve)].into_iter();
    let threads = { profile.threads.iter() }.map(|it| ("thread", Some(signed(it.id)), &it.curve));
    let sites = { profile.sites.iter().zip(0..) }.map(|(it, id)| ("site", Some(id), &it.curve));
    let rows = process.chain(threads).chain(sites);
    let rows = rows.flat_map(|(of, id, curve)| curve.iter().map(move |point| (of, id, *point)));
    let rows: Vec<(&str, Option<i64>, Point)> = rows.collect();
    let kinds = ["process", "thread", "site"].map(|kind| (kind, text(kind)));
    let kind = |of: &str| kinds.iter().find(|(kind, _)| *kind == of);
    vec![
        (
            "of",
            Values::Text(
                { rows.iter() }
                    .filter_map(|row| kind(row.0))
                    .map(|it| it.1.clone())
                    .collect(),
            ),
        ),
        (
            "id",
            Values::MaybeInt(rows.iter().map(|row| row.1).collect()),
        ),
        ("event", ints(&rows, |row| row.2.time)),
        ("ns", ints(&rows, |row| row.2.ns)),
        ("usable", ints(&rows, |row| row.2.usable)),
        ("peak", ints(&rows, |row| row.2.peak)),
        ("requested", ints(&rows, |row| row.2.requested)),
        ("touched", ints(&rows, |row| row.2.touched)),
        ("allocations", ints(&rows, |row| row.2.allocations)),
    ]
}

fn edges(profile: &Profile) -> Vec<Column> {
    let edges = &profile.edges;
    vec![
        ("from_site", ints(edges, |it| it.from.into())),
        ("offset", ints(edges, |it| it.offset.into())),
        ("to_site", ints(edges, |it| it.to.into())),
        ("loads", ints(edges, |it| it.loads)),
        ("followed", ints(edges, |it| it.followed)),
    ]
}

/// Their place in the profile is their number: callers come first.
fn regions(profile: &Profile) -> Vec<Column> {
    let regions = &profile.regions;
    let callers = regions.iter().map(|it| it.parent.map(i64::from));
    let kind = |it: &Region| match it.kind {
        RegionKind::Thread => text("thread"),
        RegionKind::Function => text("function"),
        RegionKind::Span => text("span"),
    };
    let texts = |of: &dyn Fn(&Region) -> ByteArray| Values::Text(regions.iter().map(of).collect());
    vec![
        ("region", Values::Int((0..).take(regions.len()).collect())),
        ("caller", Values::MaybeInt(callers.collect())),
        ("kind", texts(&kind)),
        ("name", texts(&|it| text(&it.name))),
        ("file", texts(&|it| text(&it.file))),
        ("line", ints(regions, |it| it.line.into())),
        ("level", ints(regions, |it| it.level.into())),
        ("invocations", ints(regions, |it| it.invocations)),
        ("recursive", ints(regions, |it| it.recursive)),
        ("reads", ints(regions, |it| it.reads)),
        ("writes", ints(regions, |it| it.writes)),
        ("allocations", ints(regions, |it| it.allocations)),
        ("allocated", ints(regions, |it| it.allocated)),
        ("bytes", ints(regions, |it| it.bytes.total)),
        ("most_bytes", ints(regions, |it| it.bytes.max)),
        ("blocks", ints(regions, |it| it.blocks.total)),
        ("most_blocks", ints(regions, |it| it.blocks.max)),
        ("pages", ints(regions, |it| it.pages.total)),
        ("most_pages", ints(regions, |it| it.pages.max)),
        ("reused", ints(regions, |it| it.reused)),
        ("fresh", ints(regions, |it| it.fresh)),
    ]
}

fn found(profile: &Profile) -> Vec<Column> {
    let all = findings(profile, &Options::default());
    let kind = |kind| match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => text(&name),
        _ => text(""),
    };
    let amount = |amount: &Amount| match *amount {
        Amount::Bytes(number) => ("bytes", number as f64),
        Amount::ByteSeconds(number) => ("byte-seconds", number),
        Amount::Allocations(number) => ("allocations", number as f64),
        Amount::Accesses(number) => ("accesses", number as f64),
        Amount::Sites(number) => ("sites", number as f64),
    };
    vec![
        ("site", ints(&all, |it| it.site as u64)),
        (
            "kind",
            Values::Text(all.iter().map(|it| kind(it.kind)).collect()),
        ),
        (
            "sentence",
            Values::Text(all.iter().map(|it| text(&it.sentence)).collect()),
        ),
        (
            "amount",
            Values::Float(all.iter().map(|it| amount(&it.amount).1).collect()),
        ),
        (
            "unit",
            Values::Text(all.iter().map(|it| text(amount(&it.amount).0)).collect()),
        ),
        (
            "share",
            Values::Float(all.iter().map(|it| it.share).collect()),
        ),
    ]
}

fn chunks(profile: &Profile, chunks: &[Chunk]) -> Vec<Column> {
    let thread = |chunk: &Chunk| {
        let thread = profile.threads.get(usize::from(chunk.thread))?;
        Some(signed(thread.id))
    };
    let time = |of: fn(&Chunk) -> u64| {
        let known = |chunk| Some(of(chunk)).filter(|&time| time > 0).map(signed);
        Values::MaybeInt(chunks.iter().map(known).collect())
    };
    vec![
        ("site", ints(chunks, |it| it.site.into())),
        ("address", ints(chunks, |it| it.address)),
        ("size", ints(chunks, |it| it.size)),
        (
            "thread",
            Values::MaybeInt(chunks.iter().map(thread).collect()),
        ),
        (
            "shared",
            Values::Bool(chunks.iter().map(|it| it.shared).collect()),
        ),
        ("allocated", ints(chunks, |it| it.allocated)),
        ("first_access", time(|it| it.first)),
        ("last_access", time(|it| it.last)),
        ("freed", time(|it| it.freed)),
        ("reads", ints(chunks, |it| it.reads.into())),
        ("writes", ints(chunks, |it| it.writes.into())),
        ("touched", ints(chunks, |it| it.touched)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;

    #[test]
    fn no_two_columns_of_sites_have_one_name() {
        let columns = sites(&profile(), Machine::this());
        let mut names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}
