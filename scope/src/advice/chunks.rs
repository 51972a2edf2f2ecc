//! What the profile knows of the objects of the windows: their size, and who is older.

use std::collections::HashMap;

use crate::analyses::replay::trace::{Object, Trace, index_32};
use crate::analyses::units::ratio;
use crate::profile::{Profile, Site};

/// Larger objects do not lie in the order of their births.
const SMALL: u64 = 1024;
/// The heap is fresh if so many of the objects lie above the one that is the next older.
const ASCENDING: f64 = 0.8;
/// Fewer objects do not show it.
const MIN_CHUNKS: usize = 64;

/// By object of a [`Trace`].
pub(crate) struct Chunks {
    bytes: Vec<u32>,
    /// In events; 0 if it is not known.
    born: Vec<u64>,
    bases: Vec<u64>,
    /// Whether addresses grow with time.
    is_fresh: bool,
}

impl Chunks {
    /// O(chunks of the profile + objects).
    pub(crate) fn new(profile: &Profile, trace: &Trace) -> Chunks {
        let of_site = |object: &Object| {
            let site = profile.sites.get(object.site as usize);
            let mean = |site: &Site| match site.smallest == site.largest {
                true => site.largest,
                false => site.chunk_bytes().div_ceil(site.allocations.max(1)),
            };
            u32::try_from(site.map_or(0, mean)).unwrap_or(u32::MAX)
        };
        let mut bytes: Vec<u32> = trace.objects.iter().map(of_site).collect();
        let mut born = vec![0; bytes.len()];
        let key = |(at, object): (usize, &Object)| ((object.site, object.base), index_32(at));
        let object: HashMap<(u32, u64), u32> = trace.objects.iter().enumerate().map(key).collect();
        let mut small: Vec<(u64, u64)> = Vec::new();
        for chunk in &profile.chunks {
            if chunk.size <= SMALL {
                small.push((chunk.allocated, chunk.address));
            }
            if let Some(&at) = object.get(&(chunk.site, chunk.address)) {
                bytes[at as usize] = u32::try_from(chunk.size).unwrap_or(u32::MAX);
                born[at as usize] = chunk.allocated;
            }
        }
        small.sort_unstable();
        let up = small.windows(2).filter(|pair| pair[1].1 > pair[0].1);
        let up = ratio(up.count() as u64, small.len() as u64);
        Chunks {
            bytes,
            born,
            bases: trace.objects.iter().map(|object| object.base).collect(),
            is_fresh: small.len() >= MIN_CHUNKS && up >= ASCENDING,
        }
    }

    /// What the program asked for; of objects whose own size is not known, the mean of their site.
    pub(crate) fn bytes(&self, object: u32) -> u32 {
        self.bytes.get(object as usize).copied().unwrap_or(0)
    }

    /// Whether an object was allocated before another, if that is known.
    pub(crate) fn is_older(&self, object: u32, other: u32) -> Option<bool> {
        let of = |all: &[u64]| {
            let [a, b] = [object, other].map(|it| all.get(it as usize).copied());
            a.zip(b)
        };
        let (a, b) = of(&self.born)
            .filter(|&(a, b)| a > 0 && b > 0)
            .or_else(|| {
                // Where it lies says when it was born.
                of(&self.bases).filter(|_| self.is_fresh)
            })?;
        Some(a < b)
    }
}
