//! `ccmorph` for C: `ccmalloc.h`.
//!
//! The thesis's interface (T. Chilimbi, *Cache-Conscious Data Structures*, 1999, figure 4-1) has a function that tells a node's children and
//! its parent, and no word on where in the node the pointers to these lie. To move a node one must change them, so their places are found out:
//!
//! ```text
//! places(i) = the offsets at which every node that has an i-th child holds that child's address
//! ```
//!
//! One offset remains for each `i` where nodes are structures of one type; more where a node holds the same pointer twice, and then all of them are changed.
//! None remaining means that `next_node` computes what it returns, and nothing is moved.
//!
//! The root stays where it is: the figure's caller keeps its pointer to it.

use core::ffi::{c_double, c_int, c_void};

use allocator::raw;
use ccmorph::{CacheGeometry, Layout, Morph, MorphError, RawStructure};

use crate::errno;

/// The largest node that can be moved, in words.
const NODE_WORDS_MAX: usize = allocator::Region::OBJECT_BYTES_MAX / WORD_BYTES;
const WORD_BYTES: usize = size_of::<usize>();

/// `next_node` of `ccmalloc.h`.
type NextNode = unsafe extern "C" fn(node: *mut c_void, i: c_int) -> *mut c_void;

/// Lays the nodes of a structure out anew; 0, EINVAL or ENOMEM. `errno` stays as it is.
///
/// # Safety
/// - `root` is null or a live object of this library, all others that `next_node` leads to as well if they are in this library's memory; none
///   is used by anybody else meanwhile.
/// - `next_node` may be called with each of them and any `i` from 1 to `max_kids`, and -1. It changes nothing.
/// - Nobody uses pointers into the nodes afterwards, but the root and those that `next_node` told of.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ccmorph(
    root: *mut c_void,
    next_node: Option<NextNode>,
    num_nodes: usize,
    max_kids: c_int,
    cache_sets: usize,
    cache_blk_size: usize,
    cache_associativity: usize,
    color_const: c_double,
) -> c_int {
    let before = errno::get();
    let cache = Cache {
        sets: cache_sets,
        block_bytes: cache_blk_size,
        associativity: cache_associativity,
        hot_share: color_const,
    };
    let result = match (cache.morph(), next_node) {
        (Some(morph), Some(next_node)) if max_kids >= 0 => {
            // SAFETY: the caller's promise.
            unsafe { reorganize(root.cast(), next_node, num_nodes, max_kids, morph) }
        }
        _ => Err(libc::EINVAL),
    };
    errno::set(before);
    result.err().unwrap_or(0)
}

/// The cache parameters, as in the thesis.
struct Cache {
    sets: usize,
    block_bytes: usize,
    associativity: usize,
    /// The part of the sets that is for the first nodes alone.
    hot_share: f64,
}

impl Cache {
    /// The morph for these parameters; `None` when they make no sense.
    fn morph(&self) -> Option<Morph<'static>> {
        let mut morph = Morph::new();
        if self.block_bytes != 0 {
            let block_bytes = u32::try_from(self.block_bytes).ok()?;
            if !block_bytes.is_power_of_two() || !(8..=65536).contains(&block_bytes) {
                return None;
            }
            morph = morph.layout(Layout::SubtreeCluster { block_bytes });
        }
        if !(0.0..1.0).contains(&self.hot_share) {
            return None;
        }
        if self.hot_share > 0.0 {
            let [sets, block_bytes, ways] =
                [self.sets, self.block_bytes, self.associativity].map(|number| number as u64);
            let geometry = CacheGeometry::new(sets, block_bytes, ways).ok()?;
            morph = morph.colour_for(geometry, self.hot_share);
        }
        Some(morph)
    }
}

/// A node that another one led to.
#[derive(Clone, Copy)]
struct Edge {
    /// The number of the node that holds the pointer.
    from: u32,
    /// Which pointer, an index into the places: 0 for the parent, `i` for the i-th child.
    which: u32,
    to: *mut u8,
}

/// # Safety
/// - As for [`ccmorph`].
unsafe fn reorganize(
    root: *mut u8,
    next_node: NextNode,
    num_nodes: usize,
    max_kids: c_int,
    morph: Morph<'static>,
) -> Result<(), c_int> {
    if root.is_null() {
        return if num_nodes == 0 {
            Ok(())
        } else {
            Err(libc::EINVAL)
        };
    }
    // SAFETY: the caller's promise.
    let found = unsafe { walk(root, next_node, num_nodes, max_kids) }?;
    // SAFETY: the nodes are live, and have this many words.
    let places = unsafe { find_places(&found) }.ok_or(libc::EINVAL)?;
    let bytes = found.node_words * WORD_BYTES;
    let layout = core::alloc::Layout::from_size_align(bytes, raw::natural_align(bytes));
    let mut structure = RawStructure::new(layout.map_err(|_| libc::EINVAL)?);

    // By node number here, the number in the structure; the root has none.
    let mut numbers: Vec<Option<u32>> = vec![None; found.nodes.len()];
    // Children are met in the order in which they were numbered.
    let mut next = 1;
    let mut edges = found.edges.iter();
    while let Some(edge) = edges.next() {
        // What is told as the parent but owned as a child: the words that are the child's are changed as such.
        let mut siblings = edges
            .as_slice()
            .iter()
            .take_while(|other| edge.which == 0 && other.from == edge.from);
        let child = siblings.find(|other| other.to == edge.to);
        let is_childs = |word: &usize| {
            child.is_some_and(|child| places.offsets(child.which).any(|other| other == *word))
        };
        let (Some(&from), Some(&parent)) = (
            found.nodes.get(edge.from as usize),
            numbers.get(edge.from as usize),
        ) else {
            return Err(libc::EINVAL);
        };
        let mut words = places
            .offsets(edge.which)
            .filter(|word| !is_childs(word))
            .map(|word| from.wrapping_add(word * WORD_BYTES).cast::<*mut u8>());
        if edge.which > 0 {
            let Some(link) = words.next() else {
                return Err(libc::EINVAL);
            };
            // SAFETY: a live object of this library, met once; the link lies in its parent, where it was found to hold this address.
            let number = unsafe { structure.node(edge.to, parent, link) };
            if let (Some(slot), Some(number)) = (numbers.get_mut(next), number) {
                *slot = Some(number);
            }
            next += 1;
        }
        for place in words {
            // SAFETY: a word of a live node that was found to hold this address, and of no other pointer, since each word holds one address.
            unsafe { structure.pointer(place) };
        }
    }
    // SAFETY: the structure is complete, and the caller promises that nobody else uses it.
    match unsafe { morph.run_structure(structure) } {
        Ok(_) => Ok(()),
        Err(MorphError::OutOfMemory { .. }) => Err(libc::ENOMEM),
        Err(_) => Err(libc::EINVAL),
    }
}

