//! The entries in the order of the walks.

use super::before::{Entry, read, report};
use crate::morph as new_morph;
use ccmorph::{AnyLinks, AnyVisitor, Operation};

impl AnyLinks for Entry {
    fn show_any<'a>(&'a mut self, visitor: &mut AnyVisitor<'_, 'a>) {
        visitor.show(&mut self.entries);
    }
}

pub fn morph(size: usize) -> u64 {
    let mut root = read(size);
    let morph = new_morph().operation(Operation::Walk);
    morph.run_any(&mut root).expect("memory for the nodes");
    report(&root)
}

/// Sums need no tree: what they read, in a vector.
pub fn idea(size: usize) -> u64 {
    let mut files = Vec::new();
    list(&read(size), &mut files);
    (1..=12).fold(0, |sum, round| {
        let newer = files.iter().filter(|file| file.0 > round << 25).count() as u64;
        let usage: u64 = files.iter().map(|file| file.1).sum();
        sum ^ usage.wrapping_mul(round) ^ newer.rotate_left(round as u32)
    })
}

fn list(entry: &Entry, files: &mut Vec<(u64, u64)>) {
    files.push((entry.modified, entry.bytes));
    entry.entries.iter().for_each(|entry| list(entry, files));
}
