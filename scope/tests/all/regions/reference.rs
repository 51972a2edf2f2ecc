//! Footprints by sets: one of bytes, one of blocks and one of pages for each open region. Slow, and
//! right by inspection. It reads the log of events that the runtime writes (`CCSCOPE_EVENTS`).

use std::collections::{BTreeMap, HashMap, HashSet};

/// Callers first: kinds and keys of the regions of a path; a thread's is empty.
pub(crate) type Path = Vec<(u8, u64)>;

/// Sums over the invocations of a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sums {
    pub(crate) invocations: u64,
    pub(crate) recursive: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) allocations: u64,
    pub(crate) allocated: u64,
    /// Bytes, blocks of 64 bytes, and pages.
    pub(crate) total: [u64; 3],
    pub(crate) max: [u64; 3],
    pub(crate) reused: u64,
    pub(crate) fresh: u64,
    /// Invocations by the number of bits of their bytes.
    pub(crate) footprints: BTreeMap<usize, u64>,
}

/// What was touched and counted.
#[derive(Clone, Default)]
struct Touched {
    sets: [HashSet<u64>; 3],
    /// Reads, writes, allocations, allocated, reused and fresh bytes.
    counts: [u64; 6],
}

const FUNCTION: u8 = 1;
const NAMED: u8 = 2;
const SPAN: u8 = 3;

struct Open {
    path: Path,
    touched: Touched,
    span: Option<u64>,
}

struct Call {
    kind: u8,
    stack: u64,
    key: u64,
    opened: bool,
    before: Path,
    span: u64,
}

#[derive(Default)]
struct Thread {
    opens: Vec<Open>,
    calls: Vec<Call>,
    path: Path,
    /// Bytes that the thread has touched.
    all: HashSet<u64>,
}

#[derive(Default)]
struct Span {
    name: u64,
    path: Option<Path>,
    touched: Touched,
}

#[derive(Default)]
struct Program {
    threads: HashMap<u16, Thread>,
    spans: HashMap<u64, Span>,
    sums: BTreeMap<Path, Sums>,
}

/// The regions of a log, by path.
pub(crate) fn regions(log: &[u8]) -> BTreeMap<Path, Sums> {
    let mut program = Program::default();
    let mut rest = log;
    while let Some((record, after)) = rest.split_first_chunk::<32>() {
        rest = after;
        let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
        let thread = u16::from_le_bytes([record[2], record[3]]);
        let (first, second) = (word(8), word(16));
        if record[0] == 12 {
            let len = usize::try_from(second).unwrap().next_multiple_of(32);
            rest = &rest[len.min(rest.len())..];
            continue;
        }
        program.event(record[0], thread, first, second);
    }
    let threads: Vec<u16> = program.threads.keys().copied().collect();
    for thread in threads {
        while !program.thread(thread).opens.is_empty() {
            let last = program.thread(thread).opens.len() - 1;
            program.close(thread, last);
        }
    }
    program.sums
}

impl Program {
    fn thread(&mut self, number: u16) -> &mut Thread {
        self.threads.entry(number).or_insert_with(|| {
            let mut thread = Thread::default();
            thread.opens.push(Open {
                path: Path::new(),
                touched: Touched::default(),
                span: None,
            });
            thread
        })
    }

    fn event(&mut self, kind: u8, thread: u16, first: u64, second: u64) {
        match kind {
            1 | 2 => self.access(thread, first, second, usize::from(kind - 1)),
            3 => self.call(thread, FUNCTION, first, second, 0),
            4 => self.end(thread, FUNCTION, second),
            5 => self.call(thread, NAMED, first, second, 0),
            6 => self.end(thread, NAMED, second),
            7 => {
                let counts = &mut self.thread(thread).opens.last_mut().unwrap().touched.counts;
                counts[2] += 1;
                counts[3] += second;
            }
            8 => {
                let span = Span {
                    name: second,
                    ..Span::default()
                };
                self.spans.insert(first, span);
            }
            9 => {
                let name = self.spans[&first].name;
                self.call(thread, SPAN, name, second, first);
            }
            10 => {
                let calls = &self.thread(thread).calls;
                let is_it = |call: &Call| call.kind == SPAN && call.span == first;
                if let Some(at) = calls.iter().rposition(is_it) {
                    self.remove(thread, at);
                }
            }
            11 => {
                let span = self.spans.remove(&first).unwrap();
                if let Some(path) = span.path {
                    add(self.sums.entry(path).or_default(), &span.touched);
                }
            }
            other => panic!("an event of kind {other}"),
        }
    }

