//! What a traced run accessed of each mapping, and which mappings a picture puts together.

use std::ops::Range;

use crate::profile::{Mapping, PAGE, PageUse, Profile};

/// Accesses of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Blocks that were copied, stored or fetched, once for each page.
    pub blocks: u64,
}

impl Counts {
    /// Counts of one page in one part of the run.
    #[must_use]
    pub fn of(page: &PageUse) -> Counts {
        Counts {
            loads: page.loads,
            stores: page.stores,
            blocks: page.blocks,
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Counts) -> Counts {
        Counts {
            loads: self.loads.saturating_add(other.loads),
            stores: self.stores.saturating_add(other.stores),
            blocks: self.blocks.saturating_add(other.blocks),
        }
    }

    /// All kinds together.
    #[must_use]
    pub fn all(self) -> u64 {
        let two = self.loads.saturating_add(self.stores);
        two.saturating_add(self.blocks)
    }
}

/// A mapping with its accesses.
#[derive(Clone, Copy, Debug)]
pub struct MappingUse<'p> {
    /// The mapping.
    pub mapping: &'p Mapping,
    /// Its part of the profile's pages.
    pub uses: &'p [PageUse],
    /// Pages that were accessed.
    pub touched: u64,
    /// Accesses of all its pages.
    pub counts: Counts,
}

impl MappingUse<'_> {
    /// Pages.
    #[must_use]
    pub fn pages(&self) -> u64 {
        (self.mapping.end - self.mapping.start) / PAGE
    }

    /// Pages of which accesses would be seen, or are. Of blocks, memory that is not traced is, too.
    #[must_use]
    pub fn traced_pages(&self) -> u64 {
        match self.mapping.is_traced {
            true => self.pages(),
            false => self.touched,
        }
    }

    /// What the mapping has of its file: text, constants or data; "" if it is of no file.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let Mapping { name, rights, .. } = self.mapping;
        match rights.as_bytes() {
            _ if name.starts_with('[') || name.ends_with(" (bss)") => "",
            [_, _, b'x', ..] => "text",
            [_, b'w', ..] => "data",
            [b'r', ..] => "constants",
            _ => "",
        }
    }
}

/// Each mapping of a profile, by address.
#[must_use]
pub fn by_mapping(profile: &Profile) -> Vec<MappingUse<'_>> {
    let mut rest = &*profile.pages;
    let of = |mapping| {
        let len = rest.partition_point(|it| it.page < mapping_end(mapping));
        let (uses, after) = rest.split_at(len);
        rest = after;
        let all = uses.iter().map(Counts::of);
        MappingUse {
            mapping,
            uses,
            touched: uses.chunk_by(|a, b| a.page == b.page).count() as u64,
            counts: all.fold(Counts::default(), Counts::and),
        }
    };
    profile.mappings.iter().map(of).collect()
}

fn mapping_end(mapping: &Mapping) -> u64 {
    mapping.end / PAGE
}

/// Mappings as bands of a picture, by index: those that are drawn, each by itself, and what lies
/// between them, put together.
#[must_use]
pub fn bands(is_drawn: &[bool]) -> Vec<Range<usize>> {
    let mut bands = Vec::new();
    let mut at = 0;
    for part in is_drawn.chunk_by(|a, b| !a && !b) {
        bands.push(at..at + part.len());
        at += part.len();
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::{pages, profile};

    #[test]
    fn mappings_have_their_pages_and_quiet_ones_are_put_together() {
        let (mappings, pages) = pages();
        let profile = Profile {
            mappings,
            pages,
            ..profile()
        };
        let all = by_mapping(&profile);
        let touched: Vec<u64> = all.iter().map(|it| it.touched).collect();
        assert_eq!(touched, [0, 0, 1, 0, 3, 0, 0]);
        let is_drawn: Vec<bool> = touched.iter().map(|&it| it > 0).collect();
        assert_eq!(bands(&is_drawn), [0..2, 2..3, 3..4, 4..5, 5..7]);
        let heap = &all[4];
        assert_eq!((heap.pages(), heap.kind()), (33, ""));
        let expected = Counts {
            loads: 1130,
            stores: 21,
            blocks: 2,
        };
        assert_eq!((heap.counts, heap.counts.all()), (expected, 1153));
        let kinds: Vec<&str> = all.iter().map(MappingUse::kind).collect();
        assert_eq!(kinds, ["text", "constants", "data", "", "", "text", ""]);
    }

    #[test]
    fn sums_do_not_overflow() {
        let most = Counts {
            loads: u64::MAX,
            stores: 1,
            blocks: 0,
        };
        assert_eq!(most.and(most).all(), u64::MAX);
    }
}
