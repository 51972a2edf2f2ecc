//! Random calls and accesses, beside sets of bytes for each open region.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::MutexGuard;

use super::super::start;
use super::super::tests::TURN;
use super::spans::{ccscope_span_close, ccscope_span_enter, ccscope_span_exit, ccscope_span_new};
use super::*;
use crate::capture_format::{Region, region as kinds};

const HEAP: u64 = 0x7100_0000_0000;

fn begin(which: u64) -> MutexGuard<'static, ()> {
    let turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    start::for_test_of_regions(which);
    turn
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// An open region as the tests know it.
#[derive(Default)]
struct Known {
    path: Vec<u64>,
    bytes: BTreeSet<u64>,
    reads: u64,
    reused: u64,
    fresh: u64,
}

/// Sums over the invocations of a path.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    invocations: u64,
    recursive: u64,
    reads: u64,
    reused: u64,
    fresh: u64,
    /// Bytes, blocks and pages.
    total: [u64; 3],
    max: [u64; 3],
}

/// The program, and what it should give.
#[derive(Default)]
struct Program {
    open: Vec<Known>,
    /// For each open call, whether it opened a region, and the path of the calls below it.
    calls: Vec<(bool, Vec<u64>)>,
    touched: BTreeSet<u64>,
    sums: BTreeMap<Vec<u64>, Sums>,
}

impl Program {
    fn new() -> Program {
        let mut program = Program::default();
        program.open.push(Known::default());
        program
    }

    fn path(&self) -> Vec<u64> {
        self.calls.last().map_or(Vec::new(), |call| call.1.clone())
    }

    fn call(&mut self, function: u64) {
        let depth = self.calls.len() as u64;
        ccscope_function_begins(function, stack(depth));
        let mut path = self.path();
        match path.iter().position(|&outer| outer == function) {
            Some(at) => path.truncate(at + 1),
            None => path.push(function),
        }
        let opens = self.open.iter().all(|open| open.path != path);
        if opens {
            self.open.push(Known {
                path: path.clone(),
                ..Known::default()
            });
        } else {
            self.sums.entry(path.clone()).or_default().recursive += 1;
        }
        self.calls.push((opens, path));
    }

    fn end(&mut self) {
        if let Some((opened, _)) = self.calls.pop() {
            ccscope_function_ends(stack(self.calls.len() as u64));
            if opened {
                self.close();
            }
        }
    }

    fn close(&mut self) {
        let open = self.open.pop().unwrap();
        let units = |unit| {
            let units: BTreeSet<u64> = open.bytes.iter().map(|byte| byte / unit).collect();
            units.len() as u64
        };
        let sums = self.sums.entry(open.path.clone()).or_default();
        sums.invocations += 1;
        sums.reads += open.reads;
        sums.reused += open.reused;
        sums.fresh += open.fresh;
        for (index, count) in [units(1), units(64), units(4096)].into_iter().enumerate() {
            sums.total[index] += count;
            sums.max[index] = sums.max[index].max(count);
        }
        if let Some(caller) = self.open.last_mut() {
            caller.reads += open.reads;
            caller.fresh += open.fresh;
        }
    }

    fn access(&mut self, address: u64, size: u64) {
        if size <= 64 {
            fast_path::access::<false>(address, size);
        } else {
            ccscope_region_load(address, size);
        }
        for byte in address..address + size {
            let mut known = false;
            for open in &mut self.open {
                let is_new = open.bytes.insert(byte);
                open.reused += u64::from(is_new && known);
                known = !is_new;
            }
            let last = self.open.last_mut().unwrap();
            last.fresh += u64::from(self.touched.insert(byte));
        }
        self.open.last_mut().unwrap().reads += 1;
    }

    /// Ends everything and compares.
    fn check(mut self) {
        while !self.calls.is_empty() {
            self.end();
        }
        self.close();
        // SAFETY: the block is this thread's.
        unsafe { end_thread(local()) };
        let found = regions();
        assert_eq!(found, self.sums);
    }
}

