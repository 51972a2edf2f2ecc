//! Collapsed stacks: `main;parse;alloc 4096`, a line for each stack, outermost function first.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ccmodel::Machine;

use super::{Weight, frames, name};
use crate::analyses::regions::Tree;
use crate::analyses::units::rounded;
use crate::profile::Profile;

/// Writes the stacks whose number is not 0, in alphabetical order. Of regions, the number is what a
/// call touches beyond what is in the numbers of those that it calls: bytes.
fn regions(profile: &Profile, mut out: impl Write) -> io::Result<()> {
    let tree = Tree::new(profile);
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut paths: Vec<String> = Vec::new();
    for (region, children) in profile.regions.iter().zip(&tree.children) {
        let own = word(&region.name);
        let caller = region.parent.and_then(|parent| paths.get(parent as usize));
        let path = caller.map_or_else(|| own.clone(), |caller| format!("{caller};{own}"));
        let parts = children
            .iter()
            .map(|&child| profile.regions[child].mean_bytes());
        let number = rounded((region.mean_bytes() - parts.sum::<f64>()).max(0.0));
        let sum = stacks.entry(path.clone()).or_default();
        *sum = sum.saturating_add(number);
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
