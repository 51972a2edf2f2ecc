//! Ordered and hashed maps of strings, and a cache beside short-lived garbage, as in a server.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};

use super::objects::marked;
use super::{Outcome, Scale, collect, live};
use crate::rng::Rng;

/// A `BTreeMap<String, String>`: inserted into, looked up in, removed from, iterated over, dropped.
pub(super) fn btree_strings(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(6);
        let mut map = BTreeMap::new();
        for step in 0..scale.of(400_000) {
            let key = user(&mut rng);
            match step % 8 {
                0..4 => {
                    let value = format!("{step} {}", "v".repeat(rng.below(60)));
                    if let Some(old) = map.insert(key, value) {
                        sum.add_bytes(old.as_bytes());
                    }
                }
                4..6 => {
                    let found: Option<&String> = map.get(&key);
                    sum.add_bytes(found.map_or("", String::as_str).as_bytes());
                }
                6 => {
                    let next = map.range(key..).next();
                    sum.add_bytes(next.map_or("", |(key, _)| key).as_bytes());
                }
                _ => {
                    let removed: Option<String> = map.remove(&key);
                    sum.add_bytes(removed.unwrap_or_default().as_bytes());
                }
            }
        }
        let copy = map.clone();
        map.retain(|key, _| key.len() % 2 == 0);
        for (key, value) in copy.iter().chain(&map) {
            sum.add_bytes(key.as_bytes());
            sum.add_bytes(value.as_bytes());
        }
    })
}

fn user(rng: &mut Rng) -> String {
    let number = rng.below(live(60_000, 10));
    format!("user:{:x}:{number}", number.wrapping_mul(0x9E37_79B9))
}

/// Without the random seed of std's default, so that iteration has one order.
type Hashed<V> = HashMap<String, V, BuildHasherDefault<DefaultHasher>>;

/// An index as a `HashMap<String, Vec<u32>>`: lists that grow, words that go.
pub(super) fn hash_lists(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(7);
        let mut index: Hashed<Vec<u32>> = Hashed::default();
        for position in 0..scale.of(1_600_000) {
            let word = word(&mut rng);
            let mark = position.to_le_bytes()[0];
            if rng.below(20) == 0 {
                let positions = index.remove(&word).unwrap_or_default();
                sum.add(positions.iter().map(|&mark| u64::from(mark)).sum());
            } else {
                index.entry(word).or_default().push(u32::from(mark));
            }
        }
        for (word, positions) in &index {
            sum.add_bytes(word.as_bytes());
            sum.add(positions.iter().map(|&mark| u64::from(mark)).sum());
        }
    })
}

/// A word; low numbers come more often, as frequent words do.
fn word(rng: &mut Rng) -> String {
    let words = live(40_000, 7);
    let number = rng.below(words).min(rng.below(words));
    let mut word = format!("{number:x}");
    if number.is_multiple_of(3) {
        word.push_str("-and-a-longer-ending-of-it");
    }
    word
}

struct Cached {
    body: Vec<u8>,
    tags: Vec<String>,
}

struct Request {
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// Requests come and go; each may put an entry into a cache of 20,000, from which another one goes.
pub(super) fn requests(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(10);
        let mut cache: Hashed<Box<Cached>> = Hashed::default();
        // The paths in the cache, to choose one that goes.
        let mut paths: Vec<String> = Vec::new();
        let cached = live(20_000, 28);
        for number in 0..scale.of(160_000) {
            let request = receive(&mut rng, number);
            if !cache.contains_key(&request.path) {
                if paths.len() == cached {
                    let oldest = paths.swap_remove(rng.below(cached));
                    cache.remove(&oldest);
                }
                paths.push(request.path.clone());
                cache.insert(request.path.clone(), Box::new(compute(&mut rng, number)));
            }
            let response = answer(&request, &cache[&request.path]);
            sum.add_bytes(response.as_bytes());
            sum.add_bytes(&request.body);
        }
    })
}

/// A request as it comes from the network; half of them ask for one of 1000 popular paths.
fn receive(rng: &mut Rng, number: usize) -> Request {
    let choice = match rng.below(2) {
        0 => 1000,
        _ => live(60_000, 28),
    };
    let path = format!("/articles/{}/view", rng.below(choice));
    let raw = format!(
        "host: example.org\naccept: text/html\nuser-agent: double/{}\ncookie: {:x}\nlength: {}",
        rng.below(10),
        rng.next_u64(),
        rng.below(5000)
    );
    let headers = raw.lines().filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let headers = headers.collect();
    let body = marked(64 + rng.below(8000), number);
    Request {
        path,
        headers,
        body,
    }
}

fn compute(rng: &mut Rng, number: usize) -> Cached {
    Cached {
        body: marked(200 + rng.below(1800), number),
        tags: collect(rng.below(5), |tag| format!("tag-{tag}")),
    }
}

/// The page, put together piece by piece.
fn answer(request: &Request, cached: &Cached) -> String {
    let mut lines = vec![format!("HTTP/1.1 200 OK, {}", request.path)];
    for (name, value) in &request.headers {
        lines.push(format!("x-{name}: {value}"));
    }
    lines.push(cached.tags.join(","));
    lines.push(format!("{} bytes", cached.body.len()));
    lines.join("\r\n")
}
