//! Reads compared with those of programs that do the operations on real data.

use std::cmp::Ordering;

use quickcheck::quickcheck;

use super::*;
use crate::Shape;

/// Reads of `operation` for each of its tickets, with node `v` at `v << 20`.
fn reads_of(structure: Structure, keys: u32, operation: Operation) -> Vec<Vec<u64>> {
    let built = structure.build(keys, &sizes()).unwrap();
    let accesses = built.accesses(&apart(&built), operation, &KeyDistribution::Uniform);
    all_reads(&accesses.unwrap())
}

fn check(
    structure: Structure,
    keys: u32,
    operation: Operation,
    expected: impl Fn(u64) -> Vec<u64>,
) {
    for (ticket, reads) in (0..).zip(reads_of(structure, keys, operation)) {
        let what = format!("{structure:?}, {operation}, {ticket}");
        assert_eq!(reads, expected(ticket), "{what}");
    }
}

/// Keys are odd, gaps even: key k is 2k + 1, gap g is 2g. Element `i` lies at `24 * i`.
fn binary_search(length: u64, wanted: u64) -> Vec<u64> {
    let (mut low, mut high) = (0, length);
    let mut reads = Vec::new();
    while low < high {
        let middle = u64::midpoint(low, high);
        reads.push(24 * middle);
        match wanted.cmp(&(2 * middle + 1)) {
            Ordering::Less => high = middle,
            Ordering::Greater => low = middle + 1,
            Ordering::Equal => break,
        }
    }
    reads
}

struct Tree {
    nodes: Vec<(u64, Option<usize>, Option<usize>)>,
}

impl Tree {
    /// Nodes and their keys, which decide which child is left.
    fn new(shape: &Shape, keys: &[u64]) -> Tree {
        let mut nodes: Vec<_> = keys.iter().map(|&key| (key, None, None)).collect();
        for (v, &parent) in shape.parents().iter().enumerate() {
            if parent != NO_NODE {
                let (key, left, right) = &mut nodes[parent as usize];
                let link = if keys[v] < *key { left } else { right };
                assert!(link.replace(v).is_none(), "two children on one side");
            }
        }
        Tree { nodes }
    }

    /// Nodes read by a search, and those above it where it went left.
    fn search(&self, wanted: u64) -> (Vec<usize>, Vec<usize>) {
        let (mut reads, mut larger) = (Vec::new(), Vec::new());
        let mut next = (!self.nodes.is_empty()).then_some(0);
        while let Some(v) = next {
            reads.push(v);
            let (key, left, right) = self.nodes[v];
            if wanted == key {
                break;
            }
            if wanted < key {
                larger.push(v);
            }
            next = if wanted < key { left } else { right };
        }
        (reads, larger)
    }

    /// Nodes read by a search and the next keys in order, with a stack of those to come back to.
    fn range(&self, from: u64, keys: u32) -> Vec<usize> {
        let (mut reads, mut stack) = self.search(from);
        let mut at = *reads.last().unwrap();
        for _ in 1..keys {
            let mut next = self.nodes[at].2;
            let entered = next.is_some();
            while let Some(v) = next {
                reads.push(v);
                stack.push(v);
                next = self.nodes[v].1;
            }
            let Some(next) = stack.pop() else { break };
            if !entered {
                reads.push(next);
            }
            at = next;
        }
        reads
    }
}

/// A node of a B-tree of fanout 5, with keys assigned in order by recursion: 8 B header, 4 keys of
/// 8 B, 4 values of 16 B, 5 links of 8 B.
struct Node {
    base: u64,
    keys: Vec<u64>,
    children: Vec<Option<Node>>,
}

impl Node {
    fn read(nodes: &btree::Nodes, shape: &Shape, v: u32, next_key: &mut u64) -> Node {
        let count = nodes.counts[v as usize];
        let (mut keys, mut children) = (Vec::new(), Vec::new());
        for link in 0..=count {
            let mut own = shape.children(v).iter();
            let child = own.find(|&&child| nodes.links[child as usize] == link);
            children.push(child.map(|&child| Node::read(nodes, shape, child, next_key)));
            if link < count {
                keys.push(2 * *next_key + 1);
                *next_key += 1;
            }
        }
        Node {
            base: u64::from(v) << 20,
            keys,
            children,
        }
    }

