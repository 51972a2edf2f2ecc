//! For hash chains `model advise` named one layout and `ccmorph` took another. The links leave one
//! good order, depth-first.

use ccmodel::Basis;
use ccmorph::{Layout, Morph, Operation, TreeNode};

#[derive(TreeNode)]
struct Entry {
    key: u64,
    #[child]
    next: Option<Box<Entry>>,
}

#[test]
fn chains_are_laid_out_depth_first() {
    let mut buckets: Vec<Option<Box<Entry>>> = (0..5_000).map(|_| None).collect();
    for key in 0..20_000u64 {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let bucket = &mut buckets[hash as usize % 5_000];
        let next = bucket.take();
        *bucket = Some(Box::new(Entry { key, next }));
    }
    for operation in [None, Some(Operation::Search), Some(Operation::Path)] {
        let morph = operation.map_or(Morph::new(), |operation| Morph::new().operation(operation));
        let report = morph.run(&mut buckets, Entry::children).unwrap();
        assert_eq!(
            (report.layout, report.basis),
            (Layout::DepthFirst, Some(Basis::Chains))
        );
        assert_eq!((report.nodes, report.operation), (20_000, operation));
    }
    assert!(buckets.iter().flatten().all(|entry| entry.key < 20_000));
}
