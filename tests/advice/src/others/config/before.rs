//! Settings of many services, as a tree of values that JSON would have, summed by paths.

use fastrand::Rng;
use std::collections::BTreeMap;

pub(super) enum Value {
    Number(u64),
    Text(String),
    List(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

fn value(random: &mut Rng, depth: usize) -> Value {
    match random.u8(..if depth == 0 { 4 } else { 8 }) {
        0..3 => Value::Number(random.u64(..1000)),
        3 => Value::Text("x".repeat(random.usize(..30))),
        4 => Value::List(
            (0..random.usize(..6))
                .map(|_| value(random, depth - 1))
                .collect(),
        ),
        _ => {
            let member = |_| {
                let key = format!("key{}", random.u8(..20));
                (key, value(random, depth - 1))
            };
            Value::Object((0..8).map(member).collect())
        }
    }
}

/// Services send their settings, which are put together.
pub(super) fn services(size: usize) -> Value {
    let mut random = Rng::with_seed(65);
    let mut all = BTreeMap::new();
    for _ in 0..size {
        let service = format!("service{}", random.usize(..size));
        all.insert(service, value(&mut random, 4));
    }
    Value::Object(all)
}

impl Value {
    fn total(&self) -> u64 {
        match self {
            Value::Number(number) => *number,
            Value::Text(text) => text.len() as u64,
            Value::List(values) => values.iter().map(Value::total).sum(),
            Value::Object(members) => members.values().map(Value::total).sum(),
        }
    }

    fn at(&self, path: &[&str]) -> u64 {
        let Some((key, rest)) = path.split_first() else {
            return self.total();
        };
        match self {
            Value::List(values) => values.iter().map(|value| value.at(path)).sum(),
            Value::Object(members) => members.get(*key).map_or(0, |value| value.at(rest)),
            _ => 0,
        }
    }
}

pub(super) fn questions(size: usize, all: &Value) -> u64 {
    let mut random = Rng::with_seed(66);
    let sum = (0..4).fold(0, |sum: u64, _| sum.rotate_left(9) ^ all.total());
    (0..8 * size).fold(sum, |sum, _| {
        let service = format!("service{}", random.usize(..size));
        let key = format!("key{}", random.u8(..20));
        sum.rotate_left(1) ^ all.at(&[&service, &key])
    })
}

pub fn run(size: usize) -> u64 {
    questions(size, &services(size))
}
