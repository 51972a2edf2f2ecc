//! Where do hinted objects come to lie, and what does it gain? A tree, hash chains and a list, by
//! each policy and without hints.
//!
//! ```text
//! cargo run --release --example placement                 600000 objects in each structure
//! cargo run --release --example placement -- 4000000      your number of objects
//! ```
//!
//! - `tree`: keys in random order; the hint is the parent, an operation a search.
//! - `chains`: hash chains of 8 links; then half as many links are removed and others appended. The
//!   hint is the last link, an operation a walk along a chain.
//! - `list`: from its front to its end; the hint is the item before, an operation four walks.
//!
//! `docs/inside/ccmalloc.md` reads the table.

use std::collections::HashSet;
use std::error::Error;
use std::hint::black_box;

use ccmalloc::{Policy, set_default_policy, set_reserved_blocks};
use examples::{Switch, dependent_lookups, median, time_in_turns, with_ccmalloc};

const LOOKUPS: usize = 50_000;
const ROUNDS: usize = 7;
const CHAIN_LINKS: usize = 8;

#[global_allocator]
static GLOBAL: Switch = Switch;

/// How the objects of a structure are allocated.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    is_ccmalloc: bool,
    policy: Option<Policy>,
    reserved_blocks: usize,
}

const fn kind(
    name: &'static str,
    is_ccmalloc: bool,
    policy: Option<Policy>,
    reserved_blocks: usize,
) -> Kind {
    Kind {
        name,
        is_ccmalloc,
        policy,
        reserved_blocks,
    }
}

const KINDS: [Kind; 6] = [
    kind("malloc", false, None, 0),
    kind("no hints", true, None, 0),
    kind("FirstFit", true, Some(Policy::FirstFit), 0),
    kind("Closest", true, Some(Policy::Closest), 0),
    kind("NewBlock", true, Some(Policy::NewBlock), 0),
    // Three quarters of the 64 blocks of a page are left to hints at objects on that page.
    kind("NewBlock, ¾ reserved", true, Some(Policy::NewBlock), 48),
];

/// A node of a tree, or a link of a chain or a list, which use `links[0]`. Two of them fit a block
/// of 64 bytes.
struct Node {
    key: u64,
    links: [Link; 2],
}

type Link = Option<Box<Node>>;

/// Puts a node with `key` at an empty link, and with `hinted` near the node that holds the link.
fn put(link: &mut Link, key: u64, hinted: bool) -> &mut Node {
    let node = Node {
        key,
        links: [None, None],
    };
    let node = if hinted {
        ccmalloc::near(link, || Box::new(node))
    } else {
        Box::new(node)
    };
    link.insert(node)
}

/// A tree, a list, or a table of chains.
struct Structure {
    roots: Vec<Link>,
    keys: Vec<u64>,
}

impl Structure {
    fn tree(objects: usize, hinted: bool) -> Structure {
        let keys = distinct_keys(objects);
        let mut root: Link = None;
        for &key in &keys {
            let mut link = &mut root;
            while let Some(node) = link {
                link = &mut node.links[usize::from(key > node.key)];
            }
            put(link, key, hinted);
        }
        let roots = vec![root];
        Structure { roots, keys }
    }

    fn chains(objects: usize, hinted: bool) -> Structure {
        let mut keys = distinct_keys(objects);
        let mut roots = Vec::new();
        roots.resize_with(objects.div_ceil(CHAIN_LINKS), || None);
        for &key in &keys {
            let chain = chain_of(key, &roots);
            put(end_of(&mut roots[chain]), key, hinted);
        }
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..objects / 2 {
            let index = rng.usize(..objects);
            let chain = chain_of(keys[index], &roots);
            let mut link = &mut roots[chain];
            while link.as_ref().is_some_and(|node| node.key != keys[index]) {
                link = &mut link.as_mut().expect("it has a key").links[0];
            }
            let removed = link.take().expect("each key is in its chain");
            let [next, _] = removed.links;
            *link = next;
            keys[index] = rng.u64(..);
            let chain = chain_of(keys[index], &roots);
            put(end_of(&mut roots[chain]), keys[index], hinted);
        }
        Structure { roots, keys }
    }

    fn list(objects: usize, hinted: bool) -> Structure {
        let mut root: Link = None;
        let mut link = &mut root;
        for key in 0..objects as u64 {
            link = &mut put(link, key, hinted).links[0];
        }
        let (roots, keys) = (vec![root], Vec::new());
        Structure { roots, keys }
    }

    /// All operations of a round, each of which waits for the one before; a sum over the answers.
    fn pass(&self, queries: &[[u64; 2]]) -> u64 {
        let roots = &self.roots;
        match (self.keys.is_empty(), roots.len()) {
            (true, _) => (0..4).fold(0, |sum: u64, _| {
                sum.wrapping_add(walk(black_box(&roots[0])))
            }),
            (false, 1) => dependent_lookups(queries, |key| search(&roots[0], key)),
            (false, _) => dependent_lookups(queries, |key| walk(&roots[chain_of(key, roots)])),
        }
    }

