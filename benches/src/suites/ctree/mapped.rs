//! The frozen map in a file against bbtree's: both just written, mapped, and all of their pages in
//! memory.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::chain::QueryChain;
use crate::rng::Rng;
use bbtree::file::FileMap;
use bbtree::unsync::BBTreeMap;
use ctree::MappedCTreeMap;
use memmap2::Mmap;

use super::{Comparison, Effort, Failure, SEED, SUITE, WARM_BYTES};
use super::{alone, duel, measures, sum_of, warm_memory};
use crate::keys;
use crate::ordered_map::{add_in_order, low_half, value_of};
use crate::rivals::bbtree as rival;
use crate::workload::{KEYS_2M, Workload};

/// Lookups in maps of 2^21 numbers that are files, in the folder for temporary files.
pub const MAPPED_2M: Workload = Workload {
    suite: SUITE,
    name: MAPPED_2M_NAME,
    also: &[DEPENDENT, INDEPENDENT, MANY],
    run: |effort| alone(MAPPED_2M_NAME, effort, mapped_2m),
};

const MAPPED_2M_NAME: &str = "mapped_2m";
const DEPENDENT: &str = "mapped_get_dependent_2m";
const INDEPENDENT: &str = "mapped_get_independent_2m";
const MANY: &str = "mapped_get_many_2m";

/// A folder that goes when it is dropped, with all that is in it.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        let name = format!("ctree-benches-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Not `create_dir_all`: the folder must be new, and so this process's own.
        fs::create_dir(&folder)?;
        Ok(Scratch(folder))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to whoever cleans up temporary files.
        let _removed = fs::remove_dir_all(&self.0);
    }
}

/// What went wrong with a file.
fn failure(error: impl std::fmt::Display) -> Failure {
    Failure::Worker {
        program: MAPPED_2M_NAME.to_owned(),
        what: error.to_string(),
    }
}

fn mapped_2m(effort: &Effort) -> Result<Vec<Comparison>, Failure> {
    warm_memory(WARM_BYTES);
    let keys = keys::random(KEYS_2M, SEED);
    let scratch = Scratch::new().map_err(failure)?;
    let (our_path, their_path) = (scratch.file("ctree"), scratch.file("bbtree"));
    write(&keys, &our_path, &their_path)?;

    // SAFETY: the file lies in a folder that this process has made for itself, and is not changed
    // from now on.
    let ours = unsafe { MappedCTreeMap::<u64, u64>::open(&our_path) }.map_err(failure)?;
    ours.warm().map_err(failure)?;
    let their_file = File::open(&their_path).map_err(failure)?;
    // SAFETY: as above.
    let their_bytes = unsafe { Mmap::map(&their_file) }.map_err(failure)?;
    // Reads each page once.
    let theirs = FileMap::<u64, u64>::open(&their_bytes).map_err(failure)?;

    let chain = QueryChain::sample(&keys, effort.lookups, SEED);
    let mut rng = Rng::new(SEED);
    let queries: Vec<u64> = (0..effort.lookups)
        .map(|_| keys[rng.below(keys.len())])
        .collect();
    let our_many = || {
        let mut sum = 0;
        ours.get_many_with(&queries, |_, value| sum = add_in_order(sum, value));
        sum
    };
    let their_many = || {
        let mut sum = 0;
        rival::get_many_of_file(&theirs, &queries, |value| {
            sum = add_in_order(sum, value.copied());
        });
        sum
    };
    let mut comparisons = Vec::new();
    comparisons.extend(against_bbtree(MANY, effort, our_many, their_many)?);
    comparisons.extend(against_bbtree(
        DEPENDENT,
        effort,
        || chain.follow(|key| low_half(ours.get(&key).as_ref())),
        || chain.follow(|key| low_half(theirs.get(&key))),
    )?);
    comparisons.extend(against_bbtree(
        INDEPENDENT,
        effort,
        || sum_of(&queries, |key| ours.get(key)),
        || sum_of(&queries, |key| theirs.get(key).copied()),
    )?);
    Ok(comparisons)
}

/// Writes a file of each kind with `keys`.
fn write(keys: &[u64], ours: &Path, theirs: &Path) -> Result<(), Failure> {
    let map: BBTreeMap<u64, u64> = keys
        .iter()
        .enumerate()
        .map(|(place, &key)| (key, value_of(place)))
        .collect();
    MappedCTreeMap::<u64, u64>::write(ours, &map).map_err(failure)?;
    let file = File::create_new(theirs).map_err(failure)?;
    rival::write_file(&map, file).map_err(failure)
}

/// Times one pass of each, if this run is to measure the part.
fn against_bbtree(
    part: &'static str,
    effort: &Effort,
    ours: impl FnMut() -> u64,
    theirs: impl FnMut() -> u64,
) -> Result<Option<Comparison>, Failure> {
    if !measures(effort, MAPPED_2M_NAME, part) {
        return Ok(None);
    }
    let name = format!("{part}_vs_{}", rival::FILE_SLUG);
    duel(part, name, rival::FILE_NAME, effort, ours, theirs).map(Some)
}