/// The stack pointer of a call so deep: below this function's.
fn stack(depth: u64) -> u64 {
    let (start, len) = stack_ranges::own();
    start + len / 2 - depth * 64
}

/// What the capture holds, by path.
fn regions() -> BTreeMap<Vec<u64>, Sums> {
    let mut found = BTreeMap::new();
    // SAFETY: the capture is mapped, and so many regions are made.
    let count = unsafe { (*header()).regions } as u32;
    for number in 1..=count {
        let (mut path, mut at) = (Vec::new(), number);
        // SAFETY: the capture is mapped, and so many regions are made.
        let raw: Region = unsafe { *tree::region(number) };
        while at != 0 {
            // SAFETY: the parent of a region is a region that was made before it.
            let raw: Region = unsafe { *tree::region(at) };
            if raw.kind != kinds::THREAD {
                path.insert(0, raw.key);
            }
            at = raw.parent;
        }
        if raw.level > 1 {
            path.push(raw.level.into());
        }
        assert_eq!(
            raw.growth.iter().sum::<u64>(),
            raw.touched[0].total,
            "{path:?}"
        );
        assert_eq!(raw.footprints.iter().sum::<u32>(), raw.invocations as u32);
        let sums = Sums {
            invocations: raw.invocations,
            recursive: raw.recursive,
            reads: raw.reads,
            reused: raw.reused,
            fresh: raw.fresh,
            total: raw.touched.map(|sum| sum.total),
            max: raw.touched.map(|sum| sum.max),
        };
        found.insert(path, sums);
    }
    found
}

fn run(seed: u64, steps: u64, functions: u64) -> Program {
    let (mut program, mut random) = (Program::new(), Random(seed));
    for _ in 0..steps {
        match random.below(8) {
            0 | 1 if program.calls.len() < 30 => program.call(0x1000 + random.below(functions)),
            2 => program.end(),
            _ => {
                let size = [1, 2, 4, 8, 16, 3, 32, 100, 5000][random.below(9) as usize];
                let far = random.below(3) * 0x10_0000;
                program.access(HEAP + far + random.below(6000), size);
            }
        }
    }
    program
}

#[test]
fn footprints_are_those_of_sets() {
    for seed in 1..12 {
        let _turn = begin(1);
        run(seed, 1500, 1 + seed % 7).check();
    }
}

#[test]
fn versions_may_run_out() {
    for seed in 1..4 {
        let _turn = begin(1);
        let (mut program, mut random) = (Program::new(), Random(seed));
        for step in 0..1500 {
            if step % 100 == 50 {
                // SAFETY: the state is this thread's, and has begun.
                unsafe {
                    let state = (*local()).track;
                    if !state.is_null() {
                        (*state).version = u32::MAX - 1;
                    }
                }
            }
            match random.below(6) {
                0 | 1 => program.call(0x1000 + random.below(9)),
                2 => program.end(),
                _ => program.access(HEAP + random.below(300), 8),
            }
        }
        program.check();
    }
}

/// Figure 1 of D. Jeon et al., *Skadu* (2013): `main` calls `foo` and `bar`, which calls `foo`.
#[test]
fn the_first_figure_of_the_paper() {
    let _turn = begin(1);
    let (main, foo, bar) = (1, 2, 3);
    let mut program = Program::new();
    program.call(main);
    program.call(foo);
    program.access(HEAP, 8);
    program.end();
    program.call(bar);
    for _ in 0..10 {
        program.access(HEAP + 64, 4);
    }
    program.call(foo);
    program.access(HEAP, 8);
    program.end();
    program.end();
    program.end();
    program.check();
    let found = regions();
    let bytes = |path: &[u64]| (found[path].total[0], found[path].reused, found[path].fresh);
    assert_eq!(bytes(&[main]), (12, 0, 12));
    assert_eq!(bytes(&[main, foo]), (8, 0, 8));
    // `bar` finds what `main` has touched, and its `foo` what is new to `bar`.
    assert_eq!(bytes(&[main, bar]), (12, 8, 4));
    assert_eq!(bytes(&[main, bar, foo]), (8, 0, 0));
}

