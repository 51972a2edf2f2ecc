//! The first page of a file: read from untrusted bytes, written for a file whose rest is written.
//!
//! ```text
//!    0  magic            89 'c' 't' 'r' 'e' 'e' 0D 0A: no text: line ends must not be changed
//!    8  byte order       u32 0x01020304, the order of all numbers below
//!   12  version          u32 2
//!   16  header checksum  u64, of the page with this field 0
//!   24  file length      u64
//!   32  entries          u64
//!   40  key bytes        u32, what a key takes in a leaf       44  value bytes   u32
//!   48  kinds            u32: 1 keys in heap, 2 values in heap, 4 integer keys, 8 values in leaves
//!   52  keys in a leaf   u32                                   56  leaf bytes    u64
//!   64  six sections     u64 start, u64 length: leaves, values, two heaps, index, checksums
//!  160  index checksum   u64                                  168  checksum of the checksums  u64
//!  176  key type         u8 length, 95 bytes of name
//!  272  value type       u8 length, 95 bytes of name
//!  368  zeros to the end of the page
//! ```
//!
//! A reader uses the number of entries and three sizes, after checking their bounds. It computes
//! the rest from them and from the types, and compares the whole header.

use alloc::string::String;
use core::ops::Range;

use super::error::{OpenError, WriteError};
use super::layout::{FreeSizes, Layout, PAGE_BYTES, Section, Shape, VERSION, checksum};
use super::stored::{Stored, StoredKey};

/// The header is the first page.
pub(super) type Page = [u8; PAGE_BYTES];

const MAGIC: [u8; 8] = *b"\x89ctree\r\n";
const BYTE_ORDER: u32 = 0x0102_0304;

const MAGIC_AT: usize = 0;
const BYTE_ORDER_AT: usize = 8;
const VERSION_AT: usize = 12;
const HEADER_SUM_AT: usize = 16;
const FILE_BYTES_AT: usize = 24;
const LEN_AT: usize = 32;
const KEY_BYTES_AT: usize = 40;
const VALUE_BYTES_AT: usize = 44;
const KINDS_AT: usize = 48;
const LEAF_KEYS_AT: usize = 52;
const LEAF_BYTES_AT: usize = 56;
const SECTIONS_AT: usize = 64;
const SECTION_BYTES: usize = 16;
const KEY_HEAP_LENGTH_AT: usize = SECTIONS_AT + 2 * SECTION_BYTES + 8;
const VALUE_HEAP_LENGTH_AT: usize = SECTIONS_AT + 3 * SECTION_BYTES + 8;
const INDEX_LENGTH_AT: usize = SECTIONS_AT + 4 * SECTION_BYTES + 8;
const INDEX_SUM_AT: usize = 160;
const SUMS_SUM_AT: usize = 168;
const KEY_TYPE_AT: usize = 176;
const VALUE_TYPE_AT: usize = 272;
/// Room for a name, its length included.
const NAME_BYTES: usize = 96;

const _: () = assert!(SECTIONS_AT + 6 * SECTION_BYTES == INDEX_SUM_AT);
const _: () =
    assert!(KEY_TYPE_AT + NAME_BYTES == VALUE_TYPE_AT && VALUE_TYPE_AT + NAME_BYTES <= PAGE_BYTES);

/// Checksums that the header holds of other parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    /// Checksum of the index.
    pub(super) index: u64,
    /// Checksum of the table of checksums.
    pub(super) sums: u64,
}

fn range(at: usize, bytes: usize) -> Range<usize> {
    at..at + bytes
}

fn put(page: &mut Page, at: usize, bytes: &[u8]) {
    page[range(at, bytes.len())].copy_from_slice(bytes);
}

fn put_u64(page: &mut Page, at: usize, number: usize) {
    // A `usize` has at most 64 bits.
    put(page, at, &(number as u64).to_ne_bytes());
}

fn u32_at(page: &Page, at: usize) -> u32 {
    u32::load(&page[range(at, 4)])
}

