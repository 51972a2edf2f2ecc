//! A lane: one thread after another, each of which lives for some thousands of operations.

use std::alloc::Layout;
use std::iter::repeat_with;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use ccmalloc::{Policy, Region, cc_alloc, cc_alloc_with, check, near, near_with};
use fastrand::Rng;

use crate::Arguments;
use crate::counts::Counts;
use crate::shadow::{Claims, Object};

/// Operations of a lane between two checks of its heap's metadata.
pub(crate) const CHECK_EVERY: u64 = 50_000;
/// A thread lives for this many operations at least, and for at most 2^`LIFE_DOUBLINGS` times as
/// many.
const LIFE_MIN: u64 = 5_000;
const LIFE_DOUBLINGS: usize = 8;
/// Live objects of a thread; how many it aims for changes every [`GOAL_EVERY`] steps.
const LIVE_MAX: usize = 50_000;
const GOAL_EVERY: usize = 10_000;
/// Objects left for another lane that it has not come to free yet.
const MAIL_MAX: usize = 20_000;
/// How many steps a thread lets its mail wait, and how many objects it sends at a time.
const MAIL_EVERY: usize = 64;
/// Addresses of other threads' objects, for hints.
const POSTERS: usize = 1024;
/// Addresses freed lately, for hints.
const STALE: usize = 256;
/// Numbers that threads may have.
const MAKERS: usize = 1 << 16;

static FOREIGN: [u64; 8] = [0; 8];

/// What all lanes share.
pub(crate) struct Yard {
    pub(crate) claims: Claims,
    seed: u64,
    /// Operations a lane.
    share: u64,
    mail: Vec<Mutex<Vec<Object>>>,
    /// Objects of threads that have ended.
    estate: Mutex<Vec<Object>>,
    /// Addresses that threads have published; they may be freed by now.
    posters: Vec<AtomicUsize>,
    ended: Vec<AtomicBool>,
    /// Threads that the lanes have started.
    pub(crate) threads: AtomicUsize,
    /// Operations of all lanes so far; some thousands behind.
    pub(crate) done: AtomicU64,
}

impl Yard {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        Self {
            claims: Claims::new(),
            seed: arguments.seed,
            share: arguments.operations.div_ceil(arguments.threads.into()),
            mail: (0..arguments.threads).map(|_| Mutex::default()).collect(),
            estate: Mutex::default(),
            posters: repeat_with(AtomicUsize::default).take(POSTERS).collect(),
            ended: repeat_with(AtomicBool::default).take(MAKERS).collect(),
            threads: AtomicUsize::new(0),
            done: AtomicU64::new(0),
        }
    }

    /// Frees what is left when all lanes are done.
    pub(crate) fn finish(&self) -> Counts {
        let mut counts = Counts::default();
        for objects in self.mail.iter().chain([&self.estate]) {
            for object in std::mem::take(&mut *lock(objects)) {
                object.free(&self.claims);
                counts.freed_late += 1;
            }
        }
        check().expect("the heap of the last thread is consistent");
        counts
    }
}

/// Locks, also when another thread has panicked: the process ends then anyway.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Runs lane `number` to the end of its share.
pub(crate) fn run(yard: &Yard, number: usize) -> Counts {
    let mut total = Counts::default();
    let mut generation = 0;
    while total.operations() < yard.share {
        let stream = (generation * yard.mail.len() + number) as u64;
        let mut choices = Rng::with_seed(Rng::with_seed(yard.seed).u64(..) ^ stream);
        generation += 1;
        let length = LIFE_MIN << choices.usize(..=LIFE_DOUBLINGS);
        let length = length.min(yard.share - total.operations());
        let life = std::thread::scope(|scope| {
            let life = scope.spawn(|| Life::new(yard, number, choices).run(length));
            life.join().expect("a panic ends the process")
        });
        total = total.plus(life);
    }
    total
}

/// The counter of a kind of hint.
type Counter = fn(&mut Counts) -> &mut u64;

/// One thread.
struct Life<'a> {
    yard: &'a Yard,
    lane: usize,
    /// Its own number, modulo [`MAKERS`].
    maker: usize,
    choices: Rng,
    counts: Counts,
    live: Vec<Object>,
    stale: [usize; STALE],
    outbox: Vec<Object>,
    region: Option<(Region, usize)>,
    numbers: u64,
}

impl<'a> Life<'a> {
    fn new(yard: &'a Yard, lane: usize, choices: Rng) -> Self {
        let maker = yard.threads.fetch_add(1, Ordering::Relaxed) % MAKERS;
        yard.ended[maker].store(false, Ordering::Relaxed);
        Self {
            yard,
            lane,
            maker,
            choices,
            counts: Counts {
                threads: 1,
                ..Counts::default()
            },
            live: std::mem::take(&mut *lock(&yard.estate)),
            stale: [0; STALE],
            outbox: Vec::with_capacity(MAIL_EVERY),
            region: None,
            numbers: (maker as u64) << 40,
        }
    }