/// Figure 4 of Jeon et al.: an address is touched in region 4, and then in region 7 below regions
/// 1, 5 and 6: of the regions that are open then, only the first has touched it.
#[test]
fn the_fourth_figure_of_the_paper() {
    let _turn = begin(1);
    let mut program = Program::new();
    for function in [1, 2, 3, 4] {
        program.call(function);
    }
    program.access(HEAP, 8);
    for _ in 0..3 {
        program.end();
    }
    for function in [5, 6, 7] {
        program.call(function);
    }
    program.access(HEAP, 8);
    // SAFETY: the state is this thread's.
    let touched: Vec<i64> = unsafe {
        let opens = opens((*local()).track);
        (0..opens.len())
            .map(|at| opens[at..].iter().map(|open| open.touched[0]).sum())
            .collect()
    };
    assert_eq!(touched, [8, 8, 8, 8, 8]);
    program.check();
    let found = regions();
    let reused = |path: &[u64]| found[path].reused;
    assert_eq!(
        (reused(&[1, 5]), reused(&[1, 5, 6]), reused(&[1, 5, 6, 7])),
        (8, 0, 0)
    );
}

#[test]
fn levels_of_a_recursion_are_told_apart() {
    let _turn = begin(2);
    for depth in 0..70 {
        ccscope_function_begins(0x1000, stack(depth));
        fast_path::access::<true>(HEAP + depth * 8, 8);
    }
    for depth in (0..70).rev() {
        ccscope_function_ends(stack(depth));
    }
    // SAFETY: the block is this thread's.
    unsafe { end_thread(local()) };
    let found = regions();
    assert_eq!(found[&vec![0x1000]].total[0], 560);
    assert_eq!(found[&vec![0x1000, 0x1000, 2]].total[0], 552);
    assert_eq!(found[&vec![0x1000, 0x1000, 64]].total[0], 56);
    assert_eq!(found[&vec![0x1000]].recursive, 6, "beyond level 64");
}

#[test]
fn frames_that_are_gone_are_ended() {
    let _turn = begin(1);
    ccscope_function_begins(0x1000, stack(1));
    ccscope_function_begins(0x2000, stack(2));
    ccscope_function_begins(0x3000, stack(3));
    fast_path::access::<false>(HEAP, 8);
    // Both are left by `longjmp`, and the first calls another.
    ccscope_function_begins(0x4000, stack(2));
    fast_path::access::<false>(HEAP + 8, 8);
    ccscope_function_ends(stack(2));
    ccscope_function_ends(stack(1));
    // Nobody has begun these.
    ccscope_function_ends(stack(1));
    ccscope_region_exit();
    // SAFETY: the block is this thread's.
    unsafe { end_thread(local()) };
    let found = regions();
    assert_eq!(found[&vec![0x1000]].total[0], 16);
    assert_eq!(found[&vec![0x1000, 0x2000, 0x3000]].total[0], 8);
    assert_eq!(found[&vec![0x1000, 0x4000]].total[0], 8);
}

#[test]
fn names_are_known_by_what_they_say() {
    let _turn = begin(1);
    let mut place = *b"library";
    let names: [&[u8]; 5] = [b"library", b"another", b"an", b"library", b"another"];
    for name in names {
        // As where another library is loaded to the place of one that was unloaded.
        place[..name.len()].copy_from_slice(name);
        // SAFETY: the name has this length.
        unsafe {
            ccscope_region_enter(place.as_ptr(), name.len());
            ccscope_region_store(HEAP, 8);
            ccscope_region_exit();
        }
    }
    // SAFETY: nobody uses the local meanwhile, and the capture is mapped.
    let count = unsafe {
        end_thread(local());
        (*header()).regions as u32
    };
    let mut invocations: Vec<u64> = (1..=count)
        // SAFETY: numbers up to the count are of regions.
        .map(|number| unsafe { *tree::region(number) })
        .filter(|it| it.kind == kinds::SPAN)
        .map(|it| it.invocations)
        .collect();
    invocations.sort_unstable();
    assert_eq!(invocations, [1, 2, 2]);
}

