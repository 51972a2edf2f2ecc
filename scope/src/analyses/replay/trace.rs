//! The accesses of a profile's windows, one window after another, with the objects that they go to.

use std::collections::HashMap;

use crate::analyses::structures::element_offset;
use crate::analyses::units::sum;
use crate::profile::{Access, NEAR, Profile, Window};

/// No object, no load: the stack, global variables, or nothing.
pub(crate) const NONE: u32 = u32::MAX;
/// More recorded accesses than this are thinned out, whole windows at a time: windows are a sample
/// in any case, and each candidate takes some tenths of a microsecond for an access.
const MAX_STEPS: usize = 1 << 21;
/// With so many windows at random times, the run's beginning is left out: it stands for itself.
const MIN_RANDOM: usize = 2;
/// Larger chunks of no known type are tables.
const MAX_NODE: u64 = 1024;

/// An access of the windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) address: u64,
    pub(crate) size: u8,
    pub(crate) write: bool,
    /// Index into [`Trace::objects`], or [`NONE`] outside the heap.
    pub(crate) object: u32,
    /// From the start of the object.
    pub(crate) offset: u32,
    /// The object that the loaded word points to, or [`NONE`].
    pub(crate) target: u32,
    /// Index of the load that this access had to wait for, since it led to this object, or
    /// [`NONE`].
    pub(crate) via: u32,
    /// Whether this load leads on in another way than the last time after the same steps: what a
    /// processor does ahead is lost then.
    pub(crate) mispredicted: bool,
}

/// A chunk that the windows access or point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Index of the site.
    pub(crate) site: u32,
    pub(crate) base: u64,
    /// Accesses in the windows.
    pub(crate) accesses: u32,
}

/// What the windows of a run show, in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) steps: Vec<Step>,
    /// Index of the first step after each window.
    pub(crate) ends: Vec<usize>,
    /// When each window began, in events.
    times: Vec<u64>,
    pub(crate) objects: Vec<Object>,
    /// All accesses of the run, for each of `steps`.
    pub(crate) scale: f64,
    /// Whether the first window is the process's beginning: caches held nothing of it.
    pub(crate) begins_empty: bool,
    /// Whether that window is all of the run.
    pub(crate) is_whole: bool,
}

impl Trace {
    /// O(accesses in the windows).
    pub(crate) fn new(profile: &Profile) -> Trace {
        let is_random = |window: &&Window| !window.from_start;
        let random = profile.windows.iter().filter(is_random).count();
        let windows = profile.windows.iter();
        let windows: Vec<_> = windows
            .filter(|window| random < MIN_RANDOM || is_random(window))
            .collect();
        let recorded: usize = windows.iter().map(|window| window.accesses.len()).sum();
        let keep_one_of = recorded.div_ceil(MAX_STEPS).max(1);
        let mut builder = Builder::new(profile);
        for window in windows.iter().step_by(keep_one_of) {
            builder.window(&window.accesses);
            builder.trace.times.push(window.time);
        }
        let total = &profile.total;
        let all = [
            total.heap_reads,
            total.heap_writes,
            total.other_reads,
            total.other_writes,
        ];
        let all = sum(all.into_iter());
        let Builder {
            mut trace, steps, ..
        } = builder;
        trace.scale = (all as f64 / steps.max(1) as f64).max(1.0);
        trace.begins_empty = windows.first().is_some_and(|window| window.from_start);
        trace.is_whole = trace.begins_empty && steps >= all;
        trace
    }

    pub(crate) fn object(&self, index: u32) -> Option<&Object> {
        self.objects.get(index as usize)
    }

    /// Index of the site that a step accesses, or [`NONE`].
    pub(crate) fn site(&self, step: &Step) -> u32 {
        self.object(step.object).map_or(NONE, |object| object.site)
    }

    /// The first step of the windows that begin at `time` or later; `None` if there are none.
    pub(crate) fn first_after(&self, time: u64) -> Option<usize> {
        let window = self.times.partition_point(|&begun| begun < time);
        let first = self.windows().nth(window)?;
        Some(first.start)
    }

    /// Indices of the steps of each window.
    pub(crate) fn windows(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| start..end)
    }
}

/// Where the program went from one object to the next: the site and the field of the pointer.
type Branch = (u32, u32);

struct Builder<'p> {
    profile: &'p Profile,
    trace: Trace,
    steps: u64,
    index_of: HashMap<(u32, u64), u32>,
    /// The turn that followed the last time after two others.
    next_branch: HashMap<[Branch; 2], Branch>,
}

impl Builder<'_> {
    fn new(profile: &Profile) -> Builder<'_> {
        Builder {
            profile,
            trace: Trace::default(),
            steps: 0,
            index_of: HashMap::new(),
            next_branch: HashMap::new(),
        }
    }

    fn object(&mut self, site: u32, base: u64) -> u32 {
        let objects = &mut self.trace.objects;
        let index = self.index_of.entry((site, base)).or_insert_with(|| {
            objects.push(Object {
                site,
                base,
                accesses: 0,
            });
            index_32(objects.len() - 1)
        });
        *index
    }

    /// All elements of a table are alike: no processor guesses which one is next.
    fn branch(&self, load: &Access) -> Branch {
        let offset = element_offset(self.profile, load.site, load.offset);
        let site = self.profile.sites.get(load.site as usize);
        let is_table = site.is_none_or(|site| site.largest > MAX_NODE);
        let offset = if is_table && offset == load.offset {
            0
        } else {
            offset
        };
        (load.site, offset)
    }

    fn window(&mut self, accesses: &[Access]) {
        let first = self.trace.steps.len();
        let mut turns = [(NONE, NONE); 2];
        // Who was reached through which load, as long as the program stays with it.
        let mut through: HashMap<u32, u32> = HashMap::new();
        for (at, access) in accesses.iter().enumerate() {
            let object = match access.site {
                NONE => NONE,
                site => self.object(site, access.base()),
            };
            let target = match access.target {
                NONE => NONE,
                site => self.object(site, access.pointer),
            };
            let before = &accesses[at.saturating_sub(NEAR)..at];
            let load = before.iter().rposition(|load| {
                load.target != NONE && access.site != NONE && load.leads_to(access)
            });
            let load = load.map(|load| first + at - before.len() + load);
            let new = load.filter(|&load| through.get(&object) != Some(&index_32(load)));
            if let Some(load) = new {
                through.insert(object, index_32(load));
                let by = &accesses[load - first];
                let turn = self.branch(by);
                let expected = self.next_branch.insert(turns, turn);
                self.trace.steps[load].mispredicted |= expected != Some(turn);
                turns = [turns[1], turn];
            }
            if let Some(object) = self.trace.objects.get_mut(object as usize) {
                object.accesses = object.accesses.saturating_add(1);
            }
            let via = through.get(&object).copied().filter(|_| object != NONE);
            self.trace.steps.push(Step {
                address: access.address,
                size: access.size,
                write: access.write,
                object,
                offset: access.offset,
                target,
                via: via.unwrap_or(NONE),
                mispredicted: false,
            });
        }
        self.steps += accesses.len() as u64;
        self.trace.ends.push(self.trace.steps.len());
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer than 2^32 accesses"
)]
pub(crate) fn index_32(index: usize) -> u32 {
    index as u32
}
