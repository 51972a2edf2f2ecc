//! Reads compared with those of programs that do the operations on real data.

use quickcheck::quickcheck;

use super::*;
use crate::Shape;

/// Reads of `operation` for each of its tickets, with element `i` of an array at `24 * i`.
fn reads_of(structure: Structure, keys: u32, operation: Operation) -> Vec<Vec<u64>> {
    let built = structure.build(keys, &sizes()).unwrap();
    let accesses = built.accesses(&apart(&built), operation, &KeyDistribution::Uniform);
    all_reads(&accesses.unwrap())
}

/// Keys are odd, gaps even: key k is 2k + 1, gap g is 2g.
fn binary_search(length: u64, wanted: u64) -> Vec<u64> {
    let (mut low, mut high) = (0, length);
    let mut reads = Vec::new();
    while low < high {
        let middle = u64::midpoint(low, high);
        reads.push(24 * middle);
        match wanted.cmp(&(2 * middle + 1)) {
            std::cmp::Ordering::Less => high = middle,
            std::cmp::Ordering::Greater => low = middle + 1,
            std::cmp::Ordering::Equal => break,
        }
    }
    reads
}

/// A search tree of nodes with key, left and right.
struct Tree {
    nodes: Vec<(u64, Option<usize>, Option<usize>)>,
}

impl Tree {
    /// Nodes and their keys, which decide which child is left.
    fn new(shape: &Shape, keys: &[u64]) -> Tree {
        let mut nodes: Vec<_> = keys.iter().map(|&key| (key, None, None)).collect();
        for (v, &parent) in shape.parents().iter().enumerate() {
            if parent == NO_NODE {
                continue;
            }
            let above = &mut nodes[parent as usize];
            let link = match keys[v] < above.0 {
                true => &mut above.1,
                false => &mut above.2,
            };
            assert!(link.replace(v).is_none(), "two children on one side");
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
            next = match wanted.cmp(&key) {
                std::cmp::Ordering::Less => {
                    larger.push(v);
                    left
                }
                std::cmp::Ordering::Greater => right,
                std::cmp::Ordering::Equal => break,
            };
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
            match stack.pop() {
                Some(v) => {
                    if !entered {
                        reads.push(v);
                    }
                    at = v;
                }
                None => break,
            }
        }
        reads
    }
}

/// A B-tree's nodes, with keys assigned in order by recursion.
struct Node {
    number: u64,
    keys: Vec<u64>,
    children: Vec<Option<Node>>,
}

impl Node {
    fn read(nodes: &btree::Nodes, shape: &Shape, v: u32, next_key: &mut u64) -> Node {
        let count = nodes.counts[v as usize];
        let mut node = Node {
            number: u64::from(v),
            keys: Vec::new(),
            children: Vec::new(),
        };
        for link in 0..=count {
            let mut children = shape.children(v).iter();
            let child = children.find(|&&child| nodes.links[child as usize] == link);
            let child = child.map(|&child| Node::read(nodes, shape, child, next_key));
            node.children.push(child);
            if link < count {
                node.keys.push(2 * *next_key + 1);
                *next_key += 1;
            }
        }
        node
    }

    /// Levels from here to the leaves, which are all as deep.
    fn height(&self) -> usize {
        let mut heights: Vec<usize> = self.children.iter().flatten().map(Node::height).collect();
        heights.dedup();
        assert!(heights.len() <= 1, "leaves differ in depth");
        1 + heights.first().copied().unwrap_or(0)
    }

    /// Reads of a search, for fanout 5: 8 B header, 4 keys of 8 B, 4 values of 16 B, 5 links of 8
    /// B.
    fn search(&self, wanted: u64, in_node: InNode, reads: &mut Vec<u64>) {
        let base = self.number << 20;
        reads.push(base);
        let (mut low, mut high) = (0, self.keys.len());
        while low < high {
            let place = match in_node {
                InNode::Linear => low,
                _ => usize::midpoint(low, high),
            };
            reads.push(base + 8 + 8 * place as u64);
            match wanted.cmp(&self.keys[place]) {
                std::cmp::Ordering::Less => high = place,
                std::cmp::Ordering::Greater => low = place + 1,
                std::cmp::Ordering::Equal => {
                    return reads.push(base + 8 + 4 * 8 + 16 * place as u64);
                }
            }
        }
        if let Some(child) = &self.children[low] {
            reads.push(base + 8 + 4 * 24 + 8 * low as u64);
            child.search(wanted, in_node, reads);
        }
    }

