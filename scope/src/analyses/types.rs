//! Sums by type.

use std::collections::HashMap;

use serde::Serialize;

use crate::profile::{Field, Profile, Type};

/// The chunks of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypeSums {
    /// "unknown" where a site has no type.
    pub name: String,
    /// Sites that allocate it.
    pub sites: u64,
    /// Chunks in the whole run.
    pub allocations: u64,
    /// Usable bytes in the whole run.
    pub usable: u64,
    /// At the peak of the process.
    pub at_peak_usable: u64,
    /// At the peak of the process.
    pub at_peak_chunks: u64,
    /// Bytes asked for, and of them those that were touched.
    pub requested: u64,
    /// See `requested`.
    pub touched: u64,
    /// Reads and writes.
    pub accesses: u64,
}

/// The types of these sites, by bytes at the peak of the process.
#[must_use]
pub fn by_type(profile: &Profile, sites: &[usize]) -> Vec<TypeSums> {
    let mut sums: HashMap<&str, TypeSums> = HashMap::new();
    for site in sites.iter().filter_map(|&site| profile.sites.get(site)) {
        let name = type_name(profile, site.type_id).unwrap_or("unknown");
        let sum = sums.entry(name).or_default();
        sum.sites += 1;
        for (total, more) in [
            (&mut sum.allocations, site.allocations),
            (&mut sum.usable, site.usable),
            (&mut sum.at_peak_usable, site.at_peak_usable),
            (&mut sum.at_peak_chunks, site.at_peak_chunks),
            (&mut sum.requested, site.requested),
            (&mut sum.touched, site.touched_bytes),
            (&mut sum.accesses, site.reads.saturating_add(site.writes)),
        ] {
            *total = total.saturating_add(more);
        }
    }
    let named = |(name, sum): (&str, TypeSums)| TypeSums {
        name: name.to_owned(),
        ..sum
    };
    let mut sums: Vec<TypeSums> = sums.into_iter().map(named).collect();
    sums.sort_by(|a, b| {
        let key = |it: &TypeSums| (it.at_peak_usable, it.usable);
        key(b).cmp(&key(a)).then_with(|| a.name.cmp(&b.name))
    });
    sums
}

/// The name of a type, where there is one.
pub(crate) fn type_name(profile: &Profile, type_id: Option<u32>) -> Option<&str> {
    let found = profile.types.get(usize::try_from(type_id?).ok()?)?;
    Some(&found.name)
}

/// The field in which an offset lies, if fields are known.
pub(crate) fn field_at(of: &Type, offset: u64) -> Option<&Field> {
    let fields = of.fields.iter();
    fields
        .filter(|field| field.offset <= offset)
        .find(|field| offset - field.offset < field.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyses::test_profile::profile;

    #[test]
    fn sites_of_one_type_are_added() {
        let mut run = profile();
        run.types[0].name = "Box<Node>".to_owned();
        run.sites.truncate(3);
        for (site, type_id) in run.sites.iter_mut().zip([Some(0), None, Some(0)]) {
            site.type_id = type_id;
            (site.at_peak_usable, site.allocations) = (100, 7);
        }
        let sums = by_type(&run, &[0, 1, 2]);
        let rows: Vec<_> = sums
            .iter()
            .map(|it| (&*it.name, it.sites, it.at_peak_usable))
            .collect();
        assert_eq!(rows, [("Box<Node>", 2, 200), ("unknown", 1, 100)]);
        assert_eq!(sums[0].allocations, 14);
        // A site that is not there and a type that is not there are left out.
        run.sites[0].type_id = Some(99);
        assert_eq!(by_type(&run, &[0, 77])[0].name, "unknown");
    }
}
