//! The accesses of a profile's windows, one window after another, with the objects that they go to.

use std::collections::HashMap;
use std::ops::Range;

use crate::analyses::structures::{collection, element_offset};
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

/// Accesses within which code that is seen compares what a key leads to, and the bytes that a
/// comparison reads: texts mostly differ in the first ones.
const COMPARED_WITHIN: usize = 4;
const COMPARED: u8 = 8;

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
    /// Whether this load leads on in another way than the last time after the same steps, or a
    /// search of keys before it ended elsewhere: what a processor does ahead is lost then.
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
    pub(crate) fn windows(&self) -> impl Iterator<Item = Range<usize>> {
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
    /// By site: where nodes of std's B-trees have their keys, which are searched one by one.
    keys: Vec<Option<Range<u32>>>,
    /// Where a search ended the last time after the same turns.
    next_end: HashMap<([Branch; 2], u32), u32>,
}

/// A search of the keys of a node that is under way.
#[derive(Clone, Copy)]
struct Scan {
    object: u32,
    site: u32,
    /// Offset of the last key that was read.
    last: u32,
}

impl Builder<'_> {
    fn new(profile: &Profile) -> Builder<'_> {
        let keys = (0..)
            .zip(&profile.sites)
            .map(|(site, _)| searched_keys(profile, site));
        Builder {
            keys: keys.collect(),
            next_end: HashMap::new(),
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

    /// Whether the access ends a search of keys at another one than the last time after the same
    /// turns. The branch that ends it is then mispredicted.
    fn ends_elsewhere(
        &mut self,
        scan: &mut Option<Scan>,
        turns: [Branch; 2],
        access: &Access,
        object: u32,
    ) -> bool {
        let keys = { self.keys.get(access.site as usize) }.and_then(Option::as_ref);
        let is_key = keys.is_some_and(|keys| keys.contains(&access.offset)) && !access.write;
        let new = Scan {
            object,
            site: access.site,
            last: access.offset,
        };
        let ended = match scan {
            Some(scan) if is_key && scan.object == object && scan.last <= access.offset => {
                scan.last = access.offset;
                return false;
            }
            Some(scan) if !is_key && scan.object != object => return false,
            _ => std::mem::replace(scan, is_key.then_some(new)),
        };
        ended.is_some_and(|ended| {
            let before = self.next_end.insert((turns, ended.site), ended.last);
            before != Some(ended.last)
        })
    }

    fn push(&mut self, step: Step) {
        if let Some(object) = self.trace.objects.get_mut(step.object as usize) {
            object.accesses = object.accesses.saturating_add(1);
        }
        self.trace.steps.push(step);
    }

    fn window(&mut self, accesses: &[Access]) {
        let mut scan = None;
        let mut turns = [(NONE, NONE); 2];
        // Who was reached through which load, as long as the program stays with it.
        let mut through: HashMap<u32, u32> = HashMap::new();
        // By access: its step.
        let mut steps: Vec<u32> = Vec::with_capacity(accesses.len());
        for (at, access) in accesses.iter().enumerate() {
            let object = match access.site {
                NONE => NONE,
                site => self.object(site, access.base()),
            };
            let target = match access.target {
                NONE => NONE,
                site => self.object(site, access.pointer),
            };
            let first = at.saturating_sub(NEAR);
            let load = accesses[first..at].iter().rposition(|load| {
                load.target != NONE && access.site != NONE && load.leads_to(access)
            });
            let load = load.map(|load| first + load);
            let new = load.filter(|&load| through.get(&object) != Some(&steps[load]));
            if let Some(load) = new {
                through.insert(object, steps[load]);
                let turn = self.branch(&accesses[load]);
                let expected = self.next_branch.insert(turns, turn);
                self.trace.steps[steps[load] as usize].mispredicted |= expected != Some(turn);
                turns = [turns[1], turn];
            }
            let via = through.get(&object).copied().filter(|_| object != NONE);
            let mispredicted = self.ends_elsewhere(&mut scan, turns, access, object);
            let is_key = scan.is_some_and(|it: Scan| it.object == object);
            steps.push(index_32(self.trace.steps.len()));
            let step = Step {
                address: access.address,
                size: access.size,
                write: access.write,
                object,
                offset: access.offset,
                target,
                via: via.unwrap_or(NONE),
                mispredicted,
            };
            self.push(step);
            if is_key && target != NONE && !is_compared(&accesses[at + 1..], access) {
                self.push(Step {
                    address: access.pointer,
                    size: COMPARED,
                    object: target,
                    offset: 0,
                    target: NONE,
                    via: index_32(self.trace.steps.len() - 1),
                    mispredicted: false,
                    ..step
                });
            }
        }
        self.steps += accesses.len() as u64;
        self.trace.ends.push(self.trace.steps.len());
    }
}

/// Whether what the key's pointer leads to is accessed soon after: else `memcmp` does so unseen.
fn is_compared(after: &[Access], key: &Access) -> bool {
    let mut after = after.iter().take(COMPARED_WITHIN);
    after.any(|it| it.site != NONE && it.base() == key.pointer)
}

/// The keys in a node of a `BTreeMap` or `BTreeSet`, as offsets.
fn searched_keys(profile: &Profile, site: u32) -> Option<Range<u32>> {
    let of = profile.sites.get(site as usize)?.type_id;
    if !collection(profile, site).starts_with("BTree") {
        return None;
    }
    let of = profile.types.get(of? as usize)?;
    let keys = of.fields.iter().find(|field| field.name == "keys")?;
    let start = u32::try_from(keys.offset).ok()?;
    Some(start..start.checked_add(u32::try_from(keys.size).ok()?)?)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "there are fewer than 2^32 accesses"
)]
pub(crate) fn index_32(index: usize) -> u32 {
    index as u32
}
