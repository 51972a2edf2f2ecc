//! em3d: an electromagnetic wave in a solid, by the values at points that depend on each other.
//!
//! Olden's program, after D. Culler et al., *Parallel Programming in Split-C* (1993). The points of
//! the electric field are one list, those of the magnetic field another. Each value depends on some
//! points of the other field: a node has an array of pointers to them and one of coefficients. An
//! iteration goes over the electric list, then over the magnetic one:
//!
//! ```text
//! electric ──► node ──► node ──► node ──► ...    value -= sum of coefficient * value of the other
//!               │ └──► coefficients
//!               └──► from ──┬──────────┐
//!                           ▼          ▼
//! magnetic ──► node ──► node ──► node ──► ...
//! ```
//!
//! The dependences are drawn at random, as in the original, so the pointers lead anywhere in
//! whatever order the nodes lie: of all programs here this one gains least from a placement. The
//! hints are the node before in the list, for nodes, and the node, for its arrays. Unlike the
//! original, the value is part of the node, and coefficients keep the values finite.

use std::alloc::Layout;
use std::cell::{Cell, OnceCell};
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Links, Morph, MorphError, TreeNode, Visit, Visitor, back};

use super::{Olden, Size, check_equal};
use crate::chain::add_in_order;
use crate::placement::{Placement, address_of};
use crate::rng::Rng;

/// The electric and the magnetic field.
const FIELDS: usize = 2;
/// Of the numbers that the graph and the values are made of.
const SEED: u64 = 0x4d33;

/// Which points depend on which, and for how many iterations.
#[derive(Clone, Debug)]
pub struct Input {
    /// Points of each field.
    points: usize,
    /// How many points of the other field depend on each.
    degree: usize,
    /// Iterations, each over both fields.
    iterations: usize,
    graphs: [Graph; FIELDS],
}

impl Input {
    /// A random graph of `points` for each field and `degree`.
    ///
    /// # Panics
    /// When `degree` is more than the other field's points, or a field has more points, or pointers
    /// to the other one, than a `u32` can count.
    pub fn new(points: usize, degree: usize, iterations: usize) -> Input {
        assert!(degree <= points, "{degree} different ones of {points}");
        Input {
            points,
            degree,
            iterations,
            graphs: [0, 1].map(|field| Graph::random(points, degree, field)),
        }
    }
}

/// What the points of a field depend on.
#[derive(Clone, Debug)]
struct Graph {
    /// Where the sources of each point begin; one more at the end.
    starts: Vec<u32>,
    /// Points of the other field.
    sources: Vec<u32>,
}

impl Graph {
    /// Each of `points` points of the other field gets `degree` different ones of this one that
    /// depend on it.
    fn random(points: usize, degree: usize, field: u64) -> Graph {
        let mut rng = Rng::new(SEED + field);
        let as_u32 = |number: usize| u32::try_from(number).expect("a number of points is a u32");
        let edges = points.checked_mul(degree);
        let edges = edges.filter(|&edges| u32::try_from(edges).is_ok());
        let edges = edges.expect("a number of edges is a u32");
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(edges);
        for source in 0..as_u32(points) {
            let first = edges.len();
            while edges.len() < first + degree {
                let edge = (as_u32(rng.below(points)), source);
                if !edges[first..].contains(&edge) {
                    edges.push(edge);
                }
            }
        }
        // Stable: the sources of a point stay in ascending order.
        edges.sort_by_key(|&(target, _)| target);
        let starts = (0..=as_u32(points))
            .map(|point| as_u32(edges.partition_point(|&(target, _)| target < point)));
        Graph {
            starts: starts.collect(),
            sources: edges.iter().map(|&(_, source)| source).collect(),
        }
    }

    /// The points that `target` depends on, each with its coefficient, which is below `1 / degree`.
    fn sources(&self, target: usize, degree: usize) -> impl Iterator<Item = (usize, f64)> {
        let edges = self.starts[target] as usize..self.starts[target + 1] as usize;
        edges.map(move |edge| {
            let coefficient = fraction(edge as u64) / degree as f64;
            (self.sources[edge] as usize, coefficient)
        })
    }
}

