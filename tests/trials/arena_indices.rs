//! Arenas and graphs with indices, as of the crates slotmap and petgraph: no page showed how
//! `IndexMorph` takes them.

#![expect(clippy::cast_possible_truncation, reason = "a few thousand nodes")]

use ccmorph::{IndexMorph, Permutation};

/// A key as of slotmap: where the slot is, and which of the values that it has had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    index: u32,
    version: u32,
}

/// A slot: a value, or free, in a list of free slots.
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
        let state = State::Used {
            name,
            children: Vec::new(),
            parent,
        };
        let key = match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let key = Key {
                    index: self.free,
                    version: slot.version,
                };
                if let State::Free { next } = slot.state {
                    self.free = next;
                }
                slot.state = state;
                key
            }
            None => {
                self.slots.push(Slot { version: 0, state });
                Key {
                    index: self.slots.len() as u32 - 1,
                    version: 0,
                }
            }
        };
        if let Some(State::Used { children, .. }) = parent.and_then(|parent| self.state(parent)) {
            children.push(key);
        }
        key
    }

    fn remove_leaf(&mut self, key: Key) {
        let slot = &mut self.slots[key.index as usize];
        slot.version += 1;
        let State::Used { parent, .. } =
            std::mem::replace(&mut slot.state, State::Free { next: self.free })
        else {
            return;
        };
        self.free = key.index;
        if let Some(State::Used { children, .. }) = parent.and_then(|parent| self.state(parent)) {
            children.retain(|&child| child != key);
        }
    }

    fn state(&mut self, key: Key) -> Option<&mut State> {
        let slot = self.slots.get_mut(key.index as usize)?;
        (slot.version == key.version).then_some(&mut slot.state)
    }

    /// Lays the slots out below `root`; keys that are kept elsewhere are translated by what
    /// returns.
    fn morph(&mut self, root: &mut Key) -> Permutation {
        // A slot takes its version along, so that a key's version stays right. The list of free
        // slots is a list of references.
        let report = IndexMorph::new()
            .run(
                &mut self.slots,
                &mut root.index,
                |slot, visit| match &mut slot.state {
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
                    State::Free { next } => visit.reference(next),
                },
            )
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
    for name in 1..3000u32 {
        let parent = keys[(name.wrapping_mul(0x9e37_79b9) >> 8) as usize % keys.len()];
        let leaf = arena.insert(10_000 + name, Some(parent));
        keys.push(arena.insert(name, Some(parent)));
        if name % 3 > 0 {
            arena.remove_leaf(leaf);
        }
    }
    let stale = arena.insert(1, Some(root));
    arena.remove_leaf(stale);
    let mut before = Vec::new();
    arena.names(root, &mut before);

    let permutation = arena.morph(&mut root);

    let mut after = Vec::new();
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

/// A graph as petgraph keeps it: nodes and edges in two vectors, each node with the first of its
/// outgoing edges, each edge with the next of the same node.
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

struct Node {
    name: u32,
    first: u32,
}

#[derive(Clone, Copy)]
struct Edge {
    next: u32,
    from: u32,
    to: u32,
}

impl Graph {
    /// Lays the nodes out in breadth, from `root` on, and the edges in the order of their nodes.
    fn morph(&mut self, root: &mut u32) {
        // Where edges lead is what the walk needs: a node's children are its edges' ends.
        let ends: Vec<Vec<u32>> = (self.nodes.iter())
            .map(|node| self.edges_from(node).map(|edge| edge.to).collect())
            .collect();
        let mut nodes: Vec<(Vec<u32>, Node)> = ends
            .into_iter()
            .zip(std::mem::take(&mut self.nodes))
            .collect();
        let report = IndexMorph::new()
            .run(&mut nodes, root, |(ends, _), visit| visit.child(ends))
            .unwrap();
        self.nodes = nodes.into_iter().map(|(_, node)| node).collect();
        let new_of = |node: u32| report.permutation.new_of(node as usize) as u32;
        let mut edges = Vec::with_capacity(self.edges.len());
        for v in 0..self.nodes.len() {
            let mut at = std::mem::replace(&mut self.nodes[v].first, NONE);
            let mut last: Option<usize> = None;
            while let Some(&Edge { next, from, to }) = self.edges.get(at as usize) {
                let number = edges.len();
                edges.push(Edge {
                    next: NONE,
                    from: new_of(from),
                    to: new_of(to),
                });
                match last.replace(number) {
                    Some(last) => edges[last].next = number as u32,
                    None => self.nodes[v].first = number as u32,
                }
                at = next;
            }
        }
        self.edges = edges;
    }

    fn edges_from(&self, node: &Node) -> impl Iterator<Item = Edge> {
        let mut at = node.first;
        std::iter::from_fn(move || {
            let edge = *self.edges.get(at as usize)?;
            at = edge.next;
            Some(edge)
        })
    }

    /// All edges as names of nodes, sorted.
    fn by_name(&self) -> Vec<(u32, u32)> {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (v, node) in (0..).zip(&self.nodes) {
            for edge in self.edges_from(node) {
                assert_eq!(edge.from, v);
                edges.push((node.name, self.nodes[edge.to as usize].name));
            }
        }
        edges.sort_unstable();
        edges
    }
}

#[test]
fn graphs_of_nodes_and_edges_survive_a_morph() {
    const NODES: u32 = 2000;
    let mut graph = Graph {
        nodes: (0..NODES).map(|name| Node { name, first: NONE }).collect(),
        edges: Vec::new(),
    };
    let mut state = 1u32;
    for _ in 0..3 * NODES {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (from, to) = ((state >> 8) % NODES, (state >> 20) % NODES);
        let next = std::mem::replace(
            &mut graph.nodes[from as usize].first,
            graph.edges.len() as u32,
        );
        graph.edges.push(Edge { next, from, to });
    }
    let before = graph.by_name();
    let mut root = 17;
    graph.morph(&mut root);
    assert_eq!(graph.by_name(), before);
    assert_eq!(graph.nodes[root as usize].name, 17);
    // The edges of a node lie side by side.
    assert!(graph.edges.is_sorted_by_key(|edge| edge.from));
}
