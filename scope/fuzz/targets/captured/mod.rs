//! The fuzzer's bytes as entries of a capture.

use std::cell::RefCell;

use ccscope::Profile;
use ccscope::capture_format::{self, Header, layout};
use ccscope::profile::Run;
use ccscope::symbols::Symbols;
use memmap2::MmapMut;

thread_local! {
    /// A sparse file, zero between runs.
    static MAP: RefCell<MmapMut> = RefCell::new({
        let file = tempfile::tempfile().expect("a temporary file");
        file.set_len(layout::END).expect("a sparse file");
        // SAFETY: nobody else has the file.
        unsafe { MmapMut::map_mut(&file) }.expect("room for a capture")
    });
}

/// The next `len` bytes, filled up with zeros.
fn take(bytes: &mut &[u8], len: usize) -> Vec<u8> {
    let (part, rest) = bytes.split_at(bytes.len().min(len));
    *bytes = rest;
    let mut part = part.to_vec();
    part.resize(len, 0);
    part
}

/// Entries at their places in the capture.
fn entries(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut header = take(&mut bytes, size_of::<Header>());
    let mut set = |at: usize, value: u64| {
        header[at..at + 8].copy_from_slice(&value.to_le_bytes());
    };
    set(std::mem::offset_of!(Header, magic), capture_format::MAGIC);
    set(
        std::mem::offset_of!(Header, version),
        u64::from(capture_format::VERSION),
    );
    let mut counts = take(&mut bytes, 8).into_iter().map(u64::from);
    for at in [
        std::mem::offset_of!(Header, threads),
        std::mem::offset_of!(Header, nodes),
        std::mem::offset_of!(Header, sites),
        std::mem::offset_of!(Header, chunks),
        std::mem::offset_of!(Header, windows),
        std::mem::offset_of!(Header, regions),
        std::mem::offset_of!(Header, tracks),
    ] {
        set(at, counts.next().unwrap_or(0));
    }
    set(
        std::mem::offset_of!(Header, heap_used),
        counts.next().unwrap_or(0) * 64,
    );
    set(std::mem::offset_of!(Header, hists_used), layout::SHARD);
    set(std::mem::offset_of!(Header, shards), 0b11);
    // Modules would be files of this machine.
    set(std::mem::offset_of!(Header, modules), 0);
    let mut entries = vec![(layout::HEADER, header)];
    while let [part, index, rest @ ..] = bytes {
        bytes = rest;
        let (table, len) = match part % 7 {
            0 => (layout::THREADS, size_of::<capture_format::Thread>()),
            1 => (layout::NODES, size_of::<capture_format::Node>()),
            2 => (layout::SITES, size_of::<capture_format::Site>()),
            3 => (layout::CHUNKS, size_of::<capture_format::Chunk>()),
            4 => (layout::REGIONS, size_of::<capture_format::Region>()),
            5 => (layout::WINDOWS, capture_format::WINDOW_ROOM as usize),
            _ => (layout::HEAP, 64),
        };
        // The first accesses of a window are enough.
        let mut entry = take(&mut bytes, len.min(400));
        // Offsets that lead into the heap, where the entry has one.
        for at in (0..entry.len() / 8 * 8).step_by(8) {
            if entry[at + 5] == 0x50 && entry[at + 6..at + 8] == [0, 0] {
                let offset = layout::HEAP + u64::from(entry[at]) * 8;
                entry[at..at + 8].copy_from_slice(&offset.to_le_bytes());
            }
        }
        entries.push((table + u64::from(*index) * len as u64, entry));
    }
    entries
}

/// The profile that is made of such a capture.
pub fn profile(bytes: &[u8]) -> Result<Profile, ccscope::Error> {
    let entries = entries(bytes);
    MAP.with_borrow_mut(|map| {
        for (at, entry) in &entries {
            map[*at as usize..][..entry.len()].copy_from_slice(entry);
        }
        let made =
            ccscope::capture::profile(map, Run::default(), Vec::new(), &mut Symbols::default());
        for (at, entry) in &entries {
            map[*at as usize..][..entry.len()].fill(0);
        }
        made
    })
}
