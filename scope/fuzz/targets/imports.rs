//! The fuzzer's bytes as a file of another tool: as they are, and as numbers in files of the right
//! form. What can be made of them can be shown, exported, written and read again.
#![no_main]

use std::fmt::Write;
use std::io::Cursor;

use ccscope::store::{self, Reader};
use ccscope::views::{Options, json, terminal};
use ccscope::{exports, imports};
use libfuzzer_sys::fuzz_target;

const DHAT: &str = r#"{"dhatFileVersion":2,"mode":"heap","tu":"µs","cmd":"a","te":#,"tg":#,"pps":[
{"tb":#,"tbk":#,"tl":#,"mb":#,"mbk":#,"gb":#,"gbk":#,"eb":#,"ebk":#,"rb":#,"wb":#,"fs":[#,1]},
{"tb":#,"tbk":#,"tl":#,"mb":#,"mbk":#,"gb":#,"gbk":#,"eb":#,"ebk":#,"rb":#,"wb":#,"fs":[#]}],
"ftbl":["[root]","0x1: f (a.c:#)","0x2: ??? (in /b)","0x#: g (a.rs:1:2)"]}"#;

/// Small, or with the low bits set.
fn number(byte: u8) -> u64 {
    match byte {
        0..128 => u64::from(byte),
        _ => u64::MAX >> ((byte - 128) / 2),
    }
}

fn dhat(bytes: &[u8]) -> String {
    let mut parts = DHAT.split('#');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for (part, byte) in parts.zip(bytes.iter().chain(std::iter::repeat(&0))) {
        text += &format!("{}{part}", number(*byte));
    }
    text
}

fn heaptrack(bytes: &[u8]) -> String {
    let mut text = "v 1 3\ns 1 m\ni 1 1 1 1 7\nt 1 0\na 10 1\n+ 0".to_owned();
    for line in bytes.chunks(6) {
        text += "\n";
        text.push(char::from(b"sitta++-cRXI"[usize::from(line[0]) % 12]));
        for byte in &line[1..] {
            write!(text, " {:x}", number(*byte)).expect("memory takes all");
        }
    }
    text
}

fuzz_target!(|bytes: &[u8]| {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    for content in [bytes, heaptrack(bytes).as_bytes(), dhat(bytes).as_bytes()] {
        std::fs::write(file.path(), content).expect("a small file");
        let profile = match imports::open(file.path()) {
            Ok(profile) => profile,
            Err(error) => {
                assert!(!error.to_string().contains(char::is_control));
                continue;
            }
        };
        let mut again = Vec::new();
        store::write(&profile, &mut again).expect("memory takes all");
        let mut reader = Reader::new(Cursor::new(&again)).expect("it is whole");
        let read = reader.profile().expect("what is written can be read");
        assert_eq!(
            (read.run, read.sites),
            (profile.run.clone(), profile.sites.clone())
        );
        let options = Options::default();
        drop(terminal::summary(&profile, &options));
        drop(json::to_json(&profile, &options));
        exports::dhat::write(&profile, std::io::sink()).expect("it takes all");
        exports::firefox::write(&profile, std::io::sink()).expect("it takes all");
        exports::perfetto::write(&profile, std::io::sink()).expect("it takes all");
    }
});
