//! Structures that are described by address: nodes whose links and sizes come later, alignments,
//! and what is refused.

use ccmorph::{Layout, Morph, MorphError, RawStructure};
use std::alloc::Layout as Extent;
use std::ptr::null_mut;

/// The first words of a node of any size.
#[repr(C)]
struct Head {
    next: *mut Head,
    previous: *mut Head,
    key: usize,
}

/// A list of nodes of this extent, linked both ways.
fn list(nodes: usize, extent: Extent) -> Vec<*mut Head> {
    let allocate = |_| ccmalloc::raw::allocate(extent.size(), extent.align(), None).cast();
    let nodes: Vec<*mut Head> = (0..nodes).map(allocate).collect();
    for (key, &node) in nodes.iter().enumerate() {
        assert!(!node.is_null());
        // SAFETY: a fresh object of this extent, which has room for the words of a head.
        unsafe {
            node.cast::<u8>().write_bytes(7, extent.size());
            node.write(Head {
                next: nodes.get(key + 1).copied().unwrap_or_default(),
                previous: nodes.get(key.wrapping_sub(1)).copied().unwrap_or_default(),
                key,
            });
        }
    }
    nodes
}

/// Adds nodes first, then links, then the extent; the first node's link is `head`.
///
/// # Safety
/// `head` and `nodes` are as [`list`] makes them; nothing else uses them until the structure is
/// morphed.
unsafe fn describe(head: *mut *mut Head, nodes: &[*mut Head], extent: Extent) -> RawStructure {
    let mut structure = RawStructure::new(Extent::new::<()>());
    for (number, &node) in (0u32..).zip(nodes) {
        assert_eq!(structure.number(node.cast()), None);
        let parent = number.checked_sub(1);
        // SAFETY: a live node, whose link and extent follow.
        let added = unsafe { structure.node(node.cast(), parent, null_mut()) };
        assert_eq!(added, Some(number));
        assert_eq!(structure.address(number), Some(node.cast()));
        assert_eq!(structure.number(node.cast()), Some(number));
        let parents = [number, number + 1].map(|number| structure.parent(number));
        assert_eq!(parents, [parent, None]);
    }
    let mut link = head;
    for (number, &node) in (0u32..).zip(nodes) {
        // SAFETY: the words of live nodes, and the head: each is added once.
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

/// Checks a list, its addresses included, and frees it.
///
/// # Safety
/// It is one of live nodes of this extent, and not used any more.
unsafe fn finish(mut head: *mut Head, nodes: usize, extent: Extent) {
    let (mut previous, mut all) = (null_mut(), Vec::new());
    while !head.is_null() {
        assert!(head.addr().is_multiple_of(extent.align()), "{extent:?}");
        // SAFETY: a live node, all of whose bytes were written.
        let (node, bytes) = unsafe {
            (
                &*head,
                std::slice::from_raw_parts(head.cast::<u8>(), extent.size()),
            )
        };
        assert_eq!((node.key, node.previous), (all.len(), previous));
        assert!(bytes[size_of::<Head>()..].iter().all(|&byte| byte == 7));
        all.push(head);
        (previous, head) = (head, node.next);
    }
    assert_eq!(all.len(), nodes);
    for node in all {
        // SAFETY: each node is freed once.
        unsafe { ccmalloc::raw::deallocate(node.cast()) };
    }
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
        let mut head = list(300, extent)[0];
        for layout in [
            Layout::DepthFirst,
            Layout::VanEmdeBoas,
            Layout::SubtreeCluster { block_bytes: 8 },
        ] {
            // SAFETY: null, or the next node of a live list.
            let next = |node: &*mut Head| Some(unsafe { (**node).next }).filter(|it| !it.is_null());
            let nodes: Vec<_> = std::iter::successors(Some(head), next).collect();
            // SAFETY: a live list and its head, which nothing else uses.
            let report = unsafe {
                let structure = describe(&raw mut head, &nodes, extent);
                Morph::new()
                    .layout(layout)
                    .run_structure(structure)
                    .unwrap()
            };
            assert_eq!((report.nodes, report.placed), (300, true));
            assert!(!nodes.contains(&head));
        }
        // SAFETY: the list as the morphs left it.
        unsafe { finish(head, 300, extent) };
    }
}

#[test]
fn large_alignments_and_nodes_that_are_added_twice_are_errors() {
    let extent = Extent::from_size_align(24, 16).unwrap();
    let nodes = list(20, extent);
    let mut head = nodes[0];
    for align in [8192, 1 << 20] {
        let large = Extent::from_size_align(24, align).unwrap();
        // SAFETY: a live list; the alignment of the nodes does not matter to a morph that is
        // refused.
        let refused = unsafe { Morph::new().run_structure(describe(&raw mut head, &nodes, large)) };
        let expected = MorphError::NodeTooLarge {
            node_bytes: align,
            node_bytes_max: 4096,
        };
        assert_eq!(refused.unwrap_err(), expected);
    }
    // SAFETY: a live list, and one of its nodes; nothing will move.
    let (structure, added) = unsafe {
        let mut structure = describe(&raw mut head, &nodes, extent);
        assert_eq!(structure.check(), Ok(()));
        let added = structure.node(nodes[7].cast(), Some(3), (&raw mut head).cast());
        (structure, added)
    };
    assert_eq!((added, structure.len()), (None, 20));
    assert_eq!(structure.check(), Err(MorphError::SharedNode));
    // SAFETY: the list is live, and a structure with a node added twice is refused.
    let refused = unsafe { Morph::new().run_structure(structure) };
    assert_eq!(refused.unwrap_err(), MorphError::SharedNode);
    assert_eq!(head, nodes[0]);
    // SAFETY: nothing has moved.
    unsafe { finish(head, 20, extent) };
}

#[test]
fn a_root_may_come_between_the_children_of_another() {
    let nodes = list(4, Extent::new::<Head>());
    let first = nodes[0];
    let mut roots = [first, nodes[2]];
    let mut structure = RawStructure::new(Extent::new::<Head>());
    // SAFETY: live nodes of this test's, which get no other links than the two of the first; the
    // places of the roots and of these links.
    unsafe {
        for &node in &nodes {
            ((*node).next, (*node).previous) = (null_mut(), null_mut());
        }
        ((*first).next, (*first).previous) = (nodes[1], nodes[3]);
        for (number, parent, link) in [
            (0, None, &raw mut roots[0]),
            (1, Some(0), &raw mut (*first).next),
            (2, None, &raw mut roots[1]),
            (3, Some(0), &raw mut (*first).previous),
        ] {
            structure.node(nodes[number].cast(), parent, link.cast());
        }
    }
    let morph = Morph::new().layout(Layout::DepthFirst);
    // SAFETY: live nodes of this test's, whose places no other code uses meanwhile.
    assert_eq!(unsafe { morph.run_structure(structure) }.unwrap().nodes, 4);
    // SAFETY: the roots and what they own, where they lie now; each is freed once.
    unsafe {
        let [first, second] = roots;
        let order = [first, (*first).next, (*first).previous, second];
        assert_eq!(order.map(|node| (*node).key), [0, 1, 3, 2]);
        assert!(order.is_sorted(), "depth-first: {order:?}");
        for node in order {
            ccmalloc::raw::deallocate(node.cast());
        }
    }
}
