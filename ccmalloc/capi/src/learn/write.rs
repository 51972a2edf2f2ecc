//! The file of what was learned: rules that are proposed, each with what was seen, and of all other
//! sites why none is.

use core::fmt;
use std::fs::File;
use std::io;

use allocator::raw::HINTED_BYTES_MAX;

use super::sites::{Key, Site};
use super::{FILE, Learner, word_of};
use crate::entry::{PLACES, REGISTERS};
use crate::modules;

/// Fewer samples say nothing.
const SAMPLES_MIN: u32 = 16;
/// In this part of the calls a place must lead to a linked object.
const LINKED_SHARE: f64 = 0.4;
/// Sites of which this part of the objects is freed within a few calls are left alone: objects that
/// take each other's place gain nothing by a hint, which costs them time.
const SHORT_SHARE: f64 = 0.5;
/// So many pointers to new objects of a rule, in this part of those looked at, make an object of
/// another site a parent.
const PARENTS_MIN: u32 = 8;
const PARENT_SHARE: f64 = 0.8;
/// Two objects that fit one block together gain most by lying side by side.
const BLOCK_BYTES: usize = 64;
/// The size of the second-level cache if the OS does not say it.
const CACHE_BYTES: u64 = 1 << 20;

impl Learner {
    /// Writes the file. What is not possible is left: nobody can be told.
    pub(super) fn write(&self, now: u64) {
        let Some(name) = FILE.get() else { return };
        let mut name = name.clone();
        name.push(format!(".{}", std::process::id()));
        let mut partial = name.clone();
        partial.push(".part");
        let written = File::create(&partial).and_then(|file| {
            let mut text = io::BufWriter::new(file);
            self.print(&mut text, now)?;
            io::Write::flush(&mut text)?;
            std::fs::rename(&partial, &name)
        });
        if written.is_err() {
            let _removed = std::fs::remove_file(&partial);
        }
    }

    fn print(&self, text: &mut dyn io::Write, now: u64) -> io::Result<()> {
        let mut room = [0; 4096];
        let program = modules::program(&mut room);
        let calls = self.calls;
        let share = self.spent as f64 / now.saturating_sub(self.started).max(1) as f64;
        writeln!(text, "ccmalloc rules 1")?;
        writeln!(
            text,
            "# learned by ccmalloc; program {}, {calls} allocations, {} samples, {:.1} % of time",
            String::from_utf8_lossy(program),
            self.samples,
            100. * share,
        )?;
        let mut printer = Printer {
            text,
            program,
            cache_bytes: second_level_bytes(),
            module: None,
        };
        let groups = grouped(self.sites.known(), calls);
        let parents = parents(&groups, self.sites.known(), printer.cache_bytes);
        for ((site, callers), children) in groups.iter().zip(&parents) {
            printer.site(site, callers, *children)?;
        }
        Ok(())
    }
}

/// For each site whether another's objects are to be near its own, and which: the address.
///
/// An object can be a hint only if it was itself placed. So the sites of parents have rules even
/// where they would have none of their own. A parent that was looked at names its site; if there
/// was none, the pointers in kept objects do.
fn parents(groups: &[(Site, Vec<Site>)], sites: &[Site], cache_bytes: u64) -> Vec<Option<usize>> {
    let has_rule = |site: &Site| refuse(site, cache_bytes).is_ok() && is_placed(site);
    let child_by_pointers = |site: &Site| {
        let share = f64::from(site.parent_of + site.no_parent_of) * PARENT_SHARE;
        let child = sites
            .get(site.child)
            .filter(|child| child.votes == 0 && has_rule(child))?;
        let is_parent = site.parent_of >= PARENTS_MIN && f64::from(site.parent_of) >= share;
        (is_parent && !has_rule(site)).then_some(child.key.address)
    };
    let by_pointers = groups.iter().map(|(site, _)| child_by_pointers(site));
    let mut children: Vec<Option<usize>> = by_pointers.collect();
    let mut found: Vec<&Site> = groups.iter().map(|(site, _)| site).collect();
    found.retain(|site| has_rule(site));
    while let Some(child) = found.pop() {
        let is_parent = |(site, _): &(Site, _)| {
            (site.key.address, site.key.bytes) == child.parent && child.votes > 0
        };
        let place = groups.iter().position(is_parent);
        let Some((place, (parent, _))) = place.and_then(|at| Some((at, groups.get(at)?))) else {
            continue;
        };
        let is_new = !has_rule(parent) && children.get(place) == Some(&None);
        if is_new && let Some(entry) = children.get_mut(place) {
            *entry = Some(child.key.address);
            if is_placed(parent) {
                found.push(parent);
            }
        }
    }
    children
}

