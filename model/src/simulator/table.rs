//! Traces as tables: the Parquet files of `ccscope trace`, or what a database makes of them.
//!
//! Three columns are read, found by their names: `kind`, `address` and `size`. A file is read a few
//! thousand rows at a time, and decompressed a page at a time.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::Type as PhysicalType;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::Simulator;
use super::trace::{TraceCounts, TraceKind, TraceRecord};
use crate::Error;

/// Rows that are in memory.
const BATCH: usize = 1 << 13;

/// Calls `see` for each load and store of a table as `ccscope trace -o FILE.parquet` writes it: the
/// rows whose `kind` is `L` or `S`. Others are skipped.
///
/// # Errors
/// If the file is no Parquet file or damaged, if a column is missing or of another type, or if a
/// row has no value or a size that is not from 1 to 65535. What was before has been seen.
pub fn read_table(file: File, mut see: impl FnMut(TraceRecord)) -> Result<(), Error> {
    let reader = guarded(|| SerializedFileReader::new(file))?;
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema_descr();
    let kind = Place::find(schema, "kind", PhysicalType::BYTE_ARRAY)?;
    let address = Place::find(schema, "address", PhysicalType::INT64)?;
    let size = Place::find(schema, "size", PhysicalType::INT64)?;
    let mut row: u64 = 0;
    for group in 0..metadata.num_row_groups() {
        let group = guarded(|| reader.get_row_group(group))?;
        let group = group.as_ref();
        let mut kinds = Column::<ByteArrayType>::open(group, &kind)?;
        let mut addresses = Column::<Int64Type>::open(group, &address)?;
        let mut sizes = Column::<Int64Type>::open(group, &size)?;
        loop {
            let read = kinds.read(row)?;
            if addresses.read(row)? != read || sizes.read(row)? != read {
                return Err(Error::new("it is damaged: its columns differ in length"));
            }
            if read == 0 {
                break;
            }
            for at in 0..read {
                row += 1;
                let kind = match kinds.values[at].data() {
                    b"L" => TraceKind::Load,
                    b"S" => TraceKind::Store,
                    _ => continue,
                };
                let size = sizes.values[at];
                let bytes = u16::try_from(size).ok().filter(|&bytes| bytes > 0);
                let bytes = bytes.ok_or_else(|| {
                    let what = "the size is no number from 1 to 65535";
                    Error::new(format!("row {row}: {what}: {size}"))
                })?;
                let address = addresses.values[at].cast_unsigned();
                see(TraceRecord {
                    kind,
                    address,
                    bytes,
                });
            }
        }
    }
    Ok(())
}

/// Simulates the loads and stores of a [table](read_table), and counts them.
///
/// # Errors
/// Those of [`read_table`]. The accesses before the error have been simulated.
pub fn simulate_table(file: File, simulator: &mut Simulator) -> Result<TraceCounts, Error> {
    let mut counts = TraceCounts::default();
    read_table(file, |record| counts.simulate(record, simulator))?;
    Ok(counts)
}

/// Where a column is, and what it is called.
struct Place {
    name: &'static str,
    at: usize,
    /// Whether rows may have no value there.
    is_optional: bool,
}

impl Place {
    fn find(
        schema: &SchemaDescriptor,
        name: &'static str,
        wanted: PhysicalType,
    ) -> Result<Place, Error> {
        let mut columns = schema.columns().iter();
        let Some(at) = columns.position(|it| it.path().parts() == [name]) else {
            return Err(Error::new(format!("it has no column `{name}`")));
        };
        let column = schema.column(at);
        let found = column.physical_type();
        if found != wanted || column.max_rep_level() > 0 {
            let found = match column.max_rep_level() {
                0 => found.to_string(),
                _ => format!("lists of {found}"),
            };
            let message = format!("its column `{name}` holds {found}, not {wanted}");
            return Err(Error::new(message));
        }
        Ok(Place {
            name,
            at,
            is_optional: column.max_def_level() > 0,
        })
    }
}

/// A column of a row group, and a batch of its values.
struct Column<T: DataType> {
    name: &'static str,
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    /// 1 for each row that has a value, if rows may have none.
    levels: Option<Vec<i16>>,
}

impl<T: DataType> Column<T> {
    fn open(group: &dyn RowGroupReader, place: &Place) -> Result<Column<T>, Error> {
        let reader = guarded(|| group.get_column_reader(place.at))?;
        Ok(Column {
            name: place.name,
            reader: get_typed_column_reader(reader),
            values: Vec::new(),
            levels: place.is_optional.then(Vec::new),
        })
    }

    /// Reads the next rows, after `row` others; how many, 0 at the end.
    fn read(&mut self, row: u64) -> Result<usize, Error> {
        self.values.clear();
        if let Some(levels) = &mut self.levels {
            levels.clear();
        }
        let (levels, all) = (self.levels.as_mut(), &mut self.values);
        let (rows, values, _) = guarded(|| self.reader.read_records(BATCH, levels, None, all))?;
        if values == rows {
            return Ok(rows);
        }
        let levels = self.levels.iter().flatten();
        let before = levels.take_while(|&&level| level > 0).count() as u64;
        let (row, name) = (row + before + 1, self.name);
        Err(Error::new(format!("row {row}: `{name}` has no value")))
    }
}

/// Reads. The crate panics where some damaged files would have it read out of bounds.
fn guarded<R>(read: impl FnOnce() -> Result<R, ParquetError>) -> Result<R, Error> {
    // After an error, nothing that it has changed is used.
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(result) => result.map_err(|error| Error::new(error.to_string())),
        Err(_) => Err(Error::new("it is damaged")),
    }
}
