//! mst: the minimum spanning tree of a graph in which each vertex finds the lengths of its edges in
//! a hash table with chains.
//!
//! Olden's program, after J. Bentley, *A Parallel Algorithm for Constructing Minimum Spanning
//! Trees* (1980), run by one processor. A step goes over the list of the vertices outside the tree,
//! looks up how far each is from the vertex that joined last, and lets the nearest join next. Every
//! pair of `n` vertices has an edge: there are `n²/2` lookups, each in another table than before.
//!
//! Tables are filled vertex by vertex. The hint for an entry is the one that it will point to, or
//! the vertex. Unlike in the original, keys are numbers, hashed by multiplication, and vertices and
//! entries are allocated one by one, because arrays would hide the allocator.

use std::alloc::Layout;
use std::ptr;

use ccmalloc::Policy;
use ccmorph::{Links, Morph, MorphError, TreeNode, Visitor};

use super::{Olden, Size};
use crate::placement::{Placement, address_of};
use crate::rng::Rng;

/// Lengths of edges are from 1 to this, as in Olden.
const LENGTH_MAX: usize = 2048;

/// An edge in the table of one end: 24 bytes, as in Olden on a 64-bit machine.
#[derive(TreeNode)]
struct Entry {
    key: u32,
    length: u64,
    #[child]
    next: Chain,
}

const _: () = assert!(size_of::<Entry>() == 24);

type Chain = Option<Box<Entry>>;

/// A hash table from vertices to lengths of edges. It does not grow.
struct Table {
    buckets: Box<[Chain]>,
}

impl Table {
    #[inline]
    fn bucket(&self, key: u32) -> usize {
        let hash = key.wrapping_mul(0x9E37_79B9);
        ((u64::from(hash) * self.buckets.len() as u64) >> 32) as usize
    }

    /// Puts an entry in front of its chain, near the first one there, or near `owner`.
    fn insert<P: Placement>(&mut self, key: u32, length: u64, placement: P, owner: *const Vertex) {
        let bucket = self.bucket(key);
        let chain = &mut self.buckets[bucket];
        let next = chain.take();
        let first = address_of(&next);
        let near = if first.is_null() { owner.cast() } else { first };
        *chain = Some(placement.new_near(Entry { key, length, next }, near));
    }

    #[inline]
    fn lookup<P: Placement>(&self, key: u32, placement: P) -> Option<u64> {
        let mut rest = &self.buckets[self.bucket(key)];
        while let Some(entry) = rest {
            placement.prefetch(address_of(&entry.next));
            if entry.key == key {
                return Some(entry.length);
            }
            rest = &entry.next;
        }
        None
    }
}

#[derive(TreeNode)]
struct Vertex {
    number: u32,
    /// Outside of the tree, the length of the shortest edge to it.
    distance: u32,
    edges: Box<Table>,
    #[child]
    next: Option<Box<Vertex>>,
}

/// The length of the edge between two vertices, from 1 to [`LENGTH_MAX`].
fn length(a: u32, b: u32) -> u64 {
    let pair = u64::from(a.min(b)) << 32 | u64::from(a.max(b));
    Rng::new(pair).below(LENGTH_MAX) as u64 + 1
}

/// The graph: two lists of vertices. The input is their number.
pub struct Mst {
    /// The one that joined last is the first.
    tree: Option<Box<Vertex>>,
    outside: Option<Box<Vertex>>,
}

impl Mst {
    /// Moves `joining` into the tree. Returns the nearest of the others and its distance.
    fn step<P: Placement>(&mut self, joining: u32, placement: P) -> Option<(u32, u32)> {
        let mut nearest: Option<(u32, u32)> = None;
        let mut slot = &mut self.outside;
        while let Some(vertex) = slot {
            placement.prefetch(address_of(&vertex.next));
            if vertex.number == joining {
                if let Some(mut vertex) = slot.take() {
                    *slot = vertex.next.take();
                    vertex.next = self.tree.take();
                    self.tree = Some(vertex);
                }
                continue;
            }
            if let Some(length) = vertex.edges.lookup(joining, placement)
                && length < u64::from(vertex.distance)
            {
                vertex.distance = u32::try_from(length).expect("shorter than a u32");
            }
            if nearest.is_none_or(|(_, distance)| vertex.distance < distance) {
                nearest = Some((vertex.number, vertex.distance));
            }
            slot = &mut slot.as_mut().expect("looked at just now").next;
        }
        nearest
    }
}