    /// Reads of a walk in key order from here.
    fn walk(&self, reads: &mut Vec<u64>) {
        let base = self.number << 20;
        reads.push(base);
        for link in 0..self.children.len() {
            if let Some(child) = &self.children[link] {
                reads.push(base + 8 + 4 * 24 + 8 * link as u64);
                child.walk(reads);
            }
            if link < self.keys.len() {
                reads.push(base + 8 + 8 * link as u64);
                reads.push(base + 8 + 4 * 8 + 16 * link as u64);
            }
        }
    }

    /// Reads of the keys and values that move when `gap` gets a key.
    fn shift(&self, gap: u64, reads: &mut Vec<u64>) {
        let next = self.keys.partition_point(|&key| key < gap);
        if let Some(child) = &self.children[next] {
            return child.shift(gap, reads);
        }
        let base = self.number << 20;
        for place in next as u64..self.keys.len() as u64 {
            reads.extend([base + 8 + 8 * place, base + 8 + 4 * 8 + 16 * place]);
        }
    }
}

/// The B-trees of this many keys, for both ways of growing.
fn btrees(keys: u32, seed: u64) -> [(Growth, btree::Nodes); 2] {
    let inserted = btree::Insertion::new(4).insert_all(keys, seed);
    let random = Growth::RandomInsert { seed };
    [(Growth::Complete, btree::bulk(keys, 3)), (random, inserted)]
}

