//! Graphs with indices, as of the crate petgraph: no page showed how `Morph::run_slice` takes them.

#![expect(clippy::cast_possible_truncation, reason = "a few thousand nodes")]

use ccmorph::Morph;

const NONE: u32 = u32::MAX;

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
        let report = Morph::new()
            .run_slice(&mut nodes, root, |(ends, _), visit| visit.child(ends))
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
