//! Collapsed stacks: `main;parse;alloc 4096`, a line for each stack, outermost function first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ccmodel::Machine;

use super::{Weight, frames, name};
use crate::analyses::regions::Tree;
use crate::analyses::units::sum;
use crate::profile::Profile;

/// Writes the stacks whose number is not 0, in alphabetical order. Of regions, the number is the
/// bytes that nobody in the thread had touched before, and that none of what they call touched.
///
/// What regions below one have may overlap, as in a recursion: then their numbers are smaller, so
/// that the sum is that of the threads.
fn regions(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let tree = Tree::new(profile);
    let regions = &profile.regions;
    let mut numbers: Vec<u64> = regions.iter().map(|it| it.fresh).collect();
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut paths: Vec<String> = Vec::new();
    for (index, region) in regions.iter().enumerate() {
        let own = word(&region.name);
        let caller = region.parent.and_then(|parent| paths.get(parent as usize));
        let path = caller.map_or_else(|| own.clone(), |caller| format!("{caller};{own}"));
        let children = &tree.children[index];
        let parts = sum(children.iter().map(|&child| regions[child].fresh));
        let all = u128::from(parts.max(region.fresh).max(1));
        let mut number = numbers[index];
        for &child in children {
            let part = u128::from(regions[child].fresh) * u128::from(numbers[index]) / all;
            numbers[child] = u64::try_from(part).unwrap_or(u64::MAX);
            number = number.saturating_sub(numbers[child]);
        }
        let total = stacks.entry(path.clone()).or_default();
        *total = total.saturating_add(number);
        paths.push(path);
    }
    for (stack, number) in stacks.iter().filter(|(_, number)| **number > 0) {
        writeln!(out, "{stack} {number}")?;
    }
    Ok(())
}

/// Writes the stacks whose number is not 0, in alphabetical order.
///
/// # Errors
///
/// If `out` cannot take them.
pub fn write(
    profile: &Profile,
    weight: Weight,
    machine: &Machine,
    mut out: impl Write,
) -> io::Result<()> {
    if !profile.regions.is_empty() {
        return regions(profile, out);
    }
    let names: Vec<String> = profile.frames.iter().map(|it| word(&name(it))).collect();
    let numbers = weight.of_sites(profile, machine);
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (site, number) in profile.sites.iter().zip(numbers) {
        let stack: Vec<&str> = frames(site).rev().map(|frame| &*names[frame]).collect();
        let sum = stacks.entry(stack.join(";")).or_default();
        *sum = sum.saturating_add(number);
    }
    for (stack, number) in stacks.iter().filter(|(_, number)| **number > 0) {
        let stack = if stack.is_empty() { "?" } else { stack };
        writeln!(out, "{stack} {number}")?;
    }
    Ok(())
}

/// A name without what separates names and lines.
fn word(name: &str) -> String {
    let safe = |char: char| match char {
        ';' => ':',
        _ if char.is_control() => ' ',
        _ => char,
    };
    name.chars().map(safe).collect()
}
