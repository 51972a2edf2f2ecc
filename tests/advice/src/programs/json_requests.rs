//! Small JSON documents, each parsed by `serde_json`, asked, and dropped.
//!
//! Their memory is used again at once and stays in the cache, with a hint or without.

use super::mix;
use crate::{Kind, Program};
use serde_json::Value;

pub(super) const PROGRAM: Program = Program {
    name: "json_requests",
    kind: Kind::Hint,
    worth_it: false,
    note: "serde_json, small documents that are parsed and dropped",
    size: 1_500_000,
    before: |size| serve(size, |text| serde_json::from_str(text)),
    after: |size| {
        serve(size, |text| {
            ccmalloc::near(&(), || serde_json::from_str(text))
        })
    },
};

fn serve(size: usize, parse: impl Fn(&str) -> serde_json::Result<Value>) -> u64 {
    (0..size).fold(0, |sum, number| {
        let text = format!(r#"{{"user":{number},"path":["a","b"],"flags":{{"fast":true}}}}"#);
        let request = parse(&text).expect("it is JSON");
        let path = request["path"].as_array().map_or(0, Vec::len) as u64;
        mix(sum, request["user"].as_u64().unwrap_or(0) ^ path)
    })
}