/// Sites of one address and one size together, those with most bytes alive first; and each apart.
/// `calls` are those of the whole process: what came after the last sample is like what came
/// before.
fn grouped(sites: &[Site], calls: u64) -> Vec<(Site, Vec<Site>)> {
    let mut sites = sites.to_vec();
    let counted: u64 = sites.iter().map(|site| site.calls).sum();
    for site in &mut sites {
        site.calls =
            u64::try_from(u128::from(site.calls) * u128::from(calls) / u128::from(counted.max(1)))
                .unwrap_or(u64::MAX);
    }
    sites.sort_by_key(|site| (site.key.address, site.key.bytes));
    let same = |a: &Site, b: &Site| (a.key.address, a.key.bytes) == (b.key.address, b.key.bytes);
    let mut groups: Vec<_> = sites
        .chunk_by(same)
        .filter_map(|group| {
            let (first, others) = group.split_first()?;
            let mut sum = *first;
            others.iter().for_each(|other| sum.add(other));
            Some((sum, group.to_vec()))
        })
        .collect();
    groups.sort_by_key(|(sum, _)| core::cmp::Reverse(sum.alive_bytes()));
    groups
}

/// A site's module by name, build id and path, and the address in it.
struct Place {
    name: String,
    build_id: String,
    path: String,
    offset: usize,
}

struct Printer<'a> {
    text: &'a mut dyn io::Write,
    program: &'a [u8],
    cache_bytes: u64,
    /// The module that was written last.
    module: Option<String>,
}

impl Printer<'_> {
    /// Writes what is said of a site, whose samples have come by way of `callers`.
    /// `children`: the address of a site whose objects are to be near this one's.
    fn site(&mut self, site: &Site, callers: &[Site], children: Option<usize>) -> io::Result<()> {
        let Some(place) = self.place(site.key.address) else {
            // Code that was made at run time, or is not loaded any more.
            return Ok(());
        };
        if let Some(child) = children.and_then(|address| self.place(address)) {
            let why = format!(", for the objects of +{:x}", child.offset);
            return match is_placed(site) {
                true => self.rule(&place, None, site, &why),
                false => self.open(&place, site, &why),
            };
        }
        if let Err(reason) = refuse(site, self.cache_bytes) {
            return self.comment(&place, site, reason);
        }
        if is_placed(site) {
            return self.rule(&place, None, site, "");
        }
        // One place for all callers was not found. Each has a rule if it has one of its own.
        let placed: Vec<&Site> = (callers.iter())
            .filter(|caller| caller.key.caller != 0 && is_placed(caller))
            .collect();
        if placed.is_empty() {
            let reason = match is_clear(site) {
                true => "two do not fit a cache block",
                false => "no place leads to a linked object often enough",
            };
            return self.comment(&place, site, reason);
        }
        for caller in placed {
            self.rule(&place, Some(caller.key), caller, "")?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        place: &Place,
        caller: Option<Key>,
        site: &Site,
        why: &str,
    ) -> io::Result<()> {
        let mut by = String::new();
        if let Some(key) = caller {
            let Some(from) = self.place(key.caller) else {
                return Ok(());
            };
            self.module(&from)?;
            by = format!(
                " caller {}+{:x} at {}",
                from.name,
                from.offset,
                PlaceName(key.caller_place)
            );
        }
        self.module(place)?;
        let (best, linked) = site.best();
        writeln!(
            self.text,
            "+{:x} size {}{by} near {}  # {}, linked {:.0} %, {}, alive {} bytes{why}",
            place.offset,
            site.key.bytes,
            PlaceName(best),
            Counts(site),
            100. * linked,
            Direction(site),
            site.alive_bytes(),
        )
    }

    fn open(&mut self, place: &Place, site: &Site, why: &str) -> io::Result<()> {
        self.module(place)?;
        writeln!(
            self.text,
            "+{:x} size {} open  # {}, alive {} bytes{why}",
            place.offset,
            site.key.bytes,
            Counts(site),
            site.alive_bytes(),
        )
    }

    fn comment(&mut self, place: &Place, site: &Site, reason: &str) -> io::Result<()> {
        self.module(place)?;
        let (best, linked) = site.best();
        write!(
            self.text,
            "# +{:x} size {}: {}",
            place.offset,
            site.key.bytes,
            Counts(site)
        )?;
        if linked > 0. {
            write!(
                self.text,
                ", linked {:.0} % by {}",
                100. * linked,
                PlaceName(best)
            )?;
        }
        writeln!(self.text, ": {reason}")
    }

    /// Writes the line of a module, unless it was the last one.
    fn module(&mut self, place: &Place) -> io::Result<()> {
        let line = format!(
            "module {} build-id {} {}",
            place.name, place.build_id, place.path
        );
        if self.module.as_ref() != Some(&line) {
            writeln!(self.text, "{line}")?;
            self.module = Some(line);
        }
        Ok(())
    }

    /// The module of an address of code.
    fn place(&self, address: usize) -> Option<Place> {
        let mut place = None;
        modules::for_each(|module| {
            if !module.has_code_at(address) {
                return true;
            }
            let path = if module.path.is_empty() {
                self.program
            } else {
                module.path
            };
            place = Some(Place {
                name: word(modules::file_name(path)),
                build_id: module.build_id().as_str().to_owned(),
                path: String::from_utf8_lossy(path).replace(['\n', '#'], "_"),
                offset: address.wrapping_sub(module.base),
            });
            false
        });
        place
    }
}