/// A number from 0 to 1, the same for the same `seed`.
fn fraction(seed: u64) -> f64 {
    (Rng::new(seed).next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// What the point `number` of a field begins with.
fn first_value(field: usize, number: usize) -> f64 {
    fraction(!((number * FIELDS + field) as u64))
}

/// A point: 48 bytes, as in Olden on a 64-bit machine.
#[derive(Debug)]
struct Node {
    value: Cell<f64>,
    /// Set once, when the nodes of the other field are there.
    sources: OnceCell<Sources>,
    next: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 48);

/// What a point depends on; as many coefficients as nodes.
#[derive(Debug)]
struct Sources {
    /// Invariant: nodes of the other field of the same [`Em3d`], alive and with the right to be
    /// read, or read and written through its [`Cell`]. An exclusive borrow of a node ends that
    /// right: only a morph takes one, and writes all pointers again; when it fails, [`Em3d::morph`]
    /// drops the nodes.
    from: Box<[*const Node]>,
    coefficients: Box<[f64]>,
}

impl TreeNode for Node {
    type Link = Box<Node>;

    fn children<'a>(&'a mut self, visit: &mut Visit<'_, 'a, Box<Node>>) {
        visit(&mut self.next);
        if let Some(sources) = self.sources.get_mut() {
            for from in &mut sources.from {
                visit(back(from));
            }
        }
    }
}

/// The points of a field.
#[derive(Debug)]
struct List {
    first: Option<Box<Node>>,
}

impl List {
    /// The points of `field`, each near the one before it, that depend on nothing yet.
    fn build<P: Placement>(field: usize, points: usize, placement: P) -> List {
        let mut first = None;
        let mut end = &mut first;
        let mut before: *const Node = ptr::null();
        for number in 0..points {
            let node = Node {
                value: Cell::new(first_value(field, number)),
                sources: OnceCell::new(),
                next: None,
            };
            let node = end.insert(placement.new_near(node, before));
            before = ptr::from_ref(&**node);
            end = &mut node.next;
        }
        List { first }
    }

    fn nodes(&self) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.first.as_deref(), |node| node.next.as_deref())
    }

    /// Computes the new values of this field.
    ///
    /// # Safety
    /// - This is a field of an [`Em3d`].
    unsafe fn propagate<P: Placement>(&self, placement: P) {
        for node in self.nodes() {
            placement.prefetch(address_of(&node.next));
            let Some(sources) = node.sources.get() else {
                continue;
            };
            placement.prefetch(sources.coefficients.as_ptr());
            for &other in &sources.from {
                placement.prefetch(other);
            }
            let mut value = node.value.get();
            for (&other, coefficient) in sources.from.iter().zip(&sources.coefficients) {
                // SAFETY: a node of the other field, by the invariant of `from`. It is written only
                // through cells while `self` is borrowed: an exclusive borrow of the other field is
                // one of the whole `Em3d`, by the caller's promise.
                value -= coefficient * unsafe { &*other }.value.get();
            }
            node.value.set(value);
        }
    }
}

impl Drop for List {
    /// Node by node, without a stack frame for each.
    fn drop(&mut self) {
        while let Some(mut node) = self.first.take() {
            self.first = node.next.take();
        }
    }
}

/// The two fields. One run of [`work`](Olden::work) for each build.
#[derive(Debug)]
pub struct Em3d {
    /// Boxed, so that the links to the first nodes stay where they are when this is moved: a box
    /// that moves takes the right to its contents from all other pointers to them.
    ///
    /// Invariant: exclusively borrowed only to be morphed, which has the pointers between the nodes
    /// follow or ends without nodes, and to be dropped.
    fields: Box<[List; FIELDS]>,
}

impl Olden for Em3d {
    const NAME: &'static str = "em3d";
    // Arrays are added to nodes that are there already.
    const POLICY: Policy = Policy::NewBlock;
    type Input = Input;

