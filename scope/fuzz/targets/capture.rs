//! The fuzzer's bytes as entries of a capture. What can be made of it can be written and read.
#![no_main]

mod captured;

use std::io::Cursor;

use ccscope::store::{self, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(profile) = captured::profile(bytes) else {
        return;
    };
    let mut file = Vec::new();
    store::write(&profile, &mut file).expect("memory takes all");
    let mut reader = Reader::new(Cursor::new(&file)).expect("it is whole");
    let read = reader.profile().expect("what is written can be read");
    assert_eq!((read.run, read.sites), (profile.run, profile.sites));
    assert_eq!(
        reader.windows().filter_map(Result::ok).count(),
        profile.windows.len()
    );
    let blocks = reader
        .chunks()
        .map(|block| block.expect("its sites are there").len());
    assert_eq!(blocks.sum::<usize>(), profile.chunks.len());
});