/// Why a site has no rule of its own, whatever was found.
fn refuse(site: &Site, cache_bytes: u64) -> Result<(), &'static str> {
    let part = |count: u32| f64::from(count) / f64::from(site.samples.max(1));
    if site.key.bytes > HINTED_BYTES_MAX {
        Err("larger than what can be placed")
    } else if site.samples < SAMPLES_MIN {
        Err("too few samples")
    } else if part(site.short) > SHORT_SHARE {
        Err("freed within a few allocations")
    } else if site.alive_bytes() <= cache_bytes {
        Err("all fit the second-level cache")
    } else {
        Ok(())
    }
}

/// Whether a place of a site's own leads to objects beside which its own fit.
fn is_placed(site: &Site) -> bool {
    is_clear(site) && site.key.bytes + site.other_bytes <= BLOCK_BYTES
}

/// Whether one place leads to linked objects in enough of enough samples.
fn is_clear(site: &Site) -> bool {
    let (_, linked) = site.best();
    site.samples >= SAMPLES_MIN && linked >= LINKED_SHARE
}

/// A name without what ends a word of the file.
fn word(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    name.replace(|it: char| it.is_whitespace() || it == '#' || it == '+', "_")
}

fn second_level_bytes() -> u64 {
    // SAFETY: has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL2_CACHE_SIZE) };
    u64::try_from(bytes)
        .ok()
        .filter(|&bytes| bytes > 0)
        .unwrap_or(CACHE_BYTES)
}

/// A place as rules call it.
struct PlaceName(usize);

impl fmt::Display for PlaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (registers, stack, stack_word) = PLACES;
        match registers.get(self.0) {
            Some(register) if self.0 < REGISTERS => f.write_str(register),
            _ => write!(
                f,
                "{stack}+{}",
                (word_of(self.0) - stack_word) * size_of::<usize>()
            ),
        }
    }
}

struct Counts<'a>(&'a Site);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "allocations {}, sampled {}",
            self.0.calls, self.0.samples
        )
    }
}

/// Which of the two objects points to the other, and where.
struct Direction<'a>(&'a Site);

impl fmt::Display for Direction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(site) = self;
        if site.into >= site.from {
            write!(f, "new object at +{} of it", site.into_at)
        } else {
            write!(f, "it at +{} of the new object", site.from_at)
        }
    }
}
