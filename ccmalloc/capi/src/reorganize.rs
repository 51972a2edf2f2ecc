//! `ccmorph` for C: `ccmalloc.h`.
//!
//! The thesis's interface (T. Chilimbi, *Cache-Conscious Data Structures*, 1999, figure 4-1) has a
//! function that returns a node's children and its parent, but does not say where in the node these
//! pointers lie. A move must change them, so their places are found:
//!
//! ```text
//! places(i) = the offsets at which every node that has an i-th child holds that child's address
//! ```
//!
//! One offset remains for each `i` where nodes are structures of one type; more where a node holds
//! the same pointer twice, and then all of them are changed. If none remains, `next_node` computes
//! what it returns, and nothing is moved. The root stays where it is: the caller keeps its pointer.

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
///   if they are in this library's memory; no other code uses them meanwhile.
/// - `next_node` may be called with each of them and any `i` from 1 to `max_kids`, and -1. It
///   changes nothing.
/// - No code uses pointers into the nodes afterwards, but the root and those that `next_node`
///   returned.
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
    let cache = [cache_sets, cache_blk_size, cache_associativity];
    let result = match (morph_for(cache, color_const), next_node) {
        (Some(morph), Some(next_node)) if max_kids >= 0 => {
            // SAFETY: the caller promises the nodes and `next_node`, which no other code uses.
            unsafe { reorganize(root.cast(), next_node, num_nodes, max_kids, morph) }
        }
        _ => Err(libc::EINVAL),
    };
    errno::set(before);
    result.err().unwrap_or(0)
}

/// The morph for the thesis's cache parameters, `hot_share` being the part of the sets that is for
/// the first nodes alone; `None` when they make no sense.
fn morph_for([sets, block_bytes, ways]: [usize; 3], hot_share: f64) -> Option<Morph<'static>> {
    let mut morph = Morph::new();
    if block_bytes != 0 {
        let block_bytes = u32::try_from(block_bytes).ok()?;
        if !block_bytes.is_power_of_two() || !(8..=65536).contains(&block_bytes) {
            return None;
        }
        morph = morph.layout(ccmorph::Layout::SubtreeCluster { block_bytes });
    }
    if !(0.0..1.0).contains(&hot_share) {
        return None;
    }
    if hot_share > 0.0 {
        let geometry = CacheGeometry::new(sets as u64, block_bytes as u64, ways as u64).ok()?;
        morph = morph.colour_for(geometry, hot_share);
    }
    Some(morph)
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
    if root.is_null() && num_nodes == 0 {
        return Ok(());
    } else if root.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: the caller promises the nodes and `next_node`; `root` is not null.
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

/// The error number for C.
fn error_number(error: MorphError) -> c_int {
    match error {
        MorphError::OutOfMemory { .. } => libc::ENOMEM,
        _ => libc::EINVAL,
    }
}

/// The nodes that a walk over the structure met.
///
/// They have indices in breadth-first order: 0 for the root, which does not move, and `v + 1` for
/// number `v` of the structure.
struct Found {
    root: *mut u8,
    /// All nodes but the root, as yet without their links and their size.
    structure: RawStructure,
    /// By number in the structure: which child of its parent the node is, from 1 on.
    which: Vec<u32>,
    /// By index: what `next_node` returned as the parent.
    backs: Vec<*mut u8>,
    /// Whole words that each node has room for.
    node_words: usize,
    /// The least room of a node other than the root, in bytes.
    room_bytes: usize,
    /// The bits that are set in the address of any node but the root, or in its room in bytes: a
    /// power of two that divides this divides all of these.
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
            Some(number) => self.structure.address(u32::try_from(number).ok()?),
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

