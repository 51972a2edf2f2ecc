//! `ccmorph` for C: `ccmalloc.h`.
//!
//! The thesis's interface (T. Chilimbi, *Cache-Conscious Data Structures*, 1999, figure 4-1) has a
//! function that tells a node's children and its parent, and no word on where in the node the
//! pointers to these lie. To move a node one must change them, so their places are found out:
//!
//! ```text
//! places(i) = the offsets at which every node that has an i-th child holds that child's address
//! ```
//!
//! One offset remains for each `i` where nodes are structures of one type; more where a node holds
//! the same pointer twice, and then all of them are changed. None remaining means that `next_node`
//! computes what it returns, and nothing is moved.
//!
//! The root stays where it is: the figure's caller keeps its pointer to it.

use core::alloc::{Layout, LayoutError};
use core::ffi::{c_double, c_int, c_void};
use core::ptr::null_mut;

use allocator::raw;
use ccmorph::{CacheGeometry, Morph, MorphError, RawStructure};

use crate::errno;

/// The largest node that can be moved, and the largest alignment.
const OBJECT_BYTES_MAX: usize = allocator::Region::OBJECT_BYTES_MAX;
const NODE_WORDS_MAX: usize = OBJECT_BYTES_MAX / WORD_BYTES;
const WORD_BYTES: usize = size_of::<usize>();

/// `next_node` of `ccmalloc.h`.
type NextNode = unsafe extern "C" fn(node: *mut c_void, i: c_int) -> *mut c_void;

/// Lays the nodes of a structure out again; 0, EINVAL or ENOMEM. `errno` stays as it is.
///
/// # Safety
/// - `root` is null or a live object of this library, all others that `next_node` leads to as well
///   if they are in this library's memory; none is used by anybody else meanwhile.
/// - `next_node` may be called with each of them and any `i` from 1 to `max_kids`, and -1. It
///   changes nothing.
/// - No code uses pointers into the nodes afterwards, but the root and those that `next_node` told
///   of.
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
            morph = morph.layout(ccmorph::Layout::SubtreeCluster { block_bytes });
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
    let places = unsafe { find_places(&found) }?;
    // SAFETY: the nodes are live, and these are the places of their pointers.
    let structure = unsafe { found.into_structure(&places) }?;
    drop(places);
    // SAFETY: the structure is complete, and the caller promises that no other code uses it.
    let morphed = unsafe { morph.run_structure(structure) };
    morphed.map(drop).map_err(error_number)
}

/// What the C interface gives for an error.
fn error_number(error: MorphError) -> c_int {
    match error {
        MorphError::OutOfMemory { .. } => libc::ENOMEM,
        _ => libc::EINVAL,
    }
}

/// What a walk over the structure met.
///
/// Nodes are told by their index in breadth-first order: 0 for the root, which does not move, and
/// `v + 1` for number `v` of the structure.
struct Found {
    root: *mut u8,
    /// All nodes but the root, as yet without their links and their size.
    structure: RawStructure,
    /// By number in the structure: which child of its parent the node is, from 1 on.
    which: Vec<u32>,
    /// By index: what is told as the parent. It may end early, where nothing follows.
    backs: Vec<*mut u8>,
    /// Whole words that each node has room for.
    node_words: usize,
    /// The room that any node but the root has at least, in bytes.
    room_bytes: usize,
    /// The bits that are set in the address of any node but the root, or in its room in bytes: what
    /// divides this, divides all of these.
    extent_bits: usize,
}

/// Which pointer of a node: 0 for the parent, `i` for the i-th child.
type Which = u32;
const PARENT: Which = 0;

impl Found {
    /// The node with this index.
    fn node(&self, index: usize) -> Option<*mut u8> {
        match index.checked_sub(1) {
            None => Some(self.root),
            Some(number) => self.structure.nodes().get(number).copied(),
        }
    }

    /// The index of the node that begins at this address.
    fn index(&self, address: *const u8) -> Option<usize> {
        if address == self.root {
            return Some(0);
        }
        self.structure.number(address).map(index_of)
    }

    /// The index of a node's parent; 0 for the root as well.
    fn parent(&self, number: u32) -> usize {
        self.structure.parent(number).map_or(0, index_of)
    }

