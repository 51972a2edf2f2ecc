//! Reads the cache lines that several threads write.

use super::{Renumbered, Source, entry};
use crate::Error;
use crate::format::{self, layout};
use crate::profile::SharedLine;

/// Lines with turns, those with most first. Two threads may have written an entry at once, so that
/// it names no site: such a line is left out.
pub(super) fn read(capture: Source<'_>, site_of: &Renumbered) -> Result<Vec<SharedLine>, Error> {
    let mut lines = Vec::new();
    for index in 0..layout::MAX_LINES {
        let raw: format::Line = entry(capture, layout::LINES, index)?;
        let place = |place: u64| {
            let low = u32::try_from(place & u64::from(u32::MAX)).ok()?;
            let site = u32::try_from(place >> 32).ok()?;
            Some((*site_of.get(&site)?, low))
        };
        let [Some(first), Some(second)] = raw.places.map(place) else {
            continue;
        };
        if raw.turns > 0 {
            lines.push(SharedLine {
                address: raw.address,
                turns: raw.turns,
                same: raw.same,
                threads: raw.threads,
                places: [first.min(second), first.max(second)],
            });
        }
    }
    lines.sort_by_key(|line| (std::cmp::Reverse(line.turns), line.address));
    Ok(lines)
}