#[test]
fn a_span_is_one_region_however_often_it_is_entered() {
    let _turn = begin(1);
    let name = b"request";
    // SAFETY: the name is a static, and spans are used before they are closed.
    unsafe {
        let [first, second] = [0; 2].map(|_| ccscope_span_new(name.as_ptr(), name.len()));
        assert!(first != 0 && second != 0);
        for visit in 0..10 {
            ccscope_span_enter(first);
            // 100 bytes that each visit touches, and 8 that are new.
            ccscope_region_store(HEAP, 100);
            ccscope_region_store(HEAP + 8192 + visit * 8, 8);
            ccscope_span_exit(first);
            ccscope_span_enter(second);
            ccscope_region_load(HEAP + 64, 8);
            ccscope_span_exit(second);
        }
        ccscope_span_close(first);
        ccscope_span_close(second);
        end_thread(local());
    }
    // SAFETY: the capture is mapped.
    let count = unsafe { (*header()).regions } as u32;
    // SAFETY: the capture is mapped, and so many regions are made.
    let spans: Vec<Region> = (1..=count)
        .map(|number| unsafe { *tree::region(number) })
        .collect();
    let spans: Vec<&Region> = spans.iter().filter(|it| it.kind == kinds::SPAN).collect();
    let [span] = spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!((span.invocations, span.recursive), (2, 0));
    assert_eq!(span.touched.map(|sum| sum.total), [180 + 8, 2 + 2 + 1, 3]);
    assert_eq!(span.touched.map(|sum| sum.max), [180, 4, 2]);
    assert_eq!((span.reads, span.writes), (10, 20));
}

#[test]
fn threads_at_the_last_regions_get_different_ones() {
    let _turn = begin(1);
    // SAFETY: the capture is mapped, and the tests that use it run one at a time.
    unsafe { (*header()).regions = layout::MAX_REGIONS - 50 };
    let make = || (0..100).map(|_| tree::root()).filter(|&it| it != 0);
    let mut all: Vec<u32> = std::thread::scope(|scope| {
        let threads = [0; 4].map(|_| scope.spawn(move || make().collect::<Vec<_>>()));
        threads
            .into_iter()
            .flat_map(|it| it.join().unwrap())
            .collect()
    });
    all.sort_unstable();
    let last = u32::try_from(layout::MAX_REGIONS).unwrap();
    assert_eq!(all, (last - 49..last).collect::<Vec<_>>());
}

/// One thread ends visits and grows, another closes spans of the same region.
#[test]
fn sums_of_a_region_that_two_threads_add_to_are_exact() {
    const ROUNDS: u64 = 100_000;
    let _turn = begin(1);
    recording::SEVERAL_THREADS.store(true, Ordering::Relaxed);
    let number = tree::root();
    // SAFETY: the region was made just now, and others add to it by functions for that.
    let sums = unsafe {
        (*tree::region(number)).kind = kinds::SPAN;
        let threads = [(); 2].map(|()| {
            std::thread::spawn(move || {
                let counts = crate::capture_format::Track {
                    reads: 1,
                    ..std::mem::zeroed()
                };
                for round in 0..ROUNDS {
                    tree::add_span(number, [3, 2, 1], &counts, 1, round << 8);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        recording::SEVERAL_THREADS.store(false, Ordering::Relaxed);
        &*tree::region(number)
    };
    let touched = sums.touched.map(|it| (it.total, it.max));
    assert_eq!(touched, [(6 * ROUNDS, 3), (4 * ROUNDS, 2), (2 * ROUNDS, 1)]);
    assert_eq!([sums.invocations, sums.reads, sums.reused], [2 * ROUNDS; 3]);
    assert_eq!(sums.footprints[2], 200_000);
    assert_eq!(sums.growth.iter().sum::<u64>(), 6 * ROUNDS);
}