    fn run(mut self, length: u64) -> Counts {
        let mut goal = 0;
        let mut next_check = CHECK_EVERY;
        let mut told = 0;
        let mut step = 0usize;
        while self.counts.operations() < length {
            if step.is_multiple_of(GOAL_EVERY) {
                goal = self.choices.usize(..LIVE_MAX) >> self.choices.usize(..6);
                self.yard
                    .done
                    .fetch_add(self.counts.operations() - told, Ordering::Relaxed);
                told = self.counts.operations();
            }
            if step.is_multiple_of(MAIL_EVERY) {
                self.send_and_receive();
            }
            if self.counts.operations() >= next_check {
                next_check += CHECK_EVERY;
                self.check();
            }
            step += 1;
            let grow = if self.live.len() < goal { 620 } else { 300 };
            match self.choices.usize(..1000) {
                choice if choice < grow => self.allocate(),
                940..980 => self.resize(),
                980..990 => self.use_std_types(),
                990..999 => self.place(),
                999 => self.change_region(),
                _ => self.free(),
            }
        }
        self.end();
        self.yard
            .done
            .fetch_add(self.counts.operations() - told, Ordering::Relaxed);
        self.counts
    }

    fn check(&mut self) {
        self.counts.checks += 1;
        if let Err(contradiction) = check() {
            panic!("thread {}: {contradiction}", self.maker);
        }
    }

    /// Leaves half of what is alive behind, and frees the rest.
    fn end(&mut self) {
        self.send_and_receive();
        let half = self.live.len() / 2;
        for object in self.live.split_off(half) {
            self.free_object(object);
        }
        self.region = None;
        self.check();
        lock(&self.yard.estate).append(&mut self.live);
        self.yard.ended[self.maker].store(true, Ordering::Relaxed);
    }

    fn send_and_receive(&mut self) {
        if !self.outbox.is_empty() {
            let to = (self.lane + 1 + self.choices.usize(..self.yard.mail.len().max(2) - 1))
                % self.yard.mail.len();
            let mut mail = lock(&self.yard.mail[to]);
            if mail.len() < MAIL_MAX {
                mail.append(&mut self.outbox);
            }
        }
        for object in std::mem::take(&mut self.outbox) {
            self.free_object(object);
        }
        let mail = std::mem::take(&mut *lock(&self.yard.mail[self.lane]));
        for object in mail {
            self.free_object(object);
        }
    }

    fn free_object(&mut self, object: Object) {
        let address = object.start.addr().get();
        self.stale[address / 64 % STALE] = address;
        if object.maker == self.maker {
            self.counts.freed_own += 1;
        } else if self.yard.ended[object.maker].load(Ordering::Relaxed) {
            self.counts.freed_late += 1;
        } else {
            self.counts.freed_theirs += 1;
        }
        object.free(&self.yard.claims);
    }

    fn free(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let index = self.choices.usize(..self.live.len());
        let object = self.live.swap_remove(index);
        if self.yard.mail.len() > 1 && self.choices.usize(..4) == 0 {
            self.outbox.push(object);
        } else {
            self.free_object(object);
        }
    }

    fn any_bytes(&mut self) -> usize {
        let bits = match self.choices.usize(..20_000) {
            0 => 23,
            1..5 => 21,
            5..50 => 18,
            50..1000 => 14,
            1000..3000 => 11,
            3000..6000 => 9,
            _ => self.choices.usize(..5) + 3,
        };
        self.choices.usize(..1 << bits)
    }

    fn any_layout(&mut self) -> Layout {
        let bytes = self.any_bytes();
        let align_log2 = match self.choices.usize(..4000) {
            0 => self.choices.usize(..22),
            1..80 => self.choices.usize(..14),
            80..800 => self.choices.usize(..7),
            _ => 3,
        };
        let layout = Layout::from_size_align(bytes, 1 << align_log2).expect("sizes are small");
        self.counts.large += u64::from(bytes > 16 << 10);
        self.counts.huge += u64::from(bytes > 1 << 20);
        self.counts.aligned += u64::from(align_log2 > 6);
        layout
    }

    /// A hint, and the counter of its kind.
    fn any_hint(&mut self) -> (Option<NonNull<u8>>, Counter) {
        let pointer = |address: usize| NonNull::new(std::ptr::without_provenance_mut(address));
        let live =
            (!self.live.is_empty()).then(|| self.live[self.choices.usize(..self.live.len())].start);
        match (self.choices.usize(..16), live) {
            (0..6, Some(_)) => (live, |counts| &mut counts.hint_live),
            (6, Some(live)) => {
                let inside = live.as_ptr().wrapping_add(self.choices.usize(..8192));
                (NonNull::new(inside), |counts| &mut counts.hint_inside)
            }
            (7, _) => (pointer(self.stale[self.choices.usize(..STALE)]), |counts| {
                &mut counts.hint_stale
            }),
            (8, _) => {
                let theirs =
                    self.yard.posters[self.choices.usize(..POSTERS)].load(Ordering::Relaxed);
                (pointer(theirs), |counts| &mut counts.hint_theirs)
            }
            (9, _) => {
                let wild = match self.choices.usize(..4) {
                    0 => NonNull::from(&FOREIGN).cast(),
                    1 => NonNull::from(&live).cast(),
                    2 => NonNull::dangling(),
                    _ => {
                        pointer(self.choices.usize(..1 << 31) << 17).unwrap_or(NonNull::dangling())
                    }
                };
                (Some(wild), |counts| &mut counts.hint_wild)
            }
            _ => (None, |counts| &mut counts.plain),
        }
    }

