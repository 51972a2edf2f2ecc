//! The frame of a file: its header and those of its sections. All numbers are little-endian.

use crate::Error;

/// The first byte is no text, so that nobody takes the file for some.
pub(super) const MAGIC: [u8; 8] = *b"\x89ccscope";
/// Changes with every change of what a section holds.
pub(super) const VERSION: u32 = 3;
/// Bytes of the file's header.
pub(super) const FILE_HEADER: usize = 16;
/// Bytes of a section's header.
pub(super) const HEADER: usize = 28;

/// Most bytes that a section unpacks to.
pub(super) const MAX_CONTENT: usize = 4 << 20;
/// Bytes of content after which a section is closed.
pub(super) const TARGET_CONTENT: usize = 256 << 10;
/// Most bytes of content for each stored one; what shrinks more is stored as it is.
pub(super) const MAX_RATIO: usize = 16;

/// What the items of a section are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(pub(super) u32);

impl Kind {
    pub(super) const RUN: Kind = Kind(1);
    pub(super) const TOTALS: Kind = Kind(2);
    pub(super) const FRAMES: Kind = Kind(3);
    pub(super) const TYPES: Kind = Kind(4);
    pub(super) const SITES: Kind = Kind(5);
    pub(super) const THREADS: Kind = Kind(6);
    pub(super) const CURVE: Kind = Kind(7);
    pub(super) const RESIDENT: Kind = Kind(8);
    pub(super) const EDGES: Kind = Kind(9);
    pub(super) const WINDOWS: Kind = Kind(10);
    pub(super) const CHUNKS: Kind = Kind(11);
    pub(super) const REGIONS: Kind = Kind(12);
    pub(super) const MAPPINGS: Kind = Kind(13);
    pub(super) const PAGES: Kind = Kind(14);
    pub(super) const LINES: Kind = Kind(15);
    pub(super) const EXCEEDED: Kind = Kind(16);
    pub(super) const LEAKS: Kind = Kind(17);
    pub(super) const LINKS: Kind = Kind(18);
    /// The last section; its number of items is the number of sections before.
    pub(super) const END: Kind = Kind(u32::MAX);
}

/// How the content is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Raw = 0,
    Lz4 = 1,
}

/// The header of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) packing: Packing,
    /// Bytes that follow the header, and what they unpack to.
    pub(super) stored: u32,
    content: u32,
    pub(super) items: u32,
    /// Checksum of the stored bytes.
    checksum: u32,
}

fn damaged(what: &str) -> Error {
    Error::new(format!("the profile is damaged: {what}"))
}

/// The header of a file.
pub(super) fn file_header() -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

pub(super) fn check_file_header(bytes: &[u8]) -> Result<(), Error> {
    if !bytes.starts_with(&MAGIC) {
        return Err(Error::new("this is no profile of ccscope"));
    }
    if bytes.len() < FILE_HEADER {
        return Err(damaged("it ends within its header"));
    }
    if crc32fast::hash(&bytes[..12]) != word(bytes, 3) {
        return Err(damaged("the checksum of its header is wrong"));
    }
    match word(bytes, 2) {
        VERSION => Ok(()),
        other => Err(Error::new(format!(
            "the profile is of version {other}; this ccscope reads version {VERSION}"
        ))),
    }
}

/// The `index`th 32-bit number of a header.
fn word(bytes: &[u8], index: usize) -> u32 {
    let bytes = bytes[4 * index..].first_chunk();
    u32::from_le_bytes(*bytes.expect("headers are read whole"))
}

/// A section with `items` items: its header, then the stored content.
#[expect(
    clippy::cast_possible_truncation,
    reason = "content is at most `MAX_CONTENT`"
)]
pub(super) fn pack(kind: Kind, items: u32, content: &[u8]) -> Result<Vec<u8>, Error> {
    if content.len() > MAX_CONTENT {
        return Err(Error::new(format!(
            "a part of the profile takes {} bytes; {MAX_CONTENT} can be written",
            content.len()
        )));
    }
    let packed = lz4_flex::block::compress(content);
    let few = packed.len() < content.len() && content.len() <= MAX_RATIO * packed.len();
    let (packing, stored) = if few {
        (Packing::Lz4, &*packed)
    } else {
        (Packing::Raw, content)
    };
    let mut section = Vec::with_capacity(HEADER + stored.len());
    let words = [
        kind.0,
        packing as u32,
        stored.len() as u32,
        content.len() as u32,
        items,
        crc32fast::hash(stored),
    ];
    section.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let checksum = crc32fast::hash(&section);
    section.extend(checksum.to_le_bytes());
    section.extend(stored);
    Ok(section)
}

impl Header {
    pub(super) fn read(bytes: &[u8; HEADER]) -> Result<Header, Error> {
        if crc32fast::hash(&bytes[..HEADER - 4]) != word(bytes, 6) {
            return Err(damaged("the checksum of a section's header is wrong"));
        }
        let packing = match word(bytes, 1) {
            0 => Packing::Raw,
            1 => Packing::Lz4,
            other => return Err(damaged(&format!("a section is packed in way {other}"))),
        };
        let header = Header {
            kind: Kind(word(bytes, 0)),
            packing,
            stored: word(bytes, 2),
            content: word(bytes, 3),
            items: word(bytes, 4),
            checksum: word(bytes, 5),
        };
        let (stored, content) = (header.stored as usize, header.content as usize);
        let fits = match packing {
            Packing::Raw => content == stored,
            Packing::Lz4 => content <= stored.saturating_mul(MAX_RATIO),
        };
        if content > MAX_CONTENT || !fits {
            return Err(damaged(&format!("{stored} bytes claim to hold {content}")));
        }
        Ok(header)
    }

    /// The content of a section's `stored` bytes.
    pub(super) fn unpack(&self, stored: Vec<u8>) -> Result<Vec<u8>, Error> {
        if crc32fast::hash(&stored) != self.checksum {
            return Err(damaged("the checksum of a section is wrong"));
        }
        if self.packing == Packing::Raw {
            return Ok(stored);
        }
        let mut content = vec![0; self.content as usize];
        match lz4_flex::block::decompress_into(&stored, &mut content) {
            Ok(len) if len == content.len() => Ok(content),
            _ => Err(damaged("a section does not unpack")),
        }
    }
}
