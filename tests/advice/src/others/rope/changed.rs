//! The tree in the order of the text, or the text in one piece once it is edited.

use super::before::{Joined, Rope, edited, read};
use ccmorph::Operation;

pub fn morph(size: usize) -> u64 {
    let mut rope = Box::new(edited(size));
    let morph = crate::morph().operation(Operation::Walk);
    let done = morph.run(&mut rope, |rope, visit| match rope {
        Rope::Piece(_) => {}
        Rope::Joined(Joined { parts, .. }) => visit(parts),
    });
    done.expect("memory for the nodes");
    read(size, &rope)
}

pub fn idea(size: usize) -> u64 {
    let rope = edited(size);
    let mut text = String::new();
    flatten(&rope, &mut text);
    read(size, &Rope::Piece(text))
}

fn flatten(rope: &Rope, text: &mut String) {
    match rope {
        Rope::Piece(piece) => text.push_str(piece),
        Rope::Joined(Joined { parts, .. }) => parts.iter().for_each(|part| flatten(part, text)),
    }
}
