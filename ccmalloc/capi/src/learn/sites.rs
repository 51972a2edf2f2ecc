//! What was seen of each call site.

use allocator::raw;

use super::PLACES;
use super::met::Origin;
use super::pending::word_in;
use crate::entry::{REGISTERS, copy_from};
use crate::modules;

/// How many sites are told apart. What comes later is not learned.
pub(super) const SITES_MAX: usize = 4096;
/// Entries of the hash table over them.
const SLOTS: usize = 2 * SITES_MAX;

/// How many addresses are remembered.
const CALLERS: usize = 1024;

/// How many objects of a site's samples are kept.
const KEPT: usize = 8;
/// How many sites are looked at for parents of one object.
const LOOKED_AT: usize = 32;

/// What tells sites apart: where the call returns to, the size, and where its function returns to,
/// as far as the stack shows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) address: usize,
    pub(super) bytes: usize,
    /// 0 if the words of the stack hold no return address.
    pub(super) caller: usize,
    /// The place that holds it.
    pub(super) caller_place: usize,
}

/// What was seen of one.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub(super) key: Key,
    /// How many calls the samples stand for.
    pub(super) calls: u64,
    pub(super) samples: u32,
    /// Samples whose object was free when it was first looked for, and in the end.
    pub(super) short: u32,
    pub(super) ended: u32,
    /// Samples that have been looked at to the end.
    pub(super) complete: u32,
    /// How many calls the samples stand for that have been looked at again, and, of each place,
    /// those that led to an object that is linked with the new one.
    pub(super) looked_at: u64,
    pub(super) linked: [u64; PLACES],
    /// Samples with any such place: where the other object points to the new one, and otherwise.
    pub(super) into: u32,
    pub(super) from: u32,
    /// Bytes of the latest object that was linked with a new one.
    pub(super) other_bytes: usize,
    /// Where in the other object, or in the new one, the latest pointer was.
    pub(super) into_at: usize,
    pub(super) from_at: usize,
    /// Where most of the linked objects come from, and by how many more than from elsewhere.
    pub(super) parent: Origin,
    pub(super) votes: u32,
    /// The bounds of the samples' addresses.
    pub(super) lowest: usize,
    pub(super) highest: usize,
    /// Some objects of the samples.
    objects: [usize; KEPT],
    /// The site whose new objects were found by pointers in objects of this one; how many of the
    /// pointers looked at were such, and how many were others.
    pub(super) child: usize,
    pub(super) parent_of: u32,
    pub(super) no_parent_of: u32,
}

impl Site {
    const EMPTY: Self = Self {
        key: Key {
            address: 0,
            bytes: 0,
            caller: 0,
            caller_place: 0,
        },
        calls: 0,
        samples: 0,
        short: 0,
        ended: 0,
        complete: 0,
        looked_at: 0,
        linked: [0; PLACES],
        into: 0,
        from: 0,
        other_bytes: 0,
        into_at: 0,
        from_at: 0,
        parent: (0, 0),
        votes: 0,
        lowest: usize::MAX,
        highest: 0,
        objects: [0; KEPT],
        child: 0,
        parent_of: 0,
        no_parent_of: 0,
    };

