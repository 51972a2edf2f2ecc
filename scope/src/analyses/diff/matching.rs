//! Which site of a run is which of an earlier one.
//!
//! A site has no name that outlives a build: lines move, functions are inlined or not, addresses
//! are random. So sites are matched by what is left, the strictest first: functions and lines of
//! the stack; functions, type and sizes; functions and type; functions; functions of the program
//! alone; and at last by similar stacks below the same function.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use crate::analyses::types::type_name;
use crate::profile::{Frame, Profile};
use crate::symbols::is_library;

/// Stacks are similar if they have this part of their functions in common.
pub const SIMILAR: f64 = 0.6;
/// Most sites that one is compared with.
const MAX_COMPARED: usize = 64;

/// How a site was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matched {
    /// The functions of the stack are the same.
    Functions,
    /// Those of the program are.
    OwnFunctions,
    /// Most of them are.
    Similar,
    /// It is in one profile only.
    Not,
}

/// A site of both profiles, or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
    pub(crate) matched: Matched,
}

/// What sites are recognised by, as numbers that mean the same in both profiles.
struct Keys {
    /// Hashes of the functions of the stack, of those of the program alone, if there are any,
    /// and of lines.
    chain: u64,
    own: Option<u64>,
    lines: u64,
    type_name: u32,
    /// The function that the site is shown at.
    place: u32,
    sizes: [u64; 3],
}

/// The same for the same numbers.
fn hash(numbers: impl Iterator<Item = u32>) -> u64 {
    let mut hasher = DefaultHasher::new();
    numbers.for_each(|number| hasher.write_u32(number));
    hasher.finish()
}

/// Numbers for values, in order of their first use.
fn number<T: Eq + Hash>(numbers: &mut HashMap<T, u32>, value: T) -> u32 {
    let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    *numbers.entry(value).or_insert(next)
}

/// Sites of both profiles, each once.
pub(crate) fn pairs(old: &Profile, new: &Profile) -> Vec<Pair> {
    let mut names = HashMap::new();
    let functions = [old, new].map(|profile| {
        let functions = profile.frames.iter();
        let numbers = functions.map(|frame| number(&mut names, function(frame)));
        numbers.collect::<Vec<u32>>()
    });
    // Apart from the frames, which fill the cache.
    let lines = [old, new].map(|profile| {
        let lines = profile.frames.iter().map(|frame| frame.line);
        lines.collect::<Vec<u32>>()
    });
    let keys = [0, 1].map(|side| {
        let (profile, functions, lines) = ([old, new][side], &functions[side], &lines[side]);
        let own: Vec<bool> = profile.frames.iter().map(|it| !is_library(it)).collect();
        let sites = profile.sites.iter().map(|site| {
            let frames = || site.stack.iter().map(|&frame| frame as usize);
            let mut last = None;
            let mine = { frames().filter(|&frame| own[frame]) }
                .map(|frame| functions[frame])
                .filter(|&function| last.replace(function) != Some(function));
            let place = site.place.or(site.stack.first().copied());
            let type_name = type_name(profile, site.type_id).unwrap_or_default();
            Keys {
                chain: hash(frames().map(|frame| functions[frame])),
                own: frames().any(|frame| own[frame]).then(|| hash(mine)),
                lines: hash(frames().map(|frame| lines[frame])),
                type_name: number(&mut names, type_name.to_owned()),
                place: place.map_or(u32::MAX, |place| functions[place as usize]),
                sizes: [site.smallest, site.largest, site.allocations],
            }
        });
        sites.collect::<Vec<Keys>>()
    });
    // What is left of both after the stricter keys is paired in the order of lines.
    let orders = [0, 1].map(|side| {
        let sites = &[old, new][side].sites;
        let line_of = |site: usize| sites[site].stack.iter().map(|&it| lines[side][it as usize]);
        let mut order: Vec<usize> = (0..sites.len()).collect();
        order.sort_by(|&a, &b| line_of(a).cmp(line_of(b)));
        order
    });
    let mut matching = Matching {
        left: orders,
        pairs: Vec::new(),
    };
    let keys = &keys;
    let same = Matched::Functions;
    matching.by(keys, same, |it| Some((it.chain, it.lines)));
    matching.by(keys, same, |it| Some((it.chain, it.type_name, it.sizes)));
    matching.by(keys, same, |it| Some((it.chain, it.type_name)));
    matching.by(keys, same, |it| Some(it.chain));
    matching.by(keys, Matched::OwnFunctions, |it| {
        Some((it.own?, it.type_name))
    });
    matching.by(keys, Matched::OwnFunctions, |it| it.own);
    // What a stack calls, in no order.
    let called = |side: usize, site: usize| {
        let stack = [old, new][side].sites[site].stack.iter();
        let mut called: Vec<u32> = stack.map(|&it| functions[side][it as usize]).collect();
        called.sort_unstable();
        called
    };
    matching.similar(keys, called);
    let [old, new] = matching.left;
    let alone = |old, new| Pair {
        old,
        new,
        matched: Matched::Not,
    };
    let gone = old.into_iter().map(|site| alone(Some(site), None));
    let added = new.into_iter().map(|site| alone(None, Some(site)));
    matching
        .pairs
        .into_iter()
        .chain(gone)
        .chain(added)
        .collect()
}