    /// Each node that is the parent of another, after that one's index. What is no node does not
    /// move.
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
    /// The alignment is one that all nodes but the root have, so that theirs from `aligned_alloc`
    /// is kept. It divides the room of each, as an alignment of `aligned_alloc` does, so that nodes
    /// need no gaps.
    fn layout(&self) -> Result<Layout, LayoutError> {
        if self.structure.is_empty() {
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
        // SAFETY: all nodes that move have room for this many bytes, and none had a larger
        // alignment that was asked for.
        unsafe { self.structure.set_layout(layout) };
        let words = |which: Which| places.get(which as usize).into_iter().flatten();
        let place =
            |node: *mut u8, word: u16| node.cast::<*mut u8>().wrapping_add(usize::from(word));
        for (number, &which) in (0..).zip(&self.which) {
            let parent = self.node(self.parent(number)).ok_or(libc::EINVAL)?;
            let mut words = words(which);
            let &link = words.next().ok_or(libc::EINVAL)?;
            // SAFETY: the link lies in the node's parent, where it was found to hold this address;
            // each node has one.
            unsafe { self.structure.set_link(number, place(parent, link)) };
            for &word in words {
                // SAFETY: a word of a live node that was found to hold this address, and of no
                // other pointer, since each word holds one address.
                unsafe { self.structure.pointer(place(parent, word)) };
            }
        }
        for (index, to) in core::mem::take(&mut self.backs).into_iter().enumerate() {
            let (Some(from), Some(_)) = (self.node(index), self.index(to)) else {
                continue;
            };
            // The parent may be a child too: the words that are the child's are above.
            let child = self.which_child(index, to);
            for &word in words(PARENT) {
                if child.is_none_or(|child| !words(child).any(|&other| other == word)) {
                    // SAFETY: a word of a live node that was found to hold this address, and is no
                    // child's: those hold others.
                    unsafe { self.structure.pointer(place(from, word)) };
                }
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

/// Walks over all nodes, breadth first. An error if they are not `num_nodes`, unless that is 0, or
/// not a tree.
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
        found.backs.try_reserve(1).map_err(|_| libc::ENOMEM)?;
        found.backs.push(back);
        // The numbers are below 2^32 - 1.
        let parent = index.checked_sub(1).and_then(|at| u32::try_from(at).ok());
        for (which, i) in (1..).zip(1..=max_kids) {
            // SAFETY: a live node, and `i` is from 1 to `max_kids`, which the caller allows.
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

/// For each pointer, the words of a node that hold it, ascending.
type Places = Vec<Vec<u16>>;

/// Where nodes hold the pointers that `next_node` returned. EINVAL when there is one that no word
/// holds in all nodes.
///
/// # Safety
/// - All nodes are live and have `node_words` words.
unsafe fn find_places(found: &Found) -> Result<Places, c_int> {
    // `max_kids` may be far larger.
    let pointers = found.which.iter().max().map_or(0, |&which| which as usize) + 1;
    let mut places = Places::new();
    (places.try_reserve_exact(pointers)).map_err(|_| libc::ENOMEM)?;
    places.resize(pointers, Vec::new());
    let children = (0..).zip(&found.which).filter_map(|(number, &which)| {
        let kid = found.structure.address(number)?;
        Some((found.parent(number), which, kid))
    });
    let backs = found.backs().map(|(index, to)| (index, PARENT, to));
    for (index, which, to) in children.chain(backs) {
        let (Some(from), Some(words)) = (found.node(index), places.get_mut(which as usize)) else {
            return Err(libc::EINVAL);
        };
        let holds = |&word: &u16| {
            // SAFETY: a word of a live node. To this side of the C interface, memory is made of
            // bytes that hold values, padding too.
            to == unsafe { from.cast::<*mut u8>().add(usize::from(word)).read() }
        };
        if words.is_empty() {
            (words.try_reserve_exact(found.node_words)).map_err(|_| libc::ENOMEM)?;
            words.extend((0..).take(found.node_words).filter(holds));
        } else {
            words.retain(holds);
        }
        if words.is_empty() {
            return Err(libc::EINVAL);
        }
    }
    Ok(places)
}