    /// Adds what was seen of a site with another caller.
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.samples += other.samples;
        self.short += other.short;
        self.ended += other.ended;
        self.complete += other.complete;
        self.looked_at += other.looked_at;
        for (sum, count) in self.linked.iter_mut().zip(&other.linked) {
            *sum += count;
        }
        if other.into > self.into {
            self.into_at = other.into_at;
        }
        if other.from > self.from {
            self.from_at = other.from_at;
        }
        if other.parent_of > self.parent_of {
            self.child = other.child;
        }
        self.parent_of += other.parent_of;
        self.no_parent_of += other.no_parent_of;
        self.other_bytes = self.other_bytes.max(other.other_bytes);
        self.into += other.into;
        self.from += other.from;
        if self.parent == other.parent {
            self.votes += other.votes;
        } else if other.votes > self.votes {
            (self.parent, self.votes) = (other.parent, other.votes - self.votes);
        } else {
            self.votes -= other.votes;
        }
        self.lowest = self.lowest.min(other.lowest);
        self.highest = self.highest.max(other.highest);
    }

    /// Counts where a linked object comes from, if that is known: the majority stays.
    pub(super) fn vote(&mut self, parent: Option<Origin>) {
        match parent {
            Some(parent) if parent == self.parent => self.votes += 1,
            Some(parent) if self.votes == 0 => (self.parent, self.votes) = (parent, 1),
            Some(_) => self.votes -= 1,
            None => {}
        }
    }

    /// The place that is most often linked, the first of several, and in which part of the calls.
    pub(super) fn best(&self) -> (usize, f64) {
        let places = self.linked.iter().copied().enumerate();
        let (place, linked) = places.fold(
            (0, 0),
            |best, place| {
                if place.1 > best.1 { place } else { best }
            },
        );
        (place, linked as f64 / self.looked_at.max(1) as f64)
    }

    /// Bytes that live at a time, or are never freed: an estimate, and not more than lie between
    /// the samples, since memory that was given out again looks alive.
    pub(super) fn alive_bytes(&self) -> u64 {
        let alive = u64::from(self.complete - self.ended);
        let bytes = self.calls.saturating_mul(self.key.bytes as u64);
        // Before the multiplication: both are large.
        let between = self.highest.saturating_sub(self.lowest) + self.key.bytes;
        (bytes / u64::from(self.complete.max(1)) * alive).min(between as u64)
    }
}

pub(super) struct Sites {
    sites: [Site; SITES_MAX],
    known: usize,
    /// Numbers of sites, from 1 on, by hash.
    slots: [u16; SLOTS],
    /// Addresses that words of the stack have held, and whether a call may return there, by their
    /// low bits.
    callers: [(usize, bool); CALLERS],
}

impl Sites {
    pub(super) const fn new() -> Self {
        Self {
            sites: [Site::EMPTY; SITES_MAX],
            known: 0,
            slots: [0; SLOTS],
            callers: [(0, false); CALLERS],
        }
    }

    pub(super) fn clear(&mut self) {
        self.known = 0;
        self.slots.fill(0);
    }

    pub(super) fn known(&self) -> &[Site] {
        self.sites.get(..self.known).unwrap_or_default()
    }

    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut Site> {
        self.sites.get_mut(number)
    }

