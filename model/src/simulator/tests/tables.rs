//! Traces as tables: they say what their text says, and what is broken is refused.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use quickcheck::quickcheck;

use super::two_levels;
use crate::hierarchy::Inclusion;
use crate::simulator::{TraceKind, TraceRecord, read_table, simulate_table, simulate_trace};

/// The columns that are read, and one that is not, in the order of `ccscope trace`.
const COLUMNS: &str = "required int64 order; required binary kind (STRING); required int64 \
                       address; required int64 size;";
/// Rows of a group.
const GROUP: usize = 10_000;

/// A kind, an address and a size.
type Row = (&'static str, i64, i64);

fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[T::T],
    levels: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    let typed = column.typed::<T>();
    typed.write_batch(values, levels, None).unwrap();
    column.close().unwrap();
}

/// A table of these rows. Where `address` is optional, it is missing in rows of address 0.
fn table(columns: &str, rows: &[Row]) -> File {
    let file = tempfile::tempfile().unwrap();
    let schema = parse_message_type(&format!("message trace {{ {columns} }}")).unwrap();
    let is_optional = columns.contains("optional int64 address");
    let mut writer = SerializedFileWriter::new(
        file.try_clone().unwrap(),
        Arc::new(schema),
        Default::default(),
    )
    .unwrap();
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group().unwrap();
        let orders: Vec<i64> = (0..).take(rows.len()).collect();
        put::<Int64Type>(&mut group, &orders, None);
        let kinds: Vec<ByteArray> = rows.iter().map(|row| row.0.into()).collect();
        put::<ByteArrayType>(&mut group, &kinds, None);
        let is_there = |row: &Row| !is_optional || row.1 != 0;
        let levels: Vec<i16> = rows.iter().map(|row| is_there(row).into()).collect();
        let there = rows.iter().filter(|row| is_there(row));
        let addresses: Vec<i64> = there.map(|row| row.1).collect();
        put::<Int64Type>(&mut group, &addresses, is_optional.then_some(&levels));
        let sizes: Vec<i64> = rows.iter().map(|row| row.2).collect();
        put::<Int64Type>(&mut group, &sizes, None);
        group.close().unwrap();
    }
    writer.close().unwrap();
    file
}

/// The records before the first error, and its message.
fn read(file: File) -> (Vec<TraceRecord>, String) {
    let mut records = Vec::new();
    let result = read_table(file, |record| records.push(record));
    let message = result.map_or_else(|error| error.to_string(), |()| String::new());
    (records, message)
}

fn check(accesses: &[(bool, u64, u16)]) {
    let (mut text, mut rows) = (String::new(), Vec::new());
    for &(is_store, address, bytes) in accesses {
        let (kind, bytes) = (["L", "S"][usize::from(is_store)], bytes.max(1));
        text.push_str(&format!(" {kind} {address:x},{bytes}\n"));
        rows.push((kind, address.cast_signed(), bytes.into()));
        // Events that are no accesses, with what would not be a size.
        if address % 3 == 0 {
            rows.push((["M", "F", "", "LS"][usize::from(bytes % 4)], -1, 0));
        }
    }
    let mut by_text = two_levels(Inclusion::NonInclusive);
    let mut by_table = by_text.clone();
    let counts = simulate_trace(text.as_bytes(), &mut by_text).unwrap();
    let found = simulate_table(table(COLUMNS, &rows), &mut by_table).unwrap();
    assert_eq!(found, counts);
    assert_eq!(by_table.counts(), by_text.counts());
}

quickcheck! {
    fn a_table_and_its_text_have_the_same_misses(accesses: Vec<(bool, u64, u16)>) -> bool {
        check(&accesses);
        true
    }
}

#[test]
fn tables_of_several_groups_and_batches_are_read() {
    let access = |at: u64| (at.is_multiple_of(7), at * at % 4096, 8);
    check(&(0..25_000).map(access).collect::<Vec<_>>());
}

#[test]
fn columns_are_found_by_name_and_type() {
    let rows: [Row; 3] = [("L", 64, 8), ("M", 0, 0), ("S", 128, 4)];
    let optional = COLUMNS.replace("required int64 address", "optional int64 address");
    let seen = |columns: &str, rows: &[Row]| {
        let (records, message) = read(table(columns, rows));
        let kinds = records.iter().filter(|it| it.kind == TraceKind::Load);
        (records.len(), kinds.count(), message)
    };
    assert_eq!(seen(COLUMNS, &rows), (2, 1, String::new()));
    assert_eq!(seen(&optional, &[rows[0], rows[2]]), (2, 1, String::new()));
    let named = |from: &str, to: &str| seen(&COLUMNS.replace(from, to), &rows).2;
    assert_eq!(named("int64 size", "int64 len"), "it has no column `size`");
    assert_eq!(named("kind (STRING)", "what"), "it has no column `kind`");
    // Columns of the same types in another order.
    let swapped = named(
        "int64 order; required binary kind (STRING)",
        "int64 kind; required binary order",
    );
    assert_eq!(swapped, "its column `kind` holds INT64, not BYTE_ARRAY");
}

#[test]
fn rows_without_a_value_or_size_are_named() {
    let mut rows: Vec<Row> = (1..=20_000).map(|at| ("L", at, 8)).collect();
    let optional = COLUMNS.replace("required int64 address", "optional int64 address");
    rows[15_003].1 = 0;
    assert_eq!(
        read(table(&optional, &rows)).1,
        "row 15004: `address` has no value"
    );
    for size in [0, -1, 65536] {
        rows[15_003].2 = size;
        let (records, message) = read(table(COLUMNS, &rows));
        assert_eq!(records.len(), 15_003);
        let expected = format!("row 15004: the size is no number from 1 to 65535: {size}");
        assert_eq!(message, expected);
    }
}

#[test]
fn damaged_tables_are_read_or_refused() {
    let rows: Vec<Row> = (1..=300).map(|at| ("S", at % 17 * 64, 8)).collect();
    let mut whole = Vec::new();
    let mut file = table(COLUMNS, &rows);
    file.rewind().unwrap();
    file.read_to_end(&mut whole).unwrap();
    let message = |bytes: &[u8]| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        read(file).1
    };
    assert_eq!(message(&whole), "");
    for len in 0..whole.len() {
        assert!(!message(&whole[..len]).is_empty(), "{len}");
    }
    // It is an error or other rows, never a panic.
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        message(&bytes);
    }
}