    /// Olden's own input has 2000 points. `Large` has 800,000, with ten others each: 166 MB.
    fn input(size: Size) -> Input {
        match size {
            Size::Tiny => Input::new(4000, 10, 2),
            Size::Thesis => Input::new(1000, 10, 100),
            Size::Quick => Input::new(80_000, 10, 6),
            Size::Large => Input::new(400_000, 10, 8),
        }
    }

    /// Nodes and their arrays; these of mean length.
    fn nodes(input: &Input) -> Vec<(Layout, usize)> {
        let nodes = FIELDS * input.points;
        let array = Layout::array::<f64>(input.degree).expect("a small array");
        vec![(Layout::new::<Node>(), nodes), (array, 2 * nodes)]
    }

    /// Builds both lists, and then the arrays of all nodes, in the order of the lists.
    fn build<P: Placement>(input: &Input, placement: P) -> Self {
        let fields = Box::new([0, 1].map(|field| List::build(field, input.points, placement)));
        // From here on nodes are borrowed shared only, so that pointers to them stay good.
        let nodes = [0, 1].map(|field: usize| {
            let nodes = fields[field].nodes().map(ptr::from_ref);
            nodes.collect::<Vec<*const Node>>()
        });
        let (mut from, mut coefficients) = (Vec::new(), Vec::new());
        for (field, graph) in input.graphs.iter().enumerate() {
            let others = &nodes[1 - field];
            for (number, node) in fields[field].nodes().enumerate() {
                from.clear();
                coefficients.clear();
                for (source, coefficient) in graph.sources(number, input.degree) {
                    from.push(others[source]);
                    coefficients.push(coefficient);
                }
                let from = placement.copy_near(&from, node);
                let coefficients = placement.copy_near(&coefficients, from.as_ptr());
                let sources = Sources { from, coefficients };
                node.sources.set(sources).expect("set once for each node");
            }
        }
        Em3d { fields }
    }

    /// Lays out the nodes of both lists, in their order. The arrays stay where they are. After an
    /// error there are no nodes.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        // Both in one, since each points into the other.
        let result = morph.run(&mut BothFields(&mut self.fields), Node::children);
        if result.is_err() {
            // The invariant of `Sources`: each node was borrowed exclusively, and the pointers are
            // those from before.
            *self.fields = [0, 1].map(|_| List { first: None });
        }
        result.map(drop)
    }

    /// Changes values only, so there is nothing to lay out again.
    fn work<P: Placement>(
        &mut self,
        input: &Input,
        placement: P,
        _relayout: Option<&Morph<'_>>,
    ) -> Result<u64, MorphError> {
        for _ in 0..input.iterations {
            for field in self.fields.iter() {
                // SAFETY: a field of this structure.
                unsafe { field.propagate(placement) };
            }
        }
        let nodes = self.fields.iter().flat_map(List::nodes);
        Ok(digest(nodes.map(|node| node.value.get())))
    }

    /// Against the same sums over arrays: equal to the last bit, since the order of the additions
    /// is.
    fn check(&self, input: &Input, result: u64) -> Result<(), String> {
        let mut values = [0, 1].map(|field| {
            let numbers = 0..input.points;
            let values = numbers.map(|number| first_value(field, number));
            values.collect::<Vec<f64>>()
        });
        for _ in 0..input.iterations {
            for (field, graph) in input.graphs.iter().enumerate() {
                for number in 0..input.points {
                    for (source, coefficient) in graph.sources(number, input.degree) {
                        values[field][number] -= coefficient * values[1 - field][source];
                    }
                }
            }
        }
        check_equal(result, digest(values.iter().flatten().copied()))
    }
}

/// The bits of all values in their order, in one number.
fn digest(values: impl Iterator<Item = f64>) -> u64 {
    values.fold(0, |sum, value| add_in_order(sum, value.to_bits()))
}

/// Both lists as one structure for a morph.
struct BothFields<'n>(&'n mut [List; FIELDS]);

impl Links for BothFields<'_> {
    type Link = Box<Node>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Node>>) {
        for field in &mut *self.0 {
            field.first.show(visitor);
        }
    }
}
