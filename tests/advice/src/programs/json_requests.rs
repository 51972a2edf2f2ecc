//! Small JSON documents, each parsed by `serde_json`, asked, and dropped.
//!
//! Their memory is used again at once and stays in the cache, with a hint or without.

use super::mix;
use serde_json::Value;

pub(super) fn before(size: usize) -> u64 {
    serve(size, |text| serde_json::from_str(text))
}

pub(super) fn after(size: usize) -> u64 {
    serve(size, |text| {
        ccmalloc::near(&(), || serde_json::from_str(text))
    })
}

fn serve(size: usize, parse: impl Fn(&str) -> serde_json::Result<Value>) -> u64 {
    (0..size).fold(0, |sum, number| {
        let text = format!(r#"{{"user":{number},"path":["a","b"],"flags":{{"fast":true}}}}"#);
        let request = parse(&text).expect("it is JSON");
        let path = request["path"].as_array().map_or(0, Vec::len) as u64;
        mix(sum, request["user"].as_u64().unwrap_or(0) ^ path)
    })
}
