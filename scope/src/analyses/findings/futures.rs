//! Futures that are large by one of their fields.

use super::{Finding, Kind, Search};
use crate::analyses::units::{bytes, count};
use crate::profile::Site;
use crate::types::{AWAIT, CAPTURED};

/// Smaller fields are as well in the future.
const MIN_FIELD: u64 = 1024;

impl Search<'_> {
    /// A box of a future, or of a task around it, a good part of which is one local that the future
    /// holds across an await, or one of its arguments.
    pub(super) fn large_future(&self, site: &Site) -> Option<Finding> {
        let boxed = self.type_of(site)?;
        let size = boxed.size.filter(|&it| it == site.largest)?;
        let fields = boxed.fields.iter();
        let held = fields.filter(|it| it.name.contains(AWAIT) || it.name.ends_with(CAPTURED));
        // An argument may be there twice.
        let field = held.max_by_key(|it| (it.size, it.name.ends_with(CAPTURED)))?;
        if field.size < MIN_FIELD || field.size < size / 4 || site.smallest != size {
            return None;
        }
        let whole = field.name.replace(char::is_control, "?");
        let kind = field.type_name.replace(char::is_control, "?");
        let (name, place) = match whole.split_once(AWAIT) {
            Some((name, place)) => (name, Some(place.trim_end_matches(')'))),
            None => (whole.trim_end_matches(CAPTURED), None),
        };
        let local = match name.rsplit('.').next() {
            Some("awaitee") => format!("the awaited `{kind}`"),
            Some(name) => format!("`{name}: {kind}`"),
            None => return None,
        };
        let advice = match place {
            Some(place) => format!("held at the await of {place}: drop it before, or box it"),
            None => "an argument: pass it in a box".to_owned(),
        };
        let saved = Self::saved(site, size - field.size);
        let (all, own, at_peak) = (count(size), count(field.size), bytes(saved));
        let which = format!("futures of {all} bytes, {own} of them {local}");
        let sentence = format!("{which}, {advice}, up to {at_peak} at the peak");
        self.of_peak(Kind::LargeFuture, saved, sentence)
    }
}