fn u64_at(page: &Page, at: usize) -> u64 {
    u64::load(&page[range(at, 8)])
}

/// A number that should be one of this machine's addresses or sizes.
fn usize_at(page: &Page, at: usize) -> Result<usize, OpenError> {
    usize::try_from(u64_at(page, at)).map_err(|_| OpenError::Layout)
}

/// A name with its length before it; `None` if it is too long.
fn name_field(name: &str) -> Option<[u8; NAME_BYTES]> {
    let mut field = [0; NAME_BYTES];
    field[0] = u8::try_from(name.len()).ok()?;
    field[1..]
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    Some(field)
}

/// The name of a field, for a message.
fn name_in(page: &Page, at: usize) -> String {
    let field = &page[range(at, NAME_BYTES)];
    let name = field[1..].get(..field[0].into()).unwrap_or_default();
    String::from_utf8_lossy(name).escape_debug().collect()
}

/// The checksum that the header should have.
fn header_sum(page: &Page) -> u64 {
    let mut page = *page;
    put(&mut page, HEADER_SUM_AT, &[0; 8]);
    checksum(&page)
}

#[derive(Clone, Debug)]
pub(super) struct TypeNames {
    key: [u8; NAME_BYTES],
    value: [u8; NAME_BYTES],
}

impl TypeNames {
    pub(super) fn of<K: StoredKey + ?Sized, V: Stored + ?Sized>() -> Result<TypeNames, String> {
        let field = |name: String| name_field(&name).ok_or(name);
        Ok(TypeNames {
            key: field(K::stored_name())?,
            value: field(V::stored_name())?,
        })
    }

    /// The same, for a writer.
    pub(super) fn for_writing<K: StoredKey + ?Sized, V: Stored + ?Sized>()
    -> Result<TypeNames, WriteError> {
        TypeNames::of::<K, V>().map_err(|name| WriteError::TypeName { name })
    }
}

/// The header of a file.
pub(super) fn build(shape: Shape, layout: &Layout, names: &TypeNames, sums: Sums) -> Page {
    let mut page = [0; PAGE_BYTES];
    put(&mut page, MAGIC_AT, &MAGIC);
    put(&mut page, BYTE_ORDER_AT, &BYTE_ORDER.to_ne_bytes());
    put(&mut page, VERSION_AT, &VERSION.to_ne_bytes());
    put_u64(&mut page, FILE_BYTES_AT, layout.file_bytes);
    put_u64(&mut page, LEN_AT, layout.len);
    // Types of more bytes would not fit on a stack.
    let half = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_ne_bytes();
    put(&mut page, KEY_BYTES_AT, &half(shape.key_bytes));
    put(&mut page, VALUE_BYTES_AT, &half(shape.value_bytes));
    let kinds = u32::from(shape.keys_in_heap)
        | u32::from(shape.values_in_heap) << 1
        | u32::from(shape.lane.is_some()) << 2
        | u32::from(shape.joined) << 3;
    put(&mut page, KINDS_AT, &kinds.to_ne_bytes());
    put(&mut page, LEAF_KEYS_AT, &half(shape.leaf_keys));
    put_u64(&mut page, LEAF_BYTES_AT, shape.leaf_bytes);
    let sections = [
        layout.leaves,
        layout.values,
        layout.key_heap,
        layout.value_heap,
        layout.index,
        layout.sums,
    ];
    for (number, Section { at, bytes }) in sections.into_iter().enumerate() {
        put_u64(&mut page, SECTIONS_AT + number * SECTION_BYTES, at);
        put_u64(&mut page, SECTIONS_AT + number * SECTION_BYTES + 8, bytes);
    }
    put(&mut page, INDEX_SUM_AT, &sums.index.to_ne_bytes());
    put(&mut page, SUMS_SUM_AT, &sums.sums.to_ne_bytes());
    put(&mut page, KEY_TYPE_AT, &names.key);
    put(&mut page, VALUE_TYPE_AT, &names.value);
    let sum = header_sum(&page);
    put(&mut page, HEADER_SUM_AT, &sum.to_ne_bytes());
    page
}

