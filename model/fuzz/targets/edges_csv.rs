//! The fuzzer's bytes as edges of a forest, and as edits of good ones. What is read as a forest is
//! one, with a name for each node.
#![no_main]

mod edits;

use std::collections::HashSet;

use ccmodel::NO_NODE;
use ccmodel::structure::read_edges;
use libfuzzer_sys::fuzz_target;

const GOOD: &str = "parent,child,address,bytes\n# a tree and a root alone\n,a,0x1000,24\n\
                    a,b,4128,24\na,c,0x1040,48\nb, d ,0x1080,24\n,e,0,8\n";
const NODES_MAX: u32 = 500;

fn check(text: &[u8]) {
    match read_edges(text, NODES_MAX) {
        Ok(edges) => {
            let shape = &edges.shape;
            let nodes = u32::try_from(shape.len()).expect("a shape has fewer than 2^32 nodes");
            assert!(nodes <= NODES_MAX);
            let names: HashSet<&String> = edges.names.iter().collect();
            assert_eq!(names.len(), shape.len());
            for node in 0..nodes {
                let parent = shape.parent(node);
                assert!(parent == NO_NODE || parent < node);
            }
            let children: usize = (0..nodes).map(|v| shape.children(v).len()).sum();
            assert_eq!(children + shape.roots().count(), shape.len());
            if let Some(placement) = &edges.placement {
                assert_eq!(placement.len(), shape.len());
            }
        }
        Err(error) => assert!(!error.to_string().contains(char::is_control)),
    }
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(edits::edited(GOOD, bytes).as_bytes());
});
