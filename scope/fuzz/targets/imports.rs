//! The fuzzer's bytes as a file of another tool: as they are, and as numbers of files that are
//! right in form. What can be made of them can be shown, exported, written and read again.
#![no_main]

use std::fmt::Write;
use std::io::Cursor;

use ccscope::exports::dhat;
use ccscope::store::{self, Reader};
use ccscope::views::{Options, json, terminal};
use ccscope::{Profile, imports};
use libfuzzer_sys::fuzz_target;

/// Small, or with few bits clear.
fn number(byte: u8) -> u64 {
    match byte {
        0..128 => u64::from(byte),
        _ => u64::MAX >> ((byte - 128) / 2),
    }
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .iter()
        .copied()
        .chain(std::iter::repeat(0))
        .map(number)
}

/// Lines of heaptrack.
fn heaptrack(bytes: &[u8]) -> String {
    let mut text = "v 1 3\ns 1 m\ni 1 1 1 1 7\nt 1 0\na 10 1\n+ 0\n".to_owned();
    for line in bytes.chunks(6) {
        text.push(char::from(b"sitta++-cRXI"[usize::from(line[0]) % 12]));
        for number in numbers(&line[1..]).take(line.len() - 1) {
            write!(text, " {number:x}").expect("memory takes all");
        }
        text.push('\n');
    }
    text
}

/// DHAT's object with a place for each few bytes.
fn dhat_json(bytes: &[u8]) -> String {
    let mut head = numbers(bytes);
    let (te, tg) = (head.next().unwrap_or(0), head.next().unwrap_or(0));
    let unit = if te % 2 == 0 { "µs" } else { "instrs" };
    let place = |bytes: &[u8]| {
        let names = [
            "tb", "tbk", "tl", "mb", "mbk", "gb", "gbk", "eb", "ebk", "rb", "wb",
        ];
        let fields = { names.iter().zip(numbers(bytes)) }
            .map(|(name, number)| format!("\"{name}\":{number},"))
            .collect::<String>();
        format!("{{{fields}\"fs\":[{}]}}", bytes[0] % 4)
    };
    let places: Vec<String> = { bytes.get(2..).unwrap_or_default() }
        .chunks(11)
        .map(place)
        .collect();
    format!(
        "{{\"dhatFileVersion\":2,\"mode\":\"heap\",\"tu\":\"{unit}\",\"cmd\":\"a\",\"te\":{te},\
         \"tg\":{tg},\"pps\":[{}],\"ftbl\":[\"[root]\",\"0x1: f (a.c:7)\",\"0x2: ??? (in /b)\"]}}",
        places.join(",")
    )
}

fn read(bytes: &[u8]) -> Result<Profile, ccscope::Error> {
    let mut reader = Reader::new(Cursor::new(bytes))?;
    reader.profile()
}

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    for content in [
        bytes,
        heaptrack(bytes).as_bytes(),
        dhat_json(bytes).as_bytes(),
    ] {
        std::fs::write(file.path(), content).expect("a small file");
        match imports::open(file.path()) {
            Ok(profile) => {
                let mut again = Vec::new();
                store::write(&profile, &mut again).expect("memory takes all");
                if profile.windows.is_empty() {
                    assert_eq!(read(&again).as_ref(), Ok(&profile));
                }
                let options = Options::default();
                for text in [
                    terminal::summary(&profile, &options),
                    terminal::sites(&profile, &options),
                    json::to_json(&profile, &options),
                ] {
                    assert!(!text.contains('\x1b'));
                }
                dhat::write(&profile, &mut std::io::sink()).expect("nothing is written");
            }
            Err(error) => assert!(!error.to_string().contains(char::is_control)),
        }
    }
});
