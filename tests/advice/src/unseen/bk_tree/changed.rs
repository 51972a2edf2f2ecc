//! Nodes near the word above, or all laid out once the dictionary is read.

use super::before::{check, dictionary, node};
use ccmorph::Operation;

pub fn hint(size: usize) -> u64 {
    let near = |above: &_, word| ccmalloc::near(above, || Box::new(node(word)));
    check(size, &dictionary(size, near))
}

pub fn morph(size: usize) -> u64 {
    let mut root = dictionary(size, |_, word| Box::new(node(word)));
    let morph = crate::morph().operation(Operation::Walk);
    let done = morph.run(&mut root, |node, visit| {
        node.children
            .iter_mut()
            .for_each(|child| visit(&mut child.1));
    });
    done.expect("memory for the nodes");
    check(size, &root)
}