    /// The number of the site of a call; `None` if there are too many.
    pub(super) fn site_of(
        &mut self,
        address: usize,
        bytes: usize,
        words: &[usize; PLACES],
    ) -> Option<usize> {
        let (caller, caller_place) = self.caller(words).unwrap_or_default();
        let key = Key {
            address,
            bytes,
            caller,
            caller_place,
        };
        let words = [key.address, key.bytes, key.caller, key.caller_place];
        let hash = words.iter().fold(0_usize, |hash, word| {
            (hash ^ word)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29)
        });
        // The table is never full: it has twice as many slots as there are sites.
        for probe in 0..SLOTS {
            let slot = self.slots.get_mut((hash.wrapping_add(probe)) % SLOTS)?;
            match usize::from(*slot).checked_sub(1) {
                None => {
                    let site = self.sites.get_mut(self.known)?;
                    *site = Site { key, ..Site::EMPTY };
                    self.known += 1;
                    *slot = u16::try_from(self.known).ok()?;
                    return Some(self.known - 1);
                }
                Some(number) if self.sites.get(number)?.key == key => return Some(number),
                Some(_) => {}
            }
        }
        None
    }

    /// The first word of the stack that a call may return to, and its place.
    fn caller(&mut self, words: &[usize; PLACES]) -> Option<(usize, usize)> {
        let mut stack = words.iter().copied().enumerate().skip(REGISTERS);
        let (place, word) = stack.find(|&(_, word)| self.is_after_call(word))?;
        Some((word, place))
    }

    /// Whether `address`, which may be any number, lies in a module, behind a call.
    fn is_after_call(&mut self, address: usize) -> bool {
        const LONGEST_CALL: usize = 7;
        let in_program = (1 << 16..1 << 48).contains(&address);
        if !in_program || allocator::contains(core::ptr::without_provenance(address)) {
            return false;
        }
        let Some(known) = self.callers.get_mut(address % CALLERS) else {
            return false;
        };
        if known.0 != address {
            let mut bytes = [0; LONGEST_CALL];
            let is_call = modules::is_any_at(address)
                && copy_from(address - LONGEST_CALL, bytes.as_mut_ptr(), LONGEST_CALL)
                && is_call(bytes);
            *known = (address, is_call);
        }
        known.1
    }

    /// Counts a sample that stands for `calls` of them, and keeps its object.
    pub(super) fn count(&mut self, site: usize, object: usize, calls: u64) {
        if let Some(site) = self.sites.get_mut(site) {
            site.lowest = site.lowest.min(object);
            site.highest = site.highest.max(object);
            if let Some(kept) = site.objects.get_mut(site.samples as usize % KEPT) {
                *kept = object;
            }
            site.samples += 1;
            site.calls += calls;
        }
    }

    /// A new object of `child` was found by the word at `at` in an object of `bytes`, whose site is
    /// not known: looks for sites of objects that point to such ones there. They make the parents,
    /// which are to have room beside them. `turn` chooses among sites and objects.
    pub(super) fn look_for_parents(&mut self, child: usize, bytes: usize, at: usize, turn: u64) {
        let Some(child_bytes) = self.sites.get(child).map(|site| site.key.bytes) else {
            return;
        };
        let turn = usize::try_from(turn).unwrap_or_default();
        let known = self.sites.get_mut(..self.known).unwrap_or_default();
        for step in 0..LOOKED_AT.min(known.len()) {
            let number = (turn + step) % known.len();
            let Some(site) = known.get_mut(number).filter(|_| number != child) else {
                continue;
            };
            let object = site.objects.get(turn % KEPT).copied().unwrap_or_default();
            // An empty word says nothing: its object may come.
            let word = word_in(object, bytes, at).filter(|&word| word != 0);
            let Some(word) = word else { continue };
            let is_child = raw::locate(word)
                .is_some_and(|(_, bytes)| (child_bytes..=2 * child_bytes).contains(&bytes));
            if is_child {
                site.parent_of += 1;
                site.child = child;
            } else {
                site.no_parent_of += 1;
            }
        }
    }
}

/// Whether an instruction that calls ends with these bytes.
#[cfg(target_arch = "x86_64")]
fn is_call(bytes: [u8; 7]) -> bool {
    /// The part of the second byte that makes `ff` a call through a register or memory.
    const fn is_indirect(byte: u8) -> bool {
        byte & 0x38 == 0x10
    }
    matches!(bytes, [_, _, 0xe8, ..])
        || matches!(bytes, [.., 0xff, modrm] if is_indirect(modrm))
        || matches!(bytes, [.., 0xff, modrm, _] if is_indirect(modrm))
        || matches!(bytes, [.., 0xff, modrm, _, _] if is_indirect(modrm))
        || matches!(bytes, [_, 0xff, modrm, ..] if is_indirect(modrm))
        || matches!(bytes, [0xff, modrm, ..] if is_indirect(modrm))
}

/// Whether an instruction that calls ends with these bytes.
#[cfg(target_arch = "aarch64")]
fn is_call(bytes: [u8; 7]) -> bool {
    let [_, _, _, instruction @ ..] = bytes;
    let instruction = u32::from_le_bytes(instruction);
    // `bl` and `blr`.
    instruction >> 26 == 0x25 || instruction & 0xffff_fc1f == 0xd63f_0000
}
