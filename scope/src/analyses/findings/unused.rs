//! Bytes of chunks that are not used.

use super::{Finding, Kind, Search};
use crate::analyses::types::type_name;
use crate::analyses::units::{bytes, count, ratio, rounded};
use crate::profile::{Site, Type};
use crate::symbols::library_frame;

/// A vector has a quarter of its slots to spare before it is worth a word.
const USED_SLOTS: f64 = 0.75;

/// What malloc of glibc has for a chunk of `len` bytes.
fn usable(len: u64) -> u64 {
    (len.saturating_add(23) / 16 * 16).saturating_sub(8).max(24)
}

impl Search<'_> {
    pub(super) fn type_of(&self, site: &Site) -> Option<&Type> {
        self.profile.types.get(usize::try_from(site.type_id?).ok()?)
    }

    /// What the site would save at the peak if chunks had `len` bytes.
    pub(super) fn saved(site: &Site, len: u64) -> u64 {
        let left = site.at_peak_chunks.saturating_mul(usable(len));
        site.at_peak_usable.saturating_sub(left)
    }

    pub(super) fn partly_used(&self, site: &Site) -> Option<Finding> {
        let size = site.largest;
        let (used, end) = match &site.histogram {
            Some(it) => {
                let is_used = |(reads, writes): (&u64, &u64)| *reads > 0 || *writes > 0;
                let all = || it.reads.iter().zip(&it.writes).map(is_used);
                let end = all().collect::<Vec<bool>>().iter().rposition(|&is| is);
                let used = all().filter(|&is| is).count() as u64;
                (used, end.map_or(0, |it| it as u64 + 1))
            }
            None => {
                let touched = ratio(site.touched_bytes, site.chunk_bytes()) * size as f64;
                (rounded(touched), rounded(touched))
            }
        };
        if size == 0 || used == 0 {
            return None;
        }
        let name = type_name(self.profile, site.type_id).unwrap_or_default();
        let element = self.type_of(site).and_then(|it| it.size);
        let element = element.filter(|&it| it > 0);
        if let Some(element) = element.filter(|_| site.histogram.is_some())
            && (name.starts_with("Vec<") || name.starts_with("VecDeque<"))
        {
            let [slots, filled] = [size / element, end.div_ceil(element)];
            if filled as f64 > slots as f64 * USED_SLOTS {
                return None;
            }
            let saved = Self::saved(site, filled.saturating_mul(element));
            let (of, at_peak) = (count(slots), bytes(saved));
            let used = format!("{} of {of} slots used", count(filled));
            let sentence = format!("{used}: `with_capacity({filled})`, {at_peak} at the peak");
            return self.of_peak(Kind::Capacity, saved, sentence);
        }
        if ratio(used, size) >= self.options.used_part {
            return None;
        }
        if site.smallest == size {
            // A struct has its size; a table or a buffer may be smaller.
            let advice = match element == Some(size) {
                true => "leave other fields out",
                false => "allocate less",
            };
            let saved = Self::saved(site, used);
            let (touched, of, at_peak) = (count(used), count(size), bytes(saved));
            let sentence =
                format!("{touched} of {of} bytes touched: {advice}, {at_peak} at the peak");
            return self.of_peak(Kind::PartlyUsed, saved, sentence);
        }
        let part = ratio(used, size);
        let unused = rounded(site.at_peak_usable as f64 * (1.0 - part));
        let touched = bytes(site.at_peak_usable.saturating_sub(unused));
        let sentence = format!(
            "reserved {}, touched {touched}: reserve less, or shrink it",
            bytes(site.at_peak_usable)
        );
        self.of_peak(Kind::Reserved, unused, sentence)
    }

    /// Whether chunks are scratch memory of a stable sort.
    pub(super) fn is_of_sort(&self, site: &Site) -> bool {
        let frame = |&it: &u32| self.profile.frames.get(it as usize);
        let frames = site.stack.iter().filter_map(frame);
        let mut functions = frames.take(8).map(|frame| &*frame.function);
        functions.any(|it| it.contains("slice::sort") || it.contains("driftsort"))
    }

    /// Whether a package allocates it as one of several parts of what a line of the user holds, and
    /// another part is used to its end: nobody can free a part.
    pub(super) fn is_part_of_used(&self, site: &Site) -> bool {
        let profile = self.profile;
        let outer = |site: &Site| {
            let place = site.place?;
            let at = site.stack.iter().position(|&frame| frame == place)?;
            Some(site.stack[at..].to_vec())
        };
        if library_frame(&site.stack, site.place, &profile.frames).is_none() {
            return false;
        }
        let own = outer(site);
        let freed = |site: &Site| site.groups.iter().map(|it| it.last_freed).max();
        let is_used = |other: &&Site| {
            let idle = other.drag / other.chunk_bytes().max(1) as f64;
            let life = ratio(other.lifetime, other.allocations);
            other.reads > 0 && idle < life * 0.1 && freed(other) >= freed(site)
        };
        let others = profile.sites.iter().filter(|it| it.place == site.place);
        own.is_some() && others.filter(is_used).any(|other| outer(other) == own)
    }
}