    fn access(&mut self, thread: u16, address: u64, size: u64, write: usize) {
        self.thread(thread);
        let thread = self.threads.get_mut(&thread).unwrap();
        thread.opens.last_mut().unwrap().touched.counts[write] += 1;
        for byte in address..address + size {
            let mut caller_has_it = false;
            for open in &mut thread.opens {
                let is_new = open.touched.sets[0].insert(byte);
                open.touched.sets[1].insert(byte / 64);
                open.touched.sets[2].insert(byte / 4096);
                let mut is_reused = is_new && caller_has_it;
                if let Some(span) = open.span.filter(|_| is_new) {
                    let span = &mut self.spans.get_mut(&span).unwrap().touched;
                    is_reused &= span.sets[0].insert(byte);
                    span.sets[1].insert(byte / 64);
                    span.sets[2].insert(byte / 4096);
                }
                open.touched.counts[4] += u64::from(is_reused);
                caller_has_it = !is_new;
            }
            let is_fresh = thread.all.insert(byte);
            thread.opens.last_mut().unwrap().touched.counts[5] += u64::from(is_fresh);
        }
    }

    fn call(&mut self, number: u16, kind: u8, key: u64, stack: u64, span: u64) {
        // A function below the stack pointer was left by `longjmp`.
        while let Some(call) = self.thread(number).calls.last() {
            let is_alive = call.stack > stack || call.stack == stack && kind != FUNCTION;
            if is_alive || call.kind != FUNCTION {
                break;
            }
            let last = self.thread(number).calls.len() - 1;
            self.remove(number, last);
        }
        let thread = self.thread(number);
        let before = thread.path.clone();
        let path = step(&before, kind, key);
        thread.path.clone_from(&path);
        let opened = thread.opens.iter().all(|open| open.path != path);
        if opened {
            thread.opens.push(Open {
                path: path.clone(),
                touched: Touched::default(),
                span: (kind == SPAN).then_some(span),
            });
        }
        thread.calls.push(Call {
            kind,
            stack,
            key,
            opened,
            before,
            span,
        });
        if !opened {
            self.sums.entry(path).or_default().recursive += 1;
        } else if kind == SPAN {
            self.spans.get_mut(&span).unwrap().path.get_or_insert(path);
        }
    }

    fn end(&mut self, number: u16, kind: u8, stack: u64) {
        for at in (0..self.thread(number).calls.len()).rev() {
            let call = &self.thread(number).calls[at];
            if call.kind == kind {
                let is_dead = kind == FUNCTION && call.stack < stack;
                self.remove(number, at);
                if !is_dead {
                    return;
                }
            }
        }
    }

    /// Ends a call; those within go on, called from its caller.
    fn remove(&mut self, number: u16, at: usize) {
        let thread = self.thread(number);
        let call = thread.calls.remove(at);
        let place = 1 + thread.calls[..at].iter().filter(|call| call.opened).count();
        if call.opened {
            self.close(number, place);
        }
        let thread = self.threads.get_mut(&number).unwrap();
        let (mut path, mut place) = (call.before, place);
        for call in &mut thread.calls[at..] {
            call.before.clone_from(&path);
            path = step(&path, call.kind, call.key);
            if call.opened {
                let before = std::mem::replace(&mut thread.opens[place].path, path.clone());
                place += 1;
                let span = self.spans.get_mut(&call.span).filter(|_| call.kind == SPAN);
                if let Some(span) = span.filter(|span| span.path.as_ref() == Some(&before)) {
                    span.path = Some(path.clone());
                }
            }
        }
        thread.path = path;
    }

    fn close(&mut self, number: u16, place: usize) {
        let thread = self.thread(number);
        let mut open = thread.opens.remove(place);
        if let Some(caller) = place.checked_sub(1).map(|at| &mut thread.opens[at]) {
            // All but what was reused.
            for index in [0, 1, 2, 3, 5] {
                caller.touched.counts[index] += open.touched.counts[index];
            }
        }
        for within in &thread.opens[place..] {
            for index in [0, 1, 2, 3, 5] {
                open.touched.counts[index] += within.touched.counts[index];
            }
        }
        match open.span {
            None => add(self.sums.entry(open.path).or_default(), &open.touched),
            Some(span) => {
                let sums = &mut self.spans.get_mut(&span).unwrap().touched.counts;
                for (sum, count) in sums.iter_mut().zip(open.touched.counts) {
                    *sum += count;
                }
            }
        }
    }
}

/// Where a call leads. What is on the path already is not entered again.
fn step(from: &Path, kind: u8, key: u64) -> Path {
    // Both others are spans to the profile.
    let step = (kind.min(NAMED), key);
    let mut path = from.clone();
    match path.iter().position(|outer| *outer == step) {
        Some(at) => path.truncate(at + 1),
        None => path.push(step),
    }
    path
}

fn add(sums: &mut Sums, touched: &Touched) {
    sums.invocations += 1;
    let [reads, writes, allocations, allocated, reused, fresh] = touched.counts;
    sums.reads += reads;
    sums.writes += writes;
    sums.allocations += allocations;
    sums.allocated += allocated;
    sums.reused += reused;
    sums.fresh += fresh;
    for (index, set) in touched.sets.iter().enumerate() {
        let count = set.len() as u64;
        sums.total[index] += count;
        sums.max[index] = sums.max[index].max(count);
    }
    let bits = (u64::BITS - (touched.sets[0].len() as u64).leading_zeros()) as usize;
    *sums.footprints.entry(bits.min(47)).or_default() += 1;
}
