//! Reads the measures that tests were not content with.

use super::{Renumbered, Source, entry};
use crate::Error;
use crate::capture_format::{self, Header, layout};
use crate::profile::{Exceeded, SiteCount};

/// In the order in which the tests panicked. Sites that are not known are left out.
pub(super) fn read(
    capture: Source<'_>,
    header: &Header,
    site_of: &Renumbered,
) -> Result<Vec<Exceeded>, Error> {
    let count = header.exceeded.min(layout::MAX_EXCEEDED);
    let all = (0..count).map(|index| {
        let raw: capture_format::Exceeded = entry(capture, layout::EXCEEDED, index)?;
        let place = raw.place.split(|&byte| byte == 0).next();
        let site = |&[key, allocations, bytes]: &[u64; 3]| {
            let site = u32::try_from(key.checked_sub(1)?).ok()?;
            Some(SiteCount {
                site: *site_of.get(&site)?,
                allocations,
                bytes,
            })
        };
        Ok(Exceeded {
            place: String::from_utf8_lossy(place.unwrap_or_default()).into_owned(),
            sites: raw.sites.iter().filter_map(site).collect(),
        })
    });
    all.collect()
}