struct Matching {
    /// Sites of the two profiles that have no pair yet.
    left: [Vec<usize>; 2],
    pairs: Vec<Pair>,
}

impl Matching {
    /// Pairs sites of the same key, in order.
    fn by<K: Eq + Hash>(
        &mut self,
        keys: &[Vec<Keys>; 2],
        matched: Matched,
        key: impl Fn(&Keys) -> Option<K>,
    ) {
        // Lists of sites with the same key: the first and the last, and what follows each.
        let mut ends: HashMap<K, [usize; 2]> = HashMap::new();
        let mut next = vec![usize::MAX; keys[1].len()];
        for &site in &self.left[1] {
            let Some(key) = key(&keys[1][site]) else {
                continue;
            };
            let ends = ends.entry(key).or_insert([site, site]);
            if ends[1] != site {
                next[ends[1]] = site;
                ends[1] = site;
            }
        }
        let mut taken = vec![false; keys[1].len()];
        self.left[0].retain(|&old| {
            let same = key(&keys[0][old]).and_then(|key| ends.get_mut(&key));
            let Some(first) = same.map(|it| &mut it[0]).filter(|it| **it != usize::MAX) else {
                return true;
            };
            let new = *first;
            *first = next[new];
            taken[new] = true;
            self.pairs.push(Pair {
                old: Some(old),
                new: Some(new),
                matched,
            });
            false
        });
        self.left[1].retain(|&new| !taken[new]);
    }

    /// Pairs sites at the same function with similar stacks, the most similar first.
    fn similar(&mut self, keys: &[Vec<Keys>; 2], called: impl Fn(usize, usize) -> Vec<u32>) {
        let mut places: HashMap<u32, Vec<(usize, Vec<u32>)>> = HashMap::new();
        for &site in &self.left[1] {
            let at_place = places.entry(keys[1][site].place).or_default();
            at_place.push((site, called(1, site)));
        }
        let mut found: Vec<(f64, usize, usize)> = Vec::new();
        let mut seen: HashMap<u32, usize> = HashMap::new();
        for &old in &self.left[0] {
            let it = &keys[0][old];
            // Where there are many, those of about the same rank.
            let rank = seen.entry(it.place).or_default();
            let news = places.get(&it.place).map_or(&[][..], |news| news);
            let first = rank.saturating_sub(MAX_COMPARED / 2);
            let first = first.min(news.len().saturating_sub(MAX_COMPARED));
            *rank += 1;
            let mine = called(0, old);
            for (new, theirs) in news.iter().skip(first).take(MAX_COMPARED) {
                let score = similarity(&mine, theirs);
                if score >= SIMILAR {
                    found.push((score, old, *new));
                }
            }
        }
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut taken = [0, 1].map(|side| vec![false; keys[side].len()]);
        for (_, old, new) in found {
            if !taken[0][old] && !taken[1][new] {
                (taken[0][old], taken[1][new]) = (true, true);
                self.pairs.push(Pair {
                    old: Some(old),
                    new: Some(new),
                    matched: Matched::Similar,
                });
            }
        }
        for (left, taken) in self.left.iter_mut().zip(taken) {
            left.retain(|&site| !taken[site]);
        }
    }
}

/// What two sorted lists have in common, as a part of what they have.
fn similarity(a: &[u32], b: &[u32]) -> f64 {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    2.0 * f64::from(common) / (a.len() + b.len()).max(1) as f64
}

/// A function's name without what changes with each build: numbers of closures and clones, and
/// addresses, for which the module stands.
fn function(frame: &Frame) -> String {
    let name = &frame.function;
    if frame.file.is_empty() && (name.is_empty() || name.contains("0x")) {
        return frame.module.clone();
    }
    let mut text = String::with_capacity(name.len());
    let mut rest = &**name;
    while let Some((before, after)) = rest.split_once("{closure#") {
        text.extend([before, "{closure"]);
        rest = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
    }
    text.push_str(rest);
    for suffix in [".llvm.", ".constprop.", ".isra.", ".part.", ".cold"] {
        if let Some(at) = text.find(suffix) {
            text.truncate(at);
        }
    }
    text
}
