//! Containers that no replay has tried: where std's are used for what others are made for.

use super::descents::Descent;
use super::{Used, accessed_sites, boxes, chains};
use crate::advice::code::Language;
use crate::advice::ideas::idea;
use crate::advice::{Context, Item, Kind, site_type};
use crate::analyses::structures::{Shape, structures};
use crate::analyses::units::{bytes, count, ratio};
use crate::types::parts;

/// So many tables, of which each is so small, belong to nodes.
const MIN_TABLES: u64 = 1000;
const SMALL: u64 = 1024;
/// Of the calls of a queue, at least this part takes the first entry.
const POPS: f64 = 0.25;

/// A sorted vector for each small table, keys beside the boxes of heaps, a heap for a queue, a map
/// for a list.
pub(in crate::advice) fn ideas(context: &Context<'_>) -> Vec<Item> {
    let mut names: Vec<&str> = Vec::new();
    let sites = accessed_sites(context.trace).into_iter();
    let sites = sites.filter(|&site| Language::of(context.profile, &[site]) == Language::Rust);
    for name in sites.filter_map(|site| site_type(context.profile, site)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let of_name = |name: &str| -> Option<Item> {
        let (path, args) = parts(name)?;
        match (path.rsplit("::").next()?, &args[..]) {
            ("HashMap" | "BTreeMap", [key, value]) => {
                small_tables(context, name, [key, value]).or_else(|| queue(context, name))
            }
            ("BTreeSet", _) => queue(context, name),
            _ => None,
        }
    };
    let named = names.into_iter().filter_map(of_name);
    let mut trees = structures(context.profile);
    trees.retain(|it| matches!(it.shape, Shape::Tree | Shape::TreeWithParents));
    let trees: Vec<u32> = trees.into_iter().flat_map(|it| it.sites).collect();
    let lists = chains::lists(context, &trees).into_iter();
    let lists = lists.map(|used| ordered(context, used));
    named.chain(boxes::ideas(context)).chain(lists).collect()
}

fn sites_of(context: &Context<'_>, name: &str) -> Vec<u32> {
    let all = 0..u32::try_from(context.profile.sites.len()).unwrap_or(u32::MAX);
    let is_it = |&site: &u32| site_type(context.profile, site) == Some(name);
    all.filter(is_it).collect()
}

/// A list that is searched: without another package, too.
fn ordered(context: &Context<'_>, used: Used) -> Item {
    let noun = if used.is_set { "Set" } else { "Map" };
    let what = format!(
        "std's ordered map, `BTree{noun}`, in the place of the {}, too, goes through fewer nodes, \
         and needs no other package",
        used.whole
    );
    Item {
        code: Some(format!(
            "use std::collections::BTree{noun}; // for {}",
            used.instead_of
        )),
        wrong_if: "keys are not what orders the list".to_owned(),
        ..idea(context, Kind::Idea, used.sites, what)
    }
}

/// Tables that nodes own, each of a few entries.
fn small_tables(context: &Context<'_>, name: &str, [key, value]: [&str; 2]) -> Option<Item> {
    let sites = sites_of(context, name);
    let found = || { sites.iter() }.filter_map(|&it| context.profile.sites.get(it as usize));
    let tables = found().fold(0, |sum: u64, site| sum.saturating_add(site.peak_chunks));
    let all = found().fold(0, |sum: u64, site| sum.saturating_add(site.peak_usable));
    // Nodes of one large B-tree are no tables.
    let are_linked = { context.profile.edges.iter() }.any(|edge| {
        sites.contains(&edge.from) && sites.contains(&edge.to) && name.contains("BTree")
    });
    let each = all.checked_div(tables)?;
    if tables < MIN_TABLES || each > SMALL || are_linked {
        return None;
    }
    let what = format!(
        "{} `{name}` of {} each: with so few entries, a sorted vector takes less memory, and a \
         lookup neither hashes nor reads more than a line or two",
        count(tables),
        bytes(each)
    );
    let [key, value] = [key, value].map(crate::types::shorten);
    let code = format!(
        "children: Vec<({key}, {value})>, // sorted by key\n\
         let found = children.binary_search_by(|(it, _)| it.cmp(&key)); // `Err(at)`: \
         `children.insert(at, (key, value))`"
    );
    Some(Item {
        code: Some(code),
        wrong_if: "some of the tables have many entries".to_owned(),
        ..idea(context, Kind::Idea, sites, what)
    })
}

/// A map or set of which the first entry is taken again and again.
fn queue(context: &Context<'_>, name: &str) -> Option<Item> {
    let used = Used::new(context, name)?;
    let takes_first = |it: &&Descent| {
        it.is_changing && it.slot == 0 && !it.path.is_empty() && it.path.iter().all(|it| it.1 == 0)
    };
    let taken = { used.descents.list.iter() }.filter(takes_first).count() as u64;
    if ratio(taken, used.descents.list.len() as u64) < POPS {
        return None;
    }
    let what = format!(
        "the first entry of the {} is taken again and again: a binary heap keeps a queue without \
         nodes, if nothing else is looked up in it",
        used.whole
    );
    let code = "let mut heap = std::collections::BinaryHeap::new();\n\
                heap.push(std::cmp::Reverse((key, value)));\n\
                let first = heap.pop();";
    Some(Item {
        code: Some(code.to_owned()),
        wrong_if: "entries are also looked up or removed by their keys".to_owned(),
        ..idea(context, Kind::Idea, used.sites, what)
    })
}
