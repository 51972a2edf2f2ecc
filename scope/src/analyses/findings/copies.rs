//! Copies that nobody reads.

use super::{CALL_EVENTS, Search};
use crate::analyses::types::type_name;
use crate::analyses::units::{count, ratio};
use crate::profile::Site;

/// A site makes copies in vain if at least this part of its chunks is never read.
const UNREAD: f64 = 0.95;
/// Chunks that live longer, as a part of the run, may be keys: `memcmp` reads them unseen.
const SHORT: f64 = 0.01;

impl Search<'_> {
    /// A sentence about strings and vectors that are filled and dropped, and what that takes in
    /// accesses.
    pub(super) fn copies(&self, site: &Site) -> Option<(String, f64)> {
        let (n, unread) = (site.allocations, site.unread_chunks);
        let life = ratio(site.lifetime, n);
        let is_short = life <= self.profile.run.end as f64 * SHORT;
        if !self.profile.run.accesses
            || site.unseen
            || unread < self.options.min_calls
            || ratio(unread, n) < UNREAD
            || !is_short
        {
            return None;
        }
        let things = match type_name(self.profile, site.type_id)? {
            "String" | "Box<str>" => "strings",
            name if name.starts_with("Vec<") || name.starts_with("Box<[") => "vectors",
            _ => return None,
        };
        let of = match unread < n {
            true => format!("{} of {}", count(unread), count(n)),
            false => count(n),
        };
        let events = unread as f64 * CALL_EVENTS + site.writes as f64;
        Some((
            // As `==` does, by `memcmp`.
            format!("{of} {things} only written or compared: do not make the copy"),
            events,
        ))
    }
}