impl Olden for Mst {
    const NAME: &'static str = "mst";
    // All tables grow at once.
    const POLICY: Policy = Policy::NewBlock;
    const RESULTS: [u64; 4] = [2431, 2630, 2969, 3744];
    type Input = usize;

    fn input(size: Size) -> usize {
        [260, 512, 1200, 2400][size as usize]
    }

    fn nodes(&vertices: &usize) -> Vec<(Layout, usize)> {
        let entries = vertices * vertices.saturating_sub(1);
        vec![
            (Layout::new::<Vertex>(), vertices),
            (Layout::new::<Table>(), vertices),
            (Layout::new::<Entry>(), entries),
        ]
    }

    /// The list of vertices comes first, and then the table of each.
    fn build<P: Placement>(&vertices: &usize, placement: P) -> Self {
        let numbers = 0..u32::try_from(vertices).expect("a number of vertices is a u32");
        let mut outside = None;
        let mut end = &mut outside;
        let mut before: *const Vertex = ptr::null();
        for number in numbers.clone() {
            let buckets = (0..vertices.div_ceil(4)).map(|_| None).collect();
            let vertex = Vertex {
                number,
                distance: u32::MAX,
                edges: placement.new_near(Table { buckets }, before),
                next: None,
            };
            let vertex = end.insert(placement.new_near(vertex, before));
            before = ptr::from_ref(&**vertex);
            end = &mut vertex.next;
        }
        let mut rest = outside.as_deref_mut();
        while let Some(vertex) = rest {
            let here = ptr::from_ref(&*vertex);
            for other in numbers.clone().filter(|&other| other != vertex.number) {
                let length = length(vertex.number, other);
                vertex.edges.insert(other, length, placement, here);
            }
            rest = vertex.next.as_deref_mut();
        }
        let tree = None;
        Mst { tree, outside }
    }

    /// Vertices, each list in its order, and entries, in the order of the walks.
    fn morph(&mut self, morph: &Morph<'_>) -> Result<(), MorphError> {
        let morph = morph.layout(ccmorph::Layout::DepthFirst);
        for list in [&mut self.tree, &mut self.outside] {
            morph.run(list, Vertex::children)?;
        }
        morph.run(&mut AllChains(self), Entry::children).map(drop)
    }

    /// Returns the length of the tree.
    fn work<P: Placement>(&mut self, _: &usize, placement: P, _: impl Fn(&mut Self)) -> u64 {
        let mut sum = 0;
        let mut joining = self.outside.as_ref().map(|vertex| vertex.number);
        while let Some(vertex) = joining {
            joining = self.step(vertex, placement).map(|(nearest, distance)| {
                sum += u64::from(distance);
                nearest
            });
        }
        sum
    }
}

/// The chains of all tables in the order in which the program walks them: those of bucket 0 of all
/// tables, then those of bucket 1, and so on.
struct AllChains<'g>(&'g mut Mst);

impl Links for AllChains<'_> {
    type Link = Box<Entry>;

    fn show<'a>(&'a mut self, visitor: &mut Visitor<'_, 'a, Box<Entry>>) {
        let mut tables = Vec::new();
        for list in [&mut self.0.tree, &mut self.0.outside] {
            let mut rest = list.as_deref_mut();
            while let Some(vertex) = rest {
                tables.push(vertex.edges.buckets.iter_mut());
                rest = vertex.next.as_deref_mut();
            }
        }
        let buckets = tables.first().map_or(0, ExactSizeIterator::len);
        for _ in 0..buckets {
            for chain in tables.iter_mut().filter_map(Iterator::next) {
                chain.show(visitor);
            }
        }
    }
}
