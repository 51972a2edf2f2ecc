//! The heap of this process as a file for pprof, by samples that the program takes itself.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::SystemTime;

use ccmodel::Error;
use inside::unwind;

use crate::capture_format::Module;
use crate::exports::pprof;
use crate::measure::measure;
use crate::profile::{Frame, Profile, Run, Site};
use crate::sampling::{self, Sums};
use crate::symbols::{self, Loaded, Symbols};

/// Has this program sample its heap from now on, for [`heap_profile`]; 0 ends that and forgets all.
///
/// A chunk of fewer than `bytes` bytes is recorded by chance, about one in each `bytes` that a
/// thread asks for, and counts for the others; larger ones are all recorded. Sums are right on
/// average, and live ones that are exact to a tenth are those of a hundred times `bytes`. 512 KiB
/// (`512 << 10`) is what others begin with; less is more exact and slower. Call it once, at the
/// start: a thread that has allocated before goes over to another size at its next record.
///
/// Seen are calls of the [`Profiled`](crate::Profiled) allocator of the program since then: neither
/// allocations of C and C++, nor mappings. A chunk that is resized counts as freed and allocated
/// anew. An allocator that is wrapped twice is sampled twice.
///
/// # Costs
///
/// A chunk that is not recorded costs a subtraction when it is allocated, and a look into a table
/// of 64 KiB when it is freed. One that is takes some microseconds, for its stack of at most 64
/// frames, and is entered under a lock. Who does not get the lock within a second or two gives up,
/// and a comment of the profile says how often; signal handlers pass on unseen. The records take
/// some 100 bytes for each recorded chunk that is alive, and 1 KB for each stack, of which there
/// are at most 65,536: others count as of one without frames. A child of `fork` goes on with what
/// was recorded.
///
/// Under the tool (`ccscope run`) the program samples all the same; each sees what it would see
/// alone, the tool also the records. A [`measure`](crate::measure()) does not count them.
///
/// # Panics
///
/// If the program's allocator is no [`Profiled`](crate::Profiled).
#[track_caller]
pub fn sample_heap(bytes: usize) {
    if bytes != 0 {
        // It says so if there is another allocator.
        measure(|| ());
    }
    assert!(sampling::set((bytes as u64).min(MOST)), "{LOCKED}");
}

/// No chunk is larger.
const MOST: u64 = 1 << 47;

const LOCKED: &str = "the samples of the heap are locked by a thread that does not end";

/// What was sampled since [`sample_heap`], as Go programs serve it at `/debug/pprof/heap`: a
/// `profile.proto`, packed with gzip.
///
/// It has the chunks and bytes of each stack that were allocated since (`alloc_objects`,
/// `alloc_space`) and that are alive (`inuse_objects`, `inuse_space`).
///
/// ```
/// use std::alloc::System;
///
/// #[global_allocator]
/// static ALLOCATOR: ccscope::Profiled<System> = ccscope::Profiled::new(System);
///
/// ccscope::sample_heap(512 << 10);
/// let cache = vec![1_u8; 10 << 20];
/// // In a handler of `/debug/pprof/heap`:
/// let pprof: Vec<u8> = ccscope::heap_profile()?;
/// # assert!(pprof.starts_with(&[0x1f, 0x8b]) && cache.len() == 10 << 20);
/// # Ok::<(), ccscope::Error>(())
/// ```
///
/// Any thread may call it at any time, but not a signal handler. Threads that allocate wait only
/// while the sums are copied. Then functions and lines are looked up in the debug information of
/// the program, which is read each time, and takes memory while it is, which the samples leave out.
/// A program without it has names of functions only; a stripped one, addresses.
///
/// # Errors
///
/// If the heap is not sampled.
pub fn heap_profile() -> Result<Vec<u8>, Error> {
    let sample = sampling::sample();
    if sample == 0 {
        let what = "the heap is not sampled: call `ccscope::sample_heap` first";
        return Err(Error::new(what));
    }
    let (sums, lost) = sampling::sums().ok_or_else(|| Error::new(LOCKED))?;
    let taken = SystemTime::now();
    sampling::unseen(|| {
        let profile = profile(&sums, lost, sample);
        let mut out = Vec::new();
        let written = pprof::write_heap(&profile, "inuse_space", taken, &mut out);
        written.map_err(|error| Error::new(error.to_string()))?;
        Ok(out)
    })
}

fn profile(sums: &[Sums], lost: u64, sample: u64) -> Profile {
    let mut caveats = vec![format!(
        "Sampled: of chunks under {sample} bytes about one in each {sample} bytes is recorded."
    )];
    if lost > 0 {
        caveats.push(format!("Allocations and frees not recorded: {lost}."));
    }
    let mut stacks = Stacks {
        loaded: loaded(),
        symbols: Symbols::default(),
        frames: Vec::new(),
        of_pc: HashMap::new(),
    };
    let site = |sums: &Sums| Site {
        stack: stacks.of(&sums.stack),
        allocations: sums.chunks,
        requested: sums.bytes,
        usable: sums.bytes,
        end_chunks: sums.live_chunks,
        end_usable: sums.live_bytes,
        ..Site::default()
    };
    let sites = sums.iter().map(site).collect();
    Profile {
        run: Run {
            command: std::env::args_os()
                .take(1)
                .map(|it| it.to_string_lossy().into())
                .collect(),
            pid: std::process::id(),
            sample,
            caveats,
            ..Run::default()
        },
        frames: stacks.frames,
        sites,
        ..Profile::default()
    }
}

/// The modules that stacks lead through, in the order in which they were met.
fn loaded() -> Vec<Loaded> {
    thread_local! {
        static FOUND: RefCell<Vec<Loaded>> = const { RefCell::new(Vec::new()) };
    }
    unwind::report_again(|start, end, bias, name| {
        let mut path = [0; 488];
        path.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        let module = Module {
            start,
            end,
            bias,
            path,
        };
        FOUND.with_borrow_mut(|found| found.push(Loaded::new(&module)));
    });
    FOUND.take()
}

/// Call stacks as indices of frames.
struct Stacks {
    loaded: Vec<Loaded>,
    symbols: Symbols,
    frames: Vec<Frame>,
    /// Indices of the frames of a return address, innermost first.
    of_pc: HashMap<u64, Vec<u32>>,
}

impl Stacks {
    /// Without the frames of the allocator.
    fn of(&mut self, stack: &[u64]) -> Vec<u32> {
        let mut indices = Vec::new();
        for &pc in stack {
            let of_pc = self.of_pc.entry(pc).or_insert_with(|| {
                let first = self.frames.len();
                self.frames.extend(self.symbols.frames(pc, &self.loaded));
                let index = |at| u32::try_from(at).unwrap_or(u32::MAX);
                (first..self.frames.len()).map(index).collect()
            });
            indices.extend_from_slice(of_pc);
        }
        let frames = indices.iter().map(|&index| &self.frames[index as usize]);
        let own = symbols::in_allocator(frames);
        indices.split_off(own)
    }
}