quickcheck! {
    fn arrays_are_searched_as_programs_do(keys: u8) -> bool {
        let length = u64::from(keys);
        let search = reads_of(Structure::SortedArray, u32::from(keys), Operation::Search);
        let miss = reads_of(Structure::SortedArray, u32::from(keys), Operation::Miss);
        let insert = reads_of(Structure::SortedArray, u32::from(keys), Operation::Insert);
        let range = reads_of(
            Structure::SortedArray,
            u32::from(keys),
            Operation::Range { keys: 4 },
        );
        (0..length)
            .zip(&search)
            .all(|(key, reads)| *reads == binary_search(length, 2 * key + 1))
            && (0..=length)
                .zip(&miss)
                .all(|(gap, reads)| *reads == binary_search(length, 2 * gap))
            && (0..=length).zip(&insert).all(|(gap, reads)| {
                let mut expected = binary_search(length, 2 * gap);
                expected.extend((gap..length).map(|element| 24 * element));
                *reads == expected
            })
            && (0..length).zip(&range).all(|(key, reads)| {
                let mut expected = binary_search(length, 2 * key + 1);
                expected.extend((key + 1..length.min(key + 4)).map(|element| 24 * element));
                *reads == expected
            })
    }

    fn search_trees_are_searched_as_programs_do(keys: u8, seed: u64, length: u8) -> bool {
        let length = u32::from(length % 20) + 1;
        let random = Structure::SearchTree {
            growth: Growth::RandomInsert { seed },
        };
        let complete = Structure::SearchTree {
            growth: Growth::Complete,
        };
        // Elements of an Eytzinger array are the nodes of a complete tree, one behind the other.
        let structures = [
            (random, 1 << 20),
            (complete, 1 << 20),
            (Structure::Eytzinger, 24),
        ];
        structures.into_iter().all(|(structure, stride)| {
            let built = structure.build(u32::from(keys), &sizes()).unwrap();
            let mut own = vec![0; usize::from(keys)];
            for (key, &v) in (0u64..).zip(built.points.found()) {
                own[v as usize] = 2 * key + 1;
            }
            let tree = Tree::new(built.points.shape(), &own);
            let address = |&v: &usize| v as u64 * stride;
            let addresses = |nodes: Vec<usize>| nodes.iter().map(address).collect::<Vec<u64>>();
            let of = |operation| {
                let accesses = built.accesses(&apart(&built), operation, &KeyDistribution::Uniform);
                all_reads(&accesses.unwrap())
            };
            let count = u64::from(keys);
            let hits = of(Operation::Search);
            let mut hits = (0..count).zip(&hits);
            let misses = of(Operation::Miss);
            let mut misses = (0..=count).zip(&misses);
            let ranges = of(Operation::Range { keys: length });
            let mut ranges = (0..count).zip(&ranges);
            hits.all(|(key, reads)| *reads == addresses(tree.search(2 * key + 1).0))
                && misses.all(|(gap, reads)| *reads == addresses(tree.search(2 * gap).0))
                // Arrays need no links to get to the next element.
                && (structure == Structure::Eytzinger || ranges.all(|(key, reads)| {
                    *reads == addresses(tree.range(2 * key + 1, length))
                }))
        })
    }

    fn b_trees_are_searched_as_programs_do(keys: u8, seed: u64) -> bool {
        let keys = u32::from(keys) + 1;
        btrees(keys, seed).into_iter().all(|(growth, nodes)| {
            let shape = Shape::from_parents(&nodes.parents).unwrap();
            let mut next_key = 0;
            let root = Node::read(&nodes, &shape, 0, &mut next_key);
            assert_eq!(next_key, u64::from(keys));
            root.height();
            [InNode::Binary, InNode::Linear].into_iter().all(|in_node| {
                let structure = Structure::BTree {
                    fanout: 5,
                    fill: 0.75,
                    in_node,
                    growth,
                };
                let search = |wanted| {
                    let mut reads = Vec::new();
                    root.search(wanted, in_node, &mut reads);
                    reads
                };
                let of = |operation| reads_of(structure, keys, operation);
                let keys = u64::from(keys);
                let mut walk = Vec::new();
                root.walk(&mut walk);
                (0..keys)
                    .zip(of(Operation::Search))
                    .all(|(key, reads)| reads == search(2 * key + 1))
                    && (0..=keys)
                        .zip(of(Operation::Miss))
                        .all(|(gap, reads)| reads == search(2 * gap))
                    && (0..=keys).zip(of(Operation::Insert)).all(|(gap, reads)| {
                        let mut expected = search(2 * gap);
                        root.shift(2 * gap, &mut expected);
                        reads == expected
                    })
                    && of(Operation::Walk { returns: false }) == [walk]
            })
        })
    }

    fn nodes_of_b_trees_are_as_full_as_they_may_be(keys: u16, seed: u64) -> bool {
        let keys = u32::from(keys);
        btrees(keys, seed).into_iter().all(|(growth, nodes)| {
            let most = if growth == Growth::Complete { 3 } else { 4 };
            let sum: u32 = nodes.counts.iter().sum();
            let shape = Shape::from_parents(&nodes.parents).unwrap();
            sum == keys
                && nodes.counts.iter().all(|count| (1..=most).contains(count))
                // Inner nodes have a child at each link.
                && (0..shape.nodes()).all(|v| {
                    let children = shape.children(v).len();
                    children == 0 || children == nodes.counts[v as usize] as usize + 1
                })
        })
    }

    fn lists_are_searched_from_the_head(keys: u8) -> bool {
        let keys = u32::from(keys) + 1;
        let list = |links| Structure::List { links };
        let to = |last: u32| {
            (0..=u64::from(last.min(keys - 1)))
                .map(|v| v << 20)
                .collect::<Vec<u64>>()
        };
        let single = reads_of(list(Links::Single), keys, Operation::Insert);
        let double = reads_of(list(Links::Double), keys, Operation::Insert);
        let range = reads_of(list(Links::Single), keys, Operation::Range { keys: 3 });
        (0..).zip(&single).all(|(key, reads)| *reads == to(key))
            && (0..).zip(&double).all(|(key, reads)| *reads == to(key + 1))
            && (0..).zip(&range).all(|(key, reads)| *reads == to(key + 2))
            && reads_of(list(Links::Double), keys, Operation::Miss) == [to(keys)]
    }

    fn chains_begin_at_their_buckets(keys: u8, seed: u64) -> bool {
        let keys = u32::from(keys);
        let structure = Structure::Hash { load: 2.0, seed };
        let built = structure.build(keys, &sizes()).unwrap();
        let buckets = u64::from(keys.div_ceil(2).max(1));
        let nodes_end = if keys == 0 {
            0
        } else {
            ((u64::from(keys) - 1) << 20) + 24
        };
        let fixed = nodes_end.next_multiple_of(4096);
        // Absent keys: one for each bucket, in order; its chain goes on where the one before has
        // ended.
        let mut next = 0u64;
        let misses = reads_of(structure, keys, Operation::Miss);
        let misses_agree = (0u64..).zip(&misses).all(|(bucket, reads)| {
            let chain = reads.len() as u64 - 1;
            let nodes = (next..next + chain).map(|node| node << 20);
            next += chain;
            reads[0] == fixed + 8 * bucket && reads[1..].iter().copied().eq(nodes)
        });
        let hits = reads_of(structure, keys, Operation::Search);
        // A hit is the beginning of a miss.
        let hits_agree = hits
            .iter()
            .all(|reads| misses.iter().any(|miss| miss.starts_with(reads)));
        built.fixed_bytes() == 8 * buckets
            && misses.len() as u64 == buckets
            && next == u64::from(keys)
            && misses_agree
            && hits_agree
    }
}
