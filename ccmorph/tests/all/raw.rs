//! Structures that are told by address: nodes whose links and sizes come later, alignments, and
//! what is refused.

use ccmodel::Layout;
use ccmorph::{Morph, MorphError, RawStructure};
use std::alloc::Layout as Extent;
use std::ptr::null_mut;

/// A node of any size, of which the first words are known.
#[repr(C)]
struct Head {
    next: *mut Head,
    previous: *mut Head,
    key: usize,
}

/// A list of nodes of this extent, linked both ways.
fn list(nodes: usize, extent: Extent) -> Vec<*mut Head> {
    let nodes: Vec<*mut Head> = (0..nodes)
        .map(|_| ccmalloc::raw::allocate(extent.size(), extent.align(), None).cast())
        .collect();
    for (key, &node) in nodes.iter().enumerate() {
        assert!(!node.is_null());
        let neighbour =
            |at: Option<usize>| at.and_then(|at| nodes.get(at)).map_or(null_mut(), |&it| it);
        // SAFETY: a fresh object of this extent, which has room for the words of a head.
        unsafe {
            node.cast::<u8>().write_bytes(7, extent.size());
            node.write(Head {
                next: neighbour(key.checked_add(1)),
                previous: neighbour(key.checked_sub(1)),
                key,
            });
        }
    }
    nodes
}

/// Tells nodes first, then links, then the extent; the first node's link is `head`.
///
/// # Safety
///
/// `head` and `nodes` are as [`list`] makes them; nothing else uses them until the structure is
/// morphed.
unsafe fn tell(head: *mut *mut Head, nodes: &[*mut Head], extent: Extent) -> RawStructure {
    let mut structure = RawStructure::new(Extent::new::<()>());
    for (number, &node) in (0u32..).zip(nodes) {
        assert_eq!(structure.number(node.cast()), None);
        let parent = number.checked_sub(1);
        // SAFETY: a live node, of which link and extent follow.
        let told = unsafe { structure.node(node.cast(), parent, null_mut()) };
        assert_eq!(told, Some(number));
        assert_eq!(structure.number(node.cast()), Some(number));
        assert_eq!(structure.parent(number), parent);
        assert_eq!(structure.parent(number + 1), None);
    }
    assert!(
        structure
            .nodes()
            .iter()
            .zip(nodes)
            .all(|(told, node)| *told == node.cast())
    );
    let mut link = head;
    for (number, &node) in (0u32..).zip(nodes) {
        // SAFETY: the words of live nodes, and the head: each is told once.
        unsafe {
            structure.set_link(number, link.cast());
            structure.pointer((&raw mut (*node).previous).cast());
            link = &raw mut (*node).next;
        }
    }
    // SAFETY: the extent of all nodes.
    unsafe { structure.set_layout(extent) };
    structure
}

/// Checks a list, its places included, and frees it.
///
/// # Safety
///
/// It is one of live nodes of this extent, and not used any more.
unsafe fn finish(mut head: *mut Head, nodes: usize, extent: Extent) {
    let mut previous = null_mut();
    for key in 0..nodes {
        assert!(head.addr().is_multiple_of(extent.align()), "{extent:?}");
        // SAFETY: a live node; all of its bytes were written.
        let (node, rest) = unsafe {
            let rest = extent.size() - size_of::<Head>();
            (
                &*head,
                std::slice::from_raw_parts(head.add(1).cast::<u8>(), rest),
            )
        };
        assert_eq!((node.key, node.previous), (key, previous));
        assert!(rest.iter().all(|&byte| byte == 7));
        let next = node.next;
        if !previous.is_null() {
            // SAFETY: each node is freed once, after the last look at it.
            unsafe { ccmalloc::raw::deallocate(previous.cast()) };
        }
        (previous, head) = (head, next);
    }
    assert!(head.is_null());
    // SAFETY: the last one.
    unsafe { ccmalloc::raw::deallocate(previous.cast()) };
}