    /// What is told as a parent and is a node, with the index of who tells it. All else does not
    /// move, wherever it is told from.
    fn backs(&self) -> impl Iterator<Item = (usize, *mut u8)> {
        let backs = self.backs.iter().copied().enumerate();
        backs.filter(|&(_, to)| !to.is_null() && self.index(to).is_some())
    }

    /// Which child of the node with this index begins at this address.
    fn which_child(&self, index: usize, address: *const u8) -> Option<Which> {
        let number = self.structure.number(address)?;
        if self.parent(number) != index {
            return None;
        }
        self.which.get(number as usize).copied()
    }

    /// Size and alignment of the new places.
    ///
    /// The alignment is one that all nodes but the root have, so that what an `aligned_alloc` gave
    /// them is kept. It is no larger than divides the room of each of them. An alignment that was
    /// asked for does: the allocator gives room in multiples of it. And what just came about, such
    /// as a node at each multiple of 4096, takes no memory then, as nodes without gaps between them
    /// have it.
    fn layout(&self) -> Result<Layout, LayoutError> {
        if self.structure.is_empty() {
            // Nothing moves.
            return Ok(Layout::new::<usize>());
        }
        let bytes = self.room_bytes;
        let align = 1 << (self.extent_bits | OBJECT_BYTES_MAX).trailing_zeros();
        Layout::from_size_align(bytes, raw::natural_align(bytes).max(align))
    }

    /// The structure with all of its links and pointers.
    ///
    /// # Safety
    /// - All nodes are live and have the room that was found.
    /// - `places` are those of this structure.
    unsafe fn into_structure(mut self, places: &Places) -> Result<RawStructure, c_int> {
        let layout = self.layout().map_err(|_| libc::EINVAL)?;
        // SAFETY: all nodes that move have room for this many bytes, and none had more of an
        // alignment that anybody asked for.
        unsafe { self.structure.set_layout(layout) };
        let place = |node: *mut u8, word| node.wrapping_add(word * WORD_BYTES).cast::<*mut u8>();
        for (number, &which) in (0..).zip(&self.which) {
            let Some(parent) = self.node(self.parent(number)) else {
                return Err(libc::EINVAL);
            };
            let mut words = places.offsets(which);
            let Some(link) = words.next() else {
                return Err(libc::EINVAL);
            };
            // SAFETY: the link lies in the node's parent, where it was found to hold this address;
            // each node has one.
            unsafe { self.structure.set_link(number, place(parent, link)) };
            for word in words {
                // SAFETY: a word of a live node that was found to hold this address, and of no
                // other pointer, since each word holds one address.
                unsafe { self.structure.pointer(place(parent, word)) };
            }
        }
        for (index, to) in core::mem::take(&mut self.backs).into_iter().enumerate() {
            let (Some(from), Some(_)) = (self.node(index), self.index(to)) else {
                continue;
            };
            // What is told as the parent may be a child too: the words that are the child's are
            // above.
            let childs = self.which_child(index, to);
            let is_childs = |word: &usize| childs.is_some_and(|child| places.has(child, *word));
            for word in places.offsets(PARENT).filter(|word| !is_childs(word)) {
                // SAFETY: a word of a live node that was found to hold this address, and is no
                // child's: those hold others.
                unsafe { self.structure.pointer(place(from, word)) };
            }
        }
        self.structure.check().map_err(error_number)?;
        Ok(self.structure)
    }
}

/// The index of the node with this number in the structure.
fn index_of(number: u32) -> usize {
    number as usize + 1
}

