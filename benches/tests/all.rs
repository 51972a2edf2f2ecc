//! The structures that are measured, against simple models; and that morphs and allocators leave
//! their answers alone.
//!
//! `cargo test -p measure --test all`, by name, because it needs the rivals.

mod measuring;
mod ordered_maps;

use std::collections::{HashMap, HashSet};

use ccmodel::Layout;
use ccmorph::Morph;
use measure::keys::random;
use measure::queries::Zipf;
use measure::rivals::OURS;
use measure::search_tree::{Node, Tree};
use measure::source::{SwitchAllocator, allocate_from, rivals};
use measure::structures::Structure;
use measure::structures::lists::Lists;
use measure::structures::octree::{Octree, random_points};
use measure::structures::table::Table;
use measure::structures::tree::Plan;
use measure::suites::select;
use quickcheck::quickcheck;

#[global_allocator]
static GLOBAL: SwitchAllocator = SwitchAllocator;

/// The keys of a tree in preorder, which tells its shape, with their values.
fn outline(tree: &Tree<u64>) -> Vec<(u64, u64)> {
    tree.nodes().map(|node| (node.key, node.value)).collect()
}

fn levels(link: &Option<Box<Node<u64>>>) -> u32 {
    let below = |node: &Node<u64>| levels(&node.left).max(levels(&node.right));
    link.as_deref().map_or(0, |node| 1 + below(node))
}

quickcheck! {
    fn a_plan_gives_the_tree_that_inserting_gives(keys: HashSet<u64>) -> bool {
        let keys: Vec<u64> = keys.into_iter().collect();
        let mut inserted = Tree::default();
        for &key in &keys {
            inserted.insert(key, key.rotate_left(32));
        }
        outline(&Plan::of_inserts(&keys).build()) == outline(&inserted)
    }

    fn lookups_in_a_tree_agree(keys: HashSet<u64>, others: Vec<u64>) -> bool {
        let keys: Vec<u64> = keys.into_iter().collect();
        let tree = Plan::of_inserts(&keys).build();
        let queries: Vec<u64> = keys.iter().chain(&others).copied().collect();
        let single = queries.iter().all(|key| {
            tree.get(*key).copied() == keys.contains(key).then_some(key.rotate_left(32))
        });
        single && tree.get_all(&queries) == tree.get_all_side_by_side(&queries)
    }

    fn lists_do_what_vectors_do(steps: Vec<(u8, u8, u64, bool)>) -> bool {
        const LISTS: usize = 3;
        let mut lists = Lists::new(LISTS);
        let mut model = vec![Vec::new(); LISTS];
        for (list, at, value, inserts) in steps {
            let (list, at) = (usize::from(list) % LISTS, usize::from(at) % 8);
            if inserts {
                lists.insert(list, at, value);
                let end = model[list].len();
                model[list].insert(at.min(end), value);
            } else {
                let expected = (at < model[list].len()).then(|| model[list].remove(at));
                if lists.remove(list, at) != expected {
                    return false;
                }
            }
        }
        let same = |(list, values): (usize, &Vec<u64>)| {
            lists.values(list).eq(values.iter().copied())
        };
        model.iter().enumerate().all(same) && lists.is_linked_both_ways()
    }

    fn a_table_finds_what_came_last(entries: Vec<(u64, u64)>, others: Vec<u64>) -> bool {
        let table = Table::with_entries(entries.iter().copied());
        let model: HashMap<u64, u64> = entries.iter().copied().collect();
        let mut queries = entries.iter().map(|&(key, _)| key).chain(others);
        queries.all(|key| table.get(key) == model.get(&key))
    }

    fn an_octree_finds_the_points_of_a_cube(count: u8, seed: u64, queries: Vec<u64>) -> bool {
        let points = random_points(usize::from(count) * 4, seed);
        let octree = Octree::random(points.len(), seed);
        queries.into_iter().all(|query| {
            let inside = points.iter().filter(|point| octree.asks_for(query, point));
            octree.answer(query) == inside.fold(0, |sum: u32, point| sum.wrapping_add(point.id))
        })
    }

    fn hot_keys_are_drawn_more_often(count: u8, seed: u64) -> bool {
        let items: Vec<u64> = (0..16 + u64::from(count)).collect();
        let mut drawn: HashMap<u64, usize> = HashMap::new();
        let mut queries = Zipf::new(&items, seed);
        for _ in 0..10_000 {
            *drawn.entry(queries.draw()).or_default() += 1;
        }
        let hottest = drawn.values().max().copied().unwrap_or_default();
        // The share of the first of n is 1 / H(n): 0.16 of 271, and 0.3 of 16.
        let known = drawn.keys().all(|key| items.contains(key));
        known && (1_300..3_700).contains(&hottest)
    }
}

