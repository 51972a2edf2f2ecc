//! The fuzzer's bytes as a profile: as they are, and as the contents of sections whose frames and
//! checksums are right. What can be read can be written and read again.
#![no_main]

use std::io::Cursor;

use ccscope::profile::Profile;
use ccscope::store::{self, Reader};
use libfuzzer_sys::fuzz_target;

fn read(bytes: &[u8]) -> Result<Profile, ccscope::Error> {
    let mut reader = Reader::new(Cursor::new(bytes))?;
    let mut profile = reader.profile()?;
    profile.windows = reader.windows().collect::<Result<_, _>>()?;
    for block in reader.chunks() {
        profile.chunks.extend(block?);
    }
    Ok(profile)
}

fn section(kind: u32, packing: u32, content: u32, items: u32, stored: &[u8]) -> Vec<u8> {
    let words = [
        kind,
        packing,
        stored.len() as u32,
        content,
        items,
        crc32fast::hash(stored),
    ];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes.extend(stored);
    bytes
}

/// Sections of lengths, kinds and counts that the bytes name.
fn framed(mut bytes: &[u8]) -> Vec<u8> {
    let mut file = b"\x89ccscope\x01\0\0\0".to_vec();
    file.extend(crc32fast::hash(&file).to_le_bytes());
    while let [kind, packing, items, content, len, rest @ ..] = bytes {
        let (stored, after) = rest.split_at(rest.len().min(usize::from(*len)));
        let packing = u32::from(packing % 2);
        let content = if packing == 0 {
            stored.len() as u32
        } else {
            u32::from(*content)
        };
        let kind = u32::from(kind % 14) + 1;
        file.extend(section(kind, packing, content, u32::from(*items), stored));
        bytes = after;
    }
    file
}

fuzz_target!(|bytes: &[u8]| {
    for file in [bytes, &framed(bytes)] {
        match read(file) {
            Ok(profile) => {
                let mut again = Vec::new();
                store::write(&profile, &mut again).expect("memory takes all");
                assert_eq!(read(&again), Ok(profile));
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    }
});
