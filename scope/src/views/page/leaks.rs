//! What the page knows of leaks.

use std::cmp::Reverse;
use std::collections::HashMap;

use serde_json::{Value, json};

use crate::analyses::leaks::total;
use crate::profile::{Leaks, Profile};

/// Sites that the page has, and those of each that lead to it.
const SITES: usize = 1000;
const LEADERS: usize = 8;

/// Sums, rows by site with most bytes first, and what leads to each site of a row: how many sites,
/// and the first of them with their pointers. `null` if nobody has looked for leaks.
pub(super) fn leaks(profile: &Profile) -> Value {
    let Some(all) = total(profile) else {
        return Value::Null;
    };
    let sums = |it: &Leaks| [it.bytes, it.chunks, it.indirect_bytes, it.indirect_chunks];
    let by_site = || { profile.leaks.iter() }.filter_map(|it| Some((it.site?, it)));
    let rows = by_site().take(SITES).map(|(site, it)| {
        let [bytes, chunks, indirect_bytes, indirect_chunks] = sums(it);
        json!([site, bytes, chunks, indirect_bytes, indirect_chunks])
    });
    let mut leaders: HashMap<u32, Vec<(Option<u32>, u64)>> = by_site()
        .take(SITES)
        .map(|(site, _)| (site, Vec::new()))
        .collect();
    for link in &profile.links {
        if let Some(of_site) = leaders.get_mut(&link.to) {
            of_site.push((link.from, link.pointers));
        }
    }
    let links = leaders.into_iter().map(|(site, mut of_site)| {
        of_site.sort_unstable_by_key(|&(from, pointers)| (Reverse(pointers), from));
        let number = of_site.len();
        of_site.truncate(LEADERS);
        (site.to_string(), json!([number, of_site]))
    });
    json!({
        "all": sums(&all),
        "number": by_site().count(),
        "sites": rows.collect::<Vec<Value>>(),
        "links": links.collect::<serde_json::Map<String, Value>>(),
    })
}