/// What a walk over the structure met.
struct Found {
    /// All nodes, the root first, in breadth-first order.
    nodes: Vec<*mut u8>,
    /// What they lead to, in the order of the nodes.
    edges: Vec<Edge>,
    /// Whole words that each node has room for.
    node_words: usize,
}

/// Goes over all nodes, breadth first. An error when there are others than `num_nodes` of them, unless that is 0, or they make no tree.
///
/// # Safety
/// - As for [`ccmorph`].
unsafe fn walk(
    root: *mut u8,
    next_node: NextNode,
    num_nodes: usize,
    max_kids: c_int,
) -> Result<Found, c_int> {
    let nodes_max = if num_nodes == 0 {
        u32::MAX as usize - 1
    } else {
        num_nodes
    };
    let mut found = Found {
        nodes: vec![root],
        edges: Vec::new(),
        node_words: usize::MAX,
    };
    let mut met: std::collections::HashSet<usize> = [root.addr()].into();
    let mut number = 0u32;
    while let Some(&node) = found.nodes.get(number as usize) {
        if !allocator::contains(node) {
            return Err(libc::EINVAL);
        }
        // SAFETY: in this library's memory, hence live by the caller's promise.
        let words = unsafe { raw::usable_bytes(node) } / WORD_BYTES;
        found.node_words = found.node_words.min(words);
        for (which, i) in (0..).zip(core::iter::once(-1).chain(1..=max_kids)) {
            // SAFETY: a live node and an index that is allowed (the caller's promise).
            let to: *mut u8 = unsafe { next_node(node.cast(), i) }.cast();
            if to.is_null() {
                continue;
            }
            if which > 0 {
                if found.nodes.len() >= nodes_max || !met.insert(to.addr()) {
                    return Err(libc::EINVAL);
                }
                found.nodes.push(to);
            }
            found.edges.push(Edge {
                from: number,
                which,
                to,
            });
        }
        number += 1;
    }
    // All nodes are of one size, so that the smallest room shows when that is too large.
    if num_nodes != 0 && found.nodes.len() != num_nodes || found.node_words > NODE_WORDS_MAX {
        return Err(libc::EINVAL);
    }
    // Parents that are no nodes of the structure do not move, wherever they are told from.
    (found.edges).retain(|edge| edge.which > 0 || met.contains(&edge.to.addr()));
    Ok(found)
}

/// For each pointer, the words of a node that hold it: a bit each.
struct Places(Vec<[u64; NODE_WORDS_MAX / 64]>);

impl Places {
    /// The offsets of pointer `which`, in words, ascending.
    fn offsets(&self, which: u32) -> impl Iterator<Item = usize> {
        let bits = self.0.get(which as usize);
        bits.into_iter()
            .flatten()
            .enumerate()
            .flat_map(|(at, &bits)| {
                (0..64)
                    .filter(move |bit| bits >> bit & 1 == 1)
                    .map(move |bit| at * 64 + bit)
            })
    }
}

/// Where nodes hold the pointers that `next_node` told of. `None` when there is one of which no word holds it in all nodes.
///
/// # Safety
/// - All nodes are live and have `node_words` words.
unsafe fn find_places(found: &Found) -> Option<Places> {
    // As many as nodes have, which may be far from what the caller allows for.
    let pointers = (found.edges.iter().map(|edge| edge.which as usize + 1).max()).unwrap_or(0);
    let mut places = Vec::new();
    places.try_reserve_exact(pointers).ok()?;
    places.resize(pointers, [u64::MAX; NODE_WORDS_MAX / 64]);
    let mut places = Places(places);
    for edge in &found.edges {
        let node = *found.nodes.get(edge.from as usize)?;
        let bits = places.0.get_mut(edge.which as usize)?;
        let mut any = 0;
        for (at, bits) in bits.iter_mut().enumerate() {
            let mut rest = *bits;
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let word = at * 64 + bit;
                // SAFETY: a word of a live node. To this side of the C interface, memory is made of bytes that hold values, padding too.
                let holds = word < found.node_words
                    && unsafe { node.cast::<*mut u8>().add(word).read() } == edge.to;
                if !holds {
                    *bits &= !(1 << bit);
                }
            }
            any |= *bits;
        }
        if any == 0 {
            return None;
        }
    }
    Some(places)
}
