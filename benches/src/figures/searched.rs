//! Searches that wait for each other, from cold caches on, timed on this machine.
//!
//! The word that a search reads decides which key is next. All structures hold the same keys and
//! answer with the key itself, so all make the same searches. On `x86_64` an instruction flushes
//! the lines of a structure from all caches; elsewhere a sweep over much memory replaces them.

use std::hint::black_box;
use std::io;

use ccmodel::{PageSize, PagedMemory};

use super::btree::{InCoreBTree, Word};
use crate::rng::{Rng, scale};
use crate::search_tree::{Node, Tree};
use crate::timing::turns;

const LINE_BYTES: usize = 64;
const PAGE_BYTES: usize = 4096;
/// Far more pages than second-level TLBs have entries.
const SWEPT_PAGES: usize = 16_384;
/// More runs are timed up to this number of searches than beyond it.
const FEW: u64 = 1000;

/// The next of a sequence of searches for numbers below `keys`, and with it all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    state: u64,
    keys: usize,
}

impl Chain {
    pub fn new(keys: usize, seed: u64) -> Chain {
        let state = Rng::new(seed).next_u64();
        Chain { state, keys }
    }

    /// The key to search for; each has the same probability.
    #[inline]
    pub fn key(self) -> usize {
        scale(self.state, self.keys)
    }

    /// The next search, after an answer.
    #[inline]
    #[must_use]
    pub fn after(self, answer: u64) -> Chain {
        Chain::new(self.keys, self.state.wrapping_add(answer))
    }

    /// The keys of the searches if each finds its key.
    pub fn known_keys(self) -> impl Iterator<Item = usize> {
        let next = |chain: &Chain| Some(chain.after(chain.key() as u64));
        std::iter::successors(Some(self), next).map(Chain::key)
    }

    /// The chain after `searches` searches, answered by `answer`.
    #[inline]
    pub fn follow(mut self, searches: u64, answer: impl Fn(usize) -> u64) -> Chain {
        for _ in 0..searches {
            self = self.after(answer(self.key()));
        }
        self
    }
}

/// A structure of the keys below some number.
///
/// Invariant: each of `lines` points to the first byte of a cache line that overlaps memory which
/// `follow` owns.
#[expect(missing_debug_implementations, reason = "it has a closure")]
pub struct Searched {
    pub(super) structure: &'static str,
    pub(super) node_bytes: usize,
    follow: Box<dyn Fn(Chain, u64) -> Chain>,
    lines: Vec<*const u8>,
}

/// The first byte of the line of `address`.
fn line(address: *const u8) -> *const u8 {
    address.map_addr(|address| address & !(LINE_BYTES - 1))
}

impl Searched {
    pub fn binary(structure: &'static str, tree: Tree<u64>) -> Searched {
        let node_bytes = size_of::<Node<u64>>();
        let ends = |node: *const Node<u64>| {
            let first = node.cast::<u8>();
            [line(first), line(first.wrapping_add(node_bytes - 1))]
        };
        let mut lines: Vec<_> = tree.nodes().flat_map(|node| ends(node)).collect();
        lines.sort_unstable();
        lines.dedup();
        // The black box keeps the compiler from answering with the query.
        let answer = move |key: usize| tree.get(key as u64).map_or(u64::MAX, |key| *black_box(key));
        Searched {
            structure,
            node_bytes,
            follow: Box::new(move |chain, searches| chain.follow(searches, &answer)),
            lines,
        }
    }

    pub fn b_tree<W: Word + Into<u64>>(structure: &'static str, tree: InCoreBTree<W>) -> Searched {
        let words = tree.words().iter().step_by(LINE_BYTES / size_of::<W>());
        let lines = words.map(|word| line(std::ptr::from_ref(word).cast()));
        let lines = lines.collect();
        let node_bytes = tree.node_bytes;
        let answer = move |key: usize| {
            let key = tree.get(W::try_from(key).expect("keys fit words"));
            key.map_or(u64::MAX, |key| (*black_box(key)).into())
        };
        Searched {
            structure,
            node_bytes,
            follow: Box::new(move |chain, searches| chain.follow(searches, &answer)),
            lines,
        }
    }

    pub fn follow(&self, chain: Chain, searches: u64) -> Chain {
        (self.follow)(chain, searches)
    }

    /// Flushes the structure from all caches, if the machine can.
    fn flush(&self) {
        #[cfg(target_arch = "x86_64")]
        for &line in &self.lines {
            // SAFETY: the instruction changes nothing that a program sees, and faults only where
            // nothing is mapped. By the invariant the line overlaps memory that `follow` owns, and
            // lines do not cross pages, so it is mapped.
            unsafe { core::arch::x86_64::_mm_clflush(line) };
        }
    }
}

/// Replaces all entries of the TLBs and, where nothing can be flushed, the content of the caches.
fn sweep(memory: &PagedMemory) {
    let step = match cfg!(target_arch = "x86_64") {
        // Of each page another line than of the page before: the same one would map to few sets.
        true => PAGE_BYTES + LINE_BYTES,
        false => LINE_BYTES,
    };
    let words = memory.as_slice().iter().step_by(step / size_of::<u64>());
    assert_eq!(black_box(words.sum::<u64>()), 0, "the memory is zeroed");
}

/// Nanoseconds that this thread has run. Wall time would include other programs.
fn thread_ns() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills the structure that it is given, which is alive.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the system tells each thread its time");
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Times the first searches of chains in `subjects`, in turns and each from cold caches on: `runs`
/// runs of all searches, and `runs_of_few` of up to [`FEW`]. Returns for each subject and each of
/// `checkpoints` the nanoseconds of a search up to there, in all runs.
pub(super) fn measure(
    subjects: &[Searched],
    (keys, seed): (usize, u64),
    checkpoints: &[u64],
    (runs, runs_of_few): (usize, usize),
) -> io::Result<Vec<Vec<Vec<f64>>>> {
    // Without an instruction that flushes, all lines of 256 MiB, more than an L3 has.
    let pages = SWEPT_PAGES * if cfg!(target_arch = "x86_64") { 1 } else { 4 };
    let memory = PagedMemory::new(pages * PAGE_BYTES / size_of::<u64>(), PageSize::Small4K)?;
    let all_runs = match checkpoints.first() {
        Some(..=FEW) => runs.max(runs_of_few),
        _ => runs,
    };
    let mut times = vec![vec![Vec::new(); checkpoints.len()]; subjects.len()];
    let mut ends = vec![None; all_runs];
    for (turn, which) in turns(all_runs, subjects.len()).enumerate() {
        let run = turn / subjects.len();
        let most = if run < runs { u64::MAX } else { FEW };
        subjects[which].flush();
        sweep(&memory);
        let (mut chain, mut done, mut ns) = (Chain::new(keys, seed + run as u64), 0, 0.0);
        let wanted = checkpoints
            .iter()
            .take_while(|&&checkpoint| checkpoint <= most);
        for (&checkpoint, times) in wanted.zip(&mut times[which]) {
            let start = thread_ns();
            chain = subjects[which].follow(chain, checkpoint - done);
            ns += thread_ns() - start;
            done = checkpoint;
            times.push(ns / checkpoint as f64);
        }
        assert_eq!(*ends[run].get_or_insert(chain), chain, "all answer alike");
    }
    Ok(times)
}
