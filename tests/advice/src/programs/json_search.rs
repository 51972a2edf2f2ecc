//! A large JSON document in `serde_json`'s `Value`, whose members are then looked up.
//!
//! Each object is a `BTreeMap` of one node, and what a lookup waits for is the text of its keys. In
//! another map they lie as far away, and the document has to be converted first.

use super::mix;
use ctree::CTreeMap;
use serde_json::Value;

pub(super) fn before(size: usize) -> u64 {
    search(size, &document(size), |item, key| item.get(key)?.as_u64())
}

pub(super) fn after(size: usize) -> u64 {
    let items: Vec<Object> = document(size).into_iter().map(object).collect();
    search(size, &items, |item, key| item.get(key)?.as_u64())
}

/// An object of the document, the members of which are numbers and strings.
type Object = CTreeMap<String, Value>;

fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members.into_iter().collect(),
        _ => Object::new(),
    }
}

const KEYS: [&str; 5] = ["age", "height", "id", "visits", "weight"];

fn document(size: usize) -> Vec<Value> {
    let mut random = fastrand::Rng::with_seed(25);
    let mut text = String::new();
    for at in 0..size {
        text.push(if at == 0 { '[' } else { ',' });
        text.push_str(r#"{"name":"no name""#);
        for key in KEYS {
            text.push_str(&format!(r#","{key}":{}"#, random.u32(..)));
        }
        text.push('}');
    }
    text.push(']');
    serde_json::from_str(&text).expect("it is JSON")
}

fn search<I>(size: usize, items: &[I], get: impl Fn(&I, &str) -> Option<u64>) -> u64 {
    let mut random = fastrand::Rng::with_seed(26);
    (0..30 * size).fold(0, |sum, _| {
        let key = KEYS[random.usize(..KEYS.len())];
        mix(
            sum,
            get(&items[random.usize(..size)], key).expect("all have it"),
        )
    })
}
