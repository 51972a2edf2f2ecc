//! em3d: an electromagnetic wave in a solid, by the values at points that depend on each other.
//!
//! Olden's program, after D. Culler et al., *Parallel Programming in Split-C* (1993). The points of
//! the electric field are one list, those of the magnetic field another. Each value depends on some
//! points of the other field, to which its node has an array of pointers and one of coefficients.
//! The dependences are random, as in the original, so this program gains least from a placement.
//! Nodes are hinted at the node before them in the list, arrays at their node.
//!
//! Unlike in the original, the value is part of the node, and coefficients keep the values finite.

use std::alloc::Layout;
use std::cell::{Cell, OnceCell};
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Morph, MorphError, TreeNode, Visit, back};

use super::{Olden, Size};
use crate::placement::{Placement, address_of};
use crate::queries::add_in_order;
use crate::rng::Rng;

const FIELDS: usize = 2;
const SEED: u64 = 0x4d33;

/// Which points depend on which, and for how many iterations.
pub struct Input {
    points: usize,
    degree: usize,
    iterations: usize,
    graphs: [Graph; FIELDS],
}

impl Input {
    /// Random graphs of `points`, each with `degree` points of the other field that depend on it.
    pub fn new([points, degree, iterations]: [usize; 3]) -> Input {
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
struct Graph {
    /// Where the sources of each point begin; one more at the end.
    starts: Vec<u32>,
    sources: Vec<u32>,
}

impl Graph {
    /// Each point of the other field gets `degree` different ones of this one.
    fn random(points: usize, degree: usize, field: u64) -> Graph {
        let mut rng = Rng::new(SEED + field);
        let as_u32 = |number: usize| u32::try_from(number).expect("a u32 counts the edges");
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(as_u32(points * degree) as usize);
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
        let start = |point| as_u32(edges.partition_point(|&(target, _)| target < point));
        let starts = (0..=as_u32(points)).map(start).collect();
        let sources = edges.iter().map(|&(_, source)| source).collect();
        Graph { starts, sources }
    }
}

fn fraction(seed: u64) -> f64 {
    (Rng::new(seed).next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// A point: 48 bytes, as in Olden on a 64-bit machine.
struct Node {
    value: Cell<f64>,
    /// Set once, when the nodes of the other field are there.
    sources: OnceCell<Sources>,
    next: Option<Box<Node>>,
}

const _: () = assert!(size_of::<Node>() == 48);

struct Sources {
    /// Invariant: nodes of the other field of the same [`Em3d`], alive, with the right to read them
    /// and to write them through their [`Cell`]. Only a morph borrows nodes exclusively, which ends
    /// that right; it writes all pointers again, or fails, and [`Em3d::morph`] drops the nodes.
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

type List = Option<Box<Node>>;

/// The points of `field`, each near the one before it, without sources.
fn build_list<P: Placement>(field: usize, points: usize, placement: P) -> List {
    let mut first = None;
    let mut end = &mut first;
    let mut before: *const Node = ptr::null();
    for number in 0..points {
        let node = Node {
            value: Cell::new(fraction(!((number * FIELDS + field) as u64))),
            sources: OnceCell::new(),
            next: None,
        };
        let node = end.insert(placement.new_near(node, before));
        before = ptr::from_ref(&**node);
        end = &mut node.next;
    }
    first
}

fn nodes(list: &List) -> impl Iterator<Item = &Node> {
    std::iter::successors(list.as_deref(), |node| node.next.as_deref())
}

pub struct Em3d {
    /// Boxed, because a box that moves takes the right to its contents from other pointers to them:
    /// the links to the first nodes stay good when this is moved.
    ///
    /// Invariant: exclusively borrowed only to be morphed or dropped.
    fields: Box<[List; FIELDS]>,
}

impl Olden for Em3d {
    const NAME: &'static str = "em3d";
    // Arrays are added to nodes that are there already.
    const POLICY: Policy = Policy::NewBlock;
    const RESULTS: [u64; 4] = [
        17_545_016_843_200_281_587,
        8_580_234_626_676_866_974,
        3_850_131_337_861_458_932,
        10_562_698_893_830_975_052,
    ];
    type Input = Input;

    /// `Large` has 800,000 points, with ten others each: 166 MB.
    fn input(size: Size) -> Input {
        Input::new(match size {
            Size::Tiny => [4000, 10, 2],
            Size::Thesis => [1000, 10, 100],
            Size::Quick => [80_000, 10, 6],
            Size::Large => [400_000, 10, 8],
        })
    }

    fn nodes(input: &Input) -> Vec<(Layout, usize)> {
        let nodes = FIELDS * input.points;
        let array = Layout::array::<f64>(input.degree).expect("a small array");
        vec![(Layout::new::<Node>(), nodes), (array, 2 * nodes)]
    }

    fn build<P: Placement>(input: &Input, placement: P) -> Self {
        let fields = Box::new([0, 1].map(|field| build_list(field, input.points, placement)));
        // From here on nodes are borrowed shared only, so that pointers to them stay good.
        let all = |list: &List| nodes(list).map(ptr::from_ref).collect::<Vec<*const Node>>();
        let all = [all(&fields[0]), all(&fields[1])];
        let (mut from, mut coefficients) = (Vec::new(), Vec::new());
        for (field, graph) in input.graphs.iter().enumerate() {
            for (node, range) in nodes(&fields[field]).zip(graph.starts.windows(2)) {
                from.clear();
                coefficients.clear();
                for edge in range[0]..range[1] {
                    from.push(all[1 - field][graph.sources[edge as usize] as usize]);
                    coefficients.push(fraction(u64::from(edge)) / input.degree as f64);
                }
                let from = placement.copy_near(&from, node);
                let coefficients = placement.copy_near(&coefficients, from.as_ptr());
                let sources = Sources { from, coefficients };
                assert!(node.sources.set(sources).is_ok(), "set once for each node");
            }
        }
        Em3d { fields }
    }

    /// The arrays stay where they are. After an error there are no nodes.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        // Both in one, since each points into the other.
        let result = morph.run(&mut *self.fields, Node::children);
        if result.is_err() {
            // The invariant of `Sources`. Dropped node by node, without a stack frame for each.
            for list in &mut *self.fields {
                while let Some(mut node) = list.take() {
                    *list = node.next.take();
                }
            }
        }
        result.map(drop)
    }

    fn work<P: Placement>(&mut self, input: &Input, placement: P, _: impl Fn(&mut Self)) -> u64 {
        let fields = &*self.fields;
        for list in std::iter::repeat_n(fields, input.iterations).flatten() {
            for node in nodes(list) {
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
                    // SAFETY: a node of the other field, by the invariant of `from`. It is written
                    // only through cells while `fields` is borrowed, which are both of them.
                    value -= coefficient * unsafe { &*other }.value.get();
                }
                node.value.set(value);
            }
        }
        let values = fields.iter().flat_map(nodes).map(|node| node.value.get());
        values.fold(0, |sum, value| add_in_order(sum, value.to_bits()))
    }
}