#[test]
fn a_complete_tree_has_all_of_its_nodes_in_few_levels() {
    for count in 0..=10 {
        let tree = Plan::complete(count, 7).build();
        let nodes = outline(&tree);
        assert_eq!((nodes.len(), levels(&tree.root)), ((1 << count) - 1, count));
        let mut nodes = nodes.iter();
        assert!(nodes.all(|&(key, value)| tree.get(key) == Some(&value)));
    }
}

const LAYOUTS: [Layout; 9] = [
    Layout::Random { seed: 3 },
    Layout::DepthFirst,
    Layout::BreadthFirst,
    Layout::SubtreeCluster { block_bytes: 64 },
    Layout::VanEmdeBoas,
    Layout::Hierarchical,
    Layout::Weighted,
    Layout::ClusterVanEmdeBoas { block_bytes: 64 },
    Layout::ClusterVanEmdeBoas { block_bytes: 4096 },
];

/// A structure must answer the same in the memory of each allocator, as a copy, and in each layout.
fn answers_alike<S: Structure>(build: impl Fn() -> S, queries: &[u64], check: impl Fn(&S)) {
    let answers = |structure: &S| -> Vec<u32> {
        check(structure);
        let answers = queries.iter().map(|&query| structure.answer(query));
        answers.collect()
    };
    let expected = answers(&build());
    assert!(
        expected.iter().any(|&answer| answer != expected[0]),
        "the queries ask for something"
    );
    for rival in rivals() {
        let theirs = allocate_from(rival, &build);
        assert_eq!(answers(&theirs), expected, "{}", rival.name);
        assert_eq!(answers(&theirs.clone()), expected, "{}, copied", rival.name);
    }
    let mut ours = allocate_from(&OURS, &build);
    for layout in LAYOUTS {
        let report = allocate_from(&OURS, || ours.morph(&Morph::new().layout(layout)));
        let report = report.expect("there is memory");
        assert_eq!(report.layout, layout);
        assert!(report.nodes > 100, "{} nodes", report.nodes);
        assert_eq!(answers(&ours), expected, "{layout}");
    }
    let copy = allocate_from(&OURS, || ours.clone());
    drop(ours);
    assert_eq!(answers(&copy), expected, "a copy of what was morphed");
}

#[test]
fn structures_answer_alike_in_all_memory_and_all_layouts() {
    let keys = random(2000, 1);
    let plan = Plan::of_inserts(&keys);
    answers_alike(|| plan.build(), &keys, |_| ());
    answers_alike(|| Table::with_keys(&keys), &keys, |_| ());
    answers_alike(|| Octree::random(2000, 5), &keys[..500], |_| ());
    let numbers: Vec<u64> = (0..2000 / 32).collect();
    let linked = |lists: &Lists| assert!(lists.is_linked_both_ways());
    answers_alike(|| Lists::churned(2000, 1000, 2), &numbers, linked);
}

#[test]
fn objects_come_from_their_source_and_go_back() {
    for rival in rivals() {
        let mut grown: Vec<u64> = allocate_from(rival, || Vec::with_capacity(4));
        let object = allocate_from(rival, || Box::new([7_u64; 3]));
        let address = std::ptr::from_ref(&*object).cast::<u8>();
        assert!(!ccmalloc::contains(address));
        if let Some(owns) = rival.owns {
            assert!(owns(address), "{}", rival.name);
            let ours = allocate_from(&OURS, || Box::new(1_u64));
            let systems = Box::new(2_u64);
            assert!(!owns(std::ptr::from_ref(&*ours).cast()));
            assert!(!owns(std::ptr::from_ref(&*systems).cast()));
        }
        // Grown by the source of that moment, and freed on another thread.
        grown.extend(0..10_000);
        assert!(grown.iter().copied().eq(0..10_000));
        let freed = std::thread::spawn(move || {
            let sum: u64 = object.iter().sum();
            drop(grown);
            sum
        });
        assert_eq!(freed.join().expect("it does not panic"), 21);
    }
}

/// `report` lists workloads without building them.
#[test]
fn this_build_has_what_measures_the_workloads() {
    let built = select(None, None).expect("there are workloads");
    for workload in benches::WORKLOADS {
        // Only some builds have these.
        let is_optional = workload.name.starts_with("app_") || workload.name == "mapped_2m";
        let is_built = built.iter().any(|built| built.name == workload.name);
        assert!(is_built || is_optional, "{}", workload.name);
    }
}
