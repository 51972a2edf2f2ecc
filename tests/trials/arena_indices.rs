//! Arenas with indices, as of the crate slotmap: no page showed how `Morph::run_slice` takes them.

#![expect(clippy::cast_possible_truncation, reason = "a few thousand nodes")]

use ccmorph::{Morph, Permutation};

/// A key: where the slot is, and which of the values that it has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    index: u32,
    version: u32,
}

/// A slot: a value, or free, in a list of free slots. It takes its version along when it moves.
struct Slot {
    version: u32,
    state: State,
}

enum State {
    Used {
        name: u32,
        children: Vec<Key>,
        parent: Option<Key>,
    },
    Free {
        next: u32,
    },
}

struct Arena {
    slots: Vec<Slot>,
    free: u32,
}

const NONE: u32 = u32::MAX;

impl Arena {
    fn insert(&mut self, name: u32, parent: Option<Key>) -> Key {
        let children = Vec::new();
        let state = State::Used {
            name,
            children,
            parent,
        };
        let (mut index, mut version) = (self.slots.len() as u32, 0);
        if let Some(slot) = self.slots.get_mut(self.free as usize) {
            (index, version) = (self.free, slot.version);
            if let State::Free { next } = std::mem::replace(&mut slot.state, state) {
                self.free = next;
            }
        } else {
            self.slots.push(Slot { version, state });
        }
        let key = Key { index, version };
        if let Some(State::Used { children, .. }) = parent.and_then(|parent| self.state(parent)) {
            children.push(key);
        }
        key
    }

    fn remove_leaf(&mut self, key: Key) {
        let next = std::mem::replace(&mut self.free, key.index);
        let slot = &mut self.slots[key.index as usize];
        slot.version += 1;
        let removed = std::mem::replace(&mut slot.state, State::Free { next });
        if let State::Used { parent, .. } = removed
            && let Some(State::Used { children, .. }) = parent.and_then(|parent| self.state(parent))
        {
            children.retain(|&child| child != key);
        }
    }

    fn state(&mut self, key: Key) -> Option<&mut State> {
        let slot = self.slots.get_mut(key.index as usize)?;
        (slot.version == key.version).then_some(&mut slot.state)
    }

    /// Lays the slots out below `root`; the permutation translates keys that are kept elsewhere.
    fn morph(&mut self, root: &mut Key) -> Permutation {
        let report = Morph::new()
            .run_slice(&mut self.slots, &mut root.index, |slot, visit| {
                match &mut slot.state {
                    State::Used {
                        children, parent, ..
                    } => {
                        for child in children {
                            visit.child(&mut child.index);
                        }
                        if let Some(parent) = parent {
                            visit.reference(&mut parent.index);
                        }
                    }
                    // The list of free slots is a list of references.
                    State::Free { next } => visit.reference(next),
                }
            })
            .unwrap();
        if self.free != NONE {
            self.free = report.permutation.new_of(self.free as usize) as u32;
        }
        report.permutation
    }

    /// The names below `key`, parents first; each child knows its parent.
    fn names(&mut self, key: Key, names: &mut Vec<u32>) {
        let Some(State::Used { name, children, .. }) = self.state(key) else {
            panic!("{key:?} is stale");
        };
        names.push(*name);
        for child in children.clone() {
            match self.state(child) {
                Some(State::Used { parent, .. }) => assert_eq!(*parent, Some(key)),
                _ => panic!("{child:?} is stale"),
            }
            self.names(child, names);
        }
    }
}

#[test]
fn keys_with_versions_survive_a_morph() {
    let mut arena = Arena {
        slots: Vec::new(),
        free: NONE,
    };
    let mut root = arena.insert(0, None);
    let mut keys = vec![root];
    for name in 1..3000_u32 {
        let parent = keys[(name.wrapping_mul(0x9e37_79b9) >> 8) as usize % keys.len()];
        let leaf = arena.insert(10_000 + name, Some(parent));
        keys.push(arena.insert(name, Some(parent)));
        if name % 3 > 0 {
            arena.remove_leaf(leaf);
        }
    }
    let stale = arena.insert(1, Some(root));
    arena.remove_leaf(stale);
    let (mut before, mut after) = (Vec::new(), Vec::new());
    arena.names(root, &mut before);
    let permutation = arena.morph(&mut root);
    arena.names(root, &mut after);
    assert_eq!(after, before);
    let moved = |key: Key| Key {
        index: permutation.new_of(key.index as usize) as u32,
        ..key
    };
    for (name, &key) in (0..).zip(&keys) {
        match arena.state(moved(key)) {
            Some(State::Used { name: found, .. }) => assert_eq!(*found, name),
            _ => panic!("{key:?} is stale"),
        }
    }
    assert!(arena.state(moved(stale)).is_none());
    // Free slots are used again.
    let slots = arena.slots.len();
    let new = arena.insert(7, Some(root));
    assert!(arena.slots.len() == slots && arena.state(new).is_some());
}