    fn key(&self, place: usize) -> u64 {
        self.base + 8 + 8 * place as u64
    }

    fn value(&self, place: usize) -> u64 {
        self.base + 8 + 4 * 8 + 16 * place as u64
    }

    fn link(&self, link: usize) -> u64 {
        self.base + 8 + 4 * 24 + 8 * link as u64
    }

    /// Reads of a search, and where `shifts`, of the keys and values that move when a gap gets a
    /// key.
    fn search(&self, wanted: u64, in_node: InNode, shifts: bool) -> Vec<u64> {
        let mut reads = vec![self.base];
        let (mut low, mut high) = (0, self.keys.len());
        while low < high {
            let place = match in_node {
                InNode::Linear => low,
                _ => usize::midpoint(low, high),
            };
            reads.push(self.key(place));
            match wanted.cmp(&self.keys[place]) {
                Ordering::Less => high = place,
                Ordering::Greater => low = place + 1,
                Ordering::Equal => {
                    reads.push(self.value(place));
                    return reads;
                }
            }
        }
        if let Some(child) = &self.children[low] {
            reads.push(self.link(low));
            reads.extend(child.search(wanted, in_node, shifts));
        } else if shifts {
            let moved = low..self.keys.len();
            reads.extend(moved.flat_map(|place| [self.key(place), self.value(place)]));
        }
        reads
    }

    /// Reads of a walk in key order from here.
    fn walk(&self, reads: &mut Vec<u64>) {
        reads.push(self.base);
        for (link, child) in self.children.iter().enumerate() {
            if let Some(child) = child {
                reads.push(self.link(link));
                child.walk(reads);
            }
            if link < self.keys.len() {
                reads.extend([self.key(link), self.value(link)]);
            }
        }
    }
}

fn btrees(keys: u32, seed: u64) -> [(Growth, btree::Nodes); 2] {
    let inserted = btree::inserted(keys, 4, seed);
    let random = Growth::RandomInsert { seed };
    [(Growth::Complete, btree::bulk(keys, 3)), (random, inserted)]
}

