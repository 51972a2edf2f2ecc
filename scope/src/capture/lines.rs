//! Reads the cache lines that several threads write.

use super::{Renumbered, Source, entry};
use crate::Error;
use crate::capture_format::{self, layout};
use crate::profile::SharedLine;

/// Lines with turns, those with most first. Two threads may have written an entry at once, so that
/// it names no site: such a line is left out.
pub(super) fn read(capture: Source<'_>, site_of: &Renumbered) -> Result<Vec<SharedLine>, Error> {
    let mut lines = Vec::new();
    for index in 0..layout::MAX_LINES {
        let raw: capture_format::Line = entry(capture, layout::LINES, index)?;
        let place = |place: u64| {
            let low = u32::try_from(place & (capture_format::APART - 1)).ok()?;
            let site = u32::try_from(place >> 32).ok()?;
            Some((*site_of.get(&site)?, low))
        };
        let [Some(first), Some(second)] = raw.places.map(place) else {
            continue;
        };
        let turns = raw.turns & capture_format::MAX_TURNS;
        if turns > 0 {
            lines.push(SharedLine {
                address: raw.address,
                turns,
                same: raw.same,
                threads: raw.threads,
                places: [first.min(second), first.max(second)],
                apart: raw.places[1] & capture_format::APART != 0,
            });
        }
    }
    lines.sort_by_key(|line| (std::cmp::Reverse(line.turns), line.address));
    Ok(lines)
}