#[test]
fn links_and_extents_may_come_after_the_nodes() {
    for (size, align) in [
        (24, 8),
        (40, 16),
        (48, 64),
        (64, 64),
        (192, 64),
        (256, 1024),
        (4096, 4096),
    ] {
        let extent = Extent::from_size_align(size, align).unwrap();
        let nodes = list(300, extent);
        let mut head = nodes[0];
        for layout in [
            Layout::DepthFirst,
            Layout::VanEmdeBoas,
            Layout::SubtreeCluster { block_bytes: 8 },
        ] {
            let mut nodes = vec![head];
            // SAFETY: a live list, and its head, which nothing else uses.
            unsafe {
                while let Some(&last) = nodes.last()
                    && !(*last).next.is_null()
                {
                    nodes.push((*last).next);
                }
                let structure = tell(&raw mut head, &nodes, extent);
                let report = Morph::new()
                    .layout(layout)
                    .run_structure(structure)
                    .unwrap();
                assert_eq!((report.nodes, report.placed), (300, true));
            }
            assert!(!nodes.contains(&head));
        }
        // SAFETY: the list as the morphs left it.
        unsafe { finish(head, 300, extent) };
    }
}

#[test]
fn alignments_that_cannot_be_placed_are_refused() {
    let extent = Extent::from_size_align(24, 16).unwrap();
    let nodes = list(20, extent);
    let mut head = nodes[0];
    for align in [8192, 1 << 20] {
        let large = Extent::from_size_align(24, align).unwrap();
        // SAFETY: a live list; that the nodes are not aligned so does not matter to a morph that is
        // refused.
        let refused = unsafe { Morph::new().run_structure(tell(&raw mut head, &nodes, large)) };
        let expected = MorphError::NodeTooLarge {
            node_bytes: align,
            node_bytes_max: 4096,
        };
        assert_eq!(refused.unwrap_err(), expected);
    }
    assert_eq!(head, nodes[0]);
    // SAFETY: nothing has moved.
    unsafe { finish(head, 20, extent) };
}

#[test]
fn a_node_that_is_told_twice_is_refused() {
    let extent = Extent::new::<Head>();
    let nodes = list(20, extent);
    let mut head = nodes[0];
    // SAFETY: a live list.
    let mut structure = unsafe { tell(&raw mut head, &nodes, extent) };
    assert_eq!(structure.check(), Ok(()));
    // SAFETY: a live node; nothing will move.
    let told = unsafe { structure.node(nodes[7].cast(), Some(3), (&raw mut head).cast()) };
    assert_eq!((told, structure.nodes().len()), (None, 20));
    assert_eq!(structure.check(), Err(MorphError::SharedNode));
    // SAFETY: as above.
    let refused = unsafe { Morph::new().run_structure(structure) };
    assert_eq!(refused.unwrap_err(), MorphError::SharedNode);
    assert_eq!(head, nodes[0]);
    // SAFETY: nothing has moved.
    unsafe { finish(head, 20, extent) };
}

#[test]
fn roots_may_come_between_their_elders_children() {
    // A root with two children, between which another root is told: no lists.
    let extent = Extent::new::<Head>();
    let nodes = list(4, extent);
    let mut roots = [nodes[0], nodes[2]];
    let links = nodes.iter().zip([0, 1, 2, 3]);
    for (&node, key) in links {
        // SAFETY: live nodes of this test's.
        unsafe { ((*node).next, (*node).previous, (*node).key) = (null_mut(), null_mut(), key) };
    }
    let mut structure = RawStructure::new(extent);
    // SAFETY: live nodes; the places of the roots, and those in the first of them, which get to own
    // the other two.
    unsafe {
        let first = nodes[0];
        ((*first).next, (*first).previous) = (nodes[1], nodes[3]);
        structure.node(nodes[0].cast(), None, (&raw mut roots[0]).cast());
        structure.node(nodes[1].cast(), Some(0), (&raw mut (*first).next).cast());
        structure.node(nodes[2].cast(), None, (&raw mut roots[1]).cast());
        structure.node(
            nodes[3].cast(),
            Some(0),
            (&raw mut (*first).previous).cast(),
        );
    }
    // SAFETY: as above.
    let report = unsafe {
        Morph::new()
            .layout(Layout::DepthFirst)
            .run_structure(structure)
    };
    assert_eq!(report.unwrap().nodes, 4);
    // SAFETY: the roots and what they own, where they lie now; each is freed once.
    unsafe {
        let [first, second] = roots;
        let (next, previous) = ((*first).next, (*first).previous);
        let order = [first, next, previous, second];
        assert_eq!(order.map(|node| (*node).key), [0, 1, 3, 2]);
        assert!(order.is_sorted(), "depth-first: {order:?}");
        for node in order {
            ccmalloc::raw::deallocate(node.cast());
        }
    }
}
