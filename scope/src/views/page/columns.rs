//! Numbers and strings as columns of bytes, which `page/data.js` reads.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};

/// Bits of a float that are not stored: 11 bits of fraction are left, which is one in 4,000.
const LEFT_OUT_BITS: u32 = 12;

/// Columns of one profile.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// Name, kind and length of each.
    names: Vec<Value>,
    bytes: Vec<u8>,
}

impl Columns {
    /// Each takes a byte for seven bits.
    pub(super) fn numbers(&mut self, name: &str, numbers: impl IntoIterator<Item = u64>) {
        let mut len = 0u64;
        for mut number in numbers {
            while number >= 0x80 {
                self.bytes.push(number.to_le_bytes()[0] | 0x80);
                number >>= 7;
            }
            self.bytes.push(number.to_le_bytes()[0]);
            len += 1;
        }
        self.names.push(json!([name, "numbers", len]));
    }

    /// Adds a column of numbers with three digits; what is no number becomes 0.
    pub(super) fn floats(&mut self, name: &str, floats: impl IntoIterator<Item = f64>) {
        #[expect(clippy::cast_possible_truncation, reason = "rounds")]
        let short = |float: f64| if float.is_finite() { float as f32 } else { 0.0 };
        let bits = |float| u64::from(short(float).to_bits() >> LEFT_OUT_BITS);
        self.numbers(name, floats.into_iter().map(bits));
        if let Some(column) = self.names.last_mut() {
            column[1] = json!("floats");
        }
    }

    /// A column of lists: the length of each, and then in `parts` all items, one part of an item
    /// in each column.
    pub(super) fn lists<const N: usize>(
        &mut self,
        name: &str,
        parts: [&str; N],
        lists: &[Vec<[u64; N]>],
    ) {
        self.numbers(name, lists.iter().map(|list| list.len() as u64));
        for (i, part) in parts.into_iter().enumerate() {
            let items = lists.iter().flatten().map(|item| item[i]);
            self.numbers(&format!("{name}.{part}"), items);
        }
    }

    /// Header and columns, compressed, in base64. The header is `head` with the columns' names.
    pub(super) fn to_text(&self, mut head: Value) -> io::Result<String> {
        head["columns"] = Value::Array(self.names.clone());
        let head = head.to_string();
        let len = u32::try_from(head.len()).map_err(io::Error::other)?;
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&len.to_le_bytes())?;
        encoder.write_all(head.as_bytes())?;
        encoder.write_all(&self.bytes)?;
        Ok(BASE64_STANDARD.encode(encoder.finish()?))
    }
}
