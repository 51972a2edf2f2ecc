//! A trace as a table for databases: Parquet, a row for each event.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::names::Names;
use super::reader::Event;

/// Rows that are written at a time.
const GROUP: usize = 1 << 20;

const SCHEMA: &str = "message trace {
    required int64 order;
    required binary kind (STRING);
    required int64 thread;
    required int64 instruction;
    required binary function (STRING);
    required binary line (STRING);
    required int64 address;
    required int64 size;
    required int64 from;
    required binary region (STRING);
    required binary object (STRING);
    required int64 offset;
    required int64 chunk;
    required binary site (STRING);
    required binary type (STRING);
    required binary field (STRING);
}";

/// Columns whose values grow or hardly repeat.
const DELTAS: [&str; 3] = ["order", "address", "offset"];

/// A table that is being written.
pub struct Table {
    file: SerializedFileWriter<File>,
    numbers: [Vec<i64>; 8],
    texts: [Vec<ByteArray>; 8],
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").finish_non_exhaustive()
    }
}

impl Table {
    /// Begins a file.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn new(path: &Path) -> io::Result<Table> {
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(io::Error::other)?);
        let mut properties = WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .set_compression(Compression::SNAPPY);
        for name in DELTAS {
            properties = properties
                .set_column_dictionary_enabled(name.into(), false)
                .set_column_encoding(name.into(), Encoding::DELTA_BINARY_PACKED);
        }
        let properties = properties.build().into();
        let file =
            SerializedFileWriter::new(ccscope::cli::shared::create(path)?, schema, properties);
        Ok(Table {
            file: file.map_err(io::Error::other)?,
            numbers: Default::default(),
            texts: Default::default(),
        })
    }

    /// Adds an event.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn add(&mut self, event: &Event, names: &mut Names) -> io::Result<()> {
        let place = names.place(event.address);
        let signed = u64::cast_signed;
        let numbers = [
            signed(event.order),
            event.thread.into(),
            signed(event.ip),
            signed(event.address),
            signed(event.len),
            signed(event.from),
            signed(place.offset),
            place.chunk.map_or(-1, signed),
        ];
        let site = place.site.and_then(|site| names.sites.get(site));
        let site_text = site.map_or(String::new(), |site| match site.line.is_empty() {
            true => site.name.clone(),
            false => site.line.clone(),
        });
        let type_name = names.type_name(&place).unwrap_or("").to_owned();
        let field = names.field(&place).unwrap_or("").to_owned();
        let region = names.region(event.address);
        let (function, line) = names.instruction(event.ip).clone();
        let kind = char::from(event.kind).to_string();
        let texts = [
            kind, function, line, region, place.name, site_text, type_name, field,
        ];
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(ByteArray::from(text.into_bytes()));
        }
        if self.numbers[0].len() == GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.group();
        self.numbers.iter_mut().for_each(Vec::clear);
        self.texts.iter_mut().for_each(Vec::clear);
        written.map_err(io::Error::other)
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        let [order, thread, ip, address, len, from, offset, chunk] = &self.numbers;
        let [kind, function, line, region, object, site, kind_of, field] = &self.texts;
        put::<Int64Type>(&mut group, order)?;
        put::<ByteArrayType>(&mut group, kind)?;
        put::<Int64Type>(&mut group, thread)?;
        put::<Int64Type>(&mut group, ip)?;
        put::<ByteArrayType>(&mut group, function)?;
        put::<ByteArrayType>(&mut group, line)?;
        put::<Int64Type>(&mut group, address)?;
        put::<Int64Type>(&mut group, len)?;
        put::<Int64Type>(&mut group, from)?;
        put::<ByteArrayType>(&mut group, region)?;
        put::<ByteArrayType>(&mut group, object)?;
        put::<Int64Type>(&mut group, offset)?;
        put::<Int64Type>(&mut group, chunk)?;
        for column in [site, kind_of, field] {
            put::<ByteArrayType>(&mut group, column)?;
        }
        group.close()?;
        Ok(())
    }

    /// Writes the rest.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.write()?;
        self.file.close().map_err(io::Error::other)?;
        Ok(())
    }
}

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.ok_or_else(|| {
        ParquetError::General("the schema has fewer columns than the table".to_owned())
    })?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}