/// Reads the header of a file of `file_bytes` that should hold a map from `K` to `V`.
///
/// Whatever the page holds, a layout that is returned is one of this shape, for a file of exactly
/// this length.
pub(super) fn parse<K: StoredKey + ?Sized, V: Stored + ?Sized>(
    page: &Page,
    file_bytes: u64,
) -> Result<(Layout, Sums), OpenError> {
    if page[range(MAGIC_AT, MAGIC.len())] != MAGIC {
        return Err(OpenError::Magic);
    }
    match u32_at(page, BYTE_ORDER_AT) {
        BYTE_ORDER => {}
        other if other == BYTE_ORDER.swap_bytes() => return Err(OpenError::ByteOrder),
        _ => return Err(OpenError::HeaderChecksum),
    }
    match u32_at(page, VERSION_AT) {
        VERSION => {}
        found => return Err(OpenError::Version { found }),
    }
    if u64_at(page, HEADER_SUM_AT) != header_sum(page) {
        return Err(OpenError::HeaderChecksum);
    }
    let names = TypeNames::of::<K, V>().map_err(|_| OpenError::KeyType {
        found: name_in(page, KEY_TYPE_AT),
    })?;
    if page[range(KEY_TYPE_AT, NAME_BYTES)] != names.key {
        let found = name_in(page, KEY_TYPE_AT);
        return Err(OpenError::KeyType { found });
    }
    if page[range(VALUE_TYPE_AT, NAME_BYTES)] != names.value {
        let found = name_in(page, VALUE_TYPE_AT);
        return Err(OpenError::ValueType { found });
    }
    let shape = Shape::of::<K, V>();
    let in_heap = |in_heap: bool, at: usize| match usize_at(page, at)? {
        0 => Ok(0),
        bytes if in_heap => Ok(bytes),
        _ => Err(OpenError::Layout),
    };
    let mut sizes = FreeSizes {
        key_heap_bytes: in_heap(shape.keys_in_heap, KEY_HEAP_LENGTH_AT)?,
        value_heap_bytes: in_heap(shape.values_in_heap, VALUE_HEAP_LENGTH_AT)?,
        separator_bytes: 0,
    };
    let len = usize_at(page, LEN_AT)?;
    if shape.keys_in_heap {
        // What the section has beyond the ends of the separators.
        let without = Layout::new(shape, len, FreeSizes::default()).ok_or(OpenError::Layout)?;
        sizes.separator_bytes = usize_at(page, INDEX_LENGTH_AT)?
            .checked_sub(without.index.bytes)
            .ok_or(OpenError::Layout)?;
    }
    let layout = Layout::new(shape, len, sizes).ok_or(OpenError::Layout)?;
    let sums = Sums {
        index: u64_at(page, INDEX_SUM_AT),
        sums: u64_at(page, SUMS_SUM_AT),
    };
    if *page != build(shape, &layout, &names, sums) {
        return Err(OpenError::Layout);
    }
    if layout.file_bytes as u64 != file_bytes {
        return Err(OpenError::Length {
            expected_bytes: layout.file_bytes as u64,
            found_bytes: file_bytes,
        });
    }
    Ok((layout, sums))
}

/// Puts other checksums into a header, and gives it the one that fits.
#[cfg(test)]
pub(super) fn sign(page: &mut [u8], sums: Sums) {
    let page: &mut Page = page.try_into().expect("a header is one page");
    put(page, INDEX_SUM_AT, &sums.index.to_ne_bytes());
    put(page, SUMS_SUM_AT, &sums.sums.to_ne_bytes());
    let sum = header_sum(page);
    put(page, HEADER_SUM_AT, &sum.to_ne_bytes());
}

#[cfg(test)]
mod tests;