    fn any_policy(&mut self) -> Option<Policy> {
        match self.choices.usize(..8) {
            0 => Some(Policy::Closest),
            1 => Some(Policy::FirstFit),
            2 => Some(Policy::NewBlock),
            _ => None,
        }
    }

    fn keep(&mut self, start: Option<NonNull<u8>>, layout: Layout) {
        let start = start.expect("memory");
        self.numbers += 1;
        // SAFETY: the callers have just allocated it with this layout.
        let object =
            unsafe { Object::adopt(&self.yard.claims, start, layout, self.maker, self.numbers) };
        if self.numbers.is_multiple_of(32) {
            self.yard.posters[self.choices.usize(..POSTERS)]
                .store(start.addr().get(), Ordering::Relaxed);
        }
        self.live.push(object);
    }

    fn allocate(&mut self) {
        let layout = self.any_layout();
        if self.choices.usize(..32) == 0 && layout.size() > 0 {
            self.counts.zeroed += 1;
            // SAFETY: the layout is not empty.
            let start = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) });
            if let Some(start) = start {
                // SAFETY: the object has this many bytes, and they are initialised: zeroed.
                let contents = unsafe { std::slice::from_raw_parts(start.as_ptr(), layout.size()) };
                // All of a small object, the ends of a large one.
                let (front, back) = contents.split_at(contents.len().min(4096));
                let back = &back[back.len().saturating_sub(64)..];
                assert!(
                    front.iter().chain(back).all(|&byte| byte == 0),
                    "{layout:?} at {start:?} is not zero"
                );
            }
            return self.keep(start, layout);
        }
        let (hint, counter) = self.any_hint();
        *counter(&mut self.counts) += 1;
        let start = match self.any_policy() {
            Some(policy) => cc_alloc_with(layout, hint, policy),
            None => cc_alloc(layout, hint),
        };
        self.keep(start, layout);
    }

    fn resize(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let index = self.choices.usize(..self.live.len());
        let mut object = self.live.swap_remove(index);
        let bytes = match self.choices.usize(..4) {
            0 => self.any_bytes(),
            1 => object.layout.size() / 2,
            2 => object.layout.size() + self.choices.usize(..64),
            _ => (object.layout.size() * 3 / 2).min(4 << 20),
        };
        let (hint, _) = self.any_hint();
        self.counts.resized += 1;
        let moved = object.resize(&self.yard.claims, bytes, hint);
        self.counts.resized_moved += u64::from(moved);
        if moved {
            // It is of this thread's memory now.
            object.maker = self.maker;
        }
        self.live.push(object);
    }

    /// Boxes, a vector and a string under an ambient hint, and an object that stays.
    fn use_std_types(&mut self) {
        let (hint, _) = self.any_hint();
        // SAFETY: not null, aligned to 1, and a `()` has no byte that could be read.
        let hint = hint.map_or(&(), |hint| unsafe { hint.cast::<()>().as_ref() });
        let layout = Layout::from_size_align(self.choices.usize(..200) + 1, 8).expect("small");
        let value = self.choices.u64(..);
        let program = || {
            let boxed = Box::new([value; 3]);
            let list = vec![value; (value % 100) as usize + 1];
            let text = near(&*boxed, || value.to_string().into_boxed_str());
            assert!(list.iter().chain(boxed.iter()).all(|&item| item == value));
            assert_eq!(text.parse(), Ok(value));
            // SAFETY: the layout is not empty.
            NonNull::new(unsafe { std::alloc::alloc(layout) })
        };
        let start = match self.any_policy() {
            Some(policy) => near_with(hint, policy, program),
            None => near(hint, program),
        };
        // Three objects came and went (the text's change of size aside), one stays.
        self.counts.ambient += 4;
        self.counts.freed_own += 3;
        self.keep(start, layout);
    }

    fn place(&mut self) {
        let bytes = match self.choices.usize(..8) {
            0 => self.choices.usize(..4200),
            _ => self.choices.usize(..128),
        };
        let layout = Layout::from_size_align(bytes + 1, 8).expect("small");
        let Some((region, reserved)) = &mut self.region else {
            return;
        };
        let offset = self.choices.usize(..*reserved) & !7;
        let start = NonNull::new(region.alloc_at(offset, layout));
        self.counts.placed += 1;
        self.keep(start, layout);
    }

    fn change_region(&mut self) {
        if self.region.take().is_none() {
            let reserved = self.choices.usize(..4 * Region::SEGMENT_BYTES) + 1;
            self.region = Some((Region::reserve(reserved).expect("memory"), reserved));
            self.counts.regions += 1;
        }
    }
}