    /// Share of the objects that lie in the block of the object that leads to them, and bytes of
    /// the pages that hold one.
    fn places(&self) -> (f64, usize) {
        let (mut edges, mut together) = (0_u32, 0_u32);
        let mut pages = HashSet::new();
        let mut pending: Vec<&Node> = self.roots.iter().filter_map(Option::as_deref).collect();
        let address = |node: &Node| std::ptr::from_ref(node).addr();
        while let Some(node) = pending.pop() {
            pages.extend([address(node) / 4096, (address(node) + 23) / 4096]);
            for child in node.links.iter().filter_map(Option::as_deref) {
                edges += 1;
                together += u32::from(address(node) / 64 == address(child) / 64);
                pending.push(child);
            }
        }
        (f64::from(together) / f64::from(edges), pages.len() * 4096)
    }
}

impl Drop for Structure {
    /// Frees the nodes one by one: a list must not take a stack frame for each item.
    fn drop(&mut self) {
        let mut pending: Vec<Box<Node>> = self.roots.drain(..).flatten().collect();
        while let Some(node) = pending.pop() {
            pending.extend(node.links.into_iter().flatten());
        }
    }
}

/// `count` different keys in random order.
fn distinct_keys(count: usize) -> Vec<u64> {
    // Multiplication by an odd number is a permutation of `u64`.
    let key = |number: u64| number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut keys: Vec<u64> = (0..count as u64).map(key).collect();
    fastrand::Rng::with_seed(4).shuffle(&mut keys);
    keys
}

/// The chain of a key, by multiplication and shift.
#[expect(
    clippy::cast_possible_truncation,
    reason = "below the number of chains"
)]
fn chain_of(key: u64, roots: &[Link]) -> usize {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((u128::from(hash) * roots.len() as u128) >> 64) as usize
}

fn end_of(mut link: &mut Link) -> &mut Link {
    while let Some(node) = link {
        link = &mut node.links[0];
    }
    link
}

/// The key as the tree holds it. `black_box`: known from the query alone, it would let the next
/// search begin before this one ends.
fn search(root: &Link, key: u64) -> u64 {
    let mut link = root;
    while let Some(node) = link {
        if node.key == key {
            return black_box(node).key;
        }
        link = &node.links[usize::from(key > node.key)];
    }
    u64::MAX
}

/// A sum over a chain.
fn walk(mut link: &Link) -> u64 {
    let mut sum = 0_u64;
    while let Some(node) = link {
        sum = sum.wrapping_mul(31).wrapping_add(node.key);
        link = &node.links[0];
    }
    sum
}

/// Builds a structure as `kind` says. Returns what became of its hints, too, in percent.
fn build(
    make: fn(usize, bool) -> Structure,
    kind: Kind,
    objects: usize,
) -> (Structure, Vec<String>) {
    set_default_policy(kind.policy.unwrap_or_default());
    set_reserved_blocks(kind.reserved_blocks);
    let watch = ccmalloc::watch();
    let structure = with_ccmalloc(kind.is_ccmalloc, || make(objects, kind.policy.is_some()));
    let report = watch.report();
    set_reserved_blocks(0);
    let counts = [
        report.same_block,
        report.same_group,
        report.same_page,
        report.tied_page,
        report.elsewhere,
        report.not_usable,
    ];
    let hinted: u64 = counts.iter().sum();
    let share = |count: u64| match hinted {
        0 => String::new(),
        _ => format!("{:.1}", count as f64 * 100.0 / hinted as f64),
    };
    (structure, counts.map(share).to_vec())
}

/// The rows of one structure, timed in turns.
fn compare(name: &str, make: fn(usize, bool) -> Structure, objects: usize) {
    let built = KINDS.map(|kind| build(make, kind, objects));
    let mut rng = fastrand::Rng::with_seed(2);
    let keys = &built[0].0.keys;
    let mut query = || keys.get(rng.usize(..objects)).copied().unwrap_or(0);
    let queries: Vec<[u64; 2]> = (0..LOOKUPS).map(|_| [query(), query()]).collect();
    let passes = built
        .each_ref()
        .map(|(structure, _)| || structure.pass(&queries));
    let times = time_in_turns(ROUNDS, &passes);
    for (index, (structure, shares)) in built.iter().enumerate() {
        let (together, bytes) = structure.places();
        println!(
            "| {name} | {} | {} | {:.1} | {:.1} | {:.2}x |",
            KINDS[index].name,
            shares.join(" | "),
            together * 100.0,
            bytes as f64 / objects as f64,
            median(&times[0]) / median(&times[index])
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let objects = std::env::args().nth(1);
    let objects = objects.as_deref().unwrap_or("600000");
    let objects = (objects.parse::<usize>()).map_err(|error| format!("{objects}: {error}"))?;
    if !(1000..=1 << 28).contains(&objects) {
        return Err("from 1000 to 268435456 objects".into());
    }
    println!("{objects} objects of 24 B a structure; hints in percent of the hinted allocations\n");
    println!(
        "| structure | hints | same_block | same_group | same_page | tied_page | elsewhere \
         | not_usable | % in one block | B an object | speed |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    compare("tree", Structure::tree, objects);
    compare("chains", Structure::chains, objects);
    compare("list", Structure::list, objects);
    Ok(())
}