/// Goes over all nodes, breadth first. An error when there are others than `num_nodes` of them,
/// unless that is 0, or they make no tree.
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
        usize::MAX
    } else {
        num_nodes
    };
    let mut found = Found {
        root,
        structure: RawStructure::new(Layout::new::<()>()),
        which: Vec::new(),
        backs: Vec::new(),
        node_words: usize::MAX,
        room_bytes: usize::MAX,
        extent_bits: 0,
    };
    let mut index = 0;
    while let Some(node) = found.node(index) {
        if !allocator::contains(node) {
            return Err(libc::EINVAL);
        }
        // SAFETY: in this library's memory, hence live by the caller's promise.
        let room_bytes = unsafe { raw::usable_bytes(node) };
        found.node_words = found.node_words.min(room_bytes / WORD_BYTES);
        if index > 0 {
            found.room_bytes = found.room_bytes.min(room_bytes);
            found.extent_bits |= node.addr() | room_bytes;
        }
        // SAFETY: a live node and an index that is allowed (the caller's promise).
        let back: *mut u8 = unsafe { next_node(node.cast(), -1) }.cast();
        if !back.is_null() {
            let more = index + 1 - found.backs.len();
            (found.backs.try_reserve(more)).map_err(|_| libc::ENOMEM)?;
            found.backs.resize(index, null_mut());
            found.backs.push(back);
        }
        // The numbers are below 2^32 - 1.
        let parent = index.checked_sub(1).and_then(|at| u32::try_from(at).ok());
        for (which, i) in (1..).zip(1..=max_kids) {
            // SAFETY: as above.
            let kid: *mut u8 = unsafe { next_node(node.cast(), i) }.cast();
            if kid.is_null() {
                continue;
            }
            if kid == root || found.structure.len() + 1 >= nodes_max {
                return Err(libc::EINVAL);
            }
            found.which.try_reserve(1).map_err(|_| libc::ENOMEM)?;
            // SAFETY: live by the caller's promise, who lets it move; size and link are set before
            // a morph begins.
            unsafe { found.structure.node(kid, parent, null_mut()) };
            found.structure.check().map_err(error_number)?;
            found.which.push(which);
        }
        index += 1;
    }
    // All nodes are of one size, so that the smallest room shows when that is too large.
    if num_nodes != 0 && index != num_nodes || found.node_words > NODE_WORDS_MAX {
        return Err(libc::EINVAL);
    }
    Ok(found)
}

/// For each pointer, the words of a node that hold it: a bit each.
struct Places(Vec<[u64; NODE_WORDS_MAX / 64]>);

impl Places {
    /// The offsets of this pointer, in words, ascending.
    fn offsets(&self, which: Which) -> impl Iterator<Item = usize> {
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

    /// Whether this pointer lies at that offset, in words.
    fn has(&self, which: Which, word: usize) -> bool {
        let bits = (self.0.get(which as usize)).and_then(|bits| bits.get(word / 64));
        bits.is_some_and(|bits| bits >> (word % 64) & 1 == 1)
    }

    /// Keeps of a pointer's words those that hold `to` in this node; whether there are any.
    ///
    /// # Safety
    /// - The node is live and has `node_words` words.
    unsafe fn narrow(
        &mut self,
        which: Which,
        (node, node_words): (*mut u8, usize),
        to: *mut u8,
    ) -> bool {
        let Some(bits) = self.0.get_mut(which as usize) else {
            return false;
        };
        let mut any = 0;
        for (at, bits) in bits.iter_mut().enumerate() {
            let mut rest = *bits;
            while rest != 0 {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let word = at * 64 + bit;
                // SAFETY: a word of a live node. To this side of the C interface, memory is made of
                // bytes that hold values, padding too.
                let holds =
                    word < node_words && unsafe { node.cast::<*mut u8>().add(word).read() } == to;
                if !holds {
                    *bits &= !(1 << bit);
                }
            }
            any |= *bits;
        }
        any != 0
    }
}

/// Where nodes hold the pointers that `next_node` told of. EINVAL when there is one of which no
/// word holds it in all nodes.
///
/// # Safety
/// - All nodes are live and have `node_words` words.
unsafe fn find_places(found: &Found) -> Result<Places, c_int> {
    // As many as nodes have, which may be far from what the caller allows for.
    let pointers = found.which.iter().max().map_or(0, |&which| which as usize) + 1;
    let mut places = Vec::new();
    (places.try_reserve_exact(pointers)).map_err(|_| libc::ENOMEM)?;
    places.resize(pointers, [u64::MAX; NODE_WORDS_MAX / 64]);
    let mut places = Places(places);
    let nodes = (0..).zip(found.structure.nodes());
    let children = nodes
        .zip(&found.which)
        .map(|((number, &kid), &which)| (found.parent(number), which, kid));
    let backs = found.backs().map(|(index, to)| (index, PARENT, to));
    for (index, which, to) in children.chain(backs) {
        let from = found.node(index).ok_or(libc::EINVAL)?;
        // SAFETY: a live node of this many words (the caller's promise).
        if !unsafe { places.narrow(which, (from, found.node_words), to) } {
            return Err(libc::EINVAL);
        }
    }
    Ok(places)
}
