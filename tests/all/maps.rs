//! Maps under `CcMalloc`, made here and used there.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctree::FrozenCTreeMap;
use quickcheck::quickcheck;

quickcheck! {
    fn frozen_maps_answer_as_their_source_on_every_thread(
        source: BTreeMap<u32, String>,
        queries: Vec<u32>
    ) -> bool {
        let frozen: Arc<FrozenCTreeMap<u32, String>> =
            Arc::new(source.clone().into_iter().collect());
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (frozen, source, queries) =
                    (Arc::clone(&frozen), source.clone(), queries.clone());
                std::thread::spawn(move || {
                    let keys = source.keys().copied().chain(queries);
                    keys.into_iter().all(|key| {
                        frozen.get(&key) == source.get(&key)
                            && frozen.range(key..).next() == source.range(key..).next()
                    })
                })
            })
            .collect();
        threads.into_iter().all(|thread| thread.join().unwrap()) && frozen.iter().eq(source.iter())
    }
}

#[test]
fn a_large_map_lies_in_the_allocator_and_leaves_it() {
    let map: FrozenCTreeMap<u64, u64> = (0..500_000).map(|key| (key * 3, key)).collect();
    let value = map.get(&300).unwrap();
    assert_eq!(*value, 100);
    assert!(ccmalloc::contains(std::ptr::from_ref(value).cast()));
    drop(map);
    ccmalloc::check().unwrap();
}
