//! Nodes in the order of the update, or only what it reads.

use super::before::{Handle, Scene, Transform, frames, multiply, play, scene};
use crate::morph as new_morph;
use ccmorph::Operation;

pub fn morph(size: usize) -> u64 {
    let mut scene = scene(size);
    let morph = new_morph().operation(Operation::Walk);
    let done = morph.run_slice(&mut scene.slots, &mut scene.root.index, |slot, visit| {
        if let Some(node) = &mut slot.node {
            { node.children.iter_mut() }.for_each(|child| visit.child(&mut child.index));
            { node.parent.iter_mut() }.for_each(|it| visit.reference(&mut it.index));
        }
    });
    let permutation = done.expect("memory for the nodes").permutation;
    { scene.free.iter_mut() }.for_each(|it| *it = permutation.new_of(*it as usize) as u32);
    play(scene)
}

struct Place {
    local: Transform,
    world: Transform,
    parent: usize,
}

/// The nodes with parents before children.
pub fn idea(size: usize) -> u64 {
    let scene = scene(size);
    let mut places = Vec::new();
    list(&scene, scene.root, 0, &mut places);
    let sum = frames(|camera| {
        let mut sum = 0.0;
        for at in 0..places.len() {
            let above = if at == 0 {
                camera
            } else {
                places[places[at].parent].world
            };
            let world = multiply(&above, &places[at].local);
            sum += world[2] + world[5];
            places[at].world = world;
        }
        sum
    });
    sum ^ scene.names()
}

fn list(scene: &Scene, handle: Handle, parent: usize, places: &mut Vec<Place>) {
    let Some(node) = &scene.slots[handle.index as usize].node else {
        return;
    };
    let at = places.len();
    let (local, world) = (node.local, node.world);
    places.push(Place {
        local,
        world,
        parent,
    });
    node.children
        .iter()
        .for_each(|it| list(scene, *it, at, places));
}