quickcheck! {
    fn arrays_are_searched_as_programs_do(keys: u8) -> bool {
        let (keys, length) = (u32::from(keys), u64::from(keys));
        let find = |key| binary_search(length, 2 * key + 1);
        let miss = |gap| binary_search(length, 2 * gap);
        let then = |mut reads: Vec<u64>, more: std::ops::Range<u64>| {
            reads.extend(more.map(|element| 24 * element));
            reads
        };
        let array = Structure::SortedArray;
        check(array, keys, Operation::Search, find);
        check(array, keys, Operation::Miss, miss);
        check(array, keys, Operation::Insert, |gap| then(miss(gap), gap..length));
        let range = |key| then(find(key), key + 1..length.min(key + 4));
        check(array, keys, Operation::Range { keys: 4 }, range);
        true
    }

    fn search_trees_are_searched_as_programs_do(keys: u8, seed: u64, length: u8) -> bool {
        let range = u32::from(length % 20) + 1;
        let random = Growth::RandomInsert { seed };
        // Elements of an Eytzinger array are the nodes of a complete tree, one behind the other.
        for (structure, stride) in [
            (Structure::SearchTree { growth: random }, 1 << 20),
            (Structure::SearchTree { growth: Growth::Complete }, 1 << 20),
            (Structure::Eytzinger, 24),
        ] {
            let keys = u32::from(keys);
            let built = structure.build(keys, &sizes()).unwrap();
            let mut own = vec![0; keys as usize];
            for (key, &v) in (0u64..).zip(built.points.found()) {
                own[v as usize] = 2 * key + 1;
            }
            let tree = Tree::new(built.points.shape(), &own);
            let addresses = |nodes: Vec<usize>| nodes.iter().map(|&v| v as u64 * stride).collect();
            check(structure, keys, Operation::Search, |k| addresses(tree.search(2 * k + 1).0));
            check(structure, keys, Operation::Miss, |gap| addresses(tree.search(2 * gap).0));
            // Arrays need no links to get to the next element.
            if structure != Structure::Eytzinger {
                let operation = Operation::Range { keys: range };
                check(structure, keys, operation, |k| addresses(tree.range(2 * k + 1, range)));
            }
        }
        true
    }

    fn b_trees_are_searched_as_programs_do(keys: u8, seed: u64) -> bool {
        let keys = u32::from(keys) + 1;
        for (growth, nodes) in btrees(keys, seed) {
            let shape = Shape::from_parents(&nodes.parents).unwrap();
            let mut next_key = 0;
            let root = Node::read(&nodes, &shape, 0, &mut next_key);
            assert_eq!(next_key, u64::from(keys));
            let mut walk = Vec::new();
            root.walk(&mut walk);
            for in_node in [InNode::Binary, InNode::Linear] {
                let btree = Structure::BTree { fanout: 5, fill: 0.75, in_node, growth };
                let search = |wanted, shifts| root.search(wanted, in_node, shifts);
                check(btree, keys, Operation::Search, |key| search(2 * key + 1, false));
                check(btree, keys, Operation::Miss, |gap| search(2 * gap, false));
                check(btree, keys, Operation::Insert, |gap| search(2 * gap, true));
                check(btree, keys, Operation::Walk { returns: false }, |_| walk.clone());
            }
        }
        true
    }

    fn nodes_of_b_trees_are_as_full_as_they_may_be(keys: u16, seed: u64) -> bool {
        let keys = u32::from(keys);
        for (growth, nodes) in btrees(keys, seed) {
            let most = if growth == Growth::Complete { 3 } else { 4 };
            assert_eq!(nodes.counts.iter().sum::<u32>(), keys);
            assert!(nodes.counts.iter().all(|count| (1..=most).contains(count)));
            // Inner nodes have a child at each link, and leaves are equally deep.
            let shape = Shape::from_parents(&nodes.parents).unwrap();
            let depths = shape.depths();
            for (v, &count) in (0..).zip(&nodes.counts) {
                let children = shape.children(v).len();
                assert!(children == 0 || children == count as usize + 1);
                assert!(children > 0 || Some(&depths[v as usize]) == depths.iter().max());
            }
        }
        true
    }

    fn lists_are_searched_from_the_head(keys: u8) -> bool {
        let (keys, last) = (u32::from(keys) + 1, u64::from(keys));
        let list = |links| Structure::List { links };
        let (single, double) = (list(Links::Single), list(Links::Double));
        let to = |end: u64| (0..=end.min(last)).map(|v| v << 20).collect();
        check(single, keys, Operation::Insert, to);
        check(double, keys, Operation::Insert, |key| to(key + 1));
        check(single, keys, Operation::Range { keys: 3 }, |key| to(key + 2));
        check(double, keys, Operation::Miss, |_| to(last));
        true
    }

    fn chains_begin_at_their_buckets(keys: u8, seed: u64) -> bool {
        let keys = u32::from(keys);
        let structure = Structure::Hash { load: 2.0, seed };
        let built = structure.build(keys, &sizes()).unwrap();
        let nodes_end = keys.checked_sub(1).map_or(0, |last| (u64::from(last) << 20) + 24);
        let fixed = nodes_end.next_multiple_of(4096);
        // Absent keys: one for each bucket, in order; its chain goes on where the one before has
        // ended.
        let mut next = 0u64;
        let misses = reads_of(structure, keys, Operation::Miss);
        for (bucket, reads) in (0u64..).zip(&misses) {
            let chain = next..next + reads.len() as u64 - 1;
            next = chain.end;
            assert_eq!(reads[0], fixed + 8 * bucket);
            assert!(reads[1..].iter().copied().eq(chain.map(|node| node << 20)));
        }
        // A hit is the beginning of a miss.
        for hit in reads_of(structure, keys, Operation::Search) {
            assert!(misses.iter().any(|miss| miss.starts_with(&hit)));
        }
        let buckets = u64::from(keys.div_ceil(2).max(1));
        assert_eq!((misses.len() as u64, next), (buckets, u64::from(keys)));
        built.fixed_bytes() == 8 * buckets
    }
}
