//! Short-lived garbage beside a long-lived cache, as in a server.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::rng::Rng;

use super::objects::marked;
use super::{Outcome, Scale, live};

/// Entries of the cache.
const CACHED: usize = 20_000;
/// Different things that can be asked for.
const PATHS: usize = 60_000;

/// An entry of the cache.
struct Cached {
    body: Vec<u8>,
    tags: Vec<String>,
}

/// All that lives as long as a request.
struct Request {
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

type Cache = HashMap<String, Box<Cached>, BuildHasherDefault<DefaultHasher>>;

/// Requests with headers and a body come and go; each may put an entry into a cache of 20,000, from
/// which another one goes.
pub(super) fn requests(scale: Scale) -> Outcome {
    Outcome::of(|sum| {
        let mut rng = Rng::new(10);
        let mut cache = Cache::default();
        // The paths in the cache, to choose one that goes.
        let mut paths: Vec<String> = Vec::new();
        let cached = live(CACHED, 28);
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
    let choice = if rng.below(2) == 0 {
        1000
    } else {
        live(PATHS, 28)
    };
    let path = format!("/articles/{}/view", rng.below(choice));
    let raw = format!(
        "host: example.org\naccept: text/html\nuser-agent: double/{}\ncookie: {:x}\nlength: {}",
        rng.below(10),
        rng.next_u64(),
        rng.below(5000)
    );
    let headers = raw
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let body = marked(64 + rng.below(8000), number);
    Request {
        path,
        headers,
        body,
    }
}

/// What the cache keeps for a path.
fn compute(rng: &mut Rng, number: usize) -> Cached {
    Cached {
        body: marked(200 + rng.below(1800), number),
        tags: (0..rng.below(5)).map(|tag| format!("tag-{tag}")).collect(),
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
