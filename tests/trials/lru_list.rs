//! The list of an LRU cache, whose entries a hash table owns, was "laid out as dfs in 218 ms"
//! without gain. Its order is that of pointers which own nothing.

use ccmorph::{Morph, Operation, Verdict, back};
use std::collections::HashMap;
use std::ptr::{self, null_mut};

struct Entry {
    key: u32,
    newer: *mut Entry,
    older: *mut Entry,
}

#[derive(Default)]
struct Lru {
    entries: HashMap<u32, Box<Entry>>,
    newest: Option<u32>,
}

impl Lru {
    fn put(&mut self, key: u32) {
        let older = self.newest.map_or(null_mut(), |newest| self.entry(newest));
        let mut entry = Box::new(Entry {
            key,
            newer: null_mut(),
            older,
        });
        if !older.is_null() {
            // SAFETY: an entry of this cache, which nobody else accesses.
            unsafe { (*older).newer = &raw mut *entry };
        }
        self.entries.insert(key, entry);
        self.newest = Some(key);
    }

    fn entry(&mut self, key: u32) -> *mut Entry {
        &raw mut **self.entries.get_mut(&key).unwrap()
    }

    /// Moves an entry to the front.
    fn touch(&mut self, key: u32) {
        if self.newest == Some(key) {
            return;
        }
        let (entry, newest) = (self.entry(key), self.newest.unwrap());
        let front = self.entry(newest);
        // SAFETY: entries of this cache, which nobody else accesses; `newer` is not null, as the
        // entry is not the newest one.
        unsafe {
            let (newer, older) = ((*entry).newer, (*entry).older);
            (*newer).older = older;
            if !older.is_null() {
                (*older).newer = newer;
            }
            ((*entry).newer, (*entry).older) = (null_mut(), front);
            (*front).newer = entry;
        }
        self.newest = Some(key);
    }

    /// From the newest to the oldest.
    fn list(&mut self) -> Vec<*const Entry> {
        let mut list = Vec::new();
        let mut at = self.newest.map_or(null_mut(), |newest| self.entry(newest));
        while !at.is_null() {
            list.push(at.cast_const());
            // SAFETY: an entry of this cache.
            at = unsafe { (*at).older };
        }
        list
    }
}

fn used_cache(entries: u32) -> Lru {
    let mut cache = Lru::default();
    (0..entries).for_each(|key| cache.put(key));
    for i in 0..3 * entries {
        cache.touch(i.wrapping_mul(2_654_435_761) % entries);
    }
    cache
}

fn keys(list: &[*const Entry]) -> Vec<u32> {
    // SAFETY: entries of a live cache, which nobody writes to.
    list.iter().map(|&entry| unsafe { (*entry).key }).collect()
}

#[test]
fn the_list_gives_the_order_and_the_table_keeps_the_boxes() {
    let mut cache = used_cache(20_000);
    let list = cache.list();
    let before = keys(&list);
    let place: HashMap<*const Entry, usize> = list.into_iter().zip(0..).collect();

    let report = Morph::new()
        .predict(true)
        .run_ordered_by(
            &mut cache.entries,
            |entry, visit| {
                visit(back(&mut entry.newer));
                visit(back(&mut entry.older));
            },
            |entry| place[&ptr::from_ref(entry)],
        )
        .unwrap();

    let after = cache.list();
    assert_eq!((report.nodes, keys(&after)), (20_000, before));
    assert!(cache.entries.iter().all(|(&key, entry)| entry.key == key));
    // One entry behind the other, but for the ends of segments.
    let next_to = |pair: &&[*const Entry]| pair[0].wrapping_add(1) == pair[1];
    assert!(after.windows(2).filter(next_to).count() > 19_900);
    assert_eq!(
        (report.operation, report.edges),
        (Some(Operation::Walk), 19_999)
    );
    assert!(report.near_after.same_page > 19_000 && report.near_before.same_page < 10_000);

    // The cache goes on as before.
    cache.touch(7);
    cache.put(20_000);
    assert_eq!(keys(&cache.list())[..2], [20_000, 7]);
}

#[test]
fn what_is_not_told_is_not_promised() {
    let mut cache = used_cache(20_000);
    let report = Morph::new()
        .predict(true)
        .run(&mut cache.entries, |entry, visit| {
            visit(back(&mut entry.newer));
            visit(back(&mut entry.older));
        })
        .unwrap();
    assert_eq!(report.verdict(), Verdict::Unknown);
    assert!(
        report.to_string().contains("of walks it says nothing"),
        "{report}"
    );
}
